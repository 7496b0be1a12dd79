//! Hello, features, echo, barrier, and messages that are not requests (1.3.5, 6.3.1, 7.3.1, 7.5; 1.0, 5.3.1, 5.5).

use super::dsl::*;
use crate::Switch;
use crate::has;
use flow::DatapathId;
use openflow::message::*;
use openflow::{Body, Message, Version};
use software_switch::{Effects, SwitchOptions, Versions};
use std::time::Duration;

/// The answers of a new switch to a first message, and whether it ends the connection.
fn first(versions: Versions, version: Version, body: Body) -> (Vec<Body>, bool) {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions { versions, ..Default::default() });
    let mut effects = Effects::default();
    switch.on_connected(C0, &mut effects);
    effects.messages.clear();
    switch.on_message(C0, &Message { version, xid: 3, body }, Duration::ZERO, &mut effects);
    let answers = effects.messages.into_iter().map(|(_, message)| message.body).collect();
    (answers, !effects.close.is_empty())
}

fn hello(bitmap: Option<u32>) -> Body {
    let elements = bitmap.map(|bits| HelloElement::VersionBitmap(vec![bits])).into_iter().collect();
    Body::Hello(Hello { elements })
}

#[test]
fn a_switch_says_hello_first_in_its_highest_version() {
    if !has(Part::OneVersion) {
        return;
    }
    for (versions, expected) in [(V10, Version::V1_0), (V13, Version::V1_3), (Versions::Both, Version::V1_3)]
    {
        let options = SwitchOptions { versions, ..Default::default() };
        let mut switch = Switch::new(DatapathId(1), "s1", options);
        let mut effects = Effects::default();
        switch.on_connected(C0, &mut effects);
        let [(C0, Message { version, body: Body::Hello(_), .. })] = &effects.messages[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(*version, expected);
    }
}

#[test]
fn without_a_version_in_common_hello_fails_with_a_sentence() {
    if !has(Part::OneVersion) {
        return;
    }
    for (versions, version, bitmap) in
        [(V13, Version::V1_0, None), (V13, Version::V1_3, Some(0b10)), (V10, Version(0), None)]
    {
        let (answers, ends) = first(versions, version, hello(bitmap));
        let [Body::Error(error)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((error.kind, error.code, ends), (0, 0, true));
        assert!(std::str::from_utf8(&error.data).is_ok_and(|text| text.contains("speaks")));
    }
}

#[test]
fn what_comes_before_hello_ends_the_connection() {
    for body in [Body::EchoRequest(vec![]), Body::FeaturesRequest, rule(1).body()] {
        assert_eq!(first(Versions::Both, Version::V1_3, body), (vec![], true));
    }
}

#[test]
fn a_second_hello_changes_nothing() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.say(hello(None)), []);
        assert_eq!(bench.switch.version(C0), Some(bench.version));
    }
}

#[test]
fn a_message_of_a_version_that_was_not_agreed_on_is_refused() {
    let mut bench = Bench::with(SwitchOptions { versions: Versions::Both, ..Default::default() });
    bench.version = Version::V1_0;
    assert_eq!(bench.refusal(Body::EchoRequest(vec![])), Some((1, 0)));
}

#[test]
fn an_echo_comes_back_with_what_it_carried() {
    for versions in [V10, V13] {
        for payload in [vec![], vec![7; 1], vec![9; 60_000]] {
            let mut bench = Bench::new(versions);
            assert_eq!(bench.say(Body::EchoRequest(payload.clone())), [Body::EchoReply(payload)]);
        }
    }
}

#[test]
fn an_echo_reply_that_nobody_asked_for_is_taken_in_silence() {
    for versions in [V10, V13] {
        assert_eq!(Bench::new(versions).say(Body::EchoReply(b"x".to_vec())), []);
    }
}

#[test]
fn an_error_of_the_controller_is_taken_in_silence() {
    for versions in [V10, V13] {
        let error = ErrorMessage { kind: 1, code: 1, experimenter: None, data: vec![] };
        assert_eq!(Bench::new(versions).say(Body::Error(error)), []);
    }
}

#[test]
fn messages_that_only_a_switch_sends_are_refused() {
    for versions in [V10, V13] {
        for body in [Body::BarrierReply, Body::GetConfigReply(SwitchConfig { flags: 0, miss_send_len: 0 })] {
            assert_eq!(Bench::new(versions).refusal(body), Some((1, 1)));
        }
    }
}

