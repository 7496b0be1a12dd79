//! The frames between an app and a service: a call, its answer in parts, credit for more, and its end.
//!
//! ```text
//!   app ──QUERY (service, deadline, credit, payload)──> kernel ──QUERY (ticket, caller, grant, …)──> service
//!   app <──QUERY_REPLY (part, part, last part)───────── kernel <──QUERY_ANSWER (ticket, part)─────── service
//!   app ──QUERY_CREDIT, QUERY_CANCEL──────────────────> kernel ──QUERY_CREDIT, QUERY_OVER──────────> service
//! ```
//!
//! In: bodies of frames. Out: the same, read in place. It knows no service and interprets no payload.

use crate::frame::{Malformed, Reader};
use crate::header::HEADER_LEN;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The default deadline for an answer, and for each further part of it, in milliseconds.
pub const DEADLINE_MS_DEFAULT: u32 = 10_000;

/// The longest deadline, in milliseconds. A longer one is cut to this.
pub const DEADLINE_MS_MAX: u32 = 600_000;

/// The default credit of a call in bytes.
pub const CREDIT_BYTES_DEFAULT: u32 = 64 << 10;

/// The most credit that a call can have at once. A query or a grant of credit beyond it is refused.
pub const CREDIT_BYTES_MAX: u32 = 1 << 20;

/// The credit that each part but the last costs beside its payload. So the number of empty parts is bounded too.
pub const PART_COST_BYTES: u32 = 64;

/// The longest name of a service, in bytes.
pub const SERVICE_NAME_BYTES_MAX: usize = 64;

/// The maximum length of the grant for one service, in bytes. The node refuses a longer one in its configuration.
pub const GRANT_BYTES_MAX: usize = 16 << 10;

/// The position of the home in a ticket; see [`home_of`].
const HOME_SHIFT: u32 = 52;

/// The home of a ticket. For a ticket of the kernel, it is the worker's number. For a ticket of an app, it is a number that
/// is equal for all calls to one service. An app with several ports uses the port `home_of(ticket) % ports` for a call. So
/// calls to one service stay in order, and answers return to the right worker.
pub const fn home_of(ticket: u64) -> u8 {
    (ticket >> HOME_SHIFT) as u8
}

/// A ticket with this home; `number` is cut to 52 bits.
pub const fn at_home(home: u8, number: u64) -> u64 {
    ((home as u64) << HOME_SHIFT) | (number & ((1 << HOME_SHIFT) - 1))
}

/// The home of calls to this service, or of messages on this topic (FNV-1a, folded).
pub fn home_for(name: &str) -> u8 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 8) ^ (hash >> 16) ^ (hash >> 24)) as u8
}

/// The type of answer that a call requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Form {
    /// One answer, in parts if it is long. Each part must come before the deadline.
    Query = 0,
    /// A snapshot, then changes, until the caller or the service ends it. Only the first part has a deadline.
    Stream = 1,
}

impl Form {
    /// The form with this number.
    pub const fn from_number(number: u8) -> Option<Form> {
        match number {
            0 => Some(Form::Query),
            1 => Some(Form::Stream),
            _ => None,
        }
    }
}

/// A call of an app to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// The service's name.
    pub service: &'a str,
    /// The type of answer.
    pub form: Form,
    /// How long the caller waits, in milliseconds; 0 is [`DEADLINE_MS_DEFAULT`].
    pub deadline_ms: u32,
    /// The initial credit in bytes; 0 is [`CREDIT_BYTES_DEFAULT`].
    pub credit_bytes: u32,
    /// The question, as the service's contract encodes it.
    pub payload: &'a [u8],
}

