//! The settings of switch sessions, with their defaults.
//!
//! It never reads a file: the node maps its own configuration to this.

use crate::binding::{Binding, Table};
use crate::occupancy::ConnectionCaps;
use crate::roster::Roster;
use crate::switch_pace::SwitchPaces;
use openflow::Version;
use openflow::message::{ROLE_EQUAL, ROLE_MASTER, ROLE_NOCHANGE, ROLE_SLAVE, Role};
use std::net::IpAddr;
use std::sync::Arc;

/// The settings of switch sessions. The comment of each bound says what happens at it.
#[derive(Clone, Debug)]
pub struct SouthboundConfig {
    /// The OpenFlow versions that the node offers.
    pub versions: Versions,
    /// The role that the node requests when a 1.3 switch connects. If the switch refuses, its present role stays.
    pub role: RoleWanted,
    /// After this silence of a switch, the node sends an echo request.
    pub echo_interval_ms: u64,
    /// After this silence, the session is ended. Any byte from the switch counts. The session also ends if the switch
    /// has accepted none of the waiting bytes for this long.
    pub echo_timeout_ms: u64,
    /// The time limit for each step of the handshake. After it the connection is closed.
    pub handshake_timeout_ms: u64,
    /// The time limit for a barrier reply. After it the receipts of its commands are `unknown`.
    pub receipt_timeout_ms: u64,
    /// The time limit for the next part of a statistics reply, and for a role reply. After it the request fails.
    pub request_timeout_ms: u64,
    /// Connections of all workers together. A further connection is closed as soon as it is accepted.
    pub max_connections: usize,
    /// Connections from one IPv4 address, or from one IPv6 /64. A further connection is closed as soon as it is
    /// accepted. Loopback addresses may have three quarters of [`SouthboundConfig::max_connections`] instead, and no
    /// address more than that.
    pub max_connections_per_address: usize,
    /// Connections from one address that have not finished their handshake. A further connection is closed as soon as
    /// it is accepted.
    pub max_half_open_per_address: usize,
    /// Bytes that wait for one switch to accept them. Above half of it, packet-outs are refused. Above three
    /// quarters, all commands of apps are refused. Above all of it, the session is ended.
    pub max_output_bytes: usize,
    /// Commands of one session that wait for their barrier. One zone may have at most as many as are left for the
    /// others. A further command is refused.
    pub max_outstanding: usize,
    /// Statistics requests of one session that wait for their reply. One zone may have at most as many as are left
    /// for the others. A further request is refused.
    pub max_requests: usize,
    /// SO_RCVBUF of a connection: what a switch has sent and the node has not read. Linux doubles it for its own records. 0: the system chooses, and may
    /// choose megabytes. A barrier reply is behind all of that.
    pub receive_buffer_bytes: usize,
    /// How many bytes are read from one connection before the others get their turn.
    pub read_bytes_per_turn: usize,
    /// How many bytes of a packet a switch sends in a packet-in, if it keeps the packet. 0xffff: all of it.
    pub miss_send_len: u16,
    /// The TLS configuration, if any. With it, each port accepts both TLS and plain OpenFlow.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Who may connect without TLS if TLS is configured.
    pub plain: Plain,
    /// How datapath ids are bound to the certificates of switches. Without TLS nothing is bound.
    pub binding: Binding,
    /// The operator's table: the certificates that may be used for an id.
    pub datapaths: Table,
    /// How switches are treated by their profiles.
    pub paces: SwitchPaces,
}

/// OFPCML_NO_BUFFER: packet-ins contain whole packets (1.3.5, 7.3.2). In 1.0 the number exceeds every packet's length, which means the same.
pub const WHOLE_PACKETS: u16 = 0xffff;

impl Default for SouthboundConfig {
    fn default() -> Self {
        SouthboundConfig {
            versions: Versions::default(),
            role: RoleWanted::default(),
            echo_interval_ms: 5_000,
            echo_timeout_ms: 15_000,
            handshake_timeout_ms: 10_000,
            receipt_timeout_ms: 30_000,
            request_timeout_ms: 10_000,
            max_connections: 4_096,
            // A network emulator on this machine connects all its switches from one address. Few emulated networks
            // have more switches than this.
            max_connections_per_address: 1_024,
            // A test bed of a few hundred switches on one machine connects at once, from one address.
            max_half_open_per_address: 256,
            max_output_bytes: 4 << 20,
            // Three slices may await as many answers of a switch as a slice ever does.
            max_outstanding: 16_384,
            max_requests: 128,
            // As much as one turn reads. With megabytes, packet-ins of a switch that floods are a tenth of a second old when an app gets them, and
            // so are the receipts of rules.
            receive_buffer_bytes: 64 << 10,
            read_bytes_per_turn: 64 << 10,
            miss_send_len: WHOLE_PACKETS,
            tls: None,
            plain: Plain::default(),
            binding: Binding::default(),
            datapaths: Table::default(),
            paces: SwitchPaces::default(),
        }
    }
}

