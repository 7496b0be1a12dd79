//! Random frames. Their fields have few values, so that rules with the same values match many of them.
//!
//! All are complete and have correct checksums. How switches treat malformed frames is not compared here.

use super::dice::Dice;

pub const MACS: [u64; 5] =
    [0x0200_0000_0001, 0x0200_0000_0002, 0x0201_0000_0003, 0x0100_5e00_0001, 0xffff_ffff_ffff];
pub const IPV4S: [u32; 4] = [0x0a00_0001, 0x0a00_0102, 0x0a01_0203, 0xc0a8_0101];
pub const IPV6S: [u128; 4] = [
    0xfd00_0000_0000_0000_0000_0000_0000_0001,
    0xfd00_0000_0000_0000_0000_0000_0001_0002,
    0xfd00_0001_0000_0000_0000_0000_0000_0003,
    0xfe80_0000_0000_0000_0000_0000_0000_0001,
];
pub const PORTS: [u16; 4] = [80, 443, 1025, 40_000];
pub const VIDS: [u16; 3] = [1, 5, 100];
pub const LABELS: [u32; 3] = [16, 17, 0x12345];
pub const FLOW_LABELS: [u32; 2] = [0x12345, 0x00007];
/// ECN in the lower two bits.
const TRAFFIC_CLASSES: [u8; 4] = [0x00, 0x28, 0xb9, 0x03];

/// How frames of one set of tables are.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// VLAN tags of a frame.
    pub tags_max: u64,
    /// Whether times to live may be over.
    pub expiring: bool,
    /// Whether there are later fragments.
    pub fragments: bool,
    /// Whether rules pop labels, and none of them writes to an action set.
    pub popping: bool,
}

