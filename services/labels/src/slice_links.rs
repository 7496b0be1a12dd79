//! The hops of the links of slices, as the service `paths` tells them by a stream.
//!
//! In: updates of the stream, refusals, and the time in milliseconds. Out: when to open the stream, and what changed. While `paths` is away, its last
//! word holds: its rules stay in the switches. It sends nothing.

use burnet_sdk::Ticket;
use burnet_sdk::stream::Update;
use paths_contract::{ALL_SLICES, FollowLinks, LinkState, read_link_key};
use view::LinkId;

/// How long after its end the stream is opened again. It doubles with each failure in a row.
const PAUSE_MS: u64 = 250;
/// The longest pause.
const PAUSE_MAX_MS: u64 = 8_000;

/// The stream.
#[derive(Debug)]
pub struct SliceLinks {
    stream: Option<Ticket>,
    again_ms: u64,
    failures: u32,
}

/// A link of a slice, and the links of the network below it.
pub type Hops = (String, LinkId, Vec<LinkId>);

impl SliceLinks {
    /// The stream is to be opened at once.
    pub fn new() -> SliceLinks {
        SliceLinks { stream: None, again_ms: 0, failures: 0 }
    }

    /// When the stream is to be opened.
    pub fn next_ms(&self) -> Option<u64> {
        self.stream.is_none().then_some(self.again_ms)
    }

    /// Opens the stream if it is time. `open`: sends the question and gives its ticket.
    pub fn on_time(&mut self, now_ms: u64, open: impl FnOnce(&[u8]) -> Ticket) {
        if self.next_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let follow = FollowLinks { links_of: ALL_SLICES.to_owned() };
            self.stream = Some(open(&follow.to_bytes()));
        }
    }

    /// Whether a stream is this one.
    pub fn has(&self, stream: Ticket) -> bool {
        self.stream == Some(stream)
    }

    /// The kernel refused to open the stream, if the call was this one.
    pub fn on_refused(&mut self, ticket: Ticket, now_ms: u64) {
        if self.stream == Some(ticket) {
            self.fail(now_ms);
        }
    }

    fn fail(&mut self, now_ms: u64) {
        self.stream = None;
        self.again_ms = now_ms + (PAUSE_MS << self.failures.min(8)).min(PAUSE_MAX_MS);
        self.failures = self.failures.saturating_add(1);
    }

    /// An update of a stream. Returns what it says of a link, if it is of this stream.
    pub fn on_stream(&mut self, stream: Ticket, update: &Update<'_>, now_ms: u64) -> Option<Hops> {
        if self.stream != Some(stream) {
            return None;
        }
        match *update {
            Update::Entry { key, value } | Update::Put { key, value, .. } => {
                let (slice, link) = read_link_key(key)?;
                let state = LinkState::from_bytes(value).ok()?;
                return Some((slice.to_owned(), link, state.hops));
            }
            Update::Begin { .. } => self.failures = 0,
            Update::Ended { .. } => self.fail(now_ms),
            Update::Complete { .. } | Update::Removed { .. } | Update::Missed { .. } => {}
        }
        None
    }
}

impl Default for SliceLinks {
    fn default() -> Self {
        SliceLinks::new()
    }
}
