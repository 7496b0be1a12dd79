//! The bytes of OpenFlow 1.3 (wire 0x04), with the structures of 1.3.5.
//!
//! Never reads a header, a hello or an error: these are the same in every version and are read before.

pub(crate) mod bundle;
pub(crate) mod check;
mod group;
pub(crate) mod matching;
mod meter;
mod multipart;
mod packet;
mod port;
mod queue;
mod role;
pub(crate) mod rule;
mod statistics;
mod switch;
mod table_features;

pub(crate) use packet::{RawPacketOut, take_packet_in, take_packet_out, write_packet_out_with};

use flow::BadInput;

use crate::connection::{read_config, write_config};
use crate::envelope::{TYPE_ERROR, TYPE_HELLO, unknown_type};
use crate::error::Unwritable;
use crate::message::{Body, Experimenter, ONF_BUNDLE_CONTROL};
use crate::version::Version;
use crate::wire::{Reader, Writer};

/// `ofp_type` (1.3.5, 7.1).
pub(crate) mod kind {
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const EXPERIMENTER: u8 = 4;
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
    pub const GROUP_MOD: u8 = 15;
    pub const PORT_MOD: u8 = 16;
    pub const TABLE_MOD: u8 = 17;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const MULTIPART_REPLY: u8 = 19;
    pub const BARRIER_REQUEST: u8 = 20;
    pub const BARRIER_REPLY: u8 = 21;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
    pub const QUEUE_GET_CONFIG_REPLY: u8 = 23;
    pub const ROLE_REQUEST: u8 = 24;
    pub const ROLE_REPLY: u8 = 25;
    pub const GET_ASYNC_REQUEST: u8 = 26;
    pub const GET_ASYNC_REPLY: u8 = 27;
    pub const SET_ASYNC: u8 = 28;
    pub const METER_MOD: u8 = 29;
}

/// The type of a message. 1.3 has all types.
pub(crate) const fn type_number(body: &Body) -> u8 {
    match body {
        Body::Hello(_) => TYPE_HELLO,
        Body::Error(_) => TYPE_ERROR,
        Body::EchoRequest(_) => kind::ECHO_REQUEST,
        Body::EchoReply(_) => kind::ECHO_REPLY,
        Body::Experimenter(_) | Body::BundleControl(_) | Body::BundleAdd(_) => kind::EXPERIMENTER,
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
        Body::GroupMod(_) => kind::GROUP_MOD,
        Body::PortMod(_) => kind::PORT_MOD,
        Body::TableMod(_) => kind::TABLE_MOD,
        Body::MultipartRequest(_) => kind::MULTIPART_REQUEST,
        Body::MultipartReply(_) => kind::MULTIPART_REPLY,
        Body::BarrierRequest => kind::BARRIER_REQUEST,
        Body::BarrierReply => kind::BARRIER_REPLY,
        Body::QueueGetConfigRequest(_) => kind::QUEUE_GET_CONFIG_REQUEST,
        Body::QueueGetConfigReply(_) => kind::QUEUE_GET_CONFIG_REPLY,
        Body::RoleRequest(_) => kind::ROLE_REQUEST,
        Body::RoleReply(_) => kind::ROLE_REPLY,
        Body::GetAsyncRequest => kind::GET_ASYNC_REQUEST,
        Body::GetAsyncReply(_) => kind::GET_ASYNC_REPLY,
        Body::SetAsync(_) => kind::SET_ASYNC,
        Body::MeterMod(_) => kind::METER_MOD,
    }
}

