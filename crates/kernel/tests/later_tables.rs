//! No app takes all packets of an app that precedes it in the operator's order, in any table that these packets reach.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod ordered;

use abi::command::{self, Command, FlowMod, MeterMod, Subscribe, What};
use abi::event::kind;
use abi::{Frame, Outcome, Receipt};
use flow::Match;
use flow::canonical::{write_instructions, write_match};
use flow::text::{parse_instructions, parse_match};
use kernel::{Bounds, Capability, Decision, Effect, Grant};
use ordered::*;

const BLINDS: &str = "rule.write: it would take every packet that app number 2 receives";

/// A node whose earlier app receives packets, these or all of them, and has priorities from 31 on.
fn with_listener(packets: &str) -> Node {
    let bounds = Bounds { priorities: 31..=65535, ..Bounds::default() };
    let hears = Grant::nothing().with(Capability::PacketIn).with_rules(bounds).with_rank(1);
    let mut node = Node::with(writer(2), hears);
    listen(&mut node, packets);
    node
}

/// The later app has meter 1.
fn add_meter(node: &mut Node) {
    let bands = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let what = What::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 1, bands: &bands });
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    let Decision::Send(sent) =
        node.kernel.on_command(LATER, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new())
    else {
        panic!("it is refused");
    };
    let (ticket, error) = (sent.ticket, flow::ErrorCode { kind: 0, code: 0 });
    node.kernel.on_sent();
    node.kernel.on_receipt(&Receipt { ticket, outcome: Outcome::Programmed, error, reason: "" });
}

fn listen(node: &mut Node, packets: &str) {
    let mut bytes = Vec::new();
    write_match(&parse_match(packets).unwrap(), &mut bytes);
    let events = kind::bit(kind::PACKET_IN);
    node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &bytes }));
}

/// The later app's rule of priority 5.
fn write(node: &mut Node, table_id: u8, matching: &str, instructions: &str) -> String {
    let mut bytes = Vec::new();
    write_instructions(&parse_instructions(instructions).unwrap(), &mut bytes).unwrap();
    let rest = FlowMod { table_id, instructions: &bytes, ..FlowMod::ADD };
    node.rule(LATER, 5, &parse_match(matching).unwrap(), rest)
}

#[test]
fn a_later_app_takes_no_packets_in_a_table_to_which_it_passed_them_on() {
    let mut node = with_listener("");
    add_meter(&mut node);
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    for (matching, instructions) in [
        ("", "drop"),
        ("", "output:1"),
        ("", "meter:1,goto_table:2"),
        ("", "set_field:02:00:00:00:00:01->eth_src,goto_table:2"),
        ("dl_dst=00:00:00:00:00:00/00:00:00:00:00:00", "drop"),
    ] {
        let said = write(&mut node, 1, matching, instructions);
        assert!(said.starts_with(BLINDS), "{matching} {instructions}: {said}");
    }
    assert_eq!(write(&mut node, 1, "arp", "drop"), "sent", "not every packet");
    assert_eq!(write(&mut node, 2, "", "drop"), "sent", "no packet gets there");
    assert_eq!(write(&mut node, 1, "", "goto_table:3"), "sent");
    assert!(write(&mut node, 3, "", "drop").starts_with(BLINDS));
}

#[test]
fn packets_are_not_changed_and_not_limited_before_they_are_passed_on() {
    for instructions in [
        "set_field:02:00:00:00:00:01->eth_src,goto_table:1",
        "meter:1,goto_table:1",
        "dec_ttl,goto_table:1",
        "write_metadata:1,goto_table:1",
        "pop_vlan,goto_table:1",
    ] {
        let mut node = with_listener("");
        add_meter(&mut node);
        let said = write(&mut node, 0, "", instructions);
        assert!(said.starts_with(BLINDS), "{instructions}: {said}");
    }
    let mut node = with_listener("");
    let copies = "output:1,push_vlan:0x8100,set_field:4096->vlan_vid,output:2,pop_vlan,goto_table:1";
    assert_eq!(write(&mut node, 0, "", copies), "sent", "a mirror");
}

#[test]
fn a_rule_in_a_later_table_that_was_there_first_is_evicted_when_packets_get_there() {
    let mut node = with_listener("");
    assert_eq!(write(&mut node, 1, "", "goto_table:2"), "sent");
    assert_eq!(write(&mut node, 2, "", "drop"), "sent");
    assert_eq!(write(&mut node, 3, "", "drop"), "sent");
    assert!(node.evicted().is_empty());
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    let evicted = node.kernel.take_evictions();
    let [it] = &evicted[..] else { panic!("{evicted:?}") };
    assert_eq!((it.owner, it.for_zone, it.table_id, it.takes_all), (LATER, BEFORE, 2, true));
    assert!(node.effects.contains(&Effect::PuntFrom { datapath: SWITCH, table_id: 1 }));
    assert!(node.effects.contains(&Effect::PuntFrom { datapath: SWITCH, table_id: 2 }));
    assert!(!node.effects.contains(&Effect::PuntFrom { datapath: SWITCH, table_id: 3 }));
}

#[test]
fn what_takes_all_packets_is_evicted_when_an_earlier_app_wants_them() {
    let bounds = Bounds { priorities: 31..=65535, ..Bounds::default() };
    let hears = Grant::nothing().with(Capability::PacketIn).with_rules(bounds).with_rank(1);
    let mut node = Node::with(writer(2), hears);
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    assert_eq!(write(&mut node, 1, "", "output:1"), "sent");
    listen(&mut node, "arp");
    assert!(node.effects.contains(&Effect::Evict), "{:?}", node.effects);
    assert_eq!(node.evicted(), [(LATER, 5)]);
}

