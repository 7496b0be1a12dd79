//! What the kernel tells an app.
//!
//! [`Event::read`] takes a frame apart in place; the functions of [`mod@write`] put frames together at the end of a buffer that the caller
//! keeps. Never decides who hears an event.

use crate::frame::{Frame, Malformed, Reader};
pub use crate::query_status::*;
use crate::receipt::{Outcome, Receipt};
pub use crate::service::{Caller, Credit, Query, QueryOver, QueryReply};
use crate::zone_id::{COOKIE_MASK, ZoneId};
use flow::{DatapathId, MacAddr, PortNo};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The numbers of the kinds of event. They are also the bits by which an app subscribes.
pub mod kind {
    /// A switch is there, with its ports.
    pub const SWITCH_UP: u16 = 1;
    /// A switch is gone.
    pub const SWITCH_DOWN: u16 = 2;
    /// A switch sent a packet up.
    pub const PACKET_IN: u16 = 3;
    /// A port came, went or changed.
    pub const PORT_STATUS: u16 = 4;
    /// A rule is gone.
    pub const FLOW_REMOVED: u16 = 5;
    /// A switch complained of a command of this app.
    pub const SWITCH_ERROR: u16 = 6;
    /// An answer, or a part of one, to a statistics request of this app.
    pub const STATS_REPLY: u16 = 7;
    /// What became of a command of this app.
    pub const RECEIPT: u16 = 8;
    /// Packet-ins that were dropped since this app did not keep up.
    pub const DROPPED: u16 = 9;
    /// Something that a service or an app published.
    pub const TOPIC: u16 = 10;
    /// A question to this service.
    pub const QUERY: u16 = 11;
    /// An answer, or a part of one, to a query of this app.
    pub const QUERY_REPLY: u16 = 12;
    /// The time, about once a second.
    pub const TICK: u16 = 13;
    /// The zone is about to end: finish, and return.
    pub const SHUTDOWN: u16 = 14;
    /// A soft limit of this app is passed, or one that was passed is kept again.
    pub const SOFT_LIMIT: u16 = 15;
    /// More credit for an answer of this service.
    pub const QUERY_CREDIT: u16 = 20;
    /// A call to this service is over before its last part.
    pub const QUERY_OVER: u16 = 21;

    /// The bit of a kind in a subscription.
    pub const fn bit(kind: u16) -> u64 {
        1 << kind
    }

    /// Every kind that can be subscribed to. The others come to whom they are meant for.
    pub const SUBSCRIBABLE: u64 = bit(SWITCH_UP)
        | bit(SWITCH_DOWN)
        | bit(PACKET_IN)
        | bit(PORT_STATUS)
        | bit(FLOW_REMOVED)
        | bit(TOPIC)
        | bit(TICK);
}

/// The numbers of the quotas that [`kind::SOFT_LIMIT`] speaks of.
pub mod quota {
    /// Commands in a second.
    pub const COMMANDS_PER_S: u16 = 1;
    /// Packets in a second that packet-outs become.
    pub const PACKET_OUTS_PER_S: u16 = 2;
    /// Rules that the app has on one switch.
    pub const RULES_PER_DATAPATH: u16 = 3;
    /// Entries of all apps in a switch's tables.
    pub const TABLE_ENTRIES: u16 = 4;
    /// Processor time of the app, in hundredths of one core.
    pub const CPU_PERCENT: u16 = 5;
    /// Memory of the app, in KiB.
    pub const MEMORY_KIB: u16 = 6;
    /// Open descriptors of the app's process that has the most.
    pub const OPEN_FILES: u16 = 7;
    /// Threads of all processes of the app.
    pub const PROCESSES: u16 = 8;
    /// How long the app has left something in its ring unread, in milliseconds.
    pub const LAG_MS: u16 = 9;
    /// Bytes that the app has in the store.
    pub const STORE_BYTES: u16 = 10;
    /// Packets in a second that packet-outs become at one switch, beyond a few each.
    pub const COPIES_PER_SWITCH_PER_S: u16 = 11;
    /// Bytes in a second of the packets that packet-outs become.
    pub const PACKET_OUT_BYTES_PER_S: u16 = 12;
    /// Packet-ins in a second that the app's rules and packet-outs cause.
    pub const PACKET_INS_CAUSED_PER_S: u16 = 13;
    /// Statistics in a second.
    pub const STATS_PER_S: u16 = 14;
}

