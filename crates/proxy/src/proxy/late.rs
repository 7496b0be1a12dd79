//! The packet-ins that come while the proxy waits for the switch, so that the model stands still.
//!
//! In: packet-ins with their times. Out: the same, in their order, when the model comes to their times. It decides nothing about them.

use profile::model::Miss;
use std::collections::VecDeque;

/// How many may wait: as many as the model lets wait for its CPU. A further one is dropped.
const LATE_MAX: usize = 65_536;

/// The packet-ins that wait for the model.
#[derive(Debug, Default)]
pub(super) struct LateMisses {
    /// When each came to the proxy. These times never fall.
    waiting: VecDeque<(u64, Miss)>,
}

impl LateMisses {
    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < LATE_MAX
    }

    /// A packet-in came now.
    pub(super) fn add(&mut self, now_ns: u64, miss: Miss) {
        self.waiting.push_back((now_ns, miss));
    }

    /// When the first of them came.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|(came_ns, _)| *came_ns)
    }

    /// The first of them, with its time, if it came before this time.
    pub(super) fn take_before(&mut self, end_ns: u64) -> Option<(u64, Miss)> {
        self.waiting.pop_front_if(|(came_ns, _)| *came_ns < end_ns)
    }
}
