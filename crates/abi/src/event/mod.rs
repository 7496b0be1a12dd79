//! The events of the kernel to an app.
//!
//! [`Event::read`] parses a frame in place. The functions of [`mod@write`] append frames to a buffer of the caller.
//! This module never decides which apps receive an event.

pub mod kind;
mod layout;
mod port;
pub mod quota;
mod read;
pub mod write;

pub use crate::query_status::*;
pub use crate::service::{Caller, Credit, Query, QueryOver, QueryReply};
pub use port::{PortFacts, PortRecord};

use crate::receipt::Receipt;
use crate::zone_id::{COOKIE_MASK, ZoneId};
use flow::{DatapathId, PortNo};

/// An event, read in place.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A switch is connected.
    SwitchUp(SwitchUp<'a>),
    /// A switch is disconnected. Open commands to it have the outcome `unknown`.
    SwitchDown(DatapathId),
    /// A packet-in.
    PacketIn(PacketIn<'a>),
    /// A port was added, removed or changed.
    PortStatus(PortStatus<'a>),
    /// A rule was removed.
    FlowRemoved(FlowRemoved<'a>),
    /// A switch sent an error.
    SwitchError(SwitchError<'a>),
    /// A statistics reply.
    StatsReply(StatsReply<'a>),
    /// A receipt, and the switch of its command.
    Receipt(DatapathId, Receipt<'a>),
    /// The number of dropped packet-ins.
    Dropped(u64),
    /// A published message.
    Topic(Topic<'a>),
    /// A call to this service.
    Query(Query<'a>),
    /// An answer to a call of this app.
    QueryReply(QueryReply<'a>),
    /// More credit for an answer.
    QueryCredit(Credit),
    /// A call ended.
    QueryOver(QueryOver),
    /// The time, about once per second.
    Tick {
        /// The milliseconds of a monotonic clock with an arbitrary start.
        now_ms: u64,
    },
    /// The zone will end.
    Shutdown,
    /// A soft limit is exceeded, or is not exceeded any more. Beyond the hard limit, commands are refused or the app is stopped.
    SoftLimit(SoftLimit),
    /// An experimenter message.
    Experimenter(Experimenter<'a>),
    /// A type that is newer than this code. Ignore it.
    Newer(u16),
}

/// A switch and its ports when it connected.
#[derive(Clone, Copy, Debug)]
pub struct SwitchUp<'a> {
    /// The datapath id of the switch.
    pub datapath: DatapathId,
    /// How many packets it can buffer; 0: every packet-in has the whole packet.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
    /// The OpenFlow version of its session.
    pub openflow: OpenFlowVersion,
    /// Its ports.
    pub ports: &'a [PortRecord],
}

/// An OpenFlow version. Commands have the same form for each. When a switch treats two rules as identical depends on the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpenFlowVersion {
    /// 1.0: one table, and a match of twelve fields.
    V1_0 = 1,
    /// 1.3.
    V1_3 = 4,
}

impl OpenFlowVersion {
    /// The version of this byte in the OpenFlow header.
    pub const fn from_byte(byte: u8) -> Option<OpenFlowVersion> {
        match byte {
            1 => Some(OpenFlowVersion::V1_0),
            4 => Some(OpenFlowVersion::V1_3),
            _ => None,
        }
    }
}

/// A packet-in.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// The switch that sent it.
    pub datapath: DatapathId,
    /// The input port.
    pub in_port: PortNo,
    /// The buffer id in the switch, or `None` if `data` is the whole packet.
    pub buffer_id: Option<u32>,
    /// Its length on the wire; `data` may be shorter.
    pub total_len: u16,
    /// 0 no match, 1 by an action, 2 invalid TTL.
    pub reason: u8,
    /// The table that sent it.
    pub table_id: u8,
    /// The cookie of the rule that sent it, with the owner; all ones if the switch does not report it.
    pub cookie: u64,
    /// Its metadata as canonical bytes, `in_port` included.
    pub metadata: &'a [u8],
    /// The frame, or its beginning.
    pub data: &'a [u8],
}

/// The reason of a port status for a removed port (OFPPR_DELETE; 1.3.5, 7.4.3).
pub const PORT_DELETED: u8 = 1;

/// A port status.
#[derive(Clone, Copy, Debug)]
pub struct PortStatus<'a> {
    /// The switch of the port.
    pub datapath: DatapathId,
    /// 0 added, 1 deleted ([`PORT_DELETED`]), 2 modified.
    pub reason: u8,
    /// The port as it is now.
    pub port: &'a PortRecord,
}

impl PortStatus<'_> {
    /// Whether the port was removed. Its values are then the last known ones.
    pub fn is_gone(&self) -> bool {
        self.reason == PORT_DELETED
    }
}

/// A removed rule.
#[derive(Clone, Copy, Debug)]
pub struct FlowRemoved<'a> {
    /// The switch that sent it.
    pub datapath: DatapathId,
    /// Its cookie, with the owner.
    pub cookie: u64,
    /// How long it existed, whole seconds.
    pub duration_s: u32,
    /// The remaining nanoseconds.
    pub duration_ns: u32,
    /// The number of matched packets.
    pub packet_count: u64,
    /// The number of matched bytes.
    pub byte_count: u64,
    /// Its priority.
    pub priority: u16,
    /// Its idle time-out.
    pub idle_timeout_s: u16,
    /// Its hard time-out.
    pub hard_timeout_s: u16,
    /// 0 idle time-out, 1 hard time-out, 2 delete, 3 group delete.
    pub reason: u8,
    /// Its table.
    pub table_id: u8,
    /// Its match as canonical bytes.
    pub matching: &'a [u8],
}

impl FlowRemoved<'_> {
    /// The owner of the rule.
    pub fn owner(&self) -> ZoneId {
        ZoneId::owner_of(self.cookie)
    }

    /// The app's part of the cookie.
    pub fn own_cookie(&self) -> u64 {
        self.cookie & COOKIE_MASK
    }
}

/// An error message of a switch.
#[derive(Clone, Copy, Debug)]
pub struct SwitchError<'a> {
    /// The datapath id of the switch.
    pub datapath: DatapathId,
    /// The error, in the numbers of OpenFlow 1.3.
    pub error: flow::ErrorCode,
    /// The ticket of the command; 0 if it had none.
    pub ticket: u64,
    /// The error as text for people.
    pub reason: &'a str,
}

/// A statistics reply, or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct StatsReply<'a> {
    /// The switch that sent it.
    pub datapath: DatapathId,
    /// The request's ticket.
    pub ticket: u64,
    /// `ofp_multipart_type`.
    pub multipart: u16,
    /// Whether another part follows.
    pub more: bool,
    /// The body of a multipart reply of OpenFlow 1.3, for every version of the switch.
    pub body: &'a [u8],
}

/// An experimenter message of a switch (OFPT_EXPERIMENTER; 1.3.5, 7.5.1), or a vendor message of OpenFlow 1.0. Answers about
/// bundles are not among them. If the app does not read its events, the node drops some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experimenter<'a> {
    /// The switch that sent it.
    pub datapath: DatapathId,
    /// The vendor's number.
    pub experimenter: u32,
    /// The vendor's number for the message: the four bytes behind the vendor's number. 0 if a message of OpenFlow 1.0 has fewer.
    pub exp_type: u32,
    /// The bytes behind it.
    pub data: &'a [u8],
}

