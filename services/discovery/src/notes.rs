//! Annotations in the service `store`: loaded at the start, and each change is written before it counts.
//!
//! ```text
//!   start ──list──> keys ──get──> notes of each object
//!   change ──put or delete──> answer of the store ──> the caller's answer
//! ```
//!
//! In: answers of the store, and changes. Out: calls to it, and what has come of them. One change is written at a time, so that each is
//! made to what the one before has left. It knows no object.

use burnet_sdk::store::{keys, status};
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use std::collections::{HashMap, VecDeque};
use view::{Annotations, Key};

/// What the service's keys in the store begin with. `needs.toml` requests it.
const PREFIX: &str = "discovery/notes/";

/// Values that are read at one time, and changes that wait: a part of the calls that an app may have open. One more is refused.
const READS_MAX: usize = 32;
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
#[derive(Debug, Default)]
pub struct Notes {
    is_loaded: bool,
    listing: Option<Ticket>,
    reading: HashMap<Ticket, Key>,
    to_read: VecDeque<Key>,
    after: Option<String>,
    writing: Option<(Ticket, Ticket, Key, Annotations)>,
    waiting: VecDeque<Wanted>,
}

impl Notes {
    /// Loads what is not loaded yet. To be called at the start, and again once a second: the store can start later.
    pub fn load(&mut self, out: &mut Commands) {
        if !self.is_loaded && self.listing.is_none() && self.reading.is_empty() {
            self.listing = Some(out.store_list(PREFIX, self.after.as_deref().unwrap_or_default()));
        }
    }

    /// A change waits for its turn.
    ///
    /// # Errors
    /// Too many wait, or the store is silent: a sentence for the caller.
    pub fn want(&mut self, wanted: Wanted) -> Result<(), String> {
        if !self.is_loaded {
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
        let ticket = Ticket(reply.ticket);
        if self.listing.take_if(|listing| *listing == ticket).is_some() {
            self.hear_list(reply, out);
            return Heard::Nothing;
        }
        if let Some(key) = self.reading.remove(&ticket) {
            self.read_on(out);
            let notes = serde_json::from_slice(reply.payload).ok().filter(|_| reply.status == status::DONE);
            return notes.map_or(Heard::Nothing, |notes| Heard::Loaded(key, notes));
        }
        match self.writing.take_if(|(writing, ..)| *writing == ticket) {
            None => Heard::Nothing,
            Some((_, caller, key, notes)) => match reply.status {
                status::DONE => Heard::Written(caller, key, notes),
                // It was to be deleted, and is not there.
                status::NOT_FOUND if notes.is_empty() => Heard::Written(caller, key, notes),
                other => Heard::Failed(caller, why(other, reply.payload)),
            },
        }
    }

    /// The kernel refused a call to the store.
    pub fn refused(&mut self, ticket: Ticket, reason: &str) -> Heard {
        self.listing.take_if(|listing| *listing == ticket);
        self.reading.remove(&ticket);
        match self.writing.take_if(|(writing, ..)| *writing == ticket) {
            Some((_, caller, ..)) => Heard::Failed(caller, reason.to_owned()),
            None => Heard::Nothing,
        }
    }

    fn hear_list(&mut self, reply: &QueryReply<'_>, out: &mut Commands) {
        if !matches!(reply.status, status::DONE | status::MORE_KEYS) {
            return;
        }
        let listed: Vec<&str> = keys(reply.payload).collect();
        self.to_read.extend(listed.iter().filter_map(|key| key.strip_prefix(PREFIX)?.parse::<Key>().ok()));
        self.after = listed.last().filter(|_| reply.status == status::MORE_KEYS).map(|key| (*key).to_owned());
        self.read_on(out);
    }

    fn read_on(&mut self, out: &mut Commands) {
        while self.reading.len() < READS_MAX
            && let Some(key) = self.to_read.pop_front()
        {
            self.reading.insert(out.store_get(&format!("{PREFIX}{key}")), key);
        }
        if self.reading.is_empty() {
            self.is_loaded = self.after.is_none();
            self.load(out);
        }
    }
}

fn why(status: u16, payload: &[u8]) -> String {
    let said = String::from_utf8_lossy(payload).into_owned();
    match status {
        query_status::NO_SUCH_SERVICE if said.is_empty() => {
            "this node has no store: name a state folder".to_owned()
        }
        _ if said.is_empty() => format!("the store answered with status {status}"),
        _ => said,
    }
}
