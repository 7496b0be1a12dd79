//! Writes of which the store did not say whether it has them. Each is read back.
//!
//! ```text
//!   the store ended, or did not answer ──> Doubt ──get of its key──> the store has the write | it does not have it
//!                                            ^└──no answer──┘
//! ```
//!
//! The store answers in the order of the questions. So when the key is read, the write was made or never will be. No other write of the
//! intent begins meanwhile.
//!
//! In: writes, answers of the store, the time. Out: questions for keys, and what came of the writes. It writes nothing.

use crate::writing::{Numbered, key_of};
use burnet_sdk::store::status;
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use std::collections::{HashMap, VecDeque};
use view::IntentId;

/// How many keys are read at one time. The others wait.
const READS_MAX: usize = 32;

/// How long after the first failure keys are read. The monitor starts the store again within this time, if it can.
const FIRST_MS: u64 = 200;

/// How long after a reading that failed keys are read again.
const AGAIN_MS: u64 = 1_000;

/// How long callers wait for the truth. After that, they are told that it is not known. It is shorter than their deadline.
const PATIENCE_MS: u64 = 3_000;

/// Whether the store may have made the change that it answers with this status.
pub fn is_doubtful(status: u16) -> bool {
    matches!(
        status,
        status::MAYBE_DONE
            | query_status::SERVICE_GONE
            | query_status::NO_ANSWER_IN_TIME
            | query_status::ANSWER_LOST
            | query_status::TOO_MUCH
    )
}

#[derive(Debug)]
struct Doubt {
    write: Numbered,
    /// Why the store did not say it.
    why: String,
    since_ms: u64,
    is_told: bool,
}

/// What an answer of the store means for a write in doubt.
#[derive(Debug, PartialEq)]
pub enum Read {
    /// The answer is to no question of this file.
    NotMine,
    /// It is still not known.
    Nothing,
    /// The store has the write.
    Has(Numbered),
    /// The store does not have it, for this reason.
    HasNot(Numbered, String),
}

/// The writes in doubt: a part of those that wait for the store.
#[derive(Debug, Default)]
pub struct Doubts {
    waiting: VecDeque<Doubt>,
    reading: HashMap<Ticket, Doubt>,
    /// When those that wait are read.
    read_at_ms: u64,
}

impl Doubts {
    /// The store did not say whether it has these writes, for this reason.
    pub fn add(&mut self, writes: Vec<Numbered>, why: &str, now_ms: u64) {
        if self.waiting.is_empty() {
            self.read_at_ms = now_ms + FIRST_MS;
        }
        let doubt = |write| Doubt { write, why: why.to_owned(), since_ms: now_ms, is_told: false };
        self.waiting.extend(writes.into_iter().map(doubt));
    }

    /// When to call [`Doubts::on_time`]. `None`: nothing waits for a time.
    pub fn next_due_ms(&self) -> Option<u64> {
        let read = (!self.waiting.is_empty() && self.reading.is_empty()).then_some(self.read_at_ms);
        let untold = self.all().filter(|doubt| !doubt.is_told).map(|doubt| doubt.since_ms + PATIENCE_MS);
        read.into_iter().chain(untold).min()
    }

    fn all(&self) -> impl Iterator<Item = &Doubt> {
        self.waiting.iter().chain(self.reading.values())
    }

    /// Reads keys, if it is time. Returns the writes whose callers have waited long enough, each once.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Commands) -> Vec<(IntentId, u64)> {
        if now_ms >= self.read_at_ms {
            self.read_on(out);
        }
        let late = |doubt: &&mut Doubt| !doubt.is_told && now_ms >= doubt.since_ms + PATIENCE_MS;
        let all = self.waiting.iter_mut().chain(self.reading.values_mut());
        let mut told: Vec<_> = all
            .filter(late)
            .map(|doubt| {
                doubt.is_told = true;
                (doubt.write.change.id(), doubt.write.number)
            })
            .collect();
        told.sort_unstable();
        told
    }

    fn read_on(&mut self, out: &mut Commands) {
        while self.reading.len() < READS_MAX
            && let Some(doubt) = self.waiting.pop_front()
        {
            self.reading.insert(out.store_get(&key_of(doubt.write.change.id())), doubt);
        }
    }

    /// An answer of the store.
    pub fn on_reply(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Read {
        let Some(doubt) = self.reading.remove(&Ticket(reply.ticket)) else { return Read::NotMine };
        let there = match reply.status {
            status::DONE => Some(reply.payload),
            status::NOT_FOUND => None,
            _ => return self.again(doubt, now_ms),
        };
        self.read_on(out);
        let Doubt { write, why, .. } = doubt;
        match write.change.value().as_deref() == there {
            true => Read::Has(write),
            false => Read::HasNot(write, why),
        }
    }

    /// The kernel refused a question. Returns whether it is one of this file.
    pub fn on_refused(&mut self, ticket: Ticket, now_ms: u64) -> bool {
        let doubt = self.reading.remove(&ticket);
        doubt.map(|doubt| self.again(doubt, now_ms)).is_some()
    }

    fn again(&mut self, doubt: Doubt, now_ms: u64) -> Read {
        self.read_at_ms = now_ms + AGAIN_MS;
        self.waiting.push_front(doubt);
        Read::Nothing
    }
}
