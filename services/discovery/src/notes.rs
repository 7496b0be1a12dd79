//! Annotations in the service `store`: loaded at the start, and each change is written before it counts.
//!
//! ```text
//!   start ──list──> keys ──get──> notes of each object
//!   change ──put or delete──> answer of the store ──> the caller's answer
//! ```
//!
//! In: answers of the store, and changes. Out: calls to it, and what has come of them. One change is written at a time, so that each is
//! made to what the one before has left. It knows no object.

use burnet_sdk::store::status;
use burnet_sdk::{Commands, Loaded, QueryReply, StoreLoader, Ticket, store_failure};
use std::collections::VecDeque;
use view::{Annotations, Key};

/// What the service's keys in the store begin with. `needs.toml` requests it.
const PREFIX: &str = "discovery/notes/";

/// Changes that wait for the store. One more is refused.
const WAITING_MAX: usize = 64;

/// A change that a caller wants.
#[derive(Debug)]
pub struct Wanted {
    /// The caller's query.
    pub caller: Ticket,
    /// The object.
    pub key: Key,
    /// Notes to set, and with `None` to remove.
    pub change: Vec<(String, Option<String>)>,
}

/// What has come of an answer.
#[derive(Debug)]
pub enum Heard {
    /// Nothing for others.
    Nothing,
    /// Notes that were kept before.
    Loaded(Key, Annotations),
    /// A change is in the store.
    Written(Ticket, Key, Annotations),
    /// A change is not in the store, for this reason.
    Failed(Ticket, String),
}

/// The notes of this service in the store.
#[derive(Debug)]
pub struct Notes {
    loader: StoreLoader,
    writing: Option<(Ticket, Ticket, Key, Annotations)>,
    waiting: VecDeque<Wanted>,
}

impl Default for Notes {
    fn default() -> Notes {
        Notes { loader: StoreLoader::new(PREFIX), writing: None, waiting: VecDeque::new() }
    }
}

impl Notes {
    /// Loads what is not loaded yet. To be called at the start, and again once a second: the store can start later.
    pub fn load(&mut self, out: &mut Commands) {
        self.loader.start(out);
    }

    /// A change waits for its turn.
    ///
    /// # Errors
    /// Too many wait, or the store is silent: a sentence for the caller.
    pub fn want(&mut self, wanted: Wanted) -> Result<(), String> {
        if !self.loader.is_complete() {
            return Err("the store does not answer: annotations cannot be kept until it does. It runs on a node with a state \
                        folder"
                .to_owned());
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(format!("{WAITING_MAX} changes wait for the store already: try again"));
        }
        self.waiting.push_back(wanted);
        Ok(())
    }

    /// The next change, if none is being written.
    pub fn next(&mut self) -> Option<Wanted> {
        if self.writing.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Writes the notes of an object.
    pub fn write(&mut self, caller: Ticket, key: Key, notes: Annotations, out: &mut Commands) {
        let name = format!("{PREFIX}{key}");
        let ticket = match notes.is_empty() {
            true => out.store_delete(&name),
            // Only maps whose keys are no texts can fail.
            false => out.store_put(&name, &serde_json::to_vec(&notes).unwrap_or_default()),
        };
        self.writing = Some((ticket, caller, key, notes));
    }

    /// An answer of the store.
    pub fn hear(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> Heard {
        match self.loader.on_reply(reply, out) {
            Loaded::NotMine => {}
            Loaded::Value(key, value) => {
                let key = key.strip_prefix(PREFIX).and_then(|key| key.parse::<Key>().ok());
                let notes = key.zip(serde_json::from_slice(value).ok());
                return notes.map_or(Heard::Nothing, |(key, notes)| Heard::Loaded(key, notes));
            }
            Loaded::Nothing | Loaded::Failed(_) => return Heard::Nothing,
        }
        let ticket = Ticket(reply.ticket);
        match self.writing.take_if(|(writing, ..)| *writing == ticket) {
            None => Heard::Nothing,
            Some((_, caller, key, notes)) => match reply.status {
                status::DONE => Heard::Written(caller, key, notes),
                // It was to be deleted, and is not there.
                status::NOT_FOUND if notes.is_empty() => Heard::Written(caller, key, notes),
                _ => Heard::Failed(caller, store_failure(reply)),
            },
        }
    }

    /// The kernel refused a call to the store.
    pub fn refused(&mut self, ticket: Ticket, reason: &str) -> Heard {
        if self.loader.on_refusal(ticket, reason) != Loaded::NotMine {
            return Heard::Nothing;
        }
        match self.writing.take_if(|(writing, ..)| *writing == ticket) {
            Some((_, caller, ..)) => Heard::Failed(caller, reason.to_owned()),
            None => Heard::Nothing,
        }
    }
}
