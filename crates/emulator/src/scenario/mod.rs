//! A scenario: a network, timed changes, and expected results.
//!
//! ```text
//!   TOML ──> file ──> plan ──> Scenario { topology, steps in time, expectations }
//!                                  │
//!                                  └──> Play: "it is so late" ──> what to do, what to look at
//!                                             what came of it ──> which expectations hold ──> Verdict of each
//! ```
//!
//! Reading and deciding are pure. [`Play`] gets the time and the findings, and says what to do. The code that holds
//! the network does it. Only [`Scenario::read`] opens a file: the topology's.

mod expectation;
mod file;
mod names;
mod plan;
mod play;
mod quantities;
mod queries;
mod rehearsal;

pub use expectation::{Expectation, Verdict, Wanted};
pub use play::{Observation, Play, Purpose, Task};
pub use rehearsal::Rehearsal;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::host::flow::FlowSpec;
use crate::host::query::QuerySpec;
use crate::network::Change;
use crate::run::Clock;
use crate::topology::Topology;
use software_switch::{Profiles, Versions};

/// The most actions of a scenario, with each single ping counted. A larger scenario is a load test, for which there
/// is another command.
pub const STEPS_MAX: usize = 100_000;
/// The most expectations.
pub const EXPECTATIONS_MAX: usize = 10_000;
/// The longest duration of a scenario.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A scenario that can be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// Notes for the reader of the topology's file.
    pub notes: Vec<String>,
    /// The versions that switches offer. `None`: the scenario does not say.
    pub versions: Option<Versions>,
    /// Which switches play which profiles.
    pub profiles: Profiles,
    /// Real or virtual time.
    pub clock: Clock,
    /// The seed of all random decisions in virtual time.
    pub seed: u64,
    /// Whether floods use only a spanning tree.
    pub spanning_tree: bool,
    /// The actions, in the order of time.
    pub steps: Vec<Step>,
    /// The names of the series of pings.
    pub series: Vec<String>,
    /// The flows between hosts.
    pub flows: Vec<NamedFlow>,
    /// The series of queries between hosts.
    pub queries: Vec<NamedQueries>,
    /// What must be true.
    pub expectations: Vec<Expectation>,
}

/// A flow and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFlow {
    /// The name that expectations use.
    pub name: String,
    /// Its parameters.
    pub spec: FlowSpec,
}

/// A series of queries and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedQueries {
    /// The name that expectations use.
    pub name: String,
    /// Its parameters.
    pub spec: QuerySpec,
}

/// A timed action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time since the start.
    pub at: Duration,
    /// The line in the file.
    pub line: u32,
    /// The action.
    pub what: Action,
}

/// The kinds of actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The network changes.
    Change(Change),
    /// One ping of a series.
    Ping {
        /// The series' index.
        series: usize,
        /// The name of the host that pings.
        from: String,
        /// The name of the host that is pinged.
        to: String,
        /// After this time it counts as lost.
        timeout: Duration,
    },
    /// All hosts ping all others, as one series.
    PingAll {
        /// The series' index.
        series: usize,
        /// After this time a ping counts as lost.
        timeout: Duration,
    },
    /// Starts a flow, by its index.
    StartFlow(usize),
    /// Stops a flow, by its index, and reads its report.
    EndFlow(usize),
    /// Begins a series of queries, by its index.
    StartQueries(usize),
    /// Reads the report of a series of queries, by its index. Each of them has ended by then.
    EndQueries(usize),
}

/// The error for a file that is not a scenario. The operator must correct it.
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
