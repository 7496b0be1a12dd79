//! How fast messages are read and written: the packet-in and the flow mod that a controller has most of.
//!
//! `cargo bench -p openflow --bench messages`.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use criterion::{Criterion, criterion_group, criterion_main};
use flow::canonical::{InstructionWriter, MatchWriter};
use flow::{Field, MacAddr, Match, PortNo};
use openflow::message::{FlowModFields, PacketIn};
use openflow::view::PacketInView;
use openflow::{Body, Message, Version, write};
use std::hint::black_box;

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

fn packet_in(version: Version) -> Vec<u8> {
    let packet_in = PacketIn {
        buffer_id: 7,
        total_len: 64,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, PortNo(1)),
        data: vec![7; 64],
    };
    let mut bytes = Vec::new();
    Message { version, xid: 1, body: Body::PacketIn(packet_in) }.encode(&mut bytes).unwrap();
    bytes
}

fn packet_ins(criterion: &mut Criterion) {
    for version in VERSIONS {
        let bytes = packet_in(version);
        let mut group = criterion.benchmark_group(format!("packet-in of OpenFlow {version}"));
        group.bench_function("read in place", |bench| {
            bench.iter(|| black_box(PacketInView::read(black_box(&bytes)).unwrap()).data.len());
        });
        group.bench_function("decoded", |bench| {
            bench.iter(|| black_box(Message::decode(black_box(&bytes)).unwrap()));
        });
        group.finish();
    }
}

fn flow_mods(criterion: &mut Criterion) {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    MatchWriter::new(&mut matching)
        .field(Field::InPort, 1u32)
        .field(Field::EthDst, MacAddr([2, 0, 0, 0, 0, 2]))
        .field(Field::EthSrc, MacAddr([2, 0, 0, 0, 0, 1]));
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(PortNo(2), 0);
    });
    let fields = FlowModFields { buffer_id: 7, idle_timeout_s: 60, ..FlowModFields::default() };
    for version in VERSIONS {
        let mut out = Vec::new();
        criterion.bench_function(&format!("flow mod of OpenFlow {version}, from canonical bytes"), |bench| {
            bench.iter(|| {
                out.clear();
                let (fields, matching) = (black_box(&fields), black_box(&matching));
                write::flow_mod(version, 1, fields, matching, black_box(&instructions), &mut out).unwrap();
                out.len()
            });
        });
    }
}

criterion_group!(benches, packet_ins, flow_mods);
criterion_main!(benches);
