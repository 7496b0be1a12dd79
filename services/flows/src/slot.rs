//! One entry of a switch, as the service knows it: 24 bytes.
//!
//! ```text
//!            step begins          sent              receipt
//!   Held ──────────────> Due ──────────> Sent ──────────────> Installed ──wanted no more──> Removing ──> RemoveSent ──> (gone)
//!                         ^               │ error: Failed        │ missing in an audit
//!                         └─session lost──┴──────────────────────┘                    Orphan: in the switch, and in no set
//! ```
//!
//! In: nothing. Out: types. What changes them is in `change`, `engine`, `switch` and `reading`.

use crate::wanted::{Body, Place};
use std::rc::Rc;

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is wanted, and its step has not begun.
    Held,
    /// It is to be sent as soon as the switch is connected, its tables are known, and its window has room.
    Due,
    /// It was sent, and its receipt is awaited.
    Sent,
    /// The switch has confirmed it.
    Installed,
    /// The switch or the kernel has refused it.
    Failed,
    /// It is to be removed.
    Removing,
    /// Its removal was sent.
    RemoveSent,
    /// The switch has it from an earlier run, and no set wants it yet.
    Orphan,
}

/// What a slot counts as in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Confirmed.
    Installed,
    /// Refused.
    Failed,
    /// Its switch is not ready.
    Waiting,
    /// On its way.
    Active,
    /// Not counted: it is held, or not wanted any more.
    Other,
}

/// The switch has, or may have, an entry with this key.
pub const PRESENT: u8 = 1;
/// The present step of its set waits for it.
pub const IN_STEP: u8 = 2;
/// The last audit saw it, if the bit equals the audit's parity.
pub const MARK: u8 = 4;
/// It is in the queue of its switch.
pub const QUEUED: u8 = 8;
/// An audit found it changed, and it was sent again.
pub const REPAIRED: u8 = 16;
/// It has a time-out: the switch removes it by itself.
pub const ENDS: u8 = 32;
/// It was sent in this session, and the switch has not refused it.
pub const SENT: u8 = 64;

/// One entry.
#[derive(Debug)]
pub struct Slot {
    /// The body that it is from. `None` for an orphan.
    pub body: Option<Rc<Body>>,
    /// The content in the low 48 bits, the low bits of the last command's ticket above them.
    packed: u64,
    at: u32,
    hop: u8,
    /// What is known of it.
    pub state: State,
    /// Bits such as [`PRESENT`].
    pub bits: u8,
    /// How often it was refused since it was last confirmed.
    pub attempts: u8,
}

const CONTENT: u64 = (1 << 48) - 1;

impl Slot {
    /// A slot for an entry of a body.
    pub fn new(body: Option<Rc<Body>>, place: Place, content: u64, state: State) -> Slot {
        Slot { body, packed: content & CONTENT, at: place.at, hop: place.hop, state, bits: 0, attempts: 0 }
    }

    /// What identifies the content.
    pub fn content(&self) -> u64 {
        self.packed & CONTENT
    }

    /// Where the entry is in its body.
    pub fn place(&self) -> Place {
        Place { at: self.at, hop: self.hop }
    }

    /// Makes it an entry of another body.
    pub fn point_to(&mut self, body: &Rc<Body>, place: Place, content: u64) {
        self.body = Some(Rc::clone(body));
        (self.at, self.hop) = (place.at, place.hop);
        self.packed = self.packed & !CONTENT | content & CONTENT;
    }

    /// Remembers the command that was sent last.
    pub fn set_ticket(&mut self, ticket: u64) {
        self.packed = self.packed & CONTENT | ticket << 48;
    }

    /// Whether this command was sent last. Fewer commands are under way than the bits can tell apart.
    pub fn is_last(&self, ticket: u64) -> bool {
        self.packed >> 48 == ticket & 0xffff
    }

    /// Sets or clears bits.
    pub fn set(&mut self, bits: u8, on: bool) {
        self.bits = if on { self.bits | bits } else { self.bits & !bits };
    }

    /// Whether one of these bits is set.
    pub fn has(&self, bits: u8) -> bool {
        self.bits & bits != 0
    }

    /// The set.
    pub fn set_number(&self) -> Option<u32> {
        self.body.as_ref().map(|body| body.set)
    }

    /// What it counts as.
    pub fn class(&self, is_ready: bool) -> Class {
        match self.state {
            State::Installed => Class::Installed,
            State::Failed => Class::Failed,
            State::Held | State::Due | State::Sent if !is_ready => Class::Waiting,
            State::Due | State::Sent => Class::Active,
            State::Held | State::Removing | State::RemoveSent | State::Orphan => Class::Other,
        }
    }
}
