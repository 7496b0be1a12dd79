//! The commands of an app to the kernel.
//!
//! [`Command::read`] parses a frame in place. The functions of [`mod@write`] append frames to a buffer of the caller.
//! This module never decides whether a command is allowed.

pub use crate::bundle::{BUNDLE_MAX, Bundle};
use crate::frame::{Frame, Malformed, Reader};
use crate::header::{FLAG_RECEIPT, FLAG_REFUSAL};
pub use crate::service::{Ask, QueryAnswer};
use flow::{DatapathId, MacAddr, PortNo};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The numbers of the command types.
pub mod kind {
    /// Subscribe to events.
    pub const SUBSCRIBE: u16 = 1;
    /// Send a packet.
    pub const PACKET_OUT: u16 = 2;
    /// Add, change or delete rules.
    pub const FLOW_MOD: u16 = 3;
    /// Add, change or delete a group.
    pub const GROUP_MOD: u16 = 4;
    /// Add, change or delete a meter.
    pub const METER_MOD: u16 = 5;
    /// Change a port.
    pub const PORT_MOD: u16 = 6;
    /// Request statistics.
    pub const STATS_REQUEST: u16 = 7;
    /// A barrier: its receipt comes when all earlier commands are done.
    pub const BARRIER: u16 = 8;
    /// Publish a message on a topic.
    pub const PUBLISH: u16 = 9;
    /// Call a service.
    pub const QUERY: u16 = 10;
    /// Answer a call.
    pub const QUERY_ANSWER: u16 = 11;
    /// Write a line into the log.
    pub const LOG: u16 = 12;
    /// Grant more credit for the answer to a call.
    pub const QUERY_CREDIT: u16 = 18;
    /// Cancel a call.
    pub const QUERY_CANCEL: u16 = 19;
    /// Flow mods that a switch carries out all together, or not at all.
    pub const BUNDLE: u16 = 20;
}

/// A command with the values of its header.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The switch; 0 if the command is for none.
    pub datapath: DatapathId,
    /// The app's number for this command. Receipts and replies carry it.
    pub ticket: u64,
    /// Whether the app requests a receipt.
    pub wants_receipt: bool,
    /// The subcommand.
    pub what: What<'a>,
}

