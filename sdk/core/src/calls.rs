//! Open calls: answers of this service that wait for credit, partial answers to this app, and streams that it follows.
//!
//! ```text
//!   the service's answer ──> [ parts, each within the caller's credit ] ──> command frames
//!   parts of a reply ──────> [ put together; credit for more ] ───────────> one answer for the app
//!   parts of a stream ─────> [ checked; credit for more ] ────────────────> updates for the app
//! ```
//!
//! In: answers, replies, credit. Out: command frames, whole answers. It never reads the content of a call.

use crate::part::{PART_BYTES, Part, cost_bytes, split};
use crate::stream::{Broken, Follower, TICKET_OF_STREAM, Update};
use abi::command::{Command, QueryAnswer, What, write};
use abi::event::{ANSWER_TOO_LONG, BAD_ANSWER, Credit, Query, QueryOver, QueryReply, TOO_MUCH};
use abi::service::CREDIT_BYTES_DEFAULT;
use flow::DatapathId;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// The maximum number of answer bytes that wait for credit. An answer beyond it ends as [`ANSWER_TOO_LONG`].
pub const WAITING_BYTES_MAX: usize = 16 << 20;

/// The maximum number of bytes of incomplete answers. A call beyond it is cancelled, and ends as [`TOO_MUCH`].
pub const ASSEMBLED_BYTES_MAX: usize = 64 << 20;

/// The maximum number of cancelled calls whose late parts are known. Parts that were on their way come soon after the cancellation, so the
/// oldest one is forgotten first. The kernel keeps no more calls of one app open at one worker.
const CANCELLED_MAX: usize = 256;

const NO_SWITCH: DatapathId = DatapathId(0);

/// The calls of one instance of an app, in both directions.
#[derive(Debug, Default)]
pub struct Calls {
    /// Calls to this service, by the kernel's ticket: at most as many as the kernel keeps open.
    answering: HashMap<u64, Answering>,
    waiting_bytes: usize,
    /// Incomplete answers to calls of this app, by its own ticket.
    assembling: HashMap<u64, Assembling>,
    assembled_bytes: usize,
    /// Calls that this app has cancelled, by its own ticket: the last [`CANCELLED_MAX`].
    cancelled: VecDeque<u64>,
    /// Streams that this app follows, by its own ticket: at most as many as the kernel keeps open.
    following: HashMap<u64, Follower>,
}

#[derive(Debug)]
struct Answering {
    credit_bytes: u32,
    waiting: VecDeque<Part>,
}

#[derive(Debug, Default)]
struct Assembling {
    payload: Vec<u8>,
    /// The bytes that were received since the last grant of credit.
    taken_bytes: u32,
}

/// The result of a reply for the app.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'r> {
    /// Nothing yet.
    Nothing,
    /// The whole answer: its status and its payload.
    Answer(u16, Cow<'r, [u8]>),
}

/// A part of a stream, while it is read.
#[derive(Clone, Copy, Debug)]
pub struct StreamPart<'r> {
    follower: Follower,
    reply: QueryReply<'r>,
    rest: &'r [u8],
}

impl Calls {
    /// A new call to this service.
    pub fn on_query(&mut self, query: &Query<'_>) {
        let answering = Answering { credit_bytes: query.credit_bytes, waiting: VecDeque::new() };
        self.answering.insert(query.ticket, answering);
    }

    /// Takes an answer of the service. Sends what the credit allows, and buffers the rest.
    pub fn answer(&mut self, frames: &mut Vec<u8>, ticket: u64, answer: &QueryAnswer<'_>) -> bool {
        let Some(call) = self.answering.get_mut(&ticket) else {
            // The call is over or unknown. The kernel reports the error.
            return push_answer(frames, ticket, answer);
        };
        let is_short = answer.payload.len() <= PART_BYTES && answer.cost_bytes() <= call.credit_bytes;
        if call.waiting.is_empty() && is_short {
            call.credit_bytes -= answer.cost_bytes();
            if !answer.more {
                self.answering.remove(&ticket);
            }
            return push_answer(frames, ticket, answer);
        }
        if self.waiting_bytes + answer.payload.len() > WAITING_BYTES_MAX {
            self.waiting_bytes -= call.waiting.iter().map(|part| part.payload.len()).sum::<usize>();
            self.answering.remove(&ticket);
            let refusal = QueryAnswer { status: ANSWER_TOO_LONG, more: false, payload: &[] };
            return push_answer(frames, ticket, &refusal);
        }
        self.waiting_bytes += answer.payload.len();
        call.waiting.extend(split(answer));
        self.send_waiting(frames, ticket)
    }

