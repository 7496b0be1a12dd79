//! Control events that a full ring did not take, waiting in order beside it.
//!
//! In: frames. Out: the same frames, oldest first. Never holds more than [`OVERFLOW_BYTES`].

use abi::Frame;
use flow::DatapathId;
use std::collections::VecDeque;

/// The most that waits: as much as eight rings for control events of the default size. An app that is this far behind in events that are as
/// rare as these is not slow, it has stopped.
pub const OVERFLOW_BYTES: usize = 2 * 1024 * 1024;

/// What a waiting frame costs beside its bytes, so that the bound holds for many small ones too.
const PER_FRAME_BYTES: usize = size_of::<usize>();

/// Switches of which it is known that something waits of theirs. Of more, something waits of every switch.
const CONCERNED: usize = 32;

/// A bounded queue of frames.
#[derive(Default)]
pub(crate) struct Overflow {
    /// The switches whose events wait, since it was empty.
    concerned: Vec<DatapathId>,
    /// All frames' bytes, one after the other.
    bytes: VecDeque<u8>,
    lengths: VecDeque<usize>,
}

impl Overflow {
    /// Adds a frame; `false`, and nothing is added, if the bound would be passed.
    pub(crate) fn add(&mut self, frame: &[u8]) -> bool {
        let fits = self.waiting_bytes() + frame.len() + PER_FRAME_BYTES <= OVERFLOW_BYTES;
        if fits {
            self.bytes.extend(frame);
            self.lengths.push_back(frame.len());
            self.note(frame);
        }
        fits
    }

    fn note(&mut self, frame: &[u8]) {
        let Ok(frame) = Frame::read(frame) else { return };
        if self.concerned.len() < CONCERNED && !self.concerned.contains(&frame.datapath()) {
            self.concerned.push(frame.datapath());
        }
    }

    /// Whether an event of this switch may be waiting.
    pub(crate) fn concerns(&self, datapath: DatapathId) -> bool {
        !self.is_empty() && (self.concerned.len() >= CONCERNED || self.concerned.contains(&datapath))
    }

    /// The oldest frame, in two parts because it may lie around the end of the buffer.
    pub(crate) fn oldest(&self) -> Option<[&[u8]; 2]> {
        let length = *self.lengths.front()?;
        let (first, second) = self.bytes.as_slices();
        let split = length.min(first.len());
        Some([&first[..split], &second[..length - split]])
    }

    /// Takes the oldest frame away.
    pub(crate) fn remove_oldest(&mut self) {
        if let Some(length) = self.lengths.pop_front() {
            self.bytes.drain(..length);
        }
        if self.lengths.is_empty() {
            // It is needed once in an app's life, if ever: the memory goes back.
            *self = Overflow::default();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// What waits, in bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes.len() + self.lengths.len() * PER_FRAME_BYTES
    }
}
