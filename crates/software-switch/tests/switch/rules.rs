//! Adding, changing, removing and refusing rules.

use super::dsl::*;
use crate::has;
use flow::{Action, Field, Instruction, PortNo};
use openflow::Body;
use openflow::message::*;

fn flows(bench: &mut Bench) -> Vec<FlowStats> {
    let wanted = FlowStatsRequest::default();
    let request = MultipartRequest { flags: 0, body: RequestBody::Flow(wanted) };
    bench
        .say(Body::MultipartRequest(request))
        .into_iter()
        .flat_map(|body| match body {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(flows), .. }) => flows,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn check_refusal(rule: Rule, v10: Option<(u16, u16)>, v13: Option<(u16, u16)>) {
    for (versions, expected) in [(V10, v10), (V13, v13)] {
        assert_eq!(Bench::new(versions).refusal(rule.body()), expected, "{versions:?} {rule:?}");
    }
}

#[test]
fn what_the_switch_cannot_do_is_refused_by_its_name() {
    if !has(Part::Version13) {
        return;
    }
    let bad_out_port = Some((2, 4));
    for port in ["TABLE", "ANY", "0"] {
        check_refusal(rule(1).output(port), bad_out_port, bad_out_port);
    }
    let v13 =
        |rule: Rule, expected| assert_eq!(Bench::new(V13).refusal(rule.body()), Some(expected), "{rule:?}");
    v13(rule(1).table(16), (5, 2));
    v13(rule(1).table(TABLE_ALL), (5, 2));
    if has(Part::Tables) {
        v13(rule(1).table(3).goto(3), (3, 2));
        v13(rule(1).goto(1).goto(2), (3, 1));
    }
    v13(rule(1).goto(16), (3, 2));
    v13(rule(1).then(Instruction::Meter(1)), (12, 2));
    v13(rule(1).apply(&[Action::Group(7)]), (2, 9));
    v13(rule(1).apply(&[Action::PushVlan(0x800)]), (2, 5));
    v13(rule(1).apply(&[set(Field::InPort, 1)]), (2, 13));
    v13(rule(1).apply(&[Action::PopPbb]), (2, 0));
    v13(rule(1).apply(&[Action::Experimenter { experimenter: 0x2320, body: vec![0; 8] }]), (2, 2));
    v13(rule(1).on(Field::InPhyPort, 1u32), (4, 6));
    v13(rule(1).command(9), (5, 6));
    assert_eq!(Bench::new(V10).refusal(rule(1).flags(FLOW_MOD_RESET_COUNTS).body()), Some((3, 0)));
}

#[test]
fn a_full_table_takes_no_more_but_changes_what_it_has() {
    for (versions, expected) in [(V10, (3, 0)), (V13, (5, 1))] {
        let mut bench =
            Bench::with(software_switch::SwitchOptions { versions, max_entries: 2, ..Default::default() });
        bench.add(&[rule(1), rule(2), rule(2).output("3")]);
        assert_eq!(bench.refusal(rule(3).body()), Some(expected));
        assert_eq!(bench.arrive(1, &ping()).0, "3");
    }
}

#[test]
fn an_overlap_is_refused_if_that_is_asked() {
    for (versions, expected) in [(V10, (3, 1)), (V13, (5, 3))] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(5).on(Field::InPort, PortNo(1))]);
        let checked = |rule: Rule| rule.flags(FLOW_MOD_CHECK_OVERLAP);
        assert_eq!(bench.refusal(checked(rule(5).on(Field::EthDst, H1)).body()), Some(expected));
        assert_eq!(bench.refusal(checked(rule(5).on(Field::InPort, PortNo(1))).body()), Some(expected));
        bench.add(&[checked(rule(6).on(Field::EthDst, H1)), checked(rule(5).on(Field::InPort, PortNo(2)))]);
    }
}

#[test]
fn the_same_rule_again_takes_the_place_of_the_old_one() {
    if !has(Part::Version13) {
        return;
    }
    for (versions, counted) in [(V10, 0), (V13, 1)] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(5).on(Field::EthDst, H2).on(Field::InPort, PortNo(1)).output("2")]);
        bench.arrive(1, &ping());
        bench.add(&[rule(5).on(Field::InPort, PortNo(1)).on(Field::EthDst, H2).output("3")]);
        let there = flows(&mut bench);
        assert_eq!((there.len(), there[0].packet_count), (1, counted), "{versions:?}");
        assert_eq!(bench.arrive(1, &ping()).0, "3");
    }
}