    /// How many bytes of credit are left for answers to this call; `None` if it is over. It is 0 while parts of an earlier answer wait.
    pub fn room_bytes(&self, ticket: u64) -> Option<u32> {
        let call = self.answering.get(&ticket)?;
        Some(if call.waiting.is_empty() { call.credit_bytes } else { 0 })
    }

    /// The caller granted more credit.
    pub fn on_credit(&mut self, frames: &mut Vec<u8>, credit: Credit) {
        if let Some(call) = self.answering.get_mut(&credit.ticket) {
            call.credit_bytes = call.credit_bytes.saturating_add(credit.bytes);
            self.send_waiting(frames, credit.ticket);
        }
    }

    /// A call to this service ended. Its buffered answer is dropped.
    pub fn on_over(&mut self, over: QueryOver) {
        if let Some(call) = self.answering.remove(&over.ticket) {
            self.waiting_bytes -= call.waiting.iter().map(|part| part.payload.len()).sum::<usize>();
        }
    }

    fn send_waiting(&mut self, frames: &mut Vec<u8>, ticket: u64) -> bool {
        let Some(call) = self.answering.get_mut(&ticket) else { return true };
        let mut written = true;
        while let Some(part) = call.waiting.front() {
            let cost_bytes = part.answer().cost_bytes();
            if cost_bytes > call.credit_bytes {
                return written;
            }
            call.credit_bytes -= cost_bytes;
            self.waiting_bytes -= part.payload.len();
            written &= push_answer(frames, ticket, &part.answer());
            let is_last = !part.more;
            call.waiting.pop_front();
            if is_last {
                self.answering.remove(&ticket);
                return written;
            }
        }
        written
    }

    /// This app starts to follow a stream.
    pub fn follow(&mut self, ticket: u64, credit_bytes: u32) {
        self.following.insert(ticket, Follower::new(credit_bytes));
    }

    /// The app stops following a stream, or the kernel refused it. Late parts are ignored.
    pub fn unfollow(&mut self, ticket: u64) {
        self.following.remove(&ticket);
    }

    /// The app cancels a call or a stream. Late parts are ignored.
    pub fn cancel(&mut self, ticket: u64) {
        self.unfollow(ticket);
        let call = self.assembling.remove(&ticket);
        self.assembled_bytes -= call.map_or(0, |call| call.payload.len());
        if self.cancelled.len() >= CANCELLED_MAX {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(ticket);
    }

    /// A part of a stream. [`Calls::next_update`] returns its updates. `None` if the app no longer follows this stream.
    pub fn begin_part<'r>(&mut self, reply: &QueryReply<'r>) -> Option<StreamPart<'r>> {
        let follower = *self.following.get(&reply.ticket)?;
        Some(StreamPart { follower, reply: *reply, rest: reply.payload })
    }

    /// The next update of a part, until the part ends, or the app cancels the stream. Credit is granted at the end.
    pub fn next_update<'r>(&mut self, frames: &mut Vec<u8>, part: &mut StreamPart<'r>) -> Option<Update<'r>> {
        let QueryReply { ticket, status, more, payload } = part.reply;
        // The app may have cancelled it.
        self.following.get(&ticket)?;
        if !more {
            self.unfollow(ticket);
            return Some(Update::Ended { status, reason: payload });
        }
        match part.follower.next(&mut part.rest) {
            Ok(Some(update)) => return Some(update),
            Ok(None) => {}
            Err(Broken) => {
                self.unfollow(ticket);
                push(frames, ticket, What::QueryCancel);
                let reason = b"the service sent a part that is no part of a stream";
                return Some(Update::Ended { status: BAD_ANSWER, reason });
            }
        }
        if let Some(bytes) = part.follower.taken(cost_bytes(payload)) {
            push(frames, ticket, What::QueryCredit(bytes));
        }
        self.following.insert(ticket, part.follower);
        None
    }

    /// Whether a reply with this ticket is a part of a stream.
    pub fn is_of_stream(ticket: u64) -> bool {
        ticket & TICKET_OF_STREAM != 0
    }

    /// A reply, or a part of one.
    pub fn on_reply<'r>(&mut self, frames: &mut Vec<u8>, reply: &QueryReply<'r>) -> Heard<'r> {
        let QueryReply { ticket, status, more, payload } = *reply;
        if self.cancelled.contains(&ticket) {
            return Heard::Nothing;
        }
        if !more {
            let Some(call) = self.assembling.remove(&ticket) else {
                return Heard::Answer(status, Cow::Borrowed(payload));
            };
            self.assembled_bytes -= call.payload.len();
            // If an answer ends early, the app gets only the reason.
            let mut whole = if status < abi::event::STATUS_OF_KERNEL { call.payload } else { Vec::new() };
            whole.extend_from_slice(payload);
            return Heard::Answer(status, Cow::Owned(whole));
        }
        if self.assembled_bytes + payload.len() > ASSEMBLED_BYTES_MAX {
            let call = self.assembling.remove(&ticket);
            self.assembled_bytes -= call.map_or(0, |call| call.payload.len());
            push(frames, ticket, What::QueryCancel);
            return Heard::Answer(TOO_MUCH, Cow::Borrowed(&[]));
        }
        let call = self.assembling.entry(ticket).or_default();
        call.payload.extend_from_slice(payload);
        self.assembled_bytes += payload.len();
        call.taken_bytes += cost_bytes(payload);
        if call.taken_bytes >= CREDIT_BYTES_DEFAULT / 2 {
            push(frames, ticket, What::QueryCredit(std::mem::take(&mut call.taken_bytes)));
        }
        Heard::Nothing
    }
}

