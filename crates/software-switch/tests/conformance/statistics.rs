//! Statistics of the switch, its rules and its tables (1.3.5, 7.3.5; 1.0, 5.3.5).

use super::dsl::*;
use crate::has;
use flow::{Field, Match, PortNo};
use openflow::message::*;

fn in_both(case: impl Fn(Bench)) {
    for versions in [V10, V13] {
        case(Bench::new(versions));
    }
}

/// Three rules: output to 2 with cookie 0x11, output to 3 with cookie 0x21, drop with cookie 0x22.
fn with_rules(versions: software_switch::Versions) -> Bench {
    let mut bench = Bench::new(versions);
    bench.add(&[
        rule(3).on(Field::InPort, PortNo(1)).cookie(0x11).output("2"),
        rule(2).on(Field::EthType, 0x800u16).cookie(0x21).output("3"),
        rule(1).cookie(0x22),
    ]);
    bench
}

fn cookies(bench: &mut Bench, wanted: FlowStatsRequest) -> Vec<u64> {
    bench.flows(wanted).iter().map(|flow| flow.cookie).collect()
}

fn sum(bench: &mut Bench, wanted: FlowStatsRequest) -> (u64, u64, u32) {
    match bench.ask(RequestBody::Aggregate(wanted)) {
        ReplyBody::Aggregate(sum) => (sum.packet_count, sum.byte_count, sum.flow_count),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_switch_says_who_made_it_and_what_it_is_called() {
    if !has(Part::Names) {
        return;
    }
    in_both(|mut bench| {
        let ReplyBody::Desc(desc) = bench.ask(RequestBody::Desc) else { panic!() };
        assert_eq!((desc.mfr_desc.as_str(), desc.dp_desc.as_str()), ("Burnet", "s7"));
    });
}

#[test]
fn without_rules_there_is_one_empty_answer() {
    in_both(|mut bench| {
        assert_eq!(bench.flows(every_rule()), []);
        assert_eq!(sum(&mut bench, every_rule()), (0, 0, 0));
    });
}

#[test]
fn all_rules_are_told_the_highest_priority_first() {
    for versions in [V10, V13] {
        assert_eq!(cookies(&mut with_rules(versions), every_rule()), [0x11, 0x21, 0x22]);
    }
}

#[test]
fn a_match_asks_for_what_lies_within_it() {
    for versions in [V10, V13] {
        let mut bench = with_rules(versions);
        let ip = Match::any().with(Field::EthType, 0x800u16);
        assert_eq!(cookies(&mut bench, FlowStatsRequest { matching: ip, ..every_rule() }), [0x21]);
    }
}

#[test]
fn an_out_port_asks_for_what_sends_there() {
    for versions in [V10, V13] {
        let mut bench = with_rules(versions);
        let wanted = FlowStatsRequest { out_port: PortNo(3), ..every_rule() };
        assert_eq!(cookies(&mut bench, wanted.clone()), [0x21]);
        assert_eq!(sum(&mut bench, wanted).2, 1);
    }
}

#[test]
fn a_cookie_asks_for_what_agrees_in_the_masks_bits() {
    let mut bench = with_rules(V13);
    let wanted = |cookie, cookie_mask| FlowStatsRequest { cookie, cookie_mask, ..every_rule() };
    assert_eq!(cookies(&mut bench, wanted(0x20, 0xf0)), [0x21, 0x22]);
    assert_eq!(cookies(&mut bench, wanted(0x01, 0x0f)), [0x11, 0x21]);
    assert_eq!(cookies(&mut bench, wanted(0x99, u64::MAX)), [] as [u64; 0]);
    assert_eq!(sum(&mut bench, wanted(0x20, 0xf0)).2, 2);
}

#[test]
fn a_group_asks_for_what_hands_to_it() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = with_rules(V13);
    let group = GroupMod { command: 0, group_type: 0, group_id: 5, buckets: vec![] };
    bench.say(openflow::Body::GroupMod(group));
    bench.add(&[rule(9).cookie(9).write(&[flow::Action::Group(5)])]);
    assert_eq!(cookies(&mut bench, FlowStatsRequest { out_group: 5, ..every_rule() }), [9]);
}

#[test]
fn one_table_or_all_of_them_are_asked() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).cookie(1), rule(1).table(2).cookie(2)]);
    assert_eq!(cookies(&mut bench, FlowStatsRequest { table_id: 2, ..every_rule() }), [2]);
    assert_eq!(cookies(&mut bench, every_rule()), [1, 2]);
}

