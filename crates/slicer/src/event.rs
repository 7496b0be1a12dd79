//! What the virtual switches learn: from the tenant's controllers, from the kernel, and about virtual links.
//!
//! Values only. They are like the events of the ABI; the zone around this crate makes the one from the other.

use crate::label::LinkLabel;
use crate::output::Connection;
use crate::plan::{End, LinkPlan};
use crate::port::PortFacts;
use flow::{DatapathId, ErrorCode, PortNo};
use openflow::Version;
use openflow::message::{FlowRemoved, ReplyBody};

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Time has passed: about once a second. Rules for packets that the slice never has end by it.
    Time,
    /// A connection to a controller stands. The virtual switch sends its hello.
    ControllerUp(Connection),
    /// A connection ended. The rules stay.
    ControllerDown(Connection),
    /// A controller sent one whole message. A stream that cannot be cut into messages is for the caller to end.
    Message(Connection, &'a [u8]),
    /// A physical switch connected.
    SwitchUp {
        /// The switch.
        datapath: DatapathId,
        /// The version of its session.
        version: Version,
        /// All of its ports.
        ports: Vec<PortFacts>,
    },
    /// A physical switch is gone.
    SwitchDown(DatapathId),
    /// A packet-in.
    PacketIn(PacketIn<'a>),
    /// A physical port was added, removed or changed.
    PortStatus {
        /// The switch.
        datapath: DatapathId,
        /// 0 added, 1 deleted, 2 modified.
        reason: u8,
        /// The port as it is now.
        port: PortFacts,
    },
    /// A rule of this slice was removed from a physical switch.
    FlowRemoved {
        /// The switch.
        datapath: DatapathId,
        /// What the switch said. The cookie is without the owner.
        removed: FlowRemoved,
    },
    /// The answer to a command: a receipt, or an error of the switch.
    Answer {
        /// The switch.
        datapath: DatapathId,
        /// The command's ticket.
        ticket: u64,
        /// How the command ended.
        outcome: Outcome,
    },
    /// A part of an answer to a statistics request.
    Statistics {
        /// The switch.
        datapath: DatapathId,
        /// The request's ticket.
        ticket: u64,
        /// Whether another part follows.
        more: bool,
        /// The part, in the form of 1.3.
        body: ReplyBody,
    },
    /// The link that begins at a port has another label for this slice.
    Label {
        /// The switch.
        datapath: DatapathId,
        /// The port of the physical switch.
        port: PortNo,
        /// The label. `None`: it has none, or none is known.
        label: Option<LinkLabel>,
    },
    /// A port of VNICs is to be held to their rate by a meter from now on, or no more. None is at first.
    Shape {
        /// The port, by the number that the tenant sees.
        at: End,
        /// Whether it is.
        is_wanted: bool,
    },
    /// All labels may be too high from now on, or no longer. They may at first.
    LabelsStale(bool),
    /// A virtual link can carry packets now, or cannot any more. All links are down at first.
    Link {
        /// The link.
        link: LinkPlan,
        /// Whether all links of the network below it are up.
        is_up: bool,
    },
}

/// A packet-in of a physical switch.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// The switch.
    pub datapath: DatapathId,
    /// The physical port by which the packet came.
    pub in_port: PortNo,
    /// The packet's buffer in the switch, if it has one.
    pub buffer_id: Option<u32>,
    /// The packet's length; `data` may be shorter.
    pub total_len: u16,
    /// 0 no match, 1 by an action, 2 invalid time-to-live.
    pub reason: u8,
    /// The rule that sent it.
    pub cause: Cause,
    /// The frame, or its beginning.
    pub data: &'a [u8],
}

/// The rule that caused a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A rule of this slice: the 48 bits of its cookie.
    Own(u64),
    /// A rule of the kernel or of another zone.
    Other,
    /// The switch does not say: one of OpenFlow 1.0, or a packet-out.
    Unknown,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The switch carried it out.
    Done,
    /// The kernel refused it. The error is zeros if OpenFlow has none for the reason.
    Refused(ErrorCode),
    /// The switch answered with this error, in the numbers of 1.3.
    Failed(ErrorCode),
    /// There is no answer, or none that can be read: the session ended before it, or it took too long.
    Unknown,
}
