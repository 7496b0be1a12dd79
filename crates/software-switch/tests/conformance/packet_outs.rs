//! Packet-outs (1.3.5, 7.3.7; 1.0, 5.3.6).

use super::dsl::*;
use crate::has;
use flow::{Action, Field, PortNo};
use openflow::Body;
use openflow::message::*;
use software_switch::SwitchOptions;

/// Checks where a ping of a packet-out leaves, with `in_port` as its ingress port.
fn check_out(in_port: PortNo, to: &str, expected: &str) {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.refusal(packet_out(in_port, &[output(to)], ping())), None);
        assert_eq!(bench.left_by(), expected, "{versions:?}, in by {in_port}, out by {to}");
    }
}

#[test]
fn it_leaves_by_the_port_that_it_names() {
    check_out(PortNo::CONTROLLER, "3", "3");
    check_out(PortNo(1), "3", "3");
}

#[test]
fn a_port_that_is_not_there_sends_nothing_and_is_no_error() {
    check_out(PortNo(1), "99", "");
}

#[test]
fn in_port_is_the_port_that_it_is_taken_to_have_come_by() {
    check_out(PortNo(2), "IN_PORT", "2");
    check_out(PortNo::CONTROLLER, "IN_PORT", "");
}

#[test]
fn the_port_itself_sends_nothing_back() {
    check_out(PortNo(2), "2", "");
}

#[test]
fn all_and_flood_leave_out_the_port_that_it_came_by() {
    check_out(PortNo(2), "ALL", "1 3 4");
    check_out(PortNo(2), "FLOOD", "1 3 4");
    check_out(PortNo::CONTROLLER, "ALL", "1 2 3 4");
}

#[test]
fn the_local_port_is_not_there() {
    if !has(Part::OutsidePorts) {
        return;
    }
    check_out(PortNo(2), "LOCAL", "");
}

#[test]
fn to_the_controller_it_comes_back_as_a_packet_in_by_an_action() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let said = bench.say(packet_out(PortNo(2), &[output("CONTROLLER")], ping()));
        let [Body::PacketIn(packet_in)] = &said[..] else { panic!("{said:?}") };
        assert_eq!((packet_in.reason, packet_in.cookie), (1, u64::MAX));
        assert_eq!(packet_in.matching.get(Field::InPort).map(|(port, _)| port), Some(2));
        assert_eq!(packet_in.data, ping());
    }
}

#[test]
fn table_takes_it_through_the_rules() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).on(Field::InPort, PortNo(2)).output("4")]);
        bench.say(packet_out(PortNo(2), &[output("TABLE")], ping()));
        bench.say(packet_out(PortNo(3), &[output("TABLE")], ping()));
        assert_eq!(bench.left_by(), "4");
    }
}

#[test]
fn table_counts_as_any_packet_does() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("4")]);
    bench.say(packet_out(PortNo(2), &[output("TABLE")], ping()));
    assert_eq!(bench.flows(every_rule())[0].packet_count, 1);
}

#[test]
fn without_actions_it_is_dropped() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.say(packet_out(PortNo(1), &[], ping())), []);
        assert_eq!(bench.left_by(), "");
    }
}

#[test]
fn actions_are_carried_out_in_their_order() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    let actions = [output("2"), Action::PushVlan(0x8100), output("3"), Action::PopVlan, output("4")];
    bench.say(packet_out(PortNo(1), &actions, ping()));
    assert_eq!(bench.left_with_lengths(), "2:98 3:102 4:98");
}

#[test]
fn a_port_that_no_packet_comes_by_is_refused() {
    for (versions, refusal) in [(V10, (1, 5)), (V13, (1, 11))] {
        for in_port in [PortNo::FLOOD, PortNo::ALL, PortNo::TABLE, PortNo::IN_PORT] {
            let mut bench = Bench::new(versions);
            let out = packet_out(in_port, &[output("2")], ping());
            assert_eq!(bench.refusal(out), Some(refusal), "{versions:?} {in_port}");
            assert_eq!(bench.left_by(), "");
        }
    }
}

#[test]
fn nobodys_port_is_accepted_as_open_vswitch_does() {
    if !has(Part::OutsidePorts) {
        return;
    }
    check_out(PortNo::ANY, "2", "2");
    check_out(PortNo::LOCAL, "2", "2");
    check_out(PortNo(0), "2", "2");
}

#[test]
fn an_action_that_cannot_be_is_refused_and_nothing_leaves() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    for (action, refusal) in [
        (Action::Group(5), (2, 9)),
        (output("ANY"), (2, 4)),
        (Action::PushVlan(1), (2, 5)),
        (set(Field::InPort, 1), (2, 13)),
    ] {
        assert_eq!(bench.refusal(packet_out(PortNo(1), &[output("2"), action], ping())), Some(refusal));
    }
    assert_eq!(bench.left_by(), "");
}

#[test]
fn what_is_no_frame_is_refused() {
    for (versions, refusal) in [(V10, (1, 5)), (V13, (1, 12))] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.refusal(packet_out(PortNo(1), &[output("2")], vec![0; 13])), Some(refusal));
        assert_eq!(bench.refusal(packet_out(PortNo(1), &[output("2")], vec![])), Some(refusal));
    }
}

fn from_buffer(buffer_id: u32, actions: &[Action]) -> Body {
    Body::PacketOut(PacketOut { buffer_id, in_port: PortNo(1), actions: actions.to_vec(), data: vec![] })
}

#[test]
fn a_kept_packet_leaves_by_what_the_packet_out_says_and_once() {
    for versions in [V10, V13] {
        let mut bench = Bench::with(SwitchOptions { versions, n_buffers: 4, ..Default::default() });
        bench.add(&[rule(0).output("CONTROLLER")]);
        let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
        assert_eq!(bench.say(from_buffer(buffer_id, &[output("3")])), []);
        assert_eq!(bench.left_by(), "3");
        assert_eq!(bench.refusal(from_buffer(buffer_id, &[output("3")])), Some((1, 7)));
    }
}

#[test]
fn a_kept_packet_without_actions_is_dropped_and_gone() {
    let mut bench = Bench::with(SwitchOptions { versions: V13, n_buffers: 4, ..Default::default() });
    bench.add(&[rule(0).output("CONTROLLER")]);
    let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
    bench.say(from_buffer(buffer_id, &[]));
    assert_eq!(bench.left_by(), "");
    assert_eq!(bench.refusal(from_buffer(buffer_id, &[output("3")])), Some((1, 7)));
}

#[test]
fn a_refused_packet_out_leaves_its_packet_where_it_is() {
    let mut bench = Bench::with(SwitchOptions { versions: V13, n_buffers: 4, ..Default::default() });
    bench.add(&[rule(0).output("CONTROLLER")]);
    let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
    assert_eq!(bench.refusal(from_buffer(buffer_id, &[output("ANY")])), Some((2, 4)));
    bench.say(from_buffer(buffer_id, &[output("2")]));
    assert_eq!(bench.left_by(), "2");
}

#[test]
fn a_buffer_that_was_never_given_is_unknown() {
    for versions in [V10, V13] {
        let mut bench = Bench::with(SwitchOptions { versions, n_buffers: 4, ..Default::default() });
        assert_eq!(bench.refusal(from_buffer(77, &[output("2")])), Some((1, 8)));
    }
}
