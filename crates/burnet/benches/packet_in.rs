//! A packet-in's way to a flow mod within a worker, stage by stage, without sockets: the learning switch, trusted, that knows all hosts.
//!
//! ```text
//!   view      the packet-in is read in place
//!   session   … by the session, which makes an event of it
//!   dispatch  … and the kernel says who hears it
//!   app       … and the app does, and commands a rule
//!   path      … and the kernel lets it pass, and the session makes a flow mod of it
//! ```
//!
//! Each stage includes those before it. `cargo bench -p burnet --bench packet_in` times them; with `--count STAGE VERSION ROUNDS` the
//! program does so many rounds of [`path::BATCH`] packet-ins and prints nothing, so that `cargo xtask instructions` can count what they cost.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

mod path;

use criterion::{Criterion, Throughput};
use openflow::Version;
use path::{BATCH, STAGES, Worker, batch};

fn version(text: &str) -> Version {
    if text == "1.3" { Version::V1_3 } else { Version::V1_0 }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, stage, of, rounds, ..] = &arguments[..]
        && flag == "--count"
    {
        let (_, stage) = STAGES.iter().find(|(name, _)| name == stage).unwrap();
        let (mut worker, messages) = (Worker::new(version(of)), batch(version(of)));
        (0..rounds.parse::<u32>().unwrap()).for_each(|_| worker.round(*stage, &messages));
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    for of in ["1.0", "1.3"] {
        let (mut worker, messages) = (Worker::new(version(of)), batch(version(of)));
        let mut group = criterion.benchmark_group(format!("packet-in, OpenFlow {of}"));
        group.throughput(Throughput::Elements(BATCH as u64));
        for (name, stage) in STAGES {
            group.bench_function(name, |bench| bench.iter(|| worker.round(stage, &messages)));
        }
        group.finish();
    }
    criterion.final_summary();
}
