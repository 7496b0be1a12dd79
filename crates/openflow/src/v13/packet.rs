//! Packet-in and packet-out of 1.3 (1.3.5, 7.4.1 and 7.3.7).

use flow::canonical::{read_actions, read_match, write_actions};
use flow::{BadInput, PortNo};

use super::matching;
use crate::error::Unwritable;
use crate::message::{PacketIn, PacketOut};
use crate::wire::{Reader, Writer};

/// A packet-in with match and data in place.
pub(crate) struct RawPacketIn<'a> {
    pub buffer_id: u32,
    pub total_len: u16,
    pub reason: u8,
    pub table_id: u8,
    pub cookie: u64,
    pub tlvs: &'a [u8],
    /// The offset of the TLVs in the message.
    pub tlvs_offset: usize,
    pub data: &'a [u8],
}

pub(crate) fn take_packet_in<'a>(body: &mut Reader<'a>) -> Result<RawPacketIn<'a>, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let total_len = body.u16("total_len")?;
    let reason = body.u8("reason")?;
    let table_id = body.u8("table_id")?;
    let cookie = body.u64("cookie")?;
    let (tlvs, tlvs_offset) = matching::take_tlvs(body)?;
    body.skip(2)?;
    Ok(RawPacketIn { buffer_id, total_len, reason, table_id, cookie, tlvs, tlvs_offset, data: body.rest() })
}

pub(super) fn read_packet_in(mut body: Reader<'_>) -> Result<PacketIn, BadInput> {
    let raw = take_packet_in(&mut body)?;
    Ok(PacketIn {
        buffer_id: raw.buffer_id,
        total_len: raw.total_len,
        reason: raw.reason,
        table_id: raw.table_id,
        cookie: raw.cookie,
        matching: read_match(raw.tlvs).map_err(|refused| refused.shifted(raw.tlvs_offset))?,
        data: raw.data.to_vec(),
    })
}

pub(super) fn write_packet_in(packet: &PacketIn, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u32(packet.buffer_id).u16(packet.total_len).u8(packet.reason).u8(packet.table_id).u64(packet.cookie);
    matching::write(&packet.matching, out)?;
    out.zeros(2).bytes(&packet.data);
    Ok(())
}

/// A packet-out with actions and data in place.
pub(crate) struct RawPacketOut<'a> {
    pub buffer_id: u32,
    pub in_port: PortNo,
    pub actions: &'a [u8],
    /// The offset of the actions in the message.
    pub actions_offset: usize,
    pub data: &'a [u8],
}

pub(crate) fn take_packet_out<'a>(body: &mut Reader<'a>) -> Result<RawPacketOut<'a>, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let in_port = PortNo(body.u32("in_port")?);
    let actions_len = body.u16("actions_len")?;
    body.skip(6)?;
    let actions_offset = body.offset();
    let actions = body.take(actions_len.into(), "actions_len")?;
    Ok(RawPacketOut { buffer_id, in_port, actions, actions_offset, data: body.rest() })
}

pub(super) fn read_packet_out(mut body: Reader<'_>) -> Result<PacketOut, BadInput> {
    let raw = take_packet_out(&mut body)?;
    Ok(PacketOut {
        buffer_id: raw.buffer_id,
        in_port: raw.in_port,
        actions: read_actions(raw.actions).map_err(|refused| refused.shifted(raw.actions_offset))?,
        data: raw.data.to_vec(),
    })
}

pub(super) fn write_packet_out(packet: &PacketOut, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_packet_out_with(packet.buffer_id, packet.in_port, &packet.data, out, |out| {
        Ok(write_actions(&packet.actions, out.out)?)
    })
}

/// Writes a packet-out. `write_actions` writes its actions.
pub(crate) fn write_packet_out_with(
    buffer_id: u32,
    in_port: PortNo,
    data: &[u8],
    out: &mut Writer<'_>,
    write_actions: impl FnOnce(&mut Writer<'_>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    out.u32(buffer_id).u32(in_port.0);
    let actions_len = out.length_of_rest(6);
    write_actions(out)?;
    out.fill_length(actions_len)?;
    out.bytes(data);
    Ok(())
}
