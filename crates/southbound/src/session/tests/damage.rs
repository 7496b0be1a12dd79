//! A connected switch that sends forbidden messages.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const BAD_REQUEST: u16 = 1;
const BAD_TYPE: u16 = 1;
const BAD_LEN: u16 = 6;

/// A message with these bytes after the header is dropped with this error, and the session continues.
fn check(version: u8, kind: u8, body: &[u8], error: (u16, u16), place: &str) {
    let mut bench = Bench::up(Version(version));
    let mut message = header(version, kind, 8 + body.len() as u16, 9);
    message.extend_from_slice(body);
    assert_eq!(bench.hear_bytes(&message), Ok(Step::On), "type {kind}");
    assert_eq!(bench.complained(), error, "type {kind}");
    assert!(bench.lines[0].contains(place), "{}", bench.lines[0]);
    assert_eq!((bench.session.counters().damaged, bench.events.len()), (1, 0));
    bench.hear(Version(version), Body::EchoRequest(vec![1])).unwrap();
    assert_eq!(bench.said(), [Body::EchoReply(vec![1])]);
}

#[test]
fn truncated_bodies_are_dropped_and_the_session_goes_on() {
    check(4, 10, &[], (BAD_REQUEST, BAD_LEN), "OFPT_PACKET_IN Some((\"buffer_id\", 8))");
    check(1, 10, &[0; 9], (BAD_REQUEST, BAD_LEN), "OFPT_PACKET_IN");
    check(4, 11, &[0; 30], (BAD_REQUEST, BAD_LEN), "OFPT_FLOW_REMOVED");
    check(1, 11, &[0; 79], (BAD_REQUEST, BAD_LEN), "OFPT_FLOW_REMOVED");
    check(4, 12, &[0; 71], (BAD_REQUEST, BAD_LEN), "OFPT_PORT_STATUS");
    check(4, 19, &[0; 3], (BAD_REQUEST, BAD_LEN), "OFPT_MULTIPART_REPLY Some((\"type\", 8))");
    check(1, 17, &[0; 3], (BAD_REQUEST, BAD_LEN), "OFPT_STATS_REPLY Some((\"type\", 8))");
}

