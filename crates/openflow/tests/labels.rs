//! Messages with labels: their bytes, the way back, and damage.
//!
//! `golden_labels.txt` has blocks of a comment, the bytes in hex, `=` and the message with its labels. With `BURNET_BLESS=1` the test rewrites the
//! lines after the bytes. Review them before the commit.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod captured;

use captured::{blocks, bytes, hex, is_hex};
use flow::{MacAddr, PortNo};
use openflow::labels::*;
use openflow::message::*;
use openflow::{Body, Message, Version};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::{env, fs};

fn port(number: u32) -> Port {
    Port {
        port_no: PortNo(number),
        hw_addr: MacAddr([2, 0, 0, 0, 0, number as u8]),
        name: format!("s1-eth{number}"),
        config: 0,
        state: 0,
        curr: 0x40,
        advertised: 0x40,
        supported: 0x40,
        peer: 0,
        curr_speed_kbps: 0,
        max_speed_kbps: 0,
    }
}

fn features(ports: Vec<Port>) -> Body {
    Body::FeaturesReply(FeaturesReply {
        datapath_id: flow::DatapathId(1),
        n_buffers: 256,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: 0x87,
        actions: 0xfff,
        ports,
    })
}

fn written(version: Version, body: Body) -> Vec<u8> {
    let mut out = Vec::new();
    Message { version, xid: 9, body }.encode(&mut out).unwrap();
    out
}

/// Port 1 has the label 1000, port 2 2000, and so on. Port 9 has none.
fn label_of(port: PortNo) -> u32 {
    if port.0 == 9 { NO_LABEL } else { port.0 * 1_000 }
}

/// What is to stand behind the bytes.
fn outcome(message: &[u8]) -> String {
    let (plain, labels) = split_labels(message).unwrap();
    let Message { version, xid, body } = Message::decode(&plain).unwrap();
    if let Body::Experimenter(it) = &body {
        let read = LabelMessage::read(it).unwrap().unwrap();
        assert_eq!(&read.to_experimenter(version), it);
        return format!("= {version:?} xid {xid} {read:?}\n");
    }
    let again = with_labels(plain, {
        let left = std::cell::RefCell::new(labels.iter());
        move |_| *left.borrow_mut().next().unwrap()
    });
    assert_eq!(again.unwrap(), message);
    format!("= {version:?} xid {xid} labels {labels:?} {body:?}\n")
}

#[test]
fn the_bytes_of_labels_are_these() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_labels.txt");
    let text = fs::read_to_string(file).unwrap();
    let renewed = |block: &str| {
        let mut text = String::new();
        block
            .lines()
            .filter(|it| it.starts_with('#') || is_hex(it))
            .for_each(|it| writeln!(text, "{it}").unwrap());
        let bytes = bytes(block);
        if bytes.is_empty() { text } else { text + &outcome(&bytes) }
    };
    let found: Vec<String> = blocks(&text).map(renewed).collect();
    if env::var_os("BURNET_BLESS").is_some() {
        fs::write(file, found.join("\n")).unwrap();
    }
    for (found, expected) in found.iter().zip(blocks(&text)) {
        assert_eq!(found.trim_end(), expected);
    }
    assert_eq!(found.len(), 8);
}

#[test]
fn the_golden_bytes_are_those_that_are_written() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_labels.txt")).unwrap();
    let golden: Vec<String> = blocks(&text).map(|block| hex(&bytes(block))).collect();
    let status = |number| Body::PortStatus(PortStatus { reason: 2, port: port(number) });
    let described =
        Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::PortDesc(vec![port(1), port(9)]) });
    let labels = LabelMessage::Labels {
        is_stale: true,
        more: false,
        labels: vec![PortLabel { port: PortNo(3), label_kbps: 2_000, capacity_kbps: 10_000 }],
    };
    let check = |place: usize, version, body| {
        let labeled = with_labels(written(version, body), label_of).unwrap();
        assert_eq!(hex(&labeled), golden[place]);
    };
    check(1, Version::V1_0, status(1));
    check(2, Version::V1_0, features(vec![port(1), port(9)]));
    check(3, Version::V1_3, status(1));
    check(4, Version::V1_3, described);
    check(5, Version::V1_0, Body::Experimenter(LabelMessage::Request.to_experimenter(Version::V1_0)));
    check(6, Version::V1_0, Body::Experimenter(labels.to_experimenter(Version::V1_0)));
    check(7, Version::V1_3, Body::Experimenter(labels.to_experimenter(Version::V1_3)));
}

