//! One ring as it lies in the shared memory: two indices, two flags and the data. Said once for both of its ends.
//!
//! Indices count 64-bit words since the ring began and never wrap (at a word a nanosecond, after 584 years), so that
//! going backwards is always a fault; a place in the data is the index modulo the ring's power-of-two size. A frame is one
//! word with its length in bytes, then its bytes, filled up with zeros to a whole word.
//!
//! Never believes what it reads: that is for `Reader` and `Writer`, who know what they wrote themselves.

use std::sync::Arc;

use crate::atomic::{AtomicU64, Ordering};
use crate::layout::{LINE_WORDS, MAX_FRAME_BYTES, Place, WORD_BYTES};
use crate::memory::Memory;

/// Words in front of a frame's bytes.
pub(crate) const LENGTH_WORDS: u64 = 1;

/// One ring.
#[derive(Clone)]
pub(crate) struct Ring {
    memory: Arc<Memory>,
    place: Place,
}

impl Ring {
    /// The ring at `place`, which must lie within `memory`.
    pub(crate) fn new(memory: Arc<Memory>, place: Place) -> Ring {
        debug_assert!(place.words.is_power_of_two() && place.data + place.words <= memory.words().len());
        Ring { memory, place }
    }

    /// Words that the ring holds.
    pub(crate) fn words(&self) -> u64 {
        self.place.words as u64
    }

    /// The longest frame of this ring, in bytes: one that leaves room for its own length word.
    pub(crate) fn max_frame_bytes(&self) -> usize {
        MAX_FRAME_BYTES.min((self.place.words - LENGTH_WORDS as usize) * WORD_BYTES)
    }

    /// Up to where frames are visible; the producer writes it.
    pub(crate) fn written(&self) -> &AtomicU64 {
        self.control(0)
    }

    /// Not zero while the producer wants to be woken when there is room again; it sets it, the consumer clears it.
    pub(crate) fn producer_waits(&self) -> &AtomicU64 {
        self.control(1)
    }

    /// Up to where frames were taken away; the consumer writes it.
    pub(crate) fn read(&self) -> &AtomicU64 {
        self.control(2)
    }

    /// Not zero while the consumer wants to be woken when there are frames; it sets it, the producer clears it.
    pub(crate) fn consumer_sleeps(&self) -> &AtomicU64 {
        self.control(3)
    }

    fn control(&self, line: usize) -> &AtomicU64 {
        &self.memory.words()[self.place.control + line * LINE_WORDS]
    }

    /// The `count` words of data from index `at` on: a first stretch up to the end of the data, and the rest from its beginning.
    /// `count` is at most the ring's size.
    pub(crate) fn stretch(&self, at: u64, count: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let data = &self.memory.words()[self.place.data..][..self.place.words];
        // The mask is smaller than the ring, which is in memory: this fits a usize.
        let start = (at & (self.words() - 1)) as usize;
        let first = count.min(self.place.words - start);
        (&data[start..start + first], &data[..count - first])
    }

    /// One word of data.
    pub(crate) fn word(&self, at: u64) -> &AtomicU64 {
        &self.stretch(at, 1).0[0]
    }
}

/// Takes a flag down; whether it was up. Looks before it writes, because the flag is nearly always down and writing it would take
/// its line away from the peer.
pub(crate) fn take_flag(flag: &AtomicU64) -> bool {
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}

/// Words that a frame of `length_bytes` takes, its length word included.
pub(crate) fn frame_words(length_bytes: usize) -> u64 {
    LENGTH_WORDS + length_bytes.div_ceil(WORD_BYTES) as u64
}
