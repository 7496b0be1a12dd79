//! What the service keeps in the service `store`: it is loaded at the start, and each change is written before it counts.
//!
//! ```text
//!   start ──list──> keys ──get, 32 at a time──> kept hosts ──> Loaded
//!   change ──put or delete──> answer ──> Written or Failed
//! ```
//!
//! In: answers of the store. Out: calls to it, and what has come of them. One change is written at a time, so that each is planned on
//! what the one before has left. It decides nothing about hosts.

use crate::engine::Plan;
use crate::kept::{Kept, PREFIX, id_of, key_of};
use burnet_sdk::store::{keys, status};
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use std::collections::{HashMap, VecDeque};
use view::HostId;

/// Values that are read at one time. It is a part of the calls that one app may have open.
const READS_MAX: usize = 32;

/// How long after a failure the store is asked again. It may start later than this service.
pub const RETRY_MS: u64 = 1_000;

/// What the service keeps in the store.
#[derive(Debug, Default)]
pub struct Storage {
    is_loaded: bool,
    listing: Option<Ticket>,
    reading: HashMap<Ticket, HostId>,
    /// At most as many as the store has: the service bounds what it writes.
    to_read: VecDeque<HostId>,
    /// Where the list goes on.
    after: Option<String>,
    writing: Option<(Ticket, Ticket, Plan)>,
    retry_at_ms: Option<u64>,
    /// The store's absence was logged.
    has_complained: bool,
}

/// What an answer of the store means.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// The answer is to no call of this file.
    NotMine,
    /// Nothing yet.
    Nothing,
    /// A host was kept.
    Loaded(HostId, Kept),
    /// A change is in the store, for this caller.
    Written(Ticket, Plan),
    /// A change is not in the store, for this caller and reason.
    Failed(Ticket, String),
    /// Something for the log.
    Complaint(String),
}

impl Storage {
    /// Begins to load.
    pub fn load(&mut self, out: &mut Commands) {
        self.retry_at_ms = None;
        self.listing = Some(out.store_list(PREFIX, self.after.as_deref().unwrap_or_default()));
    }

    /// When the store is asked again.
    pub fn retry_at_ms(&self) -> Option<u64> {
        self.retry_at_ms
    }

    /// Whether a change can be written now.
    ///
    /// # Errors
    /// The store has not answered yet: a sentence for the caller.
    pub fn check_ready(&self) -> Result<(), String> {
        match self.is_loaded {
            true => Ok(()),
            false => Err("the store does not answer: nothing can be kept until it does".to_owned()),
        }
    }

    /// Whether a change is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Writes a change.
    pub fn write(&mut self, caller: Ticket, plan: Plan, out: &mut Commands) {
        let key = key_of(plan.id);
        let ticket = match &plan.kept {
            Some(kept) => out.store_put(&key, &kept.to_bytes()),
            None => out.store_delete(&key),
        };
        self.writing = Some((ticket, caller, plan));
    }

