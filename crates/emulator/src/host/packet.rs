//! Encodes and decodes the frames of hosts: Ethernet, ARP, and IPv4 or IPv6 with ICMP, UDP and TCP.
//!
//! In: sender, receiver and content, or a frame. Out: the frame with its lengths and checksums, or its content. It
//! writes into an existing buffer. It never reads beyond a packet's own length, and rejects a wrong checksum.

use flow::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use software_switch::frame::{checksum, ether_type, protocol, u16_at};

/// The time-to-live of a host's packets, as in Linux.
pub(super) const HOP_LIMIT: u8 = 64;
/// Neighbour discovery never crosses a router, which this hop limit proves (RFC 4861, 7.1).
pub(super) const HOP_LIMIT_OF_NEIGHBOURS: u8 = 255;
/// The most bytes of a packet after its Ethernet header.
pub(super) const MTU_BYTES: usize = 1500;
/// Ethernet, IPv4.
const IP_AT: usize = 14;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// "Don't fragment". Such a packet needs no identification (RFC 6864).
const DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments" and the offset. A host does not reassemble fragments.
const FRAGMENT: u16 = 0x3fff;

/// Source, destination and protocol of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) mac: MacAddr,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) hop_limit: u8,
}

/// A complete packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incoming<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) hop_limit: u8,
    /// The bytes after the IP header.
    pub(super) body: &'a [u8],
}

/// The offset of each protocol's checksum, after the IP header.
fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        protocol::TCP => Some(16),
        protocol::UDP => Some(6),
        protocol::ICMP | protocol::ICMPV6 => Some(2),
        _ => None,
    }
}

/// Writes a frame into an existing buffer. `body` appends the bytes after the IP header, with a checksum of zero. The
/// destination's Ethernet address stays zero until [`address`].
pub(super) fn write(frame: &mut Vec<u8>, envelope: &Envelope, body: impl FnOnce(&mut Vec<u8>)) {
    frame.clear();
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&envelope.mac.0);
    let body_at = match (envelope.source, envelope.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend_from_slice(&ether_type::IPV6.to_be_bytes());
            frame.extend_from_slice(&[0x60, 0, 0, 0, 0, 0, envelope.protocol, envelope.hop_limit]);
            frame.extend_from_slice(&source.octets());
            frame.extend_from_slice(&destination.octets());
            IP_AT + IPV6_HEADER_BYTES
        }
        (source, destination) => {
            frame.extend_from_slice(&ether_type::IPV4.to_be_bytes());
            let [high, low] = DONT_FRAGMENT.to_be_bytes();
            let fixed = [0x45, 0, 0, 0, 0, 0, high, low, envelope.hop_limit, envelope.protocol, 0, 0];
            frame.extend_from_slice(&fixed);
            frame.extend_from_slice(&octets_v4(source));
            frame.extend_from_slice(&octets_v4(destination));
            IP_AT + IPV4_HEADER_BYTES
        }
    };
    body(frame);
    complete(frame, envelope, body_at);
}

/// Both addresses of a packet are of one version. Otherwise it is a bug here, and the packet is sent from 0.0.0.0.
fn octets_v4(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

/// Writes lengths and checksums.
fn complete(frame: &mut [u8], envelope: &Envelope, body_at: usize) {
    let length = |from: usize| u16::try_from(frame.len() - from).unwrap_or(u16::MAX).to_be_bytes();
    if body_at == IP_AT + IPV6_HEADER_BYTES {
        let length = length(body_at);
        frame[IP_AT + 4..IP_AT + 6].copy_from_slice(&length);
    } else {
        let length = length(IP_AT);
        frame[IP_AT + 2..IP_AT + 4].copy_from_slice(&length);
        let sum = checksum::internet(&frame[IP_AT..body_at]).to_be_bytes();
        frame[IP_AT + 10..IP_AT + 12].copy_from_slice(&sum);
    }
    let Some(at) = checksum_at(envelope.protocol).map(|at| body_at + at) else { return };
    let sum = match body_checksum(envelope.source, envelope.destination, envelope.protocol, &frame[body_at..])
    {
        // RFC 768: a sum of zero is sent as all ones.
        0 if envelope.protocol == protocol::UDP => u16::MAX,
        sum => sum,
    };
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The checksum over the body. It also covers the addresses, except in ICMP for IPv4.
fn body_checksum(source: IpAddr, destination: IpAddr, protocol: u8, body: &[u8]) -> u16 {
    if protocol == protocol::ICMP {
        return checksum::internet(body);
    }
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            checksum::with_pseudo_header(&source.octets(), &destination.octets(), protocol, length, body)
        }
        (source, destination) => {
            checksum::with_pseudo_header(&octets_v4(source), &octets_v4(destination), protocol, length, body)
        }
    }
}

/// Sets the destination's Ethernet address of a frame.
pub(super) fn address(frame: &mut [u8], to: MacAddr) {
    if let Some(place) = frame.get_mut(..6) {
        place.copy_from_slice(&to.0);
    }
}

