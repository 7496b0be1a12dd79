//! Questions that change intents, one after the other for each intent.
//!
//! ```text
//!   question ──no write of its intent is under way──> it is decided ──> a write ──the store has it, or not──> its caller
//!      └──a write is under way──> it waits behind that write, and is decided when the store has answered
//! ```
//!
//! So each question is decided by what all earlier questions about its intent have left. No write can overtake another one of the same
//! intent, however they are grouped for the store.
//!
//! In: questions, and writes that begin and end. Out: whom to answer, and what to decide next. It decides nothing about intents, and sends
//! nothing.

use crate::waiting::Caller;
use burnet_sdk::Ticket;
use paths_contract::Addition;
use std::collections::{BTreeMap, VecDeque};
use view::{IntentId, Wanted};

/// A question that changes an intent.
#[derive(Debug)]
pub struct Asked {
    /// The app that asks.
    pub app: String,
    /// Whether it may change the intents of other apps.
    pub is_for_all: bool,
    /// Who gets the answer.
    pub caller: Caller,
    /// What is asked.
    pub what: What,
}

/// What is asked.
#[derive(Debug)]
pub enum What {
    /// An intent is added, or is there already by its name.
    Add(Box<Addition>),
    /// An intent wants something else.
    Change(IntentId, Box<Wanted>),
    /// An intent is withdrawn.
    Withdraw(IntentId),
}

/// The write of an intent that is under way, and the questions behind it.
#[derive(Debug, Default)]
pub struct Line {
    write: u64,
    /// Who waits for it. `None`: nobody, or the caller was told that the outcome is not known.
    pub caller: Option<Caller>,
    /// Whether the store did not say in time whether it has the write.
    is_unknown: bool,
    /// The questions that came later, oldest first.
    pub behind: VecDeque<Asked>,
}

/// All intents with a write under way: at most as many as writes. The service bounds the questions.
#[derive(Debug, Default)]
pub struct Pending {
    lines: BTreeMap<IntentId, Line>,
    behind: usize,
}

impl Pending {
    /// A write of an intent begins. No other one may be under way.
    pub fn begin(&mut self, id: IntentId, write: u64, caller: Option<Caller>) {
        self.lines.insert(id, Line { write, caller, ..Line::default() });
    }

    /// Whether a write of this intent is under way.
    pub fn has(&self, id: IntentId) -> bool {
        self.lines.contains_key(&id)
    }

    /// Whether it is not known what the store has of this intent.
    pub fn is_unknown(&self, id: IntentId) -> bool {
        self.lines.get(&id).is_some_and(|line| line.is_unknown)
    }

    /// How many questions wait behind writes.
    pub fn behind(&self) -> usize {
        self.behind
    }

    /// A question waits behind the write of its intent that is under way.
    pub fn wait(&mut self, id: IntentId, asked: Asked) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        line.behind.push_back(asked);
        self.behind += 1;
    }

    /// The write is over. Returns its caller, and the questions behind it.
    pub fn end(&mut self, id: IntentId, write: u64) -> Line {
        if self.lines.get(&id).is_none_or(|line| line.write != write) {
            return Line::default();
        }
        let line = self.lines.remove(&id).unwrap_or_default();
        self.behind -= line.behind.len();
        line
    }

    /// The store did not say in time whether it has the write. Returns its caller, and those of the questions behind it. The write stays
    /// until the store has said it.
    pub fn doubt(&mut self, id: IntentId, write: u64) -> (Option<Caller>, Vec<Caller>) {
        let Some(line) = self.lines.get_mut(&id).filter(|line| line.write == write) else {
            return (None, Vec::new());
        };
        line.is_unknown = true;
        self.behind -= line.behind.len();
        (line.caller.take(), line.behind.drain(..).map(|asked| asked.caller).collect())
    }

    /// The caller waits no more. What it has asked and what was not decided yet is forgotten. What is under way goes on.
    pub fn on_over(&mut self, question: Ticket) {
        for line in self.lines.values_mut() {
            line.caller.take_if(|caller| caller.question() == question);
            let before = line.behind.len();
            line.behind.retain(|asked| asked.caller.question() != question);
            self.behind -= before - line.behind.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: IntentId = IntentId(5);

    fn withdraws(question: u64) -> Asked {
        let (app, caller) = ("a".to_owned(), Caller::One(Ticket(question)));
        Asked { app, is_for_all: false, caller, what: What::Withdraw(ID) }
    }

    fn callers(line: &Line) -> Vec<u64> {
        line.caller.iter().chain(line.behind.iter().map(|it| &it.caller)).map(|it| it.question().0).collect()
    }

    #[test]
    fn a_write_that_is_over_gives_its_caller_and_the_questions_behind_it_once() {
        let mut pending = Pending::default();
        pending.begin(ID, 7, Some(Caller::One(Ticket(1))));
        (2..5).for_each(|question| pending.wait(ID, withdraws(question)));
        pending.on_over(Ticket(3));
        pending.on_over(Ticket(9));
        assert_eq!((pending.behind(), pending.has(ID), pending.has(IntentId(6))), (2, true, false));
        assert!(callers(&pending.end(ID, 8)).is_empty(), "it is another write");
        assert_eq!(callers(&pending.end(ID, 7)), [1, 2, 4]);
        assert_eq!((pending.behind(), pending.has(ID)), (0, false));
        assert!(callers(&pending.end(ID, 7)).is_empty());
        pending.begin(ID, 9, Some(Caller::OfSeveral(Ticket(1), 4)));
        pending.on_over(Ticket(1));
        assert_eq!((callers(&pending.end(ID, 9)), pending.has(ID)), (vec![], false), "the write went on");
    }

    #[test]
    fn a_write_of_which_nothing_is_known_stays_and_nobody_waits_for_it() {
        let mut pending = Pending::default();
        pending.begin(ID, 7, Some(Caller::One(Ticket(1))));
        pending.wait(ID, withdraws(2));
        let told = pending.doubt(ID, 7);
        assert_eq!(told, (Some(Caller::One(Ticket(1))), vec![Caller::One(Ticket(2))]));
        assert_eq!((pending.is_unknown(ID), pending.has(ID), pending.behind()), (true, true, 0));
        assert_eq!(pending.doubt(ID, 7), (None, vec![]));
        assert!(callers(&pending.end(ID, 7)).is_empty());
        assert!(!pending.is_unknown(ID));
    }
}
