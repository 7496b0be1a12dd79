//! What the kernel's answers are for: messages of controllers that are on their way to the physical switch.
//!
//! In: tickets with what they stand for. Out: the same, once. The bounds are constants here.

use crate::asking::Asking;
use crate::controller::Asker;
use crate::rule_table::{Before, Group, Meter};
use flow::PortNo;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most changes and packet-outs on their way, with those that were answered after the oldest. Beyond it the oldest is forgotten: its
/// error, if one comes, is only counted.
const CHANGES_MAX: usize = 2 * AWAITED_MAX;
/// The most barriers and statistics requests on their way. Beyond it a controller gets an error.
pub(crate) const QUESTIONS_MAX: usize = 64;
/// While the kernel owes so many answers for one switch, or for all switches of a slice, no more messages of controllers should be read. A session
/// takes this many of each of three slices: beyond that it would refuse what a controller sends. The kernel drops no answer: it ends a zone that
/// leaves 2 MiB of them unread. An answer has about 100 bytes, and a refusal up to 255. A switch that floods answers late:
/// its barrier replies are behind its packet-ins. With lower bounds, a slice sends packet-ins on and leaves the controllers' answers unread.
const AWAITED_MAX: usize = 4_096;
pub(crate) const AWAITED_OF_SLICE_MAX: usize = 8_192;
/// The bytes of a message that are kept for an error (1.3.5, 7.5.4: at least 64).
const BEGINNING_LEN: usize = 64;

/// A message of a controller, for an error.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Who sent it.
    pub(crate) asker: Asker,
    /// Its first bytes.
    pub(crate) beginning: Arc<[u8]>,
}

impl Sender {
    pub(crate) fn new(asker: Asker, message: &[u8]) -> Sender {
        Sender { asker, beginning: message[..message.len().min(BEGINNING_LEN)].into() }
    }
}

/// What a ticket stands for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A piece of a rule is added: if that fails, the whole rule is taken back.
    Add {
        /// The flow mod; `None` if the virtual switch put the piece back itself.
        sender: Option<Sender>,
        /// The rule.
        rule: u64,
    },
    /// A piece of a rule is modified: if that fails, the whole rule becomes what it was.
    Modify {
        /// The flow mod.
        sender: Sender,
        /// The rule.
        rule: u64,
        /// Which modify of the rule it is.
        modified: u32,
        /// The rule before.
        before: Arc<Before>,
    },
    /// A group is added.
    Group {
        /// The group mod.
        sender: Sender,
        /// The tenant's number.
        id: u32,
    },
    /// A meter is added.
    Meter {
        /// The meter mod.
        sender: Sender,
        /// The tenant's number.
        id: u32,
    },
    /// A meter at a port of VNICs is added or modified.
    Shaper {
        /// The port, by the number that the tenant sees.
        port: PortNo,
        /// Whether it is modified, because it was there.
        is_modified: bool,
    },
    /// A group of an earlier process is modified to what it is, so that the kernel and the switch confirm it.
    GroupAgain(u32),
    /// The same for a meter.
    MeterAgain(u32),
    /// A group is modified: if that fails, it becomes what it was.
    ModifyGroup {
        /// The group mod.
        sender: Sender,
        /// The tenant's number.
        id: u32,
        /// The group before.
        before: Box<Group>,
    },
    /// A meter is modified, likewise.
    ModifyMeter {
        /// The meter mod.
        sender: Sender,
        /// The tenant's number.
        id: u32,
        /// The meter before.
        before: Box<Meter>,
    },
    /// Another change.
    Change(Sender),
    /// A packet-out.
    PacketOut(Sender),
    /// A barrier.
    Barrier(Asker),
    /// The question for rules of an earlier run.
    Leftovers,
    /// A batch of what the slice loses is deleted.
    Withdrawal,
    /// A statistics request.
    Statistics {
        /// The request.
        sender: Sender,
        /// The answer so far. Boxed, because thousands of other tickets wait beside it.
        asking: Box<Asking>,
    },
}

impl Asked {
    /// Whether the kernel shall say how it ended. It says without that if the switch sends an error, but not if it refuses itself.
    pub(crate) fn wants_receipt(&self) -> bool {
        !matches!(self, Asked::PacketOut(_))
    }

    fn is_question(&self) -> bool {
        matches!(self, Asked::Barrier(_) | Asked::Statistics { .. } | Asked::Leftovers)
    }

    /// Whether messages wait for its end.
    pub(crate) fn is_claim(&self) -> bool {
        matches!(
            self,
            Asked::Group { .. } | Asked::Meter { .. } | Asked::GroupAgain(_) | Asked::MeterAgain(_)
        )
    }
}

/// The tickets of one virtual switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// In the order of their tickets. Those that were taken are gaps, and none is first.
    changes: VecDeque<(u64, Option<Asked>)>,
    questions: BTreeMap<u64, Asked>,
    /// How many of the changes will get an answer.
    awaited: usize,
}