#[test]
fn a_packet_in_that_does_not_say_its_port_is_dropped() {
    // No field in the match.
    let mut body = vec![0; 16];
    body.extend([0, 1, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    check(4, 10, &body, (4, 6), "in_port");
}

#[test]
fn an_unknown_type_and_one_that_no_switch_sends_are_dropped() {
    check(4, 99, &[], (BAD_REQUEST, BAD_TYPE), "unknown type Some((\"type\", 1))");
    check(1, 20, &[], (BAD_REQUEST, BAD_TYPE), "OFPT_QUEUE_GET_CONFIG_REQUEST");
    check(4, 14, &[0; 48], (BAD_REQUEST, BAD_TYPE), "OFPT_FLOW_MOD");
    check(4, 5, &[], (BAD_REQUEST, BAD_TYPE), "OFPT_FEATURES_REQUEST");
}

#[test]
fn an_error_that_is_damaged_is_not_answered_by_an_error() {
    let mut bench = Bench::up(Version::V1_3);
    bench.hear_bytes(&header(4, 1, 8, 9)).unwrap();
    assert_eq!((bench.said(), bench.session.counters().damaged), (vec![], 1));
}

#[test]
fn an_error_holds_the_first_bytes_of_what_it_answers_as_they_came() {
    for (version, length) in [(1, 8), (4, 9), (1, 64), (4, 200)] {
        let mut bench = Bench::up(Version(version));
        let mut message = header(version, 99, length, 0xfeed);
        message.extend((8..length).map(|number| number as u8));
        bench.hear_bytes(&message).unwrap();
        let [Message { xid: 0xfeed, body: Body::Error(error), .. }] = &bench.said_whole()[..] else {
            panic!()
        };
        assert_eq!(error.data, message[..message.len().min(ERROR_DATA_LEN)]);
    }
}

#[test]
fn a_length_below_eight_ends_the_session() {
    let mut bench = Bench::up(Version::V1_3);
    let end = bench.hear_bytes(&header(4, 10, 7, 9)).unwrap_err();
    assert_eq!(end.place, Some(("length", 2)));
    assert_eq!(bench.complained(), (BAD_REQUEST, BAD_LEN));
}

#[test]
fn another_version_than_was_agreed_on_ends_the_session() {
    let mut bench = Bench::up(Version::V1_3);
    let end = bench.hear_bytes(&header(1, 10, 8, 9)).unwrap_err();
    assert_eq!(end.place, Some(("version", 0)));
    assert_eq!(bench.complained(), (BAD_REQUEST, 0));
}

#[test]
fn a_flood_of_rubbish_is_answered_a_little_and_then_ended() {
    let mut bench = Bench::up(Version::V1_3);
    for _ in 0..MAX_DAMAGED {
        assert_eq!(bench.hear_bytes(&header(4, 99, 8, 9)), Ok(Step::On));
    }
    assert_eq!(bench.said().len(), ERRORS_PER_SECOND as usize);
    let end = bench.hear_bytes(&header(4, 99, 8, 9)).unwrap_err();
    assert!(end.reason.starts_with("more than 64 malformed messages within a minute"), "{end}");
}

#[test]
fn a_little_rubbish_now_and_then_is_lived_with() {
    let mut bench = Bench::up(Version::V1_3);
    for minute in 0..100 {
        bench.now_ms = minute * DAMAGE_WINDOW_MS;
        for _ in 0..MAX_DAMAGED {
            assert_eq!(bench.hear_bytes(&header(4, 99, 8, 9)), Ok(Step::On));
        }
    }
}

#[test]
fn answers_to_nothing_are_counted_and_of_no_consequence() {
    let mut bench = Bench::up(Version::V1_3);
    bench.hear(Version::V1_3, Body::BarrierReply).unwrap();
    bench.hear(Version::V1_3, Body::EchoReply(Vec::new())).unwrap();
    let tables = MultipartReply { flags: MULTIPART_MORE, body: ReplyBody::Table(Vec::new()) };
    bench.hear(Version::V1_3, Body::MultipartReply(tables)).unwrap();
    assert_eq!(bench.session.counters().unasked, 3);
    assert_eq!((bench.events.len(), bench.to_zones.len(), bench.said()), (0, 0, vec![]));
}

#[test]
fn an_experimenters_message_is_an_event_of_either_version() {
    let check = |version: u8, body: &[u8], expected: Option<(u32, u32, &[u8])>| {
        let mut bench = Bench::up(Version(version));
        let mut message = header(version, 4, 8 + body.len() as u16, 9);
        message.extend(body);
        assert_eq!(bench.hear_bytes(&message), Ok(Step::On));
        let Some((experimenter, exp_type, data)) = expected else {
            assert_eq!(bench.events.len(), 0, "{body:?}");
            return assert_eq!((bench.session.counters().unasked, bench.said()), (1, vec![]));
        };
        let datapath = bench.session.identity().datapath;
        let message = abi::event::Experimenter { datapath, experimenter, exp_type, data };
        bench.event(0, |event| {
            assert!(matches!(event, Event::Experimenter(it) if it == message), "{event:?}")
        });
    };
    check(4, &[0, 0, 0x23, 0x20, 0, 0, 0, 7, 1, 2], Some((0x2320, 7, &[1, 2])));
    check(1, &[0, 0, 0x23, 0x20, 0, 0, 0, 7], Some((0x2320, 7, &[])));
    check(1, &[0, 0, 0x23, 0x20, 1], Some((0x2320, 0, &[])));
    check(4, &[0, 0, 0x23, 0x20], None);
    check(1, &[0, 0, 0x23], None);
}

/// Any messages of any type, all of one supported version.
fn anything() -> impl Strategy<Value = (Version, Vec<Vec<u8>>)> {
    let bodies = vec((0u8..32, vec(any::<u8>(), 0..300)), 1..40);
    (prop_oneof![Just(Version::V1_0), Just(Version::V1_3)], bodies).prop_map(|(version, bodies)| {
        let message =
            |(kind, body): (u8, Vec<u8>)| [header(version.0, kind, 8 + body.len() as u16, 5), body].concat();
        (version, bodies.into_iter().map(message).collect())
    })
}

proptest! {
    /// For any input in any state: no panic, no event of a switch that is not up, little output for each input message,
    /// and complete output messages.
    #[test]
    fn no_message_breaks_a_session((version, messages) in anything(), up in any::<bool>()) {
        let mut bench = if up { Bench::up(version) } else { Bench::opened() };
        for message in &messages {
            match bench.hear_bytes(message) {
                Ok(Step::On) => {}
                Ok(Step::Identified) => bench.turn(|session, turn| session.admit(turn)),
                Err(end) => {
                    prop_assert!(!end.reason.is_empty());
                    break;
                }
            }
            prop_assert!(bench.events.is_empty() || bench.session.state() == State::Up);
        }
        let heard: usize = messages.iter().map(Vec::len).sum();
        prop_assert!(bench.out.len() <= heard + messages.len() * (ERROR_DATA_LEN + 12 + 200));
        bench.said();
        for event in &bench.events {
            prop_assert!(Event::read(&Frame::read(event).unwrap()).is_ok());
        }
    }
}
