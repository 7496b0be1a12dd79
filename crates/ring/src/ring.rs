//! One ring as it lies in the shared memory: two indices, two wishes to be woken and the data. Said once for both of its ends.
//!
//! Indices count 64-bit words since the ring began and never wrap (at a word a nanosecond, after 584 years), so that
//! going backwards is always a fault; a place in the data is the index modulo the ring's power-of-two size. A frame is one
//! word with its length in bytes, then its bytes, filled up with zeros to a whole word.
//!
//! A wish to be woken is a number that no wish of that end had before, or zero while there is none. So each word has one
//! writer, and an end wakes its peer once for each wish: it remembers which it has granted.
//!
//! Never believes what it reads: that is for `Reader` and `Writer`, who know what they wrote themselves.

use std::sync::Arc;

use crate::atomic::{AtomicU64, Ordering, fence};
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
        self.index(0)
    }

    /// The producer's wish to be woken when there is room again; it writes it.
    pub(crate) fn wish_for_room(&self) -> &AtomicU64 {
        self.index(1)
    }

    /// Up to where frames were taken away; the consumer writes it.
    pub(crate) fn read(&self) -> &AtomicU64 {
        self.index(2)
    }

    /// The consumer's wish to be woken when there are frames; it writes it.
    pub(crate) fn wish_for_frames(&self) -> &AtomicU64 {
        self.index(3)
    }

    fn index(&self, line: usize) -> &AtomicU64 {
        &self.memory.words()[self.place.indices + line * LINE_WORDS]
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

/// An end's own wish to be woken.
#[derive(Default)]
pub(crate) struct Wish {
    /// The number of the last wish. It cannot come round: a wish is a system call's worth of time.
    number: u64,
    made: bool,
}

impl Wish {
    /// Makes a new wish, and orders it before whatever is looked at next: the peer writes its index before it looks at the wish, so one
    /// of the two sees the other, and no wake-up is lost.
    pub(crate) fn make(&mut self, shared: &AtomicU64) {
        self.number += 1;
        self.made = true;
        shared.store(self.number, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes the wish back, if there is one.
    pub(crate) fn take_back(&mut self, shared: &AtomicU64) {
        if std::mem::take(&mut self.made) {
            shared.store(0, Ordering::Relaxed);
        }
    }
}

/// Which of its peer's wishes an end has granted.
#[derive(Default)]
pub(crate) struct Granted(u64);

impl Granted {
    /// Whether there is a wish that was not granted yet; it is now. Called after the end has stored an index.
    pub(crate) fn grant(&mut self, shared: &AtomicU64) -> bool {
        fence(Ordering::SeqCst);
        let wish = shared.load(Ordering::Relaxed);
        wish != 0 && std::mem::replace(&mut self.0, wish) != wish
    }
}

/// What a frame of so many bytes takes of a ring, in bytes: whole words, its length among them.
pub fn frame_bytes(length_bytes: usize) -> usize {
    frame_words(length_bytes) as usize * WORD_BYTES
}

/// Words that a frame of `length_bytes` takes, its length word included.
pub(crate) fn frame_words(length_bytes: usize) -> u64 {
    LENGTH_WORDS + length_bytes.div_ceil(WORD_BYTES) as u64
}
