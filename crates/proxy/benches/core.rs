//! How many packet-ins pass the proxy's core in a second.
//!
//! `cargo bench -p proxy --bench core`. Each figure is of one thread and of packet-ins of 60 bytes. The whole model has a CPU, buffers and a
//! table. What a socket adds is in `benches/sockets.rs`.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

#[path = "../tests/packet_ins/mod.rs"]
mod packet_ins;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use openflow::Version;
use packet_ins::{Passes, cases};
use std::hint::black_box;

fn packet_ins(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet_in");
    group.throughput(Throughput::Elements(1));
    for (name, profile, method) in cases() {
        let (mut passes, mut bytes) = (Passes::new(profile, method, Version::V1_3), 0);
        group.bench_function(name, |bench| bench.iter(|| bytes += passes.pass()));
        assert!(black_box(bytes) > 0);
        assert_eq!(passes.counters().packet_ins_lost(), 0, "{name}");
    }
}

criterion_group!(benches, packet_ins);
criterion_main!(benches);
