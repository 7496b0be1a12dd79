//! What zones lost and cannot delete themselves: the kernel deletes it, and nothing else.

use super::found::{AWAY, Node, ONE, OTHER, SWITCH, entry_with};
use abi::{Outcome, Receipt};
use flow::canonical::{InstructionWriter, read_match};
use flow::text::match_to_string;
use flow::{DatapathId, ErrorCode, PortNo};
use kernel::own_messages::WITHDRAWAL_TICKET;
use kernel::{Claims, Effect, GroupOrMeter, LostParts, Removal, Withdrawal};
use std::sync::Arc;

/// A rule of this cookie with this match, that sends to this port.
fn entry(cookie: u64, matching: &str, port: PortNo) -> Vec<u8> {
    let mut bytes = entry_with(cookie, matching);
    InstructionWriter::new(&mut bytes).apply_actions(|actions| {
        actions.output(port, 0);
    });
    let length = u16::try_from(bytes.len()).unwrap();
    bytes[..2].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn withdrawal(id: u64, lost: LostParts) -> Withdrawal {
    let ports = [1, 2, 3].map(PortNo).into();
    Withdrawal { id, zone: AWAY, datapath: SWITCH, ports, lost }
}

fn port_2() -> LostParts {
    LostParts::Parts { ports: [PortNo(2)].into(), addresses: ["10.0.0.9".parse().unwrap()].into() }
}

/// The deletes that the kernel sends now, and the answer to the barrier behind them.
fn deletes(node: &mut Node) -> Vec<String> {
    let mut words = Vec::new();
    loop {
        node.kernel.say_withdrawals(&mut node.effects);
        if !node.effects.drain(..).any(|effect| effect == Effect::Withdraw(SWITCH)) {
            return words;
        }
        let batch = node.kernel.next_withdrawals(SWITCH);
        words.extend(batch.iter().map(in_words));
        if !batch.is_empty() {
            answer(node, Outcome::Programmed);
        }
    }
}

fn answer(node: &mut Node, outcome: Outcome) {
    let error = ErrorCode { kind: 0, code: 0 };
    let receipt = Receipt { ticket: WITHDRAWAL_TICKET, outcome, error, reason: "" };
    let mut bytes = Vec::new();
    assert!(abi::event::write::receipt(&mut bytes, 9, SWITCH, &receipt));
    assert!(node.kernel.on_withdrawal_answer(&bytes));
}

fn in_words(removal: &Removal) -> String {
    match removal {
        Removal::Rule { matching, cookie, .. } => {
            format!("{:x} {}", cookie & 0xff, match_to_string(&read_match(matching).unwrap()))
        }
        other => format!("{other:?}"),
    }
}

/// Rules of the zone that lost something, of another zone and of another controller.
fn report() -> Vec<u8> {
    [
        entry(AWAY.stamp(1), "in_port=1", PortNo(3)),
        entry(AWAY.stamp(2), "in_port=2", PortNo(3)),
        entry(AWAY.stamp(3), "in_port=3", PortNo(2)),
        entry(AWAY.stamp(4), "arp", PortNo::CONTROLLER),
        entry(AWAY.stamp(5), "ip,nw_dst=10.0.0.9", PortNo(3)),
        // Another controller's, which happens to begin as those of the zone.
        entry(AWAY.stamp(6), "in_port=7", PortNo(3)),
        entry(AWAY.stamp(7), "udp", PortNo(7)),
        entry(AWAY.stamp(8), "tcp", PortNo::NORMAL),
        entry(OTHER.stamp(9), "in_port=2", PortNo(3)),
        entry(0xffff_0000_0000_0001, "sctp", PortNo(2)),
    ]
    .concat()
}

#[test]
fn a_switch_that_connects_loses_what_belongs_to_the_lost_zone_and_nothing_else() {
    let check = |lost: LostParts, expected: &[&str]| {
        let mut node = Node::new();
        node.kernel.withdraw(&[withdrawal(1, lost)], 0);
        node.come_up(SWITCH, 0);
        assert_eq!(node.questions(0), [SWITCH]);
        node.say(&report(), false);
        assert_eq!(deletes(&mut node), expected);
        assert_eq!(node.kernel.take_withdrawn(), [1]);
        // The place is free at once, and the others' are not.
        assert_eq!((node.add(ONE, "in_port=2"), node.add(ONE, "udp")), (Err(Some(OTHER)), Err(Some(AWAY))));
        node.say(&report(), false);
        assert_eq!(deletes(&mut node), [""; 0], "once is enough");
    };
    check(LostParts::All, &["1 in_port=1", "2 in_port=2", "3 in_port=3", "4 arp", "5 ip,nw_dst=10.0.0.9"]);
    check(port_2(), &["2 in_port=2", "3 in_port=3", "5 ip,nw_dst=10.0.0.9"]);
}

#[test]
fn a_connected_switch_is_asked_and_one_that_is_away_waits() {
    let mut node = Node::asked();
    node.say(&report(), false);
    assert_eq!(deletes(&mut node), [""; 0]);
    let elsewhere = Withdrawal { datapath: DatapathId(2), ..withdrawal(2, LostParts::All) };
    let wanted = [withdrawal(1, port_2()), elsewhere];
    node.kernel.withdraw(&wanted, 0);
    assert_eq!(node.questions(20_000), [SWITCH]);
    node.say(&report(), false);
    assert_eq!(deletes(&mut node).len(), 3);
    assert_eq!(node.kernel.take_withdrawn(), [1], "the other switch is away");
    node.kernel.withdraw(&wanted, 20_000);
    assert_eq!(node.questions(60_000), [], "it is done");
}

#[test]
fn what_was_interrupted_or_refused_is_done_at_the_next_connection() {
    let mut node = Node::new();
    node.kernel.withdraw(&[withdrawal(1, LostParts::All)], 0);
    for is_refused in [true, false] {
        node.come_up(SWITCH, 0);
        node.questions(0);
        node.say(&report(), false);
        node.kernel.say_withdrawals(&mut node.effects);
        node.effects.clear();
        assert_eq!(node.kernel.next_withdrawals(SWITCH).len(), 5);
        if is_refused {
            answer(&mut node, Outcome::Failed);
            assert_eq!(deletes(&mut node), [""; 0]);
        }
        node.go_down(SWITCH);
        assert_eq!(node.kernel.take_withdrawn(), [0; 0]);
    }
    node.come_up(SWITCH, 0);
    node.questions(0);
    node.say(&report(), false);
    assert_eq!((deletes(&mut node).len(), node.kernel.take_withdrawn()), (5, vec![1]));
}

/// The batch that is due now.
fn batch(node: &mut Node, now_ms: u64) -> Vec<String> {
    node.kernel.ask_for_owners(now_ms, &mut node.effects);
    let is_due = node.effects.drain(..).any(|effect| effect == Effect::Withdraw(SWITCH));
    let removals = if is_due { node.kernel.next_withdrawals(SWITCH) } else { Vec::new() };
    removals.iter().map(in_words).collect()
}

#[test]
fn what_had_no_room_is_sent_again_later_and_counts_as_deleted_only_then() {
    let mut node = Node::new();
    node.kernel.withdraw(&[withdrawal(1, LostParts::All)], 0);
    node.come_up(SWITCH, 0);
    node.questions(0);
    node.say(&report(), false);
    let first = batch(&mut node, 0);
    assert_eq!(first.len(), 5);
    assert!(node.kernel.on_withdrawals_not_sent(SWITCH, 0));
    assert_eq!(batch(&mut node, 999), [""; 0], "not at once");
    // A later loss does not take the place of the batch that was not sent.
    node.kernel.withdraw(&[withdrawal(1, LostParts::All), withdrawal(2, LostParts::All)], 999);
    assert_eq!(batch(&mut node, 1_000), first);
    assert_eq!(node.kernel.take_withdrawn(), [0; 0]);
    answer(&mut node, Outcome::Programmed);
    assert_eq!((deletes(&mut node).len(), node.kernel.take_withdrawn()), (0, vec![1]));
}

#[test]
fn a_switch_that_never_has_room_is_left_alone_until_it_connects_again() {
    let mut node = Node::new();
    node.kernel.withdraw(&[withdrawal(1, LostParts::All)], 0);
    node.come_up(SWITCH, 0);
    node.questions(0);
    node.say(&report(), false);
    let mut tries = 0;
    for now_ms in (0..).step_by(1_000) {
        assert_eq!(batch(&mut node, now_ms).len(), 5);
        tries += 1;
        if !node.kernel.on_withdrawals_not_sent(SWITCH, now_ms) {
            break;
        }
    }
    assert_eq!(tries, kernel::withdrawals::TRIES_MAX);
    assert_eq!((batch(&mut node, 1 << 20).len(), node.kernel.take_withdrawn()), (0, vec![]));
    node.go_down(SWITCH);
    node.come_up(SWITCH, 0);
    node.questions(0);
    node.say(&report(), false);
    assert_eq!((deletes(&mut node).len(), node.kernel.take_withdrawn()), (5, vec![1]));
}

#[test]
fn a_table_of_thousands_goes_in_batches() {
    let mut node = Node::new();
    node.kernel.withdraw(&[withdrawal(1, LostParts::All)], 0);
    node.come_up(SWITCH, 0);
    node.questions(0);
    for number in 0..1_000_u64 {
        let rule = entry(AWAY.stamp(number), &format!("in_port=1,udp,tp_dst={number}"), PortNo(3));
        node.say(&rule, true);
    }
    node.say(&[], false);
    node.kernel.say_withdrawals(&mut node.effects);
    assert!(node.effects.drain(..).any(|effect| effect == Effect::Withdraw(SWITCH)));
    let first = node.kernel.next_withdrawals(SWITCH).len();
    assert!(first < 200, "{first}");
    answer(&mut node, Outcome::Programmed);
    assert_eq!(deletes(&mut node).len() + first, 1_000);
}

#[test]
fn groups_and_meters_go_with_the_zone_and_groups_with_a_port() {
    let check = |lost: LostParts, expected: &[&str]| {
        let (claims, mut node) = (Arc::new(Claims::default()), Node::new());
        for (thing, zone) in
            [(GroupOrMeter::Group(7), AWAY), (GroupOrMeter::Meter(8), AWAY), (GroupOrMeter::Group(9), OTHER)]
        {
            claims.restore(SWITCH, thing, zone);
        }
        node.kernel.share_claims(claims.clone());
        node.kernel.withdraw(&[withdrawal(1, lost)], 0);
        node.come_up(SWITCH, 0);
        node.questions(0);
        node.say(&[], false);
        assert_eq!(deletes(&mut node), expected);
        let changes = claims.take_changes(10).into_iter().filter(|it| it.zone.is_none()).count();
        assert_eq!(changes, expected.len(), "nobody owns them any more");
    };
    check(LostParts::All, &["Group(7)", "Meter(8)"]);
    check(port_2(), &["Group(7)"]);
}
