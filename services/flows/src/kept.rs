//! Permanent sets in the service `store`: loaded at start, stored before they are wanted, deleted before they are removed.
//!
//! ```text
//!   start ──list, get──> store ──> sets          permanent put ──put──> store ──done──> set ──> answer
//! ```
//!
//! In: answers of the store. Out: calls of the store, and what is to be done when they have succeeded. Sets of apps that put them again
//! by themselves are not stored.

use burnet_sdk::Commands;
use burnet_sdk::store::{VALUE_BYTES_MAX, keys, status as store_status};
use flows_contract::{Batch, Change, Items, SetOptions, items, read_batch, status};
use std::collections::{HashMap, VecDeque};

/// The prefix of the keys. Behind it come the owner and the name of the set.
const PREFIX: &str = "flows/set/";

/// The most sets that are loaded at once: the node lets an app have 256 open calls.
const LOADS_MAX: usize = 64;

/// The most changes that wait for the store. One more is refused.
const WAITING_MAX: usize = 64;

/// After a failure, the sets are asked for again in this time.
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
    List,
    Load(String),
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
#[derive(Debug, Default)]
pub struct Kept {
    calls: HashMap<u64, Call>,
    to_load: VecDeque<String>,
    changes: usize,
    /// When the list is asked for again. `None`: it was received.
    list_again_ms: Option<u64>,
}

/// The key of a set in the store.
fn key(owner: &str, name: &str) -> String {
    format!("{PREFIX}{owner}/{name}")
}

impl Kept {
    /// Asks for the sets.
    pub fn load(&mut self, out: &mut Commands) {
        let ticket = out.store_list(PREFIX, "");
        self.calls.insert(ticket.0, Call::List);
    }

    /// Asks again if the store did not answer.
    pub fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        if self.list_again_ms.is_some_and(|at_ms| now_ms >= at_ms) {
            self.list_again_ms = None;
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
    pub fn on_answer(
        &mut self,
        ticket: u64,
        answered: u16,
        payload: &[u8],
        now_ms: u64,
        out: &mut Commands,
    ) -> Option<Answered> {
        let is_done = matches!(answered, store_status::DONE | store_status::MORE_KEYS);
        Some(match self.calls.remove(&ticket)? {
            Call::List if is_done => {
                self.to_load.extend(keys(payload).map(str::to_owned));
                if let (store_status::MORE_KEYS, Some(last)) = (answered, self.to_load.back()) {
                    let ticket = out.store_list(PREFIX, last);
                    self.calls.insert(ticket.0, Call::List);
                }
                self.load_some(out);
                Answered::Nothing
            }
            Call::List => {
                self.list_again_ms = Some(now_ms + AGAIN_MS);
                Answered::Nothing
            }
            Call::Load(key) => {
                self.load_some(out);
                self.loaded(&key, answered, payload, now_ms)
            }
            Call::Change(delayed) => {
                self.changes -= 1;
                match answered {
                    // A set that is removed need not have been stored.
                    store_status::DONE | store_status::NOT_FOUND => Answered::Stored(delayed),
                    _ => {
                        let why = String::from_utf8_lossy(payload);
                        let why =
                            format!("permanent: the store did not take the change (status {answered}) {why}");
                        Answered::Refused(delayed, status::NOT_STORED, why)
                    }
                }
            }
            Call::Forget => Answered::Nothing,
        })
    }

    fn load_some(&mut self, out: &mut Commands) {
        let under_way = self.calls.values().filter(|call| matches!(call, Call::Load(_))).count();
        for _ in under_way..LOADS_MAX {
            let Some(key) = self.to_load.pop_front() else { return };
            let ticket = out.store_get(&key);
            self.calls.insert(ticket.0, Call::Load(key));
        }
    }

    fn loaded(&mut self, key: &str, answered: u16, payload: &[u8], now_ms: u64) -> Answered {
        let owner =
            key.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/')).map(|(owner, _)| owner.to_owned());
        match (answered, owner) {
            (store_status::DONE, Some(owner)) => match read_batch(payload) {
                Ok(_) => Answered::Loaded(Loaded { owner, batch: payload.to_vec() }),
                Err(why) => {
                    Answered::Damaged(format!("the stored set {key:?} is damaged and left out: {why}"))
                }
            },
            (store_status::NOT_FOUND, _) => Answered::Nothing,
            _ => {
                self.list_again_ms = Some(now_ms + AGAIN_MS);
                Answered::Nothing
            }
        }
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
