//! Loads all values that an app has in the service `store`.
//!
//! ```text
//!   start ──list──> keys ──get, 32 at a time──> Loaded::Value, one by one ──> is_complete
//! ```
//!
//! In: answers of the store. Out: calls to it, and the values. A failure ends the load: the app starts it again later, and
//! receives all values again. It never writes, and does not know what a key means.

use crate::commands::{Commands, Ticket};
use abi::event as query_status;
use abi::event::QueryReply;
use std::collections::{HashMap, VecDeque};
use store_contract::{keys, status};

/// Values that are read at one time: a part of the 256 calls that an app may have open at one worker.
const READS_MAX: usize = 32;

/// The load of all keys with one prefix.
#[derive(Debug)]
pub struct StoreLoader {
    prefix: &'static str,
    listing: Option<Ticket>,
    reading: HashMap<Ticket, String>,
    /// One page of the list. The next page is requested when all of these were read.
    to_read: VecDeque<String>,
    /// The last key of the page, if more keys follow.
    after: Option<String>,
    is_complete: bool,
}

/// The meaning of an answer for the load.
#[derive(Debug, PartialEq, Eq)]
pub enum Loaded<'r> {
    /// The answer is to another call.
    NotMine,
    /// Nothing for the app.
    Nothing,
    /// A key, and its value.
    Value(String, &'r [u8]),
    /// The load failed, for this reason. Nothing is under way any more.
    Failed(String),
}

impl StoreLoader {
    /// A load that has not started. All keys begin with the prefix.
    pub fn new(prefix: &'static str) -> StoreLoader {
        StoreLoader {
            prefix,
            listing: None,
            reading: HashMap::new(),
            to_read: VecDeque::new(),
            after: None,
            is_complete: false,
        }
    }

    /// Starts from the first key, unless the load is under way or complete.
    pub fn start(&mut self, out: &mut Commands) {
        if !self.is_complete && self.listing.is_none() && self.reading.is_empty() {
            self.list(out);
        }
    }

    /// Whether every value was received.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// An answer to a call of this app.
    pub fn on_reply<'r>(&mut self, reply: &QueryReply<'r>, out: &mut Commands) -> Loaded<'r> {
        let ticket = Ticket(reply.ticket);
        if self.listing.take_if(|listing| *listing == ticket).is_some() {
            return match reply.status {
                status::DONE | status::MORE_KEYS => self.on_page(reply, out),
                _ => self.fail(failure(reply)),
            };
        }
        let Some(key) = self.reading.remove(&ticket) else { return Loaded::NotMine };
        match reply.status {
            status::DONE => {
                self.read_on(out);
                Loaded::Value(key, reply.payload)
            }
            // It was deleted after the list was made.
            status::NOT_FOUND => {
                self.read_on(out);
                Loaded::Nothing
            }
            _ => self.fail(failure(reply)),
        }
    }

    /// The kernel refused a call of this app.
    pub fn on_refusal(&mut self, ticket: Ticket, reason: &str) -> Loaded<'static> {
        match self.listing == Some(ticket) || self.reading.contains_key(&ticket) {
            true => self.fail(reason.to_owned()),
            false => Loaded::NotMine,
        }
    }

    fn list(&mut self, out: &mut Commands) {
        self.listing = Some(out.store_list(self.prefix, self.after.as_deref().unwrap_or_default()));
    }

    fn on_page(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> Loaded<'static> {
        self.to_read.extend(keys(reply.payload).map(str::to_owned));
        self.after = self.to_read.back().cloned().filter(|_| reply.status == status::MORE_KEYS);
        self.read_on(out);
        Loaded::Nothing
    }

    fn read_on(&mut self, out: &mut Commands) {
        while self.reading.len() < READS_MAX
            && let Some(key) = self.to_read.pop_front()
        {
            self.reading.insert(out.store_get(&key), key);
        }
        if self.reading.is_empty() {
            match self.after {
                Some(_) => self.list(out),
                None => self.is_complete = true,
            }
        }
    }

    fn fail(&mut self, reason: String) -> Loaded<'static> {
        *self = StoreLoader::new(self.prefix);
        Loaded::Failed(reason)
    }
}

