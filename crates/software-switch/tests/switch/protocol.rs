//! The session with a controller: hello, features, roles, statistics, errors.

use super::dsl::*;
use crate::Switch;
use flow::{DatapathId, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use software_switch::{Effects, Parting, SwitchOptions, Versions};
use std::time::Duration;

fn ask(bench: &mut Bench, body: RequestBody) -> ReplyBody {
    let answers = bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    match <[Body; 1]>::try_from(answers) {
        Ok([Body::MultipartReply(reply)]) => reply.body,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_controller_of_another_version_is_told_and_left() {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions { versions: V13, ..Default::default() });
    let mut effects = Effects::default();
    switch.on_connected(C0, &mut effects);
    let hello = Message { version: Version::V1_0, xid: 3, body: Body::Hello(Hello::default()) };
    switch.on_message(C0, &hello, Duration::ZERO, &mut effects);
    assert_eq!(effects.close, [(C0, Parting::NoVersion)]);
    assert!(matches!(&effects.messages[1].1.body, Body::Error(error) if (error.kind, error.code) == (0, 0)));
}

#[test]
fn a_message_before_hello_ends_the_connection() {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions::default());
    let mut effects = Effects::default();
    switch.on_connected(C0, &mut effects);
    let early = Message { version: Version::V1_3, xid: 3, body: Body::FeaturesRequest };
    switch.on_message(C0, &early, Duration::ZERO, &mut effects);
    assert_eq!(effects.close, [(C0, Parting::NoHello)]);
    assert_eq!(switch.version(C0), None);
}

#[test]
fn a_message_of_the_wrong_version_or_direction_is_refused() {
    let mut bench = Bench::with(SwitchOptions { versions: Versions::Both, ..Default::default() });
    assert_eq!(bench.refusal(Body::BarrierReply), Some((1, 1)));
    bench.version = Version::V1_0;
    assert_eq!(bench.refusal(Body::BarrierRequest), Some((1, 0)));
}

#[test]
fn an_error_carries_the_beginning_of_what_it_refuses() {
    let mut bench = Bench::new(V13);
    let answers = bench.say(rule(1).output("TABLE").body());
    let [Body::Error(error)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(&error.data[..8], [4, 14, 0, 80, 0, 0, 0, 42]);
    assert_eq!(error.data.len(), 80);
}

#[test]
fn bytes_that_are_no_message_are_answered_in_the_versions_numbers() {
    let mut bench = Bench::new(V10);
    let mut effects = Effects::default();
    let overlap = flow::ErrorCode { kind: 5, code: 3 };
    bench.switch.on_bad_input(C0, 9, overlap, &[7; 100], &mut effects);
    let [(_, Message { xid: 9, body: Body::Error(error), .. })] = &effects.messages[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((error.kind, error.code, error.data.len()), (3, 1, 100));
}

#[test]
fn it_says_what_it_is() {
    for (versions, tables, ports) in [(V10, 1, 4), (V13, 16, 0)] {
        let mut bench = Bench::with(SwitchOptions { versions, n_buffers: 5, ..Default::default() });
        let answers = bench.say(Body::FeaturesRequest);
        let [Body::FeaturesReply(features)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(features.datapath_id, DatapathId(7));
        assert_eq!((features.n_tables, features.ports.len(), features.n_buffers), (tables, ports, 5));
    }
    let ReplyBody::PortDesc(ports) = ask(&mut Bench::new(V13), RequestBody::PortDesc) else { panic!() };
    assert_eq!((ports.len(), ports[3].name.as_str(), ports[3].is_live()), (4, "s7-eth4", true));
}

#[test]
fn echo_barrier_and_configuration_are_answered() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.say(Body::EchoRequest(b"abc".to_vec())), [Body::EchoReply(b"abc".to_vec())]);
        assert_eq!(bench.say(Body::BarrierRequest), [Body::BarrierReply]);
        let config = SwitchConfig { flags: 0, miss_send_len: 99 };
        assert_eq!(bench.say(Body::SetConfig(config)), []);
        assert_eq!(bench.say(Body::GetConfigRequest), [Body::GetConfigReply(config)]);
    }
}

#[test]
fn a_slave_may_only_look() {
    let mut bench = Bench::new(V13);
    let role = |role, generation_id| Body::RoleRequest(Role { role, generation_id });
    let is = |role, generation_id| vec![Body::RoleReply(Role { role, generation_id })];
    assert_eq!(bench.say(role(ROLE_NOCHANGE, 0)), is(ROLE_EQUAL, u64::MAX));
    assert_eq!(bench.say(role(ROLE_SLAVE, 5)), is(ROLE_SLAVE, 5));
    assert_eq!(bench.refusal(rule(1).body()), Some((1, 10)));
    assert_eq!(bench.refusal(packet_out(PortNo(1), &[], ping())), Some((1, 10)));
    assert_eq!(bench.say(Body::BarrierRequest), [Body::BarrierReply]);
    assert_eq!(bench.refusal(role(ROLE_MASTER, 4)), Some((11, 0)));
    assert_eq!(bench.refusal(role(9, 5)), Some((11, 2)));
    assert_eq!(bench.say(role(ROLE_MASTER, 6)), is(ROLE_MASTER, 6));
    bench.add(&[rule(1)]);
    // The generation id may wrap around.
    assert_eq!(bench.say(role(ROLE_MASTER, 1 << 62)), is(ROLE_MASTER, 1 << 62));
    assert_eq!(bench.say(role(ROLE_MASTER, 1 << 63)), is(ROLE_MASTER, 1 << 63));
    assert_eq!(bench.say(role(ROLE_MASTER, u64::MAX)), is(ROLE_MASTER, u64::MAX));
    assert_eq!(bench.say(role(ROLE_MASTER, 1)), is(ROLE_MASTER, 1));
}

#[test]
fn a_slave_hears_of_ports_and_of_nothing_else() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(0).output("CONTROLLER")]);
    bench.say(Body::RoleRequest(Role { role: ROLE_SLAVE, generation_id: 1 }));
    assert_eq!(bench.arrive(1, &ping()).0, "");
    assert!(matches!(bench.link(1, false)[..], [Body::PortStatus(_)]));
}

