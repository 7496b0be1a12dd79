//! What an operator wants to know of a run, as it happens.
//!
//! Plain values with their text.

use flow::PortNo;
use std::fmt;
use std::net::SocketAddr;

/// Something that an operator wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A switch has connected.
    Connected(SocketAddr),
    /// A second switch has connected, and was refused.
    Refused(SocketAddr),
    /// Both connections have ended.
    Ended(String),
    /// A tap does not work, since its interface is down or gone. Until it is back, its port has no times.
    TapLost(PortNo, String),
    /// A tap works again.
    TapBack(PortNo),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Connected(from) => write!(f, "a switch has connected from {from}"),
            Notice::Refused(from) => {
                write!(f, "the switch at {from} was refused: another one is connected")
            }
            Notice::Ended(why) => write!(f, "both connections have ended: {why}"),
            Notice::TapLost(port, why) => write!(
                f,
                "the tap of port {port} does not work until its interface is back: {why}; delays of its packet-ins are drawn"
            ),
            Notice::TapBack(port) => write!(f, "the tap of port {port} works again"),
        }
    }
}
