//! The proxy's own messages to the switch, and their transaction ids.
//!
//! In: the ids that the controller uses, and ids of answers. Out: ids that the controller does not use, and what an answer is for. It
//! sends nothing.

use std::collections::{HashMap, VecDeque};

/// The first byte of own ids, until the controller uses it too.
const FIRST_PREFIX: u8 = 0xb7;
/// How many answers may be missing: those of all barriers that may be on their way, of a poll and of the meter.
const AWAITED_MAX: usize = crate::proxy::QUESTIONS_MAX + 16;
/// How many of the last own ids are known as own when an error comes: more than messages on their way in a full connection. An error about an
/// older one passes to the controller.
const GIVEN_MAX: usize = 16_384;

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// A barrier behind so many messages for the switch.
    Barrier(u64),
    /// The counters of all rules.
    Poll,
    /// The meter of rules in software. Only an error answers it.
    Meter,
}

/// The own transaction ids.
#[derive(Debug)]
pub(crate) struct OwnIds {
    prefix: u8,
    next: u32,
    awaited: HashMap<u32, Own>,
    /// The last own ids, the oldest first.
    given: VecDeque<u32>,
    /// The first bytes of all ids that the controller has used.
    used: [bool; 256],
}

impl Default for OwnIds {
    fn default() -> Self {
        OwnIds {
            prefix: FIRST_PREFIX,
            next: 0,
            awaited: HashMap::new(),
            given: VecDeque::new(),
            used: [false; 256],
        }
    }
}

impl OwnIds {
    /// The controller has used this id. Later own ids begin with a byte with which none of its ids began. If there is none left, they
    /// begin with the next byte: an id is then taken for another one only if all 32 bits are the same.
    pub(crate) fn avoid(&mut self, xid: u32) {
        let first = xid.to_be_bytes()[0];
        self.used[usize::from(first)] = true;
        if first == self.prefix {
            let mut others = (1..=u8::MAX).map(|further| self.prefix.wrapping_add(further));
            let unused = others.find(|prefix| !self.used[usize::from(*prefix)]);
            self.prefix = unused.unwrap_or(self.prefix.wrapping_add(1));
        }
    }

    /// An id for a message whose only answer could be an error.
    pub(crate) fn next(&mut self) -> u32 {
        self.next = (self.next + 1) & 0x00ff_ffff;
        let xid = u32::from(self.prefix) << 24 | self.next;
        if self.given.len() >= GIVEN_MAX {
            self.given.pop_front();
        }
        self.given.push_back(xid);
        xid
    }

    /// An id for a message that is answered.
    pub(crate) fn await_answer(&mut self, own: Own) -> u32 {
        let xid = self.next();
        if self.awaited.len() < AWAITED_MAX {
            self.awaited.insert(xid, own);
        }
        xid
    }

    /// What an answer with this id is for. A poll has an answer in parts.
    pub(crate) fn answered(&self, xid: u32) -> Option<Own> {
        self.awaited.get(&xid).copied()
    }

    /// The last part of an answer has come.
    pub(crate) fn forget(&mut self, xid: u32) {
        self.awaited.remove(&xid);
    }

    /// Whether an error with this id is about a message of the proxy.
    pub(crate) fn is_own(&self, xid: u32) -> bool {
        self.awaited.contains_key(&xid) || self.given.contains(&xid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_the_controller_are_avoided() {
        let mut own = OwnIds::default();
        let barrier = own.await_answer(Own::Barrier(3));
        own.avoid(barrier ^ 0xff);
        assert!(!own.is_own(barrier ^ 0xff), "that is the controller's");
        assert_eq!(own.answered(barrier), Some(Own::Barrier(3)), "that is on its way");
        let next = own.next();
        assert!(own.is_own(next) && next.to_be_bytes()[0] != barrier.to_be_bytes()[0]);
        own.forget(barrier);
        assert_eq!(own.answered(barrier), None);
    }

    #[test]
    fn a_byte_that_the_controller_has_used_before_is_never_taken() {
        let mut own = OwnIds::default();
        let of = |prefix: u8| u32::from(prefix) << 24 | 1;
        // The next byte is the controller's before it meets the first own one.
        own.avoid(of(FIRST_PREFIX + 1));
        own.avoid(of(FIRST_PREFIX));
        let taken = own.next();
        assert_eq!(taken.to_be_bytes()[0], FIRST_PREFIX + 2);
        assert!(!own.is_own(of(FIRST_PREFIX + 1)) && !own.is_own(of(FIRST_PREFIX + 2) + 7));
        (0..=u8::MAX).for_each(|prefix| own.avoid(of(prefix)));
        let later = own.next();
        assert!(own.is_own(taken) && own.is_own(later) && !own.is_own(later + 1), "none is left");
    }

    #[test]
    fn only_the_last_ids_are_known() {
        let mut own = OwnIds::default();
        let first = own.next();
        for _ in 1..GIVEN_MAX {
            own.next();
        }
        assert!(own.is_own(first));
        own.next();
        assert!(!own.is_own(first) && own.given.len() == GIVEN_MAX);
    }
}
