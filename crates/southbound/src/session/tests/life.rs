//! The messages of a switch that is up, and its silence.

use super::*;
use crate::fault::Fault;
use flow::{Field, Match};

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];

#[test]
fn silence_is_asked_about_once_and_then_ends_the_session() {
    let mut bench = Bench::up(Version::V1_3);
    bench.tick(4_999).unwrap();
    assert_eq!(bench.said(), []);
    bench.tick(5_000).unwrap();
    bench.tick(6_000).unwrap();
    assert_eq!(bench.said(), [Body::EchoRequest(Vec::new())]);
    assert_eq!(bench.tick(15_000).unwrap_err().fault, Fault::Network);
}

#[test]
fn any_byte_is_life() {
    let mut bench = Bench::up(Version::V1_3);
    bench.tick(5_000).unwrap();
    bench.now_ms = 14_999;
    bench.session.heard(1, 14_999);
    assert_eq!(bench.tick(19_998), Ok(()));
    assert_eq!(bench.said().len(), 1);
    assert_eq!(bench.tick(19_999), Ok(()));
    assert_eq!(bench.said().len(), 1);
}

#[test]
fn an_echo_request_is_answered_with_its_payload_and_its_id() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        bench.hear_as(version, 123, Body::EchoRequest(b"ping".to_vec())).unwrap();
        let reply = Message { version, xid: 123, body: Body::EchoReply(b"ping".to_vec()) };
        assert_eq!(bench.said_whole(), [reply]);
    }
}

#[test]
fn a_packet_in_becomes_an_event() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        let packet = PacketIn {
            buffer_id: NO_BUFFER,
            total_len: 60,
            reason: 1,
            table_id: 0,
            cookie: u64::MAX,
            matching: Match::any().with(Field::InPort, PortNo(7)),
            data: b"a frame".to_vec(),
        };
        bench.hear(version, Body::PacketIn(packet)).unwrap();
        bench.event(0, |event| {
            let Event::PacketIn(packet) = event else { panic!("{event:?}") };
            assert_eq!((packet.datapath, packet.in_port, packet.buffer_id), (DATAPATH, PortNo(7), None));
            assert_eq!((packet.total_len, packet.reason, packet.cookie), (60, 1, u64::MAX));
            assert_eq!(flow::canonical::find_field(packet.metadata, Field::InPort), Some(7));
            assert_eq!(packet.data, b"a frame");
        });
    }
}

#[test]
fn a_flow_removed_becomes_an_event_with_its_owner() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        let removed = FlowRemoved {
            matching: Match::any().with(Field::InPort, PortNo(7)),
            cookie: ZONE.stamp(5),
            priority: 100,
            reason: 1,
            table_id: 0,
            duration_s: 9,
            duration_ns: 8,
            idle_timeout_s: 10,
            hard_timeout_s: 0,
            packet_count: 1,
            byte_count: 60,
        };
        bench.hear(version, Body::FlowRemoved(removed)).unwrap();
        bench.event(0, |event| {
            let Event::FlowRemoved(removed) = event else { panic!("{event:?}") };
            assert_eq!((removed.owner(), removed.own_cookie(), removed.priority), (ZONE, 5, 100));
            assert_eq!((removed.byte_count, removed.duration_s, removed.reason), (60, 9, 1));
            assert_eq!(flow::canonical::find_field(removed.matching, Field::InPort), Some(7));
        });
    }
}

#[test]
fn a_port_status_becomes_an_event_and_changes_what_is_known() {
    for version in BOTH {
        let mut bench = Bench::up(version);
        bench.session.take_facts_changed();
        let down = Port { state: PORT_STATE_LINK_DOWN, ..port(1) };
        bench.hear(version, Body::PortStatus(PortStatus { reason: PORT_MODIFIED, port: down })).unwrap();
        bench.event(0, |event| {
            let Event::PortStatus(status) = event else { panic!("{event:?}") };
            let facts = status.port.facts();
            assert_eq!((status.reason, facts.port_no, facts.live), (PORT_MODIFIED, PortNo(1), false));
            assert!(facts.administratively_up);
        });
        assert!(bench.session.take_facts_changed());
        assert!(!bench.session.ports().next().unwrap().facts().live);
    }
}

#[test]
fn events_are_numbered_upwards_even_through_a_reconnect() {
    let numbers = |bench: &Bench| -> Vec<u64> {
        bench.events.iter().map(|event| Frame::read(event).unwrap().header.sequence.get()).collect()
    };
    let status = |bench: &mut Bench| {
        let status = PortStatus { reason: PORT_MODIFIED, port: port(1) };
        bench.hear(Version::V1_3, Body::PortStatus(status)).unwrap();
    };
    let mut first = Bench::up(Version::V1_3);
    status(&mut first);
    status(&mut first);
    let mut second = Bench::up(Version::V1_3);
    second.session.sequence = Session::new(&SouthboundConfig::default(), 1).sequence;
    status(&mut second);
    let all = [numbers(&first), numbers(&second)].concat();
    assert!(all.is_sorted_by(|before, after| before < after), "{all:?}");
}

#[test]
fn packet_ins_of_a_switch_that_has_closed_its_end_are_passed_over_and_all_else_is_heard() {
    let mut bench = Bench::up(Version::V1_0);
    bench.session.on_peer_closed();
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 5,
        reason: 0,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(2)),
        data: b"frame".to_vec(),
    };
    bench.hear(Version::V1_0, Body::PacketIn(packet)).unwrap();
    assert_eq!((bench.session.counters().late_packet_ins, bench.events.len()), (1, 0));
    bench.hear(Version::V1_0, Body::PortStatus(PortStatus { reason: 2, port: port(2) })).unwrap();
    assert_eq!(bench.events.len(), 1);
}

#[test]
fn what_the_switch_says_that_it_is_is_kept() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap();
    let asked = bench.said_whole()[2].xid;
    bench.hear(Version::V1_3, port_desc(0, Vec::new())).unwrap();
    bench.turn(|session, turn| session.admit(turn));
    let desc = SwitchDesc { sw_desc: "9.9".to_owned(), ..SwitchDesc::default() };
    let reply = MultipartReply { flags: 0, body: ReplyBody::Desc(desc.clone()) };
    bench.hear_as(Version::V1_3, asked, Body::MultipartReply(reply)).unwrap();
    assert_eq!((bench.session.desc(), bench.to_zones.len()), (Some(&desc), 0));
}
