//! One session, as the operator sees it.
//!
//! A copy: it does not change when the session does.

use crate::connection::Connection;
use crate::counters::Counters;
use crate::roles::ControllerRole;
use crate::session::{Identity, State};
use crate::switch_pace::PaceSnapshot;
use abi::event::PortRecord;
use openflow::Version;
use openflow::message::SwitchDesc;
use std::net::SocketAddr;

/// The state of a session at the time of the question.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// The address that it connected from.
    pub peer: SocketAddr,
    /// Whether it uses TLS.
    pub tls: bool,
    /// The stage of the session.
    pub state: State,
    /// The OpenFlow version of the session. Before the hello, the highest version that we offer.
    pub version: Version,
    /// What the switch reported in its features reply. Zeros before that.
    pub identity: Identity,
    /// The role that the switch last confirmed for this controller, if requested. OpenFlow 1.3 does not report when
    /// another controller takes it.
    pub role: Option<ControllerRole>,
    /// The switch's description, if it sent one.
    pub desc: Option<SwitchDesc>,
    /// Its ports, sorted by number.
    pub ports: Vec<PortRecord>,
    /// The session's counts.
    pub counters: Counters,
    /// Commands that wait for their receipt.
    pub outstanding: usize,
    /// Bytes that the switch has not accepted yet.
    pub output_bytes: usize,
    /// How the switch is treated by a profile, if one applies to it.
    pub pace: Option<PaceSnapshot>,
}

impl SessionSnapshot {
    pub(crate) fn of(connection: &Connection) -> Self {
        let session = &connection.session;
        SessionSnapshot {
            peer: connection.peer,
            tls: connection.is_tls(),
            state: session.state(),
            version: session.version(),
            identity: session.identity(),
            role: session.role(),
            desc: session.desc().cloned(),
            ports: session.ports().copied().collect(),
            counters: *session.counters(),
            outstanding: session.outstanding(),
            output_bytes: connection.outbox.len(),
            pace: session.pace_snapshot(),
        }
    }
}
