//! A switch that comes up is asked once which rules it has, and whose they are is known from then on.

#![allow(clippy::unwrap_used, reason = "a test may")]

use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, OpenFlowVersion, StatsReply, SwitchUp};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::canonical::write_match;
use flow::text::parse_match;
use flow::{DatapathId, ErrorCode};
use kernel::found::RULES_MAX;
use kernel::{Asked, Decision, Effect, Found, Grant, Kernel, OnOverlap, Refusal, Unanswered};
use proptest::prelude::*;

const SWITCH: DatapathId = DatapathId(1);
const ONE: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
/// An app that the node has, and that does not run.
const AWAY: ZoneId = ZoneId(9);
const RULE: &str = "ip,nw_src=10.0.0.1";

/// When switches are asked that came up at the beginning.
const ASKED_MS: u64 = 100;

struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
}

fn canonical(matching: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_match(&parse_match(matching).unwrap(), &mut bytes);
    bytes
}

/// `ofp_flow_stats` (1.3.5, 7.3.5.2) of table 0 and priority 7.
fn entry(owner: ZoneId, matching: &str) -> Vec<u8> {
    let matching = canonical(matching);
    let mut bytes = vec![0; 48];
    bytes[13] = 7;
    bytes[24..32].copy_from_slice(&owner.stamp(5).to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(4 + matching.len()).unwrap()]);
    bytes.extend(matching);
    bytes.resize(bytes.len().next_multiple_of(8).max(56), 0);
    bytes[1] = u8::try_from(bytes.len()).unwrap();
    bytes
}

impl Node {
    fn new() -> Node {
        let mut node = Node { kernel: Kernel::new(7), effects: Vec::new() };
        for zone in [ONE, OTHER] {
            node.kernel.attach(zone, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0);
        }
        // Whose a rule is, is asked here, and not whose rule decides.
        node.kernel.on_overlap(OnOverlap::Report);
        node
    }

    /// With a switch that was asked.
    fn asked() -> Node {
        let mut node = Node::new();
        node.come_up(SWITCH, 0);
        assert_eq!(node.questions(ASKED_MS), [SWITCH]);
        node
    }

    fn come_up(&mut self, datapath: DatapathId, now_ms: u64) {
        let up =
            SwitchUp { datapath, n_buffers: 0, n_tables: 2, openflow: OpenFlowVersion::V1_3, ports: &[] };
        self.event(now_ms, |out| event::write::switch_up(out, 1, &up));
    }

    fn go_down(&mut self, datapath: DatapathId) {
        self.event(0, |out| event::write::switch_down(out, 1, datapath));
    }

    fn event(&mut self, now_ms: u64, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), now_ms, &mut self.effects).unwrap();
    }

    /// The switches that are asked in one turn.
    fn questions(&mut self, now_ms: u64) -> Vec<DatapathId> {
        self.kernel.ask_for_owners(now_ms, &mut self.effects);
        let asked = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Ask { datapath, asked: Asked::Owners } => Some(datapath),
            _ => None,
        });
        asked.collect()
    }

    /// The switch answers with these bytes.
    fn say(&mut self, body: &[u8], more: bool) {
        let ticket = Asked::Owners.ticket();
        let reply = StatsReply { datapath: SWITCH, ticket, multipart: 1, more, body };
        let mut bytes = Vec::new();
        event::write::stats_reply(&mut bytes, 9, &reply);
        assert!(self.kernel.on_own_answer(&bytes, ASKED_MS));
    }

    fn does_not_answer(&mut self, outcome: Outcome) {
        let error = ErrorCode { kind: 0, code: 0 };
        let receipt = Receipt { ticket: Asked::Owners.ticket(), outcome, error, reason: "" };
        let mut bytes = Vec::new();
        assert!(event::write::receipt(&mut bytes, 9, SWITCH, &receipt));
        assert!(self.kernel.on_own_answer(&bytes, ASKED_MS));
    }

    /// Whose the rule is, if an add of it by this zone is refused.
    fn add(&mut self, zone: ZoneId, matching: &str) -> Result<(), ZoneId> {
        let matching = canonical(matching);
        let what = What::FlowMod(FlowMod { priority: 7, matching: &matching, ..FlowMod::ADD });
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), ASKED_MS, &mut self.effects) {
            Decision::Send(_) => {
                self.kernel.on_sent();
                Ok(())
            }
            Decision::Refuse(Refusal::OthersRule(owner)) => Err(owner),
            other => panic!("{other:?}"),
        }
    }

    fn found(&self) -> Option<Found> {
        self.kernel.of_switches().find(|it| it.datapath == SWITCH).map(|it| it.found)
    }
}

