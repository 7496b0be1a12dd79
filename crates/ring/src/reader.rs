//! The consuming end of a ring: which bytes are a frame, whether the producer may be believed, and when it must be woken.
//! No file descriptors here.
//!
//! In: words that a hostile producer wrote. Out: one frame at a time in a buffer of the caller's, or what the producer did
//! wrong. Never does more than copying the frame in hand, and never reads a word of a frame twice.

use crate::atomic::{AtomicU64, Ordering};
use crate::fault::PeerFault;
use crate::layout::WORD_BYTES;
use crate::ring::{Granted, LENGTH_WORDS, Ring, Wish, frame_words};
use crate::writer::in_bytes;

/// The read index is shown to the producer when this part of the ring is to be given back (and when the ring is empty):
/// seldom enough that its line is not fetched to and fro for each frame, often enough that the producer sees within milliseconds that a
/// slow consumer takes something: of a mebibyte these are some fifty packet-ins.
const SHOW_PART: u64 = 128;

/// And a producer that waits for room is woken when this part was taken: sooner, it would soon wait again.
const RELEASE_PART: u64 = 8;

/// The consumer of one ring.
pub(crate) struct Reader {
    ring: Ring,
    /// Where the next frame begins.
    read: u64,
    /// Up to where the producer was shown that frames were read.
    shown: u64,
    /// Up to where it was also looked whether the producer waits for that.
    released: u64,
    /// Up to where the producer has written, as last believed.
    written: u64,
    /// Whether a release found the producer waiting for room.
    wake_due: bool,
    /// To be woken when there are frames.
    wish: Wish,
    granted: Granted,
    fault: Option<PeerFault>,
}

impl Reader {
    /// The consumer of a ring that nobody has consumed from yet.
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

    /// Replaces what is in `buffer` by the next frame, and returns its length in bytes; `None` if there is none now, in which case
    /// the buffer is as it was.
    pub(crate) fn pop_into(&mut self, buffer: &mut Vec<u8>) -> Result<Option<usize>, PeerFault> {
        let result = self.next_length().map(|length| length.map(|length| self.copy_out(length, buffer)));
        if let Err(fault) = result {
            self.fault = Some(fault);
        }
        result
    }

    /// Up to where frames were taken.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    /// Up to where there are frames, as far as it is known; looks only if all that was known is taken.
    pub(crate) fn known(&mut self) -> Result<u64, PeerFault> {
        if self.read == self.written { self.look() } else { Ok(self.written) }
    }

    /// Up to where there are frames now.
    pub(crate) fn look(&mut self) -> Result<u64, PeerFault> {
        if self.fault.is_none() {
            self.fault = self.look_at_written_index().err();
        }
        self.fault.map_or(Ok(self.written), Err)
    }

    /// Shows the producer how far frames were read, and finds out whether it waits for that.
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

    /// Whether the producer must be woken, since last asked.
    #[must_use]
    pub(crate) fn take_wake_due(&mut self) -> bool {
        std::mem::take(&mut self.wake_due)
    }

    /// Says that the consumer wants to be woken at the next publish. `false` if there are frames already (or a fault), so
    /// that it must not sleep.
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

    /// Says that the consumer is awake and needs no wake-up.
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
        // Whole words first: a buffer that held a frame of this size before is not even zeroed.
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

    /// Believes the producer's index if it lies between what it was and a full ring.
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
