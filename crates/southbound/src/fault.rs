//! Why a session ended, and whose fault it is.
//!
//! Never decides that a session ends.

use flow::BadInput;
use std::borrow::Cow;
use std::fmt;

/// Whose fault the end of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The switch broke the protocol, or somebody who is no switch connected.
    Switch,
    /// The connection broke or fell silent.
    Network,
    /// Somebody here asked for it, or set it up so.
    Operator,
    /// Burnet's own.
    Ours,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// Whose fault.
    pub fault: Fault,
    /// One sentence.
    pub reason: Cow<'static, str>,
    /// Where in the message, if a message was at fault: the field's name and the offset from the message's beginning.
    pub place: Option<(&'static str, usize)>,
    /// Whether somebody was turned away who did nothing that the protocol forbids: the datapath id is in use, or TLS is required.
    pub is_refusal: bool,
}

impl SessionEnd {
    pub(crate) fn new(fault: Fault, reason: impl Into<Cow<'static, str>>) -> Self {
        SessionEnd { fault, reason: reason.into(), place: None, is_refusal: false }
    }

    /// Somebody is turned away.
    pub(crate) fn refusal(fault: Fault, reason: impl Into<Cow<'static, str>>) -> Self {
        SessionEnd { is_refusal: true, ..SessionEnd::new(fault, reason) }
    }

    /// The switch's fault, by a message that it sent.
    pub(crate) fn by_input(bad: BadInput) -> Self {
        SessionEnd { place: Some((bad.field, bad.offset)), ..SessionEnd::new(Fault::Switch, bad.message) }
    }
}

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

/// A command that did not go out. It says nothing of the session, which goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No switch of this id has a session with this worker.
    NoSuchSwitch(flow::DatapathId),
    /// The version that the switch speaks cannot say it, or it says something that nobody can.
    Unwritable(openflow::Unwritable),
    /// The bytes that the app gave are damaged.
    Malformed(BadInput),
    /// The switch does not take its bytes as fast as apps command.
    SlowReader,
    /// So many commands wait for their barrier already.
    TooManyOutstanding(usize),
    /// So many statistics requests wait for their answer already.
    TooManyRequests(usize),
    /// So many role requests wait for their reply already.
    TooManyRoleRequests(usize),
    /// It is no command for a switch.
    NotForSwitches,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoSuchSwitch(datapath) => write!(f, "no switch {datapath} is connected here"),
            Refused::Unwritable(refused) => refused.fmt(f),
            Refused::Malformed(bad) => bad.fmt(f),
            Refused::SlowReader => {
                f.write_str("the switch does not take its bytes as fast as apps command it; try again later")
            }
            Refused::TooManyOutstanding(count) => {
                write!(f, "{count} commands to this switch wait for their receipts already; try again later")
            }
            Refused::TooManyRequests(count) => {
                write!(
                    f,
                    "{count} statistics requests to this switch wait for answers already; try again later"
                )
            }
            Refused::TooManyRoleRequests(count) => {
                write!(f, "{count} role requests to this switch wait for replies already; try again later")
            }
            Refused::NotForSwitches => f.write_str("this command is not for a switch"),
        }
    }
}

impl std::error::Error for Refused {}
