//! The proxy's own messages to the switch, and their transaction ids.
//!
//! In: the ids that the controller uses, and ids of answers. Out: ids that the controller does not use, and what an answer is for. It
//! sends nothing.

use std::collections::HashMap;

/// The first byte of own ids, until the controller uses it too.
const FIRST_PREFIX: u8 = 0xb7;
/// How many answers may be missing. Only barriers and polls have answers, of which one each is on its way.
const AWAITED_MAX: usize = 16;

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// A barrier behind so many messages for the switch.
    Barrier(u64),
    /// The counters of all rules.
    Poll,
}

/// The own transaction ids.
#[derive(Debug)]
pub(crate) struct OwnIds {
    prefix: u8,
    next: u32,
    awaited: HashMap<u32, Own>,
}

impl Default for OwnIds {
    fn default() -> Self {
        OwnIds { prefix: FIRST_PREFIX, next: 0, awaited: HashMap::new() }
    }
}

impl OwnIds {
    /// The controller has used this id. Later own ids begin with another byte than this one.
    pub(crate) fn avoid(&mut self, xid: u32) {
        if xid.to_be_bytes()[0] == self.prefix {
            self.prefix = self.prefix.wrapping_add(1);
        }
    }

    /// An id for a message whose only answer could be an error.
    pub(crate) fn next(&mut self) -> u32 {
        self.next = (self.next + 1) & 0x00ff_ffff;
        u32::from(self.prefix) << 24 | self.next
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
        xid.to_be_bytes()[0] == self.prefix || self.awaited.contains_key(&xid)
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
}