#[test]
fn a_table_miss_entry_is_told_from_a_rule() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(0).output("CONTROLLER").cookie(0xab)]);
    let (_, packet_ins) = bench.arrive(1, &ping());
    assert_eq!((packet_ins[0].reason, packet_ins[0].cookie, packet_ins[0].table_id), (0, 0xab, 0));
}

#[test]
fn counters_agree_with_what_passed() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).output("2"), rule(1).on(flow::Field::EthDst, H1).output("3")]);
        for _ in 0..3 {
            bench.arrive(1, &ping());
        }
        let all = FlowStatsRequest {
            table_id: TABLE_ALL,
            out_port: PortNo(2),
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: flow::Match::any(),
        };
        let ReplyBody::Aggregate(sum) = ask(&mut bench, RequestBody::Aggregate(all)) else { panic!() };
        assert_eq!((sum.packet_count, sum.byte_count, sum.flow_count), (3, 294, 1));
        let ReplyBody::Table(tables) = ask(&mut bench, RequestBody::Table) else { panic!() };
        assert_eq!((tables[0].active_count, tables[0].lookup_count, tables[0].matched_count), (2, 3, 3));
        let ReplyBody::PortStats(ports) = ask(&mut bench, RequestBody::PortStats(PortNo(2))) else {
            panic!()
        };
        assert_eq!((ports[0].tx_packets, ports[0].tx_bytes, ports[0].rx_packets), (3, 294, 0));
        let ReplyBody::PortStats(ports) = ask(&mut bench, RequestBody::PortStats(PortNo::ANY)) else {
            panic!()
        };
        assert_eq!((ports.len(), ports[0].rx_packets), (4, 3));
    }
}

