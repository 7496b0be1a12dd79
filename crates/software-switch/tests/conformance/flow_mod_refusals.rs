//! Flow mods that the switch must refuse (1.3.5, 7.5.4.4 to 7.5.4.7; 1.0, 5.4.4).

use super::dsl::*;
use crate::has;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use software_switch::SwitchOptions;

fn check_13(rule: Rule, expected: (u16, u16)) {
    let mut bench = Bench::new(V13);
    assert_eq!(bench.refusal(rule.body()), Some(expected), "{rule:?}");
    assert_eq!(bench.switch.flow_count(), 0, "what is refused is not there");
}

fn check_10(rule: Rule, expected: (u16, u16)) {
    let mut bench = Bench::new(V10);
    assert_eq!(bench.refusal(rule.body()), Some(expected), "{rule:?}");
    assert_eq!(bench.switch.flow_count(), 0, "what is refused is not there");
}

fn ip(priority: u16) -> Rule {
    rule(priority).on(Field::EthType, 0x800u16)
}

#[test]
fn a_table_that_is_not_there() {
    check_13(rule(1).table(16), (5, 2));
    check_13(rule(1).table(254), (5, 2));
    for command in [FLOW_MODIFY, FLOW_MODIFY_STRICT, FLOW_DELETE, FLOW_DELETE_STRICT] {
        check_13(rule(1).table(16).command(command), (5, 2));
    }
}

#[test]
fn all_tables_are_for_deletes_alone() {
    check_13(rule(1).table(TABLE_ALL), (5, 2));
    check_13(rule(1).table(TABLE_ALL).command(FLOW_MODIFY), (5, 2));
}

#[test]
fn a_table_that_is_full() {
    for (versions, refusal) in [(V10, (3, 0)), (V13, (5, 1))] {
        let mut bench = Bench::with(SwitchOptions { versions, max_entries: 1, ..Default::default() });
        bench.add(&[rule(1)]);
        assert_eq!(bench.refusal(rule(2).body()), Some(refusal));
        bench.add(&[rule(1).output("2"), rule(1).command(FLOW_DELETE), rule(2)]);
    }
}

#[test]
fn a_full_table_leaves_room_in_the_others() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::with(SwitchOptions { versions: V13, max_entries: 1, ..Default::default() });
    bench.add(&[rule(1), rule(1).table(1), rule(1).table(2)]);
}

#[test]
fn a_command_that_is_none() {
    check_13(rule(1).command(9), (5, 6));
    check_10(rule(1).command(9), (3, 4));
}

#[test]
fn flags_that_are_none() {
    check_13(rule(1).flags(1 << 5), (5, 7));
    check_10(rule(1).flags(1 << 5), (3, 5));
}

#[test]
fn an_emergency_rule_of_1_0() {
    for command in [FLOW_ADD, FLOW_MODIFY, FLOW_MODIFY_STRICT] {
        let emergency = rule(1).flags(FLOW_MOD_RESET_COUNTS).command(command);
        check_10(emergency.clone(), (3, 0));
        for (idle_s, hard_s) in [(5, 0), (0, 5), (5, 5)] {
            check_10(emergency.clone().timeouts(idle_s, hard_s), (3, 3));
        }
    }
}

#[test]
fn a_field_without_what_it_needs() {
    for rule in [
        rule(1).on(Field::IpProto, 6u8),
        rule(1).on(Field::Ipv4Src, 1u32),
        ip(1).on(Field::Ipv6Src, 1u128),
        ip(1).on(Field::TcpDst, 80u16),
        ip(1).on(Field::IpProto, 17u8).on(Field::TcpDst, 80u16),
        rule(1).on(Field::VlanPcp, 3u8),
        rule(1).on(Field::MplsLabel, 3u32),
        rule(1).on(Field::ArpOp, 1u16),
    ] {
        for command in [FLOW_ADD, FLOW_MODIFY, FLOW_DELETE] {
            check_13(rule.clone().command(command), (4, 9));
        }
    }
}

#[test]
fn a_field_that_packets_here_do_not_have() {
    check_13(rule(1).on(Field::InPort, PortNo(1)).on(Field::InPhyPort, 1u32), (4, 6));
}

#[test]
fn an_instruction_twice() {
    check_13(rule(1).goto(1).goto(2), (3, 1));
    check_13(rule(1).output("1").output("2"), (3, 1));
}

#[test]
fn a_way_back_or_out_of_the_pipeline() {
    if !has(Part::Tables) {
        return;
    }
    check_13(rule(1).table(3).goto(3), (3, 2));
    check_13(rule(1).table(3).goto(2), (3, 2));
    check_13(rule(1).goto(16), (3, 2));
    check_13(rule(1).table(15).goto(16), (3, 2));
}

#[test]
fn an_experimenters_instruction() {
    check_13(rule(1).then(Instruction::Experimenter { experimenter: 1, body: vec![0; 8] }), (3, 5));
}

