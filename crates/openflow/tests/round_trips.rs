//! What is written is read again as it was, and what is read is written as it was; in both versions, for every type of message.
//! And whatever the bytes are, reading them ends.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod strategy;

use openflow::message::{BundleAdd, BundleControl, FlowRemoved};
use openflow::view::{FlowModView, FlowRemovedView, PacketInView, PacketOutView};
use openflow::{Body, HEADER_LEN, Header, Message, Version, write};
use proptest::prelude::*;
use strategy::{any_message, flow_mod, instructions, match_of_v10, message, port, version};

fn encode(message: &Message) -> Vec<u8> {
    let mut bytes = vec![0xee];
    message.encode(&mut bytes).unwrap();
    // It is appended, and nothing before it is touched.
    assert_eq!(bytes.remove(0), 0xee);
    bytes
}

/// A message of a type that the version has, its body any bytes.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (version(), 0..32u8, any::<u32>(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(
        |(version, kind, xid, body)| {
            let length = (HEADER_LEN + body.len()) as u16;
            [Header { version, kind, length, xid }.to_bytes().to_vec(), body].concat()
        },
    )
}

/// A good message of which some bytes were changed; its length is right.
fn bent() -> impl Strategy<Value = Vec<u8>> {
    (any_message(), prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4)).prop_map(
        |(message, changes)| {
            let mut bytes = encode(&message);
            for (index, byte) in changes {
                let at = index.index(bytes.len());
                if !(2..4).contains(&at) {
                    bytes[at] = byte;
                }
            }
            bytes
        },
    )
}

/// Bytes that are read at all are read into something that is written, and read again as the same.
fn check_any(bytes: &[u8]) {
    let read = Message::decode(bytes);
    check_views(bytes, &read);
    let Ok(message) = read else { return };
    let mut again = Vec::new();
    message.encode(&mut again).unwrap_or_else(|refused| panic!("{message:?}: {refused}"));
    assert_eq!(Message::decode(&again).as_ref(), Ok(&message));
}

/// Views accept what decoding accepts and say the same.
fn check_views(bytes: &[u8], read: &Result<Message, flow::BadInput>) {
    let Some(kind) = bytes.get(1) else { return };
    match (kind, read) {
        (10, Err(refused)) => assert_eq!(PacketInView::read(bytes).unwrap_err(), *refused),
        (11, Err(refused)) => assert_eq!(FlowRemovedView::read(bytes).unwrap_err(), *refused),
        (13, Err(refused)) => assert_eq!(PacketOutView::read(bytes).unwrap_err(), *refused),
        (14, Err(refused)) => assert_eq!(FlowModView::read(bytes).unwrap_err(), *refused),
        (_, Err(_)) => {}
        (_, Ok(message)) => check_view(bytes, message),
    }
}

