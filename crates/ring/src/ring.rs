//! One ring in the shared memory: two indices, two wake-up requests and the data. Used by both ends.
//!
//! Indices count 64-bit words since the start of the ring. They never wrap (at a word a nanosecond, after 584 years),
//! so going backwards is always a fault. The place in the data is the index modulo the ring's size, a power of two. A
//! frame is one word with its length in bytes, then its bytes, padded with zeros to a whole word.
//!
//! A wake-up request is a number that this end did not use before, or zero while there is none. So each word has one
//! writer. An end wakes its peer once for each request, because it remembers the last request that it served.
//!
//! Never checks what it reads: `Reader` and `Writer` do, which know what they wrote themselves.

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

    /// The position up to which frames are visible. The producer writes it.
    pub(crate) fn written(&self) -> &AtomicU64 {
        self.index(0)
    }

    /// The producer's request to be woken when there is room again. The producer writes it.
    pub(crate) fn wish_for_room(&self) -> &AtomicU64 {
        self.index(1)
    }

    /// The position up to which frames were taken. The consumer writes it.
    pub(crate) fn read(&self) -> &AtomicU64 {
        self.index(2)
    }

    /// The consumer's request to be woken when there are frames. The consumer writes it.
    pub(crate) fn wish_for_frames(&self) -> &AtomicU64 {
        self.index(3)
    }

    fn index(&self, line: usize) -> &AtomicU64 {
        &self.memory.words()[self.place.indices + line * LINE_WORDS]
    }

    /// The `count` words of data from index `at` on, in two slices: up to the end of the data, and the rest from its
    /// start. `count` is at most the ring's size.
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

/// An end's own request to be woken.
#[derive(Default)]
pub(crate) struct Wish {
    /// The number of the last request. It cannot wrap: each request takes the time of a system call.
    number: u64,
    made: bool,
}

impl Wish {
    /// Makes a new request, and orders it before later reads. The peer writes its index before it reads the request. So
    /// one of the two sees the other, and no wake-up is lost.
    pub(crate) fn make(&mut self, shared: &AtomicU64) {
        self.number += 1;
        self.made = true;
        shared.store(self.number, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Withdraws the request, if there is one.
    pub(crate) fn take_back(&mut self, shared: &AtomicU64) {
        if std::mem::take(&mut self.made) {
            shared.store(0, Ordering::Relaxed);
        }
    }
}

/// The last request of the peer that an end has served.
#[derive(Default)]
pub(crate) struct Granted(u64);

impl Granted {
    /// Whether there is an unserved request. It counts as served afterwards. Call it after storing an index.
    pub(crate) fn grant(&mut self, shared: &AtomicU64) -> bool {
        fence(Ordering::SeqCst);
        let wish = shared.load(Ordering::Relaxed);
        wish != 0 && std::mem::replace(&mut self.0, wish) != wish
    }
}

/// The bytes that a frame of `length_bytes` uses in a ring: whole words, including the length word.
pub fn frame_bytes(length_bytes: usize) -> usize {
    frame_words(length_bytes) as usize * WORD_BYTES
}

/// Words that a frame of `length_bytes` takes, its length word included.
pub(crate) fn frame_words(length_bytes: usize) -> u64 {
    LENGTH_WORDS + length_bytes.div_ceil(WORD_BYTES) as u64
}
