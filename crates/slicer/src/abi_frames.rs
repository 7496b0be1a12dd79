//! The events and commands of the ABI as those of this crate, and back.
//!
//! ```text
//!   abi::Event ──> each_event ──> Event          Command ──> write_command ──> the frame of an abi::Command
//! ```
//!
//! In: values of one side. Out: values of the other. An event that is not about switches has none here. It decides nothing.

use crate::event::{Cause, Event, Outcome, PacketIn};
use crate::output::Command;
use crate::port::PortFacts;
use abi::command::{self, What};
use abi::zone_id::COOKIE_MASK;
use abi::{OpenFlowVersion, ZoneId};
use flow::DatapathId;
use flow::canonical::{read_match, write_actions, write_instructions, write_match};
use openflow::message::{self, NO_BUFFER, ReplyBody, RequestBody};
use openflow::statistics::{flow_entries, kind};
use openflow::{Body, HEADER_LEN, Header, Message, Version};

/// Where the body begins in a multipart message of 1.3: behind its header, type, flags and padding.
const MULTIPART_BODY_AT: usize = HEADER_LEN + 8;
/// OFPT_MULTIPART_REPLY.
const MULTIPART_REPLY: u8 = 19;
/// Where the match begins in a flow entry (`ofp_flow_stats`, 1.3.5, 7.3.5.2).
const MATCH_AT: usize = 48;
/// OFPMT_OXM, the type of a match (1.3.5, 7.2.3.1).
const OXM_MATCH: u16 = 1;
/// The header of a match: its type, and its length without padding.
const MATCH_HEADER_LEN: usize = 4;
/// The most bytes of a match in an entry: more than a piece of a slice has. A longer one is left out.
const MATCH_LEN_MAX: usize = 1 << 10;
/// Room for the actions of most commands, so that it does not grow while they are written.
const ACTIONS_LEN: usize = 64;
/// Bytes of flow entries that are read at once.
const ENTRIES_LEN: usize = 32 << 10;

/// Passes on what an event of the ABI means for a slice. `own` is the number of the slice's zone, which the kernel writes into cookies.
///
/// A long answer about flow entries becomes several events. A part of an answer that cannot be read ends the answer. Anything else that cannot be
/// read is left out: the kernel has checked it before.
pub fn each_event(event: &abi::Event<'_>, own: ZoneId, mut take: impl FnMut(Event<'_>)) {
    match event {
        abi::Event::SwitchUp(up) => take(Event::SwitchUp {
            datapath: up.datapath,
            version: version_of(up.openflow),
            ports: up.ports.iter().map(|port| facts_of(port.facts())).collect(),
        }),
        abi::Event::SwitchDown(datapath) => take(Event::SwitchDown(*datapath)),
        abi::Event::PacketIn(packet) => take(Event::PacketIn(PacketIn {
            datapath: packet.datapath,
            in_port: packet.in_port,
            buffer_id: packet.buffer_id,
            total_len: packet.total_len,
            reason: packet.reason,
            cause: cause_of(packet.cookie, own),
            data: packet.data,
        })),
        abi::Event::PortStatus(status) => take(Event::PortStatus {
            datapath: status.datapath,
            reason: status.reason,
            port: facts_of(status.port.facts()),
        }),
        abi::Event::FlowRemoved(removed) if removed.owner() == own => {
            let Some(it) = flow_removed_of(removed) else { return };
            take(Event::FlowRemoved { datapath: removed.datapath, removed: it });
        }
        abi::Event::SwitchError(error) => take(Event::Answer {
            datapath: error.datapath,
            ticket: error.ticket,
            outcome: Outcome::Failed(error.error),
        }),
        abi::Event::Receipt(datapath, receipt) => take(Event::Answer {
            datapath: *datapath,
            ticket: receipt.ticket,
            outcome: match receipt.outcome {
                abi::Outcome::Programmed => Outcome::Done,
                abi::Outcome::Refused => Outcome::Refused(receipt.error),
                abi::Outcome::Failed => Outcome::Failed(receipt.error),
                abi::Outcome::Unknown => Outcome::Unknown,
            },
        }),
        abi::Event::StatsReply(reply) => each_reply(reply, own, take),
        _ => {}
    }
}

