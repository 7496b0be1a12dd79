//! Changes for the clients of streams, each with a queue of its own.
//!
//! ```text
//!   changes ──publish──> Feed: a queue for each client ──take──> messages of one client
//!                             snapshot of the view ────┘
//! ```
//!
//! In: messages, and the question what comes next for a client. Out: `begin`, the snapshot, `complete`, then each change. A queue that is
//! full is discarded, and its client gets `missed` and a new snapshot. So a slow client costs a bounded amount of memory and delays
//! nobody. It writes to no socket.

use burnet_sdk::view::{Key, Kind, Notice, Record, Snapshot};
use hyper::body::Bytes;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

/// The most clients. Beyond it, a new one is refused.
pub const CLIENTS_MAX: usize = 1_000;

/// Further clients that only the operator's socket may have, so that `burnet events` works on a node with all other clients.
pub const OPERATORS_MAX: usize = 16;

/// The most messages that wait for one client: a burst of a few hundred links that fail together, with their ports, fits in. Beyond it the
/// client misses changes, and gets a new snapshot.
pub const QUEUE_MAX: usize = 1_024;

/// The most messages that a client takes at once. Then other clients have their turn.
const BATCH: usize = 64;

/// A message for clients, in the form of server-sent events. It is made once for all of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// The member `event` of the message.
    pub event: &'static str,
    lines: Bytes,
}

/// What is before the JSON in a server-sent event, besides the name.
const BEFORE: [&str; 2] = ["event: ", "\ndata: "];

/// What is behind it.
const BEHIND: &str = "\n\n";

impl Message {
    /// A message from its members; `event` is added.
    pub fn new(event: &'static str, members: serde_json::Value) -> Arc<Message> {
        let mut all = serde_json::Map::new();
        all.insert("event".to_owned(), event.into());
        if let serde_json::Value::Object(members) = members {
            all.extend(members);
        }
        Message::written(event, |out| serde_json::to_writer(out, &all))
    }

    fn written(
        event: &'static str,
        json: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Arc<Message> {
        let mut lines = [BEFORE[0], event, BEFORE[1]].concat().into_bytes();
        let start = lines.len();
        // Only maps whose keys are no texts can fail.
        if json(&mut lines).is_err() {
            lines.truncate(start);
            lines.extend_from_slice(b"{}");
        }
        lines.extend_from_slice(BEHIND.as_bytes());
        Arc::new(Message { event, lines: Bytes::from(lines) })
    }

    /// The message as a server-sent event.
    pub fn lines(&self) -> &Bytes {
        &self.lines
    }

    /// The message as JSON.
    pub fn json(&self) -> &str {
        let start = BEFORE[0].len() + self.event.len() + BEFORE[1].len();
        let json = self.lines.get(start..self.lines.len() - BEHIND.len()).unwrap_or_default();
        // It was written as JSON, which is UTF-8.
        std::str::from_utf8(json).unwrap_or_default()
    }
}

/// What a message is about: clients choose by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// An object of this kind.
    Object(Kind),
    /// Counters of ports.
    Counters,
    /// An incident.
    Incident,
    /// A slice.
    Slice,
}

impl About {
    /// The subject of this name.
    pub fn named(name: &str) -> Option<About> {
        match name {
            "counters" => Some(About::Counters),
            "incident" => Some(About::Incident),
            "slice" => Some(About::Slice),
            _ => Kind::ALL.iter().find(|kind| kind.word() == name).copied().map(About::Object),
        }
    }
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The subjects.
    pub about: Vec<About>,
    /// Without the objects of the snapshot.
    pub changes_only: bool,
    /// The only slice that the client follows, with its labels. `None`: all slices, without labels.
    pub slice: Option<String>,
}

/// The slices that a client with this interest gets at first, and their labels.
pub type OfSlices<'a> = &'a dyn Fn(&Interest) -> Vec<Arc<Message>>;

/// Identifies a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId(u64);

enum Place {
    Begin,
    /// The snapshot has come as far as this object of this kind.
    Snapshot(usize, Option<Key>),
    Live,
}

struct Client {
    interest: Interest,
    /// The kinds among its subjects.
    kinds: Vec<Kind>,
    queue: VecDeque<Arc<Message>>,
    missed: u64,
    place: Place,
    /// Its connection, if that waits for a message.
    waiting: Option<Waker>,
}

/// The clients of streams.
#[derive(Default)]
pub struct Feed {
    clients: BTreeMap<ClientId, Client>,
    last: u64,
    missed: u64,
}

impl Feed {
    /// Adds a client. `None`: there are as many as there may be, for a client like this one.
    pub fn join(&mut self, interest: Interest, clients_max: usize) -> Option<ClientId> {
        if self.clients.len() >= clients_max {
            return None;
        }
        self.last += 1;
        let id = ClientId(self.last);
        let kind = |about: &About| if let About::Object(kind) = about { Some(*kind) } else { None };
        let kinds = interest.about.iter().filter_map(kind).collect();
        let client =
            Client { interest, kinds, queue: VecDeque::new(), missed: 0, place: Place::Begin, waiting: None };
        self.clients.insert(id, client);
        Some(id)
    }

    /// Its connection has ended.
    pub fn leave(&mut self, id: ClientId) {
        self.clients.remove(&id);
    }