impl<'a> Ask<'a> {
    /// A query with the default deadline and credit.
    pub const fn query(service: &'a str, payload: &'a [u8]) -> Ask<'a> {
        Ask { service, form: Form::Query, deadline_ms: 0, credit_bytes: 0, payload }
    }

    /// The effective deadline.
    pub fn deadline_ms(&self) -> u32 {
        if self.deadline_ms == 0 { DEADLINE_MS_DEFAULT } else { self.deadline_ms.min(DEADLINE_MS_MAX) }
    }

    /// The effective credit.
    pub fn credit_bytes(&self) -> u32 {
        if self.credit_bytes == 0 { CREDIT_BYTES_DEFAULT } else { self.credit_bytes }
    }
}

/// The caller, as the kernel reports it to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The number of its zone. 32 bits: a cluster may number zones of all nodes.
    pub number: u32,
    /// The app's name on this node.
    pub name: &'a str,
    /// Its grant for this service. The node writes it, and the kernel does not read it. Empty if there is none.
    pub grant: &'a [u8],
}

/// A call, as the service receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// The ticket of the call. Each part of the answer carries it.
    pub ticket: u64,
    /// The caller.
    pub caller: Caller<'a>,
    /// The name by which the service was called.
    pub service: &'a str,
    /// The type of answer.
    pub form: Form,
    /// How long the caller waits, in milliseconds.
    pub deadline_ms: u32,
    /// The initial credit in bytes.
    pub credit_bytes: u32,
    /// The question.
    pub payload: &'a [u8],
}

/// A part of an answer. The ticket of the command is the ticket of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryAnswer<'a> {
    /// 0: success. Below [`crate::event::STATUS_OF_KERNEL`], the service defines it.
    pub status: u16,
    /// Whether another part follows.
    pub more: bool,
    /// The payload.
    pub payload: &'a [u8],
}

impl QueryAnswer<'_> {
    /// The credit that it costs, in bytes.
    pub fn cost_bytes(&self) -> u32 {
        let beside = if self.more { PART_COST_BYTES } else { 0 };
        // A frame is far shorter than 4 GiB.
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(beside)
    }
}

/// A part of an answer, as the caller receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryReply<'a> {
    /// The call's ticket.
    pub ticket: u64,
    /// As in [`QueryAnswer::status`]; from [`crate::event::STATUS_OF_KERNEL`] on it is one of those in [`crate::event`], and the payload is a
    /// sentence for people, or empty.
    pub status: u16,
    /// Whether another part follows.
    pub more: bool,
    /// The payload.
    pub payload: &'a [u8],
}

/// More credit for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The call's ticket.
    pub ticket: u64,
    /// The additional credit in bytes.
    pub bytes: u32,
}

