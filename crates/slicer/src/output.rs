//! What the virtual switches want: messages to controllers, commands to the kernel, connections to be ended, notices to the operator.
//!
//! Values only. It decides nothing.

use flow::DatapathId;
use openflow::message::{FlowMod, GroupMod, MeterMod, PacketOut, RequestBody};
use std::fmt;

/// `ofp_group_mod_command`. `ofp_meter_mod_command` has the same numbers.
pub(crate) const ADD: u16 = 0;
pub(crate) const MODIFY: u16 = 1;
pub(crate) const DELETE: u16 = 2;

/// The most controllers of a slice.
pub const CONTROLLERS_MAX: usize = 8;

/// A connection between a virtual switch and a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// The physical switch.
    pub datapath: DatapathId,
    /// Which controller of the slice, below [`CONTROLLERS_MAX`].
    pub controller: usize,
}

/// Something to do, in the order in which it was put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes, a whole message, to a controller.
    Tell {
        /// The connection.
        to: Connection,
        /// The message in the version of the connection.
        bytes: Vec<u8>,
    },
    /// Give a command to the kernel.
    Command {
        /// The physical switch.
        datapath: DatapathId,
        /// The number by which the kernel's answers name the command. It is unique within a slice, and never 0.
        ticket: u64,
        /// Whether the kernel shall say how it ended.
        wants_receipt: bool,
        /// The command.
        command: Command,
    },
    /// End a connection, after the messages before.
    End {
        /// The connection.
        connection: Connection,
        /// One line for the log: who did what.
        why: String,
    },
    /// Tell the operator that a slice uses more than a soft limit. It comes at most once a second for each limit and switch.
    Soft {
        /// The physical switch.
        datapath: DatapathId,
        /// The limit.
        limit: LimitKind,
    },
}

/// A command for one physical switch. Cookies have 48 bits: the kernel writes the owner above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Change one rule. The instructions are those of 1.3, for either version of the switch.
    FlowMod(FlowMod),
    /// Change a group.
    GroupMod(GroupMod),
    /// Change a meter.
    MeterMod(MeterMod),
    /// Send a packet.
    PacketOut(PacketOut),
    /// Ask for statistics.
    Statistics(RequestBody),
    /// A barrier. Its receipt comes when all earlier commands are done.
    Barrier,
}

/// Which of the limits in [`crate::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Packet-ins per second.
    PacketIns,
    /// Packet-outs per second.
    PacketOuts,
    /// Flow mods, group mods, meter mods and port mods per second.
    FlowMods,
    /// Statistics requests per second.
    Statistics,
    /// Rules in the physical switch.
    Rules,
}

impl fmt::Display for LimitKind {
    /// The key in the slices file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitKind::PacketIns => "packet_ins_per_s",
            LimitKind::PacketOuts => "packet_outs_per_s",
            LimitKind::FlowMods => "flow_mods_per_s",
            LimitKind::Statistics => "statistics_per_s",
            LimitKind::Rules => "rules",
        })
    }
}
