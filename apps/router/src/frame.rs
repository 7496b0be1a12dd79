//! Reads a frame as far as a router needs it.
//!
//! In: bytes, which any host can have written. Out: what the frame asks of the router. It reads no further than the lengths in the frame
//! allow, checks the checksum of an IPv4 header, and decides nothing.

use burnet_sdk::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const ARP: u16 = 0x0806;
pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const TAG: u16 = 0x8100;
pub(crate) const ICMP: u8 = 1;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

/// The length of an IPv4 header without options, and of an IPv6 header.
const IPV4_LEN: usize = 20;
pub(crate) const IPV6_LEN: usize = 40;

/// A frame with one tag at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) to: MacAddr,
    pub(crate) from: MacAddr,
    pub(crate) vlan: Option<u16>,
    pub(crate) content: Content<'a>,
}

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// Somebody asks for the Ethernet address of `target`.
    Question { asker: IpAddr, target: IpAddr },
    /// A packet of IP.
    Packet(Packet<'a>),
}

/// A packet of IP, from its header to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// The time-to-live, or the hop limit.
    pub(crate) hops_left: u8,
    /// The protocol behind the header: in IPv6, the first next header.
    pub(crate) protocol: u8,
    /// Whether it begins its datagram: it is no later fragment.
    pub(crate) is_beginning: bool,
    pub(crate) bytes: &'a [u8],
    /// Behind the header.
    pub(crate) body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// `None`: it is damaged, has several tags, or is nothing that a router looks at.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let (addresses, rest) = bytes.split_first_chunk::<12>()?;
        let (eth_type, rest) = number(rest)?;
        let (tag, eth_type, rest) = match eth_type {
            TAG => {
                let (tag, rest) = number(rest)?;
                let (eth_type, rest) = number(rest)?;
                (tag & 0x0fff, eth_type, rest)
            }
            _ => (0, eth_type, rest),
        };
        let content = match eth_type {
            ARP => arp_question(rest)?,
            IPV4 => Content::Packet(ipv4(rest)?),
            IPV6 => ipv6_content(rest)?,
            _ => return None,
        };
        let [to, from] = [&addresses[..6], &addresses[6..]].map(|it| it.try_into().map(MacAddr));
        Some(Frame { to: to.ok()?, from: from.ok()?, vlan: Some(tag).filter(|tag| *tag != 0), content })
    }
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u16::from_be_bytes(*number), rest))
}

/// An ARP request for IPv4 over Ethernet (RFC 826).
fn arp_question(bytes: &[u8]) -> Option<Content<'_>> {
    let packet = bytes.get(..28)?;
    let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).ok().map(|it| IpAddr::V4(it.into()));
    let is_question = packet[..8] == [0, 1, 8, 0, 6, 4, 0, 1];
    is_question.then_some(Content::Question { asker: address(14)?, target: address(24)? })
}

pub(crate) fn ipv4(bytes: &[u8]) -> Option<Packet<'_>> {
    let first = bytes.first().filter(|first| **first >> 4 == 4)?;
    let header_len = usize::from(first & 0xf) * 4;
    let header = bytes.get(..header_len).filter(|_| header_len >= IPV4_LEN)?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let bytes = bytes.get(..total).filter(|_| total >= header_len && checksum(&[header]) == 0)?;
    let address = |at: usize| <[u8; 4]>::try_from(&header[at..at + 4]).ok().map(Ipv4Addr::from);
    let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    Some(Packet {
        from: address(12)?.into(),
        to: address(16)?.into(),
        hops_left: header[8],
        protocol: header[9],
        is_beginning: offset == 0,
        bytes,
        body: &bytes[header_len..],
    })
}

pub(crate) fn ipv6(bytes: &[u8]) -> Option<Packet<'_>> {
    let header = bytes.get(..IPV6_LEN).filter(|header| header[0] >> 4 == 6)?;
    let total = IPV6_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let bytes = bytes.get(..total)?;
    let address = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).ok().map(Ipv6Addr::from);
    Some(Packet {
        from: address(8)?.into(),
        to: address(24)?.into(),
        hops_left: header[7],
        protocol: header[6],
        is_beginning: true,
        bytes,
        body: &bytes[IPV6_LEN..],
    })
}

/// A neighbour solicitation, or any other packet. A solicitation with a smaller hop limit has passed a router, and is none (RFC 4861, 7.1.1).
fn ipv6_content(bytes: &[u8]) -> Option<Content<'_>> {
    let packet = ipv6(bytes)?;
    if packet.protocol != ICMPV6 || packet.body.first() != Some(&135) || packet.hops_left != 255 {
        return Some(Content::Packet(packet));
    }
    let target: [u8; 16] = packet.body.get(8..24)?.try_into().ok()?;
    Some(Content::Question { asker: packet.from, target: IpAddr::V6(target.into()) })
}

