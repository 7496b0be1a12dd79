//! Configuration of the switch: fragments, asynchronous messages, tables (1.3.5, 7.3.2, 7.3.3, 7.3.10; 1.0, 5.3.2).

use super::dsl::*;
use crate::has;
use flow::{Field, PortNo};
use openflow::Body;
use openflow::message::*;

fn config(flags: u16, miss_send_len: u16) -> SwitchConfig {
    SwitchConfig { flags, miss_send_len }
}

/// The first or a later fragment of a ping.
fn fragment(first: bool) -> Vec<u8> {
    let mut frame = ping();
    frame[20..22].copy_from_slice(if first { &[0x20, 0] } else { &[0, 9] });
    frame
}

#[test]
fn the_defaults_are_the_specifications() {
    for versions in [V10, V13] {
        let answers = Bench::new(versions).say(Body::GetConfigRequest);
        assert_eq!(answers, [Body::GetConfigReply(config(0, 128))]);
    }
}

#[test]
fn what_is_set_is_told_and_not_answered() {
    if !has(Part::Fragments) {
        return;
    }
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.say(Body::SetConfig(config(1, 77))), []);
        assert_eq!(bench.say(Body::GetConfigRequest), [Body::GetConfigReply(config(1, 77))]);
    }
}

#[test]
fn fragments_are_not_put_together() {
    let mut bench = Bench::new(V13);
    assert_eq!(bench.refusal(Body::SetConfig(config(2, 77))), Some((10, 0)));
    assert_eq!(bench.say(Body::GetConfigRequest), [Body::GetConfigReply(config(0, 128))]);
    let mut bench = Bench::new(V10);
    assert_eq!(bench.say(Body::SetConfig(config(2, 77))), []);
    assert_eq!(bench.say(Body::GetConfigRequest), [Body::GetConfigReply(config(0, 77))]);
}

#[test]
fn fragments_pass_until_they_are_to_be_dropped() {
    if !has(Part::Fragments) {
        return;
    }
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).output("2")]);
        for (flags, expected) in [(0, "2"), (1, ""), (0, "2")] {
            bench.say(Body::SetConfig(config(flags, 128)));
            assert_eq!(bench.arrive(1, &fragment(true)).0, expected);
            assert_eq!(bench.arrive(1, &fragment(false)).0, expected);
            assert_eq!(bench.arrive(1, &ping()).0, "2", "whole packets always pass");
        }
    }
}

#[test]
fn a_later_fragment_has_no_ports() {
    let web =
        rule(2).on(Field::EthType, 0x800u16).on(Field::IpProto, 6u8).on(Field::TcpDst, 80u16).output("3");
    let mut later = tcp(1, 80);
    later[20..22].copy_from_slice(&[0, 9]);
    check(&[web.clone(), rule(1).output("2")], (1, tcp(1, 80)), "3");
    check(&[web, rule(1).output("2")], (1, later), "2");
}

#[test]
fn a_controller_of_1_3_hears_by_default_what_the_specification_says() {
    let expected = AsyncConfig {
        packet_in_mask: [0b011, 0],
        port_status_mask: [0b111, 0b111],
        flow_removed_mask: [0b1111, 0],
    };
    assert_eq!(Bench::new(V13).say(Body::GetAsyncRequest), [Body::GetAsyncReply(expected)]);
}

#[test]
fn what_a_controller_wants_to_hear_is_kept_as_it_said() {
    let wanted = AsyncConfig { packet_in_mask: [5, 6], port_status_mask: [1, 2], flow_removed_mask: [9, 10] };
    let mut bench = Bench::new(V13);
    assert_eq!(bench.say(Body::SetAsync(wanted)), []);
    assert_eq!(bench.say(Body::GetAsyncRequest), [Body::GetAsyncReply(wanted)]);
}

#[test]
fn a_flow_removed_that_is_masked_out_is_not_heard() {
    let mut bench = Bench::new(V13);
    let only_timeouts = AsyncConfig { flow_removed_mask: [0b0011, 0], ..AsyncConfig::default() };
    bench.say(Body::SetAsync(only_timeouts));
    let told = rule(1).flags(FLOW_MOD_SEND_FLOW_REMOVED).timeouts(0, 5);
    bench.add(std::slice::from_ref(&told));
    assert_eq!(bench.say(told.clone().command(FLOW_DELETE).body()), []);
    bench.add(&[told]);
    assert!(matches!(&bench.pass(5)[..], [Body::FlowRemoved(gone)] if gone.reason == 1));
}

#[test]
fn a_port_status_that_is_masked_out_is_not_heard() {
    let mut bench = Bench::new(V13);
    let no_changes = AsyncConfig { port_status_mask: [0b011, 0], ..AsyncConfig::default() };
    bench.say(Body::SetAsync(no_changes));
    assert_eq!(bench.link(1, false), []);
}

#[test]
fn an_invalid_time_to_live_is_told_on_request_alone() {
    if !has(Part::InvalidTtl) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).on(Field::EthType, 0x800u16).apply(&[flow::Action::DecNwTtl, output("2")])]);
    let mut dying = ping();
    dying[22] = 1;
    assert_eq!(bench.arrive(1, &dying).0, "");
    let all = AsyncConfig { packet_in_mask: [0b111, 0], ..AsyncConfig::default() };
    bench.say(Body::SetAsync(all));
    let (ports, packet_ins) = bench.arrive(1, &dying);
    assert_eq!((ports.as_str(), packet_ins[0].reason), ("controller", 2));
}

#[test]
fn a_tables_configuration_has_no_bits() {
    let mut bench = Bench::new(V13);
    let table_mod = |table_id, config| Body::TableMod(TableMod { table_id, config });
    assert_eq!(bench.say(table_mod(TABLE_ALL, 0)), []);
    let last = if has(Part::Tables) { 15 } else { 0 };
    assert_eq!(bench.say(table_mod(last, 0)), []);
    assert_eq!(bench.refusal(table_mod(16, 0)), Some((8, 0)));
    assert_eq!(bench.refusal(table_mod(0, 1)), Some((8, 1)));
}

#[test]
fn no_port_has_queues_and_only_ports_are_asked() {
    let ask = |port| Body::QueueGetConfigRequest(QueueGetConfigRequest { port });
    let none = |port| vec![Body::QueueGetConfigReply(QueueGetConfigReply { port, queues: vec![] })];
    for (versions, bad_port) in [(V10, (5, 0)), (V13, (9, 0))] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.say(ask(PortNo(2))), none(PortNo(2)));
        assert_eq!(bench.refusal(ask(PortNo(9))), Some(bad_port));
    }
    assert_eq!(Bench::new(V13).say(ask(PortNo::ANY)), none(PortNo::ANY));
    assert_eq!(Bench::new(V10).refusal(ask(PortNo::ANY)), Some((5, 0)), "1.0 asks about one port");
}

#[test]
fn queue_statistics_are_empty_and_a_queue_that_is_not_is_refused() {
    for (versions, bad_port, bad_queue) in [(V10, (5, 0), (5, 1)), (V13, (9, 0), (9, 1))] {
        let mut bench = Bench::new(versions);
        let all = u32::MAX;
        assert_eq!(
            bench.ask(RequestBody::Queue { port: PortNo::ANY, queue_id: all }),
            ReplyBody::Queue(vec![])
        );
        let mut refusal = |port, queue_id| bench.refusal(multipart(RequestBody::Queue { port, queue_id }));
        assert_eq!(refusal(PortNo(9), all), Some(bad_port));
        assert_eq!(refusal(PortNo(1), 3), Some(bad_queue));
    }
}
