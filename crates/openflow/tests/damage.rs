//! What damaged messages are answered with: the place, the field, the OpenFlow error; and that reading them costs no more than
//! their size. In: bytes in hex. Never compares sentences.

#![allow(clippy::unwrap_used, reason = "a test may")]

use openflow::message::{HelloElement, ReplyBody, SwitchDesc};
use openflow::{Body, Message};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// `expected`: type, code, offset, field.
fn check(hex: &str, expected: (u16, u16, usize, &str)) {
    let refused = Message::decode(&bytes(hex)).expect_err(hex);
    let found = (refused.error.kind, refused.error.code, refused.offset, refused.field);
    assert_eq!(found, expected, "{hex}: {refused}");
}

#[test]
fn lengths_that_lie_are_bad_len() {
    check("", (1, 6, 0, "version"));
    check("04 02 0007 00000001", (1, 6, 2, "length"));
    check("04 02 0009 00000001", (1, 6, 2, "length"));
    check("04 02 0008 00000001 ff", (1, 6, 2, "length"));
    check("04 05 000c 00000001 00000000", (1, 6, 8, "length"));
    check("04 09 000b 00000001 000000", (1, 6, 10, "miss_send_len"));
    check("04 18 0008 00000001", (1, 6, 8, "role"));
}

#[test]
fn versions_and_types_that_nobody_speaks_are_refused() {
    check("03 02 0008 00000001", (1, 0, 0, "version"));
    check("00 05 0008 00000001", (1, 0, 0, "version"));
    check("04 1e 0008 00000001", (1, 1, 1, "type"));
    check("01 16 0008 00000001", (1, 1, 1, "type"));
    check("01 18 0018 00000001 00000002 00000000 0000000000000000", (1, 1, 1, "type"));
}

#[test]
fn parts_of_a_hello_that_lie_are_passed_over() {
    let check = |text: &str, elements: &[HelloElement]| {
        let Body::Hello(hello) = Message::decode(&bytes(text)).unwrap().body else { panic!("{text}") };
        assert_eq!(hello.elements, elements, "{text}");
    };
    check("04 00 0010 00000001 0001 0000 00000000", &[]);
    check("04 00 0010 00000001 0001 0009 00000000", &[]);
    check("04 00 0010 00000001 0001 0006 00000000", &[]);
    check("04 00 000b 00000001 0001 00", &[]);
    let whole = HelloElement::VersionBitmap(vec![0x12]);
    check("04 00 0018 00000001 0001 0008 00000012 0001 0000 00000000", std::slice::from_ref(&whole));
    check("04 00 0018 00000001 0001 0006 00000000 0001 0008 00000012", &[whole]);
}

#[test]
fn a_description_without_anything_is_an_empty_one() {
    for text in ["04 13 0010 00000001 0000 0000 00000000", "01 11 000c 00000001 0000 0000"] {
        let Body::MultipartReply(reply) = Message::decode(&bytes(text)).unwrap().body else {
            panic!("{text}")
        };
        assert_eq!(reply.body, ReplyBody::Desc(SwitchDesc::default()));
    }
    check("01 11 000e 00000001 0000 0000 4142", (1, 6, 12, "mfr_desc"));
}

#[test]
fn of_an_icmp_type_or_code_of_1_0_the_lower_eight_bits_count() {
    // A flow mod of 1.0 for IPv4, ICMP, type 0x0108 and code 0xff00: every other field is wildcarded.
    let fields =
        "003fff0f 0000 000000000000 000000000000 0000 00 00 0800 00 01 0000 00000000 00000000 0108 ff00";
    let rest = "0000000000000000 0000 0000 0000 0001 ffffffff ffff 0000";
    let text = format!("01 0e 0048 00000001 {fields} {rest}");
    let Body::FlowMod(flow_mod) = Message::decode(&bytes(&text)).unwrap().body else { panic!("{text}") };
    assert_eq!(flow::text::match_to_string(&flow_mod.matching), "icmp,icmp_type=8,icmp_code=0");
}

