//! Runs a network against a controller and lets every host ping every other.
//!
//! `cargo run --release -p emulator --example ping_all -- tree,2 127.0.0.1:6653 1.3`

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [topology, controller, more @ ..] = &arguments[..] else {
        return Err("usage: ping_all TOPOLOGY ADDR:PORT [1.0|1.3 [N_BUFFERS]]".into());
    };
    let versions = match more.first().map(String::as_str) {
        None => Versions::Both,
        Some("1.0") => Versions::Only10,
        Some("1.3") => Versions::Only13,
        Some(other) => return Err(format!("'{other}' is not 1.0 or 1.3").into()),
    };
    let n_buffers = more.get(1).map_or(Ok(256), |count| count.parse())?;
    let topology: Topology = topology.parse()?;
    let options = SwitchOptions { versions, n_buffers, ..SwitchOptions::default() };

    let began = Instant::now();
    let network = Emulation::start(&topology, controller.parse()?, &options)?;
    network.wait_connected(Duration::from_secs(10))?;
    println!("{} switches connected after {:?}", network.switches(), began.elapsed());
    let began = Instant::now();
    let report = network.ping_all(Duration::from_secs(5));
    println!("{report} in {:?}", began.elapsed());
    let mut round_trips: Vec<_> = report.pairs.iter().filter_map(|pair| pair.round_trip).collect();
    round_trips.sort();
    if let Some(worst) = round_trips.last() {
        println!("round trips: half within {:?}, all within {worst:?}", round_trips[round_trips.len() / 2]);
    }
    println!("{:?}", network.counters());
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
