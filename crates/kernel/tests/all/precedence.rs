//! No app shadows the rules of an app that precedes it in the operator's order, whichever rule arrives first.

use crate::ordered;

use abi::command::{self, Command, FlowMod, Subscribe, What};
use abi::event::kind;
use abi::{Frame, ZoneId};
use flow::Match;
use flow::canonical::{read_match, write_instructions, write_match};
use flow::relation::overlaps;
use flow::text::{parse_instructions, parse_match};
use kernel::{Bounds, Capability, Decision, Effect, Grant, OnOverlap};
use ordered::*;
use proptest::prelude::*;

const SHADOWS: &str = "rule.write: priority 40 would shadow a rule of app number 2 with priority 40; that app comes \
                       before this one: take a priority below 40, or change the order in [apps] order";

#[test]
fn a_later_app_stays_below_the_rules_of_one_before_it() {
    let mut node = Node::new();
    assert_eq!(node.add(BEFORE, 40, "tcp,tp_dst=23"), "sent");
    for (priority, matching) in
        [(40, "tcp,tp_dst=23"), (40, "ip,nw_dst=10.0.0.1"), (40, "in_port=1"), (40, "")]
    {
        let refused = node.add(LATER, priority, matching);
        let others_rule = refused.starts_with("rule.write.others:");
        assert!(refused == SHADOWS || others_rule, "{matching}: {refused}");
    }
    assert!(node.add(LATER, 65535, "ip").contains("would shadow"));
    assert_eq!(node.add(LATER, 39, "ip,nw_dst=10.0.0.1"), "sent");
    assert_eq!(node.add(LATER, 65535, "arp"), "sent", "no packet is both");
    assert_eq!(node.add(LATER, 65535, "tcp,tp_dst=22"), "sent");
    assert!(node.evicted().is_empty());
}

#[test]
fn who_came_first_to_the_switch_does_not_matter() {
    let mut node = Node::new();
    assert_eq!(node.add(LATER, 65535, "ip"), "sent");
    assert_eq!(node.add(LATER, 65535, "arp"), "sent");
    assert_eq!(node.add(LATER, 3, "in_port=9"), "sent");
    assert_eq!(node.add(BEFORE, 40, "tcp,tp_dst=23"), "sent");
    assert!(node.effects.contains(&Effect::Evict), "{:?}", node.effects);
    assert_eq!(node.evicted(), [(LATER, 65535)]);
    assert!(node.evicted().is_empty(), "once");
    assert!(node.add(LATER, 65535, "ip").contains("would shadow"));
}

#[test]
fn priorities_that_do_not_meet_are_not_compared() {
    let within = |priorities| Bounds { priorities, ..Bounds::default() };
    let later = Grant::nothing().with_rules(within(1..=100)).with_rank(2);
    let before = Grant::nothing().with_rules(within(101..=200)).with_rank(1);
    let mut node = Node::with(later.clone(), before.clone());
    assert_eq!(node.add(BEFORE, 101, "ip"), "sent");
    assert_eq!(node.add(LATER, 100, "ip,nw_dst=10.0.0.1"), "sent");
    assert_eq!(node.add(BEFORE, 150, ""), "sent");
    assert!(node.evicted().is_empty());
    assert_eq!(node.kernel.take_compared(), 0);
    let mut swapped = Node::with(later.with_rank(1), before.with_rank(2));
    assert_eq!(swapped.add(LATER, 100, "ip,nw_dst=10.0.0.1"), "sent");
    assert!(
        swapped.add(BEFORE, 101, "ip").contains("would shadow"),
        "its band is above, and its place is behind"
    );
}

#[test]
fn a_rule_whose_priority_decides_against_nobody_is_not_compared() {
    let within = |priorities| Bounds { priorities, ..Bounds::default() };
    let later = Grant::nothing().with_rules(within(0..=65535)).with_rank(2);
    let before = Grant::nothing().with_rules(within(100..=200)).with_rank(1);
    let mut node = Node::with(later, before);
    assert_eq!(node.add(BEFORE, 100, "ip"), "sent");
    node.kernel.take_compared();
    assert_eq!(node.add(LATER, 99, "tcp"), "sent");
    assert_eq!(node.kernel.take_compared(), 0, "below all that the earlier app may have");
    assert!(node.add(LATER, 100, "tcp").contains("would shadow"));
    assert_eq!(node.kernel.take_compared(), 1);
}