#[test]
fn whose_a_rule_was_before_this_kernel_is_known_once_the_switch_has_said_so() {
    let mut node = Node::asked();
    assert_eq!(node.found(), Some(Found::Waiting));
    let entries = [entry(ONE, RULE), entry(AWAY, "arp"), entry(ZoneId::KERNEL, "tcp")].concat();
    node.say(&entries, false);
    assert_eq!(node.found(), Some(Found::Answered(2)));
    assert_eq!(node.add(OTHER, RULE), Err(ONE));
    assert_eq!((node.add(ONE, "arp"), node.add(OTHER, "arp")), (Err(AWAY), Err(AWAY)));
    assert_eq!((node.add(ONE, RULE), node.add(ONE, "tcp"), node.add(OTHER, "udp")), (Ok(()), Ok(()), Ok(())));
}

#[test]
fn a_switch_is_asked_once_when_it_has_been_up_for_a_moment() {
    let mut node = Node::new();
    node.come_up(SWITCH, 0);
    assert_eq!(node.questions(ASKED_MS - 1), []);
    assert_eq!((node.questions(ASKED_MS), node.questions(600_000)), (vec![SWITCH], vec![]));
    node.come_up(SWITCH, 600_000);
    assert_eq!(node.found(), Some(Found::Waiting));
    node.go_down(SWITCH);
    assert_eq!(node.questions(1_000_000), [], "it went before it could be asked");
    node.come_up(SWITCH, 1_000_000);
    assert_eq!(node.questions(2_000_000), [SWITCH], "another session may have had another worker between");
}

#[test]
fn of_two_thousand_that_come_at_once_few_are_asked_in_one_turn() {
    let mut node = Node::new();
    (1..=2_000).for_each(|id| node.come_up(DatapathId(id), 0));
    let mut asked = Vec::new();
    for turn in 0.. {
        let now = node.questions(ASKED_MS + turn);
        assert!(now.len() <= 16, "{}", now.len());
        if now.is_empty() {
            break;
        }
        asked.extend(now);
    }
    assert_eq!(asked, (1..=2_000).map(DatapathId).collect::<Vec<_>>());
}

#[test]
fn a_question_that_did_not_go_out_is_put_again() {
    let mut node = Node::asked();
    node.kernel.on_no_answer(SWITCH, Asked::Owners, Unanswered::NotSent, ASKED_MS);
    assert_eq!(node.questions(ASKED_MS + 999), []);
    assert_eq!(node.questions(ASKED_MS + 1_000), [SWITCH]);
}

#[test]
fn what_was_added_since_is_newer_than_any_answer() {
    let mut node = Node::asked();
    assert_eq!((node.add(ONE, RULE), node.add(ONE, "arp")), (Ok(()), Ok(())));
    node.say(&[entry(OTHER, RULE), entry(OTHER, "tcp")].concat(), false);
    assert_eq!((node.add(ONE, RULE), node.add(OTHER, RULE)), (Ok(()), Err(ONE)));
    assert_eq!(node.add(ONE, "tcp"), Err(OTHER));
}

#[test]
fn an_add_before_the_answer_passes_as_it_did() {
    let mut node = Node::asked();
    assert_eq!(node.add(OTHER, RULE), Ok(()));
    node.say(&entry(ONE, RULE), false);
    assert_eq!((node.add(ONE, RULE), node.add(OTHER, RULE)), (Err(OTHER), Ok(())));
}

