//! A load generator: many switches that send packet-ins as fast as a controller takes them, and count its answers.
//!
//! ```text
//!   Load ──order──> thread: Generator ──packet-ins──> controller, or Sink
//!        <─report──     (its switches) <──flow mods──
//! ```
//!
//! A [`Load`] connects its switches and announces their hosts to the controller. Then it runs rounds in one of these
//! modes:
//!
//! * [`Mode::Throughput`]: as many packet-ins as the controller takes,
//! * [`Mode::AtMost`]: the same, but no more than a link would carry,
//! * [`Mode::Latency`]: one packet-in at a time from each switch,
//! * [`Mode::Rate`]: a fixed rate.
//!
//! A [`Sink`] is the fastest possible peer: it answers each packet-in with a prepared flow mod. It shows the limit of
//! generator and machine.
//!
//! The switches have no tables and forward nothing. Messages that are only counted are not decoded. A node never
//! starts this code, and it needs no privilege.

mod alarm;
mod allowance;
mod answers;
mod contact;
mod crew;
pub mod figures;
mod generator;
mod greeting;
mod pace;
mod progress;
mod punts;
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

/// The most switches of a load: a switch's number is two octets of an Ethernet address.
pub const SWITCHES_MAX: u16 = u16::MAX;

/// The parameters of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// The controller's address.
    pub target: SocketAddr,
    /// How many switches connect to it.
    pub switches: u16,
    /// The datapath id of the first switch. The others have the following ids.
    pub first_datapath: u64,
    /// The OpenFlow version of the switches: 1.0 or 1.3.
    pub version: Version,
    /// The hosts of each switch.
    pub hosts: Hosts,
    /// Which messages count as an answer.
    pub counting: Counting,
    /// How many threads share the switches.
    pub threads: usize,
    /// Whether a thread at a fixed rate sleeps until the next packet-in is due. Otherwise it waits in a loop: packet-ins are sent more
    /// exactly, and a processor is taken away from the other programs of the machine.
    pub sleeps: bool,
}

/// What a round sends and measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Each switch sends as much as its socket takes. Answers are counted.
    Throughput,
    /// The same, but all switches together send at most this many a second, as behind a link of that capacity.
    AtMost(f64),
    /// Each switch has one unanswered packet-in at a time. Answers are counted and timed.
    Latency,
    /// All switches together send this many a second, whether answers arrive or not. Latency is measured from the
    /// time when a packet-in was due.
    Rate(f64),
}

/// Why a load did not start: the system's error, or a message that cannot be encoded.
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
