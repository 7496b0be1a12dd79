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

/// Four reads of a connection. A switch that floods from its first moment on has that much on its way before it answers a barrier.
const OF_A_SWITCH_BYTES: usize = 512 << 10;

/// Sixty-four switches that flood at once have all of what one may have. A thousand have some two hundred packets each.
const OF_ALL_BYTES: usize = 32 << 20;

/// What one more read of a connection may bring, as frames: 64 KiB, and a frame is up to twice as long as its OpenFlow message.
const OF_A_READ_BYTES: usize = 128 << 10;

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Held {
    switches: BTreeMap<DatapathId, Frames>,
    bytes: usize,
    dropped: u64,
}

/// Whole frames of one switch; the first `taken` bytes are gone already.
#[derive(Debug, Default)]
struct Frames {
    bytes: Vec<u8>,
    taken: usize,
}

impl Held {
    /// Keeps one more frame of this switch: whether there was room.
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

    /// Whether anything of this switch is kept.
    #[inline]
    pub fn has(&self, datapath: DatapathId) -> bool {
        !self.switches.is_empty() && self.switches.contains_key(&datapath)
    }

    /// Whether one more read of this switch might not have room.
    pub fn is_full(&self, datapath: DatapathId) -> bool {
        let of_switch = self.switches.get(&datapath).map_or(0, |it| it.bytes.len());
        of_switch + OF_A_READ_BYTES > OF_A_SWITCH_BYTES || self.bytes + OF_A_READ_BYTES > OF_ALL_BYTES
    }

    /// The switch behind this one of which something is kept, around in a circle.
    pub fn next_after(&self, last: DatapathId) -> Option<DatapathId> {
        let behind = self.switches.range((Bound::Excluded(last), Bound::Unbounded)).next();
        behind.or_else(|| self.switches.first_key_value()).map(|(datapath, _)| *datapath)
    }

    /// Whether something is kept of a switch of which this does not hold.
    pub fn has_any_but(&self, left_out: impl Fn(DatapathId) -> bool) -> bool {
        self.switches.keys().any(|datapath| !left_out(*datapath))
    }

    /// Of how many switches something is kept.
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// The oldest frames of this switch that are no longer than `bytes` together, into `out`; at least one, so that an app whose ring is small
    /// gets on.
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
            // What is counted is what is allocated, so it is given back when all of a switch is gone.
            self.bytes -= of_switch.bytes.len();
            self.switches.remove(&datapath);
        }
    }

    /// Drops what is kept of this switch.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.bytes -= self.switches.remove(&datapath).map_or(0, |it| it.bytes.len());
    }

    /// How many were dropped since this was last asked.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::write;

    /// A frame, 32 bytes or so long, and told from others by its number.
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
        // What comes meanwhile comes behind it.
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
