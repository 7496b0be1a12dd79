//! What goes into a proxy and what comes out.
//!
//! Plain values, without decisions.

use flow::PortNo;
use std::fmt;

/// Something that happens to a proxy.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A whole message of the switch.
    FromSwitch(&'a [u8]),
    /// A whole message of the controller.
    FromController(&'a [u8]),
    /// A frame that came to a port of the switch, as a tap saw it.
    Frame {
        /// The port.
        port: PortNo,
        /// When the kernel saw it.
        arrived_ns: u64,
        /// The frame, or its beginning.
        frame: &'a [u8],
    },
    /// Time has passed.
    Time,
    /// Both connections have ended. The next message is of a new session.
    Ended,
}

/// What the caller does with the message that it gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a message that passes unchanged is sent on by the caller"]
pub enum Passage {
    /// It sends the same bytes on, after what is in the commands for that side.
    Unchanged,
    /// Nothing: the proxy has the message, or its answer is in the commands.
    Taken,
}

/// One of the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The switch.
    Switch,
    /// The controller.
    Controller,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Switch => "the switch",
            Side::Controller => "the controller",
        })
    }
}

/// Why both connections must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rubbish {
    /// Who sent it.
    pub from: Side,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Rubbish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sent what is no OpenFlow 1.0 or 1.3: {}", self.from, self.what)
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a port of the switch to the controller.
    Ingress,
    /// From the controller to a port, by a packet-out or a rule. The delay ends when the switch gets the message: its own part comes after that.
    Egress,
}

/// A packet-in, or a packet or rule on its way out, that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which way.
    pub way: Way,
    /// When the packet came to the switch, or the message to the proxy.
    pub since_ns: u64,
    /// When it was to leave.
    pub meant_ns: u64,
    /// How long the switch behind the proxy took for a packet-in, if a tap has seen its packet.
    pub base_ns: Option<u64>,
    /// Whether that was longer than the target would have taken.
    pub base_was_slower: bool,
}

/// What the caller must do, in order. The caller owns it and empties it.
#[derive(Debug, Default)]
pub struct Commands {
    /// Bytes for the switch.
    pub to_switch: Vec<u8>,
    /// Bytes for the controller.
    pub to_controller: Vec<u8>,
    /// End both connections.
    pub end: Option<Rubbish>,
    /// What was released, for a meter of the run's validity.
    pub releases: Vec<Release>,
}

/// What a proxy has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions of a switch with a controller.
    pub sessions: u64,
    /// Packet-ins that reached the controller.
    pub packet_ins: u64,
    /// Packet-ins above the target's limit.
    pub packet_ins_above_limit: u64,
    /// Packet-ins that found the queue of the target's CPU full.
    pub packet_ins_queue_full: u64,
    /// Packet-ins that the proxy itself had no room for.
    pub packet_ins_no_room: u64,
    /// Packet-ins whose packet no tap has seen: the switch's own delay was drawn.
    pub packet_ins_unseen: u64,
    /// Packet-ins that the target would not have sent, since its rule was there when the packet came. The packets went back through the tables of the
    /// switch.
    pub packet_ins_stale: u64,
    /// Packet-ins for which the switch behind the proxy took longer than the target.
    pub packet_ins_late: u64,
    /// Packets that the target would have kept, and for which the proxy had no room: the controller got the whole packet.
    pub packets_not_kept: u64,
    /// Frames of taps that were forgotten because newer ones took their room. Most frames meet a rule and make no packet-in.
    pub frames_forgotten: u64,
    /// Messages of the controller that the target would have lost.
    pub messages_lost: u64,
    /// Messages that were refused with an error of the target.
    pub refused: u64,
    /// Rules that made place for others.
    pub evicted: u64,
    /// Rules that a time-out ended.
    pub expired: u64,
    /// Rules in software that could get no meter: they forward too fast.
    pub unmetered: u64,
    /// Errors of the switch about the proxy's own messages.
    pub own_errors: u64,
}

impl Counters {
    /// Packet-ins that did not reach the controller.
    pub fn packet_ins_lost(&self) -> u64 {
        self.packet_ins_above_limit + self.packet_ins_queue_full + self.packet_ins_no_room
    }
}
