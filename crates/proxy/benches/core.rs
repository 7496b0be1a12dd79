//! How many packet-ins pass the proxy's core in a second. No figure in the docs comes from it yet.
//!
//! `cargo bench -p proxy`. Each figure is of one thread and of packet-ins of 60 bytes. The whole model has a CPU, buffers and a table.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flow::{Field, Match, PortNo};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use profile::{Profile, Quantiles};
use proxy::{Commands, Event, Method, Passage, Proxy, Settings};
use std::hint::black_box;

/// Between two packet-ins: 200,000 a second.
const STEP_NS: u64 = 5_000;

fn packet_in(version: Version) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 0 },
        matching: Match::any().with(Field::InPort, 1u32),
        data: vec![0; 60],
    };
    let mut bytes = Vec::new();
    Message { version, xid: 0, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

fn slow() -> Profile {
    let mut profile = Profile::null();
    profile.cpu.packet_in.service_us = Quantiles::new(&[(0.0, 1.0), (1.0, 3.0)]).unwrap();
    profile.delay.ingress_us = Quantiles::new(&[(0.0, 100.0), (1.0, 900.0)]).unwrap();
    profile.packet_in.buffers_packets = Some(256);
    profile
}

/// Passes one packet-in with its frame, and what is due by then. Returns how many bytes leave.
fn pass(proxy: &mut Proxy, now_ns: u64, frame: &mut [u8], message: &mut [u8], out: &mut Commands) -> usize {
    let number = now_ns.to_be_bytes();
    frame[14..22].copy_from_slice(&number);
    let at = message.len() - 60 + 14;
    message[at..at + 8].copy_from_slice(&number);
    let event = Event::Frame { port: PortNo(1), arrived_ns: now_ns, frame };
    let _taken = proxy.on_event(now_ns, event, out);
    let passage = proxy.on_event(now_ns, Event::FromSwitch(message), out);
    let sent = if passage == Passage::Unchanged { message.len() } else { out.to_controller.len() };
    out.to_controller.clear();
    out.releases.clear();
    sent
}

fn packet_ins(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet_in");
    group.throughput(Throughput::Elements(1));
    let cases = [
        ("null", Profile::null(), Method::Full),
        ("paper", slow(), Method::Paper),
        ("full", slow(), Method::Full),
    ];
    for (name, profile, method) in cases {
        let mut proxy = Proxy::new(Settings { profile, base: Profile::null(), method, seed: 1 });
        let (mut frame, mut message) = (vec![0; 60], packet_in(Version::V1_3));
        let (mut out, mut now_ns, mut bytes) = (Commands::default(), 0, 0);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                now_ns += STEP_NS;
                bytes += pass(&mut proxy, now_ns, &mut frame, &mut message, &mut out);
            });
        });
        assert!(black_box(bytes) > 0);
        assert_eq!(proxy.counters().packet_ins_lost(), 0, "{name}");
    }
}

criterion_group!(benches, packet_ins);
criterion_main!(benches);
