//! The service's end of its streams: who follows, how far each reader is, and what it gets next.
//!
//! ```text
//!   change ──> log (bounded, one for all readers) ──┐
//!   snapshot, page by page from the service ────────┴──> parts, as far as the reader's credit goes
//! ```
//!
//! In: changes, and the service's present entries when they are asked for. Out: parts of answers. A reader is a position in the log: one that stalls
//! costs no memory but its place. When the log has gone past a reader, the reader learns which changes it missed, and gets a new snapshot.
//!
//! No snapshot is ever copied: its pages are taken from the service when the reader has credit, with the changes between them. So a page
//! can be newer than the snapshot's beginning. The changes that made it newer come before it, and put the reader right.

use super::item::{HEAD_BYTES, ITEM_BYTES_MAX, Update, item_bytes, write};
use crate::calls::Calls;
use crate::commands::Commands;
use crate::part::PART_BYTES;
use abi::command::QueryAnswer;
use abi::event::{BAD_QUESTION, OVER_QUOTA, Query};
use abi::service::{Form, PART_COST_BYTES};
use std::collections::{BTreeMap, VecDeque};

/// How many bytes of changes a source keeps for readers that wait for credit. A reader that is further behind misses changes.
pub const LOG_BYTES_MAX: usize = 1 << 20;

/// How many streams of one source an app may follow at once. One more ends as `OVER_QUOTA`.
pub const STREAMS_PER_CALLER_MAX: usize = 16;

/// Memory that a change takes in the log beside its bytes.
const CHANGE_COST_BYTES: usize = 32;

/// The readers of one thing that changes.
#[derive(Debug)]
pub struct Source {
    /// Of the last change. The first has 1.
    number: u64,
    log: VecDeque<Box<[u8]>>,
    log_bytes: usize,
    log_bytes_max: usize,
    /// By the kernel's ticket of the call.
    readers: BTreeMap<u64, Reader>,
    part: Vec<u8>,
}

#[derive(Debug)]
struct Reader {
    caller: u32,
    /// The next change that it is to receive.
    next: u64,
    /// A new snapshot begins when its credit has room for so much. One that begins with the last few bytes of credit would be missed again.
    resync_bytes: usize,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// A snapshot is to begin, and the changes from this number on were missed.
    Begin(Option<u64>),
    /// The entries behind this key are still to come; `None`: all.
    Snapshot(Option<Vec<u8>>),
    Live,
}

impl Default for Source {
    fn default() -> Self {
        Source::new(LOG_BYTES_MAX)
    }
}

impl Source {
    /// A source that keeps at most so many bytes of changes.
    pub fn new(log_bytes_max: usize) -> Source {
        let (log, readers, part) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        Source { number: 0, log, log_bytes: 0, log_bytes_max, readers, part }
    }

    /// The number of the last change.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many streams are open. Those that ended are counted until the next [`Source::send`].
    pub fn readers(&self) -> usize {
        self.readers.len()
    }

    /// A call follows this source from now on. What it gets comes with [`Source::send`].
    pub fn follow(&mut self, query: &Query<'_>, out: &mut Commands) {
        self.open(&mut out.calls, &mut out.frames, query);
    }

