//! Intents and paths: what somebody wants connected, and the ways through the network that serve it now.
//!
//! ```text
//!   Wanted { ends, selector, treatment, constraints, … } ──service paths──> Intent { state, reason } and Path { links }
//! ```
//!
//! In: values of the service `paths`. Out: their JSON form, which streams and REST share. It computes nothing.

use crate::id::{ConnectPoint, HostId, IntentId, LinkId, NotAKey};
use crate::object::Annotations;
use flow::{Action, DatapathId, Match};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// One way of an intent. Text: `7.0` is the first way of the intent 7, and `7.0b` its backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathId {
    /// The intent that it serves.
    pub intent: IntentId,
    /// Which of its ways. An intent between two hosts has two: 0 leads to the second host, 1 back to the first.
    pub leg: u16,
    /// Whether it carries packets only while the other path of this leg cannot.
    pub backup: bool,
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for IntentId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let number = text.parse().map_err(|_| NotAKey(format!("{text:?} is no intent: write its number")))?;
        Ok(IntentId(number))
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backup = if self.backup { "b" } else { "" };
        write!(f, "{}.{}{backup}", self.intent, self.leg)
    }
}

impl FromStr for PathId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let no_path = || NotAKey(format!("{text:?} is no path: write INTENT.WAY or INTENT.WAYb"));
        let (intent, leg) = text.split_once('.').ok_or_else(no_path)?;
        let (leg, backup) = leg.strip_suffix('b').map_or((leg, false), |leg| (leg, true));
        Ok(PathId { intent: intent.parse()?, leg: leg.parse().map_err(|_| no_path())?, backup })
    }
}

impl From<PathId> for String {
    fn from(id: PathId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for PathId {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

/// What an intent connects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Ends {
    /// Two hosts, in both directions. It follows a host that moves.
    HostToHost {
        /// A host.
        one: HostId,
        /// The other host.
        two: HostId,
    },
    /// From one port to another, in this direction.
    PointToPoint {
        /// Where packets enter the network.
        from: ConnectPoint,
        /// Where they leave it.
        to: ConnectPoint,
    },
    /// From several ports to one.
    MultiToSingle {
        /// Where packets enter the network.
        from: Vec<ConnectPoint>,
        /// Where they leave it.
        to: ConnectPoint,
    },
    /// From one port to several: each gets a copy.
    SingleToMulti {
        /// Where packets enter the network.
        from: ConnectPoint,
        /// Where the copies leave it.
        to: Vec<ConnectPoint>,
    },
    /// From one port to another over exactly these links.
    Explicit {
        /// Where packets enter the network.
        from: ConnectPoint,
        /// Where they leave it.
        to: ConnectPoint,
        /// The links in their order. None: both ports are of one switch.
        links: Vec<LinkId>,
    },
}

/// By what a path is short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Each link counts 1.
    #[default]
    Hops,
    /// The latency of its links. A link whose latency is unknown counts as one of a millisecond.
    Latency,
    /// The inverse of the capacity of its links. A link whose capacity is unknown counts as one of 1 Gbit/s.
    Capacity,
    /// The number in the annotation of this name. Links without such a number are not used.
    Annotation(String),
}

/// What the paths of an intent must fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Constraints {
    /// What is reserved on each link, in each direction that the intent uses. 0: nothing. A link of unknown capacity cannot serve it.
    #[serde(skip_serializing_if = "is_zero")]
    pub bandwidth_kbps: u64,
    /// The longest latency of a path. A link of unknown latency cannot serve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us_max: Option<u64>,
    /// Switches that each path visits, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<DatapathId>,
    /// Switches that no path visits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub avoid_switches: Vec<DatapathId>,
    /// Links that no path uses, in this direction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub avoid_links: Vec<LinkId>,
    /// What makes a path short.
    #[serde(skip_serializing_if = "is_default")]
    pub weight: Weight,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What happens when a link of the path fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protection {
    /// Another path is computed and installed.
    #[default]
    Restored,
    /// A disjoint backup is installed beforehand, and the switches change over to it by themselves. Needs OpenFlow 1.3.
    Protected,
}

/// The priority of an intent that names none: above the rules of reactive apps, and below those of an operator.
pub const INTENT_PRIORITY: u16 = 20_000;

fn intent_priority() -> u16 {
    INTENT_PRIORITY
}

/// What an app or the operator wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wanted {
    /// What is connected.
    #[serde(flatten)]
    pub ends: Ends,
    /// Which packets. No input port: the ends give it. Between hosts, their Ethernet addresses are added.
    #[serde(default, skip_serializing_if = "Match::is_any")]
    pub selector: Match,
    /// What is done with packets before they leave the network: actions that rewrite headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub treatment: Vec<Action>,
    /// What the paths must fulfil.
    #[serde(default, skip_serializing_if = "is_default")]
    pub constraints: Constraints,
    /// The priority of its rules. Of two intents that want the same packets, the higher one gets them.
    #[serde(default = "intent_priority")]
    pub priority: u16,
    /// What happens when a link fails.
    #[serde(default)]
    pub protection: Protection,
}