#[test]
fn a_modify_reaches_all_that_lie_within_it_and_a_strict_one_only_its_like() {
    if !has(Part::SharedPackets) {
        return;
    }
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[
            rule(5).on(Field::EthDst, H2).on(Field::InPort, PortNo(1)).output("2"),
            rule(6).on(Field::EthDst, H2).on(Field::InPort, PortNo(2)).output("1"),
        ]);
        bench.add(&[rule(5).on(Field::EthDst, H2).output("4").command(FLOW_MODIFY_STRICT)]);
        assert_eq!(bench.arrive(1, &ping()).0, "2", "{versions:?}: it is not the same match");
        bench.add(&[rule(5).on(Field::EthDst, H2).output("3").command(FLOW_MODIFY)]);
        assert_eq!(bench.arrive(1, &ping()).0, "3");
        assert_eq!(bench.arrive(2, &ping()).0, "3");
        assert_eq!(
            bench.switch.flow_count(),
            if versions == V10 { 3 } else { 2 },
            "1.0 adds what it cannot modify"
        );
    }
}

#[test]
fn a_modify_keeps_what_was_counted() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(5).output("2").cookie(7)]);
    bench.arrive(1, &ping());
    bench.add(&[rule(5).output("3").cookie(8).command(FLOW_MODIFY)]);
    let there = &flows(&mut bench)[0];
    assert_eq!((there.packet_count, there.byte_count, there.cookie), (1, 98, 7));
    bench.add(&[rule(5).output("3").command(FLOW_MODIFY).flags(FLOW_MOD_RESET_COUNTS)]);
    assert_eq!(flows(&mut bench)[0].packet_count, 0);
}

#[test]
fn a_delete_takes_what_lies_within_it_and_says_so_if_asked() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let told = |rule: Rule| rule.flags(FLOW_MOD_SEND_FLOW_REMOVED);
        bench.add(&[
            told(rule(5).on(Field::EthDst, H2).cookie(0xc1)).output("2"),
            rule(6).on(Field::EthDst, H2).on(Field::InPort, PortNo(1)),
            told(rule(7).on(Field::EthDst, H1)),
        ]);
        let nothing = bench.say(rule(5).on(Field::InPort, PortNo(1)).command(FLOW_DELETE_STRICT).body());
        assert_eq!(nothing, []);
        let said = bench.say(rule(0).on(Field::EthDst, H2).command(FLOW_DELETE).body());
        assert!(
            matches!(&said[..], [Body::FlowRemoved(gone)] if (gone.cookie, gone.reason, gone.priority) == (0xc1, 2, 5)),
            "{said:?}"
        );
        assert_eq!(bench.switch.flow_count(), 1);
    }
}

#[test]
fn a_delete_can_be_narrowed_by_port_and_cookie() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[
        rule(1).output("2").cookie(0x10),
        rule(2).write(&[output("3")]).cookie(0x20),
        rule(3).table(2).output("3").cookie(0x21),
    ]);
    let mut by_port = rule(0).command(FLOW_DELETE).table(TABLE_ALL);
    by_port.0.out_port = PortNo(3);
    let mut by_both = by_port.clone().cookie(0x21);
    by_both.0.cookie_mask = 0x0f;
    bench.add(&[by_both]);
    assert_eq!(bench.switch.flow_count(), 2);
    bench.add(&[by_port]);
    assert_eq!(flows(&mut bench)[0].cookie, 0x10);
}

#[test]
fn an_idle_rule_goes_and_a_used_one_stays_until_its_hard_timeout() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).output("2").timeouts(10, 25).flags(FLOW_MOD_SEND_FLOW_REMOVED)]);
        for _ in 0..2 {
            assert_eq!(bench.pass(9), []);
            assert_eq!(bench.arrive(1, &ping()).0, "2");
        }
        let said = bench.pass(7);
        assert!(
            matches!(&said[..], [Body::FlowRemoved(gone)]
                if (gone.reason, gone.duration_s, gone.packet_count, gone.byte_count) == (1, 25, 2, 196)),
            "{said:?}"
        );
        bench.add(&[rule(1).output("2").timeouts(10, 25).flags(FLOW_MOD_SEND_FLOW_REMOVED)]);
        assert!(matches!(&bench.pass(10)[..], [Body::FlowRemoved(gone)] if gone.reason == 0));
        assert_eq!(bench.switch.flow_count(), 0);
    }
}

#[test]
fn more_rules_than_a_message_holds_are_told_in_parts() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        for number in 0..2000u64 {
            bench.add(&[rule(1).on(Field::EthDst, flow::MacAddr::from_u64(number)).output("2")]);
        }
        assert_eq!(flows(&mut bench).len(), 2000);
    }
}
