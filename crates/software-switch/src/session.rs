//! The state of a switch's connection to one controller: version, role, and which messages the controller wants.
//!
//! Each controller has its own session (1.3.5, 6.3.4). A controller's settings do not affect the others. The
//! exception is the role: a new master makes the old one a slave. It never holds bytes or a socket.

use openflow::message::*;
use openflow::{Body, Message, Version};
use std::fmt;

use super::bundle::Bundles;

/// The number of a controller: its index in the switch's list of controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControllerId(pub usize);

/// One connection of a controller. The controller's next connection has another serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionId {
    pub(crate) controller: ControllerId,
    pub(crate) serial: u64,
}

/// Why a switch ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The controller's first message was not a hello.
    NoHello,
    /// The controller's hello has no version that the switch speaks.
    NoVersion,
    /// The switch was switched off.
    SwitchedOff,
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Parting::NoHello => "the controller's first message was no hello",
            Parting::NoVersion => "no version was agreed on",
            Parting::SwitchedOff => "the switch was switched off",
        })
    }
}

/// Which controller sent a request, and the version and transaction id of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) controller: ControllerId,
    pub(crate) version: Version,
    pub(crate) xid: u32,
}

impl Asker {
    /// An answer, with the controller that it is for.
    pub(crate) fn answer(self, body: Body) -> (ControllerId, Message) {
        (self.controller, Message { version: self.version, xid: self.xid, body })
    }
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No connection.
    Closed,
    /// The switch has sent its hello and waits for the controller's.
    AwaitsHello,
    /// Both have agreed on a version.
    Open(Version),
}

/// The connection to one controller.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) state: State,
    /// Which connection of this controller it is.
    pub(crate) serial: u64,
    /// Whether the controller has sent a features request.
    pub(crate) features_asked: bool,
    pub(crate) role: u32,
    pub(crate) asynchronous: AsyncConfig,
    /// How many bytes of a buffered packet this controller wants.
    pub(crate) miss_send_len: u16,
    /// The parts of a table-features request that have arrived, and their transaction id.
    pub(crate) parts: Option<(u32, Vec<TableFeatures>)>,
    /// The bundles that are not committed yet.
    pub(crate) bundles: Bundles,
}

/// OFP_DEFAULT_MISS_SEND_LEN.
const MISS_SEND_BYTES: u16 = 128;

/// Which messages a controller gets by default (1.3.5, 7.3.10). A slave gets only port statuses. No controller gets
/// packets with an invalid time-to-live, which a switch reports only on request.
const HEARD_BY_DEFAULT: AsyncConfig = AsyncConfig {
    packet_in_mask: [0b011, 0],
    port_status_mask: [0b111, 0b111],
    flow_removed_mask: [0b1111, 0],
};

impl Session {
    /// No connection.
    pub(crate) fn closed() -> Self {
        Session {
            state: State::Closed,
            serial: 0,
            features_asked: false,
            role: ROLE_EQUAL,
            asynchronous: HEARD_BY_DEFAULT,
            miss_send_len: MISS_SEND_BYTES,
            parts: None,
            bundles: Bundles::default(),
        }
    }

    /// The version agreed on, or `None` before that.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.state {
            State::Open(version) => Some(version),
            _ => None,
        }
    }

    fn hears(&self, masks: [u32; 2], reason: u8) -> bool {
        let mask = masks[usize::from(self.role == ROLE_SLAVE)];
        1u32.checked_shl(reason.into()).is_some_and(|bit| mask & bit != 0)
    }

    pub(crate) fn hears_packet_in(&self, reason: u8) -> bool {
        self.hears(self.asynchronous.packet_in_mask, reason)
    }

    pub(crate) fn hears_port_status(&self, reason: u8) -> bool {
        self.hears(self.asynchronous.port_status_mask, reason)
    }

    pub(crate) fn hears_flow_removed(&self, reason: u8) -> bool {
        self.hears(self.asynchronous.flow_removed_mask, reason)
    }
}