/// A published message.
#[derive(Clone, Copy, Debug)]
pub struct Topic<'a> {
    /// The topic, from general to specific: `link.up`.
    pub topic: &'a str,
    /// The publisher.
    pub publisher: ZoneId,
    /// Which run of the publisher: another number after it was restarted. Numbers of another run begin with 1.
    pub run: u32,
    /// The number of this publication: one more than that of the publisher's last one on this topic, in the same run. If a number is left out, the app has missed
    /// a publication.
    pub number: u64,
    /// Whether it was published before the app subscribed. Then the number is that of the last publication on this topic, and the payload the last one that is
    /// retained. The app may have received it already.
    pub is_retained: bool,
    /// The content.
    pub payload: &'a [u8],
}

/// An exceeded soft limit. For a resource of the machine, the event comes once when the limit is exceeded. It comes again,
/// with `used` not above [`SoftLimit::soft`], when the limit is no longer exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftLimit {
    /// The switch; 0 if the limit is not for one switch.
    pub datapath: DatapathId,
    /// One of [`mod@quota`].
    pub quota: u16,
    /// How much is used. For a rate, this is the soft limit.
    pub used: u32,
    /// Above this value, the app gets this event.
    pub soft: u32,
    /// Above this value, commands are refused or the app is stopped.
    pub hard: u32,
}

/// The cause of a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The cookie of the rule, as in [`PacketIn`].
    pub cookie: u64,
    /// The reason, as in [`PacketIn`].
    pub reason: u8,
}
