//! The network of a trial: three switches in a tree of two levels, and hosts h1 to h4 that ping each other.
//!
//! ```text
//!   Combination ──> TrialNetwork ─┬─ emulator::Handle    emulated switches and hosts
//!                        └─ ovs::Network        Open vSwitch, and hosts at its ports
//!     ping FROM TO ─────> whether an answer came
//!     frames at hosts ──> Arrivals: those of the attacker
//! ```
//!
//! Both are asked the same. It judges nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use emulator::run::Tap;
use emulator::topology::Endpoint;
use emulator::{Emulation, Handle, PingReport, SwitchOptions, Topology, Versions};
use openflow::Version;

use super::arrivals::{Arrivals, Arrived};
use super::combination::{Combination, SwitchKind};
use super::ovs;
use super::stop;
use burnet::cli::CommandError;

/// The interval between checks for an answer.
const LOOK: Duration = Duration::from_millis(50);

/// Beyond what a ping is waited for by its network: what its report may take to come here.
const GRACE: Duration = Duration::from_secs(5);

/// Such a network.
pub struct TrialNetwork {
    network: Network,
    arrivals: Arc<Arrivals>,
}

enum Network {
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

impl TrialNetwork {
    /// Starts the switches, which connect to the node there.
    ///
    /// # Errors
    /// They cannot be started.
    pub fn start(combination: Combination, controller: SocketAddr) -> Result<TrialNetwork, CommandError> {
        let trouble =
            |error: &dyn std::fmt::Display| CommandError::DidNotWork(format!("no network: {error}"));
        let arrivals = Arc::new(Arrivals::default());
        if combination.kind == SwitchKind::Ovs {
            let network = ovs::Network::start(combination.version, controller, &arrivals);
            let network = network.map(Network::OpenVSwitch).map_err(|error| trouble(&error))?;
            return Ok(TrialNetwork { network, arrivals });
        }
        let versions = if combination.version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let topology: Topology = "tree,2".parse().map_err(|error| trouble(&error))?;
        let taps: Vec<Tap> =
            (0..topology.hosts.len()).map(|index| Tap::Port(Endpoint::Host { index })).collect();
        let started = Emulation::start_captured(&topology, &[controller], &options, &taps);
        let (network, _, captured) = started.map_err(|error| trouble(&error))?;
        arrivals.listen(captured).map_err(|error| trouble(&error))?;
        Ok(TrialNetwork { network: Network::Emulated(network), arrivals })
    }

    /// The attacker's frames that have come to hosts.
    pub fn arrived(&self) -> Arrived {
        self.arrivals.so_far()
    }

    /// How many switches it has.
    pub fn switches(&self) -> usize {
        match &self.network {
            Network::Emulated(network) => network.switches(),
            Network::OpenVSwitch(_) => ovs::SWITCHES,
        }
    }

    /// Sessions that ended since it was started.
    pub fn connections_lost(&self) -> u64 {
        match &self.network {
            Network::Emulated(network) => network.counters().connections_lost,
            Network::OpenVSwitch(network) => network.connections_lost(),
        }
    }

    /// One host pings another once.
    pub fn begin_ping(&self, from: &str, to: &str, patience: Duration) -> Ping {
        let until = Instant::now() + patience;
        match &self.network {
            Network::Emulated(network) => match network.begin_ping(from, to, patience) {
                Ok(report) => Ping::Emulated(report, until + GRACE),
                Err(_) => Ping::Unsent,
            },
            Network::OpenVSwitch(network) => {
                network.begin_ping(from, to, until).map_or(Ping::Unsent, Ping::OpenVSwitch)
            }
        }
    }

    /// Ends it.
    pub fn stop(self) {
        match self.network {
            Network::Emulated(network) => network.stop(),
            Network::OpenVSwitch(network) => drop(network),
        }
    }
}

impl Ping {
    /// Whether the answer has come by now.
    pub fn is_answered(&self) -> bool {
        match self {
            Ping::Emulated(report, _) => report.try_recv().is_ok_and(|report| report.is_complete()),
            Ping::OpenVSwitch(ping) => ping.is_answered(),
            Ping::Unsent => false,
        }
    }

    /// Waits for the answer. Returns whether it arrived. Returns false if the trial is stopped.
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