#[test]
fn numbers_that_the_protocol_does_not_have_are_refused() {
    // A flow mod of command 5, and one with flag 0x20. A group mod of command 3, and one of type 4. A meter mod of
    // command 3, a role 4, and a multipart of type 14.
    let tail = "ffffffff ffffffff ffffffff 0000 0000 0001 0004 00000000";
    let head = "04 0e 0038 00000001 0000000000000000 0000000000000000";
    check(&format!("{head} 00 05 0000 0000 0000 {tail}"), (5, 6, 25, "command"));
    let tail = "ffffffff ffffffff ffffffff 0020 0000 0001 0004 00000000";
    check(&format!("{head} 00 00 0000 0000 0000 {tail}"), (5, 7, 44, "flags"));
    check("04 0f 0010 00000001 0003 00 00 00000001", (6, 11, 8, "command"));
    check("04 0f 0010 00000001 0000 04 00 00000001", (6, 10, 10, "type"));
    check("04 1d 0010 00000001 0003 0000 00000001", (12, 4, 8, "command"));
    check("04 18 0018 00000001 00000004 00000000 0000000000000000", (11, 2, 8, "role"));
    check("04 12 0010 00000001 000e 0000 00000000", (1, 2, 8, "type"));
    check("04 13 0010 00000001 000e 0000 00000000", (1, 2, 8, "type"));
}

#[test]
fn items_of_no_length_do_not_loop() {
    // A flow entry, a bucket, a band, a table, a property of a table, a queue, each of length 0.
    check("04 13 0018 00000001 0001 0000 00000000 0000 000000000000", (1, 6, 16, "length"));
    check(
        "04 0f 0020 00000001 0000 00 00 00000001 0000 0000 000000000000000000000000",
        (6, 12, 16, "length"),
    );
    check("04 1d 0020 00000001 0000 0000 00000001 0001 0000 000000000000000000000000", (1, 6, 18, "length"));
}

#[test]
fn a_bundle_control_that_is_cut_off_or_has_a_property_without_end_is_refused() {
    check("04 04 0014 00000001 4f4e4600 000008fc 00000001", (1, 6, 20, "type"));
    check("04 04 0010 00000001 4f4e4600 000008fc", (1, 6, 16, "bundle_id"));
    let head = "4f4e4600 000008fc 00000001 0000 0003";
    check(&format!("04 04 001a 00000001 {head} 0001"), (1, 6, 24, "length"));
    check(&format!("04 04 0020 00000001 {head} 0001 0000 00000000"), (1, 6, 26, "length"));
    check(&format!("04 04 0020 00000001 {head} 0001 000c 00000000"), (1, 6, 26, "length"));
    // The padding to eight bytes is missing, and a property of an experimenter has no experimenter.
    check(&format!("04 04 001c 00000001 {head} 0001 0004"), (1, 6, 28, "pad"));
    check(&format!("04 04 0020 00000001 {head} ffff 0006 0000 0000"), (1, 6, 28, "experimenter"));
}

#[test]
fn a_bundled_message_that_lies_is_refused_with_the_error_for_it() {
    /// OFPET_EXPERIMENTER of the ONF: OFPBFC_MSG_BAD_LEN, MSG_BAD_XID, MSG_UNSUP.
    const BAD_LEN: u16 = 2308;
    const BAD_XID: u16 = 2309;
    const UNSUPPORTED: u16 = 2310;
    let add = |message: &str, expected: (u16, u16, usize, &str)| {
        let length = 24 + bytes(message).len();
        check(
            &format!("04 04 {length:04x} 00000001 4f4e4600 000008fd 00000001 0000 0003 {message}"),
            expected,
        );
    };
    add("", (0xffff, BAD_LEN, 24, "message"));
    add("04 14 0008 000000", (0xffff, BAD_LEN, 24, "message"));
    add("04 14 0007 00000001", (0xffff, BAD_LEN, 26, "length"));
    add("04 14 0009 00000001", (0xffff, BAD_LEN, 26, "length"));
    add("04 14 0008 00000002", (0xffff, BAD_XID, 28, "xid"));
    add("01 12 0008 00000001", (0xffff, UNSUPPORTED, 24, "version"));
    add("04 00 0008 00000001", (0xffff, UNSUPPORTED, 25, "type"));
    add("04 01 000c 00000001 0001 0006", (0xffff, UNSUPPORTED, 25, "type"));
    add("04 04 0018 00000001 4f4e4600 000008fc 00000002 0000 0003", (0xffff, UNSUPPORTED, 25, "type"));
    add(
        "04 04 0020 00000001 4f4e4600 000008fd 00000002 0000 0003 04 14 0008 00000001",
        (0xffff, UNSUPPORTED, 25, "type"),
    );
    // What is wrong within the message has the error that it would have alone, at its place in the whole.
    add("04 1f 0008 00000001", (1, 1, 1, "type"));
    add("04 09 000b 00000001 000000", (1, 6, 34, "miss_send_len"));
    add("04 18 0018 00000001 00000004 00000000 0000000000000000", (11, 2, 32, "role"));
    // Behind the message, only properties may follow.
    add("04 14 0008 00000001 00", (1, 6, 32, "length"));
}
