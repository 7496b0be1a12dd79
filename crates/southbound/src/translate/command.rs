//! Commands in the bytes of the version that the switch speaks.
//!
//! What 1.0 cannot say is refused with the reason, never said otherwise.

use crate::fault::Refused;
use crate::translate::statistics::{BODY_AT, on_the_wire};
use abi::command::{FlowMod, GroupMod, MeterMod, PacketOut, PortMod, QUEUE_CONFIG, ROLE, StatsRequest, What};
use abi::zone_id::COOKIE_MASK;
use flow::BadInput;
use openflow::error::BAD_LEN;
use openflow::message::{self, FlowModFields, NO_BUFFER, ROLE_NOCHANGE};
use openflow::{Body, HEADER_LEN, Header, Message, Unwritable, Version, write};

/// Appends a command's message, or nothing. A flow mod gets this cookie.
pub fn append(
    version: Version,
    xid: u32,
    what: &What<'_>,
    cookie: u64,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    match what {
        What::PacketOut(it) => packet_out(version, xid, it, out),
        What::FlowMod(it) => flow_mod(version, xid, it, cookie, out),
        What::GroupMod(it) => group_mod(version, xid, it, out),
        What::MeterMod(it) => meter_mod(version, xid, it, out),
        What::PortMod(it) => port_mod(version, xid, it, out),
        What::StatsRequest(it) => stats_request(version, xid, it, out),
        What::Barrier => {
            write::barrier_request(version, xid, out);
            Ok(())
        }
        // What is for the kernel, a service or another app.
        _ => Err(Refused::NotForSwitches),
    }
}

/// The actions go to a 1.3 switch as they are: it judges them itself, and within its message they can hurt no other.
fn packet_out(version: Version, xid: u32, it: &PacketOut<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    let buffer_id = it.buffer_id.unwrap_or(NO_BUFFER);
    write::packet_out(version, xid, buffer_id, it.in_port, it.actions, it.data, out)
        .map_err(Refused::Unwritable)
}

/// Match and instructions as the actions of a packet-out.
fn flow_mod(
    version: Version,
    xid: u32,
    it: &FlowMod<'_>,
    cookie: u64,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let fields = FlowModFields {
        cookie,
        cookie_mask: cookie_mask(version, it),
        table_id: it.table_id,
        command: it.command,
        idle_timeout_s: it.idle_timeout_s,
        hard_timeout_s: it.hard_timeout_s,
        priority: it.priority,
        buffer_id: it.buffer_id.unwrap_or(NO_BUFFER),
        out_port: it.out_port,
        out_group: it.out_group,
        flags: it.flags,
    };
    write::flow_mod(version, xid, &fields, it.matching, it.instructions, out).map_err(Refused::Unwritable)
}

/// `ofp_flow_mod_command`: the commands that mean the one rule of exactly this match and priority.
const MODIFY_STRICT: u8 = 2;
const DELETE_STRICT: u8 = 4;

/// 1.0 cannot restrict a command by cookie. A strict one means one rule, so there the owner's bits are left out; a loose one would reach the
/// rules of others, so there they stay, and the writer refuses it.
fn cookie_mask(version: Version, it: &FlowMod<'_>) -> u64 {
    let strict = matches!(it.command, MODIFY_STRICT | DELETE_STRICT);
    if version == Version::V1_0 && strict { it.cookie_mask & COOKIE_MASK } else { it.cookie_mask }
}

fn encode(message: Message, out: &mut Vec<u8>) -> Result<(), Refused> {
    message.encode(out).map_err(Refused::Unwritable)
}

/// Types of messages of 1.3 that have no writer of their own (1.3.5, 7.1).
mod kind {
    pub const GROUP_MOD: u8 = 15;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
    pub const METER_MOD: u8 = 29;
}