/// Why the store did not do what an app asked, as a sentence.
pub fn failure(reply: &QueryReply<'_>) -> String {
    let known = match reply.status {
        status::STORE_FULL => "the store is full",
        status::FAILED => "the store cannot keep anything now",
        status::MAYBE_DONE => "the store failed while it wrote",
        query_status::NO_SUCH_SERVICE => "this node has no store: it needs a state folder",
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

    fn reply(ticket: Ticket, status: u16, payload: &[u8]) -> QueryReply<'_> {
        QueryReply { ticket: ticket.0, status, more: false, payload }
    }

    /// A list of keys as the store writes it.
    fn list(keys: &[&str]) -> Vec<u8> {
        let key = |key: &&str| [&(key.len() as u16).to_le_bytes()[..], key.as_bytes()].concat();
        keys.iter().flat_map(key).collect()
    }

    fn started() -> (StoreLoader, Commands) {
        let (mut loader, mut out) = (StoreLoader::new("a/"), Commands::new());
        loader.start(&mut out);
        (loader, out)
    }

    /// The ticket of the read of this key.
    fn read_of(loader: &StoreLoader, key: &str) -> Ticket {
        *loader.reading.iter().find(|(_, reading)| *reading == key).unwrap().0
    }

    #[test]
    fn all_pages_are_loaded() {
        let (mut loader, mut out) = started();
        let page = list(&["a/1", "a/2"]);
        let first = loader.listing.unwrap();
        assert_eq!(loader.on_reply(&reply(first, status::MORE_KEYS, &page), &mut out), Loaded::Nothing);
        let (one, two) = (read_of(&loader, "a/1"), read_of(&loader, "a/2"));
        let value = Loaded::Value("a/1".to_owned(), b"x");
        assert_eq!(loader.on_reply(&reply(one, status::DONE, b"x"), &mut out), value);
        assert!(loader.listing.is_none(), "the page is not read yet");
        assert_eq!(loader.on_reply(&reply(two, status::NOT_FOUND, b""), &mut out), Loaded::Nothing);
        assert!(!loader.is_complete());
        let second = loader.listing.unwrap();
        loader.on_reply(&reply(second, status::DONE, b""), &mut out);
        assert!(loader.is_complete());
        let said = crate::testing::in_words(out.frames());
        assert!(said[0].contains("List \"a/\""), "{said:?}");
        loader.start(&mut out);
        assert_eq!(loader.listing, None, "it is not loaded twice");
    }

    #[test]
    fn a_failed_read_ends_the_load_and_never_counts_as_an_empty_value() {
        let (mut loader, mut out) = started();
        let first = loader.listing.unwrap();
        loader.on_reply(&reply(first, status::DONE, &list(&["a/1", "a/2"])), &mut out);
        let (one, two) = (read_of(&loader, "a/1"), read_of(&loader, "a/2"));
        let failed = Loaded::Failed("the store ended".to_owned());
        assert_eq!(loader.on_reply(&reply(one, query_status::SERVICE_GONE, b""), &mut out), failed);
        assert_eq!(loader.on_reply(&reply(two, status::DONE, b"x"), &mut out), Loaded::NotMine);
        assert!(!loader.is_complete());
        loader.start(&mut out);
        let again = loader.listing.unwrap();
        assert_eq!(loader.on_refusal(again, "query"), Loaded::Failed("query".to_owned()));
        assert_eq!(loader.on_refusal(again, "query"), Loaded::NotMine);
    }

    #[test]
    fn reads_are_bounded() {
        let (mut loader, mut out) = started();
        let keys: Vec<String> = (0..100).map(|number| format!("a/{number}")).collect();
        let first = loader.listing.unwrap();
        let page = list(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        loader.on_reply(&reply(first, status::DONE, &page), &mut out);
        assert_eq!(loader.reading.len(), READS_MAX);
    }
}
