//! The network view of an app: the SDK follows the streams of the services, and the app gets a view and its changes.
//!
//! ```text
//!   streams of discovery, hosts, … ──> [ ViewFollower: records ──> tables ] ──> batch of notices, snapshot ──> App::on_view
//!                 ^                                │
//!                 └──── opened again, ever later ──┘
//! ```
//!
//! In: updates of streams, and the time. Out: batches, and which streams to open. While a service is away, its part of the view
//! stays as it was. It never decides what a change means.

use crate::stream::Update;
use abi::event;
use std::collections::BTreeMap;
use view::{Batch, Change, Key, Kind, OBJECTS_MAX, Record, Snapshot, Tables};

/// The time after which a stream that ended is opened again for the first time. It doubles with each failure.
const RETRY_FIRST_MS: u64 = 500;

/// The longest time until a stream is opened again. The attempts go on, as the service can be installed or granted later.
const RETRY_MAX_MS: u64 = 8_000;

/// The view of an app, and the streams that it comes from.
#[derive(Debug, Default)]
pub struct ViewFollower {
    tables: Tables,
    /// One for each service that publishes a kind that the app follows.
    streams: Vec<ServiceStream>,
    now_ms: u64,
}

#[derive(Debug)]
struct ServiceStream {
    service: &'static str,
    kinds: Vec<Kind>,
    state: State,
    /// Attempts since the last complete snapshot.
    failures: u32,
}

#[derive(Debug)]
enum State {
    Waiting { until_ms: u64 },
    Open(Box<Open>),
}

/// An open stream.
#[derive(Debug)]
struct Open {
    ticket: u64,
    /// The service's snapshot until it is complete. The tables get it as one update.
    snapshot: Option<BTreeMap<Key, Record>>,
    is_complete: bool,
    /// Changes of the present part. The tables get them as one update.
    changes: Vec<Change>,
    /// Whether damage was reported. One report for each stream is enough.
    has_complained: bool,
}

/// The question of a follow request.
fn question(kinds: &[Kind]) -> Vec<u8> {
    let words: Vec<_> = kinds.iter().map(|kind| format!("{:?}", kind.word())).collect();
    format!("{{\"kinds\":[{}]}}", words.join(",")).into_bytes()
}

/// These kinds, and all that their objects need to be visible.
pub(crate) fn with_needs(kinds: &[Kind]) -> Vec<Kind> {
    let mut wanted = Vec::new();
    // A kind comes after those that it needs, so the last one is the first to ask for others.
    for kind in Kind::ALL.iter().rev() {
        let is_needed = |other: &Kind| other.needs().contains(kind);
        if kinds.contains(kind) || wanted.iter().any(is_needed) {
            wanted.push(*kind);
        }
    }
    wanted.reverse();
    wanted
}

impl ViewFollower {
    /// Follows these kinds, and those that their objects need to be visible.
    pub fn new(kinds: &[Kind]) -> ViewFollower {
        let mut streams: Vec<ServiceStream> = Vec::new();
        for kind in with_needs(kinds) {
            match streams.iter_mut().find(|stream| stream.service == kind.service()) {
                Some(stream) => stream.kinds.push(kind),
                None => streams.push(ServiceStream::new(kind)),
            }
        }
        ViewFollower { tables: Tables::new(), streams, now_ms: 0 }
    }

    /// Follows these kinds too. The streams with these tickets are to be cancelled: they are opened again with more kinds.
    pub fn add(&mut self, kinds: &[Kind]) -> Vec<u64> {
        let mut cancelled = Vec::new();
        for kind in with_needs(kinds) {
            match self.streams.iter_mut().find(|stream| stream.service == kind.service()) {
                Some(stream) if stream.kinds.contains(&kind) => {}
                Some(stream) => {
                    stream.kinds.push(kind);
                    let before = std::mem::replace(&mut stream.state, State::Waiting { until_ms: 0 });
                    cancelled.extend(if let State::Open(open) = before { Some(open.ticket) } else { None });
                }
                None => self.streams.push(ServiceStream::new(kind)),
            }
        }
        cancelled
    }

    /// The present view.
    pub fn view(&self) -> &Snapshot {
        self.tables.view()
    }

    /// Whether every service has sent its objects, and its changes arrive.
    pub fn is_current(&self) -> bool {
        let is_live =
            |stream: &ServiceStream| matches!(&stream.state, State::Open(open) if open.snapshot.is_none());
        self.streams.iter().all(is_live)
    }

    /// Whether it follows this kind.
    pub fn follows(&self, kind: Kind) -> bool {
        self.streams.iter().any(|stream| stream.kinds.contains(&kind))
    }

    /// Applies changes, as a stream would; for tests of apps.
    pub fn apply(&mut self, changes: Vec<Change>) -> Batch {
        self.tables.apply(changes)
    }

    /// Opens the streams whose time has come, with a function that calls a service and gives the ticket.
    pub fn open_due(&mut self, now_ms: u64, mut open: impl FnMut(&str, &[u8]) -> u64) {
        self.now_ms = now_ms;
        for stream in &mut self.streams {
            if matches!(stream.state, State::Waiting { until_ms } if until_ms <= now_ms) {
                let ticket = open(stream.service, &question(&stream.kinds));
                stream.state = State::Open(Box::new(Open::new(ticket)));
            }
        }
    }

