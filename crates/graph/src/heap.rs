//! A queue of switches by distance, which keeps its memory.
//!
//! In: switches with a distance. Out: the nearest one. A switch can be in it several times; the caller skips what is out of date.

use crate::topology::SwitchNo;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of switches by distance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap(BinaryHeap<Reverse<(u32, u32)>>);

impl Heap {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn push(&mut self, distance: u32, switch: SwitchNo) {
        self.0.push(Reverse((distance, switch.0)));
    }

    pub(crate) fn pop(&mut self) -> Option<(u32, SwitchNo)> {
        self.0.pop().map(|Reverse((distance, switch))| (distance, SwitchNo(switch)))
    }
}
