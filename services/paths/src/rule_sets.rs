//! The sets of rules in the service `flows`: puts and removals in batches, and the stream of their states.
//!
//! ```text
//!   effects ──> batches ──queries──> flows        flows ──stream of states──> events for the engine
//! ```
//!
//! In: effects of the engine, answers and states of the service. Out: queries, and events for the engine. A batch that is not taken is
//! reported, so that the engine puts its sets again.

use crate::engine::REFUSED_AGAIN_S;
use crate::virtual_links::is_of_link;
use burnet_sdk::stream::Update;
use burnet_sdk::{Commands, QueryReply, Ticket, query_status};
use flows_contract::{Batch, Follow, Items, SERVICE, SetOptions, SetState, read_refusals, status};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// How long after its end the stream is opened again, and how long after a failure sets are put again.
const RETRY_MS: u64 = 500;

/// A batch is closed at this size, so that the first rules leave while others are still computed.
const BATCH_BYTES: usize = 24 << 10;

/// The most bytes of queries that are not answered. The kernel keeps some 190 KiB of queries for a service, and an app may have no more of
/// them than it leaves free. Beyond that it answers that the service is busy, and the sets would have to be put again later.
const UNDER_WAY_BYTES_MAX: usize = 72 << 10;

/// The most bytes under way at the start of a burst. The bound doubles with each answer, up to [`UNDER_WAY_BYTES_MAX`]. The service
/// sends no rule before it has read all that waits for it. So the first rules of a burst leave early only if little waits.
const UNDER_WAY_BYTES_FIRST: usize = 2 << 10;

/// If more bytes than this wait, the engine compiles nothing more until the service has answered.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// How long nothing is sent after the service was busy. It doubles up to [`RETRY_MS`] while the service stays busy.
const BUSY_MS: u64 = 1;

/// How many refused changes are tried again at one time. If one of them is taken, the cause is gone, and the next ones follow at once.
const REFUSED_AT_ONCE: usize = 64;

/// The first part of the names of sets. The number of the intent follows.
const PREFIX: &str = "intent/";

/// The same for one direction of a slice's virtual link.
const PREFIX_OF_LINKS: &str = "virtual-link/";

/// The name of an intent's set, or of a virtual link's.
pub fn name_of(id: u64) -> String {
    let prefix = if is_of_link(id) { PREFIX_OF_LINKS } else { PREFIX };
    format!("{prefix}{id}")
}

fn id_of(name: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(name).ok()?;
    let number = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix(PREFIX_OF_LINKS))?;
    number.parse().ok().filter(|id| name_of(*id) == name)
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// The state of a set. `None`: it is gone.
    State(u64, Option<SetState>),
    /// These sets exist, and no others.
    Complete(BTreeSet<u64>),
    /// A set was not put or not removed, because the service did not take the query.
    NotTaken(u64),
    /// A set was refused, for this reason.
    Refused(u64, String),
    /// A set does not fit into a batch.
    TooLong(u64),
    /// Something for the log.
    Complaint(String),
}

#[derive(Debug)]
enum Stream {
    Open(Ticket),
    AgainAt(u64),
}

/// A batch, and the sets of its changes.
#[derive(Debug)]
struct Closed {
    bytes: Vec<u8>,
    sets: Vec<u64>,
}

/// The sets of rules.
#[derive(Debug)]
pub struct RuleSets {
    stream: Stream,
    /// The sets of the snapshot that is coming.
    there: Option<BTreeSet<u64>>,
    batch: Batch,
    in_batch: Vec<u64>,
    /// Closed batches that wait until earlier ones are answered: little more than [`WAITING_BYTES_MAX`].
    waiting: VecDeque<Closed>,
    waiting_bytes: usize,
    /// The queries that are under way, with at most [`UNDER_WAY_BYTES_MAX`] or one batch.
    under_way: HashMap<Ticket, Closed>,
    under_way_bytes: usize,
    /// How many bytes may be under way now.
    window_bytes: usize,
    /// Until when nothing is sent, and how long the next pause is.
    pause: (u64, u64),
    /// Sets to put again at a time.
    again: Option<(u64, BTreeSet<u64>)>,
    /// Sets whose change was refused, for a reason that can pass: at most as many as there are intents.
    refused: BTreeSet<u64>,
    /// The last one that was tried again: they take turns.
    last_tried: u64,
    /// Those that are being tried again.
    tried: BTreeSet<u64>,
    try_at_ms: u64,
    /// What the engine is told next.
    pub heard: Vec<Heard>,
}