#[test]
fn a_table_that_is_not_there_is_refused() {
    for body in [
        RequestBody::Flow(FlowStatsRequest { table_id: 16, ..every_rule() }),
        RequestBody::Aggregate(FlowStatsRequest { table_id: 16, ..every_rule() }),
    ] {
        assert_eq!(Bench::new(V13).refusal(multipart(body)), Some((1, 9)));
    }
}

#[test]
fn the_emergency_table_of_1_0_is_empty() {
    let mut bench = with_rules(V10);
    assert_eq!(bench.flows(FlowStatsRequest { table_id: 0xfe, ..every_rule() }), []);
}

#[test]
fn a_rule_tells_its_age_and_what_it_counted() {
    in_both(|mut bench| {
        bench.add(&[rule(4).timeouts(100, 200).output("2")]);
        bench.arrive(1, &ping());
        bench.pass(12);
        let flow = &bench.flows(every_rule())[0];
        assert_eq!((flow.priority, flow.packet_count, flow.byte_count, flow.duration_s), (4, 1, 98, 12));
        assert_eq!((flow.idle_timeout_s, flow.hard_timeout_s), (100, 200));
    });
}

#[test]
fn asking_is_not_using() {
    in_both(|mut bench| {
        bench.add(&[rule(4).timeouts(5, 0)]);
        for _ in 0..5 {
            bench.pass(1);
            bench.flows(every_rule());
        }
        assert_eq!(bench.switch.flow_count(), 0);
    });
}

#[test]
fn the_sum_is_over_the_rules_that_are_meant() {
    for versions in [V10, V13] {
        let mut bench = with_rules(versions);
        bench.arrive(1, &ping());
        bench.arrive(3, &ping());
        bench.arrive(3, &tcp(1, 2));
        let bytes = (2 * ping().len() + tcp(1, 2).len()) as u64;
        assert_eq!(sum(&mut bench, every_rule()), (3, bytes, 3));
        let wanted = FlowStatsRequest { out_port: PortNo(2), ..every_rule() };
        assert_eq!(sum(&mut bench, wanted), (1, 98, 1));
    }
}

#[test]
fn tables_count_what_they_hold_are_asked_and_know() {
    if !has(Part::Lookups) {
        return;
    }
    in_both(|mut bench| {
        bench.add(&[rule(1).on(Field::InPort, PortNo(1)).output("2")]);
        bench.arrive(1, &ping());
        bench.arrive(3, &ping());
        let ReplyBody::Table(tables) = bench.ask(RequestBody::Table) else { panic!() };
        assert_eq!((tables[0].active_count, tables[0].lookup_count, tables[0].matched_count), (1, 2, 1));
    });
}

#[test]
fn a_later_table_is_asked_only_when_a_packet_comes_to_it() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).on(Field::InPort, PortNo(1)).goto(1), rule(0)]);
    bench.arrive(1, &ping());
    bench.arrive(2, &ping());
    let ReplyBody::Table(tables) = bench.ask(RequestBody::Table) else { panic!() };
    let counts: Vec<(u64, u64)> =
        tables[..3].iter().map(|table| (table.lookup_count, table.matched_count)).collect();
    assert_eq!(counts, [(2, 2), (1, 0), (0, 0)]);
}

#[test]
fn the_table_of_1_0_tells_its_name_its_size_and_what_may_be_left_open() {
    if !has(Part::Names) {
        return;
    }
    let ReplyBody::Table(tables) = Bench::new(V10).ask(RequestBody::Table) else { panic!() };
    let table = &tables[0];
    assert_eq!((tables.len(), table.name.as_str(), table.max_entries), (1, "table0", 65_536));
    assert_eq!(table.wildcards, (1 << 22) - 1);
}

#[test]
fn more_than_a_message_holds_comes_in_parts() {
    in_both(|mut bench| {
        for number in 0..1500u64 {
            bench.add(&[rule(1).on(Field::EthDst, flow::MacAddr::from_u64(number)).output("2")]);
        }
        let answers = bench.say(multipart(RequestBody::Flow(every_rule())));
        let parts: Vec<(u16, usize)> = answers
            .iter()
            .map(|body| match body {
                openflow::Body::MultipartReply(MultipartReply { flags, body: ReplyBody::Flow(flows) }) => {
                    (*flags, flows.len())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let (last, before) = parts.split_last().unwrap();
        assert!(!before.is_empty() && before.iter().all(|(flags, _)| *flags == MULTIPART_MORE));
        assert_eq!((last.0, parts.iter().map(|(_, count)| count).sum::<usize>()), (0, 1500));
    });
}
