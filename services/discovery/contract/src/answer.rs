//! The answers of the service `discovery`, as JSON.
//!
//! In: typed answers, or bytes. Out: the other of the two.

use serde::{Deserialize, Serialize};
use view::{ConnectPoint, Key, Record};

/// A part of the list of objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The objects, in the order of their keys' texts.
    pub objects: Vec<Record>,
    /// The `after` of the next question, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Key>,
}

/// Why a probe was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It has the form of this service's probes, but it is damaged or has no signature.
    Unsigned,
    /// Its signature is not this service's.
    Forged,
    /// Its signature is right, but it is too old, or it was sent again.
    Replayed,
}

/// Refused probes at one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Why.
    pub refusal: Refusal,
    /// Where the probe came in.
    pub at: ConnectPoint,
    /// The port that the probe names as its origin, if it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<ConnectPoint>,
    /// How many further probes were refused there for this reason since the last incident.
    pub repeated: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
}

/// What the service has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Switches in the table.
    pub switches: u64,
    /// Ports in the table.
    pub ports: u64,
    /// Links in the table, each direction for itself.
    pub links: u64,
    /// Probes that were sent, of both kinds.
    pub probes_sent: u64,
    /// Own probes that came back.
    pub probes_received: u64,
    /// LLDP frames of other systems. They are ignored.
    pub foreign: u64,
    /// Probes without a signature, or damaged ones.
    pub unsigned: u64,
    /// Probes with a wrong signature.
    pub forged: u64,
    /// Probes that were sent again.
    pub replayed: u64,
    /// Objects that were not taken, because the tables are full.
    pub no_room: u64,
}