    /// Whether this ticket is of a stream of the view.
    pub fn has(&self, ticket: u64) -> bool {
        self.streams.iter().any(|stream| stream.has(ticket))
    }

    /// An update of a stream of the view. What is wrong with it comes back as a sentence for the log.
    pub fn hear(&mut self, ticket: u64, update: &Update<'_>) -> Option<String> {
        let ViewFollower { tables, streams, now_ms } = self;
        let stream = streams.iter_mut().find(|stream| stream.has(ticket))?;
        if let Update::Ended { status, reason } = *update {
            return Some(stream.end(*now_ms, &reason_of(status, reason)));
        }
        let State::Open(open) = &mut stream.state else { return None };
        let why = open.hear(tables, update).err()?;
        let is_first = !std::mem::replace(&mut open.has_complained, true);
        is_first.then(|| format!("view: the service {} sent an invalid object: {why}", stream.service))
    }

    /// The kernel refused to open a stream. The reason comes back as a sentence for the log.
    pub fn refuse(&mut self, ticket: u64, reason: &str) -> Option<String> {
        let stream = self.streams.iter_mut().find(|stream| stream.has(ticket))?;
        Some(stream.end(self.now_ms, reason))
    }

    /// The part of a stream is read: what it changed, as one update.
    pub fn end_part(&mut self, ticket: u64) -> Batch {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.has(ticket)) else {
            return Batch::default();
        };
        let State::Open(open) = &mut stream.state else { return Batch::default() };
        if open.is_complete {
            let records = open.snapshot.take().unwrap_or_default();
            (open.is_complete, stream.failures) = (false, 0);
            return self.tables.replace(&stream.kinds, records.into_values());
        }
        if open.changes.is_empty() {
            return Batch::default();
        }
        self.tables.apply(open.changes.drain(..))
    }
}

impl ServiceStream {
    fn new(kind: Kind) -> ServiceStream {
        let state = State::Waiting { until_ms: 0 };
        ServiceStream { service: kind.service(), kinds: vec![kind], state, failures: 0 }
    }

    fn has(&self, wanted: u64) -> bool {
        matches!(&self.state, State::Open(open) if open.ticket == wanted)
    }

    /// The stream is over. It is opened again later.
    fn end(&mut self, now_ms: u64, reason: &str) -> String {
        let after_ms = (RETRY_FIRST_MS << self.failures.min(8)).min(RETRY_MAX_MS);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting { until_ms: now_ms + after_ms };
        let service = self.service;
        format!("view: no changes from the service {service}: {reason}; next attempt in {after_ms} ms")
    }
}

impl Open {
    fn new(ticket: u64) -> Open {
        let snapshot = Some(BTreeMap::new());
        Open { ticket, snapshot, is_complete: false, changes: Vec::new(), has_complained: false }
    }

    fn hear(&mut self, tables: &Tables, update: &Update<'_>) -> Result<(), String> {
        match *update {
            Update::Begin { .. } => (self.snapshot, self.is_complete) = (Some(BTreeMap::new()), false),
            Update::Complete { .. } => self.is_complete = true,
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                self.put(read_key(key)?, Record::from_bytes(value)?)?;
            }
            Update::Removed { key, .. } => self.remove(tables, read_key(key)?),
            Update::Missed { .. } | Update::Ended { .. } => {}
        }
        Ok(())
    }

    fn put(&mut self, key: Key, record: Record) -> Result<(), String> {
        if record.object.key() != key {
            return Err(format!("the entry {key} has the object {}", record.object.key()));
        }
        match &mut self.snapshot {
            Some(snapshot) if snapshot.len() >= OBJECTS_MAX => {
                return Err(format!("the snapshot has more than {OBJECTS_MAX} objects"));
            }
            Some(snapshot) => drop(snapshot.insert(key, record)),
            None => {
                let Record { stamp, object } = record;
                self.changes.push(Change { stamp, key, object: Some(object) });
            }
        }
        Ok(())
    }

    /// A removal in a stream has no stamp. It comes after the changes before it, so it has that of the object it removes.
    fn remove(&mut self, tables: &Tables, key: Key) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.remove(&key);
            return;
        }
        let in_part = self.changes.iter().rev().find(|change| change.key == key).map(|change| change.stamp);
        if let Some(stamp) = in_part.or_else(|| tables.stamp(key)) {
            self.changes.push(Change { stamp, key, object: None });
        }
    }
}

fn read_key(key: &[u8]) -> Result<Key, String> {
    String::from_utf8_lossy(key).parse().map_err(|why: view::NotAKey| why.to_string())
}

/// Why a stream ended, for a person.
fn reason_of(status: u16, reason: &[u8]) -> String {
    let known = match status {
        event::SERVICE_GONE => "it ended",
        event::NO_SUCH_SERVICE => "it is not there",
        event::SERVICE_BUSY => "it is busy",
        event::NO_ANSWER_IN_TIME => "it did not answer in time",
        event::NOT_GRANTED => "it refuses",
        _ => "",
    };
    match (known, String::from_utf8_lossy(reason)) {
        ("", reason) if reason.is_empty() => format!("it ended the stream with the status {status}"),
        (known, reason) if reason.is_empty() => known.to_owned(),
        ("", reason) => reason.into_owned(),
        (known, reason) => format!("{known} ({reason})"),
    }
}

#[cfg(test)]
mod tests;