impl RuleSets {
    /// Nothing is put yet.
    pub fn new(now_ms: u64) -> RuleSets {
        RuleSets {
            stream: Stream::AgainAt(now_ms),
            there: None,
            batch: Batch::new(),
            in_batch: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            under_way: HashMap::new(),
            under_way_bytes: 0,
            window_bytes: UNDER_WAY_BYTES_FIRST,
            pause: (0, BUSY_MS),
            again: None,
            refused: BTreeSet::new(),
            last_tried: 0,
            tried: BTreeSet::new(),
            try_at_ms: 0,
            heard: Vec::new(),
        }
    }

    /// Puts the rules of an intent or a virtual link, in this version. `in_order`: packets may be on the way.
    pub fn put(&mut self, id: u64, version: u64, in_order: bool, write: impl Fn(&mut Items<'_>)) {
        let (name, options) = (name_of(id), SetOptions { in_order, permanent: false });
        if !self.batch.put(&name, version, options, &write) {
            self.close();
            if !self.batch.put(&name, version, options, &write) {
                return self.heard.push(Heard::TooLong(id));
            }
        }
        self.added(id);
    }

    /// A change is in the batch.
    fn added(&mut self, id: u64) {
        self.in_batch.push(id);
        if self.batch.as_bytes().len() >= BATCH_BYTES {
            self.close();
        }
    }

    /// Removes the rules of an intent.
    pub fn remove(&mut self, id: u64, version: u64) {
        if !self.batch.remove(&name_of(id), version) {
            self.close();
            self.batch.remove(&name_of(id), version);
        }
        self.added(id);
    }

    /// Closes the batch. It waits for its turn.
    fn close(&mut self) {
        if !self.batch.is_empty() {
            let bytes = self.batch.as_bytes().to_vec();
            self.waiting_bytes += bytes.len();
            self.waiting.push_back(Closed { bytes, sets: std::mem::take(&mut self.in_batch) });
            self.batch.clear();
        }
    }

    /// Whether so much waits that nothing more should be put.
    pub fn is_crowded(&self) -> bool {
        self.waiting_bytes > WAITING_BYTES_MAX
    }

    /// Sends what the service has room for. The rest is sent after its answers.
    pub fn send(&mut self, now_ms: u64, out: &mut Commands) {
        self.close();
        if now_ms < self.pause.0 {
            return;
        }
        if self.under_way.is_empty() && self.waiting_bytes <= UNDER_WAY_BYTES_FIRST {
            self.window_bytes = UNDER_WAY_BYTES_FIRST;
        }
        let window_bytes = self.window_bytes;
        let has_room = |all: usize, next: &mut Closed| all == 0 || all + next.bytes.len() <= window_bytes;
        while let Some(closed) = self.waiting.pop_front_if(|next| has_room(self.under_way_bytes, next)) {
            self.waiting_bytes -= closed.bytes.len();
            self.under_way_bytes += closed.bytes.len();
            let ticket = out.query(SERVICE, &closed.bytes);
            self.under_way.insert(ticket, closed);
        }
    }

    /// A query that is over.
    fn take_under_way(&mut self, ticket: Ticket) -> Option<Closed> {
        let closed = self.under_way.remove(&ticket)?;
        self.under_way_bytes -= closed.bytes.len();
        Some(closed)
    }

    /// The kernel keeps as many queries for the service as it can. The batch is sent again soon.
    fn on_busy(&mut self, closed: Closed, now_ms: u64) {
        self.waiting_bytes += closed.bytes.len();
        self.waiting.push_front(closed);
        if now_ms >= self.pause.0 {
            self.pause = (now_ms + self.pause.1, (self.pause.1 * 2).min(RETRY_MS));
        }
    }

    /// Opens the stream again, and tells which sets to put again.
    pub fn on_time(&mut self, now_ms: u64, out: &mut Commands) {
        if matches!(self.stream, Stream::AgainAt(at_ms) if at_ms <= now_ms) {
            self.stream = Stream::Open(out.follow(SERVICE, &Follow::STATES.to_bytes()));
        }
        if let Some((_, sets)) = self.again.take_if(|(at_ms, _)| *at_ms <= now_ms) {
            self.heard.extend(sets.into_iter().map(Heard::NotTaken));
        }
        if now_ms >= self.try_at_ms && !self.refused.is_empty() {
            let behind = self.refused.range(self.last_tried.saturating_add(1)..);
            let next: Vec<u64> = behind.chain(&self.refused).copied().take(REFUSED_AT_ONCE).collect();
            self.last_tried = next.last().copied().unwrap_or_default();
            self.refused.retain(|id| !next.contains(id));
            self.tried = next.into_iter().collect();
            self.heard.extend(self.tried.iter().copied().map(Heard::NotTaken));
            self.try_at_ms = now_ms + REFUSED_AGAIN_S * 1_000;
        }
    }

    /// The service refused a change. Reasons such as a grant or another set can pass.
    fn on_set_refused(&mut self, id: u64, why: String, now_ms: u64) {
        if self.refused.is_empty() && self.tried.is_empty() {
            self.try_at_ms = now_ms + REFUSED_AGAIN_S * 1_000;
        }
        self.tried.remove(&id);
        self.refused.insert(id);
        self.heard.push(Heard::Refused(id, why));
    }

    /// The service took changes. If one was refused before, the others are tried again at once.
    fn on_taken(&mut self, sets: &[u64], now_ms: u64) {
        if !self.tried.is_empty() && sets.iter().any(|id| self.tried.contains(id)) {
            self.tried.retain(|id| !sets.contains(id));
            self.try_at_ms = now_ms;
        }
    }

    /// When to call [`RuleSets::on_time`].
    pub fn next_due_ms(&self) -> Option<u64> {
        let stream = match self.stream {
            Stream::Open(_) => None,
            Stream::AgainAt(at_ms) => Some(at_ms),
        };
        let pause = Some(self.pause.0).filter(|_| !self.waiting.is_empty() && self.under_way.is_empty());
        let again = self.again.as_ref().map(|(at_ms, _)| *at_ms);
        let refused = Some(self.try_at_ms).filter(|_| !self.refused.is_empty());
        stream.into_iter().chain(again).chain(pause).chain(refused).min()
    }

    /// An answer. Says whether it is to a call of this file.
    pub fn on_reply(&mut self, reply: &QueryReply<'_>, now_ms: u64) -> bool {
        let Some(closed) = self.take_under_way(Ticket(reply.ticket)) else { return false };
        if reply.status == query_status::SERVICE_BUSY {
            self.on_busy(closed, now_ms);
            return true;
        }
        let sets = closed.sets;
        self.pause.1 = BUSY_MS;
        self.window_bytes = (self.window_bytes * 2).min(UNDER_WAY_BYTES_MAX);
        match reply.status {
            status::DONE => self.on_taken(&sets, now_ms),
            status::SOME_REFUSED => self.on_some_refused(sets, reply.payload, now_ms),
            status::NOT_GRANTED => {
                let why = String::from_utf8_lossy(reply.payload);
                sets.into_iter().for_each(|id| self.on_set_refused(id, why.clone().into_owned(), now_ms));
            }
            status::BAD_QUESTION => {
                let why = String::from_utf8_lossy(reply.payload).into_owned();
                self.heard.extend(sets.into_iter().map(|id| Heard::Refused(id, why.clone())));
            }
            _ => self.put_again(sets, now_ms),
        }
        true
    }

    fn on_some_refused(&mut self, mut sets: Vec<u64>, payload: &[u8], now_ms: u64) {
        let refusals = match read_refusals(payload) {
            Ok(refusals) => refusals,
            Err(why) => return self.heard.push(Heard::Complaint(format!("flows: {why}"))),
        };
        let mut refused = BTreeSet::new();
        for refusal in refusals {
            let at = usize::try_from(refusal.number).ok();
            let Some(id) = at.and_then(|at| sets.get(at)).copied() else { continue };
            refused.insert(id);
            match refusal.status {
                status::NOT_FOUND => self.heard.push(Heard::State(id, None)),
                // Sets that are not loaded yet are a matter of moments.
                status::STALE | status::NOT_STORED => self.put_again([id], now_ms),
                status::BAD_QUESTION => self.heard.push(Heard::Refused(id, refusal.reason)),
                _ => self.on_set_refused(id, refusal.reason, now_ms),
            }
        }
        sets.retain(|id| !refused.contains(id));
        self.on_taken(&sets, now_ms);
    }

    fn put_again(&mut self, sets: impl IntoIterator<Item = u64>, now_ms: u64) {
        let (_, again) = self.again.get_or_insert_with(|| (now_ms + RETRY_MS, BTreeSet::new()));
        again.extend(sets);
    }

    /// The kernel refused a call. Says whether it is one of this file.
    pub fn on_refused(&mut self, ticket: Ticket, reason: &str, now_ms: u64) -> bool {
        if matches!(self.stream, Stream::Open(open) if open == ticket) {
            self.stream = Stream::AgainAt(now_ms + RETRY_MS);
            self.heard.push(Heard::Complaint(format!("no states of rules from flows: {reason}")));
            return true;
        }
        let Some(closed) = self.take_under_way(ticket) else { return false };
        self.put_again(closed.sets, now_ms);
        true
    }

    /// An update of a stream. Says whether it is the one of this file.
    pub fn on_stream(&mut self, stream: Ticket, update: &Update<'_>, now_ms: impl FnOnce() -> u64) -> bool {
        if !matches!(self.stream, Stream::Open(open) if open == stream) {
            return false;
        }
        match *update {
            Update::Begin { .. } => self.there = Some(BTreeSet::new()),
            Update::Entry { key, value } | Update::Put { key, value, .. } => self.on_state(key, value),
            Update::Removed { key, .. } => {
                if let Some(id) = id_of(key) {
                    self.there.as_mut().map(|there| there.remove(&id));
                    self.heard.push(Heard::State(id, None));
                }
            }
            Update::Complete { .. } => self.heard.extend(self.there.take().map(Heard::Complete)),
            Update::Missed { .. } => {}
            Update::Ended { .. } => self.stream = Stream::AgainAt(now_ms() + RETRY_MS),
        }
        true
    }

    fn on_state(&mut self, key: &[u8], value: &[u8]) {
        let Some(id) = id_of(key) else { return };
        if let Some(there) = &mut self.there {
            there.insert(id);
        }
        self.heard.push(match SetState::from_bytes(value) {
            Ok(state) => Heard::State(id, Some(state)),
            Err(why) => Heard::Complaint(format!("flows: {why}")),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(sets: &mut RuleSets, id: u64, bytes: usize) {
        sets.waiting_bytes += bytes;
        sets.waiting.push_back(Closed { bytes: vec![0; bytes], sets: vec![id] });
    }

    fn answer(sets: &mut RuleSets) {
        let ticket = sets.under_way.keys().next().expect("one is under way").0;
        assert!(sets.on_reply(&QueryReply { ticket, status: status::DONE, more: false, payload: &[] }, 0));
    }

    #[test]
    fn a_burst_begins_with_one_batch_and_has_more_under_way_with_each_answer() {
        let (mut sets, mut out) = (RuleSets::new(0), Commands::new());
        (0..20).for_each(|id| wait(&mut sets, id, 8 << 10));
        let mut under_way = Vec::new();
        while !sets.waiting.is_empty() {
            sets.send(0, &mut out);
            under_way.push(sets.under_way.len());
            answer(&mut sets);
        }
        assert_eq!(under_way[..6], [1, 1, 1, 2, 4, 8]);
        while !sets.under_way.is_empty() {
            answer(&mut sets);
        }
        // The next burst begins small again.
        sets.send(0, &mut out);
        (0..3).for_each(|id| wait(&mut sets, id, 8 << 10));
        sets.send(0, &mut out);
        assert_eq!(sets.under_way.len(), 1);
    }

    /// The service has refused the changes of these sets. Tells which sets are tried again until a time.
    fn tried(sets: &mut RuleSets, until_ms: u64) -> Vec<u64> {
        let mut out = Commands::new();
        let mut tried = Vec::new();
        while let Some(at_ms) = sets.next_due_ms().filter(|at_ms| *at_ms <= until_ms) {
            sets.on_time(at_ms, &mut out);
            tried.extend(sets.heard.drain(..).filter_map(|heard| match heard {
                Heard::NotTaken(id) => Some(id),
                _ => None,
            }));
        }
        tried
    }

    fn send_and_answer(sets: &mut RuleSets, ids: &[u64], status: u16, now_ms: u64) {
        let closed = Closed { bytes: vec![0], sets: ids.to_vec() };
        sets.waiting_bytes += 1;
        sets.waiting.push_back(closed);
        sets.send(now_ms, &mut Commands::new());
        let ticket = sets.under_way.keys().next().expect("one is under way").0;
        let reply = QueryReply { ticket, status, more: false, payload: b"flows.write: no" };
        assert!(sets.on_reply(&reply, now_ms));
    }

    #[test]
    fn what_was_refused_is_tried_again_a_few_at_a_time_until_it_is_taken() {
        let mut sets = RuleSets::new(0);
        sets.stream = Stream::Open(Ticket(999));
        let all: Vec<u64> = (1..=100).collect();
        send_and_answer(&mut sets, &all, status::NOT_GRANTED, 5);
        assert_eq!(sets.heard.drain(..).count(), 100);
        let again_ms = REFUSED_AGAIN_S * 1_000;
        assert!(tried(&mut sets, again_ms).is_empty());
        let first = tried(&mut sets, 5 + again_ms);
        assert_eq!(first, (1..=64).collect::<Vec<_>>());
        send_and_answer(&mut sets, &first, status::NOT_GRANTED, 6 + again_ms);
        sets.heard.clear();
        let second = tried(&mut sets, 6 + 2 * again_ms);
        assert_eq!(second.len(), 64);
        assert!((65..=100).all(|id| second.contains(&id)), "they take turns");
        // The cause is gone: the others do not wait.
        send_and_answer(&mut sets, &second, status::DONE, 7 + 2 * again_ms);
        assert_eq!(tried(&mut sets, 7 + 2 * again_ms).len(), 36);
        assert!(sets.refused.is_empty());
        // What is wrong stays wrong.
        send_and_answer(&mut sets, &[7], status::BAD_QUESTION, 8 + 2 * again_ms);
        assert!(tried(&mut sets, u64::MAX).is_empty());
    }
}
