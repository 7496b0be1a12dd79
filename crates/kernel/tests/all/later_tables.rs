//! No app takes all packets of an app that precedes it in the operator's order, in any table that these packets reach.

use crate::ordered;

use abi::command::{self, Command, FlowMod, MeterMod, Subscribe, What};
use abi::event::{self, FlowRemoved, kind};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::Match;
use flow::canonical::{write_instructions, write_match};
use flow::text::{parse_instructions, parse_match};
use kernel::{Asked, Bounds, Capability, Decision, Effect, Grant};
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

fn reported(table_id: u8, priority: u16, cookie: u64, instructions: &str) -> Vec<u8> {
    reported_with(table_id, priority, cookie, &[], instructions)
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

/// The later app wants all packets, and the earlier one passes them on to table 3. The later app has its own table-miss rule
/// there, with this time-out.
fn with_own_table_miss(idle_timeout_s: u16) -> Node {
    let mut node = Node::new();
    let events = kind::bit(kind::PACKET_IN);
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    let own = FlowMod { table_id: 3, idle_timeout_s, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 0, &Match::any(), own), "sent");
    pass_all_on(&mut node, 3);
    assert!(!node.effects.contains(&PUNT_FROM_3));
    node
}

const PUNT_FROM_3: Effect = Effect::PuntFrom { datapath: SWITCH, table_id: 3 };
const ASK_FOR_RULE: Effect = Effect::Ask { datapath: SWITCH, asked: Asked::Rule };
const ASK_FOR_ALL: Effect = Effect::Ask { datapath: SWITCH, asked: Asked::Owners };

/// What the kernel asks for at its next look at the switches.
fn look(node: &mut Node) -> Vec<Effect> {
    node.now_ms += 10_000;
    let mut effects = Vec::new();
    node.kernel.check_meters(node.now_ms, &mut effects);
    effects
}

#[test]
fn a_switch_is_asked_for_a_table_miss_rule_of_an_app_that_may_have_timed_out() {
    let mut node = with_own_table_miss(0);
    assert_eq!(look(&mut node), [], "it stays");
    let mut node = with_own_table_miss(5);
    let there = reported(3, 0, LATER.stamp(0), "drop");
    for _ in 0..3 {
        assert_eq!(look(&mut node), [ASK_FOR_RULE]);
        assert_eq!(node.answer(Asked::Rule, &there), [], "it is there");
    }
    assert_eq!(look(&mut node), [ASK_FOR_RULE]);
    assert_eq!(node.answer(Asked::Rule, &[]), [PUNT_FROM_3]);
    assert_eq!(look(&mut node), []);
}

#[test]
fn tables_are_asked_about_in_turn() {
    let mut node = with_own_table_miss(5);
    let own = FlowMod { table_id: 5, idle_timeout_s: 5, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 0, &Match::any(), own), "sent");
    assert_eq!(write_as(&mut node, BEFORE, 30, 3, "goto_table:5"), "sent");
    let there = [reported(3, 0, LATER.stamp(0), "drop"), reported(5, 0, LATER.stamp(0), "drop")].concat();
    let asked: Vec<u8> = (0..4)
        .map(|_| {
            assert_eq!(look(&mut node), [ASK_FOR_RULE]);
            let table_id = node.kernel.wanted_rule(SWITCH).unwrap().table_id;
            assert_eq!(node.answer(Asked::Rule, &there), []);
            table_id
        })
        .collect();
    assert_eq!(asked, [3, 5, 3, 5]);
}

fn write_as(node: &mut Node, zone: ZoneId, priority: u16, table_id: u8, instructions: &str) -> String {
    let mut bytes = Vec::new();
    write_instructions(&parse_instructions(instructions).unwrap(), &mut bytes).unwrap();
    node.rule(zone, priority, &Match::any(), FlowMod { table_id, instructions: &bytes, ..FlowMod::ADD })
}

#[test]
fn a_table_miss_rule_that_its_app_deletes_with_others_makes_room_for_that_of_the_kernel() {
    for (table_id, matching, expected) in
        [(3, "", true), (255, "", true), (2, "", false), (255, "arp", false)]
    {
        let mut node = with_own_table_miss(0);
        let loose = FlowMod { command: 3, table_id, ..FlowMod::ADD };
        assert_eq!(node.rule(LATER, 9, &parse_match(matching).unwrap(), loose), "sent");
        assert_eq!(look(&mut node).contains(&PUNT_FROM_3), expected, "{table_id} {matching}");
    }
    let mut node = with_own_table_miss(0);
    let by_output = FlowMod { command: 3, table_id: 3, out_port: flow::PortNo(2), ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 9, &Match::any(), by_output), "sent");
    assert_eq!(look(&mut node), [ASK_FOR_RULE], "it is not known whether it had this output");
}

#[test]
fn a_loose_delete_ends_what_a_rule_did_to_later_tables() {
    let mut node = with_listener("");
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
    assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS));
    let loose = FlowMod { command: 3, table_id: 255, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 9, &Match::any(), loose), "sent");
    assert_eq!(write(&mut node, 1, "", "drop"), "sent", "no packet gets there");
}

