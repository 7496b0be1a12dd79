//! The packets that a virtual switch keeps for its controllers, each under a number that is used once.
//!
//! In: frames. Out: numbers, and the frames again. It sends nothing.

use flow::PortNo;
use std::collections::BTreeMap;

/// The most packets, and the number that the virtual switch reports. As many as Open vSwitch has: controllers answer in the order of the
/// packets, and a busy one has more than a few of them before it.
pub(crate) const BUFFERS_MAX: usize = 256;
/// The most bytes of packets. Beyond that, and beyond [`BUFFERS_MAX`], the oldest packet is dropped.
const BYTES_MAX: usize = 64 << 10;

/// A kept packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The port by which it came, as the tenant sees it.
    pub(crate) in_port: PortNo,
    /// The packet.
    pub(crate) frame: Frame,
}

/// The packet's bytes, or where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The whole frame, as the tenant sees it.
    Whole(Vec<u8>),
    /// The physical switch has it in this buffer, dressed or not.
    InSwitch {
        /// The number there.
        buffer_id: u32,
        /// Whether it is dressed.
        is_dressed: bool,
    },
}

/// The packets of one virtual switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    kept: BTreeMap<u64, Kept>,
    bytes: usize,
    given: u64,
}

impl Buffers {
    /// Keeps a packet. Returns its number, or `None` if it is too long.
    pub(crate) fn keep(&mut self, in_port: PortNo, frame: Frame) -> Option<u32> {
        let length = length_of(&frame);
        if length > BYTES_MAX {
            return None;
        }
        while self.kept.len() >= BUFFERS_MAX || self.bytes + length > BYTES_MAX {
            let (_, oldest) = self.kept.pop_first()?;
            self.bytes -= length_of(&oldest.frame);
        }
        self.bytes += length;
        self.given += 1;
        self.kept.insert(self.given, Kept { in_port, frame });
        Some(number_of(self.given))
    }

    /// Hands a packet out. A number that was never given, was used, or is too old, has none.
    pub(crate) fn take(&mut self, buffer_id: u32) -> Option<Kept> {
        let place = self.place_of(buffer_id)?;
        let kept = self.kept.remove(&place)?;
        self.bytes -= length_of(&kept.frame);
        Some(kept)
    }

    /// A copy of a packet, which stays.
    pub(crate) fn get(&self, buffer_id: u32) -> Option<Kept> {
        self.kept.get(&self.place_of(buffer_id)?).cloned()
    }

    /// Which packet had this number last.
    fn place_of(&self, buffer_id: u32) -> Option<u64> {
        let turns = self.given.checked_sub(1)? / NUMBERS;
        let of_turn = |turn: u64| turn * NUMBERS + u64::from(buffer_id) + 1;
        let newest = of_turn(turns);
        let place = if newest <= self.given { newest } else { of_turn(turns.checked_sub(1)?) };
        (u64::from(buffer_id) < NUMBERS).then_some(place)
    }

    /// Whether a number was given out before.
    pub(crate) fn was_given(&self, buffer_id: u32) -> bool {
        self.given >= NUMBERS || u64::from(buffer_id) < self.given
    }
}

fn length_of(frame: &Frame) -> usize {
    match frame {
        Frame::Whole(bytes) => bytes.len(),
        Frame::InSwitch { .. } => 0,
    }
}

/// How many numbers there are. OFP_NO_BUFFER is not among them.
const NUMBERS: u64 = 1 << 31;

/// The number of the packet that was kept as the n-th.
fn number_of(given: u64) -> u32 {
    u32::try_from(given.wrapping_sub(1) % NUMBERS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(length: usize) -> Frame {
        Frame::Whole(vec![7; length])
    }

    #[test]
    fn a_number_is_used_once() {
        let mut buffers = Buffers::default();
        let number = buffers.keep(PortNo(3), whole(60)).unwrap();
        assert_eq!(buffers.take(number + 1), None);
        assert_eq!(buffers.take(number).unwrap().in_port, PortNo(3));
        assert_eq!(buffers.take(number), None);
        assert!(buffers.was_given(number) && !buffers.was_given(number + 1));
    }

    #[test]
    fn a_number_means_the_newest_packet_that_had_it() {
        let mut buffers = Buffers { given: NUMBERS - 1, ..Buffers::default() };
        let (last, first) = (buffers.keep(PortNo(1), whole(60)), buffers.keep(PortNo(2), whole(60)));
        assert_eq!((last, first), (Some(0x7fff_ffff), Some(0)));
        assert_eq!(buffers.take(0x8000_0000), None);
        assert_eq!(buffers.take(0x7fff_ffff).unwrap().in_port, PortNo(1));
        assert_eq!(buffers.take(0).unwrap().in_port, PortNo(2));
        assert_eq!(Buffers::default().take(0), None);
    }

    #[test]
    fn the_oldest_packet_makes_room() {
        let mut buffers = Buffers::default();
        let numbers: Vec<u32> =
            (0..=BUFFERS_MAX).filter_map(|_| buffers.keep(PortNo(1), whole(60))).collect();
        assert_eq!(buffers.take(numbers[0]), None);
        assert!(numbers[1..].iter().all(|number| buffers.take(*number).is_some()));
        let long: Vec<u32> = (0..3).filter_map(|_| buffers.keep(PortNo(1), whole(BYTES_MAX / 2))).collect();
        assert_eq!(buffers.take(long[0]), None);
        assert!(buffers.take(long[1]).is_some());
        assert_eq!(buffers.keep(PortNo(1), whole(BYTES_MAX + 1)), None);
    }
}
