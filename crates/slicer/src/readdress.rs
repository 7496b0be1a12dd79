//! The IPv4 addresses in the bytes of a frame, with its checksums.
//!
//! In: a frame, and a function from old to new addresses. Out: the frame with both addresses changed, or nothing if it has none or one of them may
//! not be changed. It never touches another field. What an ICMP error quotes stays as it is.

use flow::Field;
use flow::frame::FrameFields;

/// The bytes before the header of an untagged packet.
const ETHERNET: usize = 14;
/// The places of the two addresses in IPv4 and in ARP.
const IPV4_AT: [usize; 2] = [ETHERNET + 12, ETHERNET + 16];
const ARP_AT: [usize; 2] = [ETHERNET + 14, ETHERNET + 24];
/// The place of IPv4's checksum.
const CHECKSUM_AT: usize = ETHERNET + 10;
/// The place of the offset of a fragment, and its bits.
const FRAGMENT_AT: usize = ETHERNET + 6;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The frame with other addresses.
pub(crate) fn readdressed(frame: &[u8], of: impl Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
    let fields = FrameFields::read(frame);
    if fields.get(Field::VlanVid) != Some(0) {
        return None;
    }
    let (places, is_ipv4) = match (fields.get(Field::Ipv4Src), fields.get(Field::ArpSpa)) {
        (Some(_), _) => (IPV4_AT, true),
        (None, Some(_)) => (ARP_AT, false),
        (None, None) => return None,
    };
    let mut bytes = frame.to_vec();
    for at in places {
        let old = u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
        let new = of(old)?;
        bytes.get_mut(at..at + 4)?.copy_from_slice(&new.to_be_bytes());
        if is_ipv4 {
            mend(&mut bytes, CHECKSUM_AT, old, new);
            if let Some(at) = transport_checksum_at(frame) {
                mend(&mut bytes, at, old, new);
            }
        }
    }
    // A UDP checksum of zero would mean that the frame has none (RFC 768).
    let is_udp = is_ipv4 && fields.get(Field::IpProto) == Some(17);
    if let Some(at) = transport_checksum_at(frame).filter(|_| is_udp)
        && let Some(place) = bytes.get_mut(at..at + 2)
        && place == [0, 0]
    {
        place.fill(0xff);
    }
    Some(bytes)
}

/// The place of the checksum of TCP or UDP, which covers the addresses. Only the first fragment has it. UDP may have none.
fn transport_checksum_at(frame: &[u8]) -> Option<usize> {
    let fragment = u16::from_be_bytes(*frame.get(FRAGMENT_AT..)?.first_chunk()?);
    if fragment & FRAGMENT_OFFSET != 0 {
        return None;
    }
    let header = usize::from(frame.get(ETHERNET)? & 0xf) * 4;
    let transport = ETHERNET + header;
    match frame.get(ETHERNET + 9)? {
        6 => Some(transport + 16),
        17 => {
            let at = transport + 6;
            (frame.get(at..at + 2)? != [0, 0]).then_some(at)
        }
        _ => None,
    }
}

/// Updates a checksum for one changed address (RFC 1624). A frame that was cut before it has none.
fn mend(bytes: &mut [u8], at: usize, old: u32, new: u32) {
    let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return };
    let halves = |value: u32| [value >> 16, value & 0xffff];
    let mut sum = u32::from(!u16::from_be_bytes(*place));
    for half in halves(!old).into_iter().chain(halves(new)) {
        sum += half;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    *place = (!(sum as u16)).to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn frame(from: [u8; 4], to: [u8; 4], is_tcp: bool) -> Vec<u8> {
        let ip = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(from, to, 9);
        let mut bytes = Vec::new();
        if is_tcp {
            ip.tcp(5, 80, 7, 8).write(&mut bytes, b"hello").unwrap();
        } else {
            ip.udp(5, 80).write(&mut bytes, b"odd").unwrap();
        }
        bytes
    }

    fn other(address: u32) -> Option<u32> {
        (address >> 8 == 0x000a_0000).then_some(address & 0xff | 0xac10_0300)
    }

    #[test]
    fn a_frame_with_other_addresses_has_the_checksums_of_one_that_was_sent_with_them() {
        for is_tcp in [true, false] {
            for last in 0..=255 {
                let before = frame([10, 0, 0, 1], [10, 0, 0, last], is_tcp);
                let after = frame([172, 16, 3, 1], [172, 16, 3, last], is_tcp);
                assert_eq!(readdressed(&before, other), Some(after), "{is_tcp} {last}");
            }
        }
    }

    #[test]
    fn arp_has_its_addresses_elsewhere() {
        let arp = |prefix: [u8; 3]| {
            let [a, b, c] = prefix;
            let head = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
            [&head[..], &[2; 6], &[a, b, c, 1], &[0; 6], &[a, b, c, 2]].concat()
        };
        assert_eq!(readdressed(&arp([10, 0, 0]), other), Some(arp([172, 16, 3])));
        assert_eq!(readdressed(&arp([10, 0, 1]), other), None);
    }

    #[test]
    fn a_frame_without_such_addresses_is_none() {
        let foreign = frame([10, 0, 0, 1], [10, 9, 0, 1], true);
        let tagged = crate::tag::tagged(&frame([10, 0, 0, 1], [10, 0, 0, 2], true), 5);
        for bytes in [foreign, tagged, vec![0; 60], Vec::new()] {
            assert_eq!(readdressed(&bytes, other), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_frame_that_ends_early_is_no_fault() {
        let whole = frame([10, 0, 0, 1], [10, 0, 0, 2], true);
        for length in 0..whole.len() {
            let cut = readdressed(&whole[..length], other);
            assert!(cut.is_none_or(|it| it.len() == length), "{length}");
        }
    }

    #[test]
    fn a_later_fragment_and_udp_without_a_checksum_keep_their_data() {
        let mut fragment = frame([10, 0, 0, 1], [10, 0, 0, 2], true);
        fragment[FRAGMENT_AT + 1] = 9;
        let after = readdressed(&fragment, other).unwrap();
        assert_eq!(after[ETHERNET + 20..], fragment[ETHERNET + 20..]);
        let mut plain = frame([10, 0, 0, 1], [10, 0, 0, 2], false);
        plain[ETHERNET + 26..ETHERNET + 28].fill(0);
        let after = readdressed(&plain, other).unwrap();
        assert_eq!(after[ETHERNET + 20..], plain[ETHERNET + 20..]);
    }
}
