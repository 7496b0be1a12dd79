//! The objects of the view: what is known of a switch, a port, a link and a host.
//!
//! In: values of the services that know them. Out: their JSON form, which streams and REST share. An object holds what others
//! decide by and nothing that can be computed from other objects.

use crate::id::{ConnectPoint, HostId, LinkId};
use flow::{DatapathId, MacAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What operators and apps note about an object, by name. The name of an app's note begins with the app's name and a slash.
pub type Annotations = BTreeMap<String, String>;

/// Whether a node has a session with the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchState {
    /// A node has a session with it.
    Up,
    /// It was connected before.
    Down,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// Its datapath id.
    pub id: DatapathId,
    /// Whether it is connected.
    pub state: SwitchState,
    /// The OpenFlow version of its session: `1.0` or `1.3`.
    pub openflow: String,
    /// The number of its tables.
    pub n_tables: u8,
    /// How many packets it can buffer.
    pub n_buffers: u32,
    /// Its description (OpenFlow 1.3.5, 7.3.5.1): `manufacturer`, `hardware`, `software`, `serial_number`, `datapath`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub description: BTreeMap<String, String>,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Where it is.
    pub id: ConnectPoint,
    /// The switch's name for it.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Whether it can forward: it is administratively up and has a signal.
    pub live: bool,
    /// Whether the operator wants it up.
    pub enabled: bool,
    /// Its speed in kbit/s; 0 if the switch does not say.
    pub speed_kbps: u64,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// How a link was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// By LLDP: the two ports are joined by a cable.
    Direct,
    /// By a broadcast probe: switches that Burnet does not control are in between.
    Indirect,
    /// By the operator's configuration.
    Static,
}

/// Whether a link carries frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// Probes arrive, and both ports are live.
    Up,
    /// A port is down, or probes are missing.
    Down,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its two ends.
    pub id: LinkId,
    /// How it was found.
    pub found: LinkKind,
    /// Whether it carries frames.
    pub state: LinkState,
    /// The lower speed of its ports in kbit/s; 0 if unknown.
    pub capacity_kbps: u64,
    /// The delay of its probes in microseconds, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// When the state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

impl Link {
    /// The note that the service `discovery` gives a link whose capacity is a label of an outer node, if that says that its labels are stale.
    pub const CAPACITY_NOTE: (&str, &str) = ("capacity", "stale");

    /// Whether the capacity may be too high, because it is a stale label of an outer node.
    pub fn has_stale_capacity(&self) -> bool {
        let (name, value) = Link::CAPACITY_NOTE;
        self.annotations.get(name).is_some_and(|it| it == value)
    }
}

/// An end station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its Ethernet address and VLAN.
    pub id: HostId,
    /// Its addresses, sorted.
    pub addresses: Vec<IpAddr>,
    /// Where it is connected.
    pub at: ConnectPoint,
    /// When the host was last seen at a new place or with a new address, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether the operator configured it. Such a host neither moves nor expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configured: bool,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}
