//! The events of the kernel to an app.
//!
//! [`Event::read`] parses a frame in place. The functions of [`mod@write`] append frames to a buffer of the caller.
//! This module never decides which apps receive an event.

use crate::frame::{Frame, Malformed, Reader};
pub use crate::query_status::*;
use crate::receipt::{Outcome, Receipt};
pub use crate::service::{Caller, Credit, Query, QueryOver, QueryReply};
use crate::zone_id::{COOKIE_MASK, ZoneId};
use flow::{DatapathId, MacAddr, PortNo};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The numbers of the event types. They are also the bits of a subscription.
pub mod kind {
    /// A switch is connected; with its ports.
    pub const SWITCH_UP: u16 = 1;
    /// A switch is disconnected.
    pub const SWITCH_DOWN: u16 = 2;
    /// A packet-in.
    pub const PACKET_IN: u16 = 3;
    /// A port was added, removed or changed.
    pub const PORT_STATUS: u16 = 4;
    /// A rule was removed.
    pub const FLOW_REMOVED: u16 = 5;
    /// A switch answered a command of this app with an error.
    pub const SWITCH_ERROR: u16 = 6;
    /// A reply, or a part of one, to a statistics request of this app.
    pub const STATS_REPLY: u16 = 7;
    /// The receipt for a command of this app.
    pub const RECEIPT: u16 = 8;
    /// Packet-ins were dropped because this app was too slow.
    pub const DROPPED: u16 = 9;
    /// A published message of a service or an app.
    pub const TOPIC: u16 = 10;
    /// A call to this service.
    pub const QUERY: u16 = 11;
    /// An answer, or a part of one, to a call of this app.
    pub const QUERY_REPLY: u16 = 12;
    /// The time, about once per second.
    pub const TICK: u16 = 13;
    /// The zone will end: finish, and return.
    pub const SHUTDOWN: u16 = 14;
    /// This app exceeds a soft limit, or is below it again.
    pub const SOFT_LIMIT: u16 = 15;
    /// More credit for an answer of this service.
    pub const QUERY_CREDIT: u16 = 20;
    /// A call to this service ended before its last part.
    pub const QUERY_OVER: u16 = 21;

    /// The bit of a type in a subscription.
    pub const fn bit(kind: u16) -> u64 {
        1 << kind
    }

    /// All types that an app can subscribe to. The others are addressed to one app.
    pub const SUBSCRIBABLE: u64 = bit(SWITCH_UP)
        | bit(SWITCH_DOWN)
        | bit(PACKET_IN)
        | bit(PORT_STATUS)
        | bit(FLOW_REMOVED)
        | bit(TOPIC)
        | bit(TICK);
}

/// The numbers of the quotas in [`kind::SOFT_LIMIT`].
pub mod quota {
    /// Commands per second.
    pub const COMMANDS_PER_S: u16 = 1;
    /// Packets per second that packet-outs cause.
    pub const PACKET_OUTS_PER_S: u16 = 2;
    /// Rules of the app on one switch.
    pub const RULES_PER_DATAPATH: u16 = 3;
    /// Entries of all apps in the tables of one switch.
    pub const TABLE_ENTRIES: u16 = 4;
    /// Processor time of the app, in hundredths of one core.
    pub const CPU_PERCENT: u16 = 5;
    /// Memory of the app, in KiB.
    pub const MEMORY_KIB: u16 = 6;
    /// Open descriptors of the app's process with the most.
    pub const OPEN_FILES: u16 = 7;
    /// Threads of all processes of the app.
    pub const PROCESSES: u16 = 8;
    /// How long data in the app's ring has been unread, in milliseconds.
    pub const LAG_MS: u16 = 9;
    /// Bytes of the app in the store.
    pub const STORE_BYTES: u16 = 10;
    /// Copies per second that one switch makes of packet-outs, beyond the first few of each.
    pub const COPIES_PER_SWITCH_PER_S: u16 = 11;
    /// Bytes per second of the packets that packet-outs cause.
    pub const PACKET_OUT_BYTES_PER_S: u16 = 12;
    /// Packet-ins per second that the app's rules and packet-outs cause.
    pub const PACKET_INS_CAUSED_PER_S: u16 = 13;
    /// Statistics requests per second.
    pub const STATS_PER_S: u16 = 14;
}

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

/// The encoding of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortRecord {
    port_no: U32,
    hw_addr: [u8; 6],
    live: u8,
    administratively_up: u8,
    curr_speed_kbps: U32,
    name: [u8; 16],
}

