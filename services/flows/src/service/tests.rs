//! Tests of the shell, with a store in memory: what is stored is what is wanted, whatever is refused.

use super::*;
use crate::plain_rule::plain_rule;
use abi::event::{Caller, write};
use abi::service::{at_home, home_for};
use burnet_sdk::store::status as store_status;
use burnet_sdk::testing::Trial;
use flows_contract::{Batch, Items};

const ALL: &[u8] = br#"{"capabilities":{"flows.write":true,"flows.read":true}}"#;

/// The service, and the calls of the store that are not answered, each with its ticket.
struct Bed {
    trial: Trial<Flows>,
    /// The ticket of the last call. Without switches, the service calls only the store and, once, itself.
    last: u64,
    asked: Vec<(u64, String)>,
    query: u64,
}

/// The tickets of a start: the list of sets, and the question for the service's own number.
const LIST: u64 = 1;
const LAST_OF_A_START: u64 = 2;

impl Bed {
    fn start() -> Bed {
        let trial = Trial::<Flows>::start("{}").unwrap();
        Bed { trial, last: LAST_OF_A_START, asked: Vec::new(), query: 100 }
    }

    /// The store has answered the list: these keys.
    fn listed(keys: &[&str]) -> Bed {
        let mut bed = Bed::start();
        bed.reply(LIST, store_status::DONE, &page(keys));
        bed
    }

    fn note(&mut self, said: Vec<String>) -> Vec<String> {
        for line in said.iter().filter(|line| line.starts_with("ask ")) {
            self.last += 1;
            self.asked.push((self.last, line.clone()));
        }
        said
    }

    fn reply(&mut self, ticket: u64, status: u16, payload: &[u8]) -> Vec<String> {
        // Calls of the store have one worker, whose number is in the ticket.
        let ticket = at_home(home_for("store"), ticket);
        let reply = QueryReply { ticket, status, more: false, payload };
        let said = self.trial.event(|out, sequence| write::query_reply(out, sequence, &reply));
        self.note(said)
    }

    /// The store answers its oldest open call. Returns that call, and what came of it.
    fn answer(&mut self, status: u16) -> (String, String) {
        let (ticket, asked) = self.asked.remove(0);
        (asked, self.reply(ticket, status, b"").join("\n"))
    }

    /// An app's batch. Returns what the service says at once.
    fn batch(&mut self, owner: &str, write: impl FnOnce(&mut Batch)) -> String {
        let mut batch = Batch::new();
        write(&mut batch);
        self.query += 1;
        let caller = Caller { number: 3, name: owner, grant: ALL };
        let (service, form, payload) = (SERVICE, Form::Query, batch.as_bytes());
        let query = Query {
            ticket: self.query,
            caller,
            service,
            form,
            deadline_ms: 1_000,
            credit_bytes: 60 << 10,
            payload,
        };
        let said = self.trial.event(|out, sequence| write::query(out, sequence, &query));
        self.note(said).join("\n")
    }

    fn put(&mut self, owner: &str, name: &str, version: u64, priority: u16, permanent: bool) -> String {
        let options = SetOptions { in_order: false, permanent };
        self.batch(owner, |batch| {
            batch.put(name, version, options, |items| rule(items, priority));
        })
    }

    fn remove(&mut self, owner: &str, name: &str) -> String {
        self.batch(owner, |batch| {
            batch.remove(name, u64::MAX);
        })
    }

    /// The names and versions of the sets that are wanted.
    fn wanted(&self) -> Vec<(String, u64)> {
        let engine = &self.trial.app().engine;
        let of = |(_, owner)| engine.sets().of(owner, "").collect::<Vec<_>>();
        let sets = engine.owners().flat_map(of);
        sets.map(|(_, set)| (set.name.to_string(), set.version)).collect()
    }
}

/// The answer to the list: each key behind its length.
fn page(keys: &[&str]) -> Vec<u8> {
    let length = |key: &str| u16::try_from(key.len()).unwrap().to_le_bytes();
    keys.iter().flat_map(|key| [length(key).as_slice(), key.as_bytes()].concat()).collect()
}

fn rule(items: &mut Items<'_>, priority: u16) {
    items.rule(&plain_rule(1, priority));
}

fn stored(name: &str, version: u64, priority: u16) -> Vec<u8> {
    let mut batch = Batch::new();
    let options = SetOptions { in_order: false, permanent: true };
    batch.put(name, version, options, |items| rule(items, priority));
    batch.as_bytes().to_vec()
}

