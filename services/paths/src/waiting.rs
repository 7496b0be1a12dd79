//! The callers that wait until the store has changes of intents.
//!
//! ```text
//!   a question with one intent ──> One                    the store has a write ──> its callers
//!   a question with several ──> OfSeveral, one for each ──────────────────┴──> Added, when it was the last one
//! ```
//!
//! An intent can have several writes at once, so each caller waits for the number of one write.
//!
//! In: callers, and what came of a write. Out: whom to answer. It is as large as the changes that wait for the store. It sends nothing.

use burnet_sdk::Ticket;
use paths_contract::{AddResult, Added};
use std::collections::{BTreeMap, HashMap};
use view::IntentId;

/// The caller that waits for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The caller of this question, which has only this change.
    One(Ticket),
    /// The caller of this question, and the number of the change in it.
    OfSeveral(Ticket, usize),
}

/// A question with several intents.
#[derive(Debug)]
struct Open {
    results: Vec<Option<AddResult>>,
    missing: usize,
}

/// All callers that wait.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By the intent and the number of its write.
    callers: BTreeMap<(IntentId, u64), Vec<Caller>>,
    open: HashMap<Ticket, Open>,
}

impl Waiting {
    /// A caller waits for this write of an intent.
    pub fn add(&mut self, id: IntentId, write: u64, caller: Caller) {
        self.callers.entry((id, write)).or_default().push(caller);
    }

    /// One more caller waits for the first write of an intent that has no answer yet. Returns whether there is such a write.
    pub fn join(&mut self, id: IntentId, caller: Caller) -> bool {
        let first = self.callers.range_mut((id, 0)..=(id, u64::MAX)).next();
        let Some((_, callers)) = first else { return false };
        callers.push(caller);
        true
    }

    /// Whether a caller waits for a write of this intent.
    pub fn has(&self, id: IntentId) -> bool {
        self.callers.range((id, 0)..=(id, u64::MAX)).next().is_some()
    }

    /// Removes and returns the callers that wait for this write.
    pub fn take(&mut self, id: IntentId, write: u64) -> Vec<Caller> {
        self.callers.remove(&(id, write)).unwrap_or_default()
    }

    /// A question with several intents. `None` stands for those that wait. Returns the answer if none does.
    pub fn begin(&mut self, question: Ticket, results: Vec<Option<AddResult>>) -> Option<Added> {
        let missing = results.iter().filter(|it| it.is_none()).count();
        let open = Open { results, missing };
        if missing == 0 {
            return Some(open.answer());
        }
        self.open.insert(question, open);
        None
    }

    /// What came of one intent of a question. Returns the answer if it was the last one.
    pub fn settle(&mut self, question: Ticket, number: usize, result: AddResult) -> Option<Added> {
        let open = self.open.get_mut(&question)?;
        if open.results.get_mut(number)?.replace(result).is_none() {
            open.missing = open.missing.saturating_sub(1);
        }
        if open.missing > 0 {
            return None;
        }
        self.open.remove(&question).map(Open::answer)
    }
}

impl Open {
    fn answer(self) -> Added {
        Added { intents: self.results.into_iter().flatten().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(id: u64) -> AddResult {
        AddResult::Taken { id: IntentId(id) }
    }

    #[test]
    fn a_question_is_answered_once_when_its_last_intent_is_settled() {
        let mut waiting = Waiting::default();
        let refused = AddResult::Refused { status: 2, reason: "name: …".to_owned() };
        let all_known = waiting.begin(Ticket(1), vec![Some(refused.clone())]);
        assert_eq!(all_known, Some(Added { intents: vec![refused.clone()] }));
        assert_eq!(waiting.begin(Ticket(2), vec![None, Some(refused.clone()), None]), None);
        assert_eq!(waiting.settle(Ticket(2), 2, taken(9)), None);
        assert_eq!(waiting.settle(Ticket(2), 2, taken(9)), None, "it counts once");
        assert_eq!(waiting.settle(Ticket(2), 7, taken(9)), None, "there is no such intent");
        let all = Added { intents: vec![taken(8), refused, taken(9)] };
        assert_eq!(waiting.settle(Ticket(2), 0, taken(8)), Some(all));
        assert_eq!(waiting.settle(Ticket(2), 0, taken(8)), None);
    }

    #[test]
    fn callers_are_told_once_of_the_write_that_they_wait_for_and_of_no_other() {
        let mut waiting = Waiting::default();
        let (id, other) = (IntentId(5), IntentId(6));
        let (adds, withdraws) = (Caller::One(Ticket(1)), Caller::One(Ticket(2)));
        let adds_too = Caller::OfSeveral(Ticket(3), 0);
        waiting.add(id, 7, adds);
        waiting.add(id, 9, withdraws);
        assert!(waiting.join(id, adds_too) && !waiting.join(other, adds_too));
        assert!(waiting.has(id) && !waiting.has(other));
        assert_eq!(waiting.take(id, 8), []);
        assert_eq!(waiting.take(id, 7), [adds, adds_too]);
        assert_eq!(waiting.take(id, 7), []);
        assert!(waiting.has(id), "the withdrawal is not stored yet");
        assert_eq!(waiting.take(id, 9), [withdraws]);
        assert!(!waiting.has(id));
    }
}
