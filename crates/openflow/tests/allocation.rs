//! What reading and writing allocate: nothing on the hot path, and never more than a small multiple of the input.
//!
//! One test alone, since the counters are the whole process's.

#![allow(clippy::unwrap_used, reason = "a test may")]

use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter};
use flow::{Field, Match, PortNo};
use openflow::message::{FlowModFields, NO_BUFFER, PacketIn};
use openflow::view::PacketInView;
use openflow::{Body, Header, Message, Version, write};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many bytes may be held for each byte that was read: an action of eight bytes is a value of 32 in a list with room for as
/// many again.
const MULTIPLE: usize = 8;
/// What an error's sentence may take.
const SENTENCE: usize = 512;

fn allocations(act: impl FnOnce()) -> usize {
    let region = Region::new(COUNTED);
    act();
    let change = region.change();
    change.allocations + change.reallocations
}

fn packet_in(version: Version) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, PortNo(3)),
        data: vec![7; 60],
    };
    let mut bytes = Vec::new();
    Message { version, xid: 0, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

/// From a packet-in to a packet-out and a flow mod, as a session and an app do it.
fn hot_path(version: Version) {
    let bytes = packet_in(version);
    let (mut tlvs, mut actions, mut instructions) =
        (Vec::with_capacity(256), Vec::with_capacity(256), Vec::with_capacity(256));
    let mut out = Vec::with_capacity(4096);
    let used = allocations(|| {
        let packet = PacketInView::read(&bytes).unwrap();
        MatchWriter::new(&mut tlvs)
            .field(Field::InPort, packet.in_port)
            .field(Field::EthType, 0x0800u16)
            .masked(Field::Ipv4Dst, 0x0a00_0000u32, 0xff00_0000u32);
        ActionWriter::new(&mut actions).set_field(Field::EthDst, 2u8).output(PortNo(2), 0);
        InstructionWriter::new(&mut instructions).apply_actions(|list| {
            list.set_field(Field::Ipv4Src, 1u8).output(PortNo(2), 0);
        });
        write::packet_out(version, 1, NO_BUFFER, packet.in_port, &actions, packet.data, &mut out).unwrap();
        write::flow_mod(version, 2, &FlowModFields::default(), &tlvs, &instructions, &mut out).unwrap();
        write::barrier_request(version, 3, &mut out);
    });
    assert_eq!(used, 0, "{version:?}");
}

/// A message that is as long as it can be: `head`, and then `item` again and again.
fn crammed(version: Version, kind: u8, head: &[u8], item: &[u8]) -> Vec<u8> {
    let mut body = head.to_vec();
    while 8 + body.len() + item.len() <= 65535 {
        body.extend_from_slice(item);
    }
    let length = u16::try_from(8 + body.len()).unwrap();
    [Header { version, kind, length, xid: 1 }.to_bytes().to_vec(), body].concat()
}

/// Says whether the message was read; either way it must not have cost too much.
fn is_cheap_and_read(what: &str, bytes: &[u8]) -> bool {
    let region = Region::new(COUNTED);
    let read = Message::decode(bytes);
    let used = region.change().bytes_allocated;
    let bound = MULTIPLE * bytes.len() + SENTENCE;
    assert!(used <= bound, "{what}: {used} bytes allocated for {}", bytes.len());
    read.is_ok()
}

fn check(what: &str, bytes: &[u8]) {
    assert!(is_cheap_and_read(what, bytes), "{what}: {:?}", Message::decode(bytes).unwrap_err());
}

/// The most things that can be said in the fewest bytes, where the list is as long as the message.
fn crammed_messages() {
    let (old, new) = (Version::V1_0, Version::V1_3);
    check("hello elements", &crammed(new, 0, &[], &[0, 9, 0, 4, 0, 0, 0, 0]));
    check("bitmaps", &crammed(new, 0, &[0, 1, 0xff, 0xf4], &[0, 0, 0, 0]));
    check("actions of 1.0", &crammed(old, 13, &[0, 0, 0, 0, 0, 1, 0xff, 0xe8], &[0, 3, 0, 8, 0, 0, 0, 0]));
    let vendor = [0xff, 0xff, 0, 8, 0, 0, 0, 1];
    check("vendor actions of 1.0", &crammed(old, 13, &[0, 0, 0, 0, 0, 1, 0xff, 0xe8], &vendor));
    let head = [[0; 8].as_slice(), &[0xff, 0xd8, 0, 0, 0, 0, 0, 0]].concat();
    check("actions of 1.3", &crammed(new, 13, &head, &[0, 18, 0, 8, 0, 0, 0, 0]));
    check("experimenters' actions", &crammed(new, 13, &head, &vendor));
    // 256 fields, each of another class and with nothing in it.
    let fields: Vec<u8> = (0..=255).flat_map(|class| [0, class, 0, 0]).collect();
    let head = [[0; 40].as_slice(), &[0, 1, 4, 4], &fields, &[0; 4]].concat();
    check("unknown fields", &crammed(new, 14, &head, &vendor));
    let head = [[0; 40].as_slice(), &[0, 1, 0, 4, 0, 0, 0, 0]].concat();
    check("instructions", &crammed(new, 14, &head, &vendor));
    check("buckets", &crammed(new, 15, &[0; 8], &[[0, 16].as_slice(), &[0; 14]].concat()));
    check("bands", &crammed(new, 29, &[0; 8], &[[0, 1, 0, 16].as_slice(), &[0; 12]].concat()));
    check("queues of 1.0", &crammed(old, 21, &[0; 8], &[0, 0, 0, 1, 0, 8, 0, 0]));
    let queue = [[0, 0, 0, 1, 0, 0, 0, 1].as_slice(), &65512u16.to_be_bytes(), &[0; 6]].concat();
    check(
        "queue properties",
        &crammed(new, 23, &[[0; 8].as_slice(), &queue].concat(), &[0, 9, 0, 8, 0, 0, 0, 0]),
    );
    for kind in 0..14u8 {
        let head = [0, kind, 0, 0, 0, 0, 0, 0];
        for length in [8u16, 16, 40, 48, 56, 64] {
            let [high, low] = length.to_be_bytes();
            let mut item = vec![0; usize::from(length)];
            item[..2].copy_from_slice(&[high, low]);
            is_cheap_and_read("statistics", &crammed(new, 19, &head, &item));
            is_cheap_and_read("statistics of 1.0", &crammed(old, 17, &head[..4], &item));
        }
    }
    let table = [65512u16.to_be_bytes().as_slice(), &[0; 62]].concat();
    let head = [[0, 12, 0, 0, 0, 0, 0, 0].as_slice(), &table].concat();
    for property in [[0, 0, 0, 4, 0, 0, 0, 0], [0, 2, 0, 5, 7, 0, 0, 0], [0, 20, 0, 8, 1, 2, 3, 4]] {
        check("table properties", &crammed(new, 19, &head, &property));
    }
}

#[test]
fn memory_is_bounded_by_the_input() {
    hot_path(Version::V1_0);
    hot_path(Version::V1_3);
    crammed_messages();
    for version in [Version::V1_0, Version::V1_3] {
        let bytes = packet_in(version);
        assert!(allocations(|| drop(PacketInView::read(&bytes[..20]))) > 0, "what is counted is counted");
    }
}
