//! Tests of Burnet as a whole, from outside: the real binary, the real Open vSwitch, a real Mininet.
//!
//! ```text
//! scenario ──→ Sandbox (namespaces) ──→ OpenVSwitch, Mininet, a controller ──→ what they print
//! ```
//!
//! In: what a scenario needs (a topology, a protocol version, a controller). Out: the programs' output. All of them
//! run in a [`sandbox::Sandbox`]. So they do not touch the machine's network, its Open vSwitch or its processes, and
//! everything ends with the sandbox. This crate uses no crate of Burnet, only its binary. Only the scenarios
//! `verdicts` and `oracle` use Burnet's crates directly.

pub mod certificates;
pub mod dummy_bridge;
pub mod mininet;
pub mod node;
pub mod open_vswitch;
pub mod os_ken;
pub mod sandbox;
pub mod stand_in;

pub use sandbox::{scenario, scenario_that_waits};

/// A failure, as a sentence for the reader of the test's output.
pub type Result<T> = std::result::Result<T, String>;

/// The OpenFlow version that a switch uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// OpenFlow 1.0, wire version 0x01.
    V1_0,
    /// OpenFlow 1.3, wire version 0x04.
    V1_3,
}

impl Version {
    /// Its name in Open vSwitch's column `protocols`.
    pub fn in_ovs(self) -> &'static str {
        match self {
            Version::V1_0 => "OpenFlow10",
            Version::V1_3 => "OpenFlow13",
        }
    }
}
