//! Random frames: Ethernet with at most one tag, and in it IPv4, IPv6, ARP, MPLS or something unknown.
//!
//! In: a seed. Out: the bytes of a frame. Few values are used, so that rules match often.

use crate::seed::Seed;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// A frame.
pub fn frame(seed: &mut Seed) -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 0, 0, low(seed), 0, 0, 0, 0, 0, low(seed)];
    if seed.percent(35) {
        frame.extend([0x81, 0x00, low(seed) << 5, low(seed)]);
    }
    match seed.below(10) {
        0..=5 => ipv4(seed, &mut frame),
        6 => ipv6(seed, &mut frame),
        7 => arp(seed, &mut frame),
        8 => {
            frame.extend([0x88, 0x47, 0, 0, low(seed) << 4 | 1, 64]);
            frame.extend([0; 46]);
        }
        _ => {
            frame.extend([0x12, 0x34]);
            frame.extend([0; 46]);
        }
    }
    frame
}

fn low(seed: &mut Seed) -> u8 {
    u8::try_from(seed.below(3)).unwrap()
}

fn ipv4(seed: &mut Seed, frame: &mut Vec<u8>) {
    let protocol = seed.one(&[TCP, TCP, UDP, ICMP, SCTP, 99]);
    let payload = transport(seed, protocol);
    let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let ttl = seed.one(&[1, 2, 64]);
    frame.extend([0x08, 0x00, 0x45, low(seed) << 2, length[0], length[1], 0, 0, 0, 0, ttl, protocol, 0, 0]);
    frame.extend([10, 0, 0, low(seed), 10, 0, 0, low(seed)]);
    frame.extend(payload);
}

fn ipv6(seed: &mut Seed, frame: &mut Vec<u8>) {
    let protocol = seed.one(&[TCP, UDP, ICMPV6]);
    let payload = transport(seed, protocol);
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, low(seed), length[0], length[1], protocol, seed.one(&[1, 64])]);
    for _ in 0..2 {
        frame.extend([0; 15]);
        frame.push(low(seed));
    }
    frame.extend(payload);
}

fn transport(seed: &mut Seed, protocol: u8) -> Vec<u8> {
    let mut header = vec![0, low(seed), 0, low(seed)];
    if matches!(protocol, ICMP | ICMPV6) {
        header = vec![seed.one(&[8, 128, 0]), low(seed), 0, 0];
    }
    header.resize(24, 0);
    header
}

fn arp(seed: &mut Seed, frame: &mut Vec<u8>) {
    frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, low(seed), 0, 0, 0, 0, 0, low(seed), 10, 0, 0, low(seed)]);
    frame.extend([0, 0, 0, 0, 0, low(seed), 10, 0, 0, low(seed)]);
    frame.extend([0; 18]);
}

/// The time-to-live in the IP header of a frame with at most one tag; that of other frames does not matter.
pub fn ttl(frame: &[u8]) -> u8 {
    let start = if frame[12] == 0x81 { 18 } else { 14 };
    match [frame[start - 2], frame[start - 1]] {
        [0x08, 0x00] => frame[start + 8],
        [0x86, 0xdd] => frame[start + 7],
        _ => 64,
    }
}