/// The command itself, read in place.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// Subscribe to events.
    Subscribe(Subscribe<'a>),
    /// Send a packet.
    PacketOut(PacketOut<'a>),
    /// Change rules.
    FlowMod(FlowMod<'a>),
    /// Change a group.
    GroupMod(GroupMod<'a>),
    /// Change a meter.
    MeterMod(MeterMod<'a>),
    /// Change a port.
    PortMod(PortMod),
    /// Request statistics.
    StatsRequest(StatsRequest<'a>),
    /// A barrier.
    Barrier,
    /// Publish a message on a topic.
    Publish(Publish<'a>),
    /// Call a service.
    Query(Ask<'a>),
    /// Answer a call.
    QueryAnswer(QueryAnswer<'a>),
    /// Grant this many more bytes for the answer to the call with this command's ticket.
    QueryCredit(u32),
    /// Cancel the call with this command's ticket.
    QueryCancel,
    /// Write a line into the log.
    Log(Log<'a>),
    /// Change rules, all or none.
    Bundle(Bundle<'a>),
}

/// A subscription. A later subscription replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Bits of [`crate::event::kind::bit`], and [`crate::event::kind::OF_OWN_RULES`].
    pub events: u64,
    /// Packet-ins only of packets within this match (canonical bytes); empty: all.
    pub packets: &'a [u8],
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOut<'a> {
    /// The buffer id in the switch, or `None` if `data` has the packet.
    pub buffer_id: Option<u32>,
    /// The input port; CONTROLLER if there is none.
    pub in_port: PortNo,
    /// The actions, as canonical bytes.
    pub actions: &'a [u8],
    /// The frame.
    pub data: &'a [u8],
}

/// A flow mod. The fields are those of OpenFlow 1.3 (1.3.5, 7.3.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMod<'a> {
    /// The app's part of the cookie, 48 bits. The kernel writes the owner above it.
    pub cookie: u64,
    /// For a modify or delete: the bits of the cookie that must match.
    pub cookie_mask: u64,
    /// The buffer id of a packet to send through the new rule.
    pub buffer_id: Option<u32>,
    /// For a delete: only rules with this output port; ANY: all.
    pub out_port: PortNo,
    /// For a delete: only rules with this output group; 0xffffffff: all.
    pub out_group: u32,
    /// The idle timeout in seconds; 0: none.
    pub idle_timeout_s: u16,
    /// The hard timeout in seconds; 0: none.
    pub hard_timeout_s: u16,
    /// The priority; the highest matching rule applies.
    pub priority: u16,
    /// `ofp_flow_mod_flags`.
    pub flags: u16,
    /// The table id.
    pub table_id: u8,
    /// 0 add, 1 modify, 2 modify strict, 3 delete, 4 delete strict.
    pub command: u8,
    /// The match, as canonical bytes.
    pub matching: &'a [u8],
    /// The instructions, as canonical bytes.
    pub instructions: &'a [u8],
}

impl FlowMod<'_> {
    /// An add of priority 0 in table 0, without timeouts. Most rules start from this.
    pub const ADD: FlowMod<'static> = FlowMod {
        cookie: 0,
        cookie_mask: 0,
        buffer_id: None,
        out_port: PortNo::ANY,
        out_group: 0xffff_ffff,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        priority: 0,
        flags: 0,
        table_id: 0,
        command: 0,
        matching: &[],
        instructions: &[],
    };
}

/// A group mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMod<'a> {
    /// 0 add, 1 modify, 2 delete.
    pub command: u16,
    /// `ofp_group_type`.
    pub group_type: u8,
    /// The id.
    pub group_id: u32,
    /// The buckets, as in a group mod of OpenFlow 1.3.
    pub buckets: &'a [u8],
}

/// A meter mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterMod<'a> {
    /// 0 add, 1 modify, 2 delete.
    pub command: u16,
    /// `ofp_meter_flags`.
    pub flags: u16,
    /// The id.
    pub meter_id: u32,
    /// The bands, as in a meter mod of OpenFlow 1.3.
    pub bands: &'a [u8],
}

/// A port mod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The id.
    pub port_no: PortNo,
    /// The Ethernet address of the port.
    pub hw_addr: MacAddr,
    /// The new configuration, in OpenFlow 1.3's bits.
    pub config: u32,
    /// The mask of bits to change.
    pub mask: u32,
}

/// The configuration of queues, which OpenFlow 1.3 has in messages of its own (1.3.5, 7.3.6). The body is that of
/// OFPT_QUEUE_GET_CONFIG_REQUEST: a port and four bytes of padding. That of the reply is the one of OFPT_QUEUE_GET_CONFIG_REPLY.
pub const QUEUE_CONFIG: u16 = 0xff00;

/// The role of this controller at the switch (1.3.5, 7.3.9), which the request does not change. The body is empty. That of the reply is the one
/// of OFPT_ROLE_REPLY. OpenFlow 1.0 has no roles.
pub const ROLE: u16 = 0xff01;

/// A statistics request to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsRequest<'a> {
    /// `ofp_multipart_type`, or [`QUEUE_CONFIG`], or [`ROLE`].
    pub multipart: u16,
    /// The body of a multipart request of OpenFlow 1.3.
    pub body: &'a [u8],
}

/// A message to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The topic, from general to specific, as in `link.up`.
    pub topic: &'a str,
    /// Whether the kernel keeps the payload for apps that subscribe later. An empty one removes what it keeps.
    pub retain: bool,
    /// The content.
    pub payload: &'a [u8],
}

/// A line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log<'a> {
    /// 0 error, 1 warning, 2 information, 3 debugging.
    pub level: u8,
    /// The content.
    pub text: &'a str,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PacketOutFixed {
    buffer_id: U32,
    in_port: U32,
    actions_len: U16,
    reserved: [u8; 2],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FlowModFixed {
    cookie: U64,
    cookie_mask: U64,
    buffer_id: U32,
    out_port: U32,
    out_group: U32,
    idle_timeout_s: U16,
    hard_timeout_s: U16,
    priority: U16,
    flags: U16,
    matching_len: U16,
    table_id: u8,
    command: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GroupModFixed {
    group_id: U32,
    command: U16,
    group_type: u8,
    reserved: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MeterModFixed {
    meter_id: U32,
    command: U16,
    flags: U16,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PortModFixed {
    port_no: U32,
    config: U32,
    mask: U32,
    hw_addr: [u8; 6],
    reserved: [u8; 2],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SmallFixed {
    number: U16,
    flag: u8,
    reserved: u8,
}

const NO_BUFFER: u32 = 0xffff_ffff;

impl<'a> Command<'a> {
    /// Reads a frame as a command. An unknown type is malformed: the kernel knows every type of its version.
    #[inline]
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        Ok(Command {
            datapath: frame.datapath(),
            ticket: frame.header.sequence.get(),
            wants_receipt: frame.header.flags.get() & FLAG_RECEIPT != 0,
            what: What::read(frame)?,
        })
    }
}

impl<'a> What<'a> {
    #[inline]
    fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let mut body = Reader::new(frame);
        Ok(match frame.header.kind.get() {
            kind::SUBSCRIBE => {
                What::Subscribe(Subscribe { events: body.fixed::<U64>()?.get(), packets: body.rest() })
            }
            kind::PACKET_OUT => What::PacketOut(packet_out(body)?),
            kind::FLOW_MOD => What::FlowMod(flow_mod(body)?),
            kind::GROUP_MOD => What::GroupMod(group_mod(body)?),
            kind::METER_MOD => What::MeterMod(meter_mod(body)?),
            kind::PORT_MOD => What::PortMod(port_mod(body)?),
            kind::STATS_REQUEST => What::StatsRequest(StatsRequest {
                multipart: body.fixed::<SmallFixed>()?.number.get(),
                body: body.rest(),
            }),
            kind::BARRIER => What::Barrier,
            kind::PUBLISH => {
                let fixed: &SmallFixed = body.fixed()?;
                let (topic_len, retain) = (fixed.number.get(), fixed.flag != 0);
                What::Publish(Publish { topic: body.text(topic_len.into())?, retain, payload: body.rest() })
            }
            kind::QUERY => What::Query(Ask::read(body)?),
            kind::QUERY_ANSWER => {
                let fixed: &SmallFixed = body.fixed()?;
                let (status, more) = (fixed.number.get(), fixed.flag != 0);
                What::QueryAnswer(QueryAnswer { status, more, payload: body.rest() })
            }
            kind::QUERY_CREDIT => What::QueryCredit(body.fixed::<U32>()?.get()),
            kind::QUERY_CANCEL => What::QueryCancel,
            kind::LOG => {
                let level = body.fixed::<SmallFixed>()?.flag;
                What::Log(Log { level, text: body.rest_as_text()? })
            }
            kind::BUNDLE => What::Bundle(Bundle::read(frame)?),
            _ => return Err(Malformed { offset: 0, reason: "unknown command type" }),
        })
    }
}

#[inline]
fn packet_out(mut body: Reader<'_>) -> Result<PacketOut<'_>, Malformed> {
    let fixed: &PacketOutFixed = body.fixed()?;
    Ok(PacketOut {
        buffer_id: Some(fixed.buffer_id.get()).filter(|id| *id != NO_BUFFER),
        in_port: PortNo(fixed.in_port.get()),
        actions: body.bytes(fixed.actions_len.get().into())?,
        data: body.rest(),
    })
}

#[inline]
fn flow_mod(mut body: Reader<'_>) -> Result<FlowMod<'_>, Malformed> {
    let fixed: &FlowModFixed = body.fixed()?;
    Ok(FlowMod {
        cookie: fixed.cookie.get(),
        cookie_mask: fixed.cookie_mask.get(),
        buffer_id: Some(fixed.buffer_id.get()).filter(|id| *id != NO_BUFFER),
        out_port: PortNo(fixed.out_port.get()),
        out_group: fixed.out_group.get(),
        idle_timeout_s: fixed.idle_timeout_s.get(),
        hard_timeout_s: fixed.hard_timeout_s.get(),
        priority: fixed.priority.get(),
        flags: fixed.flags.get(),
        table_id: fixed.table_id,
        command: fixed.command,
        matching: body.bytes(fixed.matching_len.get().into())?,
        instructions: body.rest(),
    })
}

fn group_mod(mut body: Reader<'_>) -> Result<GroupMod<'_>, Malformed> {
    let fixed: &GroupModFixed = body.fixed()?;
    Ok(GroupMod {
        command: fixed.command.get(),
        group_type: fixed.group_type,
        group_id: fixed.group_id.get(),
        buckets: body.rest(),
    })
}

fn meter_mod(mut body: Reader<'_>) -> Result<MeterMod<'_>, Malformed> {
    let fixed: &MeterModFixed = body.fixed()?;
    Ok(MeterMod {
        command: fixed.command.get(),
        flags: fixed.flags.get(),
        meter_id: fixed.meter_id.get(),
        bands: body.rest(),
    })
}

fn port_mod(mut body: Reader<'_>) -> Result<PortMod, Malformed> {
    let fixed: &PortModFixed = body.fixed()?;
    Ok(PortMod {
        port_no: PortNo(fixed.port_no.get()),
        hw_addr: MacAddr(fixed.hw_addr),
        config: fixed.config.get(),
        mask: fixed.mask.get(),
    })
}

/// Writes commands. [`write::command`] appends one frame to `out`. It returns `false` and appends nothing if the frame is longer
/// than [`crate::header::MAX_FRAME_LEN`], or if a part is longer than its length field can hold.
pub mod write {
    use super::*;
    use crate::frame;
    use crate::header::{HEADER_LEN, Header, MAX_FRAME_LEN};

    /// Requests a receipt for the command of this frame, if the kernel refuses it ([`crate::header::FLAG_REFUSAL`]).
    pub fn wants_refusal(frame: &mut [u8]) {
        if let Ok((header, _)) = Header::mut_from_prefix(frame) {
            header.flags = (header.flags.get() | FLAG_REFUSAL).into();
        }
    }

    #[inline]
    fn header(kind: u16, datapath: DatapathId, ticket: u64, wants_receipt: bool) -> Header {
        Header {
            kind: kind.into(),
            flags: if wants_receipt { FLAG_RECEIPT } else { 0 }.into(),
            length: 0.into(),
            datapath: datapath.0.into(),
            sequence: ticket.into(),
        }
    }

    /// The part of a flow mod before its match.
    pub const RULE_HEAD_LEN: usize = HEADER_LEN + size_of::<FlowModFixed>();

    /// Completes a flow mod that was written in place: at `start` are [`RULE_HEAD_LEN`] unset bytes, then the match of the given
    /// length, then the instructions. If the frame is too long, it is removed and the result is `false`.
    #[inline]
    pub fn finish_rule(
        out: &mut Vec<u8>,
        start: usize,
        matching_len: usize,
        (datapath, ticket, wants_receipt): (DatapathId, u64, bool),
        it: &FlowMod<'_>,
    ) -> bool {
        let length = out.len() - start;
        let head = out.get_mut(start..).and_then(|rule| rule.first_chunk_mut::<RULE_HEAD_LEN>());
        let (Some(head), Ok(matching_len), true) =
            (head, u16::try_from(matching_len), length <= MAX_FRAME_LEN)
        else {
            out.truncate(start);
            return false;
        };
        let mut header = header(kind::FLOW_MOD, datapath, ticket, wants_receipt);
        // Checked above: it fits in 32 bits.
        header.length = (length as u32).into();
        let (header_bytes, fixed_bytes) = head.split_at_mut(HEADER_LEN);
        header_bytes.copy_from_slice(header.as_bytes());
        fixed_bytes.copy_from_slice(fixed_of(it, matching_len).as_bytes());
        true
    }

    /// Completes a bundle that was written in place: at `start` are [`HEADER_LEN`] unset bytes, then its flow mods. If they do not
    /// form a valid bundle, the frame is removed and the result is `false`.
    pub fn finish_bundle(out: &mut Vec<u8>, start: usize, datapath: DatapathId, ticket: u64) -> bool {
        let length = out.len() - start;
        let head = out.get_mut(start..).and_then(|bundle| bundle.first_chunk_mut::<HEADER_LEN>());
        let is_whole = head.is_some_and(|head| {
            let mut header = header(kind::BUNDLE, datapath, ticket, true);
            // A longer frame cannot be read below.
            header.length = u32::try_from(length).unwrap_or(u32::MAX).into();
            head.copy_from_slice(header.as_bytes());
            true
        });
        let is_read = is_whole
            && out
                .get(start..)
                .is_some_and(|bytes| Frame::read(bytes).and_then(|frame| Bundle::read(&frame)).is_ok());
        if !is_read {
            out.truncate(start);
        }
        is_read
    }

    /// Appends a command.
    pub fn command(out: &mut Vec<u8>, command: &Command<'_>) -> bool {
        let header = |kind: u16| header(kind, command.datapath, command.ticket, command.wants_receipt);
        match &command.what {
            What::Subscribe(it) => {
                frame::write(out, header(kind::SUBSCRIBE), &U64::new(it.events), &[it.packets])
            }
            What::PacketOut(it) => packet_out(out, header(kind::PACKET_OUT), it),
            What::FlowMod(it) => flow_mod(out, header(kind::FLOW_MOD), it),
            What::GroupMod(it) => frame::write(out, header(kind::GROUP_MOD), &group_mod(it), &[it.buckets]),
            What::MeterMod(it) => frame::write(out, header(kind::METER_MOD), &meter_mod(it), &[it.bands]),
            What::PortMod(it) => frame::write(out, header(kind::PORT_MOD), &port_mod(it), &[]),
            What::StatsRequest(it) => {
                frame::write(out, header(kind::STATS_REQUEST), &small(it.multipart, 0), &[it.body])
            }
            What::Barrier => frame::write(out, header(kind::BARRIER), &[0u8; 0], &[]),
            What::Publish(it) => {
                let Ok(topic_len) = u16::try_from(it.topic.len()) else { return false };
                let fixed = small(topic_len, it.retain.into());
                frame::write(out, header(kind::PUBLISH), &fixed, &[it.topic.as_bytes(), it.payload])
            }
            What::Query(it) => {
                let Some(fixed) = it.fixed() else { return false };
                frame::write(out, header(kind::QUERY), &fixed, &[it.service.as_bytes(), it.payload])
            }
            What::QueryCredit(bytes) => frame::write(out, header(kind::QUERY_CREDIT), &U32::new(*bytes), &[]),
            What::QueryCancel => frame::write(out, header(kind::QUERY_CANCEL), &[0u8; 0], &[]),
            What::QueryAnswer(it) => frame::write(
                out,
                header(kind::QUERY_ANSWER),
                &small(it.status, it.more.into()),
                &[it.payload],
            ),
            What::Log(it) => frame::write(out, header(kind::LOG), &small(0, it.level), &[it.text.as_bytes()]),
            What::Bundle(it) => frame::write(out, header(kind::BUNDLE), &[0u8; 0], &[it.as_bytes()]),
        }
    }

    #[inline]
    fn packet_out(out: &mut Vec<u8>, header: Header, it: &PacketOut<'_>) -> bool {
        let Ok(actions_len) = u16::try_from(it.actions.len()) else { return false };
        let fixed = PacketOutFixed {
            buffer_id: it.buffer_id.unwrap_or(NO_BUFFER).into(),
            in_port: it.in_port.0.into(),
            actions_len: actions_len.into(),
            reserved: [0; 2],
        };
        frame::write(out, header, &fixed, &[it.actions, it.data])
    }

    #[inline]
    fn flow_mod(out: &mut Vec<u8>, header: Header, it: &FlowMod<'_>) -> bool {
        let Ok(matching_len) = u16::try_from(it.matching.len()) else { return false };
        frame::write(out, header, &fixed_of(it, matching_len), &[it.matching, it.instructions])
    }

    #[inline]
    fn fixed_of(it: &FlowMod<'_>, matching_len: u16) -> FlowModFixed {
        FlowModFixed {
            cookie: it.cookie.into(),
            cookie_mask: it.cookie_mask.into(),
            buffer_id: it.buffer_id.unwrap_or(NO_BUFFER).into(),
            out_port: it.out_port.0.into(),
            out_group: it.out_group.into(),
            idle_timeout_s: it.idle_timeout_s.into(),
            hard_timeout_s: it.hard_timeout_s.into(),
            priority: it.priority.into(),
            flags: it.flags.into(),
            matching_len: matching_len.into(),
            table_id: it.table_id,
            command: it.command,
        }
    }

    fn group_mod(it: &GroupMod<'_>) -> GroupModFixed {
        GroupModFixed {
            group_id: it.group_id.into(),
            command: it.command.into(),
            group_type: it.group_type,
            reserved: 0,
        }
    }

    fn meter_mod(it: &MeterMod<'_>) -> MeterModFixed {
        MeterModFixed { meter_id: it.meter_id.into(), command: it.command.into(), flags: it.flags.into() }
    }

    fn port_mod(it: &PortMod) -> PortModFixed {
        PortModFixed {
            port_no: it.port_no.0.into(),
            config: it.config.into(),
            mask: it.mask.into(),
            hw_addr: it.hw_addr.0,
            reserved: [0; 2],
        }
    }

    fn small(number: u16, flag: u8) -> SmallFixed {
        SmallFixed { number: number.into(), flag, reserved: 0 }
    }
}
