//! Which connections with unread data are read next, and which wait.
//!
//! ```text
//!   more data than a turn allows ──> backlog ──next──> read
//!   its events must wait for apps ─> held ────release──> backlog
//!   apps have no room ─────────────> paused ──unpause──> backlog
//! ```
//!
//! In: slots and the time. Out: the slot of the next connection. It reads no socket. A connection is in one of the three lists at most,
//! so their length is bounded by the number of connections.

use crate::connection::{Connection, is_half_open};
use crate::connections::Connections;
use flow::DatapathId;
use std::collections::VecDeque;

/// The connections with unread data.
#[derive(Debug, Default)]
pub struct ReadingOrder {
    backlog: VecDeque<usize>,
    /// Connections that send more events than apps can read, for a moment.
    held: Vec<usize>,
    /// Connections that wait for apps, in the order in which they started to wait.
    paused: VecDeque<usize>,
}

/// The datapath id of a connection, if its switch is up and still sends. Only then can its events wait for apps.
pub fn pausable(connection: &Connection) -> Option<DatapathId> {
    let may_wait = !is_half_open(&connection.session)
        && !connection.peer_closed
        && connection.ending.is_none()
        && connection.lingers_until_ms.is_none();
    may_wait.then(|| connection.session.identity().datapath)
}

impl ReadingOrder {
    /// The connection has unread data, and waits for its turn.
    pub fn wait(&mut self, slot: usize, connection: &mut Connection) {
        if !connection.backlogged {
            connection.backlogged = true;
            self.backlog.push_back(slot);
        }
    }

    /// Whether the connection is held back for a moment.
    pub fn hold(&mut self, slot: usize, connection: &mut Connection, now_ms: u64) -> bool {
        connection.backlogged = connection.pace.is_held(now_ms);
        if connection.backlogged {
            self.held.push(slot);
        }
        connection.backlogged
    }

    /// The number of connections that are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Connections that are no longer held wait for their turn.
    pub fn release(&mut self, connections: &Connections, now_ms: u64) {
        let ReadingOrder { held, backlog, .. } = self;
        held.retain(|slot| {
            let stays = connections.get(*slot).is_some_and(|it| it.pace.is_held(now_ms));
            if !stays {
                backlog.push_back(*slot);
            }
            stays
        });
    }

    /// The connection has unread data, and waits for apps.
    pub fn pause(&mut self, slot: usize, connection: &mut Connection) {
        if !connection.backlogged {
            connection.backlogged = true;
            self.paused.push_back(slot);
        }
    }

    /// The same for the connection whose turn is next.
    pub fn pause_next(&mut self) {
        self.paused.extend(self.backlog.pop_front());
    }

    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Connections that `goes_on` names wait for their turn again, in their order.
    pub fn unpause(&mut self, mut goes_on: impl FnMut(usize) -> bool) {
        for _ in 0..self.paused.len() {
            let Some(slot) = self.paused.pop_front() else { return };
            if goes_on(slot) { self.backlog.push_back(slot) } else { self.paused.push_back(slot) }
        }
    }

    /// How many connections wait for their turn.
    pub fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// The connection whose turn is next.
    pub fn first(&self) -> Option<usize> {
        self.backlog.front().copied()
    }

    /// The same, and it no longer waits.
    pub fn next(&mut self) -> Option<usize> {
        self.backlog.pop_front()
    }
}