fn version_of(openflow: OpenFlowVersion) -> Version {
    match openflow {
        OpenFlowVersion::V1_0 => Version::V1_0,
        OpenFlowVersion::V1_3 => Version::V1_3,
    }
}

fn facts_of(port: abi::event::PortFacts<'_>) -> PortFacts {
    PortFacts {
        port: port.port_no,
        hw_addr: port.hw_addr,
        name: port.name.to_owned(),
        is_live: port.live,
        curr_speed_kbps: port.curr_speed_kbps,
    }
}

fn cause_of(cookie: u64, own: ZoneId) -> Cause {
    match cookie {
        u64::MAX => Cause::Unknown,
        _ if ZoneId::owner_of(cookie) == own => Cause::Own(cookie & COOKIE_MASK),
        _ => Cause::Other,
    }
}

fn flow_removed_of(removed: &abi::event::FlowRemoved<'_>) -> Option<message::FlowRemoved> {
    Some(message::FlowRemoved {
        matching: read_match(removed.matching).ok()?,
        cookie: removed.own_cookie(),
        priority: removed.priority,
        reason: removed.reason,
        table_id: removed.table_id,
        duration_s: removed.duration_s,
        duration_ns: removed.duration_ns,
        idle_timeout_s: removed.idle_timeout_s,
        hard_timeout_s: removed.hard_timeout_s,
        packet_count: removed.packet_count,
        byte_count: removed.byte_count,
    })
}

/// The body of a reply may be longer than a message, because that of a 1.0 switch was translated.
fn each_reply(reply: &abi::event::StatsReply<'_>, own: ZoneId, mut take: impl FnMut(Event<'_>)) {
    let mut event = |more: bool, body: &[u8]| {
        let (datapath, ticket) = (reply.datapath, reply.ticket);
        take(match read_reply(reply.multipart, body) {
            Some(body) => Event::Statistics { datapath, ticket, more, body },
            // Without this part, the sums would be wrong.
            None => Event::Answer { datapath, ticket, outcome: Outcome::Unknown },
        });
    };
    if reply.multipart != kind::FLOW {
        return event(reply.more, reply.body);
    }
    let mut part = Vec::new();
    for entry in flow_entries(reply.body).filter(|entry| ZoneId::owner_of(entry.cookie()) == own) {
        if part.len() > ENTRIES_LEN {
            event(true, &part);
            part.clear();
        }
        write_entry(entry.bytes.get(2..MATCH_AT).unwrap_or_default(), entry.matching(), &mut part);
    }
    event(reply.more, &part);
}

/// An entry without instructions, whose form may be that of a 1.0 switch. A match that 1.3 cannot express is left out.
fn write_entry(counters: &[u8], matching: Option<&[u8]>, part: &mut Vec<u8>) {
    let is_readable = |fields: &&[u8]| fields.len() <= MATCH_LEN_MAX && read_match(fields).is_ok();
    let fields = matching.filter(is_readable).unwrap_or_default();
    let match_len = MATCH_HEADER_LEN + fields.len();
    let padded = match_len.next_multiple_of(8);
    // At most MATCH_AT + MATCH_LEN_MAX and a header.
    let [entry_len, match_len] = [MATCH_AT + padded, match_len].map(|length| length as u16);
    part.extend_from_slice(&entry_len.to_be_bytes());
    part.extend_from_slice(counters);
    part.extend_from_slice(&OXM_MATCH.to_be_bytes());
    part.extend_from_slice(&match_len.to_be_bytes());
    part.extend_from_slice(fields);
    part.resize(part.len() + padded - MATCH_HEADER_LEN - fields.len(), 0);
}

