//! The frames that taps have seen, by their beginnings: when did the packet of a packet-in come to the switch?
//!
//! ```text
//!   frame at a tap ──> a hash of port and beginning, time ──> [ the last 16,384 ] <── the same hash of a packet-in ──> its time
//! ```
//!
//! In: frames with their times, and packets of packet-ins. Out: times. Most frames meet a rule and never make a packet-in, so the oldest is
//! forgotten when there is no room. It never keeps a frame's bytes.

use flow::PortNo;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How many frames are remembered: a tenth of a second of a gigabit of small packets, and half a second of large ones.
const FRAMES_MAX: usize = 16_384;
/// A frame that is older did not make this packet-in: an equal frame has met a rule before. A switch that needs longer is not a base that
/// can be corrected.
const AGE_MAX_NS: u64 = 1_000_000_000;
/// How much of a frame counts: all headers, and the sequence numbers in them.
const PREFIX_BYTES: usize = 96;

const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Sighting {
    key: u64,
    at_ns: u64,
    /// The next younger frame with the same key.
    next: u32,
    is_taken: bool,
}

/// Keys are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The frames that taps have seen.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    /// A ring.
    seen: Vec<Sighting>,
    oldest: usize,
    /// The oldest and the youngest frame of a key.
    ends: HashMap<u64, (u32, u32), BuildHasherDefault<AsItIs>>,
    pub(crate) forgotten: u64,
}

impl Sightings {
    /// A tap has seen a frame.
    pub(crate) fn add(&mut self, port: PortNo, frame: &[u8], at_ns: u64) {
        let key = key_of(port, frame);
        let sighting = Sighting { key, at_ns, next: NOWHERE, is_taken: false };
        // At most FRAMES_MAX, which has 32 bits.
        let index = if self.seen.len() < FRAMES_MAX {
            self.seen.push(sighting);
            (self.seen.len() - 1) as u32
        } else {
            let index = self.oldest as u32;
            self.oldest = (self.oldest + 1) % FRAMES_MAX;
            if !self.seen[index as usize].is_taken {
                self.unlink(index);
                self.forgotten += 1;
            }
            self.seen[index as usize] = sighting;
            index
        };
        match self.ends.get_mut(&key) {
            Some((_, youngest)) => {
                self.seen[*youngest as usize].next = index;
                *youngest = index;
            }
            None => {
                self.ends.insert(key, (index, index));
            }
        }
    }

    /// The time at which the packet of a packet-in came: that of the oldest equal frame that is not too old.
    pub(crate) fn take(&mut self, port: PortNo, packet: &[u8], now_ns: u64) -> Option<u64> {
        let key = key_of(port, packet);
        loop {
            let (first, _) = *self.ends.get(&key)?;
            self.unlink(first);
            let at_ns = self.seen[first as usize].at_ns;
            if at_ns.saturating_add(AGE_MAX_NS) >= now_ns {
                return Some(at_ns.min(now_ns));
            }
        }
    }

    /// Takes the oldest frame of its key out.
    fn unlink(&mut self, index: u32) {
        let sighting = &mut self.seen[index as usize];
        sighting.is_taken = true;
        let (key, next) = (sighting.key, sighting.next);
        match self.ends.get_mut(&key) {
            Some((first, _)) if next != NOWHERE => *first = next,
            _ => {
                self.ends.remove(&key);
            }
        }
    }
}

/// The hash of a port and a frame's beginning. Transport checksums do not count: the card, or the kernel on its way to the switch, may
/// have filled them in on one path and not on the other.
fn key_of(port: PortNo, frame: &[u8]) -> u64 {
    let mut prefix = [0u8; PREFIX_BYTES];
    let length = frame.len().min(PREFIX_BYTES);
    prefix[..length].copy_from_slice(&frame[..length]);
    if let Some(checksum) = checksum_at(&prefix).and_then(|at| prefix.get_mut(at..at + 2)) {
        checksum.fill(0);
    }
    let (words, _) = prefix.as_chunks::<8>();
    let start = u64::from(port.0) << 32 | length as u64;
    words.iter().fold(start, |hash, word| mixed(hash, u64::from_ne_bytes(*word)))
}

/// A multiplication to twice the width, folded.
fn mixed(hash: u64, word: u64) -> u64 {
    /// 2⁶⁴ divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word ^ SPREAD.rotate_left(23)) * u128::from(SPREAD);
    product as u64 ^ (product >> 64) as u64
}

/// Where the transport checksum of a frame is.
fn checksum_at(frame: &[u8; PREFIX_BYTES]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = 12;
    while matches!(word(at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    let (protocol, transport) = match word(at)? {
        0x0800 => (*frame.get(at + 11)?, at + 2 + usize::from(*frame.get(at + 2)? & 0xf) * 4),
        0x86dd => (*frame.get(at + 8)?, at + 2 + 40),
        _ => return None,
    };
    match protocol {
        6 => Some(transport + 16),
        17 => Some(transport + 6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortNo = PortNo(1);

    fn tcp(sequence: u8, checksum: u8) -> Vec<u8> {
        let mut frame = vec![0; 74];
        frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
        frame[23] = 6;
        (frame[41], frame[50]) = (sequence, checksum);
        frame
    }

    #[test]
    fn a_packet_is_found_by_port_and_beginning_without_its_checksum() {
        let mut seen = Sightings::default();
        seen.add(PORT, &tcp(1, 0xaa), 5);
        assert_eq!(seen.take(PortNo(2), &tcp(1, 0xaa), 9), None);
        assert_eq!(seen.take(PORT, &tcp(2, 0xaa), 9), None);
        assert_eq!(seen.take(PORT, &tcp(1, 0xbb), 9), Some(5));
        assert_eq!(seen.take(PORT, &tcp(1, 0xbb), 9), None, "once");
    }

    #[test]
    fn equal_frames_are_found_in_the_order_in_which_they_came() {
        let mut seen = Sightings::default();
        (1..=3).for_each(|at_ns| seen.add(PORT, b"ping", at_ns));
        assert_eq!([0; 4].map(|_| seen.take(PORT, b"ping", 9)), [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn a_frame_that_met_a_rule_long_ago_is_not_taken_for_an_equal_one() {
        let mut seen = Sightings::default();
        seen.add(PORT, b"arp", 0);
        seen.add(PORT, b"arp", AGE_MAX_NS);
        assert_eq!(seen.take(PORT, b"arp", AGE_MAX_NS + 7), Some(AGE_MAX_NS));
    }

    #[test]
    fn the_oldest_frames_are_forgotten_and_counted() {
        let mut seen = Sightings::default();
        let frame = |number: usize| number.to_be_bytes();
        // Every other frame makes a packet-in, and a few are equal.
        for number in 0..3 * FRAMES_MAX {
            seen.add(PORT, &frame(number / 4), number as u64);
            if number % 2 == 0 {
                assert!(seen.take(PORT, &frame(number / 4), number as u64).is_some());
            }
        }
        assert_eq!(seen.forgotten as usize, FRAMES_MAX);
        assert!(seen.ends.len() <= FRAMES_MAX);
        assert_eq!(seen.take(PORT, &frame(FRAMES_MAX / 8), 0), None);
        assert!(seen.take(PORT, &frame((3 * FRAMES_MAX - 1) / 4), 3 * FRAMES_MAX as u64).is_some());
    }
}