#[track_caller]
fn refused(said: &str, status: u16, sentence: &str) {
    let refusals = format!("{:?}", sentence.as_bytes());
    let bytes = refusals.trim_matches(['[', ']']);
    assert!(said.contains(&format!("status: {}", status::SOME_REFUSED)) && said.contains(bytes), "{said}");
    // A refusal is the number of the change, its status and its sentence.
    let [low, high] = status.to_le_bytes();
    assert!(said.contains(&format!("[0, 0, 0, 0, {low}, {high}, ")), "{said}");
}

#[track_caller]
fn done(said: &str) {
    assert!(said.contains(&format!("status: {}", status::DONE)), "{said}");
}

#[test]
fn until_the_permanent_sets_are_loaded_no_change_is_taken_that_one_of_them_could_undo() {
    let mut bed = Bed::start();
    let why = "the permanent sets are not loaded from the store yet";
    refused(&bed.remove("app", "s"), status::NOT_STORED, why);
    refused(&bed.put("app", "s", 1, 7, true), status::NOT_STORED, why);
    // Others are not stored.
    done(&bed.put("app", "other", 1, 8, false));
    done(&bed.remove("app", "other"));
    assert!(bed.asked.is_empty());
    bed.reply(LIST, store_status::DONE, &page(&["flows/set/app/other", "flows/set/app/s"]));
    let tickets: Vec<u64> = bed.asked.drain(..).map(|(ticket, _)| ticket).collect();
    bed.reply(tickets[0], store_status::DONE, &stored("other", 3, 8));
    bed.reply(tickets[1], store_status::DONE, &stored("s", 4, 7));
    assert_eq!(bed.wanted(), [("s".to_owned(), 4)], "what was removed does not come back");
    assert!(bed.answer(store_status::DONE).0.contains("Delete \"flows/set/app/other\""));
    assert_eq!(bed.remove("app", "s").lines().count(), 1);
    let (asked, said) = bed.answer(store_status::DONE);
    assert!(asked.contains("Delete \"flows/set/app/s\""), "{asked}");
    done(&said);
    assert!(bed.wanted().is_empty());
}

#[test]
fn a_refused_put_leaves_the_stored_set_alone() {
    let mut bed = Bed::listed(&[]);
    for (owner, name, priority) in [("app", "s", 7), ("other", "t", 8)] {
        bed.put(owner, name, 5, priority, true);
        done(&bed.answer(store_status::DONE).1);
    }
    refused(&bed.put("app", "s", 5, 9, true), status::STALE, "version: set");
    refused(&bed.put("app", "s", 6, 8, true), status::CONFLICT, "is in set");
    assert!(bed.asked.is_empty(), "the store is not asked: {:?}", bed.asked);
    assert_eq!(bed.wanted(), [("s".to_owned(), 5), ("t".to_owned(), 5)]);
}

#[test]
fn a_put_that_is_refused_after_it_was_stored_gives_the_store_the_present_set_back() {
    let mut bed = Bed::listed(&[]);
    bed.put("app", "s", 5, 7, true);
    done(&bed.answer(store_status::DONE).1);
    // Both want the same rule, and neither is there yet when the other is checked.
    bed.put("app", "s", 6, 8, true);
    bed.put("other", "t", 1, 8, false);
    let (_, said) = bed.answer(store_status::DONE);
    assert!(said.contains("status: 1"), "{said}");
    let (asked, _) = bed.answer(store_status::DONE);
    let present = format!("{:?}", stored("s", 5, 7));
    assert!(asked.starts_with("ask store: Put \"flows/set/app/s\"") && asked.contains(&present), "{asked}");
    assert_eq!(bed.wanted(), [("s".to_owned(), 5), ("t".to_owned(), 1)]);
}

#[test]
fn a_correction_that_the_store_does_not_take_is_in_the_log() {
    let mut bed = Bed::listed(&[]);
    bed.put("app", "s", 5, 7, true);
    done(&bed.answer(store_status::DONE).1);
    done(&bed.put("app", "s", 6, 7, false));
    let (asked, said) = bed.answer(store_status::FAILED);
    assert!(asked.contains("Delete"), "{asked}");
    assert!(said.contains("log the stored set \"flows/set/app/s\" is not the present one"), "{said}");
}
