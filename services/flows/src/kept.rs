//! Permanent sets in the service `store`: loaded at start, stored before they are wanted, deleted before they are removed.
//!
//! ```text
//!   start ──list, get──> store ──> sets          permanent put ──put──> store ──done──> set ──> answer
//! ```
//!
//! In: answers of the store. Out: calls of the store, and what is to be done when they have succeeded. Sets of apps that put them again
//! by themselves are not stored.

use burnet_sdk::store::{VALUE_BYTES_MAX, status as store_status};
use burnet_sdk::{Commands, Loaded as Value, QueryReply, StoreLoader, store_failure};
use flows_contract::{Batch, Change, Items, SetOptions, items, read_batch, status};
use std::collections::HashMap;

/// The prefix of the keys. Behind it come the owner and the name of the set.
const PREFIX: &str = "flows/set/";

/// The most changes that wait for the store. One more is refused.
const WAITING_MAX: usize = 64;

/// After a failure, the sets are loaded again in this time.
const AGAIN_MS: u64 = 1_000;

/// A change of a permanent set that waits for the store.
#[derive(Clone, Debug)]
pub struct Delayed {
    /// The call that is answered when it is done.
    pub query: u64,
    /// The number of the change in the call's batch.
    pub number: u32,
    /// The number of the owner.
    pub owner: u32,
    /// The name of the owner.
    pub owner_name: String,
    /// The change: a batch with one change.
    pub change: Batch,
}

/// What a call of the store is for.
#[derive(Debug)]
enum Call {
    Change(Box<Delayed>),
    /// A set is not permanent any more. Nobody waits for it.
    Forget,
}

/// A permanent set that was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The name of the owner.
    pub owner: String,
    /// A batch that puts it.
    pub batch: Vec<u8>,
}

/// What an answer of the store leads to.
#[derive(Debug)]
pub enum Answered {
    /// Nothing to do.
    Nothing,
    /// This set is wanted.
    Loaded(Loaded),
    /// This change can be made.
    Stored(Box<Delayed>),
    /// This change was not stored, for the reason.
    Refused(Box<Delayed>, u16, String),
    /// The stored set is damaged: a line for the log.
    Damaged(String),
}

/// The calls of the store.
#[derive(Debug)]
pub struct Kept {
    loader: StoreLoader,
    calls: HashMap<u64, Call>,
    changes: usize,
    /// When the sets are loaded again. `None`: no load has failed.
    load_again_ms: Option<u64>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { loader: StoreLoader::new(PREFIX), calls: HashMap::new(), changes: 0, load_again_ms: None }
    }
}

/// The key of a set in the store.
fn key(owner: &str, name: &str) -> String {
    format!("{PREFIX}{owner}/{name}")
}

impl Kept {
    /// Asks for the sets.
    pub fn load(&mut self, out: &mut Commands) {
        self.loader.start(out);
    }

    /// Asks again if the store did not answer.
    pub fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        if self.load_again_ms.is_some_and(|at_ms| now_ms >= at_ms) {
            self.load_again_ms = None;
            self.load(out);
        }
    }

    /// Stores a set, or deletes it from the store. The change is made when the store has answered.
    ///
    /// # Errors
    /// The status and the sentence for the caller.
    pub fn change(&mut self, delayed: Delayed, out: &mut Commands) -> Result<(), (u16, String)> {
        let bytes = delayed.change.as_bytes();
        let changes = read_batch(bytes).map_err(|why| (status::BAD_QUESTION, why))?;
        let ticket = match changes.first() {
            _ if self.changes >= WAITING_MAX => {
                return Err((
                    status::FULL,
                    format!("permanent: {WAITING_MAX} changes wait for the store; try again in a moment"),
                ));
            }
            Some(Change::Put { .. }) if bytes.len() > VALUE_BYTES_MAX => {
                let why = format!(
                    "permanent: the set has {} bytes, and the store keeps {VALUE_BYTES_MAX}; use several sets",
                    bytes.len()
                );
                return Err((status::BAD_QUESTION, why));
            }
            Some(Change::Put { name, .. }) => out.store_put(&key(&delayed.owner_name, name), bytes),
            Some(Change::Remove { name, .. }) => out.store_delete(&key(&delayed.owner_name, name)),
            None => return Ok(()),
        };
        self.changes += 1;
        self.calls.insert(ticket.0, Call::Change(Box::new(delayed)));
        Ok(())
    }

    /// A set is not permanent any more, or was refused after it was stored.
    pub fn forget(&mut self, owner: &str, name: &str, out: &mut Commands) {
        let ticket = out.store_delete(&key(owner, name));
        self.calls.insert(ticket.0, Call::Forget);
    }

    /// The store has answered, or the call was refused. `None`: the call is not one of these.
    pub fn on_answer(&mut self, reply: &QueryReply<'_>, now_ms: u64, out: &mut Commands) -> Option<Answered> {
        match self.loader.on_reply(reply, out) {
            Value::NotMine => {}
            Value::Nothing => return Some(Answered::Nothing),
            Value::Value(key, value) => return Some(loaded(&key, value)),
            Value::Failed(_) => {
                self.load_again_ms = Some(now_ms + AGAIN_MS);
                return Some(Answered::Nothing);
            }
        }
        let Call::Change(delayed) = self.calls.remove(&reply.ticket)? else { return Some(Answered::Nothing) };
        self.changes -= 1;
        Some(match reply.status {
            // A set that is removed need not have been stored.
            store_status::DONE | store_status::NOT_FOUND => Answered::Stored(delayed),
            _ => {
                let why = format!("permanent: the change was not stored: {}", store_failure(reply));
                Answered::Refused(delayed, status::NOT_STORED, why)
            }
        })
    }
}

fn loaded(key: &str, value: &[u8]) -> Answered {
    let owner =
        key.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/')).map(|(owner, _)| owner.to_owned());
    match (owner, read_batch(value)) {
        (Some(owner), Ok(_)) => Answered::Loaded(Loaded { owner, batch: value.to_vec() }),
        (None, _) => Answered::Damaged(format!("the stored set {key:?} has no owner and is left out")),
        (_, Err(why)) => Answered::Damaged(format!("the stored set {key:?} is damaged and left out: {why}")),
    }
}

/// A batch with one permanent put.
pub fn one_put(name: &str, version: u64, options: SetOptions, bytes: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(name, version, options, |into: &mut Items<'_>| {
        for (_, item) in items(bytes) {
            into.item(&item);
        }
    });
    batch
}

/// A batch with one removal.
pub fn one_removal(name: &str, version: u64) -> Batch {
    let mut batch = Batch::new();
    batch.remove(name, version);
    batch
}
