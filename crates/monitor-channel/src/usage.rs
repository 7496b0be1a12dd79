//! The resource use of zones and of the node, as messages between the kernel process and the monitor.
//!
//! Nothing is measured or judged here.

use serde::{Deserialize, Serialize};
use zone::Excess;
use zone::Sample;

/// The interval of measurements. Linux stops a zone that leaks a gigabyte per second; this is for slower changes.
pub const SAMPLE_INTERVAL_MS: u64 = 500;

/// The maximum length of a line of an app's output in bytes. A longer line is logged in pieces.
pub const LINE_BYTES_MAX: usize = 2_048;

/// Most lines of one app in the log a second: more than anyone reads, and little enough that no app fills the disk
/// unseen.
pub const LINES_PER_S_MAX: u32 = 100;

/// The counters of a zone since it was attached, of all workers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneCounts {
    /// The zone id.
    pub zone: u16,
    /// Events that it subscribed to.
    pub events: u64,
    /// Packet-ins that were dropped because it was too slow.
    pub dropped: u64,
    /// Commands that it sent.
    pub commands: u64,
    /// Packet-outs among them.
    pub packet_outs: u64,
    /// Refused commands, of all runs of the zone.
    pub refusals: u64,
    /// How long data has waited in one of its rings without being read.
    pub lag_ms: u32,
    /// Time within its calls, if it runs inside the kernel process.
    pub calls_us: u64,
    /// The time of the counters, on the kernel process's clock.
    pub at_ms: u64,
    /// Bytes of its app in the store.
    #[serde(default)]
    pub store_bytes: u64,
}

/// The resource use of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneUsage {
    /// The zone id.
    pub zone: u16,
    /// The newest sample.
    pub sample: Sample,
    /// The exceeded soft limits, at most one for each resource.
    pub over: Vec<Excess>,
}

/// The resource use of the node's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeUsage {
    /// The kernel process.
    pub kernel: Sample,
    /// The monitor.
    pub monitor: Sample,
}