#[test]
fn what_it_does_not_have_is_said_to_be_empty_or_refused() {
    let mut bench = Bench::new(V13);
    assert_eq!(
        ask(&mut bench, RequestBody::Queue { port: PortNo::ANY, queue_id: u32::MAX }),
        ReplyBody::Queue(vec![])
    );
    let mut refusal = |body| bench.refusal(body);
    let request = |flags, body| Body::MultipartRequest(MultipartRequest { flags, body });
    assert_eq!(refusal(request(0, RequestBody::PortStats(PortNo(9)))), Some((1, 11)));
    assert_eq!(refusal(request(MULTIPART_MORE, RequestBody::Desc)), Some((1, 13)));
    let queues = QueueGetConfigRequest { port: PortNo(9) };
    assert_eq!(refusal(Body::QueueGetConfigRequest(queues)), Some((9, 0)));
    let experimenter = Experimenter { experimenter: 1, exp_type: Some(1), data: vec![] };
    assert_eq!(refusal(Body::Experimenter(experimenter)), Some((1, 3)));
    assert_eq!(refusal(Body::TableMod(TableMod { table_id: 99, config: 0 })), Some((8, 0)));
    assert_eq!(refusal(Body::SetConfig(SwitchConfig { flags: 2, miss_send_len: 0 })), Some((10, 0)));
}

#[test]
fn each_table_says_what_it_can_do() {
    let ReplyBody::TableFeatures(tables) = ask(&mut Bench::new(V13), RequestBody::TableFeatures(vec![]))
    else {
        panic!()
    };
    assert_eq!((tables.len(), tables[0].max_entries), (16, 65_536));
    let next = |table: &TableFeatures| {
        table.properties.iter().find_map(|property| match property {
            TableProperty::NextTables { tables, .. } => Some(tables.len()),
            _ => None,
        })
    };
    assert_eq!((next(&tables[0]), next(&tables[15])), (Some(15), Some(0)));
}

#[test]
fn a_port_is_changed_only_under_its_own_address() {
    let mut bench = Bench::new(V10);
    let answers = bench.say(Body::FeaturesRequest);
    let [Body::FeaturesReply(features)] = &answers[..] else { panic!() };
    let hw_addr = features.ports[1].hw_addr;
    let down = PortMod { port_no: PortNo(2), hw_addr, config: 1, mask: 1, advertise: 0 };
    assert_eq!(bench.refusal(Body::PortMod(PortMod { port_no: PortNo(9), ..down })), Some((4, 0)));
    assert_eq!(bench.refusal(Body::PortMod(PortMod { hw_addr: MacAddr([0; 6]), ..down })), Some((4, 1)));
    let no_flood = PortMod { config: 1 << 4, mask: 1 << 4, ..down };
    assert!(matches!(bench.say(Body::PortMod(no_flood))[..], [Body::PortStatus(_)]));
    bench.add(&[rule(1).output("FLOOD")]);
    assert_eq!(bench.arrive(1, &ping()).0, "3 4");
    let no_packet_in = PortMod { config: 1 << 6, mask: 1 << 6, ..down };
    bench.say(Body::PortMod(no_packet_in));
    bench.add(&[rule(2).output("CONTROLLER")]);
    assert_eq!(bench.arrive(2, &ping()).0, "");
    assert_eq!(bench.arrive(1, &ping()).0, "controller");
}

#[test]
fn without_a_controller_rules_go_on_and_the_rest_is_dropped() {
    let mut bench = Bench::new(V10);
    bench.add(&[rule(1).on(flow::Field::InPort, PortNo(1)).output("2")]);
    bench.switch.on_disconnected(C0);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    assert_eq!(bench.arrive(3, &ping()).0, "");
    assert_eq!(bench.switch.counters().packet_ins_unheard, 0);
}
