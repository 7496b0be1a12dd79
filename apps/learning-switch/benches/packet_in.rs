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
//! Each stage includes those before it. `cargo bench -p learning-switch --bench packet_in` times them; with `--count STAGE VERSION ROUNDS` the
//! program does so many rounds of [`path::BATCH`] packet-ins and prints nothing, so that `cargo xtask instructions` can count what they cost.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

mod path;

use openflow::Version;
use path::{BATCH, STAGES, Worker, batch};
use std::time::Instant;

/// Rounds that are timed together, and how often: the median says what a packet-in takes.
const ROUNDS: u32 = 2_000;
const TIMES: usize = 11;

fn version(text: &str) -> Version {
    if text == "1.3" { Version::V1_3 } else { Version::V1_0 }
}

/// Nanoseconds for one packet-in: the median, the least and the most.
fn time(mut round: impl FnMut()) -> [f64; 3] {
    let mut once = || {
        let begun = Instant::now();
        (0..ROUNDS).for_each(|_| round());
        begun.elapsed().as_secs_f64() * 1e9 / (f64::from(ROUNDS) * BATCH as f64)
    };
    once();
    let mut times: Vec<f64> = (0..TIMES).map(|_| once()).collect();
    times.sort_by(f64::total_cmp);
    [times[TIMES / 2], times[0], times[TIMES - 1]]
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
    for of in ["1.0", "1.3"] {
        let (mut worker, messages) = (Worker::new(version(of)), batch(version(of)));
        for (name, stage) in STAGES {
            let [median, least, most] = time(|| worker.round(stage, &messages));
            println!("OpenFlow {of} {name:<10} {median:>7.1} ns ({least:.1} to {most:.1})");
        }
    }
}