#[test]
fn an_experimenters_message_is_refused() {
    for (versions, exp_type) in [(V10, None), (V13, Some(3))] {
        let body = Body::Experimenter(Experimenter { experimenter: 0x2320, exp_type, data: vec![] });
        assert_eq!(Bench::new(versions).refusal(body), Some((1, 3)), "{versions:?}");
    }
}

#[test]
fn an_experimenters_statistics_are_refused() {
    for (versions, exp_type) in [(V10, None), (V13, Some(3))] {
        let body = ExperimenterStats { experimenter: 0x2320, exp_type, data: vec![] };
        let refusal = Bench::new(versions).refusal(multipart(RequestBody::Experimenter(body)));
        assert_eq!(refusal, Some((1, 3)), "{versions:?}");
    }
}

#[test]
fn a_request_in_parts_that_has_none_is_refused() {
    let request = MultipartRequest { flags: MULTIPART_MORE, body: RequestBody::Desc };
    assert_eq!(Bench::new(V13).refusal(Body::MultipartRequest(request)), Some((1, 13)));
}

#[test]
fn a_barrier_comes_after_all_that_went_before() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.say(rule(1).output("2").body());
        assert_eq!(bench.say(Body::BarrierRequest), [Body::BarrierReply]);
        assert_eq!(bench.arrive(1, &ping()).0, "2");
    }
}

#[test]
fn features_name_the_datapath_its_tables_and_its_buffers() {
    if !has(Part::Buffers) {
        return;
    }
    for (versions, tables) in [(V10, 1), (V13, 9)] {
        let options = SwitchOptions { versions, n_buffers: 5, n_tables: 9, ..Default::default() };
        let answers = Bench::with(options).say(Body::FeaturesRequest);
        let [Body::FeaturesReply(features)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((features.datapath_id, features.n_tables, features.n_buffers), (DatapathId(7), tables, 5));
        assert_eq!(features.auxiliary_id, 0);
    }
}

#[test]
fn ports_are_told_in_features_by_1_0_and_apart_by_1_3() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let numbers: Vec<u32> = bench.ports().iter().map(|port| port.port_no.0).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
    }
    let answers = Bench::new(V13).say(Body::FeaturesRequest);
    assert!(matches!(&answers[..], [Body::FeaturesReply(features)] if features.ports.is_empty()));
}

/// The bytes of the message that an error repeats.
fn repeated(answers: &[Vec<u8>]) -> &[u8] {
    let [error] = answers else { panic!("{answers:?}") };
    assert_eq!((error[1], &error[4..8]), (1, &42u32.to_be_bytes()[..]), "an error, with the request's xid");
    &error[12..]
}

#[test]
fn an_error_repeats_all_of_what_it_refuses() {
    for versions in [V10, V13] {
        for outputs in [0, 40, 3_000] {
            let mut bench = Bench::new(versions);
            let actions = [vec![output("2"); outputs], vec![output("TABLE")]].concat();
            let bytes = bench.written(rule(1).apply(&actions).body());
            assert_eq!(repeated(&bench.hear(&bytes)), bytes, "{versions:?}, {outputs} outputs");
            let said = bench.say(rule(1).apply(&actions).body());
            assert!(
                matches!(&said[..], [Body::Error(error)] if error.data == bytes),
                "of what came as no bytes too"
            );
        }
    }
}

#[test]
fn an_error_repeats_what_was_sent_and_not_what_it_means() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let mut bytes = bench.written(rule(1).output("TABLE").body());
        // In 1.0 a value under a wildcard, in 1.3 padding. Neither has a meaning, and the encoder would not write
        // either one.
        let unused = if versions == V10 { 20 } else { 46 };
        bytes[unused] = 0xa5;
        let again = bench.written(Message::decode(&bytes).unwrap().body);
        assert_ne!(bytes, again);
        assert_eq!(repeated(&bench.hear(&bytes)), bytes, "{versions:?}");
    }
}

#[test]
fn an_error_of_the_longest_message_repeats_what_fits() {
    let mut bench = Bench::new(V13);
    let exp = Experimenter { experimenter: 1, exp_type: Some(2), data: vec![7; 65_519] };
    let bytes = bench.written(Body::Experimenter(exp));
    assert_eq!(bytes.len(), 65_535);
    assert_eq!(repeated(&bench.hear(&bytes)), &bytes[..65_523]);
}
