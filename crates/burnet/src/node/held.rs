//! Packet-ins of switches that are up and of which apps do not hear yet, for the moment when they do.
//!
//! In: frames, by switch. Out: the same in their order, or that they are gone. Never knows why a switch is held. Bounds: [`OF_A_SWITCH_BYTES`] of each
//! switch and [`OF_ALL_BYTES`] of all; what is beyond is dropped and counted.

use flow::DatapathId;
use std::collections::BTreeMap;

/// As much as one read brings: a switch that says at once which rules it has loses nothing.
const OF_A_SWITCH_BYTES: usize = 64 << 10;

/// A thousand switches that all send at once have a sixteenth of their share, which is some fifty packets each.
const OF_ALL_BYTES: usize = 4 << 20;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Held {
    frames: BTreeMap<DatapathId, Vec<u8>>,
    bytes: usize,
    dropped: u64,
}

impl Held {
    /// One more of this switch.
    pub fn push(&mut self, datapath: DatapathId, frame: &[u8]) {
        let of_switch = self.frames.entry(datapath).or_default();
        if of_switch.len() + frame.len() > OF_A_SWITCH_BYTES || self.bytes + frame.len() > OF_ALL_BYTES {
            self.dropped += 1;
            return;
        }
        of_switch.extend_from_slice(frame);
        self.bytes += frame.len();
    }

    /// All of this switch, one after the other.
    pub fn take(&mut self, datapath: DatapathId) -> Vec<u8> {
        let frames = self.frames.remove(&datapath).unwrap_or_default();
        self.bytes -= frames.len();
        frames
    }

    /// How many were dropped since this was last asked.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_for_each_switch_and_for_all() {
        let mut held = Held::default();
        let frame = [7; 1 << 10];
        for number in 0..100 {
            (0..100).for_each(|_| held.push(DatapathId(number), &frame));
        }
        assert_eq!(held.take_dropped(), 100 * 100 - (OF_ALL_BYTES >> 10) as u64);
        assert_eq!((held.take_dropped(), held.take(DatapathId(0)).len()), (0, OF_A_SWITCH_BYTES));
        assert_eq!((held.take(DatapathId(0)).len(), held.take(DatapathId(99)).len()), (0, 0));
        held.push(DatapathId(99), &frame);
        assert_eq!(held.take(DatapathId(99)), frame);
    }
}