fn read_reply(multipart: u16, body: &[u8]) -> Option<ReplyBody> {
    let length = u16::try_from(MULTIPART_BODY_AT + body.len()).ok()?;
    let header = Header { version: Version::V1_3, kind: MULTIPART_REPLY, length, xid: 0 };
    let mut bytes = Vec::with_capacity(length.into());
    bytes.extend_from_slice(&header.to_bytes());
    bytes.extend_from_slice(&multipart.to_be_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(body);
    match Message::decode(&bytes).ok()?.body {
        Body::MultipartReply(reply) => Some(reply.body),
        _ => None,
    }
}

/// Appends the frame of a command. If the command wants no receipt, the kernel still tells if it refuses. Returns false, and appends nothing, if the command has no form in the ABI. This crate makes none
/// such, but for messages that are too long.
pub fn write_command(
    out: &mut Vec<u8>,
    datapath: DatapathId,
    ticket: u64,
    wants_receipt: bool,
    command: &Command,
) -> bool {
    let mut write = |what: What<'_>| {
        let start = out.len();
        let written = command::write::command(out, &abi::Command { datapath, ticket, wants_receipt, what });
        out.get_mut(start..).filter(|_| written && !wants_receipt).map(command::write::wants_refusal);
        written
    };
    match command {
        Command::FlowMod(it) => {
            let (mut matching, mut instructions) = (Vec::new(), Vec::with_capacity(ACTIONS_LEN));
            write_match(&it.matching, &mut matching);
            write_instructions(&it.instructions, &mut instructions).is_ok()
                && write(What::FlowMod(flow_mod_of(it, &matching, &instructions)))
        }
        Command::PacketOut(it) => {
            let mut actions = Vec::with_capacity(ACTIONS_LEN);
            write_actions(&it.actions, &mut actions).is_ok()
                && write(What::PacketOut(command::PacketOut {
                    buffer_id: Some(it.buffer_id).filter(|id| *id != NO_BUFFER),
                    in_port: it.in_port,
                    actions: &actions,
                    data: &it.data,
                }))
        }
        Command::GroupMod(it) => body_of(Body::GroupMod(it.clone())).is_some_and(|buckets| {
            let (command, group_type) = (it.command, it.group_type);
            write(What::GroupMod(command::GroupMod {
                command,
                group_type,
                group_id: it.group_id,
                buckets: &buckets,
            }))
        }),
        Command::MeterMod(it) => body_of(Body::MeterMod(it.clone())).is_some_and(|bands| {
            let (command, flags) = (it.command, it.flags);
            write(What::MeterMod(command::MeterMod { command, flags, meter_id: it.meter_id, bands: &bands }))
        }),
        Command::Statistics(request) => {
            let request = message::MultipartRequest { flags: 0, body: request.clone() };
            let number = number_of(&request.body);
            body_of(Body::MultipartRequest(request)).is_some_and(|body| {
                write(What::StatsRequest(command::StatsRequest { multipart: number, body: &body }))
            })
        }
        Command::Barrier => write(What::Barrier),
    }
}

fn flow_mod_of<'a>(
    it: &message::FlowMod,
    matching: &'a [u8],
    instructions: &'a [u8],
) -> command::FlowMod<'a> {
    command::FlowMod {
        cookie: it.cookie,
        cookie_mask: it.cookie_mask,
        buffer_id: Some(it.buffer_id).filter(|id| *id != NO_BUFFER),
        out_port: it.out_port,
        out_group: it.out_group,
        idle_timeout_s: it.idle_timeout_s,
        hard_timeout_s: it.hard_timeout_s,
        priority: it.priority,
        flags: it.flags,
        table_id: it.table_id,
        command: it.command,
        matching,
        instructions,
    }
}

/// What follows the first eight bytes behind the header: the buckets, bands or body of a message of 1.3.
fn body_of(body: Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Message { version: Version::V1_3, xid: 0, body }.encode(&mut bytes).ok()?;
    bytes.get(MULTIPART_BODY_AT..).map(<[u8]>::to_vec)
}

/// `ofp_multipart_type` (1.3.5, 7.3.5) of the requests that a slice makes.
fn number_of(request: &RequestBody) -> u16 {
    const PORT_STATS: u16 = 4;
    const QUEUE: u16 = 5;
    match request {
        RequestBody::PortStats(_) => PORT_STATS,
        RequestBody::Queue { .. } => QUEUE,
        RequestBody::Group(_) => kind::GROUP,
        RequestBody::Meter(_) => kind::METER,
        _ => kind::FLOW,
    }
}
