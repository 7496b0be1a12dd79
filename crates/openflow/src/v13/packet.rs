//! Packet-in and packet-out of 1.3 (1.3.5, 7.4.1 and 7.3.7).

use flow::canonical::{read_actions, write_actions};
use flow::{BadInput, PortNo};

use super::matching;
use crate::error::Unwritable;
use crate::message::{PacketIn, PacketOut};
use crate::wire::{Reader, Writer};

pub(super) fn read_packet_in(mut body: Reader<'_>) -> Result<PacketIn, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let total_len = body.u16("total_len")?;
    let reason = body.u8("reason")?;
    let table_id = body.u8("table_id")?;
    let cookie = body.u64("cookie")?;
    let matching = matching::read(&mut body)?;
    body.skip(2)?;
    let data = body.rest().to_vec();
    Ok(PacketIn { buffer_id, total_len, reason, table_id, cookie, matching, data })
}

pub(super) fn write_packet_in(packet: &PacketIn, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u32(packet.buffer_id).u16(packet.total_len).u8(packet.reason).u8(packet.table_id).u64(packet.cookie);
    matching::write(&packet.matching, out)?;
    out.zeros(2).bytes(&packet.data);
    Ok(())
}

pub(super) fn read_packet_out(mut body: Reader<'_>) -> Result<PacketOut, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let in_port = PortNo(body.u32("in_port")?);
    let actions_len = body.u16("actions_len")?;
    body.skip(6)?;
    let offset = body.offset();
    let actions = body.take(actions_len.into(), "actions_len")?;
    let actions = read_actions(actions).map_err(|refused| refused.shifted(offset))?;
    Ok(PacketOut { buffer_id, in_port, actions, data: body.rest().to_vec() })
}

pub(super) fn write_packet_out(packet: &PacketOut, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u32(packet.buffer_id).u32(packet.in_port.0);
    let length_at = out.out.len();
    out.zeros(8);
    let start = out.out.len();
    write_actions(&packet.actions, out.out)?;
    let length = out.out.len() - start;
    let Ok(length) = u16::try_from(length) else {
        return Err(Unwritable::new("actions_len", format!("{length} bytes of actions do not fit 16 bits")));
    };
    out.out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    out.bytes(&packet.data);
    Ok(())
}
