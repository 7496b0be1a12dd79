//! A scenario: a network, what happens to it in time, and what has to come of that.
//!
//! ```text
//!   TOML ──> file ──> plan ──> Scenario { topology, steps in time, expectations }
//!                                  │
//!                                  └──> Play: "it is so late" ──> what to do, what to look at
//!                                             what came of it ──> which expectations hold ──> Verdict of each
//! ```
//!
//! Reading and deciding are pure: [`Play`] is told the time and what was found, and says what is to be done. Whoever has the network
//! does it. Only the topology's own file is opened, by [`Scenario::read`].

mod expectation;
mod file;
mod plan;
mod play;
mod rehearsal;

pub use expectation::{Expectation, Verdict, Wanted};
pub use play::{Doing, Found, Play, Purpose};
pub use rehearsal::Rehearsal;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::host::flow::FlowSpec;
use crate::network::Change;
use crate::run::Clock;
use crate::topology::Topology;
use software_switch::Versions;

/// The most that happens in a scenario, each single ping counted. Beyond it a scenario is a load test, which is another command's.
pub const STEPS_MAX: usize = 100_000;
/// The most expectations.
pub const EXPECTATIONS_MAX: usize = 10_000;
/// The longest that a scenario takes.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A scenario that can be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// What a reader of the topology's file should know.
    pub notes: Vec<String>,
    /// The versions that switches offer; `None`: the scenario leaves it open.
    pub versions: Option<Versions>,
    /// How time passes.
    pub clock: Clock,
    /// The seed of all that chance decides in virtual time.
    pub seed: u64,
    /// Whether floods follow a spanning tree.
    pub spanning_tree: bool,
    /// What happens, in the order of time.
    pub steps: Vec<Step>,
    /// The names of the series of pings.
    pub series: Vec<String>,
    /// The flows between hosts.
    pub flows: Vec<NamedFlow>,
    /// What has to be so.
    pub expectations: Vec<Expectation>,
}

/// A flow and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFlow {
    /// What expectations call it.
    pub name: String,
    /// What it is.
    pub spec: FlowSpec,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, since the beginning.
    pub at: Duration,
    /// The line of the file.
    pub line: u32,
    /// What.
    pub what: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The network changes.
    Change(Change),
    /// One ping, of a series.
    Ping {
        /// The series' index.
        series: usize,
        /// Name of the host that pings.
        from: String,
        /// Name of the host that is pinged.
        to: String,
        /// After how long it is lost.
        timeout: Duration,
    },
    /// All hosts ping all others, as a series.
    PingAll {
        /// The series' index.
        series: usize,
        /// After how long a ping is lost.
        timeout: Duration,
    },
    /// A flow begins, by its index.
    StartFlow(usize),
    /// A flow ends, and what became of it is looked at.
    EndFlow(usize),
}

/// A file that is no scenario. It is the operator's to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAScenario {
    pub(crate) file: PathBuf,
    pub(crate) line: Option<u32>,
    pub(crate) why: String,
}

impl fmt::Display for NotAScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file.display(), self.why),
            None => write!(f, "{}: {}", self.file.display(), self.why),
        }
    }
}

impl std::error::Error for NotAScenario {}
