//! What the network has now, as far as a plan depends on it.
//!
//! In: JSON of the REST interface. Out: typed objects. It asks no node.

use super::document::Document;
use burnet_sdk::view::{ConnectPoint, Host, Intent, LinkId, Path, Port, Rule};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// A version of the file, as the node keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Version {
    /// Its number, from 1.
    pub version: u64,
    /// When it was applied, in milliseconds since 1970.
    pub at_ms: u64,
    /// The version whose document it has, if it is a rollback; 0: the empty one.
    #[serde(default)]
    pub restores: Option<u64>,
    /// How long it took, if it was applied with `--wait`.
    #[serde(default)]
    pub took: Option<Took>,
}

/// How long a version took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Took {
    /// Rules that were added or removed.
    pub rules: u64,
    /// Milliseconds until the last one was confirmed.
    pub took_ms: u64,
}

/// The two ports of a way.
pub type Ends = (ConnectPoint, ConnectPoint);

/// What the network has now.
#[derive(Clone, Debug, Default)]
pub struct Current {
    /// All hosts.
    pub hosts: Vec<Host>,
    /// All ports.
    pub ports: Vec<Port>,
    /// All intents.
    pub intents: Vec<Intent>,
    /// The paths of all intents.
    pub paths: Vec<Path>,
    /// The rules of operators.
    pub rules: Vec<Rule>,
    /// The document that was applied last.
    pub applied: Option<Document>,
    /// The versions of the file, the latest last.
    pub versions: Vec<Version>,
    /// The ways that the node would choose now.
    pub ways: BTreeMap<Ends, Vec<LinkId>>,
}

/// Objects from the items of a collection.
///
/// # Errors
/// The node has another version than this program.
pub fn objects<T: DeserializeOwned>(items: Vec<Value>) -> Result<Vec<T>, String> {
    let read = |item| serde_json::from_value(item);
    let all: Result<Vec<T>, _> = items.into_iter().map(read).collect();
    all.map_err(|why| format!("the node sent an object that this program does not know: {why}"))
}

impl Current {
    /// The number of the latest version; 0: none.
    pub fn latest(&self) -> u64 {
        self.versions.last().map_or(0, |it| it.version)
    }

    /// The version to which a rollback returns. `None`: nothing was applied, or the version before is the empty one already.
    pub fn before(&self) -> Option<u64> {
        let latest = self.versions.last()?;
        latest.restores.unwrap_or(latest.version).checked_sub(1)
    }

    /// How many rules the switches confirmed in how many milliseconds, over all kept versions.
    pub fn pace(&self) -> Option<Took> {
        let took = self.versions.iter().filter_map(|it| it.took).filter(|it| it.rules > 0);
        let sum = took.fold(Took::default(), |sum, one| Took {
            rules: sum.rules + one.rules,
            took_ms: sum.took_ms + one.took_ms,
        });
        (sum.rules > 0).then_some(sum)
    }
}
