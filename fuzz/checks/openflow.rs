//! What must hold for any bytes, decoder by decoder. The fuzz targets call it with what they find, and a test of the openflow
//! crate with what was kept (`corpus/<target>`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use flow::BadInput;
use flow::canonical::{
    read_actions, read_instructions, read_match, write_actions, write_instructions, write_match,
};
use openflow::error::BAD_MATCH_FIELD;
use openflow::view::{FlowModView, FlowRemovedView, PacketInView, PacketOutView};
use openflow::{Body, HEADER_LEN, Header, Message, Version, frame_len};

/// The decoder of this name: that of its fuzz target.
pub fn check(target: &str) -> Option<fn(&[u8])> {
    Some(match target {
        "message_v10" => message_v10,
        "message_v13" => message_v13,
        "hello" => hello,
        "views" => views,
        "stream" => stream,
        "oxm_match" => oxm_match,
        "actions" => actions,
        "instructions" => instructions,
        "json" => json,
        "text" => text,
        _ => return None,
    })
}

/// A message of 1.0: type, transaction id and body are the input's, the version and the length are right.
pub fn message_v10(bytes: &[u8]) {
    with_header(Version::V1_0, bytes, message);
}

/// A message of 1.3.
pub fn message_v13(bytes: &[u8]) {
    with_header(Version::V1_3, bytes, message);
}

/// A hello, in whichever version the first byte says.
pub fn hello(bytes: &[u8]) {
    let Some((version, rest)) = bytes.split_first() else { return };
    let as_hello = [&[0; 1], rest].concat();
    with_header(Version(*version), &as_hello, message);
}

/// The four hot messages, in both versions: views say what decoding says.
pub fn views(bytes: &[u8]) {
    for version in [Version::V1_0, Version::V1_3] {
        for kind in [10, 11, 13, 14] {
            with_header(version, &[&[kind], bytes].concat(), |bytes| {
                let read = Message::decode(bytes);
                same_errors(kind, bytes, read.as_ref().err());
                if let Ok(message) = read {
                    same_view(bytes, &message);
                }
            });
        }
    }
}

/// A stream: it is split into messages up to the first malformed length, and each message is read.
pub fn stream(mut bytes: &[u8]) {
    while let Some(Ok(length)) = frame_len(bytes) {
        assert!(length >= HEADER_LEN);
        let Some((one, rest)) = bytes.split_at_checked(length) else { break };
        message(one);
        bytes = rest;
    }
}

/// A run of OXM TLVs.
pub fn oxm_match(bytes: &[u8]) {
    let Ok(matching) = read_match(bytes) else { return };
    let mut written = Vec::new();
    write_match(&matching, &mut written);
    assert_eq!(written, bytes);
    // 1.0 says it, or refuses it whole.
    let mut of_v10 = Vec::new();
    match openflow::v10::write_match_from_canonical(bytes, &mut of_v10) {
        Ok(()) => assert_eq!(of_v10.len(), 40),
        Err(_) => assert!(of_v10.is_empty()),
    }
}

/// A list of actions.
pub fn actions(bytes: &[u8]) {
    let Ok(list) = read_actions(bytes) else { return };
    let mut written = Vec::new();
    write_actions(&list, &mut written).expect("what was read can be written");
    assert_eq!(read_actions(&written), Ok(list));
    let mut of_v10 = Vec::new();
    match openflow::v10::write_actions_from_canonical(bytes, false, &mut of_v10) {
        Ok(()) => assert!(of_v10.len() <= bytes.len() + bytes.len() / 2),
        Err(_) => assert!(of_v10.is_empty()),
    }
}

/// A list of instructions.
pub fn instructions(bytes: &[u8]) {
    let Ok(list) = read_instructions(bytes) else { return };
    let mut written = Vec::new();
    write_instructions(&list, &mut written).expect("what was read can be written");
    assert_eq!(read_instructions(&written), Ok(list));
}