#[test]
fn rules_from_the_time_of_a_wider_grant_stay_protected() {
    let within = |priorities| Bounds { priorities, ..Bounds::default() };
    let wide = Grant::nothing().with_rules(within(1..=200)).with_rank(1);
    let mut node = Node::with(writer(2), wide);
    assert_eq!(node.add(BEFORE, 10, "ip"), "sent");
    let narrow = Grant::nothing().with_rules(within(100..=200)).with_rank(1);
    node.kernel.regrant(BEFORE, narrow, 0, &mut Vec::new());
    assert!(node.add(LATER, 20, "tcp").contains("would shadow"));
}

#[test]
fn at_the_bound_the_kernel_searches_for_rules_that_are_gone_once_a_second() {
    let mut node = Node::new();
    let no_sizes = kernel::Unanswered::Refused;
    node.kernel.on_no_answer(SWITCH, kernel::Asked::TableSizes, no_sizes, 0);
    let address = |number: u32| {
        let mut matching = parse_match("ip,nw_dst=10.0.0.1").unwrap();
        matching.set(flow::Field::Ipv4Dst, number.into());
        matching
    };
    // Each table has fewer entries than the bound.
    let in_table = |number: u32| FlowMod { table_id: (number / 60_000) as u8, ..FlowMod::ADD };
    let first_refused =
        (0..).find(|number| node.rule(LATER, 9, &address(*number), in_table(*number)) != "sent");
    let all = kernel::COMPARED_MAX as u32;
    // One app leaves an eighth free for others.
    let bound = all / 8 * 7;
    assert_eq!(first_refused, Some(bound));
    let searches = |node: &mut Node| {
        node.kernel.take_compared();
        for number in bound..bound + 100 {
            assert!(
                node.rule(LATER, 9, &address(number), in_table(number))
                    .contains("it has no room for this one")
            );
        }
        node.kernel.take_compared() / u64::from(all)
    };
    assert_eq!(searches(&mut node), 0, "the first refusal had searched");
    node.now_ms = 1_000;
    assert_eq!(searches(&mut node), 1);
    let gone = FlowMod { command: 4, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 9, &address(3), gone), "sent");
    node.now_ms = 2_000;
    assert_eq!(node.rule(LATER, 9, &address(bound), in_table(bound)), "sent", "one is gone");
    assert_eq!(
        node.rule(BEFORE, 5, &parse_match("arp").unwrap(), in_table(0)),
        "sent",
        "there is room for others"
    );
    // What the switch reports now is not kept, until many of the others are gone.
    let mut matching = Vec::new();
    write_match(&parse_match("tcp").unwrap(), &mut matching);
    let report = reported_with(0, 40, LATER.stamp(0), &matching, "drop");
    let another_grant = |node: &mut Node, rank| {
        node.kernel.regrant(LATER, writer(rank), node.now_ms, &mut Vec::new());
        node.kernel.ask_for_owners(node.now_ms, &mut Vec::new());
        node.answer(kernel::Asked::Owners, &report)
    };
    another_grant(&mut node, 3);
    let is_asked_later = |node: &mut Node| {
        node.now_ms += 10_000;
        let mut effects = Vec::new();
        node.kernel.check_meters(node.now_ms, &mut effects);
        node.kernel.ask_for_owners(node.now_ms, &mut effects);
        effects.contains(&Effect::Ask { datapath: SWITCH, asked: kernel::Asked::Owners })
    };
    assert!(!is_asked_later(&mut node));
    assert!((4..20_000).all(|number| node.rule(LATER, 9, &address(number), gone) == "sent"));
    assert!(is_asked_later(&mut node));
    node.answer(kernel::Asked::Owners, &report);
    assert!(!is_asked_later(&mut node), "all are kept");
    assert_eq!(node.add(BEFORE, 30, "tcp,tp_dst=22"), "sent");
    assert_eq!(node.evicted(), [(LATER, 40)]);
}

