//! The answers of the service `hosts`, as JSON.
//!
//! In: typed answers, or bytes. Out: the other of the two.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use view::{ConnectPoint, HostId, Record};

/// A part of the list of hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The hosts, in the order of their ids.
    pub hosts: Vec<Record>,
    /// The `after` of the next question, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<HostId>,
}

/// What a host or an attacker did that the service did not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// A host spoke at another port while its old port still answered for it.
    HostAtTwoPorts,
    /// A configured host spoke at another port than the configured one.
    ConfiguredHostElsewhere,
    /// A host claimed the address of another host, which still answered for it.
    AddressOfAnother,
    /// A DHCP server answered at a port that the operator does not list.
    RogueDhcpServer,
    /// A port has as many hosts as one port can have. Further ones are not learned.
    PortFull,
    /// The table has as many hosts as it can have. Further ones are not learned.
    TableFull,
}

/// One incident. Repetitions within its interval are counted in the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// What happened.
    pub kind: IncidentKind,
    /// The host that the frame named.
    pub host: HostId,
    /// Where the frame came in.
    pub at: ConnectPoint,
    /// The address in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The host that holds the address, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<HostId>,
    /// Where the host, or the holder of the address, answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays_at: Option<ConnectPoint>,
    /// How many incidents of this kind at this port came since the last one that was reported.
    pub repeated: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
}

/// What the service has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Hosts in the table.
    pub hosts: u64,
    /// Frames that told of a host.
    pub sightings: u64,
    /// Frames that were damaged, or contradicted themselves.
    pub bad_frames: u64,
    /// Frames at ports that are no edge.
    pub not_at_edge: u64,
    /// Accepted moves.
    pub moves: u64,
    /// Refused moves, with those of which no incident was reported.
    pub refused_moves: u64,
    /// Hosts that expired.
    pub expired: u64,
    /// Hosts that were not learned, because the port or the table was full.
    pub no_room: u64,
    /// Addresses that were not learned, because the host has as many as one can have.
    pub no_room_for_address: u64,
    /// Claims of a place or an address that were not examined, because too many were under way.
    pub unexamined_claims: u64,
    /// Incidents, with those that were not reported.
    pub incidents: u64,
    /// Probes that were sent.
    pub probes: u64,
}
