//! IPv4 (RFC 791).

use super::{Bytes, FrameFields, transport};
use crate::field::Field;

/// Reads a packet; `None` if it ends too early or its header length is invalid.
pub(super) fn read(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let packet = bytes.rest;
    let version_and_length = bytes.take_u8()?;
    let header_len = usize::from(version_and_length & 0x0f) * 4;
    if version_and_length >> 4 != 4 || header_len < 20 {
        return None;
    }
    let tos = bytes.take_u8()?;
    let total_len = usize::from(bytes.take_u16()?);
    bytes.skip(2)?;
    let fragment = bytes.take_u16()?;
    bytes.skip(1)?;
    let ip_proto = bytes.take_u8()?;
    bytes.skip(2)?;
    let (source, destination) = (bytes.take_u32()?, bytes.take_u32()?);
    fields.set(Field::IpDscp, tos >> 2);
    fields.set(Field::IpEcn, tos & 3);
    fields.set(Field::IpProto, ip_proto);
    fields.set(Field::Ipv4Src, source);
    fields.set(Field::Ipv4Dst, destination);
    // Bytes after the packet are Ethernet padding. If the length exceeds the frame, the payload ends with the frame.
    let payload = packet.get(header_len..total_len.min(packet.len()))?;
    // The offset is the lower 13 bits. If it is not zero, the transport header is in another packet.
    if fragment & 0x1fff != 0 {
        return Some(());
    }
    transport::read(ip_proto, Bytes { rest: payload }, fields)
}
