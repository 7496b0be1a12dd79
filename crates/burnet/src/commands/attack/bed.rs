//! The network of a trial: three switches in a tree of two levels, and hosts h1 to h4 that ping each other.
//!
//! ```text
//!   Combination ──> Bed ─┬─ emulator::Handle    emulated switches and hosts
//!                        └─ ovs::Network        Open vSwitch, and hosts at its ports
//!     ping FROM TO ─────> whether an answer came
//! ```
//!
//! Both are asked the same. It judges nothing.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use emulator::{Emulation, Handle, PingReport, SwitchOptions, Versions};
use openflow::Version;

use super::combination::{Combination, SwitchKind};
use super::ovs;
use super::stop;
use crate::cli::CommandError;

/// How often one looks whether an answer has come.
const LOOK: Duration = Duration::from_millis(50);

/// Beyond what a ping is waited for by its network: what its report may take to come here.
const GRACE: Duration = Duration::from_secs(5);

/// Such a network.
pub enum Bed {
    Emulated(Handle),
    OpenVSwitch(ovs::Network),
}

/// A ping that is under way.
pub enum Ping {
    Emulated(Receiver<PingReport>, Instant),
    OpenVSwitch(ovs::Ping),
    /// It could not be sent.
    Unsent,
}

impl Bed {
    /// Starts the switches, which connect to the node there.
    ///
    /// # Errors
    /// They cannot be started.
    pub fn start(combination: Combination, controller: SocketAddr) -> Result<Bed, CommandError> {
        let trouble =
            |error: &dyn std::fmt::Display| CommandError::DidNotWork(format!("no network: {error}"));
        if combination.kind == SwitchKind::Ovs {
            let network = ovs::Network::start(combination.version, controller);
            return network.map(Bed::OpenVSwitch).map_err(|error| trouble(&error));
        }
        let versions = if combination.version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let topology = "tree,2".parse().map_err(|error| trouble(&error))?;
        Emulation::start(&topology, controller, &options).map(Bed::Emulated).map_err(|error| trouble(&error))
    }

    /// How many switches it has.
    pub fn switches(&self) -> usize {
        match self {
            Bed::Emulated(network) => network.switches(),
            Bed::OpenVSwitch(_) => ovs::SWITCHES,
        }
    }

    /// Sessions that ended since it was started.
    pub fn connections_lost(&self) -> u64 {
        match self {
            Bed::Emulated(network) => network.counters().connections_lost,
            Bed::OpenVSwitch(network) => network.connections_lost(),
        }
    }

    /// One host pings another once.
    pub fn begin_ping(&self, from: &str, to: &str, patience: Duration) -> Ping {
        let until = Instant::now() + patience;
        match self {
            Bed::Emulated(network) => match network.begin_ping(from, to, patience) {
                Ok(report) => Ping::Emulated(report, until + GRACE),
                Err(_) => Ping::Unsent,
            },
            Bed::OpenVSwitch(network) => {
                network.begin_ping(from, to, until).map_or(Ping::Unsent, Ping::OpenVSwitch)
            }
        }
    }

    /// Ends it.
    pub fn stop(self) {
        match self {
            Bed::Emulated(network) => network.stop(),
            Bed::OpenVSwitch(network) => drop(network),
        }
    }
}

impl Ping {
    /// Waits for the answer. Whether it came; not if the trial is told to stop.
    pub fn answered(self) -> bool {
        match self {
            Ping::Emulated(report, until) => loop {
                match report.recv_timeout(LOOK) {
                    Ok(report) => return report.is_complete(),
                    Err(RecvTimeoutError::Timeout) if !stop::came() && Instant::now() < until => {}
                    Err(_) => return false,
                }
            },
            Ping::OpenVSwitch(ping) => ping.answered(),
            Ping::Unsent => false,
        }
    }
}
