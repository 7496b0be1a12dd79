//! One session as the operator is shown it.
//!
//! A copy: never changes when the session does.

use crate::connection::Connection;
use crate::counters::Counters;
use crate::roles::ControllerRole;
use crate::session::{Identity, State};
use abi::event::PortRecord;
use openflow::Version;
use openflow::message::SwitchDesc;
use std::net::SocketAddr;

/// A session as it was when it was asked for.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// Where it connected from.
    pub peer: SocketAddr,
    /// Whether by TLS.
    pub tls: bool,
    /// How far it is.
    pub state: State,
    /// The version that is spoken; before the hello, the highest that we offer.
    pub version: Version,
    /// What the switch said of itself; zeros before it did.
    pub identity: Identity,
    /// The role that the switch last said that this controller has, if it was asked. 1.3 does not say when another controller takes it.
    pub role: Option<ControllerRole>,
    /// What the switch says that it is, if it did.
    pub desc: Option<SwitchDesc>,
    /// Its ports, by number.
    pub ports: Vec<PortRecord>,
    /// What was counted.
    pub counters: Counters,
    /// Commands that wait for their receipt.
    pub outstanding: usize,
    /// Bytes that the switch has not taken yet.
    pub output_bytes: usize,
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
        }
    }
}
