//! Adding, modifying and deleting rules (1.3.5, 6.4, 7.3.4.1; 1.0, 4.6, 5.3.3).

use super::dsl::*;
use crate::has;
use flow::{Action, Field, Instruction, PortNo};
use openflow::Body;
use openflow::message::*;

const NO_PACKET_COUNTS: u16 = 8;
const NO_BYTE_COUNTS: u16 = 16;

fn in_both(case: impl Fn(Bench)) {
    for versions in [V10, V13] {
        case(Bench::new(versions));
    }
}

fn told(rule: Rule) -> Rule {
    rule.flags(FLOW_MOD_SEND_FLOW_REMOVED)
}

fn cookies(bench: &mut Bench) -> Vec<u64> {
    bench.flows(every_rule()).iter().map(|flow| flow.cookie).collect()
}

#[test]
fn a_rule_that_is_added_is_not_answered() {
    in_both(|mut bench| assert_eq!(bench.say(rule(1).output("2").body()), []));
}

#[test]
fn the_same_match_at_another_priority_is_another_rule() {
    in_both(|mut bench| {
        bench.add(&[rule(1).output("2"), rule(2).output("3")]);
        assert_eq!(bench.switch.flow_count(), 2);
    });
}

#[test]
fn the_same_rule_again_has_the_new_cookie_flags_and_timeouts() {
    in_both(|mut bench| {
        bench.add(&[
            told(rule(1).cookie(1).timeouts(10, 20)).output("2"),
            rule(1).cookie(2).timeouts(3, 4).output("3"),
        ]);
        let flows = bench.flows(every_rule());
        let flow = &flows[0];
        assert_eq!((flows.len(), flow.cookie, flow.idle_timeout_s, flow.hard_timeout_s), (1, 2, 3, 4));
        assert_eq!(bench.pass(4), [], "the new one does not say when it goes");
    });
}

#[test]
fn a_rule_put_in_anothers_place_says_nothing_of_the_other() {
    in_both(|mut bench| {
        bench.add(&[told(rule(1)).output("2")]);
        assert_eq!(bench.say(told(rule(1)).output("3").body()), []);
    });
}

#[test]
fn a_rule_put_in_anothers_place_begins_its_life_anew() {
    in_both(|mut bench| {
        bench.add(&[rule(1).timeouts(0, 10)]);
        bench.pass(6);
        bench.add(&[rule(1).timeouts(0, 10)]);
        bench.pass(6);
        assert_eq!(bench.switch.flow_count(), 1);
        assert_eq!(bench.flows(every_rule())[0].duration_s, 6);
    });
}

#[test]
fn reset_counts_begins_to_count_anew() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("2")]);
    bench.arrive(1, &ping());
    bench.add(&[rule(1).output("2").flags(FLOW_MOD_RESET_COUNTS)]);
    assert_eq!(bench.flows(every_rule())[0].packet_count, 0);
}

#[test]
fn flags_are_kept_and_told() {
    let mut bench = Bench::new(V13);
    let flags = FLOW_MOD_SEND_FLOW_REMOVED | NO_PACKET_COUNTS | NO_BYTE_COUNTS;
    bench.add(&[rule(1).flags(flags)]);
    assert_eq!(bench.flows(every_rule())[0].flags, flags);
}

#[test]
fn an_overlap_is_looked_for_only_if_asked_and_only_in_one_priority_and_table() {
    let checked = |rule: Rule| rule.flags(FLOW_MOD_CHECK_OVERLAP);
    for (versions, refusal) in [(V10, (3, 1)), (V13, (5, 3))] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(5).on(Field::InPort, PortNo(1))]);
        bench.add(&[rule(5).on(Field::EthSrc, H1), checked(rule(6)), checked(rule(4))]);
        assert_eq!(bench.refusal(checked(rule(5)).body()), Some(refusal));
        assert_eq!(bench.refusal(checked(rule(5).on(Field::EthDst, H2)).body()), Some(refusal));
    }
    if has(Part::Tables) {
        Bench::new(V13).add(&[rule(5), checked(rule(5).table(1))]);
    }
}

