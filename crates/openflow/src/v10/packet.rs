//! Packet-in and packet-out of 1.0 (5.4.1 and 5.3.6).

use flow::{BadInput, Field, Match, PortNo};

use super::{action, port_number, read_port_number};
use crate::error::Unwritable;
use crate::message::{NO_BUFFER, PacketIn, PacketOut};
use crate::v13::RawPacketOut;
use crate::wire::{Reader, Writer};

/// Where a frame has its type.
const ETH_TYPE_AT: usize = 12;
/// The types of a customer's tag and of a provider's.
const ETH_VLAN: [u8; 2] = [0x81, 0x00];
const ETH_PROVIDER: [u8; 2] = [0x88, 0xa8];

/// The cookie for a packet-in of 1.0, which has none.
pub(crate) const NO_COOKIE: u64 = u64::MAX;

pub(super) fn read_packet_in(mut body: Reader<'_>) -> Result<PacketIn, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let total_len = body.u16("total_len")?;
    let in_port = read_port_number(&mut body, "in_port")?;
    let reason = body.u8("reason")?;
    body.skip(1)?;
    Ok(PacketIn {
        buffer_id,
        total_len,
        reason,
        table_id: 0,
        cookie: NO_COOKIE,
        matching: Match::any().with(Field::InPort, in_port),
        data: body.rest().to_vec(),
    })
}

/// Leaves out the table, the cookie and metadata except the port, which 1.0 has no place for.
pub(super) fn write_packet_in(packet: &PacketIn, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let in_port = packet.matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok());
    let Some(in_port) = in_port.map(PortNo) else {
        return Err(Unwritable::new("in_port", "a packet-in says by which port the packet came"));
    };
    out.u32(packet.buffer_id).u16(packet.total_len).u16(port_number(in_port, "in_port")?);
    out.u8(packet.reason).zeros(1).bytes(&packet.data);
    Ok(())
}

pub(crate) fn take_packet_out<'a>(body: &mut Reader<'a>) -> Result<RawPacketOut<'a>, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let in_port = read_port_number(body, "in_port")?;
    let actions_len = body.u16("actions_len")?;
    let actions_offset = body.offset();
    let actions = body.take(actions_len.into(), "actions_len")?;
    Ok(RawPacketOut { buffer_id, in_port, actions, actions_offset, data: body.rest() })
}

pub(super) fn read_packet_out(mut body: Reader<'_>) -> Result<PacketOut, BadInput> {
    let raw = take_packet_out(&mut body)?;
    Ok(PacketOut {
        buffer_id: raw.buffer_id,
        in_port: raw.in_port,
        actions: action::read(Reader::new(raw.actions, raw.actions_offset))?,
        data: raw.data.to_vec(),
    })
}

pub(super) fn write_packet_out(packet: &PacketOut, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_packet_out_with(packet.buffer_id, packet.in_port, &packet.data, out, |out| {
        action::write(&packet.actions, is_untagged(packet.buffer_id, &packet.data), out)
    })
}

/// Whether a packet-out certainly sends a frame without a VLAN tag. The frame in a switch's buffer may have one.
pub(crate) fn is_untagged(buffer_id: u32, data: &[u8]) -> bool {
    let kind = data.get(ETH_TYPE_AT..ETH_TYPE_AT + 2);
    buffer_id == NO_BUFFER && kind.is_some_and(|kind| kind != ETH_VLAN && kind != ETH_PROVIDER)
}

/// Writes a packet-out. `write_actions` writes its actions.
pub(crate) fn write_packet_out_with(
    buffer_id: u32,
    in_port: PortNo,
    data: &[u8],
    out: &mut Writer<'_>,
    write_actions: impl FnOnce(&mut Writer<'_>) -> Result<(), Unwritable>,
) -> Result<(), Unwritable> {
    out.u32(buffer_id).u16(port_number(in_port, "in_port")?);
    let actions_len = out.length_of_rest(0);
    write_actions(out)?;
    out.fill_length(actions_len)?;
    out.bytes(data);
    Ok(())
}