/// How far an intent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentState {
    /// Accepted, and not stored yet.
    Requested,
    /// Stored. Its paths are about to be computed.
    Compiling,
    /// Its rules are under way to the switches.
    Installing,
    /// Every switch has confirmed its rules.
    Installed,
    /// Another path is under way to the switches. The rules of the earlier one are in place until it is confirmed.
    Rerouting,
    /// There is no path now, or an end is unknown. It goes on by itself when the network allows. The reason says what is missing.
    Waiting,
    /// It cannot be served as it is. The reason says why. A change of the intent, or of what stands in its way, starts it again.
    Failed,
    /// Its rules are being removed. When none is left, the intent is gone.
    Withdrawing,
}

impl IntentState {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            IntentState::Requested => "requested",
            IntentState::Compiling => "compiling",
            IntentState::Installing => "installing",
            IntentState::Installed => "installed",
            IntentState::Rerouting => "rerouting",
            IntentState::Waiting => "waiting",
            IntentState::Failed => "failed",
            IntentState::Withdrawing => "withdrawing",
        }
    }
}

/// An intent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Its number.
    pub id: IntentId,
    /// The app that added it.
    pub owner: String,
    /// The name that its owner gave it. An owner has one intent of a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How far it is.
    pub state: IntentState,
    /// Why it is not installed, if it is not on its way: a sentence that begins with the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is wanted.
    #[serde(flatten)]
    pub wanted: Box<Wanted>,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// A way through the network that serves an intent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Its name.
    pub id: PathId,
    /// The intent that it serves.
    pub intent: IntentId,
    /// Where packets enter the network.
    pub from: ConnectPoint,
    /// Where they leave it.
    pub to: ConnectPoint,
    /// The links in their order.
    pub links: Vec<LinkId>,
    /// What is reserved on each link.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bandwidth_kbps: u64,
    /// The sum of the latencies of its links, if all are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_refused() {
        let check = |text: &str, part: &str| {
            let why = text.parse::<PathId>().unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("7", "is no path");
        check("x.0", "\"x\" is no intent");
        check("7.", "is no path");
        check("7.70000", "is no path");
        check("7.0c", "is no path");
    }

    #[test]
    fn an_intent_reads_as_one_flat_object() {
        let text = r#"{"id":7,"owner":"web","name":"a","state":"waiting","reason":"two: unknown","type":"host_to_host","one":"00:00:00:00:00:01","two":"00:00:00:00:00:02.5","selector":{"eth_type":"0x0800"},"treatment":[{"type":"pop_vlan"}],"constraints":{"bandwidth_kbps":5,"weight":{"annotation":"cost"}},"priority":7,"protection":"protected","since_ms":1}"#;
        let intent: Intent = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&intent).unwrap(), text);
        let least = r#"{"type":"explicit","from":"1/1","to":"2/2","links":["1/2-2/1"]}"#;
        let wanted: Wanted = serde_json::from_str(least).unwrap();
        assert_eq!((wanted.priority, wanted.protection), (INTENT_PRIORITY, Protection::Restored));
    }
}
