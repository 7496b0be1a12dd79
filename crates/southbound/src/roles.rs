//! Role requests that wait for their reply, and the role that the switch last confirmed (1.3.5, 6.3.4 and 7.3.9).
//!
//! ```text
//!   role request ──xid──> [ waiting ] ──role reply(xid)──> whose it was, and the role that is confirmed
//!                                     ──error(xid)───────> whose it was; the role stays
//! ```
//!
//! Never elects anybody: the generation id is the asker's. Bounded in number and in time.

use crate::receipts::Tag;
use openflow::message::{ROLE_EQUAL, ROLE_MASTER, ROLE_SLAVE};
use std::fmt;

/// Role requests of one session that may wait at once; one more is refused. An election ends in one request, so that whoever has
/// this many on their way does not wait for what becomes of them.
pub const MAX_ROLE_REQUESTS: usize = 8;

/// What a switch lets a controller do (1.3.5, 6.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerRole {
    /// OFPCR_ROLE_EQUAL: everything, as every other equal. What each session begins with.
    Equal,
    /// OFPCR_ROLE_MASTER: everything; the switch makes the master before it a slave.
    Master,
    /// OFPCR_ROLE_SLAVE: only to read; no packet-in and no flow removed comes.
    Slave,
}

impl ControllerRole {
    /// The role with this number. OFPCR_ROLE_NOCHANGE is no role that anybody can have.
    pub const fn from_number(number: u32) -> Option<ControllerRole> {
        match number {
            ROLE_EQUAL => Some(ControllerRole::Equal),
            ROLE_MASTER => Some(ControllerRole::Master),
            ROLE_SLAVE => Some(ControllerRole::Slave),
            _ => None,
        }
    }

    /// Its number in messages.
    pub const fn number(self) -> u32 {
        match self {
            ControllerRole::Equal => ROLE_EQUAL,
            ControllerRole::Master => ROLE_MASTER,
            ControllerRole::Slave => ROLE_SLAVE,
        }
    }
}

impl fmt::Display for ControllerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ControllerRole::Equal => "equal",
            ControllerRole::Master => "master",
            ControllerRole::Slave => "slave",
        })
    }
}

/// A request as its asker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleAsked {
    /// Who asked; `None` for the session itself, as the configuration has it.
    pub by: Option<Tag>,
    /// For which role; `None` if the question was only which one holds (OFPCR_ROLE_NOCHANGE).
    pub role: Option<ControllerRole>,
}

/// A request that went out.
#[derive(Clone, Copy, Debug)]
struct RoleRequest {
    xid: u32,
    asked: RoleAsked,
    sent_ms: u64,
}

/// The role requests of one session, and its role.
#[derive(Debug, Default)]
pub struct Roles {
    waiting: Vec<RoleRequest>,
    confirmed: Option<ControllerRole>,
}

impl Roles {
    /// The role that the switch last said that this controller has; `None` if it never did.
    pub fn confirmed(&self) -> Option<ControllerRole> {
        self.confirmed
    }

    /// The switch said so.
    pub fn confirm(&mut self, role: ControllerRole) {
        self.confirmed = Some(role);
    }

    /// Whether one more can be asked.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MAX_ROLE_REQUESTS
    }

    /// How many wait for their reply.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A request went out.
    pub fn sent(&mut self, xid: u32, asked: RoleAsked, now_ms: u64) {
        self.waiting.push(RoleRequest { xid, asked, sent_ms: now_ms });
    }

    /// A reply or an error came: the request that it answers, which waits no more. `None` if nobody asked.
    pub fn on_answer(&mut self, xid: u32) -> Option<RoleAsked> {
        let index = self.waiting.iter().position(|request| request.xid == xid)?;
        Some(self.waiting.swap_remove(index).asked)
    }

    /// Hands over the requests that have waited for `timeout_ms`.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64, mut lost: impl FnMut(RoleAsked)) {
        self.waiting.retain(|request| {
            let late = now_ms.saturating_sub(request.sent_ms) >= timeout_ms;
            if late {
                lost(request.asked);
            }
            !late
        });
    }

    /// Hands over whom an answer is still owed: the session has ended.
    pub fn on_end(&mut self, lost: impl FnMut(Tag)) {
        self.waiting.drain(..).filter_map(|request| request.asked.by).for_each(lost);
    }
}