#[test]
fn it_is_so_for_an_app_that_wants_only_some_packets() {
    let mut node = with_listener("arp");
    assert_eq!(write(&mut node, 0, "arp", "goto_table:1"), "sent");
    assert!(node.effects.contains(&Effect::PuntFrom { datapath: SWITCH, table_id: 1 }));
    assert!(write(&mut node, 1, "arp", "drop").starts_with(BLINDS));
    assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS));
    assert_eq!(write(&mut node, 1, "ip", "drop"), "sent");
    assert_eq!(write(&mut node, 1, "arp,in_port=1", "drop"), "sent");
}

#[test]
fn a_modify_does_not_turn_a_rule_that_passes_packets_on_into_one_that_takes_them() {
    let mut node = with_listener("");
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    for command in [1, 2] {
        let modify = FlowMod { command, ..FlowMod::ADD };
        let said = node.rule(LATER, 5, &Match::any(), modify);
        assert!(said.starts_with(BLINDS), "{command}: {said}");
    }
    // A private table, which gets the packets later.
    assert_eq!(write(&mut node, 2, "", "goto_table:3"), "sent");
    let loose = FlowMod { command: 1, table_id: 2, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 5, &Match::any(), loose), "sent");
    assert_eq!(write(&mut node, 1, "", "goto_table:2"), "sent");
    assert_eq!(node.evicted(), [(LATER, 5)]);
}

#[test]
fn the_kernels_rule_in_a_later_table_is_protected_while_it_is_there() {
    let mut node = with_listener("");
    let in_first = FlowMod { table_id: 1, ..FlowMod::ADD };
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    let said = node.rule(LATER, 0, &Match::any(), in_first);
    assert!(said.contains("rule.write.others"), "{said}");
    let mut zeros = Match::any();
    zeros.set_masked(flow::Field::EthDst, 0, 0);
    let said = node.rule(LATER, 0, &zeros, in_first);
    assert!(said.contains("rule.write.others") || said.starts_with(BLINDS), "{said}");
    let strict = FlowMod { command: 4, ..in_first };
    assert!(node.rule(LATER, 0, &Match::any(), strict).contains("rule.write.others"));
    assert_eq!(node.rule(LATER, 0, &Match::any(), FlowMod { table_id: 2, ..FlowMod::ADD }), "sent");
}

#[test]
fn the_kernels_rule_in_a_later_table_goes_when_no_app_passes_packets_on_to_it() {
    let mut node = Node::new();
    let events = kind::bit(kind::PACKET_IN);
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    pass_all_on(&mut node, 3);
    let look = |node: &mut Node, now_ms| {
        let mut effects = Vec::new();
        node.kernel.check_meters(now_ms, &mut effects);
        effects.contains(&Effect::EndPuntFrom { datapath: SWITCH, table_id: 3 })
    };
    let strict = FlowMod { command: 4, ..FlowMod::ADD };
    assert_eq!(node.rule(BEFORE, 30, &Match::any(), strict), "sent");
    assert!((1..9).all(|looks| !look(&mut node, looks * 10_000)), "its rules are not all known");
    let mut node = Node::reporting(writer(2), writer(1), &[]);
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    pass_all_on(&mut node, 3);
    assert!((1..9).all(|looks| !look(&mut node, looks * 10_000)));
    assert_eq!(node.rule(BEFORE, 30, &Match::any(), strict), "sent");
    assert!(!look(&mut node, 90_000) && look(&mut node, 100_000) && !look(&mut node, 110_000));
    pass_all_on(&mut node, 3);
    assert!(node.effects.contains(&Effect::PuntFrom { datapath: SWITCH, table_id: 3 }));
}

/// An `ofp_flow_stats` without counters.
fn reported(table_id: u8, priority: u16, cookie: u64, instructions: &str) -> Vec<u8> {
    let mut done = Vec::new();
    write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
    let mut entry = vec![0; 56];
    entry[..2].copy_from_slice(&u16::try_from(56 + done.len()).unwrap().to_be_bytes());
    entry[2] = table_id;
    entry[12..14].copy_from_slice(&priority.to_be_bytes());
    entry[24..32].copy_from_slice(&cookie.to_be_bytes());
    entry[48..52].copy_from_slice(&[0, 1, 0, 4]);
    entry.extend(done);
    entry
}

#[test]
fn after_a_restart_the_rules_that_switches_report_count_as_before() {
    let hears = Grant::nothing()
        .with(Capability::PacketIn)
        .with_rules(Bounds { priorities: 31..=65535, ..Bounds::default() })
        .with_rank(1);
    let rules = [
        reported(1, 5, LATER.stamp(0), "drop"),
        reported(0, 5, LATER.stamp(0), "goto_table:1"),
        reported(1, 0, kernel::OWN_COOKIE, "controller"),
        reported(4, 0, kernel::OWN_COOKIE, "controller"),
    ];
    let mut node = Node::reporting(writer(2), hears, &rules.concat());
    listen(&mut node, "");
    assert_eq!(node.evicted(), [(LATER, 5)], "it drops what is passed on");
    assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS));
    let mut ends = Vec::new();
    (1..=3).for_each(|looks| node.kernel.check_meters(looks * 10_000, &mut ends));
    assert_eq!(ends, [Effect::EndPuntFrom { datapath: SWITCH, table_id: 4 }], "only that is not used");
}