    /// The number of clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// How many messages were left out for slow clients.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Queues a message for each client that wants it. It is made only if there is one.
    pub fn publish(&mut self, about: About, make: impl FnOnce() -> Arc<Message>) {
        let mut make = Some(make);
        let mut message = None;
        for client in self.clients.values_mut().filter(|it| it.interest.about.contains(&about)) {
            if message.is_none() {
                message = make.take().map(|make| make());
            }
            if let Some(message) = &message {
                self.missed += client.push(message);
            }
        }
    }

    /// Queues a message about a slice. Its labels are only for clients that follow this slice alone.
    pub fn publish_of_slice(&mut self, slice: &str, is_label: bool, make: impl FnOnce() -> Arc<Message>) {
        let mut make = Some(make);
        let mut message = None;
        let wants = |client: &&mut Client| match &client.interest.slice {
            Some(only) => only == slice,
            None => !is_label && client.interest.about.contains(&About::Slice),
        };
        for client in self.clients.values_mut().filter(wants) {
            if message.is_none() {
                message = make.take().map(|make| make());
            }
            if let Some(message) = &message {
                self.missed += client.push(message);
            }
        }
    }

    /// The slices of which a client wants labels.
    pub fn wanted_slices(&self) -> BTreeSet<&str> {
        self.clients.values().filter_map(|client| client.interest.slice.as_deref()).collect()
    }

    /// The next messages for a client. Empty: nothing to send now, and the waker is called when there is. A snapshot begins with what `slices`
    /// has for it.
    pub fn take(
        &mut self,
        id: ClientId,
        run: &str,
        (view, slices): (&Snapshot, OfSlices<'_>),
        waker: &Waker,
    ) -> Vec<Arc<Message>> {
        let Some(client) = self.clients.get_mut(&id) else { return Vec::new() };
        let messages = client.take(run, view, slices);
        if messages.is_empty() {
            client.waiting = Some(waker.clone());
        }
        messages
    }
}

impl Client {
    /// Queues the message. Returns how many were left out.
    fn push(&mut self, message: &Arc<Message>) -> u64 {
        let before = self.missed;
        match self.place {
            // The snapshot will show it.
            Place::Begin => self.missed += u64::from(self.missed > 0),
            _ if self.queue.len() >= QUEUE_MAX => {
                self.missed += self.queue.len() as u64 + 1;
                self.queue.clear();
                self.place = Place::Begin;
            }
            _ => self.queue.push_back(Arc::clone(message)),
        }
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
        self.missed - before
    }

    fn take(&mut self, run: &str, view: &Snapshot, slices: OfSlices<'_>) -> Vec<Arc<Message>> {
        // Before more of the snapshot: its objects are newer than what waits here.
        if !self.queue.is_empty() {
            let count = self.queue.len().min(BATCH);
            return self.queue.drain(..count).collect();
        }
        match self.place {
            Place::Live => Vec::new(),
            Place::Begin => {
                let mut messages = self.begin(run);
                if !self.interest.changes_only {
                    messages.extend(slices(&self.interest));
                }
                messages
            }
            Place::Snapshot(at, after) => self.snapshot(at, after, view),
        }
    }

    fn begin(&mut self, run: &str) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        if self.missed > 0 {
            messages.push(Message::new("missed", json!({"count": self.missed})));
            self.missed = 0;
        }
        let mut kinds: Vec<_> = self.kinds.iter().map(|kind| kind.word()).collect();
        if self.interest.about.contains(&About::Slice) {
            kinds.push("slice");
        }
        messages.push(Message::new("begin", json!({"run": run, "kinds": kinds})));
        let at = if self.interest.changes_only { self.kinds.len() } else { 0 };
        self.place = Place::Snapshot(at, None);
        messages
    }

    fn snapshot(&mut self, mut at: usize, mut after: Option<Key>, view: &Snapshot) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        while let Some(kind) = self.kinds.get(at) {
            let room = BATCH - messages.len();
            let records: Vec<_> = behind(view, *kind, after).take(room).collect();
            messages.extend(records.iter().map(|record| put(view.version(), record)));
            after = records.last().map(|record| record.object.key()).or(after);
            if messages.len() == BATCH {
                self.place = Place::Snapshot(at, after);
                return messages;
            }
            (at, after) = (at + 1, None);
        }
        self.place = Place::Live;
        messages.push(Message::new("complete", json!({"version": view.version()})));
        messages
    }
}

/// The objects of a kind in the order of their keys, from the first one or behind this one.
pub fn behind(
    view: &Snapshot,
    kind: Kind,
    after: Option<Key>,
) -> Box<dyn Iterator<Item = &Arc<Record>> + '_> {
    match after {
        None => Box::new(view.records(kind)),
        Some(_) => {
            Box::new(view.records_after(after).take_while(move |record| record.object.key().kind() == kind))
        }
    }
}

/// What clients get for a change that they can see.
pub fn message(version: u64, notice: &Notice) -> Arc<Message> {
    match notice {
        Notice::Visible(record) | Notice::Changed { now: record, .. } => put(version, record),
        Notice::Invisible(record) => {
            Message::new("remove", json!({"version": version, "key": record.object.key().to_string()}))
        }
    }
}

/// Written without a tree of values: a client that begins gets one for each object.
fn put(version: u64, record: &Record) -> Arc<Message> {
    let key = record.object.key();
    Message::written("put", |out| {
        // A key has no character that JSON escapes.
        out.extend_from_slice(
            format!("{{\"event\":\"put\",\"version\":{version},\"key\":\"{key}\",\"object\":").as_bytes(),
        );
        serde_json::to_writer(&mut *out, &record.object)?;
        out.push(b'}');
        Ok(())
    })
}

#[cfg(test)]
mod tests;