/// An event, read where it lies.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A switch is there.
    SwitchUp(SwitchUp<'a>),
    /// A switch is gone; what was asked of it and not answered is `unknown`.
    SwitchDown(DatapathId),
    /// A packet came up.
    PacketIn(PacketIn<'a>),
    /// A port came, went or changed.
    PortStatus(PortStatus<'a>),
    /// A rule is gone.
    FlowRemoved(FlowRemoved<'a>),
    /// A switch complained.
    SwitchError(SwitchError<'a>),
    /// Statistics.
    StatsReply(StatsReply<'a>),
    /// What became of a command, and on which switch.
    Receipt(DatapathId, Receipt<'a>),
    /// So many packet-ins were dropped.
    Dropped(u64),
    /// Something was published.
    Topic(Topic<'a>),
    /// A question.
    Query(Query<'a>),
    /// An answer.
    QueryReply(QueryReply<'a>),
    /// More credit for an answer.
    QueryCredit(Credit),
    /// A call is over.
    QueryOver(QueryOver),
    /// The time.
    Tick {
        /// Milliseconds of a clock that only goes forward; its beginning means nothing.
        now_ms: u64,
    },
    /// The zone is about to end.
    Shutdown,
    /// A soft limit is passed, or kept again; what goes beyond the hard one is refused, or ends the app.
    SoftLimit(SoftLimit),
    /// A kind that is newer than this code; to be passed over.
    Newer(u16),
}

/// A switch and its ports, as it came up.
#[derive(Clone, Copy, Debug)]
pub struct SwitchUp<'a> {
    /// Which switch.
    pub datapath: DatapathId,
    /// How many packets it can keep; 0: every packet-in is whole.
    pub n_buffers: u32,
    /// How many tables it has.
    pub n_tables: u8,
    /// The version of OpenFlow that its session speaks.
    pub openflow: OpenFlowVersion,
    /// Its ports.
    pub ports: &'a [PortRecord],
}

/// A version of OpenFlow. Commands are written the same for each; which rules a switch takes for one and the same depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpenFlowVersion {
    /// 1.0: one table, and a match of twelve fields.
    V1_0 = 1,
    /// 1.3.
    V1_3 = 4,
}

impl OpenFlowVersion {
    /// The version that this byte says at the beginning of OpenFlow's messages.
    pub const fn from_byte(byte: u8) -> Option<OpenFlowVersion> {
        match byte {
            1 => Some(OpenFlowVersion::V1_0),
            4 => Some(OpenFlowVersion::V1_3),
            _ => None,
        }
    }
}

/// A port, as it lies in a frame.
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

/// A port in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortFacts<'a> {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Whether packets can pass.
    pub live: bool,
    /// Whether the operator left it up.
    pub administratively_up: bool,
    /// Its rate, 0 where it is not known.
    pub curr_speed_kbps: u32,
    /// Its name; 16 bytes of it.
    pub name: &'a str,
}

impl PortRecord {
    /// Puts a port into a record. A name longer than 16 bytes is cut at a character.
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

    /// What it says. A name that is not UTF-8 is empty.
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

/// A packet that a switch sent up.
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'a> {
    /// From which switch.
    pub datapath: DatapathId,
    /// By which port it came in.
    pub in_port: PortNo,
    /// Where the switch keeps it, or `None` if `data` is all of it.
    pub buffer_id: Option<u32>,
    /// Its length on the wire; `data` may be shorter.
    pub total_len: u16,
    /// 0 no match, 1 by an action, 2 invalid time-to-live.
    pub reason: u8,
    /// The table that sent it.
    pub table_id: u8,
    /// The cookie of the rule that sent it, owner included; all ones where the switch does not say.
    pub cookie: u64,
    /// Its metadata as canonical bytes, `in_port` included.
    pub metadata: &'a [u8],
    /// The frame, or its beginning.
    pub data: &'a [u8],
}

/// The reason of a port status that the port is no more (OFPPR_DELETE; 1.3.5, 7.4.3).
pub const PORT_DELETED: u8 = 1;

/// What happened to a port.
#[derive(Clone, Copy, Debug)]
pub struct PortStatus<'a> {
    /// On which switch.
    pub datapath: DatapathId,
    /// 0 added, 1 deleted ([`PORT_DELETED`]), 2 modified.
    pub reason: u8,
    /// The port as it is now.
    pub port: &'a PortRecord,
}

impl PortStatus<'_> {
    /// Whether the port is no more; what is said of it is how it was.
    pub fn is_gone(&self) -> bool {
        self.reason == PORT_DELETED
    }
}

/// A rule that is gone.
#[derive(Clone, Copy, Debug)]
pub struct FlowRemoved<'a> {
    /// From which switch.
    pub datapath: DatapathId,
    /// Its cookie, owner included.
    pub cookie: u64,
    /// How long it lived, whole seconds.
    pub duration_s: u32,
    /// And the rest of a second.
    pub duration_ns: u32,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
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
    /// Whose rule it was.
    pub fn owner(&self) -> ZoneId {
        ZoneId::owner_of(self.cookie)
    }

    /// The owner's own part of the cookie.
    pub fn own_cookie(&self) -> u64 {
        self.cookie & COOKIE_MASK
    }
}

/// A switch's complaint of a command.
#[derive(Clone, Copy, Debug)]
pub struct SwitchError<'a> {
    /// Which switch.
    pub datapath: DatapathId,
    /// The error, in the numbers of OpenFlow 1.3.
    pub error: flow::ErrorCode,
    /// The ticket of the command; 0 where it had none.
    pub ticket: u64,
    /// In words, for people.
    pub reason: &'a str,
}

/// Statistics, or a part of them.
#[derive(Clone, Copy, Debug)]
pub struct StatsReply<'a> {
    /// From which switch.
    pub datapath: DatapathId,
    /// The request's ticket.
    pub ticket: u64,
    /// `ofp_multipart_type`.
    pub multipart: u16,
    /// Whether another part follows.
    pub more: bool,
    /// The body of a multipart reply of OpenFlow 1.3, whatever the switch speaks.
    pub body: &'a [u8],
}

/// Something that was published.
#[derive(Clone, Copy, Debug)]
pub struct Topic<'a> {
    /// Where, from coarse to fine: `link.up`.
    pub topic: &'a str,
    /// By whom.
    pub publisher: ZoneId,
    /// What.
    pub payload: &'a [u8],
}