/// A decoded port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortFacts<'a> {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Whether the port is up and its link is up.
    pub live: bool,
    /// Whether the port is not administratively down.
    pub administratively_up: bool,
    /// Its rate, 0 if unknown.
    pub curr_speed_kbps: u32,
    /// Its name, at most 16 bytes.
    pub name: &'a str,
}

impl PortRecord {
    /// Encodes a port. A name longer than 16 bytes is cut at a character.
    pub fn new(facts: PortFacts<'_>) -> Self {
        let mut name = [0; 16];
        let cut = facts.name.floor_char_boundary(name.len());
        name[..cut].copy_from_slice(&facts.name.as_bytes()[..cut]);
        PortRecord {
            port_no: facts.port_no.0.into(),
            hw_addr: facts.hw_addr.0,
            live: facts.live.into(),
            administratively_up: facts.administratively_up.into(),
            curr_speed_kbps: facts.curr_speed_kbps.into(),
            name,
        }
    }

    /// Its number.
    pub fn port_no(&self) -> PortNo {
        PortNo(self.port_no.get())
    }

    /// The decoded port. A name that is not UTF-8 becomes empty.
    pub fn facts(&self) -> PortFacts<'_> {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        PortFacts {
            port_no: self.port_no(),
            hw_addr: MacAddr(self.hw_addr),
            live: self.live != 0,
            administratively_up: self.administratively_up != 0,
            curr_speed_kbps: self.curr_speed_kbps.get(),
            name: std::str::from_utf8(&self.name[..end]).unwrap_or(""),
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
    /// retained. The app may have heard it already.
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

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SwitchUpFixed {
    n_buffers: U32,
    port_count: U16,
    n_tables: u8,
    openflow: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PacketInFixed {
    cookie: U64,
    buffer_id: U32,
    in_port: U32,
    total_len: U16,
    metadata_len: U16,
    reason: u8,
    table_id: u8,
    reserved: [u8; 2],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PortStatusFixed {
    reason: u8,
    reserved: [u8; 3],
    port: PortRecord,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FlowRemovedFixed {
    cookie: U64,
    packet_count: U64,
    byte_count: U64,
    duration_s: U32,
    duration_ns: U32,
    priority: U16,
    idle_timeout_s: U16,
    hard_timeout_s: U16,
    reason: u8,
    table_id: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AnswerFixed {
    ticket: U64,
    error_type: U16,
    error_code: U16,
    outcome: u8,
    reserved: [u8; 3],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PartFixed {
    ticket: U64,
    what: U16,
    more: u8,
    reserved: [u8; 5],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct TopicFixed {
    number: U64,
    publisher: U16,
    topic_len: U16,
    run: U32,
    is_retained: u8,
    reserved: [u8; 7],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SoftLimitFixed {
    quota: U16,
    reserved: [u8; 2],
    used: U32,
    soft: U32,
    hard: U32,
}

const NO_BUFFER: u32 = 0xffff_ffff;

impl<'a> Event<'a> {
    /// Reads a frame as an event.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let datapath = frame.datapath();
        let mut body = Reader::new(frame);
        Ok(match frame.header.kind.get() {
            kind::SWITCH_UP => Event::SwitchUp(switch_up(datapath, body)?),
            kind::SWITCH_DOWN => Event::SwitchDown(datapath),
            kind::PACKET_IN => Event::PacketIn(PacketIn::read(frame)?),
            kind::PORT_STATUS => {
                let fixed: &PortStatusFixed = body.fixed()?;
                Event::PortStatus(PortStatus { datapath, reason: fixed.reason, port: &fixed.port })
            }
            kind::FLOW_REMOVED => Event::FlowRemoved(flow_removed(datapath, body)?),
            kind::SWITCH_ERROR => {
                let fixed: &AnswerFixed = body.fixed()?;
                let (ticket, error) = (fixed.ticket.get(), error_code(fixed));
                Event::SwitchError(SwitchError { datapath, error, ticket, reason: body.rest_as_text()? })
            }
            kind::STATS_REPLY => {
                let fixed: &PartFixed = body.fixed()?;
                let (ticket, multipart, more) = (fixed.ticket.get(), fixed.what.get(), fixed.more != 0);
                Event::StatsReply(StatsReply { datapath, ticket, multipart, more, body: body.rest() })
            }
            kind::RECEIPT => Event::Receipt(datapath, receipt(body)?),
            kind::DROPPED => Event::Dropped(body.fixed::<U64>()?.get()),
            kind::TOPIC => {
                let fixed: &TopicFixed = body.fixed()?;
                Event::Topic(Topic {
                    topic: body.text(fixed.topic_len.get().into())?,
                    publisher: ZoneId(fixed.publisher.get()),
                    run: fixed.run.get(),
                    number: fixed.number.get(),
                    is_retained: fixed.is_retained != 0,
                    payload: body.rest(),
                })
            }
            kind::QUERY => Event::Query(Query::read(body)?),
            kind::QUERY_REPLY => {
                let fixed: &PartFixed = body.fixed()?;
                let (ticket, status, more) = (fixed.ticket.get(), fixed.what.get(), fixed.more != 0);
                Event::QueryReply(QueryReply { ticket, status, more, payload: body.rest() })
            }
            kind::TICK => Event::Tick { now_ms: body.fixed::<U64>()?.get() },
            kind::SHUTDOWN => Event::Shutdown,
            kind::SOFT_LIMIT => Event::SoftLimit(soft_limit(datapath, body.fixed()?)),
            kind::QUERY_CREDIT => Event::QueryCredit(Credit::read(body)?),
            kind::QUERY_OVER => Event::QueryOver(QueryOver::read(body)?),
            newer => Event::Newer(newer),
        })
    }
}

fn soft_limit(datapath: DatapathId, fixed: &SoftLimitFixed) -> SoftLimit {
    SoftLimit {
        datapath,
        quota: fixed.quota.get(),
        used: fixed.used.get(),
        soft: fixed.soft.get(),
        hard: fixed.hard.get(),
    }
}

fn switch_up<'a>(datapath: DatapathId, mut body: Reader<'a>) -> Result<SwitchUp<'a>, Malformed> {
    let fixed: &SwitchUpFixed = body.fixed()?;
    let records = body.bytes(usize::from(fixed.port_count.get()) * size_of::<PortRecord>())?;
    let ports = <[PortRecord]>::ref_from_bytes(records).map_err(|_| Malformed {
        offset: crate::header::HEADER_LEN,
        reason: "the length of the ports is not a multiple of the record length",
    })?;
    let openflow = OpenFlowVersion::from_byte(fixed.openflow).ok_or(Malformed {
        offset: crate::header::HEADER_LEN + std::mem::offset_of!(SwitchUpFixed, openflow),
        reason: "unknown OpenFlow version",
    })?;
    Ok(SwitchUp { datapath, n_buffers: fixed.n_buffers.get(), n_tables: fixed.n_tables, openflow, ports })
}

/// The cause of a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The cookie of the rule, as in [`PacketIn`].
    pub cookie: u64,
    /// The reason, as in [`PacketIn`].
    pub reason: u8,
}

impl<'a> PacketIn<'a> {
    /// Reads the cause from a frame of [`kind::PACKET_IN`], and nothing else.
    #[inline]
    pub fn cause(frame: &Frame<'a>) -> Result<Cause, Malformed> {
        let fixed: &PacketInFixed = Reader::new(frame).fixed()?;
        Ok(Cause { cookie: fixed.cookie.get(), reason: fixed.reason })
    }

    /// Reads the body of a frame of [`kind::PACKET_IN`]. For callers that have checked the type: nearly every event is a packet-in.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let mut body = Reader::new(frame);
        let fixed: &PacketInFixed = body.fixed()?;
        Ok(PacketIn {
            datapath: frame.datapath(),
            in_port: PortNo(fixed.in_port.get()),
            buffer_id: Some(fixed.buffer_id.get()).filter(|id| *id != NO_BUFFER),
            total_len: fixed.total_len.get(),
            reason: fixed.reason,
            table_id: fixed.table_id,
            cookie: fixed.cookie.get(),
            metadata: body.bytes(fixed.metadata_len.get().into())?,
            data: body.rest(),
        })
    }
}

fn flow_removed<'a>(datapath: DatapathId, mut body: Reader<'a>) -> Result<FlowRemoved<'a>, Malformed> {
    let fixed: &FlowRemovedFixed = body.fixed()?;
    Ok(FlowRemoved {
        datapath,
        cookie: fixed.cookie.get(),
        duration_s: fixed.duration_s.get(),
        duration_ns: fixed.duration_ns.get(),
        packet_count: fixed.packet_count.get(),
        byte_count: fixed.byte_count.get(),
        priority: fixed.priority.get(),
        idle_timeout_s: fixed.idle_timeout_s.get(),
        hard_timeout_s: fixed.hard_timeout_s.get(),
        reason: fixed.reason,
        table_id: fixed.table_id,
        matching: body.rest(),
    })
}

fn receipt(mut body: Reader<'_>) -> Result<Receipt<'_>, Malformed> {
    let fixed: &AnswerFixed = body.fixed()?;
    let outcome = Outcome::from_number(fixed.outcome)
        .ok_or(Malformed { offset: crate::header::HEADER_LEN + 12, reason: "unknown outcome" })?;
    Ok(Receipt {
        ticket: fixed.ticket.get(),
        outcome,
        error: error_code(fixed),
        reason: body.rest_as_text()?,
    })
}

fn error_code(fixed: &AnswerFixed) -> flow::ErrorCode {
    flow::ErrorCode { kind: fixed.error_type.get(), code: fixed.error_code.get() }
}

/// Writes events. Each function appends one frame to `out`. It returns `false` and appends nothing if the frame is longer than
/// [`crate::header::MAX_FRAME_LEN`].
pub mod write {
    use super::*;
    use crate::frame;
    use crate::header::Header;
    use crate::service::TicketFixed;

    #[inline]
    fn header(kind: u16, datapath: DatapathId, sequence: u64) -> Header {
        Header {
            kind: kind.into(),
            flags: 0.into(),
            length: 0.into(),
            datapath: datapath.0.into(),
            sequence: sequence.into(),
        }
    }

    const NO_SWITCH: DatapathId = DatapathId(0);

    /// [`Event::SwitchUp`]. Ports beyond 65,535 are left out.
    pub fn switch_up(out: &mut Vec<u8>, sequence: u64, up: &SwitchUp<'_>) -> bool {
        let ports = &up.ports[..up.ports.len().min(usize::from(u16::MAX))];
        let fixed = SwitchUpFixed {
            n_buffers: up.n_buffers.into(),
            port_count: (ports.len() as u16).into(),
            n_tables: up.n_tables,
            openflow: up.openflow as u8,
        };
        frame::write(out, header(kind::SWITCH_UP, up.datapath, sequence), &fixed, &[ports.as_bytes()])
    }

    /// [`Event::SwitchDown`].
    pub fn switch_down(out: &mut Vec<u8>, sequence: u64, datapath: DatapathId) -> bool {
        frame::write(out, header(kind::SWITCH_DOWN, datapath, sequence), &[0u8; 0], &[])
    }

    /// [`Event::PacketIn`].
    #[inline(always)]
    pub fn packet_in(out: &mut Vec<u8>, sequence: u64, packet: &PacketIn<'_>) -> bool {
        let Ok(metadata_len) = u16::try_from(packet.metadata.len()) else { return false };
        let fixed = PacketInFixed {
            cookie: packet.cookie.into(),
            buffer_id: packet.buffer_id.unwrap_or(NO_BUFFER).into(),
            in_port: packet.in_port.0.into(),
            total_len: packet.total_len.into(),
            metadata_len: metadata_len.into(),
            reason: packet.reason,
            table_id: packet.table_id,
            reserved: [0; 2],
        };
        let header = header(kind::PACKET_IN, packet.datapath, sequence);
        match packet.metadata.try_into() {
            // Only the port, which is the common case.
            Ok(port) => frame::write_with_eight(out, header, &fixed, port, packet.data),
            Err(_) => frame::write(out, header, &fixed, &[packet.metadata, packet.data]),
        }
    }

    /// [`Event::PortStatus`].
    pub fn port_status(out: &mut Vec<u8>, sequence: u64, status: &PortStatus<'_>) -> bool {
        let fixed = PortStatusFixed { reason: status.reason, reserved: [0; 3], port: *status.port };
        frame::write(out, header(kind::PORT_STATUS, status.datapath, sequence), &fixed, &[])
    }

    /// [`Event::FlowRemoved`].
    pub fn flow_removed(out: &mut Vec<u8>, sequence: u64, removed: &FlowRemoved<'_>) -> bool {
        let fixed = FlowRemovedFixed {
            cookie: removed.cookie.into(),
            packet_count: removed.packet_count.into(),
            byte_count: removed.byte_count.into(),
            duration_s: removed.duration_s.into(),
            duration_ns: removed.duration_ns.into(),
            priority: removed.priority.into(),
            idle_timeout_s: removed.idle_timeout_s.into(),
            hard_timeout_s: removed.hard_timeout_s.into(),
            reason: removed.reason,
            table_id: removed.table_id,
        };
        frame::write(out, header(kind::FLOW_REMOVED, removed.datapath, sequence), &fixed, &[removed.matching])
    }

    /// [`Event::SwitchError`].
    pub fn switch_error(out: &mut Vec<u8>, sequence: u64, error: &SwitchError<'_>) -> bool {
        let fixed = answer(error.ticket, error.error, 0);
        frame::write(
            out,
            header(kind::SWITCH_ERROR, error.datapath, sequence),
            &fixed,
            &[error.reason.as_bytes()],
        )
    }

    /// [`Event::StatsReply`].
    pub fn stats_reply(out: &mut Vec<u8>, sequence: u64, reply: &StatsReply<'_>) -> bool {
        let fixed = part(reply.ticket, reply.multipart, reply.more);
        frame::write(out, header(kind::STATS_REPLY, reply.datapath, sequence), &fixed, &[reply.body])
    }

    /// [`Event::Receipt`].
    pub fn receipt(out: &mut Vec<u8>, sequence: u64, datapath: DatapathId, receipt: &Receipt<'_>) -> bool {
        let fixed = answer(receipt.ticket, receipt.error, receipt.outcome as u8);
        frame::write(out, header(kind::RECEIPT, datapath, sequence), &fixed, &[receipt.reason.as_bytes()])
    }

    /// [`Event::Dropped`].
    pub fn dropped(out: &mut Vec<u8>, sequence: u64, count: u64) -> bool {
        frame::write(out, header(kind::DROPPED, NO_SWITCH, sequence), &U64::new(count), &[])
    }

    /// [`Event::Topic`].
    pub fn topic(out: &mut Vec<u8>, sequence: u64, topic: &Topic<'_>) -> bool {
        let Ok(topic_len) = u16::try_from(topic.topic.len()) else { return false };
        let fixed = TopicFixed {
            number: topic.number.into(),
            publisher: topic.publisher.0.into(),
            topic_len: topic_len.into(),
            run: topic.run.into(),
            is_retained: topic.is_retained.into(),
            reserved: [0; 7],
        };
        frame::write(
            out,
            header(kind::TOPIC, NO_SWITCH, sequence),
            &fixed,
            &[topic.topic.as_bytes(), topic.payload],
        )
    }

    /// [`Event::Query`].
    pub fn query(out: &mut Vec<u8>, sequence: u64, query: &Query<'_>) -> bool {
        let Some(fixed) = query.fixed() else { return false };
        let Query { caller, service, payload, .. } = query;
        let parts = [caller.name.as_bytes(), service.as_bytes(), caller.grant, payload];
        frame::write(out, header(kind::QUERY, NO_SWITCH, sequence), &fixed, &parts)
    }

    /// [`Event::QueryCredit`].
    pub fn query_credit(out: &mut Vec<u8>, sequence: u64, it: Credit) -> bool {
        let fixed = TicketFixed::new(it.ticket, it.bytes);
        frame::write(out, header(kind::QUERY_CREDIT, NO_SWITCH, sequence), &fixed, &[])
    }

    /// [`Event::QueryOver`].
    pub fn query_over(out: &mut Vec<u8>, sequence: u64, it: QueryOver) -> bool {
        let fixed = TicketFixed::new(it.ticket, it.status.into());
        frame::write(out, header(kind::QUERY_OVER, NO_SWITCH, sequence), &fixed, &[])
    }

    /// [`Event::QueryReply`].
    pub fn query_reply(out: &mut Vec<u8>, sequence: u64, reply: &QueryReply<'_>) -> bool {
        let fixed = part(reply.ticket, reply.status, reply.more);
        frame::write(out, header(kind::QUERY_REPLY, NO_SWITCH, sequence), &fixed, &[reply.payload])
    }

    /// [`Event::Tick`].
    pub fn tick(out: &mut Vec<u8>, sequence: u64, now_ms: u64) -> bool {
        frame::write(out, header(kind::TICK, NO_SWITCH, sequence), &U64::new(now_ms), &[])
    }

    /// [`Event::Shutdown`].
    pub fn shutdown(out: &mut Vec<u8>, sequence: u64) -> bool {
        frame::write(out, header(kind::SHUTDOWN, NO_SWITCH, sequence), &[0u8; 0], &[])
    }

    /// [`Event::SoftLimit`].
    pub fn soft_limit(out: &mut Vec<u8>, sequence: u64, it: &SoftLimit) -> bool {
        let fixed = SoftLimitFixed {
            quota: it.quota.into(),
            reserved: [0; 2],
            used: it.used.into(),
            soft: it.soft.into(),
            hard: it.hard.into(),
        };
        frame::write(out, header(kind::SOFT_LIMIT, it.datapath, sequence), &fixed, &[])
    }

    fn answer(ticket: u64, error: flow::ErrorCode, outcome: u8) -> AnswerFixed {
        AnswerFixed {
            ticket: ticket.into(),
            error_type: error.kind.into(),
            error_code: error.code.into(),
            outcome,
            reserved: [0; 3],
        }
    }

    fn part(ticket: u64, what: u16, more: bool) -> PartFixed {
        PartFixed { ticket: ticket.into(), what: what.into(), more: more.into(), reserved: [0; 5] }
    }
}
