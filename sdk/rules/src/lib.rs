//! The wanted rules of an app, kept in the switches by the service `flows`.
//!
//! ```text
//!   app: want(name, items), unwant(name) ──> [ RuleSets: what differs ] ──batches──> flows
//!   app <──Told: installed, failed, complaint── [ RuleSets ] <──stream of states── flows
//! ```
//!
//! In: the sets that the app wants now, the time, answers and states of the service. Out: queries to the service, and what the app may
//! want to tell its operator. An app says what it wants as often as it likes: only what differs is sent. When the service restarts, the sets
//! are put again. Sets of an earlier run that the app does not want any more are removed. It never reads the network view.

mod notes;
pub mod traffic;
pub mod tree;

pub use crate::notes::Notes;

use burnet_sdk::stream::Update;
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use flows_contract::{Batch, Failure, Follow, Phase, SERVICE, SetOptions, SetState, read_refusals, status};
pub use flows_contract::{FailureKind, Group, Item, Items, Meter, Rule};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most sets of one app. A further one is not wanted, and the app is told.
pub const SETS_MAX: usize = 16_384;

/// The most sets that the service can report: those of this run and of an earlier one. Further ones are not noted.
const THERE_MAX: usize = 2 * SETS_MAX;

/// The longest set in bytes, below the bound of a batch. A longer one is not wanted, and the app is told.
pub const SET_BYTES_MAX: usize = 90 << 10;

/// The most queries under way. The rest waits for an answer or a tick.
const QUERIES_MAX: usize = 16;

/// How long after its end the stream of states is opened again.
const RETRY_MS: u64 = 1_000;

/// How long after a refusal a set is put again: what stood in its way may be gone.
const REFUSED_RETRY_MS: u64 = 30_000;

/// How many ticks after the view is complete sets of an earlier run are removed. Until then the app puts its own sets.
const SETTLE_TICKS: u32 = 10;

/// The bits of a version below the start time of the run: a million changes a millisecond.
const VERSION_BITS: u32 = 20;

/// Something that the app may want to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Every switch has confirmed the set.
    Installed(String),
    /// A switch cannot have a part of the set.
    Failed(String, Failure),
    /// The service did not take something; a sentence for the operator.
    Complaint(String),
}

#[derive(Debug)]
struct Wanted {
    items: Vec<u8>,
    version: u64,
    is_put: bool,
}

#[derive(Debug)]
enum Stream {
    Open(Ticket),
    AgainAt(u64),
}

/// The sets that an app wants.
#[derive(Debug)]
pub struct RuleSets {
    last_version: u64,
    wanted: BTreeMap<String, Wanted>,
    /// The versions of the sets that the service has.
    there: BTreeMap<String, u64>,
    /// Sets to put or to remove.
    differing: BTreeSet<String>,
    is_complete: bool,
    /// Ticks with a complete view.
    settled: u32,
    stream: Stream,
    under_way: HashMap<Ticket, Vec<String>>,
    /// Sets that the service refused, and when they are put again.
    refused: (BTreeSet<String>, u64),
    /// A query was not taken. The operator was told, until the next one is taken.
    has_complained: bool,
    told: Vec<Told>,
}

impl RuleSets {
    /// Nothing is wanted yet. `started_ms`: when the app started, in milliseconds since 1970. It makes the versions of this run later
    /// than those of all runs before.
    pub fn new(started_ms: u64) -> RuleSets {
        RuleSets {
            last_version: started_ms << VERSION_BITS,
            wanted: BTreeMap::new(),
            there: BTreeMap::new(),
            differing: BTreeSet::new(),
            is_complete: false,
            settled: 0,
            stream: Stream::AgainAt(0),
            under_way: HashMap::new(),
            refused: (BTreeSet::new(), 0),
            has_complained: false,
            told: Vec::new(),
        }
    }