#[test]
fn an_experimenters_action() {
    let experimenter = Action::Experimenter { experimenter: 0x2320, body: vec![0; 8] };
    check_13(rule(1).apply(std::slice::from_ref(&experimenter)), (2, 2));
    check_10(rule(1).apply(&[experimenter]), (2, 2));
}

#[test]
fn an_action_that_is_not_done_here() {
    check_13(rule(1).apply(&[Action::PushPbb(0x88e7)]), (2, 0));
    check_13(rule(1).apply(&[Action::PopPbb]), (2, 0));
}

#[test]
fn a_port_that_no_packet_can_leave_by() {
    for port in ["TABLE", "ANY", "0"] {
        check_13(rule(1).output(port), (2, 4));
        check_13(rule(1).write(&[output(port)]), (2, 4));
        check_10(rule(1).output(port), (2, 4));
    }
}

#[test]
fn a_port_that_may_come_is_accepted() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).output("99")]);
        assert_eq!(bench.arrive(1, &ping()).0, "");
    }
}

#[test]
fn a_group_that_is_not_there() {
    check_13(rule(1).apply(&[Action::Group(7)]), (2, 9));
    check_13(rule(1).write(&[Action::Group(7)]), (2, 9));
}

#[test]
fn a_tag_of_a_type_that_no_tag_has() {
    if !has(Part::Version13) {
        return;
    }
    for action in [Action::PushVlan(0x800), Action::PushMpls(0x800)] {
        check_13(rule(1).apply(&[action]), (2, 5));
    }
}

#[test]
fn a_vlan_that_1_0_has_no_room_for() {
    check_10(rule(1).apply(&[Action::SetVlanVid(0x1000)]), (2, 5));
    check_10(rule(1).apply(&[Action::SetVlanPcp(8)]), (2, 5));
}

#[test]
fn a_queue_of_a_port_that_has_none() {
    check_10(rule(1).apply(&[Action::Enqueue { port: PortNo::FLOOD, queue_id: 1 }]), (2, 4));
}

#[test]
fn a_field_that_cannot_be_set() {
    for field in [Field::InPort, Field::Metadata, Field::TunnelId] {
        check_13(rule(1).apply(&[set(field, 1)]), (2, 13));
    }
    check_13(rule(1).apply(&[Action::SetUnknownField { header: 0x0001_0002, body: vec![0; 2] }]), (2, 13));
}

#[test]
fn a_field_set_in_packets_that_may_not_have_it() {
    if !has(Part::Version13) {
        return;
    }
    for rule in [
        rule(1).apply(&[set(Field::Ipv4Dst, 1)]),
        ip(1).apply(&[set(Field::Ipv6Dst, 1)]),
        ip(1).apply(&[set(Field::TcpDst, 1)]),
        ip(1).write(&[set(Field::TcpDst, 1)]),
        rule(1).apply(&[set(Field::MplsLabel, 1)]),
        rule(1).apply(&[set(Field::VlanPcp, 1)]),
        ip(1).apply(&[Action::PushMpls(0x8847), set(Field::Ipv4Dst, 1)]),
    ] {
        check_13(rule, (2, 10));
    }
}

#[test]
fn a_field_set_in_packets_that_have_it_by_match_or_by_an_action_before() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[
        ip(1).apply(&[set(Field::Ipv4Dst, 1)]),
        ip(2).on(Field::IpProto, 6u8).write(&[set(Field::TcpDst, 1)]),
        rule(3).apply(&[Action::PushVlan(0x8100), set(Field::VlanPcp, 1)]),
        rule(4).write(&[set(Field::VlanPcp, 1), Action::PushVlan(0x8100)]),
        rule(5).apply(&[Action::PushMpls(0x8847), set(Field::MplsLabel, 1)]),
        rule(6).on(Field::EthType, 0x8847u16).apply(&[Action::PopMpls(0x800), set(Field::Ipv4Dst, 1)]),
        rule(7).on(Field::VlanVid, 0x1005u16).apply(&[set(Field::VlanPcp, 1)]),
    ]);
}

#[test]
fn a_bad_action_anywhere_in_the_list() {
    check_13(rule(1).apply(&[output("1"), output("2"), Action::Group(9)]), (2, 9));
}

#[test]
fn a_modify_that_is_refused_changes_nothing() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("2")]);
    assert_eq!(bench.refusal(rule(1).output("TABLE").command(FLOW_MODIFY).body()), Some((2, 4)));
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn a_match_of_nothing_is_a_match_of_everything() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let mut any = rule(1).output("2");
        any.0.matching = Match::any();
        bench.add(&[any]);
        assert_eq!(bench.arrive(1, &ping()).0, "2");
        assert_eq!(bench.arrive(3, &tagged(ping(), 7)).0, "2");
    }
}
