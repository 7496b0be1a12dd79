//! Buffers packet-ins of a switch until apps have received the earlier events of this switch.
//!
//! ```text
//!   switch is up, apps do not know it ──push──> Held ──take, as apps have space──> apps
//! ```
//!
//! In: frames, by switch. Out: the same frames in order, as many as the caller has space for, and the number of dropped
//! frames. Bounds: [`OF_A_SWITCH_BYTES`] for each switch and [`OF_ALL_BYTES`] for all. A frame beyond a bound is dropped
//! and counted. While [`Held::is_full`], the worker reads only switches whose answer it waits for.

use abi::Frame;
use flow::DatapathId;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Four reads of a connection. A switch that floods from the start has that much on its way before it answers a
/// barrier.
const OF_A_SWITCH_BYTES: usize = 512 << 10;

/// Sixty-four switches that flood at once can each use the full share. A thousand have about two hundred packets each.
const OF_ALL_BYTES: usize = 32 << 20;

/// The frames of one more read of a connection: 64 KiB, and a frame is up to twice as long as its OpenFlow message.
const OF_A_READ_BYTES: usize = 128 << 10;

/// The buffered packet-ins.
#[derive(Debug, Default)]
pub(super) struct Held {
    switches: BTreeMap<DatapathId, Frames>,
    bytes: usize,
    dropped: u64,
}

/// Whole frames of one switch; the first `taken` bytes have been passed on already.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    taken: usize,
}

impl Held {
    /// Buffers one more frame of this switch. Returns whether there was space.
    pub fn push(&mut self, datapath: DatapathId, frame: &[u8]) -> bool {
        let of_switch = self.switches.entry(datapath).or_default();
        if of_switch.bytes.len() + frame.len() > OF_A_SWITCH_BYTES || self.bytes + frame.len() > OF_ALL_BYTES
        {
            self.dropped += 1;
            return false;
        }
        of_switch.bytes.extend_from_slice(frame);
        self.bytes += frame.len();
        true
    }

    /// Whether frames of this switch are buffered.
    #[inline]
    pub fn has(&self, datapath: DatapathId) -> bool {
        !self.switches.is_empty() && self.switches.contains_key(&datapath)
    }

    /// Whether one more read of this switch might exceed the space.
    pub fn is_full(&self, datapath: DatapathId) -> bool {
        let of_switch = self.switches.get(&datapath).map_or(0, |it| it.bytes.len());
        of_switch + OF_A_READ_BYTES > OF_A_SWITCH_BYTES || self.bytes + OF_A_READ_BYTES > OF_ALL_BYTES
    }

    /// The next switch after this one that has buffered frames, in a circle.
    pub fn next_after(&self, last: DatapathId) -> Option<DatapathId> {
        let behind = self.switches.range((Bound::Excluded(last), Bound::Unbounded)).next();
        behind.or_else(|| self.switches.first_key_value()).map(|(datapath, _)| *datapath)
    }

    /// Whether frames are buffered of a switch for which the condition is false.
    pub fn has_any_but(&self, left_out: impl Fn(DatapathId) -> bool) -> bool {
        self.switches.keys().any(|datapath| !left_out(*datapath))
    }

    /// How many switches have buffered frames.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// Moves the oldest frames of this switch into `out`, at most `bytes` together, but at least one. So an app with a
    /// small ring makes progress too.
    pub fn take(&mut self, datapath: DatapathId, bytes: usize, out: &mut Vec<u8>) {
        out.clear();
        let Some(of_switch) = self.switches.get_mut(&datapath) else { return };
        let mut rest = of_switch.bytes.get(of_switch.taken..).unwrap_or_default();
        while let Ok((frame, behind)) = Frame::split(rest)
            && (out.is_empty() || out.len() + frame.bytes.len() <= bytes)
        {
            out.extend_from_slice(frame.bytes);
            rest = behind;
        }
        let is_over = rest.is_empty() || out.is_empty();
        of_switch.taken += out.len();
        if is_over {
            // The count is the allocated memory, so it shrinks only when a switch's whole buffer is freed.
            self.bytes -= of_switch.bytes.len();
            self.switches.remove(&datapath);
        }
    }

    /// Drops the buffered frames of this switch.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.bytes -= self.switches.remove(&datapath).map_or(0, |it| it.bytes.len());
    }

    /// Returns how many were dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::write;

    /// A frame of about 32 bytes, with a number that identifies it.
    fn frame(number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(write::switch_down(&mut bytes, number, DatapathId(1)));
        bytes
    }

    #[test]
    fn what_waits_is_bounded_for_each_switch_and_for_all() {
        let mut held = Held::default();
        let frame = [7; 1 << 10];
        let kept = (0..100).flat_map(|number| (0..600).map(move |_| number));
        let kept = kept.filter(|number| held.push(DatapathId(*number), &frame)).count();
        assert_eq!(kept, OF_ALL_BYTES >> 10);
        assert_eq!((held.take_dropped(), held.take_dropped()), (100 * 600 - kept as u64, 0));
        assert!(
            held.is_full(DatapathId(0)) && held.is_full(DatapathId(99)),
            "and of no other has anything room"
        );
        held.forget(DatapathId(0));
        assert!(!held.has(DatapathId(0)) && !held.is_full(DatapathId(0)) && held.is_full(DatapathId(1)));
        assert!(held.push(DatapathId(99), &frame));
    }

    #[test]
    fn frames_are_taken_whole_and_in_their_order() {
        let mut held = Held::default();
        let frames: Vec<_> = (0..5).map(frame).collect();
        assert!(frames.iter().all(|frame| held.push(DatapathId(1), frame)));
        let (mut out, one) = (Vec::new(), frames[0].len());
        for (bytes, expected) in [(2 * one + 1, frames[0..2].concat()), (0, frames[2].clone())] {
            held.take(DatapathId(1), bytes, &mut out);
            assert_eq!((out.as_slice(), held.has(DatapathId(1))), (expected.as_slice(), true));
        }
        // A frame that arrives meanwhile comes after it.
        assert!(held.push(DatapathId(1), &frames[0]));
        held.take(DatapathId(1), 10 * one, &mut out);
        assert_eq!(out, [&frames[3..], &frames[..1]].concat().concat());
        assert_eq!((held.has(DatapathId(1)), held.bytes), (false, 0));
        held.take(DatapathId(1), 10, &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn switches_have_their_turn_in_a_circle() {
        let mut held = Held::default();
        assert_eq!(held.next_after(DatapathId(3)), None);
        for number in [1, 3, 5] {
            held.push(DatapathId(number), &frame(0));
        }
        let order = [1, 3, 5].map(|last| held.next_after(DatapathId(last)));
        assert_eq!(order, [Some(DatapathId(3)), Some(DatapathId(5)), Some(DatapathId(1))]);
    }
}