    /// Wants a set with these items, in place of what it was. Nothing happens if it is the same. A set without items is not wanted.
    pub fn want(&mut self, name: &str, write: impl FnOnce(&mut Items<'_>)) {
        let mut items = Vec::new();
        write(&mut Items::new(&mut items));
        if self.wanted.get(name).is_some_and(|wanted| wanted.items == items) {
            return;
        }
        if items.is_empty() {
            return self.unwant(name);
        }
        if items.len() > SET_BYTES_MAX || self.wanted.len() >= SETS_MAX && !self.wanted.contains_key(name) {
            let bytes = items.len();
            let why = format!(
                "the rules of {name} are not installed: {bytes} bytes in {} sets; at most {SET_BYTES_MAX} bytes and {SETS_MAX} sets can be",
                self.wanted.len()
            );
            return self.told.push(Told::Complaint(why));
        }
        self.last_version += 1;
        self.wanted.insert(name.to_owned(), Wanted { items, version: self.last_version, is_put: false });
        self.differing.insert(name.to_owned());
    }

    /// Wants a set no more.
    pub fn unwant(&mut self, name: &str) {
        if self.wanted.remove(name).is_some() {
            self.differing.insert(name.to_owned());
        }
    }

    /// The names of the wanted sets that begin like this.
    pub fn names<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'s str> {
        let from = self.wanted.range(prefix.to_owned()..).map(|(name, _)| name.as_str());
        from.take_while(move |name| name.starts_with(prefix))
    }

    /// Sends what differs, as far as there is room.
    pub fn send(&mut self, out: &mut Commands) {
        while !self.differing.is_empty() && self.under_way.len() < QUERIES_MAX {
            let (mut batch, mut names) = (Batch::new(), Vec::new());
            while let Some(name) = self.differing.first().cloned() {
                if !self.add_to(&mut batch, &name) {
                    break;
                }
                self.differing.remove(&name);
                names.push(name);
            }
            if names.is_empty() {
                return;
            }
            let ticket = out.query(SERVICE, batch.as_bytes());
            self.under_way.insert(ticket, names);
        }
    }

    /// Whether the batch had room.
    fn add_to(&mut self, batch: &mut Batch, name: &str) -> bool {
        match self.wanted.get_mut(name) {
            Some(wanted) => {
                wanted.is_put = true;
                batch.put(name, wanted.version, SetOptions::default(), |out| {
                    copy_items(&wanted.items, out);
                })
            }
            None => {
                self.last_version += 1;
                batch.remove(name, self.last_version)
            }
        }
    }

    /// Time has passed. For an app whose sets follow from the network view: a few ticks after the view is complete, sets of an earlier run are
    /// removed.
    pub fn on_tick_with_view(&mut self, now_ms: u64, out: &mut Commands) {
        self.settled = if out.view_is_current() { self.settled.saturating_add(1) } else { 0 };
        self.on_tick(now_ms, self.settled >= SETTLE_TICKS, out);
    }

    /// Time has passed. `is_settled`: the app wants all that it will want, so other sets of it are of an earlier run.
    pub fn on_tick(&mut self, now_ms: u64, is_settled: bool, out: &mut Commands) {
        if matches!(self.stream, Stream::AgainAt(at_ms) if at_ms <= now_ms) {
            self.stream = Stream::Open(out.follow(SERVICE, &Follow::STATES.to_bytes()));
            self.is_complete = false;
        }
        if let Stream::AgainAt(at_ms @ u64::MAX) = &mut self.stream {
            *at_ms = now_ms + RETRY_MS;
        }
        if is_settled && self.is_complete {
            let unwanted = self.there.keys().filter(|name| !self.wanted.contains_key(*name));
            self.differing.extend(unwanted.cloned());
        }
        if now_ms >= self.refused.1 {
            self.refused.1 = now_ms + REFUSED_RETRY_MS;
            self.differing.append(&mut self.refused.0);
        }
        self.send(out);
    }

    /// An update of a stream. `false`: it is another stream.
    pub fn on_stream(&mut self, stream: Ticket, update: &Update<'_>, out: &mut Commands) -> bool {
        if !matches!(self.stream, Stream::Open(ticket) if ticket == stream) {
            return false;
        }
        match *update {
            Update::Begin { .. } => {
                self.is_complete = false;
                self.there.clear();
            }
            Update::Entry { key, value } | Update::Put { key, value, .. } => self.note(key, value),
            Update::Removed { key, .. } => {
                self.there.remove(&*String::from_utf8_lossy(key));
            }
            Update::Complete { .. } => {
                self.is_complete = true;
                self.put_again();
                self.send(out);
            }
            // The next tick says when to open it again.
            Update::Ended { .. } => self.stream = Stream::AgainAt(u64::MAX),
            Update::Missed { .. } => {}
        }
        true
    }

