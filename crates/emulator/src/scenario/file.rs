//! The TOML file of a scenario. Unknown keys are errors.
//!
//! In: text. Out: [`File`], or the line and what was expected there. It does not check meanings: `plan` does.

use serde::Deserialize;
use toml::Spanned;

/// All keys of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The network, by shape or file, as in `--topo`. A path is relative to the scenario's folder.
    pub(super) topology: Option<Spanned<String>>,
    /// A Python file for Mininet. `topology` then names a topology in it.
    pub(super) custom: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) propagation: bool,
    pub(super) version: Option<Spanned<String>>,
    pub(super) time: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<u64>>,
    #[serde(default)]
    pub(super) spanning_tree: bool,
    /// The profile of all switches, by name or file. A path is relative to the scenario's folder.
    pub(super) profile: Option<Spanned<String>>,
    #[serde(default, rename = "switch")]
    pub(super) switches: Vec<Spanned<OneSwitch>>,
    pub(super) links: Option<Spanned<String>>,
    #[serde(default, rename = "link")]
    pub(super) qualities: Vec<Spanned<Quality>>,
    #[serde(default, rename = "event")]
    pub(super) events: Vec<Spanned<Event>>,
    #[serde(default, rename = "expect")]
    pub(super) expectations: Vec<Spanned<Expectation>>,
}

/// A switch with a profile of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneSwitch {
    pub(super) name: String,
    pub(super) profile: String,
}

/// A link whose quality differs from the start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quality {
    pub(super) between: String,
    pub(super) quality: String,
}

/// An event: a time, and one action.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    pub(super) at: String,
    pub(super) link_down: Option<String>,
    pub(super) link_up: Option<String>,
    pub(super) switch_down: Option<String>,
    pub(super) switch_up: Option<String>,
    pub(super) host_down: Option<String>,
    pub(super) host_up: Option<String>,
    pub(super) host_move: Option<Move>,
    pub(super) link_quality: Option<Quality>,
    pub(super) ping: Option<Pings>,
    pub(super) ping_all: Option<PingAll>,
    pub(super) flow: Option<Flow>,
    pub(super) queries: Option<Queries>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    pub(super) host: String,
    pub(super) to: String,
    pub(super) port: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pings {
    pub(super) name: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) count: Option<u32>,
    pub(super) every: Option<String>,
    pub(super) timeout: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PingAll {
    pub(super) name: Option<String>,
    pub(super) timeout: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flow {
    pub(super) name: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: Option<String>,
    pub(super) rate: Option<String>,
    #[serde(rename = "for")]
    pub(super) duration: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Queries {
    pub(super) name: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) every: Option<String>,
    pub(super) arrivals: Option<String>,
    pub(super) burst: Option<u32>,
    pub(super) request_bytes: Option<u16>,
    pub(super) reply_bytes: Option<u64>,
    pub(super) open_max: Option<u32>,
    pub(super) timeout: Option<String>,
    #[serde(rename = "for")]
    pub(super) duration: String,
}

/// An expectation: one kind, with its time or bounds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    pub(super) at: Option<String>,
    pub(super) within: Option<String>,
    pub(super) connected: Option<usize>,
    pub(super) ping: Option<Pair>,
    pub(super) no_ping: Option<Pair>,
    pub(super) pings: Option<String>,
    pub(super) lost_percent: Option<Bounds>,
    pub(super) flow: Option<String>,
    pub(super) rate: Option<RateBounds>,
    pub(super) fair: Option<Vec<String>>,
    pub(super) index: Option<f64>,
    pub(super) port: Option<String>,
    pub(super) state: Option<String>,
    pub(super) flow_entries: Option<Entries>,
    pub(super) queries: Option<String>,
    pub(super) completed_percent: Option<Bounds>,
    pub(super) completion: Option<Completion>,
    pub(super) after: Option<String>,
}

/// Bounds of a quantile of completion times.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Completion {
    pub(super) quantile: f64,
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    pub(super) from: String,
    pub(super) to: String,
}

/// Bounds of a number. An omitted one does not limit it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateBounds {
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entries {
    pub(super) switch: String,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}
