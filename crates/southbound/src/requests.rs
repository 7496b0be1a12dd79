//! Statistics requests that wait for their reply, which arrives in parts.
//!
//! It stores no part: each is passed on as it arrives. The number of requests, parts and bytes is bounded, and so is
//! the time.

use crate::receipts::{Shares, Tag};
use abi::ZoneId;

/// Maximum number of parts of one reply. A full table of a million entries needs fewer. At the bound the request is
/// given up.
pub const MAX_PARTS: u32 = 16_384;

/// Maximum number of bytes of one reply: a million flow entries of 128 bytes. At the bound the request is given up.
pub const MAX_BYTES: u64 = 128 << 20;

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
struct Request {
    xid: u32,
    tag: Tag,
    wants_receipt: bool,
    multipart: u16,
    /// The type in the message to the switch and in its reply.
    on_the_wire: u16,
    last_ms: u64,
    parts: u32,
    bytes: u64,
}

/// A request, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Identifies the asker and its request.
    pub tag: Tag,
    /// Whether the asker gets a receipt in addition to the reply.
    pub wants_receipt: bool,
    /// The `ofp_multipart_type` that was requested.
    pub multipart: u16,
}

/// What to do with a part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It belongs to no request: drop it.
    Unasked,
    /// It has another type than was requested. The request is given up.
    WrongType(Asked),
    /// The reply exceeds a bound. The request is given up.
    TooMuch(Asked),
    /// Pass it on.
    Wanted(Asked),
}

/// The requests of one session.
#[derive(Debug)]
pub struct Requests {
    waiting: Vec<Request>,
    shares: Shares,
}

impl Requests {
    /// Starts without requests. `max` is their maximum number.
    pub fn new(max: usize) -> Self {
        Requests { waiting: Vec::new(), shares: Shares::new(max) }
    }

    /// Whether this zone may make one more request.
    pub fn has_room(&self, zone: ZoneId) -> bool {
        self.shares.has_room(zone)
    }

    /// How many requests wait for their reply.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A request was sent, with this type.
    pub fn sent(&mut self, xid: u32, asked: Asked, on_the_wire: u16, now_ms: u64) {
        let Asked { tag, wants_receipt, multipart } = asked;
        self.shares.take(tag.zone);
        self.waiting.push(Request {
            xid,
            tag,
            wants_receipt,
            multipart,
            on_the_wire,
            last_ms: now_ms,
            parts: 0,
            bytes: 0,
        });
    }

    /// A part arrived. `more`: it is not the last. `bytes`: its length.
    pub fn on_part(&mut self, xid: u32, multipart: u16, more: bool, bytes: usize, now_ms: u64) -> Part {
        let Some(index) = self.waiting.iter().position(|request| request.xid == xid) else {
            return Part::Unasked;
        };
        let request = &mut self.waiting[index];
        let asked = request.asked();
        request.parts += 1;
        request.bytes += bytes as u64;
        request.last_ms = now_ms;
        let part = if request.on_the_wire != multipart {
            Part::WrongType(asked)
        } else if request.parts > MAX_PARTS || request.bytes > MAX_BYTES {
            Part::TooMuch(asked)
        } else {
            Part::Wanted(asked)
        };
        if !more || part != Part::Wanted(asked) {
            self.waiting.swap_remove(index);
            self.shares.give_back(asked.tag.zone);
        }
        part
    }

    /// Deletes the request with this tag.
    pub fn forget(&mut self, tag: Tag) {
        let before = self.waiting.len();
        self.waiting.retain(|request| request.tag != tag);
        (self.waiting.len()..before).for_each(|_| self.shares.give_back(tag.zone));
    }

    /// The switch sent an error with this id. Returns the request that it answers, if any.
    pub fn on_error(&mut self, xid: u32) -> Option<Asked> {
        let index = self.waiting.iter().position(|request| request.xid == xid)?;
        let asked = self.waiting.swap_remove(index).asked();
        self.shares.give_back(asked.tag.zone);
        Some(asked)
    }

    /// Removes the requests that received nothing for `timeout_ms`, and passes each to `lost`.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64, mut lost: impl FnMut(Tag)) {
        self.waiting.retain(|request| {
            let late = now_ms.saturating_sub(request.last_ms) >= timeout_ms;
            if late {
                self.shares.give_back(request.tag.zone);
                lost(request.tag);
            }
            !late
        });
    }

    /// The session has ended: removes all requests, and passes each to `lost`.
    pub fn on_end(&mut self, mut lost: impl FnMut(Tag)) {
        self.shares.clear();
        self.waiting.drain(..).for_each(|request| lost(request.tag));
    }
}

impl Request {
    fn asked(&self) -> Asked {
        Asked { tag: self.tag, wants_receipt: self.wants_receipt, multipart: self.multipart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: u16 = 1;
    const ASKED: Asked =
        Asked { tag: Tag { zone: ZoneId(3), generation: 0, ticket: 9 }, wants_receipt: false, multipart: 1 };

    fn asked_once() -> Requests {
        let mut requests = Requests::new(crate::receipts::KEPT + 2);
        requests.sent(7, ASKED, FLOW, 0);
        requests
    }

    #[test]
    fn an_answer_to_nothing_is_unasked() {
        assert_eq!(asked_once().on_part(8, FLOW, false, 0, 0), Part::Unasked);
    }

    #[test]
    fn an_answer_of_another_type_ends_the_request() {
        let mut requests = asked_once();
        assert_eq!(requests.on_part(7, FLOW + 1, true, 0, 0), Part::WrongType(ASKED));
        assert_eq!(requests.on_part(7, FLOW, false, 0, 0), Part::Unasked);
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let mut requests = asked_once();
        for _ in 0..MAX_PARTS {
            assert_eq!(requests.on_part(7, FLOW, true, 1, 0), Part::Wanted(ASKED));
        }
        assert_eq!(requests.on_part(7, FLOW, true, 1, 0), Part::TooMuch(ASKED));
        assert!(requests.has_room(ASKED.tag.zone));
    }

    #[test]
    fn the_last_part_makes_room() {
        let mut requests = asked_once();
        assert!(!requests.has_room(ASKED.tag.zone));
        assert_eq!(requests.on_part(7, FLOW, true, 100, 0), Part::Wanted(ASKED));
        assert_eq!(requests.on_part(7, FLOW, false, 100, 0), Part::Wanted(ASKED));
        assert!(requests.has_room(ASKED.tag.zone));
    }

    #[test]
    fn whatever_ends_a_request_makes_room() {
        let check = |end: fn(&mut Requests)| {
            let mut requests = asked_once();
            end(&mut requests);
            assert!(requests.has_room(ASKED.tag.zone));
        };
        check(|requests| assert!(matches!(requests.on_part(7, 0, true, 0, 0), Part::WrongType(_))));
        check(|requests| assert!(requests.on_error(7).is_some()));
        check(|requests| requests.forget(ASKED.tag));
        check(|requests| requests.on_tick(100, 100, |_| {}));
        check(|requests| requests.on_end(|_| {}));
    }

    #[test]
    fn an_answer_that_does_not_come_on_is_given_up() {
        let mut requests = asked_once();
        requests.on_part(7, FLOW, true, 0, 500);
        let mut lost = Vec::new();
        requests.on_tick(1499, 1000, |tag| lost.push(tag));
        assert!(lost.is_empty());
        requests.on_tick(1500, 1000, |tag| lost.push(tag));
        assert_eq!(lost, [ASKED.tag]);
    }
}