impl Packet<'_> {
    /// Whether an error about it may be sent: it is no error itself, and comes from one host for one host (RFC 1812, 4.3.2.7; RFC 4443, 2.4).
    pub(crate) fn may_cause_error(&self) -> bool {
        let is_of_host = |address: IpAddr| match address {
            IpAddr::V4(it) => {
                !it.is_multicast() && !it.is_broadcast() && !it.is_unspecified() && !it.is_loopback()
            }
            IpAddr::V6(it) => !it.is_multicast() && !it.is_unspecified() && !it.is_loopback(),
        };
        let is_error = match (self.protocol, self.body.first()) {
            (ICMP, Some(kind)) => ![0, 8].contains(kind),
            (ICMPV6, Some(kind)) => *kind < 128,
            _ => false,
        };
        self.is_beginning && !is_error && is_of_host(self.from) && is_of_host(self.to)
    }
}

/// The Internet checksum of these parts (RFC 1071). All but the last have an even length. 0 if a checksum is among them and is right.
pub(crate) fn checksum(parts: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    };
    // 64 KiB of words stay far below the limit of 32 bits.
    let mut sum: u32 = parts.iter().flat_map(|part| part.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Folded to 16 bits.
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(first: u8, total: u16, offset: u16) -> Vec<u8> {
        let mut header = vec![first, 0, 0, 0, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2];
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[6..8].copy_from_slice(&offset.to_be_bytes());
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    #[test]
    fn a_damaged_packet_is_none() {
        let check =
            |bytes: &[u8], is_sound: bool| assert_eq!(ipv4(bytes).is_some(), is_sound, "{bytes:02x?}");
        check(&[], false);
        check(&header(0x45, 20, 0), true);
        check(&header(0x45, 21, 0), false);
        check(&header(0x45, 19, 0), false);
        check(&header(0x44, 20, 0), false);
        check(&header(0x46, 24, 0), false);
        check(&header(0x65, 20, 0), false);
        let mut wrong_sum = header(0x45, 20, 0);
        wrong_sum[8] = 63;
        check(&wrong_sum, false);
        assert!(ipv6(&[0x60; 39]).is_none());
        assert!(ipv6(&[&[0x60, 0, 0, 0, 0, 1][..], &[0; 34]].concat()).is_none());
    }

    #[test]
    fn padding_behind_a_packet_is_left_out_and_a_later_fragment_is_seen() {
        let padded = [header(0x45, 20, 0x2000), vec![9; 26]].concat();
        let packet = ipv4(&padded).unwrap();
        assert_eq!((packet.bytes.len(), packet.body.len(), packet.is_beginning), (20, 0, true));
        assert!(!ipv4(&header(0x45, 20, 0x2001)).unwrap().is_beginning);
        assert!(!ipv4(&header(0x45, 20, 1)).unwrap().may_cause_error());
    }

    #[test]
    fn a_second_tag_and_other_types_are_left_alone() {
        let frame = |tags: &[u8], eth_type: u16| {
            [&[2; 12][..], tags, &eth_type.to_be_bytes(), &header(0x45, 20, 0)].concat()
        };
        assert_eq!(Frame::read(&frame(&[], IPV4)).unwrap().vlan, None);
        assert_eq!(Frame::read(&frame(&[0x81, 0, 0x20, 7], IPV4)).unwrap().vlan, Some(7));
        assert_eq!(Frame::read(&frame(&[0x81, 0, 0x20, 0], IPV4)).unwrap().vlan, None);
        assert_eq!(Frame::read(&frame(&[0x81, 0, 0, 7, 0x81, 0, 0, 7], IPV4)), None);
        assert_eq!(Frame::read(&frame(&[], 0x88cc)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_harm_the_reader(
            bytes in proptest::collection::vec(any::<u8>(), 0..120),
            eth_type in prop::sample::select(vec![ARP, IPV4, IPV6, TAG]),
        ) {
            let mut bytes = bytes;
            if bytes.len() > 14 {
                bytes[12..14].copy_from_slice(&eth_type.to_be_bytes());
            }
            if let Some(Frame { content: Content::Packet(packet), .. }) = Frame::read(&bytes) {
                prop_assert!(packet.bytes.len() <= bytes.len());
                packet.may_cause_error();
            }
        }
    }
}
