//! How fast frames pass a port: pushed in batches, shown with one publish, popped.
//!
//! `cargo bench -p ring@0.1.0 --bench frames`. Both ends are of one thread, so that what is timed is the ring and no other core's sleep.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ring::{AppEnd, KernelEnd, Port, Sizes};
use std::hint::black_box;

/// Frames that one publish shows.
const BATCH: usize = 256;

fn frames(criterion: &mut Criterion) {
    let port = Port::create(Sizes::new(1 << 20, 1 << 18, 1 << 20).unwrap()).unwrap();
    let mut kernel = KernelEnd::attach(port.kernel).unwrap();
    let mut app = AppEnd::attach(port.app).unwrap();
    let mut buffer = Vec::new();
    let mut group = criterion.benchmark_group("ring");
    group.throughput(Throughput::Elements(BATCH as u64));
    for bytes in [64, 128, 1500] {
        let frame = vec![7; bytes];
        group.bench_function(format!("{BATCH} frames of {bytes} bytes"), |bench| {
            bench.iter(|| {
                (0..BATCH).for_each(|_| kernel.packets.push(&[black_box(&frame)]).unwrap());
                kernel.packets.publish();
                while app.pop_into(&mut buffer).unwrap() {
                    black_box(buffer.len());
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);
