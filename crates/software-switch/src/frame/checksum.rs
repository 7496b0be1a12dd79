//! The Internet checksum, updated when bytes change, and SCTP's CRC32c.
//!
//! It updates the old checksum instead of a sum over the whole packet (RFC 1624). A fragment does not hold all bytes
//! that its checksum covers, and a wrong checksum must stay wrong.

use super::layout::{Layout, Network, Transport};
use super::{protocol, u16_at};

/// The ones' complement sum of the bytes, folded and complemented (RFC 1071). An odd last byte is padded with zero.
pub fn internet(bytes: &[u8]) -> u16 {
    complement(sum(bytes))
}

/// The same, over a pseudo-header too: the addresses, the protocol and the length (RFC 9293, 3.1; RFC 8200, 8.1).
pub fn with_pseudo_header<const N: usize>(
    source: &[u8; N],
    destination: &[u8; N],
    protocol: u8,
    length: u32,
    body: &[u8],
) -> u16 {
    let rest = [length.to_be_bytes(), [0, 0, 0, protocol]];
    complement(sum(source) + sum(destination) + sum(rest.as_flattened()) + sum(body))
}

/// The sum in the machine's byte order, which gives the same result as the network's (RFC 1071, 2). It takes four
/// bytes at a time and folds only at the end.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let all = words.iter().chain([&last]);
    all.map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

fn complement(sum: u64) -> u16 {
    let once = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (once & 0xffff) + (once >> 16 & 0xffff) + (once >> 32);
    // The sum of three 16-bit numbers: two folds leave one.
    !u16::from_be_bytes((fold(fold(sum as u32)) as u16).to_ne_bytes())
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

/// Writes `new` at `at` and updates the checksums that cover those bytes. `aligned_to` is where a covered header
/// begins: its 16-bit words begin at even distances from there.
pub(crate) fn replace(
    frame: &mut [u8],
    aligned_to: usize,
    at: usize,
    new: &[u8],
    checksums: &[Option<usize>],
) {
    let first = at - (at - aligned_to) % 2;
    let end = at + new.len();
    if end > frame.len() {
        return;
    }
    for here in (first..end).step_by(2) {
        let was = word(frame, here);
        let changed = here.max(at)..(here + 2).min(end);
        frame[changed.clone()].copy_from_slice(&new[changed.start - at..changed.end - at]);
        let is = word(frame, here);
        checksums.iter().flatten().for_each(|checksum_at| correct(frame, *checksum_at, was, is));
    }
}

/// The 16-bit word at `at`, padded with zero after the frame's end.
fn word(frame: &[u8], at: usize) -> u16 {
    u16_at(frame, at).unwrap_or_else(|| frame.get(at).map_or(0, |byte| u16::from(*byte) << 8))
}

/// HC' = ~(~HC + ~m + m') (RFC 1624, equation 3).
fn correct(frame: &mut [u8], checksum_at: usize, was: u16, is: u16) {
    let Some(old) = u16_at(frame, checksum_at) else { return };
    let sum = fold(fold(u32::from(!old) + u32::from(!was)) + u32::from(is));
    let corrected = !(fold(sum) as u16);
    frame[checksum_at..checksum_at + 2].copy_from_slice(&corrected.to_be_bytes());
}

/// Where the transport header's Internet checksum is, if the header has one in use.
pub(crate) fn of_transport(frame: &[u8], transport: Option<Transport>) -> Option<usize> {
    let transport = transport?;
    let at = transport.at
        + match transport.protocol {
            protocol::TCP => 16,
            protocol::UDP => 6,
            protocol::ICMP | protocol::ICMPV6 => 2,
            _ => return None,
        };
    // A UDP checksum of zero means that the packet has none (RFC 768).
    let unused = transport.protocol == protocol::UDP && u16_at(frame, at)? == 0;
    (!unused && at + 2 <= transport.end).then_some(at)
}

/// Where the checksum is that covers the pseudo-header, which holds the IP addresses. ICMP for IPv4 has no
/// pseudo-header.
pub(crate) fn of_pseudo_header(frame: &[u8], transport: Option<Transport>) -> Option<usize> {
    of_transport(frame, transport.filter(|transport| transport.protocol != protocol::ICMP))
}

/// If a UDP checksum becomes zero, it is sent as all ones (RFC 768).
pub(crate) fn keep_udp_checksum_in_use(
    frame: &mut [u8],
    checksum_at: Option<usize>,
    transport: Option<Transport>,
) {
    let is_udp = transport.is_some_and(|transport| transport.protocol == protocol::UDP);
    if let Some(at) = checksum_at.filter(|_| is_udp)
        && u16_at(frame, at) == Some(0)
    {
        frame[at..at + 2].copy_from_slice(&[0xff, 0xff]);
    }
}

/// Computes SCTP's checksum over the whole packet, because CRC32c has no cheaper update. A fragment is left
/// unchanged.
pub(crate) fn recompute_sctp(frame: &mut [u8], layout: &Layout) {
    let Some(transport) = layout.transport.filter(|transport| transport.protocol == protocol::SCTP) else {
        return;
    };
    let is_fragment = match layout.network {
        Some(Network::Ipv4 { at, .. }) => u16_at(frame, at + 6).is_some_and(|bits| bits & 0x2000 != 0),
        _ => false,
    };
    let Some(packet) =
        frame.get_mut(transport.at..transport.end).filter(|packet| packet.len() >= 12 && !is_fragment)
    else {
        return;
    };
    packet[8..12].fill(0);
    let checksum = crc32c(packet);
    packet[8..12].copy_from_slice(&checksum.to_le_bytes());
}

/// CRC32c (RFC 9260, appendix A). It works bit by bit, because only a set-field on an SCTP port needs it.
fn crc32c(bytes: &[u8]) -> u32 {
    const REFLECTED_POLYNOMIAL: u32 = 0x82f6_3b78;
    let remainder = bytes.iter().fold(u32::MAX, |remainder, byte| {
        (0..8).fold(remainder ^ u32::from(*byte), |bits, _| {
            if bits & 1 == 1 { bits >> 1 ^ REFLECTED_POLYNOMIAL } else { bits >> 1 }
        })
    });
    !remainder
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crc32c_is_the_standards() {
        // The check value of the CRC catalogue for CRC-32/ISCSI.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn a_replaced_byte_gives_the_checksum_of_the_new_bytes(
            mut bytes in proptest::collection::vec(any::<u8>(), 4..80),
            at in any::<prop::sample::Index>(),
            new in proptest::collection::vec(any::<u8>(), 1..8),
        ) {
            bytes[0] = 1; // Not all zero: the sum then has one form only.
            bytes[2..4].fill(0);
            let checksum = internet(&bytes);
            bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
            let at = 4 + at.index(bytes.len());
            replace(&mut bytes, 0, at, &new, &[Some(2)]);
            prop_assert_eq!(internet(&bytes), 0);
        }
    }
}
