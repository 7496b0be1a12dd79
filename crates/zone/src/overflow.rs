//! Control events that did not fit into the full ring. They wait beside it, in order.
//!
//! In: frames. Out: the same frames, oldest first. Never holds more than [`OVERFLOW_BYTES`].

use abi::Frame;
use flow::DatapathId;
use std::collections::VecDeque;

/// The bound on waiting bytes: eight rings for control events of the default size. Control events are rare. An app
/// that is this far behind is not slow, it has stopped. Beyond the bound its zone is ended.
pub const OVERFLOW_BYTES: usize = 2 * 1024 * 1024;

/// The cost of a waiting frame beside its bytes, so that the bound holds for many small frames too.
const PER_FRAME_BYTES: usize = size_of::<usize>();

/// How many switches with waiting events are remembered. Beyond that, every switch counts as one with waiting events.
const CONCERNED: usize = 32;

/// A bounded queue of frames.
#[derive(Default)]
pub(crate) struct Overflow {
    /// The switches whose events were added since the queue was last empty.
    concerned: Vec<DatapathId>,
    /// The bytes of all frames, in order.
    bytes: VecDeque<u8>,
    lengths: VecDeque<usize>,
}

impl Overflow {
    /// Adds a frame. If it would exceed the bound, adds nothing and returns `false`.
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

    /// The oldest frame. It has two parts because it may wrap around the end of the buffer.
    pub(crate) fn oldest(&self) -> Option<[&[u8]; 2]> {
        let length = *self.lengths.front()?;
        let (first, second) = self.bytes.as_slices();
        let split = length.min(first.len());
        Some([&first[..split], &second[..length - split]])
    }

    /// Removes the oldest frame.
    pub(crate) fn remove_oldest(&mut self) {
        if let Some(length) = self.lengths.pop_front() {
            self.bytes.drain(..length);
        }
        if self.lengths.is_empty() {
            // The queue is rarely needed in an app's life, so its memory is freed.
            *self = Overflow::default();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Waiting bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes.len() + self.lengths.len() * PER_FRAME_BYTES
    }
}
