//! What the operator can set of the switch sessions, with the value that holds where nothing is said.
//!
//! Never reads a file: the binary maps its own configuration to this.

use crate::binding::{Binding, Table};
use crate::roster::Roster;
use openflow::Version;
use openflow::message::{ROLE_EQUAL, ROLE_MASTER, ROLE_NOCHANGE, ROLE_SLAVE, Role};
use std::net::IpAddr;
use std::sync::Arc;

/// How switch sessions are held. Every bound says what happens at it.
#[derive(Clone, Debug)]
pub struct SouthboundConfig {
    /// Which versions are offered.
    pub versions: Versions,
    /// The role that a 1.3 switch is asked for when it comes up. If it says no, the role that it gave stays.
    pub role: RoleWanted,
    /// A switch that was silent for so long is asked for an echo.
    pub echo_interval_ms: u64,
    /// A switch that was silent for so long is given up; any byte counts as life. So is one that took nothing for so long of what waits for it.
    pub echo_timeout_ms: u64,
    /// Each step of the handshake must be done after so long, or the connection is ended.
    pub handshake_timeout_ms: u64,
    /// A barrier that is not answered for so long leaves its commands `unknown`.
    pub receipt_timeout_ms: u64,
    /// A statistics request whose next part, or a role request whose reply, does not come for so long is given up.
    pub request_timeout_ms: u64,
    /// Connections of all workers together; one more is closed as soon as it is accepted.
    pub max_connections: usize,
    /// Connections from one address, or from one /64 of IPv6; one more is closed as soon as it is accepted. This machine may have three quarters of
    /// all, and nobody more than that.
    pub max_connections_per_address: usize,
    /// Connections from one address that have not finished their handshake; one more is closed as soon as it is accepted.
    pub max_half_open_per_address: usize,
    /// Bytes waiting to be taken by one switch. From half of it on, packet-outs are refused, and from three quarters on whatever apps command;
    /// beyond it the session is ended.
    pub max_output_bytes: usize,
    /// Commands of one session that wait for their barrier. One zone has at most as many as are left for the others; one more is refused.
    pub max_outstanding: usize,
    /// Statistics requests of one session that wait for their answer. One zone has at most as many as are left for the others; one more is
    /// refused.
    pub max_requests: usize,
    /// Bytes read from one connection before the others get their turn.
    pub read_bytes_per_turn: usize,
    /// TLS, if it is set up: then the same port speaks both TLS and plain OpenFlow.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Who may connect without TLS where it is set up.
    pub plain: Plain,
    /// How datapath ids are bound to the certificates that switches show; without TLS nothing is bound.
    pub binding: Binding,
    /// The certificates that may speak for an id, by the operator's word.
    pub datapaths: Table,
}

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
            // A network emulator beside the node has all its switches at one address; more than these are in few of them.
            max_connections_per_address: 1_024,
            // A test bed of a few hundred switches on one machine comes up at once, from one address.
            max_half_open_per_address: 256,
            max_output_bytes: 4 << 20,
            max_outstanding: 2_048,
            max_requests: 128,
            read_bytes_per_turn: 64 << 10,
            tls: None,
            plain: Plain::default(),
            binding: Binding::default(),
            datapaths: Table::default(),
        }
    }
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCaps {
    /// Of all workers together.
    pub all: usize,
    /// From one address.
    pub per_address: usize,
    /// From one address, that have not finished their handshake.
    pub half_open_per_address: usize,
}

impl SouthboundConfig {
    /// Has a roster count and bind as this says.
    pub fn apply_to(&self, roster: &Roster) {
        roster.limit(self.caps());
        let binding = if self.tls.is_some() { self.binding } else { Binding::None };
        roster.bind(binding, self.datapaths.clone());
    }

    /// How many connections there may be.
    pub const fn caps(&self) -> ConnectionCaps {
        ConnectionCaps {
            all: self.max_connections,
            per_address: self.max_connections_per_address,
            half_open_per_address: self.max_half_open_per_address,
        }
    }
}

/// Who may connect without TLS to a node that has TLS set up. Where it is not set up, everybody connects without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Nobody.
    Nobody,
    /// Who connects from this machine: whoever could listen or speak there could as well read the node's key, or is kept from it by Linux.
    #[default]
    Loopback,
    /// Everybody.
    Everybody,
}

impl Plain {
    /// Whether somebody at this address may.
    pub const fn is_let_in(self, address: IpAddr) -> bool {
        match self {
            Plain::Nobody => false,
            Plain::Loopback => address.is_loopback(),
            Plain::Everybody => true,
        }
    }
}

/// The role that is asked for when a switch comes up (1.3.5, 6.3.4). 1.0 has no roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoleWanted {
    /// None: the one that the switch gives, which for a new session is equal.
    #[default]
    NoChange,
    /// Equal.
    Equal,
    /// Master. A switch that has seen a higher generation id refuses it.
    Master {
        /// The number of the election that this controller won; whoever elects counts it up.
        generation_id: u64,
    },
    /// Slave. A switch that has seen a higher generation id refuses it.
    Slave {
        /// The number of the last election.
        generation_id: u64,
    },
}

impl RoleWanted {
    /// The request for it.
    pub const fn request(self) -> Role {
        match self {
            RoleWanted::NoChange => Role { role: ROLE_NOCHANGE, generation_id: 0 },
            // The switch does not look at the generation id of these two (1.3.5, 7.3.9).
            RoleWanted::Equal => Role { role: ROLE_EQUAL, generation_id: 0 },
            RoleWanted::Master { generation_id } => Role { role: ROLE_MASTER, generation_id },
            RoleWanted::Slave { generation_id } => Role { role: ROLE_SLAVE, generation_id },
        }
    }
}

/// Which versions of OpenFlow are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// 1.0, wire 0x01.
    pub v1_0: bool,
    /// 1.3, wire 0x04.
    pub v1_3: bool,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { v1_0: true, v1_3: true }
    }
}

impl Versions {
    /// Whether this one is spoken.
    pub const fn contains(self, version: Version) -> bool {
        match version.0 {
            0x01 => self.v1_0,
            0x04 => self.v1_3,
            _ => false,
        }
    }

    /// The highest, which goes into the header of our hello. With none enabled, 1.3: nothing can be negotiated then.
    pub const fn highest(self) -> Version {
        if self.v1_0 && !self.v1_3 { Version::V1_0 } else { Version::V1_3 }
    }

    /// Bit n is set if wire version n is spoken (1.3.5, 7.5.1).
    pub const fn bitmap(self) -> u32 {
        (self.v1_0 as u32) << Version::V1_0.0 | (self.v1_3 as u32) << Version::V1_3.0
    }

    /// The highest that is also in `theirs`, a bitmap.
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