#[test]
fn tables_and_switches_that_do_not_meet_are_not_compared() {
    let tables = |table: u8| Bounds { tables: Some([table].into_iter().collect()), ..Bounds::default() };
    let grant = |table, rank| Grant::nothing().with_rules(tables(table)).with_rank(rank);
    let mut node = Node::with(grant(1, 2), grant(0, 1));
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    let in_table_1 = FlowMod { table_id: 1, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 65535, &parse_match("ip").unwrap(), in_table_1), "sent");
    let mut node = Node::new();
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    assert_eq!(node.rule(LATER, 65535, &parse_match("ip").unwrap(), in_table_1), "sent");
}

#[test]
fn a_rule_that_is_gone_is_in_nobodys_way() {
    let mut node = Node::new();
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    let strict = FlowMod { command: 4, ..FlowMod::ADD };
    assert_eq!(node.rule(BEFORE, 40, &parse_match("ip").unwrap(), strict), "sent");
    assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
}

#[test]
fn what_was_not_sent_is_in_nobodys_way() {
    let mut node = Node::new();
    let mut bytes = Vec::new();
    let what = What::FlowMod(FlowMod { priority: 40, ..FlowMod::ADD });
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    node.kernel.on_command(BEFORE, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
    assert_eq!(node.add(LATER, 65535, "ip"), "sent");
}

#[test]
fn nobody_gives_way_to_what_was_not_sent() {
    let mut node = Node::new();
    assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
    let mut bytes = Vec::new();
    let what = What::FlowMod(FlowMod { priority: 40, ..FlowMod::ADD });
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    let mut decide = || {
        let decision = node.kernel.on_command(BEFORE, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        assert!(matches!(decision, Decision::Send(_)), "{decision:?}");
    };
    decide();
    decide();
    assert!(node.evicted().is_empty(), "southbound had no way to say it");
    assert_eq!(node.add(BEFORE, 40, ""), "sent");
    assert_eq!(node.evicted(), [(LATER, 65535)]);
}

#[test]
fn a_modify_of_an_earlier_app_that_finds_no_rule_evicts_none() {
    for command in [1, 2] {
        let mut node = Node::new();
        assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
        let modify = FlowMod { command, ..FlowMod::ADD };
        assert_eq!(node.rule(BEFORE, 40, &parse_match("ip").unwrap(), modify), "sent");
        assert!(node.evicted().is_empty(), "{command}");
    }
}

#[test]
fn an_app_that_changes_its_place_among_others_is_compared_again() {
    let mut node = Node::new();
    let third = ZoneId(3);
    for (zone, rank) in [(third, 3), (ZoneId(4), 4)] {
        node.kernel.attach(zone, "app", writer(rank), 0);
    }
    node.kernel.ask_for_owners(0, &mut Vec::new());
    node.answer(kernel::Asked::Owners, &[]);
    // From the second place to the third: each app still has some before it and some behind it.
    let mut effects = Vec::new();
    node.kernel.regrant(LATER, writer(3), 0, &mut Vec::new());
    node.kernel.regrant(third, writer(2), 0, &mut Vec::new());
    node.kernel.ask_for_owners(0, &mut effects);
    assert!(effects.contains(&Effect::Ask { datapath: SWITCH, asked: kernel::Asked::Owners }));
}

#[test]
fn whoever_may_change_the_rules_of_others_stands_outside_of_the_order() {
    let across = writer(2).with(Capability::RuleWriteOthers);
    let mut node = Node::with(across, writer(1));
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
    assert_eq!(node.add(BEFORE, 41, "ip"), "sent");
    assert!(node.evicted().is_empty());
}

#[test]
fn where_the_operator_only_wants_to_know_all_passes() {
    let mut node = Node::new();
    node.kernel.on_overlap(OnOverlap::Report);
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
    let told = Effect::Shadowed { zone: LATER, of: BEFORE, datapath: SWITCH, its: 40, priority: 65535 };
    assert!(node.effects.contains(&told), "{:?}", node.effects);
    assert_eq!(node.add(BEFORE, 41, "tcp"), "sent");
    assert!(node.evicted().is_empty());
}

#[test]
fn a_later_app_does_not_take_all_packets_that_one_before_it_hears() {
    let mut node = Node::new();
    let hear = |packets: &str| {
        let mut bytes = Vec::new();
        write_match(&parse_match(packets).unwrap(), &mut bytes);
        bytes
    };
    let events = kind::bit(kind::PACKET_IN);
    assert!(node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &[] })).contains("Subscribed"));
    let blinds = "rule.write: it would take every packet that app number 2 receives";
    assert!(node.add(LATER, 1, "").starts_with(blinds));
    assert_eq!(node.add(LATER, 1, "arp"), "sent");
    assert_eq!(node.add(BEFORE, 2, ""), "sent", "its own it may");
    let mut node = Node::new();
    let arp = hear("arp");
    node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &arp }));
    assert!(node.add(LATER, 1, "arp").starts_with(blinds));
    assert!(node.add(LATER, 1, "").starts_with(blinds));
    assert_eq!(node.add(LATER, 1, "arp,in_port=1"), "sent");
    assert_eq!(node.add(LATER, 1, "ip"), "sent");
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    assert_eq!(node.add(BEFORE, 2, ""), "sent", "the one before is not bound by the one behind");
}

