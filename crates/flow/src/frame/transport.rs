//! TCP, UDP, SCTP, ICMP and neighbour discovery.

use super::{Bytes, FrameFields};
use crate::field::Field;

/// Reads the header after the IP header; `None` if it ends too early.
pub(super) fn read(ip_proto: u8, bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let is_ipv6 = fields.has(Field::Ipv6Src);
    match ip_proto {
        6 => read_ports(bytes, fields, Field::TcpSrc, Field::TcpDst),
        17 => read_ports(bytes, fields, Field::UdpSrc, Field::UdpDst),
        132 => read_ports(bytes, fields, Field::SctpSrc, Field::SctpDst),
        1 if !is_ipv6 => read_icmp(bytes, fields),
        58 if is_ipv6 => read_icmpv6(bytes, fields),
        _ => Some(()),
    }
}

fn read_ports(
    mut bytes: Bytes<'_>,
    fields: &mut FrameFields,
    source: Field,
    destination: Field,
) -> Option<()> {
    fields.set(source, bytes.take_u16()?);
    fields.set(destination, bytes.take_u16()?);
    Some(())
}

fn read_icmp(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    fields.set(Field::Icmpv4Type, bytes.take_u8()?);
    fields.set(Field::Icmpv4Code, bytes.take_u8()?);
    Some(())
}

fn read_icmpv6(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let (kind, code) = (bytes.take_u8()?, bytes.take_u8()?);
    fields.set(Field::Icmpv6Type, kind);
    fields.set(Field::Icmpv6Code, code);
    // A neighbour solicitation and an advertisement (RFC 4861, 4.3 and 4.4); the option that each may carry.
    match (kind, code) {
        (135, 0) => read_neighbour(bytes, fields, 1, Field::Ipv6NdSll),
        (136, 0) => read_neighbour(bytes, fields, 2, Field::Ipv6NdTll),
        _ => Some(()),
    }
}

fn read_neighbour(mut bytes: Bytes<'_>, fields: &mut FrameFields, wanted: u8, field: Field) -> Option<()> {
    // The checksum and the flags.
    bytes.skip(6)?;
    fields.set(Field::Ipv6NdTarget, bytes.take_u128()?);
    while !bytes.rest.is_empty() {
        let [kind, length] = bytes.take()?;
        // The length counts units of eight bytes. Zero would loop for ever; RFC 4861 requires to drop such packets.
        let body = usize::from(length).checked_mul(8)?.checked_sub(2)?;
        let mut option = Bytes { rest: bytes.rest.get(..body)? };
        if kind == wanted && length == 1 {
            fields.set(field, option.take_address()?);
        }
        bytes.skip(body)?;
    }
    Some(())
}
