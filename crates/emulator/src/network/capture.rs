//! Copies of the frames that pass an end of a link, for files and statistics.
//!
//! In: the places of taps, and the frames that pass. Out: copies. Without taps it costs one comparison for each
//! frame.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::topology::Endpoint;

/// How many copies may wait. More frames are not copied.
pub const CAPTURED_MAX: usize = 65_536;

/// A frame that passed a tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// When it passed.
    pub at: Duration,
    /// Where it passed.
    pub place: Endpoint,
    /// Whether the node there sent it. Otherwise the node received it.
    pub outgoing: bool,
    /// The frame.
    pub frame: Vec<u8>,
}

/// The places of the taps, and the copies.
#[derive(Debug, Default)]
pub(super) struct Taps {
    places: BTreeSet<Endpoint>,
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
        &self,
        place: Endpoint,
        outgoing: bool,
        at: Duration,
        frame: &[u8],
        captured: &mut Vec<Capture>,
    ) {
        let is_tapped = !self.places.is_empty() && self.places.contains(&place);
        if is_tapped && captured.len() < CAPTURED_MAX {
            captured.push(Capture { at, place, outgoing, frame: frame.to_vec() });
        }
    }
}