    /// An answer of a service. The kernel's refusals come as [`Storage::refused`].
    pub fn hear(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Heard {
        let ticket = Ticket(reply.ticket);
        if self.listing == Some(ticket) {
            self.listing = None;
            return self.hear_list(reply, now_ms, out);
        }
        if let Some(id) = self.reading.remove(&ticket) {
            return self.hear_value(id, reply, now_ms, out);
        }
        match self.writing.take_if(|(written, _, _)| *written == ticket) {
            Some((_, caller, plan)) => hear_written(caller, plan, reply),
            None => Heard::NotMine,
        }
    }

    /// The kernel refused a call.
    pub fn refused(&mut self, ticket: Ticket, reason: &str, now_ms: u64) -> Heard {
        if self.listing == Some(ticket) || self.reading.contains_key(&ticket) {
            return self.give_up(now_ms, reason);
        }
        match self.writing.take_if(|(written, _, _)| *written == ticket) {
            Some((_, caller, _)) => Heard::Failed(caller, reason.to_owned()),
            None => Heard::NotMine,
        }
    }

    fn hear_list(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Heard {
        if !matches!(reply.status, status::DONE | status::MORE_KEYS) {
            return self.give_up(now_ms, &why(reply));
        }
        let listed: Vec<&str> = keys(reply.payload).collect();
        self.to_read.extend(listed.iter().filter_map(|key| id_of(key)));
        self.after = listed.last().map(|key| (*key).to_owned()).filter(|_| reply.status == status::MORE_KEYS);
        self.go_on(out);
        Heard::Nothing
    }

    fn hear_value(&mut self, id: HostId, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Heard {
        match reply.status {
            status::DONE => {
                self.go_on(out);
                match Kept::from_bytes(reply.payload) {
                    Ok(kept) => Heard::Loaded(id, kept),
                    Err(error) => Heard::Complaint(format!(
                        "the store's key {} is damaged and left out: {error}",
                        key_of(id)
                    )),
                }
            }
            status::NOT_FOUND => {
                self.go_on(out);
                Heard::Nothing
            }
            _ => self.give_up(now_ms, &why(reply)),
        }
    }

    /// Reads further values, then further keys.
    fn go_on(&mut self, out: &mut Commands) {
        while self.reading.len() < READS_MAX
            && let Some(id) = self.to_read.pop_front()
        {
            self.reading.insert(out.store_get(&key_of(id)), id);
        }
        if self.reading.is_empty() {
            match self.after {
                Some(_) => self.load(out),
                None => self.is_loaded = true,
            }
        }
    }

    /// Begins again later, from the first key: what was loaded is loaded once more.
    fn give_up(&mut self, now_ms: u64, why: &str) -> Heard {
        let has_complained = std::mem::replace(&mut self.has_complained, true);
        let writing = self.writing.take();
        *self = Storage {
            retry_at_ms: Some(now_ms + RETRY_MS),
            has_complained: true,
            writing,
            ..Storage::default()
        };
        match has_complained {
            true => Heard::Nothing,
            false => Heard::Complaint(format!("configured hosts and notes are not available: {why}")),
        }
    }
}

fn hear_written(caller: Ticket, plan: Plan, reply: &QueryReply<'_>) -> Heard {
    let is_done = match plan.kept {
        Some(_) => reply.status == status::DONE,
        None => matches!(reply.status, status::DONE | status::NOT_FOUND),
    };
    match is_done {
        true => Heard::Written(caller, plan),
        false => Heard::Failed(caller, why(reply)),
    }
}

/// Why the store did not do it, as a sentence.
fn why(reply: &QueryReply<'_>) -> String {
    let known = match reply.status {
        status::STORE_FULL => "the store is full",
        status::FAILED => "the store's disk failed; the node's log says why",
        query_status::NO_SUCH_SERVICE => "this node has no store",
        query_status::SERVICE_GONE => "the store ended",
        query_status::SERVICE_BUSY => "the store is busy",
        query_status::NO_ANSWER_IN_TIME => "the store did not answer in time",
        _ => "the store refused",
    };
    match String::from_utf8_lossy(reply.payload) {
        reason if reason.is_empty() => known.to_owned(),
        reason => format!("{known}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::in_words;

    fn reply(ticket: Ticket, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket: ticket.0, status, more: false, payload }
    }

    /// A list of keys as the store writes it.
    fn list(keys: &[&str]) -> Vec<u8> {
        let key = |key: &&str| [&(key.len() as u16).to_le_bytes()[..], key.as_bytes()].concat();
        keys.iter().flat_map(key).collect()
    }

    const ONE: &str = "hosts/00:00:00:00:00:01";
    const VALUE: &[u8] = br#"{"annotations":{"a":"b"}}"#;

    #[test]
    fn a_store_that_is_away_is_asked_again_and_complained_of_once() {
        let (mut storage, mut out) = (Storage::default(), Commands::new());
        storage.load(&mut out);
        let ticket = storage.listing.unwrap();
        let heard = storage.hear(&reply(ticket, query_status::NO_SUCH_SERVICE, b""), 5, &mut out);
        let why = "configured hosts and notes are not available: this node has no store";
        assert_eq!(heard, Heard::Complaint(why.to_owned()));
        assert_eq!(storage.retry_at_ms(), Some(5 + RETRY_MS));
        assert!(storage.check_ready().is_err());
        storage.load(&mut out);
        let ticket = storage.listing.unwrap();
        assert_eq!(storage.refused(ticket, "query: not granted", 9), Heard::Nothing);
    }

    #[test]
    fn all_pages_are_loaded_and_damaged_values_are_left_out() {
        let (mut storage, mut out) = (Storage::default(), Commands::new());
        storage.load(&mut out);
        let first = storage.listing.unwrap();
        storage.hear(&reply(first, status::MORE_KEYS, &list(&[ONE, "hosts/x"])), 0, &mut out);
        let get = *storage.reading.keys().next().unwrap();
        let heard = storage.hear(&reply(get, status::DONE, b"{"), 0, &mut out);
        assert!(matches!(heard, Heard::Complaint(_)), "{heard:?}");
        let second = storage.listing.unwrap();
        storage.hear(&reply(second, status::DONE, &list(&["hosts/00:00:00:00:00:02"])), 0, &mut out);
        let get = *storage.reading.keys().next().unwrap();
        let Heard::Loaded(id, kept) = storage.hear(&reply(get, status::DONE, VALUE), 0, &mut out) else {
            panic!()
        };
        assert_eq!((id.to_string().as_str(), kept.annotations["a"].as_str()), ("00:00:00:00:00:02", "b"));
        assert!(storage.check_ready().is_ok());
        let said = in_words(out.frames());
        assert!(said[2].contains("List \"hosts/\""), "{said:?}");
    }

    #[test]
    fn a_change_that_the_store_does_not_take_is_told_with_the_reason() {
        let (mut storage, mut out) = (Storage::default(), Commands::new());
        let id: HostId = "00:00:00:00:00:01".parse().unwrap();
        let plan = |kept: Option<Kept>| Plan { id, kept, is_stored: true, removes: false };
        let mut check = |kept: Option<Kept>, status, expected: Option<&str>| {
            storage.write(Ticket(7), plan(kept.clone()), &mut out);
            let ticket = storage.writing.as_ref().unwrap().0;
            let heard = storage.hear(&reply(ticket, status, b""), 0, &mut out);
            let expected = match expected {
                Some(why) => Heard::Failed(Ticket(7), why.to_owned()),
                None => Heard::Written(Ticket(7), plan(kept)),
            };
            assert_eq!(heard, expected);
            assert!(!storage.is_writing());
        };
        let kept = Some(Kept::from_bytes(VALUE).unwrap());
        check(kept.clone(), status::STORE_FULL, Some("the store is full"));
        check(kept.clone(), status::FAILED, Some("the store's disk failed; the node's log says why"));
        check(kept.clone(), query_status::SERVICE_GONE, Some("the store ended"));
        check(kept, status::DONE, None);
        check(None, status::NOT_FOUND, None);
    }
}
