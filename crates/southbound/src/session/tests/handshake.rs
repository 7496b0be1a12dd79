//! From the first byte to a connected switch, and peers that fail before.

use super::*;
use crate::fault::Fault;

const INCOMPATIBLE: (u16, u16) = (0, 0);
const NOT_PERMITTED: (u16, u16) = (0, 1);
const BAD_REQUEST: u16 = 1;

#[test]
fn a_hello_that_never_comes_ends_the_session() {
    let mut bench = Bench::opened();
    assert_eq!(bench.tick(9_999), Ok(()));
    let end = bench.tick(10_000).unwrap_err();
    assert_eq!(end.to_string(), "OFPT_HELLO did not come within 10000 ms");
}

#[test]
fn features_and_ports_that_never_come_end_the_session() {
    let mut bench = Bench::opened();
    bench.now_ms = 5_000;
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    assert_eq!(bench.tick(14_999), Ok(()));
    assert!(bench.tick(15_000).unwrap_err().reason.starts_with("OFPT_FEATURES_REPLY did not come"));

    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap();
    // More and more ports, and never the last part.
    bench.hear(Version::V1_3, port_desc(MULTIPART_MORE, vec![port(1)])).unwrap();
    assert!(bench.tick(10_000).unwrap_err().reason.starts_with("OFPMP_PORT_DESC did not come"));
}

#[test]
fn a_message_before_hello_is_answered_by_an_error_and_ends_the_session() {
    let mut bench = Bench::opened();
    let end = bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap_err();
    assert_eq!((end.fault, end.place), (Fault::Switch, Some(("type", 1))));
    assert_eq!(bench.complained(), (BAD_REQUEST, 1));
}

#[test]
fn a_beginning_that_is_no_hello_is_not_waited_for() {
    let mut bench = Bench::opened();
    let refused = bench.turn(|session, turn| session.on_partial(b"GET / HTTP/1.1\r\n", turn));
    assert_eq!(refused.unwrap_err().place, Some(("type", 1)));
    assert_eq!(bench.complained().0, BAD_REQUEST);
}

#[test]
fn an_oversized_hello_is_not_waited_for() {
    let mut bench = Bench::opened();
    let beginning = header(4, 0, 0xffff, 1);
    let refused = bench.turn(|session, turn| session.on_partial(&beginning, turn));
    assert_eq!(refused.unwrap_err().place, Some(("length", 2)));
    assert_eq!(bench.complained(), (BAD_REQUEST, 6));
}

#[test]
fn an_error_before_hello_is_the_reason_and_is_not_answered() {
    let mut bench = Bench::opened();
    let error = ErrorMessage { kind: 0, code: 0, experimenter: None, data: b"only 1.5 here".to_vec() };
    let end = bench.hear(Version::V1_3, Body::Error(error)).unwrap_err();
    assert!(end.reason.contains("only 1.5 here"), "{end}");
    assert_eq!(bench.said(), []);
}

#[test]
fn a_version_that_is_not_spoken_is_answered_with_a_sentence() {
    let mut bench = Bench::opened();
    let end = bench.hear_bytes(&header(3, 0, 8, 1)).unwrap_err();
    let [Body::Error(error)] = &bench.said()[..] else { panic!("no error") };
    assert_eq!((error.kind, error.code), INCOMPATIBLE);
    assert_eq!(String::from_utf8_lossy(&error.data), end.reason);
}

#[test]
fn a_version_that_is_switched_off_is_not_spoken() {
    let versions = Versions { v1_0: false, v1_3: true };
    let mut bench = Bench::with(&SouthboundConfig { versions, ..Default::default() });
    bench.said();
    assert!(bench.hear(Version::V1_0, Body::Hello(Hello::default())).is_err());
    assert_eq!(bench.complained(), INCOMPATIBLE);
}

#[test]
fn features_that_cannot_be_read_end_the_session() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.said();
    let mut truncated = header(4, 6, 12, 1);
    truncated.extend([0; 4]);
    let end = bench.hear_bytes(&truncated).unwrap_err();
    assert_eq!(end.place, Some(("datapath_id", 8)));
    assert_eq!(bench.complained(), (BAD_REQUEST, 6));
}

#[test]
fn a_refused_request_for_features_ends_the_session() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    let asked = bench.said_whole()[0].xid;
    let error = ErrorMessage { kind: 1, code: 5, experimenter: None, data: Vec::new() };
    let end = bench.hear_as(Version::V1_3, asked, Body::Error(error)).unwrap_err();
    assert_eq!(end.reason, "the switch ended the handshake with OFPET_BAD_REQUEST, OFPBRC_EPERM");
}

