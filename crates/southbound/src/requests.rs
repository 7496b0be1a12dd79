//! Statistics requests that wait for their answer, which comes in parts.
//!
//! Never keeps a part: each is handed on as it comes. Bounded in number, in parts, in bytes and in time.

use crate::receipts::Tag;

/// Parts of one answer. A full table of a million entries comes in fewer; whoever sends more does not mean to end.
pub const MAX_PARTS: u32 = 16_384;

/// Bytes of one answer: a million flow entries of 128 bytes.
pub const MAX_BYTES: u64 = 128 << 20;

/// A request that went out.
#[derive(Clone, Copy, Debug)]
struct Request {
    xid: u32,
    tag: Tag,
    wants_receipt: bool,
    multipart: u16,
    last_ms: u64,
    parts: u32,
    bytes: u64,
}

/// A request as its asker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Who asked.
    pub tag: Tag,
    /// Whether a receipt is owed besides the answer.
    pub wants_receipt: bool,
}

/// What a part of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An answer to nothing.
    Unasked,
    /// An answer of another type than was asked; the request is given up.
    WrongType(Asked),
    /// More than an answer can be; the request is given up.
    TooMuch(Asked),
    /// A part to be handed on.
    Wanted(Asked),
}

/// The requests of one session.
#[derive(Debug)]
pub struct Requests {
    waiting: Vec<Request>,
    max: usize,
}

impl Requests {
    /// Nothing asked yet.
    pub fn new(max: usize) -> Self {
        Requests { waiting: Vec::new(), max }
    }

    /// Whether one more can be asked.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.max
    }

    /// How many wait for their answer.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A request went out.
    pub fn sent(&mut self, xid: u32, asked: Asked, multipart: u16, now_ms: u64) {
        let Asked { tag, wants_receipt } = asked;
        self.waiting.push(Request {
            xid,
            tag,
            wants_receipt,
            multipart,
            last_ms: now_ms,
            parts: 0,
            bytes: 0,
        });
    }

    /// A part came: `more` says that it is not the last, `bytes` how long it is.
    pub fn on_part(&mut self, xid: u32, multipart: u16, more: bool, bytes: usize, now_ms: u64) -> Part {
        let Some(index) = self.waiting.iter().position(|request| request.xid == xid) else {
            return Part::Unasked;
        };
        let request = &mut self.waiting[index];
        let asked = request.asked();
        request.parts += 1;
        request.bytes += bytes as u64;
        request.last_ms = now_ms;
        let part = if request.multipart != multipart {
            Part::WrongType(asked)
        } else if request.parts > MAX_PARTS || request.bytes > MAX_BYTES {
            Part::TooMuch(asked)
        } else {
            Part::Wanted(asked)
        };
        if !more || part != Part::Wanted(asked) {
            self.waiting.swap_remove(index);
        }
        part
    }

    /// Gives up what this asker waits for under this ticket.
    pub fn forget(&mut self, tag: Tag) {
        self.waiting.retain(|request| request.tag != tag);
    }

    /// An error of the switch answers a request, if one has this id.
    pub fn on_error(&mut self, xid: u32) -> Option<Asked> {
        let index = self.waiting.iter().position(|request| request.xid == xid)?;
        Some(self.waiting.swap_remove(index).asked())
    }

    /// Hands over the requests to which nothing has come for `timeout_ms`.
    pub fn on_tick(&mut self, now_ms: u64, timeout_ms: u64, mut lost: impl FnMut(Tag)) {
        self.waiting.retain(|request| {
            let late = now_ms.saturating_sub(request.last_ms) >= timeout_ms;
            if late {
                lost(request.tag);
            }
            !late
        });
    }

    /// Hands over everything that is not answered: the session has ended.
    pub fn on_end(&mut self, mut lost: impl FnMut(Tag)) {
        self.waiting.drain(..).for_each(|request| lost(request.tag));
    }
}

impl Request {
    fn asked(&self) -> Asked {
        Asked { tag: self.tag, wants_receipt: self.wants_receipt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::ZoneId;

    const FLOW: u16 = 1;
    const ASKED: Asked = Asked { tag: Tag { zone: ZoneId(3), ticket: 9 }, wants_receipt: false };

    fn asked_once() -> Requests {
        let mut requests = Requests::new(1);
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
        assert!(requests.has_room());
    }

    #[test]
    fn the_last_part_makes_room() {
        let mut requests = asked_once();
        assert!(!requests.has_room());
        assert_eq!(requests.on_part(7, FLOW, true, 100, 0), Part::Wanted(ASKED));
        assert_eq!(requests.on_part(7, FLOW, false, 100, 0), Part::Wanted(ASKED));
        assert!(requests.has_room());
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