fn push_answer(frames: &mut Vec<u8>, ticket: u64, answer: &QueryAnswer<'_>) -> bool {
    // With a receipt, so the service learns that an answer was too late or had no call.
    let what = What::QueryAnswer(*answer);
    write::command(frames, &Command { datapath: NO_SWITCH, ticket, wants_receipt: true, what })
}

fn push(frames: &mut Vec<u8>, ticket: u64, what: What<'_>) {
    write::command(frames, &Command { datapath: NO_SWITCH, ticket, wants_receipt: false, what });
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::event::Caller;
    use abi::service::Form;
    use abi::{Command, Frame};

    const TICKET: u64 = 9;

    /// A service with one call that has this credit.
    fn asked(credit_bytes: u32) -> Calls {
        let mut calls = Calls::default();
        let caller = Caller { number: 1, name: "app", grant: &[] };
        calls.on_query(&Query {
            ticket: TICKET,
            caller,
            service: "s",
            form: Form::Query,
            deadline_ms: 1,
            credit_bytes,
            payload: &[],
        });
        calls
    }

    /// The parts in these frames: status, more flag, length.
    fn parts(frames: &mut Vec<u8>) -> Vec<(u16, bool, usize)> {
        let (mut rest, mut parts) = (frames.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (frame, others) = Frame::split(rest).unwrap();
            if let What::QueryAnswer(it) = Command::read(&frame).unwrap().what {
                parts.push((it.status, it.more, it.payload.len()));
            }
            rest = others;
        }
        frames.clear();
        parts
    }

    fn answer(payload: &[u8]) -> QueryAnswer<'_> {
        QueryAnswer { status: 5, more: false, payload }
    }

    #[test]
    fn a_long_answer_goes_in_parts_as_its_caller_grants_credit() {
        let (mut calls, mut frames) = (asked(40 << 10), Vec::new());
        assert!(calls.answer(&mut frames, TICKET, &answer(&vec![1; 70 << 10])));
        let part = (0, true, PART_BYTES);
        assert_eq!(parts(&mut frames), [part, part]);
        calls.on_credit(&mut frames, Credit { ticket: TICKET, bytes: 16 << 10 });
        assert_eq!(parts(&mut frames), [part]);
        calls.on_credit(&mut frames, Credit { ticket: TICKET + 1, bytes: 1 << 20 });
        assert_eq!(parts(&mut frames), []);
        calls.on_credit(&mut frames, Credit { ticket: TICKET, bytes: 1 << 20 });
        assert_eq!(parts(&mut frames), [part, (5, false, 6 << 10)]);
        assert!(calls.answering.is_empty() && calls.waiting_bytes == 0);
    }

    #[test]
    fn a_service_keeps_no_more_for_its_callers_than_its_bound() {
        let (mut calls, mut frames) = (asked(0), Vec::new());
        calls.answer(&mut frames, TICKET, &answer(&vec![1; WAITING_BYTES_MAX]));
        assert_eq!((parts(&mut frames), calls.waiting_bytes), (vec![], WAITING_BYTES_MAX));
        let other = Query { ticket: 10, ..asked_query() };
        calls.on_query(&other);
        calls.answer(&mut frames, 10, &answer(&[1]));
        assert_eq!(parts(&mut frames), [(ANSWER_TOO_LONG, false, 0)]);
        calls.on_over(QueryOver { ticket: TICKET, status: TOO_MUCH });
        assert_eq!(calls.waiting_bytes, 0);
    }

    fn asked_query() -> Query<'static> {
        let caller = Caller { number: 1, name: "app", grant: &[] };
        Query {
            ticket: TICKET,
            caller,
            service: "s",
            form: Form::Query,
            deadline_ms: 1,
            credit_bytes: 0,
            payload: &[],
        }
    }

    #[test]
    fn an_answer_in_parts_is_heard_once_and_whole_and_credit_is_granted_meanwhile() {
        let (mut calls, mut frames) = (Calls::default(), Vec::new());
        let reply = |status, more, payload| QueryReply { ticket: 7, status, more, payload };
        let part = [3; PART_BYTES];
        assert_eq!(calls.on_reply(&mut frames, &reply(0, true, &part)), Heard::Nothing);
        assert!(frames.is_empty());
        assert_eq!(calls.on_reply(&mut frames, &reply(0, true, &part)), Heard::Nothing);
        let granted = Command::read(&Frame::read(&frames).unwrap()).unwrap();
        assert!(matches!(granted.what, What::QueryCredit(bytes) if bytes == 2 * (16 << 10) + 128));
        let Heard::Answer(4, whole) = calls.on_reply(&mut frames, &reply(4, false, &[9])) else { panic!() };
        assert_eq!((whole.len(), whole.last()), (2 * PART_BYTES + 1, Some(&9)));
        assert_eq!(calls.assembled_bytes, 0);
        let alone = calls.on_reply(&mut frames, &reply(0, false, b"x"));
        assert_eq!(alone, Heard::Answer(0, Cow::Borrowed(b"x")));
    }

    #[test]
    fn of_an_answer_that_breaks_off_only_the_reason_is_heard() {
        let (mut calls, mut frames) = (Calls::default(), Vec::new());
        let reply = |status, more, payload| QueryReply { ticket: 7, status, more, payload };
        calls.on_reply(&mut frames, &reply(0, true, b"half"));
        let heard = calls.on_reply(&mut frames, &reply(abi::event::SERVICE_GONE, false, b""));
        assert_eq!(heard, Heard::Answer(abi::event::SERVICE_GONE, Cow::Borrowed(&[])));
    }

    #[test]
    fn of_a_call_that_was_cancelled_between_its_parts_nothing_is_left() {
        let (mut calls, mut frames) = (Calls::default(), Vec::new());
        let reply = |ticket, more| QueryReply { ticket, status: 0, more, payload: &[1; 100] };
        for ticket in 0..CANCELLED_MAX as u64 + 1 {
            assert_eq!(calls.on_reply(&mut frames, &reply(ticket, true)), Heard::Nothing);
            calls.cancel(ticket);
            // Both were on their way.
            assert_eq!(calls.on_reply(&mut frames, &reply(ticket, true)), Heard::Nothing);
            assert_eq!(calls.on_reply(&mut frames, &reply(ticket, false)), Heard::Nothing);
        }
        assert!(calls.assembling.is_empty() && frames.is_empty());
        assert_eq!((calls.assembled_bytes, calls.cancelled.len()), (0, CANCELLED_MAX));
    }

    #[test]
    fn an_answer_without_end_is_cancelled() {
        let (mut calls, mut frames) = (Calls::default(), Vec::new());
        let part = vec![0; 1 << 16];
        let reply = QueryReply { ticket: 7, status: 0, more: true, payload: &part };
        for _ in 0..ASSEMBLED_BYTES_MAX >> 16 {
            assert_eq!(calls.on_reply(&mut frames, &reply), Heard::Nothing);
        }
        frames.clear();
        assert_eq!(calls.on_reply(&mut frames, &reply), Heard::Answer(TOO_MUCH, Cow::Borrowed(&[])));
        let cancelled = Command::read(&Frame::read(&frames).unwrap()).unwrap();
        assert!(matches!(cancelled.what, What::QueryCancel));
        assert_eq!(calls.assembled_bytes, 0);
    }
}
