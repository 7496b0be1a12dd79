//! The reader's end of a stream: takes parts of an answer apart, and checks the order of their items.
//!
//! ```text
//!                       ┌──────────────── Missed ────────────────┐
//!                       v                                        │
//!   Opened ──Begin──> Snapshot ──Entry, Put, Removed──> Snapshot ─┤
//!                       └──Complete──> Live ──Put, Removed──> Live┘        any ──last part──> over
//! ```
//!
//! In: parts. Out: updates, and when to grant credit. A service that leaves a change out, or sends what is no item, does not get past it.

use super::item::{Update, read};
use abi::service::CREDIT_BYTES_DEFAULT;

/// The bit by which an app's ticket of a stream differs from that of a query. So late parts of a stream that the app has cancelled are known.
pub const TICKET_OF_STREAM: u64 = 1 << 51;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A snapshot must begin; if changes were missed, it must include the change of this number.
    Opened(Option<u64>),
    Snapshot,
    Live,
}

/// One stream that an app follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    state: State,
    /// The number of the last change that was received or is part of the snapshot.
    number: u64,
    credit_bytes: u32,
    /// What was read since credit was last granted.
    taken_bytes: u32,
}

/// The part is no part of a stream, or out of order: the service's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl Follower {
    /// A stream that was opened with this credit; 0 is the default.
    pub fn new(credit_bytes: u32) -> Follower {
        let credit_bytes = if credit_bytes == 0 { CREDIT_BYTES_DEFAULT } else { credit_bytes };
        Follower { state: State::Opened(None), number: 0, credit_bytes, taken_bytes: 0 }
    }

    /// The next item of a part; `None` at its end.
    pub fn next<'a>(&mut self, part: &mut &'a [u8]) -> Result<Option<Update<'a>>, Broken> {
        if part.is_empty() {
            return Ok(None);
        }
        let update = read(part).ok_or(Broken)?;
        self.check(&update).then_some(Some(update)).ok_or(Broken)
    }

    /// Whether this update may come now.
    fn check(&mut self, update: &Update<'_>) -> bool {
        let has_snapshot = !matches!(self.state, State::Opened(_));
        match (self.state, *update) {
            (State::Opened(missed_to), Update::Begin { number }) => {
                (self.state, self.number) = (State::Snapshot, number);
                missed_to.is_none_or(|to| to == number)
            }
            (State::Snapshot, Update::Entry { .. }) => true,
            (State::Snapshot, Update::Complete { number }) => {
                self.state = State::Live;
                number == self.number
            }
            (_, Update::Put { number, .. } | Update::Removed { number, .. }) => {
                let follows = self.number.checked_add(1) == Some(number);
                self.number = number;
                has_snapshot && follows
            }
            (_, Update::Missed { from, to }) => {
                let follows = self.number.checked_add(1) == Some(from);
                self.state = State::Opened(Some(to));
                has_snapshot && follows && from <= to
            }
            _ => false,
        }
    }

    /// A part that cost so much was read: how much credit is granted now, if any. It is granted when half is used, so that the service never waits.
    pub fn taken(&mut self, cost_bytes: u32) -> Option<u32> {
        self.taken_bytes = self.taken_bytes.saturating_add(cost_bytes);
        let is_due = self.taken_bytes >= self.credit_bytes / 2;
        is_due.then(|| std::mem::take(&mut self.taken_bytes))
    }
}
