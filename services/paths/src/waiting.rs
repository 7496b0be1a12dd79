//! The callers that wait for changes of intents, and questions with several intents.
//!
//! ```text
//!   a question with one intent ──> One
//!   a question with several ──> OfSeveral, one for each ──what came of each──> Added, when it was the last one
//! ```
//!
//! In: what came of the intents of a question. Out: its answer. It is as large as the changes that wait for the store. It sends nothing.

use burnet_sdk::Ticket;
use paths_contract::{AddResult, Added};
use std::collections::HashMap;

/// The caller that waits for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The caller of this question, which has only this change.
    One(Ticket),
    /// The caller of this question, and the number of the change in it.
    OfSeveral(Ticket, usize),
}

impl Caller {
    /// Its question.
    pub fn question(self) -> Ticket {
        let (Caller::One(question) | Caller::OfSeveral(question, _)) = self;
        question
    }
}

/// A question with several intents.
#[derive(Debug)]
struct Open {
    results: Vec<Option<AddResult>>,
    missing: usize,
}

/// All questions with several intents that are not answered.
#[derive(Debug, Default)]
pub struct Waiting {
    open: HashMap<Ticket, Open>,
}

impl Waiting {
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

    /// The caller waits no more.
    pub fn on_over(&mut self, question: Ticket) {
        self.open.remove(&question);
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
    use view::IntentId;

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
}
