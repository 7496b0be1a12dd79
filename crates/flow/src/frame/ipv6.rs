//! IPv6 (RFC 8200), its extension headers and fragments.

use super::{Bytes, FrameFields, transport};
use crate::field::Field;

/// `ofp_ipv6exthdr_flags` (1.3.5, 7.2.3.8).
mod flag {
    pub const NO_NEXT: u16 = 1 << 0;
    pub const ESP: u16 = 1 << 1;
    pub const AUTH: u16 = 1 << 2;
    pub const DEST: u16 = 1 << 3;
    pub const FRAG: u16 = 1 << 4;
    pub const ROUTER: u16 = 1 << 5;
    pub const HOP: u16 = 1 << 6;
    pub const UNREP: u16 = 1 << 7;
    pub const UNSEQ: u16 = 1 << 8;
}

/// The next-header number of a fragment.
const FRAGMENT: u8 = 44;

/// Reads a packet; `None` if it ends too early.
pub(super) fn read(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let first = bytes.take_u32()?;
    if first >> 28 != 6 {
        return None;
    }
    let payload_len = usize::from(bytes.take_u16()?);
    let next = bytes.take_u8()?;
    bytes.skip(1)?;
    let (source, destination) = (bytes.take_u128()?, bytes.take_u128()?);
    let traffic_class = first >> 20 & 0xff;
    fields.set(Field::IpDscp, traffic_class >> 2);
    fields.set(Field::IpEcn, traffic_class & 3);
    fields.set(Field::Ipv6Flabel, first & 0x000f_ffff);
    fields.set(Field::Ipv6Src, source);
    fields.set(Field::Ipv6Dst, destination);
    // A length of zero means a jumbogram. Bytes after the packet are Ethernet padding.
    if payload_len != 0 {
        bytes.rest = bytes.rest.get(..payload_len).unwrap_or(bytes.rest);
    }
    read_extensions(next, bytes, fields)
}

/// Skips the extension headers to find the protocol. As in Open vSwitch, the protocol of a later fragment is 44: the
/// upper-layer header is in the first fragment.
fn read_extensions(first: u8, mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let mut seen = Seen::default();
    let mut next = first;
    let is_later = loop {
        seen.header(next);
        fields.set(Field::Ipv6Exthdr, seen.flags);
        match next {
            // Hop-by-hop and destination options, routing: the length counts eight bytes, without the first eight.
            0 | 43 | 60 => {
                let [after, length] = bytes.take()?;
                bytes.skip(6 + 8 * usize::from(length))?;
                next = after;
            }
            // Authentication (RFC 4302): the length counts four bytes, without the first eight.
            51 => {
                let [after, length] = bytes.take()?;
                bytes.skip(6 + 4 * usize::from(length))?;
                next = after;
            }
            FRAGMENT => {
                let [after, _, offset_high, offset_low, ..] = bytes.take::<8>()?;
                if u16::from_be_bytes([offset_high, offset_low]) >> 3 != 0 {
                    break true;
                }
                next = after;
            }
            _ => break false,
        }
    };
    fields.set(Field::IpProto, if is_later { FRAGMENT } else { next });
    if is_later { Some(()) } else { transport::read(next, bytes, fields) }
}

/// The extension headers seen so far, and whether their order is the one that RFC 8200, 4.1 recommends.
#[derive(Default)]
struct Seen {
    flags: u16,
    /// The place in the recommended order of the last one.
    last: u8,
    destinations: u8,
}

impl Seen {
    fn header(&mut self, next: u8) {
        let (flag, place) = match next {
            0 => (flag::HOP, 1),
            // Destination options may come before routing and at the end.
            60 if self.flags & (flag::ROUTER | flag::FRAG | flag::AUTH | flag::ESP) == 0 => (flag::DEST, 2),
            60 => (flag::DEST, 7),
            43 => (flag::ROUTER, 3),
            FRAGMENT => (flag::FRAG, 4),
            51 => (flag::AUTH, 5),
            50 => (flag::ESP, 6),
            59 => (flag::NO_NEXT, 8),
            _ => return,
        };
        self.destinations += u8::from(flag == flag::DEST && self.destinations < 3);
        let repeats = if flag == flag::DEST { self.destinations > 2 } else { self.flags & flag != 0 };
        if repeats {
            self.flags |= flag::UNREP;
        }
        if place < self.last {
            self.flags |= flag::UNSEQ;
        }
        self.last = self.last.max(place);
        self.flags |= flag;
    }
}
