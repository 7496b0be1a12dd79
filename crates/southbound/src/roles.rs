//! Role requests that wait for their reply, and the role that the switch last confirmed (1.3.5, 6.3.4 and 7.3.9).
//!
//! ```text
//!   role request ──xid──> [ waiting ] ──role reply(xid)──> the request, and the confirmed role
//!                                     ──error(xid)───────> the request; the role does not change
//! ```
//!
//! It runs no election: the asker provides the generation id. The number of requests and their time are bounded.

use crate::receipts::Tag;
use openflow::message::{ROLE_EQUAL, ROLE_MASTER, ROLE_SLAVE};
use std::fmt;

/// Role requests of one session that may wait at the same time. A further one is refused. An election needs one
/// request, so an asker with this many is not waiting for their results.
pub const MAX_ROLE_REQUESTS: usize = 8;

/// What a switch allows a controller to do (1.3.5, 6.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerRole {
    /// OFPCR_ROLE_EQUAL: everything, like every other equal controller. Each session starts with it.
    Equal,
    /// OFPCR_ROLE_MASTER: everything. The switch makes the previous master a slave.
    Master,
    /// OFPCR_ROLE_SLAVE: read only. The switch sends no packet-ins and no flow removed messages.
    Slave,
}

impl ControllerRole {
    /// The role with this number in messages. `None` for OFPCR_ROLE_NOCHANGE, which only asks.
    pub const fn from_number(number: u32) -> Option<ControllerRole> {
        match number {
            ROLE_EQUAL => Some(ControllerRole::Equal),
            ROLE_MASTER => Some(ControllerRole::Master),
            ROLE_SLAVE => Some(ControllerRole::Slave),
            _ => None,
        }
    }

    /// The role's number in messages.
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

/// A request, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleAsked {
    /// Identifies the asker. `None`: the session itself, because of the configuration.
    pub by: Option<Tag>,
    /// The requested role. `None`: the request only asks for the present role (OFPCR_ROLE_NOCHANGE).
    pub role: Option<ControllerRole>,
}

/// A request that was sent.
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
    /// The role that the switch last confirmed for this controller. `None`: none was confirmed yet.
    pub fn confirmed(&self) -> Option<ControllerRole> {
        self.confirmed
    }

    /// The switch confirmed this role.
    pub fn confirm(&mut self, role: ControllerRole) {
        self.confirmed = Some(role);
    }

    /// Whether one more request is allowed.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MAX_ROLE_REQUESTS
    }

    /// How many requests wait for their reply.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A request was sent.
    pub fn sent(&mut self, xid: u32, asked: RoleAsked, now_ms: u64) {
        self.waiting.push(RoleRequest { xid, asked, sent_ms: now_ms });
    }

    /// A reply or an error arrived. Removes and returns the request that it answers. `None` if it answers none.
    pub fn on_answer(&mut self, xid: u32) -> Option<RoleAsked> {
        let index = self.waiting.iter().position(|request| request.xid == xid)?;
        Some(self.waiting.swap_remove(index).asked)
    }

    /// Removes the requests that have waited for `timeout_ms`, and passes each to `lost`.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64, mut lost: impl FnMut(RoleAsked)) {
        self.waiting.retain(|request| {
            let late = now_ms.saturating_sub(request.sent_ms) >= timeout_ms;
            if late {
                lost(request.asked);
            }
            !late
        });
    }

    /// The session has ended: passes the askers of all waiting requests to `lost`.
    pub fn on_end(&mut self, lost: impl FnMut(Tag)) {
        self.waiting.drain(..).filter_map(|request| request.asked.by).for_each(lost);
    }
}
