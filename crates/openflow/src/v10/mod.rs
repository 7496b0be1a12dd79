//! The bytes of OpenFlow 1.0 (wire 0x01), converted to and from the types of 1.3.
//!
//! If 1.3 expresses the same in another form, it is translated. Otherwise it is refused with a reason. Never reads a
//! header, a hello or an error: these are the same in every version and are read before.

pub(crate) mod action;
pub(crate) mod matching;
mod packet;
mod port;
mod queue;
pub(crate) mod rule;
mod statistics;
mod stats_message;
mod switch;

pub(crate) use packet::{NO_COOKIE, is_untagged, take_packet_out, write_packet_out_with};

use flow::{BadInput, PortNo};

use crate::connection::{read_config, write_config};
use crate::envelope::{TYPE_ERROR, TYPE_HELLO, all_or_nothing, unknown_type};
use crate::error::Unwritable;
use crate::message::{Body, Experimenter};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// `ofp_type` (1.0, 5.1).
pub(crate) mod kind {
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const VENDOR: u8 = 4;
    pub const FEATURES_REQUEST: u8 = 5;
    pub const FEATURES_REPLY: u8 = 6;
    pub const GET_CONFIG_REQUEST: u8 = 7;
    pub const GET_CONFIG_REPLY: u8 = 8;
    pub const SET_CONFIG: u8 = 9;
    pub const PACKET_IN: u8 = 10;
    pub const FLOW_REMOVED: u8 = 11;
    pub const PORT_STATUS: u8 = 12;
    pub const PACKET_OUT: u8 = 13;
    pub const FLOW_MOD: u8 = 14;
    pub const PORT_MOD: u8 = 15;
    pub const STATS_REQUEST: u8 = 16;
    pub const STATS_REPLY: u8 = 17;
    pub const BARRIER_REQUEST: u8 = 18;
    pub const BARRIER_REPLY: u8 = 19;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
    pub const QUEUE_GET_CONFIG_REPLY: u8 = 21;
}

/// The type of a message, or `None` for a message that exists only in 1.3.
pub(crate) const fn type_number(body: &Body) -> Option<u8> {
    Some(match body {
        Body::Hello(_) => TYPE_HELLO,
        Body::Error(_) => TYPE_ERROR,
        Body::EchoRequest(_) => kind::ECHO_REQUEST,
        Body::EchoReply(_) => kind::ECHO_REPLY,
        Body::Experimenter(_) => kind::VENDOR,
        Body::FeaturesRequest => kind::FEATURES_REQUEST,
        Body::FeaturesReply(_) => kind::FEATURES_REPLY,
        Body::GetConfigRequest => kind::GET_CONFIG_REQUEST,
        Body::GetConfigReply(_) => kind::GET_CONFIG_REPLY,
        Body::SetConfig(_) => kind::SET_CONFIG,
        Body::PacketIn(_) => kind::PACKET_IN,
        Body::FlowRemoved(_) => kind::FLOW_REMOVED,
        Body::PortStatus(_) => kind::PORT_STATUS,
        Body::PacketOut(_) => kind::PACKET_OUT,
        Body::FlowMod(_) => kind::FLOW_MOD,
        Body::PortMod(_) => kind::PORT_MOD,
        Body::MultipartRequest(_) => kind::STATS_REQUEST,
        Body::MultipartReply(_) => kind::STATS_REPLY,
        Body::BarrierRequest => kind::BARRIER_REQUEST,
        Body::BarrierReply => kind::BARRIER_REPLY,
        Body::QueueGetConfigRequest(_) => kind::QUEUE_GET_CONFIG_REQUEST,
        Body::QueueGetConfigReply(_) => kind::QUEUE_GET_CONFIG_REPLY,
        Body::GroupMod(_) | Body::TableMod(_) | Body::MeterMod(_) => return None,
        Body::RoleRequest(_) | Body::RoleReply(_) => return None,
        Body::GetAsyncRequest | Body::GetAsyncReply(_) | Body::SetAsync(_) => return None,
        Body::BundleControl(_) | Body::BundleAdd(_) => return None,
    })
}

/// Reads the body of a message of this type.
pub(crate) fn read(kind: u8, mut body: Reader<'_>) -> Result<Body, BadInput> {
    Ok(match kind {
        kind::ECHO_REQUEST => Body::EchoRequest(body.rest().to_vec()),
        kind::ECHO_REPLY => Body::EchoReply(body.rest().to_vec()),
        kind::VENDOR => Body::Experimenter(read_vendor(body)?),
        kind::FEATURES_REQUEST => body.end().map(|()| Body::FeaturesRequest)?,
        kind::FEATURES_REPLY => Body::FeaturesReply(switch::read_features(body)?),
        kind::GET_CONFIG_REQUEST => body.end().map(|()| Body::GetConfigRequest)?,
        kind::GET_CONFIG_REPLY => Body::GetConfigReply(read_config(body)?),
        kind::SET_CONFIG => Body::SetConfig(read_config(body)?),
        kind::PACKET_IN => Body::PacketIn(packet::read_packet_in(body)?),
        kind::FLOW_REMOVED => Body::FlowRemoved(rule::read_flow_removed(body)?),
        kind::PORT_STATUS => Body::PortStatus(port::read_port_status(body)?),
        kind::PACKET_OUT => Body::PacketOut(packet::read_packet_out(body)?),
        kind::FLOW_MOD => Body::FlowMod(rule::read_flow_mod(body)?),
        kind::PORT_MOD => Body::PortMod(port::read_port_mod(body)?),
        kind::STATS_REQUEST => Body::MultipartRequest(stats_message::read_request(body)?),
        kind::STATS_REPLY => Body::MultipartReply(stats_message::read_reply(body)?),
        kind::BARRIER_REQUEST => body.end().map(|()| Body::BarrierRequest)?,
        kind::BARRIER_REPLY => body.end().map(|()| Body::BarrierReply)?,
        kind::QUEUE_GET_CONFIG_REQUEST => Body::QueueGetConfigRequest(queue::read_request(body)?),
        kind::QUEUE_GET_CONFIG_REPLY => Body::QueueGetConfigReply(queue::read_reply(body)?),
        unknown => return Err(unknown_type(Version::V1_0, unknown)),
    })
}