#[test]
fn a_modify_that_finds_no_rule_evicts_none() {
    for command in [1, 2] {
        let mut node = with_listener("");
        assert_eq!(write(&mut node, 2, "", "drop"), "sent");
        let mut bytes = Vec::new();
        write_instructions(&parse_instructions("goto_table:2").unwrap(), &mut bytes).unwrap();
        let modify = FlowMod { command, instructions: &bytes, ..FlowMod::ADD };
        assert_eq!(node.rule(LATER, 5, &Match::any(), modify), "sent");
        assert_eq!(node.evicted(), [], "{command}");
        assert_eq!(write(&mut node, 0, "", "goto_table:3"), "sent");
        assert_eq!(node.rule(LATER, 5, &Match::any(), modify), "sent");
        assert_eq!(node.evicted(), [(LATER, 5)], "{command}: now it passes packets on");
    }
}

#[test]
fn a_rule_that_no_app_wanted_all_packets_of_is_found_when_one_does() {
    let mut node = with_listener("dl_type=0x88cc");
    assert_eq!(write(&mut node, 0, "arp", "drop"), "sent", "nobody wants ARP");
    node.now_ms = 20_000;
    listen(&mut node, "arp,in_port=1");
    assert!(!node.effects.contains(&Effect::Evict));
    let mut effects = Vec::new();
    node.kernel.ask_for_owners(20_000, &mut effects);
    assert_eq!(effects, [ASK_FOR_ALL]);
    let mut arp = Vec::new();
    write_match(&parse_match("arp").unwrap(), &mut arp);
    let rule = reported_with(0, 5, LATER.stamp(0), &arp, "drop");
    assert!(node.answer(Asked::Owners, &rule).contains(&Effect::Evict));
    assert_eq!(node.evicted(), [(LATER, 5)]);
}

#[test]
fn an_app_that_subscribes_all_the_time_does_not_make_a_switch_report_all_the_time() {
    let mut node = with_listener("dl_type=0x88cc");
    assert_eq!(write(&mut node, 0, "arp", "drop"), "sent");
    let mut asked = Vec::new();
    for now_ms in (0..40_000).step_by(100) {
        node.now_ms = now_ms;
        listen(&mut node, if now_ms % 200 == 0 { "arp" } else { "arp,in_port=1" });
        let mut effects = Vec::new();
        node.kernel.ask_for_owners(now_ms, &mut effects);
        if effects.contains(&ASK_FOR_ALL) {
            asked.push(now_ms);
            node.answer(Asked::Owners, &[]);
        }
    }
    assert_eq!(asked, [10_000, 20_000, 30_000]);
}

#[test]
fn another_grant_of_packets_is_another_wish() {
    let mut node = with_listener("");
    assert_eq!(write(&mut node, 0, "arp", "drop"), "sent", "not all packets");
    let space = Bounds { flowspace: Some(vec![parse_match("arp").unwrap()]), ..Bounds::default() };
    let bounds = Bounds { priorities: 31..=65535, ..Bounds::default() };
    let narrower = Grant::nothing().with_packets_in(space).with_rules(bounds).with_rank(1);
    node.now_ms = 20_000;
    node.kernel.regrant(BEFORE, narrower, 20_000, &mut Vec::new());
    let mut effects = Vec::new();
    node.kernel.ask_for_owners(20_000, &mut effects);
    assert_eq!(effects, [ASK_FOR_ALL]);
}

#[test]
fn what_an_app_makes_the_kernel_compare_counts_as_its_own() {
    let mut node = with_listener("arp");
    for number in 0..100 {
        assert_eq!(write_as(&mut node, LATER, 4, 2, "goto_table:3"), "sent", "{number}");
        let priority = 5 + number;
        let said = node.rule(LATER, priority, &Match::any(), FlowMod { table_id: 2, ..FlowMod::ADD });
        assert_eq!(said, "sent");
    }
    node.kernel.take_compared();
    listen(&mut node, "");
    assert!(node.kernel.take_compared() >= 200, "each rule, against what it wants");
    assert_eq!(write(&mut node, 0, "arp,in_port=1", "drop"), "sent");
    assert!(node.kernel.take_compared() < 10, "no wide rule");
    let loose = FlowMod { command: 3, table_id: 1, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 9, &Match::any(), loose), "sent");
    assert!(node.kernel.take_compared() >= 100, "each rule, against the delete");
    look(&mut node);
    assert_eq!(node.kernel.take_compared(), 0, "the kernel's own work");
}

