//! The fields of frames against Open vSwitch's own: what `ovs-ofctl parse-pcap` sees in a frame, we must see in it too.
//!
//! Needs the program `ovs-ofctl` and no switch. Where it is missing the test says by name that it is left out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use flow::frame::FrameFields;
use flow::text::parse_match;
use flow::{Field, Match};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::path::PathBuf;
use std::process::Command;

/// A capture file of Ethernet frames (the classic format, little-endian).
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1u32];
    let mut file: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        file.extend([0, 0, length, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

/// What Open vSwitch says of a frame, without the words for what is in no OpenFlow 1.3 match.
fn their_match(line: &str) -> Match {
    let unknown = [
        "in_port=",
        "vlan_tci1=",
        "nw_frag=",
        "tcp_flags=",
        "nw_ttl=",
        "mpls_ttl=",
        "nd_reserved=",
        "nd_options_type=",
    ];
    let words = line.split(',').filter(|word| !unknown.iter().any(|start| word.starts_with(start)));
    let words: Vec<&str> = words.filter(|word| !word.starts_with("mpls_lse")).collect();
    parse_match(&words.join(",")).unwrap()
}

/// A whole frame that no switch would call damaged.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let transport = prop_oneof![
        any::<[u8; 4]>()
            .prop_map(|ports| (6u8, [&ports[..], &[0; 8], &[0x50, 2, 0, 0, 0, 0, 0, 0]].concat())),
        any::<[u8; 4]>().prop_map(|ports| (17, [&ports[..], &[0, 8, 0, 0]].concat())),
        any::<[u8; 4]>().prop_map(|ports| (132, [&ports[..], &[0; 8]].concat())),
        Just((99, vec![0; 8])),
    ];
    let ip = (transport, any::<[u8; 32]>(), any::<u8>(), any::<bool>(), 0..3u16).prop_map(
        |((proto, payload), addresses, tos, is_ipv6, fragment)| {
            if is_ipv6 {
                ipv6(proto, &payload, &addresses, tos, fragment)
            } else {
                ipv4(proto, &payload, &addresses, tos, fragment)
            }
        },
    );
    let arp = (any::<[u8; 20]>(), 1..3u8)
        .prop_map(|(addresses, op)| [&[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, op][..], &addresses].concat());
    let mpls =
        (any::<[u8; 3]>(), Just(64u8)).prop_map(|([a, b, c], ttl)| vec![0x88, 0x47, a, b, c | 1, ttl, 0, 0]);
    let icmp =
        any::<[u8; 2]>().prop_map(|[kind, code]| ipv4(1, &[kind, code, 0, 0, 0, 0, 0, 0], &[9; 32], 0, 0));
    let neighbour = any::<[u8; 22]>().prop_map(|random| {
        let (target, address) = random.split_at(16);
        let body = [&[135, 0, 0, 0, 0, 0, 0, 0][..], target, &[1, 1], address].concat();
        ipv6(58, &body, &[7; 32], 0, 0)
    });
    let packet = prop_oneof![4 => ip, 1 => arp, 1 => mpls, 1 => icmp, 1 => neighbour];
    (any::<[u8; 12]>(), proptest::option::of(any::<u16>()), packet, 0..20usize).prop_map(
        |(addresses, tag, packet, padding)| {
            let tag = tag.map(|tci| [&[0x81, 0][..], &tci.to_be_bytes()].concat()).unwrap_or_default();
            [&addresses[..], &tag, &packet, &vec![0; padding]].concat()
        },
    )
}

/// With its EtherType; fragment 1 is a first one, 2 a later one.
fn ipv4(proto: u8, payload: &[u8], addresses: &[u8; 32], tos: u8, fragment: u16) -> Vec<u8> {
    let total = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [high, low] = [0u16, 0x2000, 0x0005][usize::from(fragment)].to_be_bytes();
    let header = [0x45, tos, total[0], total[1], 0, 0, high, low, 64, proto, 0, 0];
    [&[0x08, 0x00][..], &header, &addresses[..8], payload].concat()
}

/// With its EtherType, and a destination-options header before all else where the type of service is odd.
fn ipv6(proto: u8, payload: &[u8], addresses: &[u8; 32], tos: u8, fragment: u16) -> Vec<u8> {
    let (mut first, mut headers) = (proto, Vec::new());
    if fragment > 0 {
        let offset = if fragment == 1 { 1u16 } else { 5 << 3 };
        headers = [&[proto, 0][..], &offset.to_be_bytes(), &[0; 4]].concat();
        first = 44;
    }
    if tos & 1 == 1 {
        headers = [&[first, 0, 1, 4, 0, 0, 0, 0][..], &headers].concat();
        first = 60;
    }
    let length = u16::try_from(headers.len() + payload.len()).unwrap().to_be_bytes();
    let start = (0x6000_0123u32 | u32::from(tos) << 20).to_be_bytes();
    [&[0x86, 0xdd][..], &start, &length, &[first, 255], addresses, &headers, payload].concat()
}

#[test]
fn the_fields_of_frames_are_those_that_open_vswitch_sees() {
    let mut runner = TestRunner::deterministic();
    let frames: Vec<Vec<u8>> = (0..500).map(|_| frame().new_tree(&mut runner).unwrap().current()).collect();
    let file: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "frames.pcap"].iter().collect();
    std::fs::write(&file, capture(&frames)).unwrap();
    let Ok(ran) = Command::new("ovs-ofctl").arg("parse-pcap").arg(&file).output() else {
        println!(
            "left out: the_fields_of_frames_are_those_that_open_vswitch_sees: the program ovs-ofctl is not installed"
        );
        return;
    };
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(printed.lines().count(), frames.len(), "{}", String::from_utf8_lossy(&ran.stderr));
    for (frame, line) in frames.iter().zip(printed.lines()) {
        let (ours, theirs) = (FrameFields::read(frame), their_match(line));
        for (field, value) in ours.iter() {
            // These are not in the frame, or not in Open vSwitch's language.
            if !matches!(field, Field::Metadata | Field::TunnelId | Field::Ipv6Exthdr) {
                assert_eq!(
                    theirs.get(field).map(|(value, _)| value),
                    Some(value),
                    "{} in {line} {frame:02x?}",
                    field.name()
                );
            }
        }
        for field in Field::all().filter(|field| !ours.has(*field)) {
            // What is not there is zero to Open vSwitch.
            assert_eq!(
                theirs.get(field).map_or(0, |(value, _)| value),
                0,
                "{} in {line} {frame:02x?}",
                field.name()
            );
        }
    }
}
