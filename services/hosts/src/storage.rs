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
use burnet_sdk::store::status;
use burnet_sdk::{Commands, Loaded, QueryReply, StoreLoader, Ticket, store_failure};
use view::HostId;

/// How long after a failure the store is asked again. It may start later than this service.
pub const RETRY_MS: u64 = 1_000;

/// What the service keeps in the store.
#[derive(Debug)]
pub struct Storage {
    loader: StoreLoader,
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

impl Default for Storage {
    fn default() -> Storage {
        Storage { loader: StoreLoader::new(PREFIX), writing: None, retry_at_ms: None, has_complained: false }
    }
}

impl Storage {
    /// Begins to load.
    pub fn load(&mut self, out: &mut Commands) {
        self.retry_at_ms = None;
        self.loader.start(out);
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
        match self.loader.is_complete() {
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
        match self.loader.on_reply(reply, out) {
            Loaded::NotMine => {}
            Loaded::Nothing => return Heard::Nothing,
            Loaded::Value(key, value) => return read(&key, value),
            Loaded::Failed(why) => return self.retry_later(now_ms, &why),
        }
        let ticket = Ticket(reply.ticket);
        match self.writing.take_if(|(written, _, _)| *written == ticket) {
            Some((_, caller, plan)) => hear_written(caller, plan, reply),
            None => Heard::NotMine,
        }
    }

    /// The kernel refused a call.
    pub fn refused(&mut self, ticket: Ticket, reason: &str, now_ms: u64) -> Heard {
        if let Loaded::Failed(why) = self.loader.on_refusal(ticket, reason) {
            return self.retry_later(now_ms, &why);
        }
        match self.writing.take_if(|(written, _, _)| *written == ticket) {
            Some((_, caller, _)) => Heard::Failed(caller, reason.to_owned()),
            None => Heard::NotMine,
        }
    }

    /// The next load begins at the first key: what was loaded is loaded once more.
    fn retry_later(&mut self, now_ms: u64, why: &str) -> Heard {
        self.retry_at_ms = Some(now_ms + RETRY_MS);
        match std::mem::replace(&mut self.has_complained, true) {
            true => Heard::Nothing,
            false => Heard::Complaint(format!("configured hosts and notes are not available: {why}")),
        }
    }
}

fn read(key: &str, value: &[u8]) -> Heard {
    let Some(id) = id_of(key) else { return Heard::Nothing };
    match Kept::from_bytes(value) {
        Ok(kept) => Heard::Loaded(id, kept),
        Err(error) => Heard::Complaint(format!("the store's key {key} is damaged and left out: {error}")),
    }
}

fn hear_written(caller: Ticket, plan: Plan, reply: &QueryReply<'_>) -> Heard {
    let is_done = match plan.kept {
        Some(_) => reply.status == status::DONE,
        None => matches!(reply.status, status::DONE | status::NOT_FOUND),
    };
    match is_done {
        true => Heard::Written(caller, plan),
        false => Heard::Failed(caller, store_failure(reply)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::query_status;

    fn reply(ticket: Ticket, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket: ticket.0, status, more: false, payload }
    }

    const VALUE: &[u8] = br#"{"annotations":{"a":"b"}}"#;

    #[test]
    fn a_store_that_is_away_is_asked_again_and_complained_of_once() {
        let mut storage = Storage::default();
        let why = "configured hosts and notes are not available: away";
        assert_eq!(storage.retry_later(5, "away"), Heard::Complaint(why.to_owned()));
        assert_eq!(storage.retry_at_ms(), Some(5 + RETRY_MS));
        assert!(storage.check_ready().is_err());
        assert_eq!(storage.retry_later(9, "away"), Heard::Nothing);
    }

    #[test]
    fn a_damaged_value_is_left_out_with_its_key() {
        assert!(matches!(read("hosts/00:00:00:00:00:01", VALUE), Heard::Loaded(..)));
        assert_eq!(read("hosts/x", VALUE), Heard::Nothing);
        let Heard::Complaint(line) = read("hosts/00:00:00:00:00:01", b"{") else { panic!() };
        assert!(line.contains("hosts/00:00:00:00:00:01"), "{line}");
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
        check(kept.clone(), status::FAILED, Some("the store cannot keep anything now"));
        check(kept.clone(), query_status::SERVICE_GONE, Some("the store ended"));
        check(kept, status::DONE, None);
        check(None, status::NOT_FOUND, None);
    }
}
