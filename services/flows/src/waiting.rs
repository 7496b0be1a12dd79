//! Questions of callers for which a switch is read, while they wait for room for one more reading.
//!
//! In: questions. Out: the same, oldest first. It reads nothing: `looks` and `counters` do that. The service bounds how many wait.

use flow::{DatapathId, Match};
use std::collections::VecDeque;

/// A question that waits.
#[derive(Debug)]
pub struct Asked {
    /// The query.
    pub query: u64,
    /// The switch that is read for it.
    pub switch: DatapathId,
    /// What it is about.
    pub what: What,
}

/// What a question is about.
#[derive(Debug)]
pub enum What {
    /// The counters of this table, or of all.
    Counters(Option<u8>),
    /// What is there for this packet.
    Look(Box<Match>),
}

/// The questions that wait.
#[derive(Debug, Default)]
pub struct Waiting(VecDeque<Asked>);

impl Waiting {
    /// How many looks wait.
    pub fn looks(&self) -> usize {
        self.0.iter().filter(|it| matches!(it.what, What::Look(_))).count()
    }

    /// How many questions for counters wait.
    pub fn counters(&self) -> usize {
        self.0.len() - self.looks()
    }

    /// One more waits.
    pub fn push(&mut self, asked: Asked) {
        self.0.push_back(asked);
    }

    /// The one that has waited longest.
    pub fn pop(&mut self) -> Option<Asked> {
        self.0.pop_front()
    }

    /// The caller waits no more.
    pub fn on_over(&mut self, query: u64) {
        self.0.retain(|it| it.query != query);
    }
}
