//! The part of a command that is outside a capability's bounds.
//!
//! It is small and needs no heap, so that a refusal is cheap until its message is displayed. It never names the
//! capability: the refusal names it first.

use flow::{DatapathId, PortNo};
use std::fmt;

/// The limit for chains of groups: a group in a group in a group. Protection and replication need two levels.
pub(crate) const MAX_LEVEL: u8 = 3;

/// The part of a command that exceeds the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// A switch that the grant does not contain.
    Datapath(DatapathId),
    /// A table that the grant does not contain: the rule's table, or the target of its goto-table.
    Table(u8),
    /// The priority, and the highest granted priority below it.
    PriorityAbove(u16, u16),
    /// The priority, and the lowest granted priority above it.
    PriorityBelow(u16, u16),
    /// A match without wildcards, to which OpenFlow 1.0 gives the highest priority. The value is the highest granted
    /// priority, which is lower.
    ExactMatch(u16),
    /// The match reaches packets outside the flowspace.
    Match,
    /// A field of the match lacks its prerequisites, so that a switch might ignore it.
    Prerequisite,
    /// An action makes packets that are outside the flowspace.
    Rewrite,
    /// Packets of one of the app's own ports, outside the flowspace, would leave by a port that is not the app's own, or enter a group.
    Unchanged,
    /// An action in an action set may make such packets after the actions of a later table.
    RewriteLater,
    /// An action writes the ingress port, and so changes the port that IN_PORT stands for.
    InPort,
    /// The frame of a packet-out is outside the flowspace.
    Frame,
    /// A packet in the switch's buffer, whose content the kernel does not know: the app has not received it, has used it, or
    /// received it too long ago.
    Buffer(u32),
    /// A port that the grant does not contain.
    Port(PortNo),
    /// An output to the controller, without `packet.in`.
    Controller,
    /// An action or instruction with unknown effects.
    NotUnderstood,
    /// A group that is not the app's own.
    Group(u32),
    /// A meter that is not the app's own.
    Meter(u32),
    /// The meter by which the kernel limits the switch's packet-ins.
    KernelsMeter(u32),
    /// A group or meter that the app has requested, but the switch has not confirmed.
    NotYet,
    /// A group with unknown effects: the kernel checked it against another grant, or not at all.
    UnjudgedGroup(u32),
    /// A meter with unknown effects, for the same reasons.
    UnjudgedMeter(u32),
    /// A group that would lead to itself, or exceed the depth limit.
    Nesting(u32),
    /// A group in the buckets of another.
    Nested(u32),
    /// A group that gets packets outside the flowspace, and would send to other ports than the app's own.
    OpenGroup(u32),
    /// An output to the tables, where the app's own rules may make packets that the app may not send.
    OwnRules,
    /// All groups or all meters at once, including those of others.
    AllAtOnce,
    /// A group or meter that belongs to the switch itself and affects the packets of all apps.
    Reserved,
    /// A count that exceeds its limit.
    TooMany(TooMany),
}

/// A count that exceeds the limit for one command, packet, group or app. Each variant has the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    /// Changes of packets by one command.
    Changes(u32),
    /// Groups in the buckets of one group.
    Nested(usize),
    /// Actions in one command: how many, and the limit.
    Actions(u32, u32),
    /// Groups to which one rule or packet-out sends a packet.
    Groups(u32),
    /// Packets that one packet becomes.
    Outputs(u32),
    /// How often one packet is flooded or sent to the tables.
    Floods(u32),
    /// How often one packet goes to the controller.
    ToController(u32),
    /// Groups and meters of one app.
    Owned(usize),
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooMany::Changes(most) => write!(f, "a command may change packets of a flowspace {most} times"),
            TooMany::Nested(most) => write!(f, "a group may have {most} other groups in its buckets"),
            TooMany::Actions(count, most) => {
                write!(
                    f,
                    "{count} actions are more than the {most} there may be in one command: use several, or a group"
                )
            }
            TooMany::Groups(most) => write!(f, "a command may send a packet to {most} groups"),
            TooMany::Outputs(most) => {
                write!(f, "one packet may become {most} packets, with all groups that it goes through")
            }
            TooMany::Floods(most) => {
                write!(f, "one packet may be flooded {most} times, and go into the tables as often")
            }
            TooMany::ToController(most) => {
                write!(
                    f,
                    "one packet may go to the controller {most} times, with all groups that it goes through"
                )
            }
            TooMany::Owned(most) => write!(f, "an app may have {most} groups and meters"),
        }
    }
}

