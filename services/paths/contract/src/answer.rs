//! The answers of the service `paths`, as JSON.
//!
//! In: typed answers, or bytes. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::{IntentId, LinkId, Record};

/// A part of the list of intents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The intents, in the order of their numbers.
    pub intents: Vec<Record>,
    /// The `after` of the next question, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<IntentId>,
}

/// What came of several intents, in the order of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// One for each intent.
    pub intents: Vec<AddResult>,
}

/// What came of one intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AddResult {
    /// The store has it, or it was there already.
    Taken {
        /// Its number.
        id: IntentId,
    },
    /// It was refused.
    Refused {
        /// The status, as a question of its own would have it.
        status: u16,
        /// Why.
        reason: String,
    },
}

/// A way between two switches that no intent uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The links in their order.
    pub links: Vec<LinkId>,
    /// The sum of their weights.
    pub weight: u64,
    /// The sum of their latencies, if all are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// What is not reserved on the narrowest link, if all capacities are known and there is a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_kbps: Option<u64>,
}

/// The answer to a question for ways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ways {
    /// The ways, the shortest first.
    pub ways: Vec<Way>,
}

/// What the service has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Intents in the table.
    pub intents: u64,
    /// Intents that every switch has confirmed.
    pub installed: u64,
    /// Intents that wait for a path or an end.
    pub waiting: u64,
    /// Intents that cannot be served.
    pub failed: u64,
    /// Computations of an intent's paths.
    pub compiled: u64,
    /// Computations that gave other paths than before.
    pub rerouted: u64,
    /// Failures that a switch reported for the rules of an intent.
    pub switch_failures: u64,
    /// How often a switch was left out of all paths, because there are too many.
    #[serde(default)]
    pub switches_left_out: u64,
    /// How often a link was left out of all paths, because there are too many links or switches.
    #[serde(default)]
    pub links_left_out: u64,
}