/// A message in JSON. What is read and can be written comes back from its bytes by way of JSON.
pub fn json(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    let Ok(message) = openflow_text::json::from_json(&value) else { return };
    let Some(written) = encoded(&message) else { return };
    let read = Message::decode(&written).expect("what was written can be read");
    let again =
        openflow_text::json::from_json(&openflow_text::json::to_json(&read)).expect("our own JSON is read");
    assert_eq!(encoded(&again), Some(written), "{value}");
}

/// Open vSwitch's text; the first byte chooses the version. What is refused is refused within the text.
pub fn text(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let version = if first & 1 == 0 { Version::V1_0 } else { Version::V1_3 };
    let Ok(typed) = std::str::from_utf8(rest) else { return };
    match openflow_text::text::parse(typed, version, 7) {
        Err(refused) => assert!(refused.offset <= typed.len(), "{refused}"),
        Ok(message) => {
            let Some(written) = encoded(&message) else { return };
            let read = Message::decode(&written).expect("what was written can be read");
            openflow_text::text::to_text(&read);
        }
    }
}

/// The bytes of a message, if its version can express it.
fn encoded(message: &Message) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).ok().map(|()| bytes)
}

/// Makes a message of a type, a transaction id and a body, as far as it can be one.
fn with_header(version: Version, bytes: &[u8], check: impl Fn(&[u8])) {
    let Some((kind, body)) = bytes.split_first() else { return };
    let Ok(length) = u16::try_from(HEADER_LEN + body.len()) else { return };
    let header = Header { version, kind: *kind, length, xid: 0x0a0b_0c0d };
    check(&[&header.to_bytes(), body].concat());
}

/// What is read can be written, and reads as the same. What is refused is refused within the input.
pub fn message(bytes: &[u8]) {
    let message = match Message::decode(bytes) {
        Ok(message) => message,
        // What is missing may lie behind the end: a length of an item that was cut off.
        Err(refused) => return assert!(refused.offset <= bytes.len() + 3, "{refused}"),
    };
    let mut written = Vec::new();
    message.encode(&mut written).unwrap_or_else(|refused| panic!("{message:?}: {refused}"));
    assert_eq!(Message::decode(&written), Ok(message));
}

fn same_errors(kind: u8, bytes: &[u8], expected: Option<&BadInput>) {
    let found = match kind {
        10 => PacketInView::read(bytes).err(),
        11 => FlowRemovedView::read(bytes).err(),
        13 => PacketOutView::read(bytes).err(),
        _ => FlowModView::read(bytes).err(),
    };
    // Only the view of a packet-in of 1.3 wants a port in it.
    let found = found.filter(|refused| (refused.field, refused.error) != ("in_port", BAD_MATCH_FIELD));
    assert_eq!(found.as_ref(), expected);
}

fn same_view(bytes: &[u8], message: &Message) {
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    match &message.body {
        Body::PacketIn(packet) => {
            let Ok(view) = PacketInView::read(bytes) else { return };
            write_match(&packet.matching, &mut expected);
            assert_eq!((view.match_tlvs(), view.data), (&expected[..], &packet.data[..]));
        }
        Body::PacketOut(packet) => {
            let view = PacketOutView::read(bytes).expect("decoding accepts it");
            assert_eq!((view.in_port, view.data), (packet.in_port, &packet.data[..]));
        }
        Body::FlowMod(flow_mod) => {
            let view = FlowModView::read(bytes).expect("decoding accepts it");
            write_match(&flow_mod.matching, &mut expected);
            view.write_match_tlvs(&mut found);
            assert_eq!((view.fields, found), (flow_mod.fields(), expected));
        }
        Body::FlowRemoved(removed) => {
            let view = FlowRemovedView::read(bytes).expect("decoding accepts it");
            write_match(&removed.matching, &mut expected);
            view.write_match_tlvs(&mut found);
            assert_eq!((view.removed.cookie, found), (removed.cookie, expected));
        }
        _ => {}
    }
}
