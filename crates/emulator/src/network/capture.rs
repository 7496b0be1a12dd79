//! Copies of the frames that pass an end of a link, for whoever writes them to a file or adds them up.
//!
//! In: where a tap is, and the frames that pass. Out: copies. Without taps it costs one comparison for each frame.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::topology::Endpoint;

/// How many frames may wait to be taken out; what would be more is not copied and counted as dropped.
pub const CAPTURED_MAX: usize = 65_536;

/// A frame that passed a tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// When.
    pub at: Duration,
    /// Where.
    pub place: Endpoint,
    /// Whether the node there sent it; it came in there otherwise.
    pub outgoing: bool,
    /// The frame.
    pub frame: Vec<u8>,
}

/// Where taps are.
#[derive(Debug, Default)]
pub(super) struct Taps {
    places: BTreeSet<Endpoint>,
    dropped: u64,
}

impl Taps {
    pub(super) fn set(&mut self, at: Endpoint, on: bool) {
        if on {
            self.places.insert(at);
        } else {
            self.places.remove(&at);
        }
    }

    /// Copies a frame if there is a tap.
    pub(super) fn note(
        &mut self,
        place: Endpoint,
        outgoing: bool,
        at: Duration,
        frame: &[u8],
        captured: &mut Vec<Capture>,
    ) {
        if self.places.is_empty() || !self.places.contains(&place) {
            return;
        }
        if captured.len() >= CAPTURED_MAX {
            self.dropped += 1;
            return;
        }
        captured.push(Capture { at, place, outgoing, frame: frame.to_vec() });
    }

    /// How many frames were not copied because the copies before were not taken out.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}