/// Puts a message of 1.3 together from bytes of an app, and takes it only if it can be read.
fn from_parts(
    kind: u8,
    xid: u32,
    fixed: [u8; 8],
    rest: &[u8],
    out: &mut Vec<u8>,
) -> Result<Message, Refused> {
    let length = u16::try_from(HEADER_LEN + fixed.len() + rest.len()).map_err(|_| too_long(rest))?;
    let start = out.len();
    out.extend_from_slice(&Header { version: Version::V1_3, kind, length, xid }.to_bytes());
    out.extend_from_slice(&fixed);
    out.extend_from_slice(rest);
    Message::decode(&out[start..]).map_err(|bad| {
        out.truncate(start);
        Refused::Malformed(bad)
    })
}

fn too_long(rest: &[u8]) -> Refused {
    let why = format!("{} bytes do not fit one message", rest.len());
    Refused::Unwritable(Unwritable { what: "length", why: why.into() })
}

fn only_1_3(version: Version, what: &'static str) -> Result<(), Refused> {
    if version == Version::V1_3 {
        return Ok(());
    }
    let why = format!("OpenFlow {version} has none, and the switch supports no other version");
    Err(Refused::Unwritable(Unwritable { what, why: why.into() }))
}

fn group_mod(version: Version, xid: u32, it: &GroupMod<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    only_1_3(version, "OFPT_GROUP_MOD")?;
    let ([command_high, command_low], [a, b, c, d]) = (it.command.to_be_bytes(), it.group_id.to_be_bytes());
    let fixed = [command_high, command_low, it.group_type, 0, a, b, c, d];
    from_parts(kind::GROUP_MOD, xid, fixed, it.buckets, out).map(drop)
}

fn meter_mod(version: Version, xid: u32, it: &MeterMod<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
    only_1_3(version, "OFPT_METER_MOD")?;
    let ([command_high, command_low], [flags_high, flags_low], [a, b, c, d]) =
        (it.command.to_be_bytes(), it.flags.to_be_bytes(), it.meter_id.to_be_bytes());
    let fixed = [command_high, command_low, flags_high, flags_low, a, b, c, d];
    from_parts(kind::METER_MOD, xid, fixed, it.bands, out).map(drop)
}

fn port_mod(version: Version, xid: u32, it: &PortMod, out: &mut Vec<u8>) -> Result<(), Refused> {
    let PortMod { port_no, hw_addr, config, mask } = *it;
    let port_mod = message::PortMod { port_no, hw_addr, config, mask, advertise: 0 };
    encode(Message { version, xid, body: Body::PortMod(port_mod) }, out)
}

fn stats_request(
    version: Version,
    xid: u32,
    it: &StatsRequest<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    const { assert!(BODY_AT == HEADER_LEN + 8) };
    match it.multipart {
        QUEUE_CONFIG => return queue_config_request(version, xid, it.body, out),
        ROLE if it.body.is_empty() => {
            return write::role_request(version, xid, ROLE_NOCHANGE, 0, out).map_err(Refused::Unwritable);
        }
        ROLE => return Err(wrong_length("a question for the role has no body")),
        _ => {}
    }
    let [kind_high, kind_low] = on_the_wire(version, it.multipart).to_be_bytes();
    let start = out.len();
    let fixed = [kind_high, kind_low, 0, 0, 0, 0, 0, 0];
    let request = from_parts(kind::MULTIPART_REQUEST, xid, fixed, it.body, out)?;
    if version == Version::V1_3 {
        return Ok(());
    }
    out.truncate(start);
    encode(Message { version, ..request }, out)
}

fn queue_config_request(version: Version, xid: u32, body: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
    let fixed = body.try_into().map_err(|_| wrong_length("a port and four bytes of padding are needed"))?;
    let start = out.len();
    let request = from_parts(kind::QUEUE_GET_CONFIG_REQUEST, xid, fixed, &[], out)?;
    if version == Version::V1_3 {
        return Ok(());
    }
    out.truncate(start);
    encode(Message { version, ..request }, out)
}

fn wrong_length(why: &'static str) -> Refused {
    Refused::Malformed(BadInput { offset: HEADER_LEN, field: "body", error: BAD_LEN, message: why.into() })
}