fn check_view(bytes: &[u8], message: &Message) {
    let tlvs_of = |matching| {
        let mut tlvs = Vec::new();
        flow::canonical::write_match(matching, &mut tlvs);
        tlvs
    };
    let mut tlvs = Vec::new();
    match &message.body {
        Body::PacketIn(packet) => match PacketInView::read(bytes) {
            Ok(view) => {
                assert_eq!(view.match_tlvs(), tlvs_of(&packet.matching));
                assert_eq!(
                    (view.buffer_id, view.cookie, view.data),
                    (packet.buffer_id, packet.cookie, &packet.data[..])
                );
                assert_eq!(
                    (view.reason, view.table_id, view.total_len),
                    (packet.reason, packet.table_id, packet.total_len)
                );
                assert_eq!(
                    packet.matching.get(flow::Field::InPort),
                    Some((view.in_port.0.into(), 0xffff_ffff))
                );
            }
            Err(refused) => {
                assert_eq!(refused.field, "in_port");
                assert_eq!(packet.matching.get(flow::Field::InPort), None);
            }
        },
        Body::PacketOut(packet) => {
            let view = PacketOutView::read(bytes).unwrap();
            assert_eq!(
                (view.in_port, view.buffer_id, view.data),
                (packet.in_port, packet.buffer_id, &packet.data[..])
            );
        }
        Body::FlowMod(flow_mod) => {
            let view = FlowModView::read(bytes).unwrap();
            view.write_match_tlvs(&mut tlvs);
            assert_eq!((view.fields, tlvs), (flow_mod.fields(), tlvs_of(&flow_mod.matching)));
        }
        Body::FlowRemoved(removed) => {
            let view = FlowRemovedView::read(bytes).unwrap();
            view.write_match_tlvs(&mut tlvs);
            assert_eq!(tlvs, tlvs_of(&removed.matching));
            assert_eq!(FlowRemoved { matching: removed.matching.clone(), ..view.removed }, *removed);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        check_any(&bytes);
    }

    #[test]
    fn any_body_is_read_or_refused(bytes in damaged()) {
        check_any(&bytes);
    }

    #[test]
    fn a_message_with_bytes_changed_is_read_or_refused(bytes in bent()) {
        check_any(&bytes);
    }

    #[test]
    fn a_message_cut_off_anywhere_is_refused(message in any_message(), end in any::<prop::sample::Index>()) {
        let bytes = encode(&message);
        prop_assert!(Message::decode(&bytes[..end.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_message_of_1_0_is_read_as_it_was_written(message in message(Version::V1_0)) {
        let bytes = encode(&message);
        prop_assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        check_any(&bytes);
        prop_assert_eq!(encode(&Message::decode(&bytes).unwrap()), bytes);
    }

    #[test]
    fn a_message_of_1_3_is_read_as_it_was_written(message in message(Version::V1_3)) {
        let bytes = encode(&message);
        prop_assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        check_any(&bytes);
        prop_assert_eq!(encode(&Message::decode(&bytes).unwrap()), bytes);
    }

    #[test]
    fn a_message_is_refused_in_a_version_that_lacks_it_or_read_back(message in message(Version::V1_3)) {
        let in_1_0 = Message { version: Version::V1_0, ..message };
        let mut bytes = vec![0xee];
        match in_1_0.encode(&mut bytes) {
            Ok(()) => prop_assert!(Message::decode(&bytes[1..]).is_ok()),
            Err(_) => prop_assert_eq!(bytes, vec![0xee]),
        }
    }

    #[test]
    fn a_flow_mod_is_written_from_canonical_bytes_as_from_types(
        message in flow_mod(Version::V1_3),
        matching in match_of_v10(),
        simple in any::<bool>(),
        version in version(),
    ) {
        let Body::FlowMod(mut flow_mod) = message.body else { unreachable!() };
        if simple {
            // As it is, 1.0 can hardly say any: half of them are made such that it may.
            flow_mod = openflow::message::FlowModFields { table_id: 0, cookie_mask: 0, flags: flow_mod.flags & 3, out_group: u32::MAX, ..flow_mod.fields() }
                .with(matching, flow_mod.instructions);
            flow_mod.instructions.retain(|one| matches!(one, flow::Instruction::ApplyActions(_)));
        }
        let (mut tlvs, mut canonical) = (Vec::new(), Vec::new());
        flow::canonical::write_match(&flow_mod.matching, &mut tlvs);
        flow::canonical::write_instructions(&flow_mod.instructions, &mut canonical).unwrap();
        let mut written = vec![0xee];
        let fields = flow_mod.fields();
        let result = write::flow_mod(version, message.xid, &fields, &tlvs, &canonical, &mut written);
        if version == Version::V1_0 && fields.flags & !3 != 0 {
            return Ok(());
        }
        let typed = Message { version, xid: message.xid, body: Body::FlowMod(flow_mod) };
        let mut expected = vec![0xee];
        prop_assert_eq!(result.is_ok(), typed.encode(&mut expected).is_ok());
        prop_assert_eq!(written, expected);
    }

    #[test]
    fn a_packet_out_is_written_from_canonical_bytes_as_from_types(
        version in version(),
        in_port in port(Version::V1_3),
        list in instructions(Version::V1_3),
    ) {
        let actions = list.into_iter().find_map(|one| match one {
            flow::Instruction::ApplyActions(actions) => Some(actions),
            _ => None,
        }).unwrap_or_default();
        let mut canonical = Vec::new();
        flow::canonical::write_actions(&actions, &mut canonical).unwrap();
        let mut written = vec![0xee];
        let result = write::packet_out(version, 5, 6, in_port, &canonical, b"frame", &mut written);
        let body = Body::PacketOut(openflow::message::PacketOut { buffer_id: 6, in_port, actions, data: b"frame".to_vec() });
        let mut expected = vec![0xee];
        prop_assert_eq!(result.is_ok(), Message { version, xid: 5, body }.encode(&mut expected).is_ok());
        prop_assert_eq!(written, expected);
    }

    #[test]
    fn a_bundled_message_is_written_around_another_as_from_types(
        message in message(Version::V1_3).prop_filter("no bundle, hello or error", |m| {
            !matches!(m.body, Body::BundleControl(_) | Body::BundleAdd(_) | Body::Hello(_) | Body::Error(_))
        }),
        bundle_id in any::<u32>(),
        flags in any::<u16>(),
        control in any::<u16>(),
    ) {
        let mut written = vec![0xee];
        let result = write::bundle_add(message.xid, bundle_id, flags, &mut written, |out| message.encode(out));
        let xid = message.xid;
        let add = BundleAdd { bundle_id, flags, message: Box::new(message), properties: vec![] };
        let typed = Message { version: Version::V1_3, xid, body: Body::BundleAdd(add) };
        let mut expected = vec![0xee];
        prop_assert_eq!(result.is_ok(), typed.encode(&mut expected).is_ok());
        write::bundle_control(xid, bundle_id, control, flags, &mut written);
        let control = BundleControl { bundle_id, control, flags, properties: vec![] };
        let control = Message { version: Version::V1_3, xid, body: Body::BundleControl(control) };
        control.encode(&mut expected).unwrap();
        prop_assert_eq!(written, expected);
    }
}

#[test]
fn what_cannot_be_bundled_is_not_written_and_leaves_nothing() {
    let barrier = Message { version: Version::V1_3, xid: 7, body: Body::BarrierRequest };
    let refused = |xid, message: Message| {
        let add = BundleAdd { bundle_id: 1, flags: 0, message: Box::new(message), properties: vec![] };
        let mut bytes = vec![0xee];
        let result = Message { version: Version::V1_3, xid, body: Body::BundleAdd(add) }.encode(&mut bytes);
        assert_eq!(bytes, [0xee]);
        result.unwrap_err().what
    };
    assert_eq!(refused(8, barrier.clone()), "xid");
    assert_eq!(refused(7, Message { version: Version::V1_0, ..barrier.clone() }), "version");
    let control = BundleControl { bundle_id: 1, control: 0, flags: 0, properties: vec![] };
    assert_eq!(refused(7, Message { body: Body::BundleControl(control), ..barrier.clone() }), "type");
    let echo = |length| Message { body: Body::EchoRequest(vec![0; length]), ..barrier.clone() };
    assert_eq!(refused(7, echo(65_504)), "length");
    let mut bytes = vec![0xee];
    let written = write::bundle_add(7, 1, 0, &mut bytes, |out| echo(65_504).encode(out));
    assert_eq!((written.unwrap_err().what, bytes), ("length", vec![0xee]));
    let as_experimenter = openflow::message::Experimenter {
        experimenter: openflow::message::ONF_EXPERIMENTER,
        exp_type: Some(openflow::message::ONF_BUNDLE_ADD),
        data: vec![],
    };
    let message = Message { body: Body::Experimenter(as_experimenter), ..barrier };
    assert_eq!(message.encode(&mut Vec::new()).unwrap_err().what, "exp_type");
}