/// A call ended before its last part. The service need not answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryOver {
    /// The call's ticket.
    pub ticket: u64,
    /// The reason: a status such as [`crate::event::NO_ANSWER_IN_TIME`] or [`crate::event::CALLER_GONE`].
    pub status: u16,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct AskFixed {
    deadline_ms: U32,
    credit_bytes: U32,
    service_len: U16,
    form: u8,
    reserved: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct QueryFixed {
    ticket: U64,
    caller: U32,
    name_len: U16,
    grant_len: U16,
    ask: AskFixed,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct TicketFixed {
    ticket: U64,
    number: U32,
    reserved: [u8; 4],
}

fn wrong(reason: &'static str) -> Malformed {
    Malformed { offset: HEADER_LEN, reason }
}

impl AskFixed {
    fn form(&self) -> Result<Form, Malformed> {
        Form::from_number(self.form).ok_or(wrong("unknown call type"))
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn read(mut body: Reader<'a>) -> Result<Self, Malformed> {
        let fixed: &AskFixed = body.fixed()?;
        let service = body.text(fixed.service_len.get().into())?;
        if service.len() > SERVICE_NAME_BYTES_MAX {
            return Err(wrong("the name of a service is longer than 64 bytes"));
        }
        if fixed.credit_bytes.get() > CREDIT_BYTES_MAX {
            return Err(wrong("a call has no more than 1 MiB of credit at once"));
        }
        Ok(Ask {
            service,
            form: fixed.form()?,
            deadline_ms: fixed.deadline_ms.get(),
            credit_bytes: fixed.credit_bytes.get(),
            payload: body.rest(),
        })
    }

    /// `None` if the name is longer than its length field can hold.
    pub(crate) fn fixed(&self) -> Option<AskFixed> {
        Some(AskFixed {
            deadline_ms: self.deadline_ms.into(),
            credit_bytes: self.credit_bytes.into(),
            service_len: u16::try_from(self.service.len()).ok()?.into(),
            form: self.form as u8,
            reserved: 0,
        })
    }
}

impl<'a> Query<'a> {
    pub(crate) fn read(mut body: Reader<'a>) -> Result<Self, Malformed> {
        let fixed: &QueryFixed = body.fixed()?;
        let name = body.text(fixed.name_len.get().into())?;
        let service = body.text(fixed.ask.service_len.get().into())?;
        let grant = body.bytes(fixed.grant_len.get().into())?;
        Ok(Query {
            ticket: fixed.ticket.get(),
            caller: Caller { number: fixed.caller.get(), name, grant },
            service,
            form: fixed.ask.form()?,
            deadline_ms: fixed.ask.deadline_ms.get(),
            credit_bytes: fixed.ask.credit_bytes.get(),
            payload: body.rest(),
        })
    }

    /// `None` if a part is longer than its length field can hold.
    pub(crate) fn fixed(&self) -> Option<QueryFixed> {
        let Query { ticket, caller, service, form, deadline_ms, credit_bytes, payload } = *self;
        let ask = Ask { service, form, deadline_ms, credit_bytes, payload };
        Some(QueryFixed {
            ticket: ticket.into(),
            caller: caller.number.into(),
            name_len: u16::try_from(caller.name.len()).ok()?.into(),
            grant_len: u16::try_from(caller.grant.len()).ok()?.into(),
            ask: ask.fixed()?,
        })
    }
}

impl TicketFixed {
    pub(crate) fn new(ticket: u64, number: u32) -> TicketFixed {
        TicketFixed { ticket: ticket.into(), number: number.into(), reserved: [0; 4] }
    }
}

impl Credit {
    pub(crate) fn read(mut body: Reader<'_>) -> Result<Self, Malformed> {
        let fixed: &TicketFixed = body.fixed()?;
        Ok(Credit { ticket: fixed.ticket.get(), bytes: fixed.number.get() })
    }
}

impl QueryOver {
    pub(crate) fn read(mut body: Reader<'_>) -> Result<Self, Malformed> {
        let fixed: &TicketFixed = body.fixed()?;
        let status = u16::try_from(fixed.number.get()).map_err(|_| wrong("unknown status"))?;
        Ok(QueryOver { ticket: fixed.ticket.get(), status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_keeps_its_home_and_its_number_apart() {
        let check = |home, number, expected: (u8, u64)| {
            let ticket = at_home(home, number);
            assert_eq!((home_of(ticket), ticket & 0xf_ffff_ffff_ffff), expected);
            assert!(ticket < 1 << 63, "tickets from 2^63 on are the kernel's own questions to switches");
        };
        check(0, 0, (0, 0));
        check(255, 7, (255, 7));
        check(31, u64::MAX, (31, 0xf_ffff_ffff_ffff));
        assert_eq!(home_for("store"), home_for("store"));
    }

    #[test]
    fn what_a_caller_leaves_out_has_a_default_and_what_is_too_long_is_cut() {
        let ask = Ask::query("store", b"");
        assert_eq!((ask.deadline_ms(), ask.credit_bytes()), (10_000, 64 << 10));
        let long = Ask { deadline_ms: u32::MAX, credit_bytes: 1, ..ask };
        assert_eq!((long.deadline_ms(), long.credit_bytes()), (600_000, 1));
    }

    #[test]
    fn an_empty_part_costs_credit_too_unless_it_is_the_last() {
        let part = |more| QueryAnswer { status: 0, more, payload: &[] };
        assert_eq!((part(true).cost_bytes(), part(false).cost_bytes()), (64, 0));
    }
}