#[test]
fn a_rule_that_is_found_and_then_gone_is_found_out_as_any_other() {
    let mut node = Node::asked();
    node.say(&entry(ONE, RULE), false);
    assert_eq!(node.add(OTHER, RULE), Err(ONE));
    let asked = Effect::Ask { datapath: SWITCH, asked: Asked::Rule };
    assert!(node.effects.contains(&asked));
    let reply =
        StatsReply { datapath: SWITCH, ticket: Asked::Rule.ticket(), multipart: 1, more: false, body: &[] };
    let mut bytes = Vec::new();
    event::write::stats_reply(&mut bytes, 9, &reply);
    assert!(node.kernel.on_own_answer(&bytes, ASKED_MS));
    assert_eq!(node.add(OTHER, RULE), Ok(()));
}

#[test]
fn what_came_before_an_answer_broke_off_is_known() {
    for outcome in [Outcome::Unknown, Outcome::Failed] {
        let mut node = Node::asked();
        node.say(&entry(ONE, RULE), true);
        assert_eq!((node.add(OTHER, RULE), node.found()), (Err(ONE), Some(Found::Waiting)));
        node.does_not_answer(outcome);
        assert_eq!((node.found(), node.add(OTHER, RULE)), (Some(Found::Unanswered(1)), Err(ONE)));
        node.say(&entry(ONE, "arp"), false);
        assert_eq!((node.found(), node.add(OTHER, "arp")), (Some(Found::Unanswered(1)), Ok(())));
    }
}

#[test]
fn a_switch_that_never_ends_is_listened_to_as_far_as_there_is_memory() {
    let mut node = Node::asked();
    let part = entry(ONE, RULE).repeat(900);
    (0..RULES_MAX / 900 + 1).for_each(|_| node.say(&part, true));
    node.say(&entry(ONE, "arp"), true);
    assert_eq!(node.add(OTHER, "arp"), Ok(()), "it is beyond what is taken");
    node.say(&[], false);
    assert_eq!(node.found(), Some(Found::Answered(RULES_MAX)));
}

#[test]
fn cookies_that_name_no_zone_say_nothing() {
    let mut node = Node::asked();
    node.say(&[64, 0x0a00, u16::MAX].map(|number| entry(ZoneId(number), RULE)).concat(), false);
    assert_eq!((node.found(), node.add(ONE, RULE)), (Some(Found::Answered(0)), Ok(())));
}

#[test]
fn an_answer_without_entries_takes_no_memory() {
    let mut node = Node::asked();
    let mut bytes = Vec::new();
    let reply = StatsReply {
        datapath: SWITCH,
        ticket: Asked::Owners.ticket(),
        multipart: 1,
        more: false,
        body: &entry(ZoneId::KERNEL, "tcp"),
    };
    event::write::stats_reply(&mut bytes, 9, &reply);
    let taken = allocation_counter::measure(|| assert!(node.kernel.on_own_answer(&bytes, ASKED_MS)));
    assert_eq!(taken.count_total, 0);
}

proptest! {
    #[test]
    fn rubbish_changes_nothing_that_is_known_and_refuses_nobody_his_own(
        rubbish in proptest::collection::vec(any::<u8>(), 0..400),
        cut in 0..200_usize,
        flipped in 0..200_usize,
    ) {
        let mut node = Node::asked();
        assert_eq!(node.add(ONE, RULE), Ok(()));
        let mut damaged = [entry(OTHER, RULE), entry(OTHER, "arp"), entry(OTHER, "tcp")].concat();
        let place = flipped % damaged.len();
        damaged[place] ^= 0xff;
        node.say(&damaged[..cut.min(damaged.len())], true);
        node.say(&rubbish, false);
        assert_eq!((node.add(ONE, RULE), node.add(OTHER, RULE)), (Ok(()), Err(ONE)));
    }
}
