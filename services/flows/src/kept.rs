//! Permanent sets in the service `store`: loaded at start, stored before they are wanted, deleted before they are removed.
//!
//! ```text
//!   start ──list, get──> store ──> sets          permanent put ──put──> store ──done──> set ──> answer
//! ```
//!
//! In: changes, answers of the store. Out: calls of the store, and what is to be done when they have succeeded. Sets of apps that put them
//! again by themselves are not stored. Until all sets are loaded, it takes no change that one of them could undo later.

use crate::sets::Set;
use burnet_sdk::store::{VALUE_BYTES_MAX, status as store_status};
use burnet_sdk::{Commands, Loaded as Value, QueryReply, StoreLoader, Ticket, store_failure};
use flows_contract::{Batch, Change, Items, SetOptions, items, read_batch, status};
use std::collections::{BTreeSet, HashMap};

/// The prefix of the keys. Behind it come the owner and the name of the set.
const PREFIX: &str = "flows/set/";

/// The most changes that wait for the store. One more is refused.
const WAITING_MAX: usize = 64;

/// The most removals before all sets are loaded that are remembered. One more is refused.
const REMOVED_EARLY_MAX: usize = 1_024;

/// After a failure, the sets are loaded again in this time.
const AGAIN_MS: u64 = 1_000;

/// How a change is made.
#[derive(Clone, Debug)]
pub enum Course {
    /// At once: the store has nothing of the set.
    AtOnce,
    /// At once, and then the store forgets the set.
    AtOnceAndForget,
    /// The store gets this first: a batch with one change.
    Stored(Batch),
}

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
    /// The set with this key is stored as it is now, or is not permanent any more. Nobody waits for it.
    Correction(String),
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
    /// The stored set is damaged, or the store did not take a correction: a line for the log.
    Complaint(String),
}

/// The calls of the store.
#[derive(Debug)]
pub struct Kept {
    loader: StoreLoader,
    calls: HashMap<u64, Call>,
    changes: usize,
    /// The keys of sets that were removed before all sets were loaded. An older set with such a key is not wanted.
    removed_early: BTreeSet<String>,
    /// When the sets are loaded again. `None`: no load has failed.
    load_again_ms: Option<u64>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            loader: StoreLoader::new(PREFIX),
            calls: HashMap::new(),
            changes: 0,
            removed_early: BTreeSet::new(),
            load_again_ms: None,
        }
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

    /// Whether all sets are loaded.
    pub fn is_loaded(&self) -> bool {
        self.loader.is_complete()
    }

    /// How a change of an owner's set is made. `known` is the set as it is now.
    ///
    /// # Errors
    /// The status and the sentence for the caller.
    pub fn course(
        &mut self,
        owner: &str,
        change: &Change<'_>,
        known: Option<&Set>,
    ) -> Result<Course, (u16, String)> {
        let was_permanent = known.is_some_and(|set| set.options.permanent);
        let (name, version, is_permanent) = match *change {
            Change::Put { name, version, options, .. } => (name, version, options.permanent),
            Change::Remove { name, version } => (name, version, false),
        };
        // The store must not get a change that the engine refuses as late: the stored set of the present version would be lost.
        let is_late =
            |set: &&Set| (is_permanent || was_permanent) && !set.is_removing && version < set.version;
        if let Some(set) = known.filter(is_late) {
            let why = format!("version: set {name:?} has the version {} already", set.version);
            return Err((status::STALE, why));
        }
        if !self.is_loaded() && !was_permanent {
            self.check_early(&key(owner, name), change, known)?;
        }
        Ok(match *change {
            Change::Put { name, version, options, items } if is_permanent => {
                Course::Stored(one_put(name, version, options, items))
            }
            Change::Remove { name, version } if was_permanent => Course::Stored(one_removal(name, version)),
            _ if was_permanent => Course::AtOnceAndForget,
            _ => Course::AtOnce,
        })
    }

    /// The store may have a set of this name that is not loaded yet.
    fn check_early(
        &mut self,
        key: &str,
        change: &Change<'_>,
        known: Option<&Set>,
    ) -> Result<(), (u16, String)> {
        match change {
            // If a stored set is older, it is forgotten when it is loaded.
            Change::Put { options, .. } if !options.permanent => Ok(()),
            Change::Remove { .. } if known.is_some() && self.removed_early.len() < REMOVED_EARLY_MAX => {
                self.removed_early.insert(key.to_owned());
                Ok(())
            }
            _ => {
                let why = "the permanent sets are not loaded from the store yet: try again in a moment";
                Err((status::NOT_STORED, why.to_owned()))
            }
        }
    }

    /// Whether a set was removed before it was loaded.
    pub fn was_removed_early(&self, owner: &str, name: &str) -> bool {
        self.removed_early.contains(&key(owner, name))
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

    /// A set is not permanent any more.
    pub fn forget(&mut self, owner: &str, name: &str, out: &mut Commands) {
        self.correct(owner, name, None, out);
    }

    /// The store has a change that was refused in the end. It gets back what is wanted: the present set if that is permanent, or nothing.
    pub fn correct(&mut self, owner: &str, name: &str, present: Option<&Set>, out: &mut Commands) {
        let key = key(owner, name);
        let present = present.filter(|set| set.options.permanent && !set.is_removing);
        let body = present.and_then(|set| Some((set, set.bodies.first()?)));
        let ticket: Ticket = match body {
            Some((set, body)) => {
                out.store_put(&key, one_put(name, set.version, set.options, &body.bytes).as_bytes())
            }
            None => out.store_delete(&key),
        };
        self.calls.insert(ticket.0, Call::Correction(key));
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
        // A set that is removed need not have been stored.
        let is_done = matches!(reply.status, store_status::DONE | store_status::NOT_FOUND);
        Some(match self.calls.remove(&reply.ticket)? {
            Call::Correction(_) if is_done => Answered::Nothing,
            Call::Correction(key) => {
                let why = store_failure(reply);
                Answered::Complaint(format!("the stored set {key:?} is not the present one: {why}"))
            }
            Call::Change(delayed) => {
                self.changes -= 1;
                if is_done {
                    return Some(Answered::Stored(delayed));
                }
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
        (None, _) => Answered::Complaint(format!("the stored set {key:?} has no owner and is left out")),
        (_, Err(why)) => {
            Answered::Complaint(format!("the stored set {key:?} is damaged and left out: {why}"))
        }
    }
}

/// A batch with one permanent put.
fn one_put(name: &str, version: u64, options: SetOptions, bytes: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(name, version, options, |into: &mut Items<'_>| {
        for (_, item) in items(bytes) {
            into.item(&item);
        }
    });
    batch
}

/// A batch with one removal.
fn one_removal(name: &str, version: u64) -> Batch {
    let mut batch = Batch::new();
    batch.remove(name, version);
    batch
}
