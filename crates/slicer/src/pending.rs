//! What the kernel's answers are for: messages of controllers that are on their way to the physical switch.
//!
//! In: tickets with what they stand for. Out: the same, once. The bounds are constants here.

use crate::asking::Asking;
use crate::controller::Asker;
use crate::rule_table::{Before, Group, Meter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most changes and packet-outs on their way. Beyond it the oldest is forgotten: its error, if one comes, is only counted.
const CHANGES_MAX: usize = 4_096;
/// The most barriers and statistics requests on their way. Beyond it a controller gets an error.
pub(crate) const QUESTIONS_MAX: usize = 64;
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
    /// A statistics request.
    Statistics {
        /// The request.
        sender: Sender,
        /// The answer so far.
        asking: Asking,
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
        matches!(self, Asked::Group { .. } | Asked::Meter { .. })
    }
}

/// The tickets of one virtual switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    changes: BTreeMap<u64, Asked>,
    questions: BTreeMap<u64, Asked>,
}

impl Pending {
    /// Whether there is room for one more question.
    pub(crate) fn has_room(&self) -> bool {
        let questions = self.questions.values().filter(|asked| asked.is_question());
        questions.count() < QUESTIONS_MAX
    }

    /// Remembers a ticket. Returns whether an older one was forgotten.
    pub(crate) fn note(&mut self, ticket: u64, asked: Asked) -> bool {
        // Claims are as few as the numbers of groups and meters of the slice.
        if asked.is_question() || asked.is_claim() {
            self.questions.insert(ticket, asked);
            return false;
        }
        self.changes.insert(ticket, asked);
        self.changes.len() > CHANGES_MAX && self.changes.pop_first().is_some()
    }

    /// What a ticket stands for. A ticket is taken once.
    pub(crate) fn take(&mut self, ticket: u64) -> Option<Asked> {
        self.questions.remove(&ticket).or_else(|| self.changes.remove(&ticket))
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