#[test]
fn an_auxiliary_connection_is_refused_with_the_reason() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.said();
    let auxiliary = FeaturesReply { auxiliary_id: 1, ..features(Version::V1_3) };
    let end = bench.hear(Version::V1_3, Body::FeaturesReply(auxiliary)).unwrap_err();
    assert_eq!(end.fault, Fault::Operator);
    assert_eq!(bench.complained(), NOT_PERMITTED);
}

#[test]
fn a_datapath_id_that_is_taken_is_refused_with_a_sentence() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_0, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_0, Body::FeaturesReply(features(Version::V1_0))).unwrap();
    bench.said();
    bench.turn(|session, turn| session.refuse(Fault::Operator, "taken".to_owned(), turn));
    assert_eq!(bench.complained(), NOT_PERMITTED);
    assert!(bench.events.is_empty());
}

#[test]
fn more_ports_than_can_be_known_are_left_out() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap();
    for first in (1..=5_000).step_by(1_000) {
        let ports = (first..first + 1_000).map(port).collect();
        bench.hear(Version::V1_3, port_desc(MULTIPART_MORE, ports)).unwrap();
    }
    assert_eq!(bench.hear(Version::V1_3, port_desc(0, Vec::new())), Ok(Step::Identified));
    assert_eq!(bench.session.ports().len(), MAX_PORTS);
    bench.turn(|session, turn| session.admit(turn));
    bench.event(0, |event| assert!(matches!(event, Event::SwitchUp(up) if up.ports.len() == MAX_PORTS)));
}

#[test]
fn a_packet_in_before_the_switch_is_up_is_dropped_and_counted() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear_bytes(&header(4, 10, 8, 1)).unwrap();
    assert_eq!((bench.session.counters().early_packet_ins, bench.events.len()), (1, 0));
}

#[test]
fn a_switch_is_asked_for_the_first_bytes_of_packets_if_the_operator_wants_that() {
    let mut bench = Bench::with(&SouthboundConfig { miss_send_len: 128, ..Default::default() });
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap();
    let wanted = Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 128 });
    assert!(bench.said().contains(&wanted));
}

#[test]
fn a_1_3_switch_comes_up_with_its_ports() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    assert_eq!(bench.said(), [Body::FeaturesRequest]);
    assert_eq!(bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))), Ok(Step::On));
    let asked: Vec<Body> = [RequestBody::Desc, RequestBody::PortDesc]
        .map(|body| Body::MultipartRequest(MultipartRequest { flags: 0, body }))
        .into();
    let said = bench.said();
    assert_eq!(said[0], Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 0xffff }));
    assert_eq!(said[1..], asked);
    bench.hear(Version::V1_3, port_desc(MULTIPART_MORE, vec![port(1)])).unwrap();
    assert_eq!(bench.hear(Version::V1_3, port_desc(0, vec![port(2)])), Ok(Step::Identified));
    bench.turn(|session, turn| session.admit(turn));
    bench.event(0, |event| {
        let Event::SwitchUp(up) = event else { panic!("{event:?}") };
        assert_eq!((up.datapath, up.n_buffers, up.n_tables), (DATAPATH, 256, 254));
        assert_eq!(up.openflow, OpenFlowVersion::V1_3);
        let facts = up.ports[1].facts();
        assert_eq!((facts.port_no, facts.live, facts.curr_speed_kbps), (PortNo(2), true, 10_000_000));
        assert_eq!(facts.name, "s1-eth2");
    });
}

#[test]
fn a_1_0_switch_comes_up_with_the_ports_of_its_features() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_0, Body::Hello(Hello::default())).unwrap();
    let features = Body::FeaturesReply(features(Version::V1_0));
    assert_eq!(bench.hear(Version::V1_0, features), Ok(Step::Identified));
    assert!(bench.said_whole().iter().all(|message| message.version == Version::V1_0));
    bench.turn(|session, turn| session.admit(turn));
    bench.event(0, |event| {
        let Event::SwitchUp(up) = event else { panic!("{event:?}") };
        assert_eq!((up.ports.len(), up.openflow), (2, OpenFlowVersion::V1_0));
    });
}

#[test]
fn a_port_that_changes_during_the_handshake_is_known_as_it_is() {
    let mut bench = Bench::opened();
    bench.hear(Version::V1_3, Body::Hello(Hello::default())).unwrap();
    bench.hear(Version::V1_3, Body::FeaturesReply(features(Version::V1_3))).unwrap();
    bench.hear(Version::V1_3, port_desc(MULTIPART_MORE, vec![port(1), port(2)])).unwrap();
    let gone = PortStatus { reason: PORT_DELETED, port: port(1) };
    bench.hear(Version::V1_3, Body::PortStatus(gone)).unwrap();
    bench.hear(Version::V1_3, port_desc(0, vec![port(3)])).unwrap();
    let known: Vec<PortNo> = bench.session.ports().map(PortRecord::port_no).collect();
    assert_eq!(known, [PortNo(2), PortNo(3)]);
}
