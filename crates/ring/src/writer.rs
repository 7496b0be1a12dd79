//! The producing end of a ring: writes frames, and decides when to wake the consumer. No file descriptors here.
//!
//! In: frames in parts. Out: words in the ring, and whether the peer must be woken. Never blocks, allocates, or reads
//! back what it wrote.

use crate::atomic::{AtomicU64, Ordering};
use crate::fault::{Full, PeerFault};
use crate::layout::WORD_BYTES;
use crate::ring::{Granted, LENGTH_WORDS, Ring, Wish, frame_words};

/// The producer of one ring.
pub(crate) struct Writer {
    ring: Ring,
    /// The position of the next frame.
    written: u64,
    /// The published position.
    published: u64,
    /// The last valid read position of the consumer.
    read: u64,
    /// The request to be woken when there is room.
    wish: Wish,
    granted: Granted,
    fault: Option<PeerFault>,
}

impl Writer {
    /// Makes the producer of a new ring.
    pub(crate) fn new(ring: Ring) -> Writer {
        Writer {
            ring,
            written: 0,
            published: 0,
            read: 0,
            wish: Wish::default(),
            granted: Granted::default(),
            fault: None,
        }
    }

    /// Writes one frame, the concatenation of `parts`, without publishing it. Leaves at least `reserve_bytes` free.
    pub(crate) fn push(&mut self, reserve_bytes: usize, parts: &[&[u8]]) -> Result<(), Full> {
        let length_bytes = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let max_bytes = self.ring.max_frame_bytes();
        if length_bytes > max_bytes {
            return Err(Full::FrameTooLong { length_bytes, max_bytes });
        }
        let needed = frame_words(length_bytes);
        let with_reserve = needed.saturating_add(reserve_bytes.div_ceil(WORD_BYTES) as u64);
        if self.free_words() < with_reserve {
            self.look_at_read_index();
            if self.free_words() < with_reserve {
                return Err(Full::NoRoom);
            }
        }
        self.ring.word(self.written).store(length_bytes as u64, Ordering::Relaxed);
        let mut pen =
            Pen { ring: &self.ring, at: self.written + LENGTH_WORDS, begun: [0; WORD_BYTES], filled: 0 };
        for part in parts {
            pen.put(part);
        }
        pen.finish();
        self.written += needed;
        Ok(())
    }

    /// Bytes that are free now, length words included.
    pub(crate) fn free_bytes(&mut self) -> usize {
        self.look_at_read_index();
        // It is at most the ring's size, which fits into a usize.
        self.free_words() as usize * WORD_BYTES
    }

    /// Bytes that the consumer has taken since the beginning, length words included.
    pub(crate) fn taken_bytes(&mut self) -> u64 {
        self.look_at_read_index();
        in_bytes(self.read)
    }

    /// Publishes all pushed frames. Returns whether the consumer must be woken.
    #[must_use]
    pub(crate) fn publish(&mut self) -> bool {
        if self.published == self.written {
            return false;
        }
        self.published = self.written;
        self.ring.written().store(self.written, Ordering::Release);
        self.granted.grant(self.ring.wish_for_frames())
    }

    /// Requests to be woken when the consumer has taken frames. Returns `false` if there is room for a frame of
    /// `length_bytes` already, or never will be.
    pub(crate) fn about_to_wait(&mut self, length_bytes: usize) -> bool {
        self.wish.make(self.ring.wish_for_room());
        self.look_at_read_index();
        let wait = self.fault.is_none()
            && length_bytes <= self.ring.max_frame_bytes()
            && self.free_words() < frame_words(length_bytes);
        if !wait {
            self.wish.take_back(self.ring.wish_for_room());
        }
        wait
    }

    /// The consumer's violation, if one was found.
    pub(crate) fn fault(&self) -> Option<PeerFault> {
        self.fault
    }

    /// Size of the ring.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.ring.words() as usize * WORD_BYTES
    }

    fn free_words(&self) -> u64 {
        self.ring.words() - (self.written - self.read)
    }

    /// Reads the consumer's index. It is valid between its earlier value and the published position.
    fn look_at_read_index(&mut self) {
        if self.fault.is_some() {
            return;
        }
        let read = self.ring.read().load(Ordering::Acquire);
        if read < self.read {
            self.fault = Some(PeerFault::ReadIndexWentBackwards {
                from_bytes: in_bytes(self.read),
                to_bytes: in_bytes(read),
            });
        } else if read > self.published {
            self.fault = Some(PeerFault::ReadMoreThanWritten {
                read_bytes: in_bytes(read),
                written_bytes: in_bytes(self.published),
            });
        } else {
            self.read = read;
        }
    }
}

/// Converts an index to bytes for the text of a fault. A hostile index may be too large; then the result is capped.
pub(crate) fn in_bytes(words: u64) -> u64 {
    words.saturating_mul(WORD_BYTES as u64)
}

/// Writes bytes into the ring, word by word.
struct Pen<'a> {
    ring: &'a Ring,
    at: u64,
    /// An incomplete word.
    begun: [u8; WORD_BYTES],
    filled: usize,
}

impl Pen<'_> {
    fn put(&mut self, part: &[u8]) {
        let rest = if self.filled == 0 { part } else { self.fill_begun(part) };
        let (whole, tail) = rest.as_chunks::<WORD_BYTES>();
        let (first, second) = self.ring.stretch(self.at, whole.len());
        let (head, rest) = whole.split_at(first.len());
        copy_words(head, first);
        copy_words(rest, second);
        self.at += whole.len() as u64;
        if !tail.is_empty() {
            self.begun[..tail.len()].copy_from_slice(tail);
            self.filled = tail.len();
        }
    }

    /// Fills the incomplete word from `part`. Returns the rest of `part`.
    fn fill_begun<'p>(&mut self, part: &'p [u8]) -> &'p [u8] {
        let (head, rest) = part.split_at(part.len().min(WORD_BYTES - self.filled));
        self.begun[self.filled..][..head.len()].copy_from_slice(head);
        self.filled += head.len();
        if self.filled == WORD_BYTES {
            self.finish();
        }
        rest
    }

    /// Writes the incomplete word, if there is one, padded with zeros and never with bytes of another frame.
    fn finish(&mut self) {
        if self.filled > 0 {
            self.ring.word(self.at).store(u64::from_ne_bytes(self.begun), Ordering::Relaxed);
            self.at += 1;
            self.begun = [0; WORD_BYTES];
            self.filled = 0;
        }
    }
}

fn copy_words(bytes: &[[u8; WORD_BYTES]], words: &[AtomicU64]) {
    for (bytes, word) in bytes.iter().zip(words) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
}