/// A soft limit that is passed. Of what the app takes of the machine it comes once when it is passed, and once, with no more used than
/// [`SoftLimit::soft`], when it is kept again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftLimit {
    /// Of which switch; 0 where it is of none.
    pub datapath: DatapathId,
    /// One of [`mod@quota`].
    pub quota: u16,
    /// How much is used; of a rate, the soft limit.
    pub used: u32,
    /// Beyond this one is told.
    pub soft: u32,
    /// Beyond this nothing passes.
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
struct NamedFixed {
    ticket: U64,
    zone: U16,
    name_len: U16,
    reserved: [u8; 4],
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
                let fixed: &NamedFixed = body.fixed()?;
                let topic = body.text(fixed.name_len.get().into())?;
                Event::Topic(Topic { topic, publisher: ZoneId(fixed.zone.get()), payload: body.rest() })
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
        reason: "the ports are not whole records",
    })?;
    let openflow = OpenFlowVersion::from_byte(fixed.openflow).ok_or(Malformed {
        offset: crate::header::HEADER_LEN + std::mem::offset_of!(SwitchUpFixed, openflow),
        reason: "no such version of OpenFlow",
    })?;
    Ok(SwitchUp { datapath, n_buffers: fixed.n_buffers.get(), n_tables: fixed.n_tables, openflow, ports })
}

/// What made a switch send a packet up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The cookie of the rule, as in [`PacketIn`].
    pub cookie: u64,
    /// The reason, as in [`PacketIn`].
    pub reason: u8,
}

impl<'a> PacketIn<'a> {
    /// What made the switch send it, of a frame of [`kind::PACKET_IN`], without reading the rest.
    #[inline]
    pub fn cause(frame: &Frame<'a>) -> Result<Cause, Malformed> {
        let fixed: &PacketInFixed = Reader::new(frame).fixed()?;
        Ok(Cause { cookie: fixed.cookie.get(), reason: fixed.reason })
    }

    /// Reads the body of a frame of [`kind::PACKET_IN`]: for whoever has looked at the kind already, since nearly every event is one.
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
        .ok_or(Malformed { offset: crate::header::HEADER_LEN + 12, reason: "there is no such outcome" })?;
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

/// Putting events together. Each function appends one frame to `out` and says whether it did: a frame longer than
/// [`crate::header::MAX_FRAME_LEN`] is not appended.
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

    /// [`Event::SwitchUp`]. More ports than 65,535 are cut.
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
            // The port alone, as nearly always.
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
        let Some(fixed) = named(0, topic.publisher, topic.topic) else { return false };
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

    fn named(ticket: u64, zone: ZoneId, name: &str) -> Option<NamedFixed> {
        let name_len = u16::try_from(name.len()).ok()?;
        Some(NamedFixed {
            ticket: ticket.into(),
            zone: zone.0.into(),
            name_len: name_len.into(),
            reserved: [0; 4],
        })
    }
}
