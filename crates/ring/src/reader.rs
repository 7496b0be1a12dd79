//! The consuming end of a ring: finds frames, checks the producer, and decides when to wake it. No file descriptors
//! here.
//!
//! In: words that a hostile producer wrote. Out: one frame at a time in a buffer of the caller, or the producer's
//! violation. Its work is bounded by one frame. It never reads a word of a frame twice.

use crate::atomic::{AtomicU64, Ordering};
use crate::fault::PeerFault;
use crate::layout::WORD_BYTES;
use crate::ring::{Granted, LENGTH_WORDS, Ring, Wish, frame_words};
use crate::writer::in_bytes;

/// The read index is published to the producer after this part of the ring (1/128), and when the ring is empty. It is
/// rare enough that its cache line does not move for each frame. It is often enough that the producer sees the progress
/// of a slow consumer within milliseconds: of a mebibyte this is about fifty packet-ins.
const SHOW_PART: u64 = 128;

/// A producer that waits for room is woken after this part (1/8). Earlier, it would soon wait again.
const RELEASE_PART: u64 = 8;

/// The consumer of one ring.
pub(crate) struct Reader {
    ring: Ring,
    /// The position of the next frame.
    read: u64,
    /// The read position that was published to the producer.
    shown: u64,
    /// The position at which the reader last checked whether the producer waits for room.
    released: u64,
    /// The last valid write position of the producer.
    written: u64,
    /// Whether a release found the producer waiting for room.
    wake_due: bool,
    /// The request to be woken when there are frames.
    wish: Wish,
    granted: Granted,
    fault: Option<PeerFault>,
}

impl Reader {
    /// Makes the consumer of a new ring.
    pub(crate) fn new(ring: Ring) -> Reader {
        Reader {
            ring,
            read: 0,
            shown: 0,
            released: 0,
            written: 0,
            wake_due: false,
            wish: Wish::default(),
            granted: Granted::default(),
            fault: None,
        }
    }

    /// Replaces the content of `buffer` by the next frame, and returns its length in bytes. Returns `None` and leaves
    /// the buffer unchanged if there is none now.
    pub(crate) fn pop_into(&mut self, buffer: &mut Vec<u8>) -> Result<Option<usize>, PeerFault> {
        let result = self.next_length().map(|length| length.map(|length| self.copy_out(length, buffer)));
        if let Err(fault) = result {
            self.fault = Some(fault);
        }
        result
    }

    /// The position up to which frames were taken.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    /// The known position up to which there are frames. Reads the shared index only if all known frames were taken.
    pub(crate) fn known(&mut self) -> Result<u64, PeerFault> {
        if self.read == self.written { self.look() } else { Ok(self.written) }
    }

    /// The position up to which there are frames now, from the shared index.
    pub(crate) fn look(&mut self) -> Result<u64, PeerFault> {
        if self.fault.is_none() {
            self.fault = self.look_at_written_index().err();
        }
        self.fault.map_or(Ok(self.written), Err)
    }

    /// Publishes the read position, and checks whether the producer waits for room.
    pub(crate) fn release(&mut self) {
        if self.released == self.read {
            return;
        }
        self.released = self.read;
        self.show();
        self.wake_due |= self.granted.grant(self.ring.wish_for_room());
    }

    fn show(&mut self) {
        self.shown = self.read;
        self.ring.read().store(self.read, Ordering::Release);
    }

    /// Whether the producer must be woken. Resets the answer.
    #[must_use]
    pub(crate) fn take_wake_due(&mut self) -> bool {
        std::mem::take(&mut self.wake_due)
    }

    /// Requests to be woken at the next publish. Returns `false` if there are frames already (or a fault): the consumer
    /// must not sleep.
    pub(crate) fn about_to_sleep(&mut self) -> bool {
        self.release();
        self.wish.make(self.ring.wish_for_frames());
        if self.fault.is_none() {
            self.fault = self.look_at_written_index().err();
        }
        let sleep = self.fault.is_none() && self.written == self.read;
        if !sleep {
            self.awake();
        }
        sleep
    }

    /// Withdraws the request to be woken.
    pub(crate) fn awake(&mut self) {
        self.wish.take_back(self.ring.wish_for_frames());
    }

    /// Reads and checks the length word of the next frame.
    fn next_length(&mut self) -> Result<Option<usize>, PeerFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.read == self.written {
            self.look_at_written_index()?;
            if self.read == self.written {
                self.release();
                return Ok(None);
            }
        }
        let length_bytes = self.ring.word(self.read).load(Ordering::Relaxed);
        let max = self.ring.max_frame_bytes();
        let length = usize::try_from(length_bytes)
            .ok()
            .filter(|&length| length <= max)
            .ok_or(PeerFault::FrameTooLong { length_bytes, max_bytes: max as u64 })?;
        let available = self.written - self.read;
        if frame_words(length) > available {
            return Err(PeerFault::FrameBeyondWritten { length_bytes, written_bytes: in_bytes(available) });
        }
        Ok(Some(length))
    }

    /// Copies the frame whose length was checked.
    fn copy_out(&mut self, length: usize, buffer: &mut Vec<u8>) -> usize {
        let words = length.div_ceil(WORD_BYTES);
        // Resize to whole words: a buffer that held a frame of this size before is not zeroed again.
        buffer.resize(words * WORD_BYTES, 0);
        let (first, second) = self.ring.stretch(self.read + LENGTH_WORDS, words);
        let (head, tail) = buffer.split_at_mut(first.len() * WORD_BYTES);
        copy_words(first, head);
        copy_words(second, tail);
        buffer.truncate(length);
        self.read += frame_words(length);
        if self.read - self.shown >= self.ring.words() / SHOW_PART {
            self.show();
            if self.read - self.released >= self.ring.words() / RELEASE_PART {
                self.release();
            }
        }
        length
    }

    /// Reads the producer's index. It is valid between its earlier value and a full ring.
    fn look_at_written_index(&mut self) -> Result<(), PeerFault> {
        let written = self.ring.written().load(Ordering::Acquire);
        if written < self.written {
            return Err(PeerFault::WriteIndexWentBackwards {
                from_bytes: in_bytes(self.written),
                to_bytes: in_bytes(written),
            });
        }
        let unread = written - self.read;
        if unread > self.ring.words() {
            return Err(PeerFault::WroteMoreThanFits {
                claimed_bytes: in_bytes(unread),
                ring_bytes: in_bytes(self.ring.words()),
            });
        }
        self.written = written;
        Ok(())
    }
}

fn copy_words(words: &[AtomicU64], bytes: &mut [u8]) {
    for (word, bytes) in words.iter().zip(bytes.as_chunks_mut::<WORD_BYTES>().0) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}