fn unjudged(f: &mut fmt::Formatter<'_>, what: &str, id: u32) -> fmt::Result {
    write!(
        f,
        "{what} {id} was made under another grant, and what it does was not compared with this one: delete it and add it again"
    )
}

fn open_group(f: &mut fmt::Formatter<'_>, id: u32) -> fmt::Result {
    write!(
        f,
        "group {id} gets packets outside the granted flowspace, so it may send to the app's own ports only: delete it and add it again"
    )
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Datapath(datapath) => write!(f, "{datapath} is not among the granted switches"),
            Excess::Table(table_id) => write!(f, "table {table_id} is not among the granted tables"),
            Excess::PriorityAbove(asked, granted) => {
                write!(f, "priority {asked} is above the granted {granted}")
            }
            Excess::PriorityBelow(asked, granted) => {
                write!(f, "priority {asked} is below the granted {granted}")
            }
            Excess::ExactMatch(granted) => write!(
                f,
                "OpenFlow 1.0 gives a rule that names every field priority {}, which is above the granted {granted}; leave a field out",
                u16::MAX
            ),
            Excess::Match => f.write_str("the match reaches packets outside the granted flowspace"),
            Excess::Prerequisite => {
                f.write_str("a field of the match lacks the fields that it needs, and might be passed over")
            }
            Excess::Rewrite => f.write_str("the actions make packets outside the granted flowspace"),
            Excess::Unchanged => f.write_str(
                "packets of one of the app's own ports are outside the granted flowspace and would leave by another port, or enter a group: rewrite them first",
            ),
            Excess::RewriteLater => f.write_str(
                "an action in the action set makes packets outside the granted flowspace of some inside it",
            ),
            Excess::InPort => f.write_str("an action may write in_port, and ports are bounded or the app's own"),
            Excess::Frame => f.write_str("the frame is outside the granted flowspace"),
            Excess::Buffer(id) => {
                write!(f, "the content of the switch's buffer {id} is unknown and cannot be compared with the grant")
            }
            Excess::Port(port) => write!(f, "port {port} is not among the granted ports"),
            Excess::Controller => f.write_str("sending to the controller needs packet.in as well"),
            Excess::NotUnderstood => f.write_str("the effect of an action or instruction in it is unknown"),
            Excess::Group(id) => write!(f, "group {id} is not the app's own"),
            Excess::Meter(id) => write!(f, "meter {id} is not the app's own"),
            Excess::KernelsMeter(id) => {
                write!(f, "meter {id} is the kernel's own, and limits the packet-ins of the switch for all apps")
            }
            Excess::NotYet => {
                f.write_str("the switch has not confirmed this group or meter yet; wait for its receipt")
            }
            Excess::UnjudgedGroup(id) => unjudged(f, "group", *id),
            Excess::UnjudgedMeter(id) => unjudged(f, "meter", *id),
            Excess::Nesting(id) => write!(
                f,
                "group {id} would lead to itself or too deep: groups may be in groups {MAX_LEVEL} deep, and one that is in another may not \
                 come to lead further; delete the others first"
            ),
            Excess::Nested(id) => {
                write!(f, "group {id} is in the buckets of another group: delete that one first")
            }
            Excess::OpenGroup(id) => open_group(f, *id),
            Excess::OwnRules => f.write_str(
                "TABLE hands the frame to the app's own rules, which may make packets outside the granted flowspace. The match of rule.write \
                 must lie within that of packet.out, or have no packet in common with it",
            ),
            Excess::AllAtOnce => f.write_str("those of others would be deleted as well"),
            Excess::Reserved => f.write_str("a group or meter that is the switch's own concerns every app"),
            Excess::TooMany(limit) => limit.fmt(f),
        }
    }
}
