//! The switches of the paper, and the two emulators of each.
//!
//! ```text
//!   built-in profile ──> target
//!                          ├─ probe ──> emulator `full`
//!                          └─ delays of its runs ──> emulator `paper`
//! ```
//!
//! In: names, and delays that were measured. Out: profiles. It runs nothing but the probe.

use profile::compare::table;
use profile::{Delay, OpenFlowVersion, Profile, Provenance, Quantiles, Sources, built_in};

use super::found::found;
use super::virtual_bed::{Seen, samples};

/// The hardware switches of the paper, each with its short name and the largest mean difference that is asked for, in milliseconds.
pub const HARDWARE: [Target; 3] = [
    Target { profile: "hp-procurve-j9451a", name: "HP", mean_limit_ms: 20.0 },
    Target { profile: "fulcrum-monaco", name: "Monaco", mean_limit_ms: 1.7 },
    Target { profile: "quanta-lb4g", name: "Quanta", mean_limit_ms: 6.3 },
];

/// The emulator that the paper starts from.
pub const OVS: Target = Target { profile: "ovs-1.7-x3210", name: "OVS", mean_limit_ms: f64::INFINITY };

/// How many packets the paper's emulator keeps: as Open vSwitch does.
const BUFFERS: u32 = 256;

/// A switch that is emulated.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its built-in profile.
    pub profile: &'static str,
    /// Its name in figures.
    pub name: &'static str,
    /// The largest mean difference of an emulator, in milliseconds.
    pub mean_limit_ms: f64,
}

impl Target {
    /// The switch itself.
    ///
    /// # Errors
    /// The built-in profile is gone.
    pub fn truth(&self) -> Result<Profile, String> {
        built_in(self.profile).ok_or_else(|| format!("there is no built-in profile {}", self.profile))
    }

    /// The emulator with the whole model, which knows what the probe found.
    ///
    /// # Errors
    /// The probe fails.
    pub fn full(&self) -> Result<Profile, String> {
        found(&self.truth()?)
    }

    /// The paper's emulator: the delays of the target at ingress and egress, drawn independently, and nothing else.
    ///
    /// # Errors
    /// No delay was measured.
    pub fn paper(&self, runs: &[Seen]) -> Result<Profile, String> {
        let all = |of: fn(&Seen) -> &[f64], what: &str| -> Result<Quantiles, String> {
            let us: Vec<f64> = runs.iter().flat_map(|seen| of(seen).iter().copied()).collect();
            table(&samples(&us, what)?).map_err(|why| format!("{what}: {why}"))
        };
        let mut emulator = Profile::null();
        emulator.name = format!("{}-paper", self.profile);
        emulator.delay = Delay {
            ingress_us: all(|seen| &seen.ingress_us, "delays at ingress")?,
            egress_us: all(|seen| &seen.egress_us, "delays at egress")?,
        };
        emulator.packet_in.buffers_packets = Some(BUFFERS);
        emulator.switch.openflow = vec![OpenFlowVersion::V10];
        emulator.sources = Sources::everything(Provenance::Assumed("delays of the target".to_owned()));
        Ok(emulator)
    }
}
