//! What zones and the node's own processes use of the machine, as kernel process and monitor tell it to each other.
//!
//! Nothing is measured or judged here.

use serde::{Deserialize, Serialize};
use zone::Sample;
use zone::judge::Excess;

/// How often the use of the machine is measured. A zone that leaks a gigabyte a second is stopped by Linux; this is for what Linux does not stop.
pub const SAMPLE_INTERVAL_MS: u64 = 500;

/// Longest line of an app's output; a longer one is logged in pieces.
pub const LINE_BYTES_MAX: usize = 2_048;

/// Most lines of one app in the log a second: more than anyone reads, and little enough that no app fills the disk
/// unseen.
pub const LINES_PER_S_MAX: u32 = 100;

/// What the kernel process counted of a zone since it was attached, all workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneCounts {
    /// Which zone.
    pub zone: u16,
    /// Events that were its to hear.
    pub events: u64,
    /// Packet-ins that it did not take in time.
    pub dropped: u64,
    /// Commands that it gave.
    pub commands: u64,
    /// Packet-outs among them.
    pub packet_outs: u64,
    /// Commands that were refused, in all lives of the zone.
    pub refusals: u64,
    /// How long something has waited in one of its rings, of which it has read nothing meanwhile.
    pub lag_ms: u32,
    /// Time within its calls, if it runs inside the kernel process.
    pub calls_us: u64,
    /// When it was counted, by the kernel process's clock.
    pub at_ms: u64,
    /// Bytes that its app has in the store.
    #[serde(default)]
    pub store_bytes: u64,
}

/// What a zone uses, as the kernel process shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneUsage {
    /// Which zone.
    pub zone: u16,
    /// The newest sample.
    pub sample: Sample,
    /// What it uses more of than the soft limit; at most one for each resource.
    pub over: Vec<Excess>,
}

/// What the node's own processes use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeUsage {
    /// The kernel process.
    pub kernel: Sample,
    /// The monitor.
    pub monitor: Sample,
}
