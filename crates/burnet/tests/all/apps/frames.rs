//! Frames for tests, put together from their headers.
//!
//! In: addresses, numbers, payloads. Out: bytes. Checksums are right where a receiver checks them.

use std::net::Ipv6Addr;

pub type Mac = [u8; 6];

pub const EVERYBODY: Mac = [0xff; 6];
pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
pub const UDP: u8 = 17;

/// The address of an emulated host: `h1` has 1.
pub fn mac(host: u8) -> Mac {
    [0, 0, 0, 0, 0, host]
}

/// An Ethernet frame with tags, the outer one first.
pub fn ethernet(dst: Mac, src: Mac, tags: &[u16], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [dst, src].concat();
    for tag in tags {
        frame.extend([0x81, 0x00]);
        frame.extend(tag.to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet. `fragment`: flags and offset.
pub fn ipv4(src: [u8; 4], dst: [u8; 4], ttl: u8, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 7]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([ttl, protocol, 0, 0]);
    packet.extend(src);
    packet.extend(dst);
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A UDP datagram without a checksum.
pub fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap();
    [&src.to_be_bytes()[..], &dst.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

/// An ICMP message with a body behind the checksum.
pub fn icmp(kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0], rest].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

pub fn arp(op: u8, sender: (Mac, [u8; 4]), target: (Mac, [u8; 4])) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, op][..], &sender.0, &sender.1, &target.0, &target.1].concat()
}

/// An IPv6 packet.
pub fn ipv6(src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    let head = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[next, hop_limit]].concat();
    [&head[..], &src.octets(), &dst.octets(), payload].concat()
}

/// An ICMPv6 message between these addresses.
pub fn icmp6(src: Ipv6Addr, dst: Ipv6Addr, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0], rest].concat();
    let length = u32::try_from(message.len()).unwrap();
    let pseudo = [&src.octets()[..], &dst.octets(), &length.to_be_bytes(), &[0, 0, 0, 58], &message].concat();
    let sum = checksum(&pseudo);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The Internet checksum (RFC 1071).
pub fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap()
}

/// A datagram of UDP between two emulated hosts, whose last bytes are the number.
pub fn datagram(src: u8, dst: u8, port: u16, number: u64) -> Vec<u8> {
    let packet = ipv4([10, 0, 0, src], [10, 0, 0, dst], 64, UDP, 0, &udp(4_000, port, &padded(number)));
    ethernet(mac(dst), mac(src), &[], IPV4, &packet)
}

/// A broadcast of a host with tags, whose last bytes are the number.
pub fn broadcast(src: u8, tags: &[u16], number: u64) -> Vec<u8> {
    ethernet(EVERYBODY, mac(src), tags, 0x88b5, &padded(number))
}

/// Enough bytes that a frame needs no padding.
fn padded(number: u64) -> Vec<u8> {
    [&[0x55; 48][..], &number.to_be_bytes()].concat()
}
