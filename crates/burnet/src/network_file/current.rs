//! What the network has now, as far as a plan depends on it.
//!
//! In: JSON of the REST interface. Out: typed objects. It asks no node.

use super::document::{Document, WantedHost};
use burnet_sdk::view::{ConnectPoint, Host, HostId, Intent, IntentId, IntentState, LinkId, Path, Port, Rule};
use flow::DatapathId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Its steps are not all taken.
    #[serde(default)]
    pub open: bool,
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

/// The two switches of a way.
pub type Ends = (DatapathId, DatapathId);

/// The owner of what operators add over the REST interface.
pub const OWNER: &str = northbound_contract::SERVICE;

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
    /// The documents whose hosts the file owns: that of the latest version whose steps are all taken, and those of later ones. The latest
    /// last.
    pub applied: Vec<Document>,
    /// The versions of the file, the latest last.
    pub versions: Vec<Version>,
    /// The ways between switches that the node would choose now.
    pub ways: BTreeMap<Ends, Vec<LinkId>>,
}

/// The same, found by what a plan asks for: each question of a plan costs the same with many objects.
#[derive(Debug)]
pub struct Known<'c> {
    /// All of it.
    pub all: &'c Current,
    hosts: BTreeMap<HostId, &'c Host>,
    ports: BTreeSet<ConnectPoint>,
    at: BTreeMap<ConnectPoint, Vec<HostId>>,
    intents: BTreeMap<&'c str, &'c Intent>,
    paths: BTreeMap<IntentId, Vec<&'c Path>>,
    sets: BTreeMap<&'c str, Vec<&'c Rule>>,
    earlier_hosts: BTreeMap<HostId, &'c WantedHost>,
}

impl<'c> Known<'c> {
    /// Looks at each object once.
    pub fn of(all: &'c Current) -> Known<'c> {
        let is_ours = |it: &&Intent| it.owner == OWNER && it.state != IntentState::Withdrawing;
        let mut known = Known {
            all,
            hosts: all.hosts.iter().map(|host| (host.id, host)).collect(),
            ports: all.ports.iter().map(|port| port.id).collect(),
            at: BTreeMap::new(),
            // Of two with one name, the first.
            intents: all.intents.iter().rev().filter(is_ours).map(|it| (it.name.as_str(), it)).collect(),
            paths: BTreeMap::new(),
            sets: BTreeMap::new(),
            earlier_hosts: all.applied.iter().flat_map(|it| &it.hosts).map(|host| (host.id, host)).collect(),
        };
        all.hosts.iter().for_each(|host| known.at.entry(host.at).or_default().push(host.id));
        all.paths.iter().for_each(|path| known.paths.entry(path.intent).or_default().push(path));
        all.rules.iter().for_each(|rule| known.sets.entry(rule.set.as_str()).or_default().push(rule));
        known
    }

    /// A host.
    pub fn host(&self, id: HostId) -> Option<&'c Host> {
        self.hosts.get(&id).copied()
    }

    /// The hosts at a port.
    pub fn hosts_at(&self, at: ConnectPoint) -> &[HostId] {
        self.at.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Whether the network has a port.
    pub fn has_port(&self, at: ConnectPoint) -> bool {
        self.ports.contains(&at)
    }

    /// The intent of this name that an operator has added.
    pub fn intent(&self, name: &str) -> Option<&'c Intent> {
        self.intents.get(name).copied()
    }

    /// The paths of an intent.
    pub fn paths_of(&self, intent: IntentId) -> &[&'c Path] {
        self.paths.get(&intent).map_or(&[], Vec::as_slice)
    }

    /// The rules of a set.
    pub fn rules_of(&self, set: &str) -> &[&'c Rule] {
        self.sets.get(set).map_or(&[], Vec::as_slice)
    }

    /// The hosts that the file owns.
    pub fn earlier_hosts(&self) -> impl Iterator<Item = &'c WantedHost> {
        self.earlier_hosts.values().copied()
    }

    /// Whether the file owns a host.
    pub fn owns(&self, id: HostId) -> bool {
        self.earlier_hosts.contains_key(&id)
    }
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

    /// The latest version, if its steps are not all taken.
    pub fn open(&self) -> Option<&Version> {
        self.versions.last().filter(|it| it.open)
    }

    /// The latest version whose steps are all taken; 0: none.
    pub fn latest_done(&self) -> u64 {
        self.versions.iter().rfind(|it| !it.open).map_or(0, |it| it.version)
    }

    /// The version to which a rollback returns. `None`: nothing was applied, or the version before is the empty one already.
    /// After an interrupted apply, it is the latest one whose steps are all taken. An interrupted rollback goes on.
    pub fn before(&self) -> Option<u64> {
        let latest = self.versions.last()?;
        match (latest.open, latest.restores) {
            (true, None) => Some(self.latest_done()),
            (true, Some(target)) => Some(target),
            (false, restores) => self.done_before(restores.unwrap_or(latest.version)),
        }
    }

    /// The latest complete version before this one. If none of the kept ones is complete, the one directly before it: the node then says
    /// that it does not keep it. `None`: nothing is before it.
    fn done_before(&self, version: u64) -> Option<u64> {
        let mut earlier = self.versions.iter().filter(|it| it.version < version);
        let has_open = earlier.clone().any(|it| it.open);
        match earlier.rfind(|it| !it.open) {
            Some(done) if has_open => Some(done.version),
            _ => version.checked_sub(1),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_returns_to_what_is_in_the_network() {
        let check = |versions: &[(u64, Option<u64>, bool)], expected: Option<u64>| {
            let version = |(version, restores, open): &(u64, Option<u64>, bool)| Version {
                version: *version,
                restores: *restores,
                open: *open,
                ..Version::default()
            };
            let current = Current { versions: versions.iter().map(version).collect(), ..Current::default() };
            assert_eq!(current.before(), expected, "{versions:?}");
        };
        let (done, open) = (false, true);
        check(&[], None);
        check(&[(1, None, done)], Some(0));
        check(&[(1, None, done), (2, None, done)], Some(1));
        check(&[(1, None, done), (2, None, done), (3, Some(1), done)], Some(0));
        check(&[(2, Some(0), done)], None);
        check(&[(1, None, open)], Some(0));
        check(&[(1, None, done), (2, None, open)], Some(1));
        check(&[(1, None, done), (2, None, open), (3, None, open)], Some(1));
        check(&[(1, None, done), (2, None, open), (3, Some(1), open)], Some(1));
        check(&[(1, None, done), (2, None, open), (3, None, done)], Some(1));
        check(&[(8, None, open), (9, None, done)], Some(8));
    }
}