impl SouthboundConfig {
    /// Sets the limits and the binding of a roster to these settings.
    pub fn apply_to(&self, roster: &Roster) {
        roster.limit(self.caps());
        let binding = if self.tls.is_some() { self.binding } else { Binding::None };
        roster.bind(binding, self.datapaths.clone());
    }

    /// The maximum numbers of connections.
    pub const fn caps(&self) -> ConnectionCaps {
        ConnectionCaps {
            all: self.max_connections,
            per_address: self.max_connections_per_address,
            half_open_per_address: self.max_half_open_per_address,
        }
    }
}

/// Who may connect without TLS if the node has TLS configured. Without a TLS configuration, every switch connects
/// without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// No address.
    Nobody,
    /// Loopback addresses. A local user who could listen or send there could also read the node's key, unless Linux
    /// prevents both.
    #[default]
    Loopback,
    /// All addresses.
    Everybody,
}

impl Plain {
    /// Whether a switch at this address may connect without TLS.
    pub const fn is_let_in(self, address: IpAddr) -> bool {
        match self {
            Plain::Nobody => false,
            Plain::Loopback => address.is_loopback(),
            Plain::Everybody => true,
        }
    }
}

/// The role that the node requests when a switch connects (1.3.5, 6.3.4). OpenFlow 1.0 has no roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleWanted {
    /// No request. The switch's default stays, which is equal for a new session.
    #[default]
    NoChange,
    /// The role equal.
    Equal,
    /// The role master. A switch that has seen a higher generation id refuses it.
    Master {
        /// The number of the election that this controller won. Each election increments it.
        generation_id: u64,
    },
    /// The role slave. A switch that has seen a higher generation id refuses it.
    Slave {
        /// The number of the last election.
        generation_id: u64,
    },
}

impl RoleWanted {
    /// The role request message for it.
    pub const fn request(self) -> Role {
        match self {
            RoleWanted::NoChange => Role { role: ROLE_NOCHANGE, generation_id: 0 },
            // The switch ignores the generation id of these two (1.3.5, 7.3.9).
            RoleWanted::Equal => Role { role: ROLE_EQUAL, generation_id: 0 },
            RoleWanted::Master { generation_id } => Role { role: ROLE_MASTER, generation_id },
            RoleWanted::Slave { generation_id } => Role { role: ROLE_SLAVE, generation_id },
        }
    }
}

/// The OpenFlow versions that the node offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// OpenFlow 1.0, wire version 0x01.
    pub v1_0: bool,
    /// OpenFlow 1.3, wire version 0x04.
    pub v1_3: bool,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { v1_0: true, v1_3: true }
    }
}

impl Versions {
    /// Whether this version is enabled.
    pub const fn contains(self, version: Version) -> bool {
        match version.0 {
            0x01 => self.v1_0,
            0x04 => self.v1_3,
            _ => false,
        }
    }

    /// The highest version, for the header of our hello. If none is enabled, 1.3, and then no version can be
    /// negotiated.
    pub const fn highest(self) -> Version {
        if self.v1_0 && !self.v1_3 { Version::V1_0 } else { Version::V1_3 }
    }

    /// Bit n is set if wire version n is enabled (1.3.5, 7.5.1).
    pub const fn bitmap(self) -> u32 {
        (self.v1_0 as u32) << Version::V1_0.0 | (self.v1_3 as u32) << Version::V1_3.0
    }

    /// The highest version that is also in `theirs`, a bitmap.
    pub const fn highest_common(self, theirs: u32) -> Option<Version> {
        match (self.bitmap() & theirs).checked_ilog2() {
            // A bitmap has 32 bits, so the number fits.
            Some(version) => Some(Version(version as u8)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_openflow_is_let_in_from_where_it_is_said_and_by_default_from_this_machine() {
        let check = |plain: Plain, address: &str, expected| {
            assert_eq!(plain.is_let_in(address.parse().unwrap()), expected, "{plain:?} {address}");
        };
        for (address, is_loopback) in
            [("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("10.0.0.1", false), ("fe80::1", false)]
        {
            check(Plain::default(), address, is_loopback);
            check(Plain::Everybody, address, true);
            check(Plain::Nobody, address, false);
        }
    }
}