    /// Sends each reader what its credit allows. `page` is called with a key: it gives the entries behind that key in the order of their keys, from
    /// the first one for `None`, until [`Page::entry`] is `false`.
    pub fn send(&mut self, out: &mut Commands, page: impl FnMut(Option<&[u8]>, &mut Page<'_>)) {
        self.send_by(&mut out.calls, &mut out.frames, page);
    }

    /// A call wants to follow. A query, and a caller with too many streams, are refused. What it gets comes with [`Source::send`].
    pub(super) fn open(&mut self, calls: &mut Calls, frames: &mut Vec<u8>, query: &Query<'_>) {
        self.readers.retain(|ticket, _| calls.room_bytes(*ticket).is_some());
        let caller = query.caller.number;
        let of_caller = self.readers.values().filter(|reader| reader.caller == caller).count();
        let refusal: Option<(u16, &[u8])> = if query.form != Form::Stream {
            Some((BAD_QUESTION, b"this is a stream: call it as one"))
        } else if of_caller >= STREAMS_PER_CALLER_MAX {
            Some((OVER_QUOTA, b"streams: an app may follow 16 streams of this service at once"))
        } else {
            None
        };
        if let Some((status, payload)) = refusal {
            calls.answer(frames, query.ticket, &QueryAnswer { status, more: false, payload });
            return;
        }
        let resync_bytes = PART_BYTES.min(query.credit_bytes as usize / 4);
        let reader = Reader { caller, next: self.number + 1, resync_bytes, phase: Phase::Begin(None) };
        self.readers.insert(query.ticket, reader);
    }

    /// Something has changed. Readers receive it with the next [`Source::send`]. `None` removes the key. A change that
    /// is longer than [`ITEM_BYTES_MAX`] is not taken, and gives `false`.
    pub fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> bool {
        if item_bytes(key, value.unwrap_or_default()) > ITEM_BYTES_MAX {
            return false;
        }
        self.number += 1;
        if self.readers.is_empty() {
            return true;
        }
        let number = self.number;
        let mut item = Vec::with_capacity(item_bytes(key, value.unwrap_or_default()));
        match value {
            Some(value) => write(&mut item, &Update::Put { number, key, value }),
            None => write(&mut item, &Update::Removed { number, key }),
        }
        self.log_bytes += item.len() + CHANGE_COST_BYTES;
        self.log.push_back(item.into_boxed_slice());
        while self.log_bytes > self.log_bytes_max {
            self.forget_oldest();
        }
        true
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.log.pop_front() {
            self.log_bytes -= oldest.len() + CHANGE_COST_BYTES;
        }
    }

    /// The number of the oldest change in the log.
    fn first(&self) -> u64 {
        // The log holds the last changes, without a gap.
        self.number + 1 - self.log.len() as u64
    }

    pub(super) fn send_by(
        &mut self,
        calls: &mut Calls,
        frames: &mut Vec<u8>,
        mut page: impl FnMut(Option<&[u8]>, &mut Page<'_>),
    ) {
        let mut readers = std::mem::take(&mut self.readers);
        readers.retain(|ticket, reader| self.send_to(calls, frames, *ticket, reader, &mut page));
        self.readers = readers;
        // Changes that every reader has received are dropped.
        let slowest = self.readers.values().map(|reader| reader.next).min().unwrap_or(u64::MAX);
        while !self.log.is_empty() && self.first() < slowest {
            self.forget_oldest();
        }
    }

    /// Says whether the call is still open.
    fn send_to(
        &mut self,
        calls: &mut Calls,
        frames: &mut Vec<u8>,
        ticket: u64,
        reader: &mut Reader,
        page: &mut impl FnMut(Option<&[u8]>, &mut Page<'_>),
    ) -> bool {
        loop {
            let Some(room_bytes) = calls.room_bytes(ticket) else { return false };
            let room_bytes = room_bytes.saturating_sub(PART_COST_BYTES) as usize;
            let mut part = std::mem::take(&mut self.part);
            part.clear();
            self.fill(reader, &mut part, room_bytes.min(PART_BYTES), page);
            if !part.is_empty() {
                calls.answer(frames, ticket, &QueryAnswer { status: 0, more: true, payload: &part });
            }
            let has_sent = !part.is_empty();
            self.part = part;
            if !has_sent {
                return true;
            }
        }
    }

    /// Puts into a part what comes next for this reader; nothing if there is nothing, or no room for the next item.
    fn fill(
        &self,
        reader: &mut Reader,
        part: &mut Vec<u8>,
        room_bytes: usize,
        page: &mut impl FnMut(Option<&[u8]>, &mut Page<'_>),
    ) {
        if reader.next < self.first() && !matches!(reader.phase, Phase::Begin(Some(_))) {
            let has_begun = !matches!(reader.phase, Phase::Begin(None));
            reader.phase = Phase::Begin(has_begun.then_some(reader.next));
        }
        if let Phase::Begin(missed_from) = reader.phase {
            let is_resync = missed_from.is_some();
            if room_bytes < BEGIN_BYTES || is_resync && room_bytes < reader.resync_bytes {
                return;
            }
            let number = self.number;
            if let Some(from) = missed_from {
                write(part, &Update::Missed { from, to: number });
            }
            write(part, &Update::Begin { number });
            (reader.next, reader.phase) = (number + 1, Phase::Snapshot(None));
        }
        let first = self.first();
        for item in self.log.range((reader.next - first) as usize..) {
            if part.len() + item.len() > room_bytes {
                return;
            }
            part.extend_from_slice(item);
            reader.next += 1;
        }
        if let Phase::Snapshot(last) = &mut reader.phase {
            let mut filled = Page { part, room_bytes, last: None, is_full: false };
            page(last.as_deref(), &mut filled);
            let Page { last: new_last, is_full, .. } = filled;
            if new_last.is_some() {
                *last = new_last;
            }
            if !is_full && part.len() + HEAD_BYTES <= room_bytes {
                write(part, &Update::Complete { number: self.number });
                reader.phase = Phase::Live;
            }
        }
    }
}

/// Room for [`Update::Missed`] and [`Update::Begin`].
const BEGIN_BYTES: usize = 2 * HEAD_BYTES + 8;

/// A page of a snapshot that is being written.
#[derive(Debug)]
pub struct Page<'p> {
    part: &'p mut Vec<u8>,
    room_bytes: usize,
    last: Option<Vec<u8>>,
    is_full: bool,
}

impl Page<'_> {
    /// Adds an entry, and says whether there was room: if not, no more is taken, and the next page begins with this entry. An entry that no part has room
    /// for is left out; [`Source::change`] does not take it either.
    pub fn entry(&mut self, key: &[u8], value: &[u8]) -> bool {
        if item_bytes(key, value) > ITEM_BYTES_MAX {
            return true;
        }
        self.is_full |= self.part.len() + item_bytes(key, value) > self.room_bytes;
        if !self.is_full {
            write(self.part, &Update::Entry { key, value });
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
        !self.is_full
    }
}
