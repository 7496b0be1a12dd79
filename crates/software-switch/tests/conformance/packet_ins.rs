//! Packet-ins (1.3.5, 7.4.1; 1.0, 5.4.1).

use super::dsl::*;
use crate::has;
use flow::{Action, Field, PortNo};
use openflow::Body;
use openflow::message::*;
use software_switch::SwitchOptions;

fn buffered(versions: software_switch::Versions) -> Bench {
    Bench::with(SwitchOptions { versions, n_buffers: 2, ..Default::default() })
}

fn to_controller(max_len: u16) -> Action {
    Action::Output { port: PortNo::CONTROLLER, max_len }
}

#[test]
fn without_a_rule_1_0_asks_and_1_3_drops() {
    let (_, packet_ins) = Bench::new(V10).arrive(2, &ping());
    assert_eq!((packet_ins.len(), packet_ins[0].reason), (1, 0));
    assert_eq!(Bench::new(V13).arrive(2, &ping()).1, []);
}

#[test]
fn a_table_miss_entry_gives_no_match_and_any_other_an_action() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(0).output("CONTROLLER"), rule(1).on(Field::InPort, PortNo(2)).output("CONTROLLER")]);
    assert_eq!(bench.arrive(1, &ping()).1[0].reason, 0);
    assert_eq!(bench.arrive(2, &ping()).1[0].reason, 1);
    let mut bench = Bench::new(V10);
    bench.add(&[rule(0).output("CONTROLLER")]);
    assert_eq!(bench.arrive(1, &ping()).1[0].reason, 1, "1.0 knows no table-miss entry");
}

#[test]
fn it_names_port_table_and_cookie() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).goto(6), rule(3).table(6).cookie(0xfeed).output("CONTROLLER")]);
    let packet_in = &bench.arrive(4, &ping()).1[0];
    assert_eq!((packet_in.table_id, packet_in.cookie), (6, 0xfeed));
    assert_eq!(packet_in.matching.get(Field::InPort).map(|(port, _)| port), Some(4));
}

#[test]
fn it_holds_the_packet_as_the_actions_before_have_made_it() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).apply(&[set(Field::EthDst, 0x0a), to_controller(0xffff), set(Field::EthDst, 0x0b)])]);
    assert_eq!(bench.arrive(1, &ping()).1[0].data[..6], [0, 0, 0, 0, 0, 0x0a]);
}

#[test]
fn max_len_is_how_much_of_a_kept_packet_is_shown() {
    for (max_len, shown) in [(0, 0), (20, 20), (98, 98), (500, 98)] {
        let mut bench = buffered(V13);
        bench.add(&[rule(1).apply(&[to_controller(max_len)])]);
        let packet_in = &bench.arrive(1, &ping()).1[0];
        assert_eq!((packet_in.data.len(), packet_in.total_len), (shown, 98), "{max_len}");
        assert_ne!(packet_in.buffer_id, NO_BUFFER);
    }
}

#[test]
fn no_buffer_means_all_of_it() {
    for versions in [V10, V13] {
        let mut bench = buffered(versions);
        bench.add(&[rule(1).apply(&[to_controller(0xffff)])]);
        let packet_in = &bench.arrive(1, &ping()).1[0];
        assert_eq!((packet_in.data.len(), packet_in.buffer_id), (98, NO_BUFFER));
    }
}

#[test]
fn when_all_buffers_are_taken_the_whole_packet_is_sent() {
    if !has(Part::Buffers) {
        return;
    }
    for versions in [V10, V13] {
        let mut bench = buffered(versions);
        bench.add(&[rule(0).apply(&[to_controller(10)])]);
        let lengths: Vec<usize> = (0..3).map(|_| bench.arrive(1, &ping()).1[0].data.len()).collect();
        assert_eq!(lengths, [10, 10, 98]);
    }
}

#[test]
fn each_output_to_the_controller_is_a_packet_in_of_its_own() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).apply(&[to_controller(0xffff), to_controller(0xffff)])]);
    assert_eq!(bench.arrive(1, &ping()).1.len(), 2);
}

#[test]
fn metadata_is_told_where_there_is_some() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    let write = flow::Instruction::WriteMetadata { metadata: 0x77, mask: u64::MAX };
    bench.add(&[rule(1).then(write).goto(1), rule(0).table(1).output("CONTROLLER")]);
    let packet_in = &bench.arrive(1, &ping()).1[0];
    assert_eq!(packet_in.matching.get(Field::Metadata).map(|(metadata, _)| metadata), Some(0x77));
    let mut bench = Bench::new(V13);
    bench.add(&[rule(0).output("CONTROLLER")]);
    assert_eq!(bench.arrive(1, &ping()).1[0].matching.get(Field::Metadata), None);
}

#[test]
fn a_rule_takes_the_packet_that_waited_for_it_along() {
    for versions in [V10, V13] {
        let mut bench = buffered(versions);
        bench.add(&[rule(0).output("CONTROLLER")]);
        let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
        assert_eq!(bench.say(rule(5).output("3").buffer(buffer_id).body()), []);
        assert_eq!(bench.left_by(), "3");
        assert_eq!(bench.refusal(rule(5).output("3").buffer(buffer_id).body()), Some((1, 7)));
    }
}

#[test]
fn a_refused_rule_leaves_the_packet_where_it_is() {
    let mut bench = buffered(V13);
    bench.add(&[rule(0).output("CONTROLLER")]);
    let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
    assert_eq!(bench.refusal(rule(5).output("TABLE").buffer(buffer_id).body()), Some((2, 4)));
    assert_eq!(bench.left_by(), "");
    bench.say(rule(5).output("3").buffer(buffer_id).body());
    assert_eq!(bench.left_by(), "3");
}

#[test]
fn a_delete_takes_no_packet_along() {
    let mut bench = buffered(V13);
    bench.add(&[rule(0).output("CONTROLLER")]);
    let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
    let answers: Vec<Body> = bench.say(rule(5).command(FLOW_DELETE_STRICT).buffer(buffer_id).body());
    assert_eq!((answers, bench.left_by()), (vec![], String::new()));
}