/// Reads the body of a message of this type, with this transaction id.
pub(crate) fn read(kind: u8, xid: u32, mut body: Reader<'_>) -> Result<Body, BadInput> {
    Ok(match kind {
        kind::ECHO_REQUEST => Body::EchoRequest(body.rest().to_vec()),
        kind::ECHO_REPLY => Body::EchoReply(body.rest().to_vec()),
        kind::EXPERIMENTER => read_experimenter(xid, body)?,
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
        kind::GROUP_MOD => Body::GroupMod(group::read_group_mod(body)?),
        kind::PORT_MOD => Body::PortMod(port::read_port_mod(body)?),
        kind::TABLE_MOD => Body::TableMod(switch::read_table_mod(body)?),
        kind::MULTIPART_REQUEST => Body::MultipartRequest(multipart::read_request(body)?),
        kind::MULTIPART_REPLY => Body::MultipartReply(multipart::read_reply(body)?),
        kind::BARRIER_REQUEST => body.end().map(|()| Body::BarrierRequest)?,
        kind::BARRIER_REPLY => body.end().map(|()| Body::BarrierReply)?,
        kind::QUEUE_GET_CONFIG_REQUEST => Body::QueueGetConfigRequest(queue::read_request(body)?),
        kind::QUEUE_GET_CONFIG_REPLY => Body::QueueGetConfigReply(queue::read_reply(body)?),
        kind::ROLE_REQUEST => Body::RoleRequest(role::read_role_request(body)?),
        kind::ROLE_REPLY => Body::RoleReply(role::read_role(body)?),
        kind::GET_ASYNC_REQUEST => body.end().map(|()| Body::GetAsyncRequest)?,
        kind::GET_ASYNC_REPLY => Body::GetAsyncReply(role::read_async(body)?),
        kind::SET_ASYNC => Body::SetAsync(role::read_async(body)?),
        kind::METER_MOD => Body::MeterMod(meter::read_meter_mod(body)?),
        unknown => return Err(unknown_type(Version::V1_3, unknown)),
    })
}

/// Writes the body of a message with this transaction id.
pub(crate) fn write(body: &Body, xid: u32, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    match body {
        Body::Hello(_) | Body::Error(_) => {}
        Body::EchoRequest(data) | Body::EchoReply(data) => {
            out.bytes(data);
        }
        Body::Experimenter(message) => return write_experimenter(message, out),
        Body::BundleControl(control) => return bundle::write_control(control, out),
        Body::BundleAdd(add) => {
            return bundle::write_add(add, xid, out, |body, out| write(body, xid, out));
        }
        Body::FeaturesRequest | Body::GetConfigRequest | Body::GetAsyncRequest => {}
        Body::BarrierRequest | Body::BarrierReply => {}
        Body::FeaturesReply(features) => return switch::write_features(features, out),
        Body::GetConfigReply(config) | Body::SetConfig(config) => write_config(config, out),
        Body::PacketIn(packet) => return packet::write_packet_in(packet, out),
        Body::FlowRemoved(removed) => return rule::write_flow_removed(removed, out),
        Body::PortStatus(status) => return port::write_port_status(status, out),
        Body::PacketOut(packet) => return packet::write_packet_out(packet, out),
        Body::FlowMod(flow_mod) => return rule::write_flow_mod(flow_mod, out),
        Body::GroupMod(group_mod) => return group::write_group_mod(group_mod, out),
        Body::PortMod(port_mod) => port::write_port_mod(port_mod, out),
        Body::TableMod(table_mod) => switch::write_table_mod(table_mod, out),
        Body::MultipartRequest(request) => return multipart::write_request(request, out),
        Body::MultipartReply(reply) => return multipart::write_reply(reply, out),
        Body::QueueGetConfigRequest(request) => queue::write_request(request, out),
        Body::QueueGetConfigReply(reply) => return queue::write_reply(reply, out),
        Body::RoleRequest(role) => return role::write_role_request(role, out),
        Body::RoleReply(role) => role::write_role(role, out),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => role::write_async(config, out),
        Body::MeterMod(meter_mod) => return meter::write_meter_mod(meter_mod, out),
    }
    Ok(())
}

fn read_experimenter(xid: u32, mut body: Reader<'_>) -> Result<Body, BadInput> {
    let (experimenter, exp_type) = (body.u32("experimenter")?, body.u32("exp_type")?);
    Ok(match exp_type {
        _ if !bundle::is_one(experimenter, exp_type) => {
            let data = body.rest().to_vec();
            Body::Experimenter(Experimenter { experimenter, exp_type: Some(exp_type), data })
        }
        ONF_BUNDLE_CONTROL => Body::BundleControl(bundle::read_control(body)?),
        _ => Body::BundleAdd(bundle::read_add(body, xid, |kind, body| read(kind, xid, body))?),
    })
}

fn write_experimenter(message: &Experimenter, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let Some(exp_type) = message.exp_type else {
        return Err(Unwritable::new("exp_type", "OpenFlow 1.3 needs the experimenter's own type"));
    };
    if bundle::is_one(message.experimenter, exp_type) {
        let why = "the ONF's types 2300 and 2301 are messages of bundles and would be read as such";
        return Err(Unwritable::new("exp_type", why));
    }
    out.u32(message.experimenter).u32(exp_type).bytes(&message.data);
    Ok(())
}
