//! The contract of the service `resource`: observations of zones, rulings, and the rules by which both sides judge.
//!
//! ```text
//!   monitor ──Observed──> service ──Judges──> Ruling
//!           <──Rulings───
//! ```
//!
//! In and out: values, and their JSON. The monitor judges by the same rules while the service does not answer. This
//! crate measures nothing and ends no zone.

mod judge;

pub use judge::{Judge, Judges, Verdict};

use serde::{Deserialize, Serialize};
use zone::{Limits, Sample};

/// The name of the service.
pub const SERVICE: &str = "resource";

/// It has no capabilities: only the monitor sends to it.
pub const DECLARATION: contract::Service = contract::Service::without_capabilities(SERVICE);

/// To the service: the resource use of all zones at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// One for each zone.
    pub zones: Vec<Observation>,
}

/// From the service: the rulings on one [`Observed`], even if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rulings {
    /// The rulings.
    pub rulings: Vec<Ruling>,
}

/// One zone at one moment, with all inputs of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The zone's number.
    pub zone: u16,
    /// What the zone used. The sample also says which start of the app it belongs to.
    pub sample: Sample,
    /// The zone's limits.
    #[serde(with = "zone::limits::handed_on")]
    pub limits: Limits,
    /// Whether Linux enforces its limit of processor time.
    pub keeps_cpu: bool,
}

/// A verdict, and the zone that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    /// The zone's number.
    pub zone: u16,
    /// Which start of the zone's app, so that a later start is not ended by mistake.
    pub generation: u64,
    /// What to do.
    pub verdict: Verdict,
}
