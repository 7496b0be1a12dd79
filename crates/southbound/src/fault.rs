//! Why a session ended, and who is at fault.
//!
//! It does not decide when a session ends.

use crate::occupancy::NoRoom;
use crate::pacer::QueueFull;
use flow::{BadInput, ErrorCode};
use std::borrow::Cow;
use std::fmt;
use std::io;

/// Who is at fault for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The switch violated the protocol, or the peer is not a switch.
    Switch,
    /// The connection broke, or the peer is silent.
    Network,
    /// The operator requested it or configured it.
    Operator,
    /// Burnet has a bug.
    Ours,
}

/// The reason why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// Who is at fault.
    pub fault: Fault,
    /// The reason, in one sentence.
    pub reason: Cow<'static, str>,
    /// Where in the message, if a message was the cause: the field's name and its offset from the start of the
    /// message, in bytes.
    pub place: Option<(&'static str, usize)>,
    /// Whether the peer was refused although it followed the protocol: its datapath id is in use, or TLS is required.
    pub is_refusal: bool,
}

impl SessionEnd {
    pub(crate) fn new(fault: Fault, reason: impl Into<Cow<'static, str>>) -> Self {
        SessionEnd { fault, reason: reason.into(), place: None, is_refusal: false }
    }

    /// The peer is refused.
    pub(crate) fn refusal(fault: Fault, reason: impl Into<Cow<'static, str>>) -> Self {
        SessionEnd { is_refusal: true, ..SessionEnd::new(fault, reason) }
    }

    /// The switch is at fault, because of a message that it sent.
    pub(crate) fn by_input(bad: BadInput) -> Self {
        SessionEnd { place: Some((bad.field, bad.offset)), ..SessionEnd::new(Fault::Switch, bad.message) }
    }
}

/// Why a stream was not adopted. It is closed.
#[derive(Debug)]
pub enum NotAdopted {
    /// A limit on connections is reached.
    NoRoom(NoRoom),
    /// The system returned an error.
    Io(io::Error),
}

impl fmt::Display for NotAdopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAdopted::NoRoom(no_room) => no_room.fmt(f),
            NotAdopted::Io(error) => write!(f, "the system refused the socket: {error}"),
        }
    }
}

impl std::error::Error for NotAdopted {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Switch => "the switch",
            Fault::Network => "the network",
            Fault::Operator => "the operator",
            Fault::Ours => "Burnet",
        })
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((field, offset)) => write!(f, "{} ({field} at offset {offset})", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for SessionEnd {}

/// OFPBRC_BAD_EXPERIMENTER: the switch has no bundles. An app can tell it from other refusals by this error.
pub(crate) const NO_BUNDLES: ErrorCode = ErrorCode { kind: 1, code: 3 };

/// Why a switch without bundles gets none.
pub(crate) fn no_bundles(why: &str) -> String {
    format!("the switch has no bundles: {why}; send the flow mods alone")
}

/// A command that was not sent, and why. The session continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No switch with this datapath id has a session with this worker.
    NoSuchSwitch(flow::DatapathId),
    /// The switch's OpenFlow version cannot express it, or no version can.
    Unwritable(openflow::Unwritable),
    /// The app's bytes are malformed.
    Malformed(BadInput),
    /// The switch does not accept its bytes as fast as apps send commands.
    SlowReader,
    /// This many commands already wait for their barrier, which is the maximum.
    TooManyOutstanding(usize),
    /// This many statistics requests already wait for their reply, which is the maximum.
    TooManyRequests(usize),
    /// This many role requests already wait for their reply, which is the maximum.
    TooManyRoleRequests(usize),
    /// The switch has no bundles, with the reason.
    NoBundles(String),
    /// A bundle of this app is under way to the switch, or as many as may be.
    TooManyBundles,
    /// The switch is paced by its profile, and as many commands wait for it as may be.
    PacedQueueFull(QueueFull),
    /// It is not a command for a switch.
    NotForSwitches,
}

impl Refused {
    /// Whether there is no room now, and nothing is wrong with the command.
    fn is_for_now(&self) -> bool {
        matches!(
            self,
            Refused::SlowReader
                | Refused::TooManyOutstanding(_)
                | Refused::TooManyRequests(_)
                | Refused::TooManyBundles
                | Refused::PacedQueueFull(_)
        )
    }

    /// The error code for an app that reacts to it, if there is one.
    pub fn as_error(&self) -> Option<ErrorCode> {
        match self {
            Refused::NoBundles(_) => Some(NO_BUNDLES),
            it if it.is_for_now() => Some(abi::NO_ROOM),
            _ => None,
        }
    }
}

impl From<openflow::Unwritable> for Refused {
    fn from(refused: openflow::Unwritable) -> Self {
        Refused::Unwritable(refused)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoSuchSwitch(datapath) => write!(f, "no switch {datapath} is connected here"),
            Refused::Unwritable(refused) => refused.fmt(f),
            Refused::Malformed(bad) => bad.fmt(f),
            Refused::SlowReader => {
                f.write_str("the switch reads more slowly than apps send commands; try again later")
            }
            Refused::TooManyOutstanding(count) => {
                write!(f, "{count} commands to this switch already wait for receipts; try again later")
            }
            Refused::TooManyRequests(count) => {
                write!(
                    f,
                    "{count} statistics requests to this switch already wait for answers; try again later"
                )
            }
            Refused::TooManyRoleRequests(count) => {
                write!(f, "{count} role requests to this switch already wait for replies; try again later")
            }
            Refused::NoBundles(why) => f.write_str(&no_bundles(why)),
            Refused::TooManyBundles => f.write_str(
                "bundles are under way to this switch already; wait for the receipt of this app's last one",
            ),
            Refused::PacedQueueFull(QueueFull { waiting, wait_ms }) => write!(
                f,
                "{waiting} commands wait for this switch, because its profile limits their rate; try again in {wait_ms} ms"
            ),
            Refused::NotForSwitches => f.write_str("this command is not for a switch"),
        }
    }
}

impl std::error::Error for Refused {}