#[test]
fn an_overlap_that_is_refused_changes_nothing() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(5).output("2")]);
    bench.refusal(rule(5).output("3").flags(FLOW_MOD_CHECK_OVERLAP).body());
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn a_modify_changes_what_is_done_and_nothing_else() {
    let mut bench = Bench::new(V13);
    bench.add(&[told(rule(5).cookie(7).timeouts(10, 20)).output("2")]);
    bench.arrive(1, &ping());
    bench.add(&[rule(9).cookie(8).timeouts(1, 1).output("3").command(FLOW_MODIFY)]);
    let flow = &bench.flows(every_rule())[0];
    assert_eq!((flow.priority, flow.cookie, flow.flags), (5, 7, FLOW_MOD_SEND_FLOW_REMOVED));
    assert_eq!((flow.idle_timeout_s, flow.hard_timeout_s, flow.packet_count), (10, 20, 1));
    assert_eq!(bench.arrive(1, &ping()).0, "3");
}

#[test]
fn a_modify_of_nothing_adds_in_1_0_and_does_nothing_in_1_3() {
    for (versions, count) in [(V10, 1), (V13, 0)] {
        for command in [FLOW_MODIFY, FLOW_MODIFY_STRICT] {
            let mut bench = Bench::new(versions);
            bench.add(&[rule(1).output("2").command(command)]);
            assert_eq!(bench.switch.flow_count(), count, "{versions:?}");
        }
    }
}

#[test]
fn a_strict_modify_reaches_only_its_own_match_and_priority() {
    in_both(|mut bench| {
        bench.add(&[
            rule(5).on(Field::InPort, PortNo(1)).output("2"),
            rule(4).on(Field::InPort, PortNo(1)).output("2"),
            rule(5).on(Field::InPort, PortNo(3)).output("2"),
        ]);
        bench.add(&[rule(5).on(Field::InPort, PortNo(1)).output("4").command(FLOW_MODIFY_STRICT)]);
        assert_eq!(bench.arrive(1, &ping()).0, "4");
        assert_eq!(bench.arrive(3, &ping()).0, "2");
        bench.add(&[rule(5).on(Field::InPort, PortNo(1)).command(FLOW_DELETE_STRICT)]);
        assert_eq!(bench.arrive(1, &ping()).0, "2", "that of priority 4 was left");
    });
}

#[test]
fn a_modify_can_be_narrowed_by_cookie_but_not_by_port() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(5).on(Field::InPort, PortNo(1)).cookie(0x11).output("2")]);
    bench.add(&[rule(5).on(Field::InPort, PortNo(3)).cookie(0x22).output("2")]);
    let mut modify = rule(5).cookie(0x10).output("4").command(FLOW_MODIFY);
    (modify.0.cookie_mask, modify.0.out_port) = (0xf0, PortNo(3));
    bench.add(&[modify]);
    assert_eq!((bench.arrive(1, &ping()).0, bench.arrive(3, &ping()).0), ("4".into(), "2".into()));
}

#[test]
fn a_delete_of_nothing_is_no_error() {
    in_both(|mut bench| {
        for command in [FLOW_DELETE, FLOW_DELETE_STRICT] {
            assert_eq!(bench.say(rule(1).command(command).body()), []);
        }
    });
}

#[test]
fn a_delete_takes_every_priority_and_a_strict_one_its_own() {
    in_both(|mut bench| {
        bench.add(&[rule(1).cookie(1), rule(2).cookie(2), rule(3).cookie(3)]);
        bench.add(&[rule(2).command(FLOW_DELETE_STRICT)]);
        assert_eq!(cookies(&mut bench), [3, 1]);
        bench.add(&[rule(9).command(FLOW_DELETE)]);
        assert_eq!(bench.switch.flow_count(), 0);
    });
}

#[test]
fn a_delete_can_be_narrowed_by_port() {
    in_both(|mut bench| {
        bench.add(&[rule(1).cookie(1).output("2"), rule(2).cookie(2).output("3"), rule(3).cookie(3)]);
        let mut delete = rule(0).command(FLOW_DELETE);
        delete.0.out_port = PortNo(3);
        bench.add(&[delete]);
        assert_eq!(cookies(&mut bench), [3, 1]);
    });
}

#[test]
fn a_delete_can_be_narrowed_by_group() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(Body::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 1, buckets: vec![] }));
    bench.add(&[rule(1).cookie(1).apply(&[Action::Group(1)]), rule(2).cookie(2).output("2")]);
    let mut delete = rule(0).command(FLOW_DELETE);
    delete.0.out_group = 1;
    bench.add(&[delete]);
    assert_eq!(cookies(&mut bench), [2]);
}