#[test]
fn a_port_of_the_paper_has_52_bytes_with_the_label_at_the_end() {
    let plain = written(Version::V1_0, Body::PortStatus(PortStatus { reason: 2, port: port(3) }));
    let labeled = with_labels(plain.clone(), label_of).unwrap();
    assert_eq!((plain.len(), labeled.len()), (16 + 48, 16 + 52));
    assert_eq!(labeled[..2], plain[..2]);
    assert_eq!(labeled[2..4], [0, 68]);
    assert_eq!((&labeled[4..64], &labeled[64..]), (&plain[4..], &3_000_u32.to_be_bytes()[..]));
}

#[test]
fn damage_is_refused_with_its_place() {
    let whole = with_labels(written(Version::V1_0, features(vec![port(1), port(2)])), label_of).unwrap();
    for length in 8..whole.len() {
        let mut cut = whole[..length].to_vec();
        assert!(split_labels(&cut).is_err(), "the header states more than {length} bytes");
        cut[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        let is_whole = length >= 32 && (length - 32) % 52 == 0;
        assert_eq!(split_labels(&cut).is_ok(), is_whole, "{length}");
    }
    // An ordinary message has no labels.
    assert!(
        split_labels(&written(Version::V1_3, Body::PortStatus(PortStatus { reason: 2, port: port(3) })))
            .is_err()
    );
    let check = |exp_type, data: &[u8], expected: (u16, u16, usize, &str)| {
        let message = Experimenter { experimenter: EXPERIMENTER, exp_type, data: data.to_vec() };
        let refused = LabelMessage::read(&message).unwrap_err();
        assert_eq!(
            (refused.error.kind, refused.error.code, refused.offset, refused.field),
            expected,
            "{data:?}"
        );
    };
    check(None, &[0, 0, 0], (1, 6, 12, "exp_type"));
    check(None, &[0, 0, 0, 7], (1, 1, 12, "exp_type"));
    check(Some(1), &[0], (1, 6, 16, "length"));
    check(Some(2), &[0], (1, 6, 16, "flags"));
    check(Some(2), &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0], (1, 6, 32, "pad"));
    let foreign = Experimenter { experimenter: 0x2320, exp_type: Some(2), data: Vec::new() };
    assert_eq!(LabelMessage::read(&foreign), Ok(None));
}

#[test]
fn more_ports_than_a_message_holds_are_an_error() {
    let many = |count| written(Version::V1_0, features((0..count).map(port).collect()));
    assert!(with_labels(many(1_259), label_of).is_ok());
    assert!(with_labels(many(1_261), label_of).is_err());
}

proptest! {
    #[test]
    fn what_was_added_is_split_off_again(numbers in prop::collection::vec(1..0xff00u32, 0..40), labels in any::<u32>()) {
        let label = |port: PortNo| labels ^ port.0;
        let plain = written(Version::V1_0, features(numbers.iter().map(|number| port(*number)).collect()));
        let labeled = with_labels(plain.clone(), label).unwrap();
        let expected: Vec<u32> = numbers.iter().map(|number| label(PortNo(*number))).collect();
        prop_assert_eq!(split_labels(&labeled), Ok((plain, expected)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), version in prop_oneof![Just(1u8), Just(4)], kind in prop_oneof![Just(6u8), Just(12), Just(19)]) {
        let mut bytes = bytes;
        if let [there_version, there_kind, ..] = &mut bytes[..] {
            (*there_version, *there_kind) = (version, kind);
        }
        let _ = split_labels(&bytes);
        let _ = with_labels(bytes.clone(), |_| 0);
        for exp_type in [None, Some(1), Some(2)] {
            let message = Experimenter { experimenter: EXPERIMENTER, exp_type, data: bytes.clone() };
            let _ = LabelMessage::read(&message);
        }
    }
}