#[test]
fn the_kernels_rule_in_a_later_table_comes_back_when_one_who_may_has_taken_it_away() {
    let across = writer(2).with(Capability::RuleWriteOthers);
    let any = Match::any();
    let is_punted = |command: u8, table_id: u8, cookie_mask: u64, matching: &str| {
        let mut node = Node::with(across.clone(), writer(1));
        let events = kind::bit(kind::PACKET_IN);
        node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &[] }));
        pass_all_on(&mut node, 3);
        assert!(node.effects.contains(&PUNT_FROM_3));
        assert_eq!(look(&mut node), []);
        let taking = FlowMod { command, table_id, cookie_mask, ..FlowMod::ADD };
        assert_eq!(node.rule(LATER, 0, &parse_match(matching).unwrap(), taking), "sent");
        look(&mut node) == [PUNT_FROM_3]
    };
    for command in [1, 2, 3, 4] {
        assert!(is_punted(command, 3, 0, ""), "{command}");
        assert!(!is_punted(command, 2, 0, ""), "{command}: another table");
        assert!(!is_punted(command, 3, 1 << 41, ""), "{command}: another cookie");
        assert!(!is_punted(command, 3, 0, "arp"), "{command}: another match");
    }
    assert!(is_punted(4, 255, 0, ""));
    assert!(!is_punted(3, 255, 0, ""), "no packet gets to the table any more");
    // An add takes its place, as long as it is there.
    let mut node = Node::with(across.clone(), writer(1));
    let events = kind::bit(kind::PACKET_IN);
    node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &[] }));
    pass_all_on(&mut node, 3);
    let own = FlowMod { table_id: 3, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 0, &any, own), "sent");
    assert_eq!(look(&mut node), []);
    assert_eq!(node.rule(LATER, 0, &any, FlowMod { command: 4, ..own }), "sent");
    assert_eq!(look(&mut node), [PUNT_FROM_3]);
}

#[test]
fn the_kernels_rule_comes_back_when_the_switch_reports_its_end() {
    let mut node = with_listener("");
    assert_eq!(write(&mut node, 0, "", "goto_table:3"), "sent");
    assert!(node.effects.contains(&PUNT_FROM_3));
    let removed = FlowRemoved {
        datapath: SWITCH,
        cookie: kernel::OWN_COOKIE,
        duration_s: 0,
        duration_ns: 0,
        packet_count: 0,
        byte_count: 0,
        priority: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        reason: 2,
        table_id: 3,
        matching: &[],
    };
    let mut bytes = Vec::new();
    assert!(event::write::flow_removed(&mut bytes, 2, &removed));
    node.kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    assert_eq!(look(&mut node), [PUNT_FROM_3]);
}

#[test]
fn an_app_that_only_receives_is_protected_too() {
    let mut node = Node::with(writer(2), Grant::nothing().with(Capability::PacketIn).with_rank(1));
    listen(&mut node, "");
    assert!(write(&mut node, 0, "", "drop").starts_with(BLINDS));
    assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent", "it has no rules that this one could hide");
    assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS));
}

#[test]
fn fields_that_each_packet_has_when_it_arrives_hide_nothing() {
    let mut node = with_listener("");
    for matching in ["metadata=0", "metadata=0/0xff", "tun_id=0"] {
        assert!(write(&mut node, 0, matching, "drop").starts_with(BLINDS), "{matching}");
    }
    assert_eq!(write(&mut node, 0, "metadata=1", "drop"), "sent");
    assert_eq!(write(&mut node, 0, "metadata=0", "goto_table:1"), "sent");
    assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS));
}

/// Why a flow mod of the later app cannot be in a bundle, or nothing if it can.
fn bundle(node: &mut Node, flow_mod: FlowMod<'_>) -> String {
    let what = What::FlowMod(flow_mod);
    let mut bytes = Vec::new();
    assert!(command::write::command(
        &mut bytes,
        &Command { datapath: SWITCH, ticket: 7, wants_receipt: true, what }
    ));
    let frame = Frame::read(&bytes).unwrap();
    match node.kernel.on_bundled(LATER, &frame, 0, &mut Vec::new()) {
        Ok(_) => String::new(),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_bundle_that_failed_leaves_what_the_kernel_knows_of_rules_that_pass_all_packets_on() {
    let mut instructions = Vec::new();
    write_instructions(&parse_instructions("goto_table:2").unwrap(), &mut instructions).unwrap();
    const ADD: u8 = 0;
    const MODIFY: u8 = 1;
    const DELETE: u8 = 3;
    for (of, passes) in [(ADD, false), (MODIFY, false), (DELETE, true)] {
        let mut node = with_listener("");
        assert_eq!(write(&mut node, 0, "", "goto_table:1"), "sent");
        node.kernel.begin_bundle(SWITCH);
        let said = bundle(
            &mut node,
            FlowMod { command: of, priority: 5, instructions: &instructions, ..FlowMod::ADD },
        );
        assert_eq!(said.is_empty(), passes, "{of}: {said}");
        assert!(passes || said.contains("all packets of an app cannot be in a bundle"), "{of}: {said}");
        // The switch refuses the bundle: its rule still passes all packets on.
        node.kernel.on_bundle_over(SWITCH, &mut Vec::new());
        assert!(write(&mut node, 1, "", "drop").starts_with(BLINDS), "{of}");
    }
}
