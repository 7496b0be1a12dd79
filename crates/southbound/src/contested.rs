//! Datapath ids that two sessions claim: which switches are probed, and which connections wait for an id.
//!
//! ```text
//!   a new session ──claim──> Roster ──challenged──> worker of the old one: echo request, now
//!   a new session <──joins── Roster <──leave─────── nothing for PROBE_MS: the old one is ended
//!                 <─refused─        <──prove─────── anything came: it lives
//! ```
//!
//! In: claims, challenges and the time. Out: the switches to probe, whether a probed switch lives, and the claims to try again. It sends
//! nothing. [`crate::probe`] decides whether a claim is good.

use crate::connection::Connection;
use crate::fault::{Fault, SessionEnd};
use crate::probe::PROBE_MS;
use crate::roster::Roster;
use flow::DatapathId;

/// Waiting claims are tried again after this time at the latest, in milliseconds.
const LOOK_MS: u64 = 5;

/// A switch that was asked whether it lives.
#[derive(Debug)]
pub struct Probed {
    pub datapath: DatapathId,
    /// When the echo request was sent. That is the turn after the one that wrote it, however long that one took.
    out_since_ms: Option<u64>,
}

/// What is known of a probed switch.
pub enum Liveness {
    /// It sent something.
    Alive,
    /// It did not answer in time, or closed the connection.
    Dead(SessionEnd),
    /// It has more time to answer.
    Unknown,
}

impl Probed {
    /// Unread bytes also show that the session is alive: the switch sent them, and the node has not read them yet.
    pub fn liveness(&mut self, connection: Option<&Connection>, now_ms: u64) -> Liveness {
        let Some(connection) = connection else { return Liveness::Unknown };
        if connection.peer_closed {
            return Liveness::Dead(SessionEnd::new(Fault::Network, "the switch closed the connection"));
        }
        if !connection.session.is_probed() || connection.has_unread() {
            return Liveness::Alive;
        }
        let since_ms = *self.out_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) < PROBE_MS {
            return Liveness::Unknown;
        }
        let reason = format!(
            "the switch did not answer an echo request within {PROBE_MS} ms, and another session claims its datapath id"
        );
        Liveness::Dead(SessionEnd::new(Fault::Network, reason))
    }
}

/// The contested datapath ids of one worker. Bounded by the number of its connections.
#[derive(Debug, Default)]
pub struct Contested {
    /// Connections that claim a datapath id of another session.
    claiming: Vec<usize>,
    /// Switches that are probed because another connection claims their id. Each once.
    probed: Vec<Probed>,
    /// The roster's counter when claims were last checked.
    stirred: u64,
    /// When claims were last tried, in milliseconds.
    tried_ms: u64,
}

impl Contested {
    pub fn is_empty(&self) -> bool {
        self.claiming.is_empty() && self.probed.is_empty()
    }

    /// A connection waits for its id.
    pub fn claim(&mut self, slot: usize) {
        self.claiming.push(slot);
    }

    /// A connection no longer waits for its id.
    pub fn withdraw(&mut self, slot: usize) {
        self.claiming.retain(|other| *other != slot);
    }

    /// A switch is probed from now on.
    pub fn probe(&mut self, datapath: DatapathId) {
        self.probed.push(Probed { datapath, out_since_ms: None });
    }

    /// The probed switches, to judge each. [`Self::keep`] those that have more time.
    pub fn take_probed(&mut self) -> Vec<Probed> {
        std::mem::take(&mut self.probed)
    }

    pub fn keep(&mut self, probed: Probed) {
        self.probed.push(probed);
    }

    /// The switch is down.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.probed.retain(|probed| probed.datapath != datapath);
    }

    /// The switches of this worker that must be probed. `None`: nothing has changed, and it is too early to try the claims again.
    pub fn challenged(&mut self, roster: &Roster, worker: usize, now_ms: u64) -> Option<Vec<DatapathId>> {
        let stirred = roster.stirred();
        if stirred != self.stirred {
            self.stirred = stirred;
            return Some(roster.take_challenged(worker));
        }
        (now_ms.saturating_sub(self.tried_ms) >= LOOK_MS).then(Vec::new)
    }

    /// The connections that try their claim again.
    pub fn take_claims(&mut self, now_ms: u64) -> Vec<usize> {
        if !self.claiming.is_empty() {
            self.tried_ms = now_ms;
        }
        std::mem::take(&mut self.claiming)
    }
}