impl Pending {
    /// Whether there is room for one more question.
    pub(crate) fn has_room(&self) -> bool {
        let questions = self.questions.values().filter(|asked| asked.is_question());
        questions.count() < QUESTIONS_MAX
    }

    /// Remembers a ticket, which is higher than all before. Returns whether an older one was forgotten.
    pub(crate) fn note(&mut self, ticket: u64, asked: Asked) -> bool {
        // Claims and shapers are as few as the numbers of groups and meters of the slice. A withdrawal has two at most.
        if asked.is_question()
            || asked.is_claim()
            || matches!(asked, Asked::Shaper { .. } | Asked::Withdrawal)
        {
            self.questions.insert(ticket, asked);
            return false;
        }
        self.awaited += usize::from(asked.wants_receipt());
        self.changes.push_back((ticket, Some(asked)));
        if self.changes.len() <= CHANGES_MAX {
            return false;
        }
        let oldest = self.changes.pop_front().and_then(|(_, oldest)| oldest);
        self.drop_gaps();
        oldest.inspect(|oldest| self.forget(oldest)).is_some()
    }

    fn drop_gaps(&mut self) {
        while let Some((_, None)) = self.changes.front() {
            self.changes.pop_front();
        }
    }

    fn forget(&mut self, change: &Asked) {
        self.awaited -= usize::from(change.wants_receipt());
    }

    /// How many changes have no answer yet that will have one.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited
    }

    /// Whether the switch should take no more messages of controllers until there are answers.
    pub(crate) fn is_busy(&self) -> bool {
        self.awaited >= AWAITED_MAX
    }

    /// What a ticket stands for. A ticket is taken once.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Asked> {
        if let Some(question) = self.questions.remove(&ticket) {
            return Some(question);
        }
        let place = self.place_of(ticket)?;
        let change = self.changes.get_mut(place)?.1.take()?;
        self.drop_gaps();
        self.forget(&change);
        Some(change)
    }

    /// Answers come in the order of the tickets, if nothing is refused.
    fn place_of(&self, ticket: u64) -> Option<usize> {
        match self.changes.front() {
            Some((first, _)) if *first == ticket => Some(0),
            _ => self.changes.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok(),
        }
    }

    /// The statistics request of a ticket, for one more part of its answer.
    pub(crate) fn asking_mut(&mut self, ticket: u64) -> Option<&mut Asking> {
        match self.questions.get_mut(&ticket)? {
            Asked::Statistics { asking, .. } => Some(asking),
            _ => None,
        }
    }

    /// Whether a ticket is that of the question for rules of an earlier run.
    pub(crate) fn is_leftovers(&self, ticket: u64) -> bool {
        matches!(self.questions.get(&ticket), Some(Asked::Leftovers))
    }

    /// Forgets everything: the session of the physical switch ended.
    pub(crate) fn clear(&mut self) {
        *self = Pending::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Asker;

    fn sender() -> Sender {
        let asker = Asker { controller: 0, serial: 1, version: openflow::Version::V1_3, xid: 5 };
        Sender::new(asker, &[4, 14, 0, 56])
    }

    #[test]
    fn a_switch_is_busy_while_too_many_answers_are_awaited() {
        let mut pending = Pending::default();
        for ticket in 0..AWAITED_MAX as u64 {
            assert!(!pending.is_busy(), "{ticket}");
            pending.note(ticket, Asked::Change(sender()));
        }
        assert!(pending.is_busy());
        assert!(pending.take(0).is_some() && !pending.is_busy());
        assert!(pending.take(0).is_none() && pending.awaited() == AWAITED_MAX - 1);
    }

    #[test]
    fn answers_may_come_in_any_order_and_each_ticket_is_taken_once() {
        let mut pending = Pending::default();
        (0..8).for_each(|ticket| _ = pending.note(2 * ticket, Asked::Change(sender())));
        for ticket in [4, 0, 2, 14, 6, 12, 8, 10] {
            assert!(pending.take(ticket + 1).is_none(), "{ticket}");
            assert!(pending.take(ticket).is_some() && pending.take(ticket).is_none(), "{ticket}");
            assert!(pending.changes.front().is_none_or(|(_, first)| first.is_some()), "{ticket}");
        }
        assert_eq!((pending.awaited(), pending.changes.len()), (0, 0));
    }

    /// The kernel says nothing of a packet-out that it sends, so it must not count for ever.
    #[test]
    fn packet_outs_are_not_awaited_and_what_is_forgotten_is_not_either() {
        let mut pending = Pending::default();
        pending.note(0, Asked::Change(sender()));
        for ticket in 1..=2 * CHANGES_MAX as u64 {
            pending.note(ticket, Asked::PacketOut(sender()));
        }
        assert!(!pending.is_busy());
        assert_eq!((pending.awaited(), pending.changes.len()), (0, CHANGES_MAX));
    }
}
