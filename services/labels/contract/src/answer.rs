//! The answers of the service `labels`, and the entries of its streams, as JSON.
//!
//! In: typed answers, or bytes. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::LinkId;

/// What has come of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The number of the report that is wanted next. If it is not one more than that of the report, the report changed nothing.
    pub next: u64,
    /// Whether the slice must begin again and report all that it has. Then the report changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebuild: bool,
    /// The first entries that were refused. All others were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedEntry>,
}

/// An entry of a report that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedEntry {
    /// Which entry, from 0.
    pub at: usize,
    /// Why, as a sentence.
    pub why: String,
}

/// The label of one direction of a link, for one slice: what the flows of all other slices leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The link.
    pub link: LinkId,
    /// What it carries, in kbit/s.
    pub capacity_kbps: u64,
    /// What is left of it, in kbit/s, rounded down.
    pub label_kbps: u64,
}

/// A label as a stream has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedLabel {
    /// When the service had computed it, in microseconds since 1970.
    pub at_us: u64,
    /// The label.
    #[serde(flatten)]
    pub label: Label,
}

/// What holds for all labels of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The labels may be too high: the service was restarted, and not all slices have reported again. If the stream ends, the reader counts its
    /// labels as stale by itself.
    pub stale: bool,
    /// This slice has not reported all that it has. It begins again.
    pub rebuild: bool,
    /// The agents of its VNICs that are there, in order. They shape what these send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<u32>,
}

/// A flow of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The VNIC that sends.
    pub from: String,
    /// The VNIC that receives.
    pub to: String,
    /// Its links, first to last.
    pub links: Vec<LinkId>,
    /// How many rules make its path.
    pub rules: u32,
    /// Whether it counts: its meter sees packets, or nobody meters its receiver.
    pub counts: bool,
    /// Its nominal rate in bit/s; 0 if it does not count.
    pub rate_bps: u64,
    /// What its sender's agent was told that it may send in bit/s, if it crosses an overbooked link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_bps: Option<u64>,
    /// What the meter of its receiver measured last in bit/s, to a tenth. None: nobody meters it, or it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_bps: Option<u64>,
}

impl Flow {
    /// What the flow gets in bit/s: what was measured. Of a flow that nobody meters, it is the nominal rate, or the cap if that is lower.
    pub fn got_bps(&self) -> u64 {
        let unmeasured = || self.cap_bps.map_or(self.rate_bps, |cap_bps| cap_bps.min(self.rate_bps));
        self.measured_bps.unwrap_or_else(unmeasured)
    }
}

/// How far a slice is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The name of the slice.
    pub slice: String,
    /// Whether it has reported all that it has.
    pub complete: bool,
    /// How many flows have a path.
    pub flows: u64,
    /// How many directions of links it shows.
    pub links: u64,
    /// Whether its labels may be too high, because not all other slices have reported since the service started.
    #[serde(default)]
    pub stale: bool,
}

/// What the service has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Slices.
    pub slices: u64,
    /// Flows with a path, of all slices.
    pub flows: u64,
    /// Reports that were taken.
    pub reports: u64,
    /// Reports that came twice.
    pub repeated: u64,
    /// Reports that came before an earlier one.
    pub early: u64,
    /// Entries that were refused.
    pub refused: u64,
    /// Labels that were told.
    pub notices: u64,
    /// How often a slice reported all that it has.
    pub rebuilds: u64,
}

/// An agent on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStanding {
    /// Its number.
    pub agent: u32,
    /// Whether it is there: flows to its VNICs count by what it meters.
    pub there: bool,
    /// How many of its datagrams and statements were ignored.
    pub refused: u64,
}

/// Somebody lies, or is misconfigured. Further ones within ten seconds are counted in the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// What happened: `agent_refused`.
    pub kind: String,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The agent that said it, by its own account. None: none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u32>,
    /// A sentence.
    pub why: String,
    /// How many there were since the last one that was reported.
    pub repeated: u64,
}
