//! A load generator: many switches that send packet-ins as fast as a controller takes them, and count its answers.
//!
//! ```text
//!   Load ──order──> thread: Generator ──packet-ins──> controller, or Sink
//!        <─report──     (its switches) <──flow mods──
//! ```
//!
//! A [`Load`] connects its switches, makes their hosts known to the controller, and then runs rounds: as many packet-ins as go
//! ([`Mode::Throughput`], or no more than a link would carry: [`Mode::AtMost`]), one at a time from each switch ([`Mode::Latency`]), or a fixed
//! rate ([`Mode::Rate`]). A [`Sink`] is the peer that does least: it answers each packet-in with a ready flow mod, so that what generator and machine can do is known.
//!
//! The switches are shells with no tables: nothing is forwarded here, and no message is decoded that is only counted. Never started by a
//! node, and never privileged.

mod allowance;
mod answers;
mod contact;
mod crew;
pub mod figures;
mod generator;
mod greeting;
mod pace;
mod progress;
mod report;
mod sink;
mod stream;
mod switch;
mod template;
mod traffic;

pub use answers::Counting;
pub use contact::first_contact;
pub use crew::{Connected, Load};
pub use progress::Progress;
pub use report::{Faults, Learned, RoundReport};
pub use sink::{Sink, SinkCounters};
pub use traffic::{HOSTS_MAX, Hosts};

use openflow::Version;
use std::fmt;
use std::net::SocketAddr;

/// The most switches: their number is two octets of an Ethernet address.
pub const SWITCHES_MAX: u16 = u16::MAX;

/// What the load is.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// The controller.
    pub target: SocketAddr,
    /// How many switches connect to it.
    pub switches: u16,
    /// The datapath id of the first; the others' follow.
    pub first_datapath: u64,
    /// The version that they speak: 1.0 or 1.3.
    pub version: Version,
    /// What is in front of each.
    pub hosts: Hosts,
    /// What counts as an answer.
    pub counting: Counting,
    /// Threads that share the switches.
    pub threads: usize,
}

/// How a round measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Each switch sends as much as its socket takes; answers are counted.
    Throughput,
    /// The same, but all together send no more than so many a second, as behind a link that carries no more.
    AtMost(f64),
    /// Each switch has one packet-in under way; answers are counted and timed.
    Latency,
    /// All together send so many a second, whether answers come or not; they are timed from when the packet-in was due.
    Rate(f64),
}

/// Why a load did not begin: the system's reason, or that a message cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotBegun(pub String);

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the load cannot begin: {}", self.0)
    }
}

impl std::error::Error for NotBegun {}

#[cfg(test)]
mod tests;