#[test]
fn a_delete_means_one_table_or_all() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).cookie(1), rule(1).table(3).cookie(3), rule(1).table(5).cookie(5)]);
    bench.add(&[rule(0).table(3).command(FLOW_DELETE)]);
    assert_eq!(cookies(&mut bench), [1, 5]);
    bench.add(&[rule(0).table(TABLE_ALL).command(FLOW_DELETE)]);
    assert_eq!(bench.switch.flow_count(), 0);
}

#[test]
fn a_narrower_match_is_no_reason_to_go() {
    in_both(|mut bench| {
        bench.add(&[rule(1).on(Field::EthType, 0x800u16)]);
        let narrower = rule(1).on(Field::EthType, 0x800u16).on(Field::IpProto, 6u8);
        bench.add(&[narrower.command(FLOW_DELETE)]);
        assert_eq!(bench.switch.flow_count(), 1);
    });
}

#[test]
fn what_goes_is_told_with_its_life_and_its_counts() {
    in_both(|mut bench| {
        bench.add(&[told(rule(5).on(Field::InPort, PortNo(1)).cookie(0xc0).timeouts(30, 0)).output("2")]);
        bench.arrive(1, &ping());
        bench.pass(7);
        let said = bench.say(rule(0).command(FLOW_DELETE).body());
        let [Body::FlowRemoved(gone)] = &said[..] else { panic!("{said:?}") };
        assert_eq!((gone.cookie, gone.priority, gone.reason, gone.duration_s), (0xc0, 5, 2, 7));
        assert_eq!((gone.packet_count, gone.byte_count, gone.idle_timeout_s), (1, 98, 30));
        assert_eq!(gone.matching.get(Field::InPort).map(|(port, _)| port), Some(1));
    });
}

#[test]
fn what_did_not_ask_goes_in_silence() {
    in_both(|mut bench| {
        bench.add(&[rule(5).timeouts(0, 5)]);
        assert_eq!(bench.pass(5), []);
        bench.add(&[rule(5)]);
        assert_eq!(bench.say(rule(0).command(FLOW_DELETE).body()), []);
    });
}

#[test]
fn an_idle_rule_goes_at_its_second_and_not_before() {
    in_both(|mut bench| {
        bench.add(&[told(rule(5).timeouts(3, 0))]);
        assert_eq!(bench.pass(2), []);
        assert!(matches!(&bench.pass(1)[..], [Body::FlowRemoved(gone)] if gone.reason == 0));
    });
}

#[test]
fn a_hard_timeout_comes_however_much_the_rule_is_used() {
    in_both(|mut bench| {
        bench.add(&[told(rule(5).timeouts(2, 4)).output("2")]);
        for _ in 0..3 {
            assert_eq!(bench.pass(1), []);
            bench.arrive(1, &ping());
        }
        assert!(matches!(&bench.pass(1)[..], [Body::FlowRemoved(gone)] if gone.reason == 1));
    });
}

#[test]
fn a_rule_without_timeouts_stays() {
    in_both(|mut bench| {
        bench.add(&[rule(5)]);
        bench.pass(1_000_000);
        assert_eq!(bench.switch.flow_count(), 1);
    });
}

#[test]
fn instructions_are_told_as_they_were_given() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let instructions = [
        Instruction::ApplyActions(vec![output("2")]),
        Instruction::ClearActions,
        Instruction::WriteActions(vec![Action::PushVlan(0x8100), output("3")]),
        Instruction::WriteMetadata { metadata: 5, mask: 7 },
        Instruction::GotoTable(4),
    ];
    bench.add(&[instructions.iter().cloned().fold(rule(1), Rule::then)]);
    assert_eq!(bench.flows(every_rule())[0].instructions, instructions);
}

#[test]
fn a_buffer_that_was_never_given_is_refused_after_the_rule_is_in() {
    for (versions, refusal) in [(V10, (1, 8)), (V13, (1, 8))] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.refusal(rule(1).output("2").buffer(99).body()), Some(refusal));
        assert_eq!(bench.arrive(1, &ping()).0, "2");
    }
}