/// A frame.
pub fn frame(dice: &mut Dice, style: Style) -> Vec<u8> {
    let mut frame = [mac(dice), mac(dice)].concat();
    for left in (1..=dice.below(style.tags_max + 1)).rev() {
        let outer_of_two = left > 1;
        let kind: u16 = if outer_of_two || dice.chance(20) { 0x88a8 } else { 0x8100 };
        frame.extend(kind.to_be_bytes());
        let control = dice.pick(&VIDS) | (dice.below(8) as u16) << 13;
        frame.extend(control.to_be_bytes());
    }
    let (kind, payload) = network(dice, style);
    let labels = if dice.chance(20) { 1 + dice.below(2) } else { 0 };
    let under_labels = matches!(kind, 0x0800 | 0x86dd);
    if labels > 0 && under_labels {
        frame.extend(dice.pick(&[0x8847u16, 0x8848]).to_be_bytes());
        for left in (0..labels).rev() {
            let entry = dice.pick(&LABELS) << 12 | (dice.below(8) as u32) << 9 | u32::from(ttl(dice, style));
            frame.extend((entry | u32::from(left == 0) << 8).to_be_bytes());
        }
    } else {
        frame.extend(kind.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

fn mac(dice: &mut Dice) -> Vec<u8> {
    dice.pick(&MACS).to_be_bytes()[2..].to_vec()
}

fn ttl(dice: &mut Dice, style: Style) -> u8 {
    let longest = [64, 255];
    if style.expiring && dice.chance(40) { dice.pick(&[1, 2]) } else { dice.pick(&longest) }
}

fn network(dice: &mut Dice, style: Style) -> (u16, Vec<u8>) {
    match dice.below(10) {
        0..4 => (0x0800, ipv4(dice, style)),
        4..8 => (0x86dd, ipv6(dice, style)),
        8 => (if dice.chance(80) { 0x0806 } else { 0x8035 }, arp(dice)),
        _ => (0x88b5, vec![0x5a; 50]),
    }
}

fn arp(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, 1 + dice.below(2) as u8];
    for _ in 0..2 {
        bytes.extend(mac(dice));
        bytes.extend(dice.pick(&IPV4S).to_be_bytes());
    }
    bytes
}

fn ipv4(dice: &mut Dice, style: Style) -> Vec<u8> {
    let (source, destination) = (dice.pick(&IPV4S).to_be_bytes(), dice.pick(&IPV4S).to_be_bytes());
    let protocol = dice.pick(&[1u8, 6, 6, 17, 17, 132, 47]);
    let pseudo = [&source[..], &destination, &[0, protocol]].concat();
    let payload = transport(dice, protocol, &pseudo);
    let options: &[u8] = if dice.chance(15) { &[1, 1, 1, 0] } else { &[] };
    let later = style.fragments && dice.chance(30);
    let fragment: u16 = if later { 0x0010 } else { dice.pick(&[0, 0x4000]) };
    let length = (20 + options.len() + payload.len()) as u16;
    let mut header = vec![0x45 + (options.len() / 4) as u8, dice.pick(&TRAFFIC_CLASSES)];
    header.extend(length.to_be_bytes());
    header.extend([0x12, 0x34]);
    header.extend(fragment.to_be_bytes());
    header.extend([ttl(dice, style), protocol, 0, 0]);
    header.extend([&source[..], &destination, options].concat());
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [header, payload].concat()
}

fn ipv6(dice: &mut Dice, style: Style) -> Vec<u8> {
    let (source, destination) = (dice.pick(&IPV6S).to_be_bytes(), dice.pick(&IPV6S).to_be_bytes());
    let protocol = dice.pick(&[58u8, 58, 58, 6, 17, 132, 59]);
    let pseudo = [&source[..], &destination, &[0, protocol]].concat();
    let mut payload = if protocol == 59 { vec![] } else { transport(dice, protocol, &pseudo) };
    let mut next = protocol;
    let mut put = |kind: u8, mut header: Vec<u8>| {
        header[0] = next;
        payload = [header, std::mem::take(&mut payload)].concat();
        next = kind;
    };
    if style.fragments && dice.chance(20) {
        put(44, vec![0, 0, 0, 0x10, 0, 0, 0, 9]);
    }
    if dice.chance(15) {
        // Without a segment left: where there is one, Open vSwitch corrects no checksum for a new source either.
        put(43, vec![0; 8]);
    }
    if dice.chance(15) {
        put(60, vec![0, 0, 1, 4, 0, 0, 0, 0]);
    }
    if dice.chance(15) {
        put(0, vec![0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    let first = 6 << 28 | u32::from(dice.pick(&TRAFFIC_CLASSES)) << 20 | dice.pick(&FLOW_LABELS);
    let mut header = first.to_be_bytes().to_vec();
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next, ttl(dice, style)]);
    header.extend([source, destination].concat());
    [header, payload].concat()
}

/// A segment, datagram or message with its checksum. `pseudo` is the addresses and the protocol of the pseudo-header.
fn transport(dice: &mut Dice, protocol: u8, pseudo: &[u8]) -> Vec<u8> {
    let ports = [dice.pick(&PORTS).to_be_bytes(), dice.pick(&PORTS).to_be_bytes()].concat();
    let (mut bytes, checksum_at) = match protocol {
        6 => {
            ([&ports[..], &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0x10, 0, 0, 0, 0, 0], b"hello"].concat(), 16)
        }
        17 => ([&ports[..], &[0, 13, 0, 0], b"hello"].concat(), 6),
        132 => {
            let mut bytes = [&ports[..], &[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4]].concat();
            let sum = crc32c(&bytes);
            bytes[8..12].copy_from_slice(&sum.to_le_bytes());
            return bytes;
        }
        1 => (vec![dice.pick(&[8, 3]), 1 + dice.below(2) as u8, 0, 0, 0, 1, 0, 2, b'p', b'i', b'n', b'g'], 2),
        58 => (icmpv6(dice), 2),
        _ => return vec![0; 24],
    };
    let no_checksum = protocol == 17 && pseudo.len() == 10 && dice.chance(20);
    if !no_checksum {
        let length = (bytes.len() as u16).to_be_bytes();
        // ICMP for IPv4 covers no pseudo-header.
        let covered = if protocol == 1 { bytes.clone() } else { [pseudo, &length, &bytes].concat() };
        let sum = match checksum(&covered) {
            0 if protocol == 17 => 0xffff,
            sum => sum,
        };
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// An echo, or a neighbour solicitation or advertisement with or without its option.
fn icmpv6(dice: &mut Dice) -> Vec<u8> {
    let (kind, option) = dice.pick(&[(128u8, 0u8), (135, 1), (136, 2)]);
    if kind == 128 {
        return vec![128, 0, 0, 0, 0, 1, 0, 2, 1, 2, 3, 4];
    }
    let mut bytes = vec![kind, 0, 0, 0, 0x40, 0, 0, 0];
    bytes.extend(dice.pick(&IPV6S).to_be_bytes());
    if dice.chance(25) {
        bytes.extend([14, 1, 1, 2, 3, 4, 5, 6]);
    }
    if dice.chance(75) {
        bytes.extend([option, 1]);
        bytes.extend(mac(dice));
    }
    bytes
}

fn checksum(bytes: &[u8]) -> u16 {
    let pairs =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = pairs.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 },
        )
    })
}