/// The Ethernet address of an IPv6 multicast group (RFC 2464, 7).
pub(super) fn multicast_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// The content of a frame, if it is a complete IP packet with a correct checksum.
pub(super) fn read(frame: &[u8]) -> Option<Incoming<'_>> {
    let packet = match u16_at(frame, 12)? {
        ether_type::IPV4 => read_v4(frame.get(IP_AT..)?)?,
        ether_type::IPV6 => read_v6(frame.get(IP_AT..)?)?,
        _ => return None,
    };
    let has_none = packet.protocol == protocol::UDP
        && packet.source.is_ipv4()
        && u16_at(packet.body, 6).is_none_or(|sum| sum == 0);
    let is_right = has_none
        || body_checksum(packet.source, packet.destination, packet.protocol, packet.body) == 0
        || checksum_at(packet.protocol).is_none();
    is_right.then_some(packet)
}

fn read_v4(bytes: &[u8]) -> Option<Incoming<'_>> {
    let header_bytes = usize::from(bytes.first()? & 0x0f) * 4;
    let header = bytes.get(..header_bytes).filter(|header| header.len() >= IPV4_HEADER_BYTES)?;
    let is_whole =
        header[0] >> 4 == 4 && u16_at(header, 6)? & FRAGMENT == 0 && checksum::internet(header) == 0;
    let address =
        |at: usize| header.get(at..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into());
    is_whole.then_some(Incoming {
        source: address(12)?,
        destination: address(16)?,
        protocol: header[9],
        hop_limit: header[8],
        body: bytes.get(header_bytes..usize::from(u16_at(header, 2)?))?,
    })
}

fn read_v6(bytes: &[u8]) -> Option<Incoming<'_>> {
    let header = bytes.get(..IPV6_HEADER_BYTES).filter(|header| header[0] >> 4 == 6)?;
    let address =
        |at: usize| header.get(at..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into());
    let length = usize::from(u16_at(header, 4)?);
    Some(Incoming {
        source: address(8)?,
        destination: address(24)?,
        protocol: header[6],
        hop_limit: header[7],
        body: bytes.get(IPV6_HEADER_BYTES..IPV6_HEADER_BYTES + length)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn envelope(v6: bool, protocol: u8) -> Envelope {
        let address = |number: u8| -> IpAddr {
            if v6 {
                Ipv6Addr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]).into()
            } else {
                Ipv4Addr::new(10, 0, 0, number).into()
            }
        };
        Envelope { mac: MAC, source: address(1), destination: address(2), protocol, hop_limit: 9 }
    }

    fn udp(v6: bool, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![1; 7];
        write(&mut frame, &envelope(v6, protocol::UDP), |frame| {
            frame.extend_from_slice(&[0x80, 0, 0x13, 0x89, 0, 0, 0, 0]);
            let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
            let at = frame.len() - 4;
            frame[at..at + 2].copy_from_slice(&length);
            frame.extend_from_slice(payload);
        });
        frame
    }

    #[test]
    fn another_reader_finds_the_lengths_and_checksums_right() {
        for payload in [&b""[..], b"odd", b"even"] {
            let frame = udp(false, payload);
            let packet = SlicedPacket::from_ethernet(&frame).unwrap();
            let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (packet.net, packet.transport)
            else {
                panic!("no UDP in IPv4: {frame:?}");
            };
            assert_eq!(
                ip.header().to_header().header_checksum,
                ip.header().to_header().calc_header_checksum()
            );
            let sum = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), payload).unwrap();
            assert_eq!((udp.checksum(), udp.payload()), (sum, payload));
        }
        let frame = udp(true, b"six");
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Udp(udp))) = (packet.net, packet.transport)
        else {
            panic!("no UDP in IPv6: {frame:?}");
        };
        let sum = udp.to_header().calc_checksum_ipv6(&ip.header().to_header(), b"six").unwrap();
        assert_eq!((udp.checksum(), udp.payload()), (sum, &b"six"[..]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_what_was_damaged_is_not(
            v6: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..80),
            at in any::<prop::sample::Index>(),
            bit in 0..8u8,
        ) {
            let mut frame = udp(v6, &payload);
            let packet = read(&frame).unwrap();
            let sent = envelope(v6, protocol::UDP);
            prop_assert_eq!((packet.source, packet.destination), (sent.source, sent.destination));
            prop_assert_eq!((packet.protocol, packet.hop_limit, &packet.body[8..]), (protocol::UDP, 9, &payload[..]));
            // From the addresses on, every bit is covered. The only exception is a UDP checksum of zero.
            let first = if v6 { IP_AT + 8 } else { IP_AT + 12 };
            let damaged = first + at.index(frame.len() - first);
            frame[damaged] ^= 1 << bit;
            prop_assert_eq!(read(&frame), None);
        }

        #[test]
        fn no_bytes_make_it_panic(frame in proptest::collection::vec(any::<u8>(), 0..80), v6: bool) {
            let mut frame = frame;
            if frame.len() > 14 {
                let kind = if v6 { [0x86, 0xdd, 0x60] } else { [0x08, 0x00, 0x45] };
                frame[12..15].copy_from_slice(&kind);
            }
            let _ = read(&frame);
        }
    }
}
