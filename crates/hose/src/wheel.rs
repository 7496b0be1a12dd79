//! Deadlines of flows, in slots of 100 ms.
//!
//! In: deadlines, time. Out: the flows that are due, up to 100 ms late. A flow whose deadline moves is not searched for: the caller looks when
//! its slot is due, and puts it in again. So a report of a meter costs nothing here.

use crate::flow::{FlowNo, SliceNo};

/// How long a slot is.
const SLOT_MS: u64 = 100;

/// How many slots there are. A deadline beyond them is in one of them too, and is due earlier; then the caller puts it in again.
const SLOTS: usize = 32;

/// A flow that is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slice: SliceNo,
    /// Which of the slices that have had this number.
    pub(crate) life: u32,
    pub(crate) flow: FlowNo,
}

#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<Entry>>,
    /// The first slot of time that was not taken yet.
    next: u64,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel { slots: vec![Vec::new(); SLOTS], next: 0 }
    }
}

/// The place of a slot of time.
const fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

impl Wheel {
    pub(crate) fn put(&mut self, deadline_ms: u64, entry: Entry) {
        let slot = deadline_ms.div_ceil(SLOT_MS).max(self.next);
        self.slots[place(slot)].push(entry);
    }

    /// The flows of one slot that is due. It is called until there is none.
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<Vec<Entry>> {
        let now = now_ms / SLOT_MS;
        // After a long pause, one turn finds all.
        self.next = self.next.max((now + 1).saturating_sub(SLOTS as u64));
        while self.next <= now {
            // The memory goes too: else each slot would keep what the fullest needed.
            let due = std::mem::take(&mut self.slots[place(self.next)]);
            self.next += 1;
            if !due.is_empty() {
                return Some(due);
            }
        }
        None
    }

    /// When the next slot is due.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        let mut slots = self.next..self.next + SLOTS as u64;
        slots.find(|slot| !self.slots[place(*slot)].is_empty()).map(|slot| slot * SLOT_MS)
    }
}