/// Writes the body of a message that has a type in 1.0.
pub(crate) fn write(body: &Body, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    match body {
        Body::Hello(_) | Body::Error(_) => {}
        Body::EchoRequest(data) | Body::EchoReply(data) => {
            out.bytes(data);
        }
        Body::Experimenter(message) => return write_vendor(message, out),
        Body::FeaturesRequest | Body::GetConfigRequest | Body::BarrierRequest | Body::BarrierReply => {}
        Body::FeaturesReply(features) => return switch::write_features(features, out),
        Body::GetConfigReply(config) | Body::SetConfig(config) => write_config(config, out),
        Body::PacketIn(packet) => return packet::write_packet_in(packet, out),
        Body::FlowRemoved(removed) => return rule::write_flow_removed(removed, out),
        Body::PortStatus(status) => return port::write_port_status(status, out),
        Body::PacketOut(packet) => return packet::write_packet_out(packet, out),
        Body::FlowMod(flow_mod) => return rule::write_flow_mod(flow_mod, out),
        Body::PortMod(port_mod) => return port::write_port_mod(port_mod, out),
        Body::MultipartRequest(request) => return stats_message::write_request(request, out),
        Body::MultipartReply(reply) => return stats_message::write_reply(reply, out),
        Body::QueueGetConfigRequest(request) => return queue::write_request(request, out),
        Body::QueueGetConfigReply(reply) => return queue::write_reply(reply, out),
        // These have no type in 1.0, so they never arrive here.
        Body::GroupMod(_) | Body::TableMod(_) | Body::MeterMod(_) => {}
        Body::RoleRequest(_) | Body::RoleReply(_) => {}
        Body::GetAsyncRequest | Body::GetAsyncReply(_) | Body::SetAsync(_) => {}
        Body::BundleControl(_) | Body::BundleAdd(_) => {}
    }
    Ok(())
}

fn read_vendor(mut body: Reader<'_>) -> Result<Experimenter, BadInput> {
    Ok(Experimenter { experimenter: body.u32("vendor")?, exp_type: None, data: body.rest().to_vec() })
}

fn write_vendor(message: &Experimenter, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if message.exp_type.is_some() {
        return Err(Unwritable::new(
            "exp_type",
            "a vendor message of OpenFlow 1.0 has none: put it into the data",
        ));
    }
    out.u32(message.experimenter).bytes(&message.data);
    Ok(())
}

/// Appends `ofp_match` of 1.0, 40 bytes, from a match's canonical TLVs. Allocates only the text of an error.
///
/// # Errors
/// 1.0 cannot express the match: an unknown field, a mask that is not a prefix, or a field without its prerequisite.
/// Nothing is appended then.
pub fn write_match_from_canonical(tlvs: &[u8], out: &mut Vec<u8>) -> Result<(), Unwritable> {
    all_or_nothing(out, |out| matching::write_from_canonical(tlvs, flow::EXACT_PRIORITY_V10, out).map(|_| ()))
}

/// Appends actions of 1.0 from canonical instructions. `untagged`: the rule is for packets without a VLAN tag; only
/// then can 1.0 express a push. Allocates only the text of an error.
///
/// # Errors
/// 1.0 cannot express the instructions: anything but one apply-actions, or an unknown action. Nothing is appended then.
pub fn write_instructions_from_canonical(
    instructions: &[u8],
    untagged: bool,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    all_or_nothing(out, |out| rule::write_instructions_from_canonical(instructions, untagged, out))
}

/// Appends actions of 1.0 from canonical actions, under the same conditions.
///
/// # Errors
/// An action that 1.0 cannot express. Nothing is appended then.
pub fn write_actions_from_canonical(
    actions: &[u8],
    untagged: bool,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    all_or_nothing(out, |out| action::write_from_canonical(actions, untagged, out))
}

/// Converts a port to the 16 bits of 1.0.
#[inline]
fn port_number(port: PortNo, what: &'static str) -> Result<u16, Unwritable> {
    port.to_v10().ok_or_else(|| {
        Unwritable::new(
            what,
            format!("port {} does not fit the 16 bits that OpenFlow 1.0 has for it", port.0),
        )
    })
}

#[inline]
fn read_port_number(body: &mut Reader<'_>, field: &'static str) -> Result<PortNo, BadInput> {
    body.u16(field).map(PortNo::from_v10)
}
