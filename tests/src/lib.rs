//! Burnet as a whole, looked at from outside: the real binary, the real Open vSwitch, a real Mininet.
//!
//! ```text
//! scenario ──→ Sandbox (namespaces) ──→ OpenVSwitch, Mininet, a controller ──→ what they print
//! ```
//!
//! In: a scenario's wishes (a topology, a protocol version, a controller). Out: what the programs answered. All of
//! them run in a [`sandbox::Sandbox`], so nothing here touches the machine's network, its Open vSwitch or its
//! processes, and everything ends when the sandbox does. No crate of Burnet is known here, only its binary; the scenario
//! `verdicts` alone asks the software switch itself.

pub mod certificates;
pub mod dummy_bridge;
pub mod mininet;
pub mod node;
pub mod open_vswitch;
pub mod sandbox;
pub mod stand_in;

use sandbox::Sandbox;

/// Runs `body` in a sandbox called `name`, and fails the test with its sentence and the ends of all logs.
///
/// # Panics
/// When the sandbox cannot be made or `body` fails: this is how a test fails.
pub fn scenario(name: &str, body: impl FnOnce(&Sandbox) -> Result<()>) {
    let told = |sandbox: Sandbox| body(&sandbox).map_err(|reason| format!("{reason}\n{}", sandbox.logs()));
    if let Err(reason) = Sandbox::new(name).and_then(told) {
        panic!("{name}: {reason}");
    }
}

/// A failure as a sentence, for whoever reads the test's output.
pub type Result<T> = std::result::Result<T, String>;

/// The protocol version that a switch is told to speak.
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