#[test]
fn a_rule_that_passes_packets_on_takes_none_of_an_app_whose_priorities_are_above_it() {
    let from = |lowest: u16| Bounds { priorities: lowest..=65535, ..Bounds::default() };
    let hears =
        |lowest: u16| Grant::nothing().with(Capability::PacketIn).with_rules(from(lowest)).with_rank(1);
    let check = |lowest: u16, instructions: &str, expected: &str| {
        let mut node = Node::with(writer(2), hears(lowest));
        let events = kind::bit(kind::PACKET_IN);
        node.command(BEFORE, What::Subscribe(Subscribe { events, packets: &[] }));
        let mut bytes = Vec::new();
        write_instructions(&parse_instructions(instructions).unwrap(), &mut bytes).unwrap();
        let rest = FlowMod { instructions: &bytes, ..FlowMod::ADD };
        let said = node.rule(LATER, 30, &Match::any(), rest);
        assert!(said.starts_with(expected), "{lowest} {instructions}: {said}");
    };
    let blinds = "rule.write: it would take every packet";
    check(31, "output:1", blinds);
    check(30, "goto_table:1", blinds);
    check(31, "goto_table:1", "sent");
    check(31, "output:1,goto_table:1", "sent");
}

#[test]
fn where_all_packets_are_passed_on_the_next_table_gets_the_table_miss_rule_too() {
    let check = |hears: bool, matching: &str, instructions: &str, expected: bool| {
        let mut node = Node::with(writer(2), writer(1));
        let events = if hears { kind::bit(kind::PACKET_IN) } else { 0 };
        node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
        let mut bytes = Vec::new();
        write_instructions(&parse_instructions(instructions).unwrap(), &mut bytes).unwrap();
        let rest = FlowMod { instructions: &bytes, ..FlowMod::ADD };
        node.rule(BEFORE, 30, &parse_match(matching).unwrap(), rest);
        let punt = Effect::PuntFrom { datapath: SWITCH, table_id: 3 };
        assert_eq!(node.effects.contains(&punt), expected, "{hears} {matching} {instructions}");
    };
    check(true, "", "goto_table:3", true);
    check(true, "", "output:1,goto_table:3", true);
    check(true, "ip", "goto_table:3", false);
    check(true, "", "output:1", false);
    check(false, "", "goto_table:3", false);
}

#[test]
fn the_table_miss_rule_is_only_for_later_tables_that_the_switch_has() {
    for table_id in [0, 8, 255] {
        let mut node = Node::new();
        let events = kind::bit(kind::PACKET_IN);
        node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
        pass_all_on(&mut node, table_id);
        let punt = Effect::PuntFrom { datapath: SWITCH, table_id };
        assert!(!node.effects.contains(&punt), "{table_id}");
    }
}

#[test]
fn an_app_that_wants_packets_later_also_gets_those_of_later_tables() {
    let mut node = Node::new();
    pass_all_on(&mut node, 3);
    let punt = Effect::PuntFrom { datapath: SWITCH, table_id: 3 };
    assert!(!node.effects.contains(&punt));
    let events = kind::bit(kind::PACKET_IN);
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    assert!(node.effects.contains(&punt));
}