    fn note(&mut self, key: &[u8], value: &[u8]) {
        let name = String::from_utf8_lossy(key).into_owned();
        match SetState::from_bytes(value) {
            Ok(state) => {
                let is_present = self.wanted.get(&name).is_some_and(|wanted| wanted.version == state.version);
                match state.phase {
                    Phase::Installed if is_present => self.told.push(Told::Installed(name.clone())),
                    Phase::Failed(failure) if is_present => {
                        self.told.push(Told::Failed(name.clone(), failure))
                    }
                    _ => {}
                }
                if self.there.len() < THERE_MAX || self.there.contains_key(&name) {
                    self.there.insert(name, state.version);
                }
            }
            Err(why) => self.told.push(Told::Complaint(why)),
        }
    }

    /// The service has none of what was put before it restarted.
    fn put_again(&mut self) {
        let RuleSets { wanted, there, differing, .. } = self;
        let is_missing = |(name, wanted): &(&String, &Wanted)| {
            wanted.is_put && there.get(*name).is_none_or(|version| *version < wanted.version)
        };
        differing.extend(wanted.iter().filter(is_missing).map(|(name, _)| name.clone()));
    }

    /// An answer. `false`: it is to another call.
    pub fn on_reply(&mut self, reply: &QueryReply<'_>, out: &mut Commands) -> bool {
        let Some(names) = self.under_way.remove(&Ticket(reply.ticket)) else { return false };
        match reply.status {
            status::DONE => self.has_complained = false,
            status::SOME_REFUSED => {
                self.has_complained = false;
                self.on_refusals(&names, reply.payload);
            }
            query_status::NOT_GRANTED | status::BAD_QUESTION => {
                self.told.push(Told::Complaint(String::from_utf8_lossy(reply.payload).into_owned()));
            }
            _ => {
                let why = String::from_utf8_lossy(reply.payload).into_owned();
                return self.take_back(names, &why);
            }
        }
        self.send(out);
        true
    }

    /// The kernel refused a command. `false`: it is another one.
    pub fn on_refusal(&mut self, ticket: Ticket, reason: &str) -> bool {
        if matches!(self.stream, Stream::Open(stream) if stream == ticket) {
            self.stream = Stream::AgainAt(u64::MAX);
            self.complain(reason);
            return true;
        }
        match self.under_way.remove(&ticket) {
            Some(names) => self.take_back(names, reason),
            None => false,
        }
    }

    /// These are sent again at the next tick.
    fn take_back(&mut self, names: Vec<String>, why: &str) -> bool {
        self.differing.extend(names);
        self.complain(why);
        true
    }

    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            self.told.push(Told::Complaint(format!("the service flows takes no rules now: {why}")));
        }
    }

    fn on_refusals(&mut self, names: &[String], payload: &[u8]) {
        let refusals = match read_refusals(payload) {
            Ok(refusals) => refusals,
            Err(why) => return self.told.push(Told::Complaint(why)),
        };
        for refusal in refusals {
            let name = usize::try_from(refusal.number).ok().and_then(|at| names.get(at));
            // A set that is to be removed may be gone already. A set that was put twice is there.
            let is_about =
                |name: &&String| refusal.status != status::STALE && self.wanted.contains_key(*name);
            if let Some(name) = name.filter(is_about) {
                self.told.push(Told::Complaint(format!("{name}: {}", refusal.reason)));
                self.refused.0.insert(name.clone());
            }
        }
    }

    /// What the app was not told yet.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }
}

/// Copies items that [`Items`] wrote.
pub fn copy_items(items: &[u8], out: &mut Items<'_>) {
    flows_contract::items(items).for_each(|(_, item)| {
        out.item(&item);
    });
}

#[cfg(test)]
mod tests;