#[test]
fn an_app_keeps_its_own_table_miss_rule_in_a_later_table() {
    let mut node = Node::new();
    let events = kind::bit(kind::PACKET_IN);
    node.command(LATER, What::Subscribe(Subscribe { events, packets: &[] }));
    let own = FlowMod { table_id: 3, ..FlowMod::ADD };
    assert_eq!(node.rule(LATER, 0, &Match::any(), own), "sent");
    pass_all_on(&mut node, 3);
    let punt = Effect::PuntFrom { datapath: SWITCH, table_id: 3 };
    assert!(!node.effects.contains(&punt));
}

#[test]
fn another_grant_while_an_app_runs_is_another_place_in_the_order() {
    let mut node = Node::new();
    assert_eq!(node.add(BEFORE, 40, "ip"), "sent");
    node.kernel.regrant(LATER, writer(0), 0, &mut Vec::new());
    assert_eq!(node.add(LATER, 65535, "tcp"), "sent");
    assert!(node.add(BEFORE, 65535, "tcp,tp_dst=80").contains("would shadow"));
    let below = Bounds { priorities: 1..=39, ..Bounds::default() };
    node.kernel.regrant(LATER, Grant::nothing().with_rules(below).with_rank(2), 0, &mut Vec::new());
    assert!(node.add(LATER, 65535, "tcp").contains("above the granted 39"));
}

fn few_matches() -> impl Strategy<Value = Match> {
    let texts = [
        "",
        "in_port=1",
        "in_port=2",
        "ip",
        "arp",
        "ip,nw_dst=10.0.0.0/8",
        "ip,nw_dst=10.0.0.1",
        "tcp",
        "in_port=1,tcp",
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| parse_match(text).unwrap())
}

/// A rule in a brute-force switch: owner, priority, match.
type Held = (ZoneId, u16, Match);

fn shadowing(table: &[Held]) -> Option<(&Held, &Held)> {
    let pairs = table.iter().flat_map(|one| table.iter().map(move |other| (one, other)));
    let mut bad = pairs.filter(|(one, other)| {
        one.0 == BEFORE && other.0 == LATER && other.1 >= one.1 && overlaps(&one.2, &other.2)
    });
    bad.next()
}

proptest! {
    #[test]
    fn after_any_commands_no_rule_shadows_one_of_an_app_before(
        bands in prop::array::uniform4(1u16..5),
        commands in prop::collection::vec((any::<bool>(), 1u16..5, few_matches(), 0..6_u8), 1..40)
    ) {
        let band = |rank: u16, one: u16, other: u16| {
            let priorities = one.min(other)..=one.max(other);
            Grant::nothing().with_rules(Bounds { priorities, ..Bounds::default() }).with_rank(rank)
        };
        let mut node = Node::with(band(2, bands[0], bands[1]), band(1, bands[2], bands[3]));
        let mut table: Vec<Held> = Vec::new();
        for (is_before, priority, matching, which) in commands {
            let zone = if is_before { BEFORE } else { LATER };
            // Adds, strict deletes, and modifies, which change no match.
            let command = [0, 0, 4, 4, 1, 2][usize::from(which)];
            let said = node.rule(zone, priority, &matching, FlowMod { command, ..FlowMod::ADD });
            let is_it = |held: &Held| held.1 == priority && held.2 == matching;
            if said == "sent" {
                if command == 4 {
                    table.retain(|held| !(is_it(held) && held.0 == zone));
                } else if command == 0 {
                    table.retain(|held| !is_it(held));
                    table.push((zone, priority, matching.clone()));
                }
            } else {
                let is_usual = said.contains("belongs to app number") || said.contains("the granted");
                prop_assert!(!is_before || is_usual, "{}", said);
            }
            for eviction in node.kernel.take_evictions() {
                let rule = read_match(&eviction.matching).unwrap();
                prop_assert_eq!(eviction.owner, LATER);
                let shadows = |held: &Held| {
                    held.0 == BEFORE && eviction.priority >= held.1 && overlaps(&rule, &held.2)
                };
                prop_assert!(table.iter().any(shadows), "{:?}", eviction);
                table.retain(|held| !(held.0 == LATER && held.1 == eviction.priority && held.2 == rule));
            }
            let bad = shadowing(&table);
            prop_assert!(bad.is_none(), "{:?}", bad);
        }
    }
}
