//! The open calls to services: caller, service, deadline, and the remaining credit for the answer.
//!
//! ```text
//!   open ──> a ticket ──> answer (part) … answer (last part)
//!                    └──> credit, cancel, expire, forget (a zone is gone)  ──> Over: whom to tell, and why
//! ```
//!
//! In: zones, tickets, lengths, the time. Out: where to send a part of an answer, or why it is refused. It never holds
//! queries or answers, and knows no service by name.

use abi::ZoneId;
use abi::event::{ANSWER_LOST, CALLER_GONE, CANCELLED, NO_ANSWER_IN_TIME, SERVICE_GONE, TOO_MUCH};
use abi::service::{Ask, CREDIT_BYTES_MAX, Form, QueryAnswer, at_home, home_of};
use std::collections::{HashMap, VecDeque};
use std::fmt;

/// How many calls of one zone may be open. The kernel refuses further calls: a slow service must not make the kernel
/// grow.
pub const OPEN_CALLS_PER_ZONE: u16 = 256;

/// The low bits of a ticket hold its place. The other bits, up to its home, hold the use count of the place.
const PLACE_BITS: u32 = 20;

/// One end of a call: a zone, and the ticket by which it knows the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The zone.
    pub zone: ZoneId,
    /// The caller's own ticket, or the kernel's ticket, which the service gets.
    pub ticket: u64,
}

/// A call that ended before its last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Over {
    /// The end that gets `status` as the last part; `None` if the caller has ended, or has cancelled the call.
    pub caller: Option<End>,
    /// The service that must learn that the call is over; `None` if it has ended.
    pub service: Option<End>,
    /// The reason, a status of [`abi::event`].
    pub status: u16,
}

/// Why the kernel refuses a part of an answer. The service is at fault, or the part came too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// This service never received such a call.
    Never,
    /// The service has already answered it completely.
    Answered,
    /// The call ended for this reason, a status of [`abi::event`].
    Over(u16),
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Unasked::Never => "there is no open query of that ticket",
            Unasked::Answered => "the query was answered already",
            Unasked::Over(NO_ANSWER_IN_TIME) => "the query's deadline has passed",
            Unasked::Over(CANCELLED) => "the caller has cancelled the query",
            Unasked::Over(CALLER_GONE) => "the caller of the query is gone",
            Unasked::Over(TOO_MUCH) => {
                "the query is over: more was answered than its caller granted credit for"
            }
            Unasked::Over(ANSWER_LOST) => "the query is over: its caller does not keep up",
            Unasked::Over(_) => "the query is over",
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    caller: End,
    service: ZoneId,
    form: Form,
    deadline_ms: u32,
    /// `u64::MAX` for a stream that has started.
    until_ms: u64,
    credit_bytes: u32,
    /// Credit that the service has not received yet, because its queue is full.
    untold_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open(Call),
    Free(Unasked),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The use count of the place. It distinguishes this call's ticket from the tickets of earlier calls.
    uses: u32,
    state: State,
    /// The service of the latest call.
    service: ZoneId,
}

/// The open calls of one kernel. It has as many places as calls were ever open at once: at most [`OPEN_CALLS_PER_ZONE`]
/// for each zone.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The number of the worker whose kernel this is; the home of its tickets.
    home: u8,
    places: Vec<Place>,
    /// The place that was freed first is reused first. So the reason for a refused late answer stays known for long.
    free: VecDeque<u32>,
    by_caller: HashMap<End, u32>,
    open_of: HashMap<ZoneId, u16>,
    /// A lower bound of all deadlines.
    earliest_ms: u64,
    /// The number of calls whose service has not received all credit.
    untold: usize,
}

impl Calls {
    /// Creates the calls of this worker's kernel.
    pub fn at(home: u8) -> Calls {
        Calls { home, ..Calls::default() }
    }

    /// Opens a call, and returns the kernel's ticket for it; `None` if the caller has too many.
    pub fn open(&mut self, caller: End, service: ZoneId, ask: &Ask<'_>, now_ms: u64) -> Option<u64> {
        let open = self.open_of.entry(caller.zone).or_default();
        if *open >= OPEN_CALLS_PER_ZONE {
            return None;
        }
        *open += 1;
        let (deadline_ms, credit_bytes) = (ask.deadline_ms(), ask.credit_bytes());
        let until_ms = now_ms.saturating_add(deadline_ms.into());
        let form = ask.form;
        let call = Call { caller, service, form, deadline_ms, until_ms, credit_bytes, untold_bytes: 0 };
        self.earliest_ms = if self.by_caller.is_empty() { until_ms } else { self.earliest_ms.min(until_ms) };
        let place = self.place_for(call);
        self.by_caller.insert(caller, place);
        Some(self.ticket(place))
    }

    fn place_for(&mut self, call: Call) -> u32 {
        let state = State::Open(call);
        if let Some(place) = self.free.pop_front()
            && let Some(used) = self.places.get_mut(place as usize)
        {
            *used = Place { uses: used.uses.wrapping_add(1), state, service: call.service };
            return place;
        }
        self.places.push(Place { uses: 0, state, service: call.service });
        // 256 for each of a few thousand zones.
        (self.places.len() - 1) as u32
    }

    fn ticket(&self, place: u32) -> u64 {
        let uses = self.places.get(place as usize).map_or(0, |it| it.uses);
        // Never 0: that ticket means "no ticket".
        at_home(self.home, (u64::from(uses) << PLACE_BITS) | (u64::from(place) + 1))
    }

    fn place_of(&self, ticket: u64) -> Option<u32> {
        let number = u32::try_from(ticket & ((1 << PLACE_BITS) - 1)).ok()?.checked_sub(1)?;
        let is_known = home_of(ticket) == self.home && (number as usize) < self.places.len();
        is_known.then_some(number)
    }

    /// The place of this ticket, if the ticket's call is open.
    fn in_use(&self, ticket: u64) -> Option<u32> {
        self.place_of(ticket).filter(|place| self.ticket(*place) == ticket)
    }

    fn call(&mut self, place: u32) -> Option<&mut Call> {
        match self.places.get_mut(place as usize) {
            Some(Place { state: State::Open(call), .. }) => Some(call),
            _ => None,
        }
    }

    /// Takes a part of an answer, and returns its caller. The last part closes the call. A part beyond the credit
    /// closes it too, and returns the notice for both ends.
    pub fn answer(
        &mut self,
        service: ZoneId,
        ticket: u64,
        part: &QueryAnswer<'_>,
        now_ms: u64,
    ) -> Result<End, Wrong> {
        let place = self.in_use(ticket).ok_or(Wrong::Unasked(self.why_not(service, ticket)))?;
        match self.places[place as usize] {
            Place { service: asked, .. } if asked != service => Err(Wrong::Unasked(Unasked::Never)),
            Place { state: State::Free(why), .. } => Err(Wrong::Unasked(why)),
            Place { state: State::Open(call), .. } if part.cost_bytes() > call.credit_bytes => {
                Err(Wrong::BeyondCredit(self.end(place, TOO_MUCH, true, false)))
            }
            Place { state: State::Open(call), .. } => {
                if part.more {
                    self.go_on(place, part, now_ms);
                } else {
                    self.free(place, Unasked::Answered);
                }
                Ok(call.caller)
            }
        }
    }

    /// Records a part that is not the last.
    fn go_on(&mut self, place: u32, part: &QueryAnswer<'_>, now_ms: u64) {
        let Some(call) = self.call(place) else { return };
        call.credit_bytes -= part.cost_bytes();
        call.until_ms = match call.form {
            Form::Stream => u64::MAX,
            Form::Query => now_ms.saturating_add(call.deadline_ms.into()),
        };
    }

    /// Why this ticket belongs to no open call.
    fn why_not(&self, service: ZoneId, ticket: u64) -> Unasked {
        let place = self.place_of(ticket).and_then(|place| self.places.get(place as usize));
        match place {
            // The ticket is from an earlier use of the place. That call ended long ago.
            Some(place) if place.service == service => Unasked::Answered,
            _ => Unasked::Never,
        }
    }

    /// The caller grants more credit. Returns the service's end and the credit to report to it.
    pub fn credit(&mut self, caller: End, bytes: u32) -> Result<(End, u32), NoCall> {
        let place = *self.by_caller.get(&caller).ok_or(NoCall::NotOpen)?;
        let ticket = self.ticket(place);
        let Some(call) = self.call(place) else { return Err(NoCall::NotOpen) };
        let credit_bytes = call.credit_bytes.checked_add(bytes).filter(|sum| *sum <= CREDIT_BYTES_MAX);
        call.credit_bytes = credit_bytes.ok_or(NoCall::TooMuchCredit)?;
        let tell_bytes = bytes + std::mem::take(&mut call.untold_bytes);
        let service = End { zone: call.service, ticket };
        self.untold -= usize::from(tell_bytes > bytes);
        Ok((service, tell_bytes))
    }

    /// The kernel could not send the credit to the service now; [`Self::untold`] returns it again.
    pub fn keep_credit(&mut self, ticket: u64, bytes: u32) {
        let Some(call) = self.in_use(ticket).and_then(|place| self.call(place)) else { return };
        let is_first = call.untold_bytes == 0;
        call.untold_bytes += bytes;
        self.untold += usize::from(is_first && bytes > 0);
    }

    /// Takes all credit that the services have not received yet, for sending now.
    pub fn untold(&mut self) -> Vec<(ZoneId, End, u32)> {
        if self.untold == 0 {
            return Vec::new();
        }
        self.untold = 0;
        let places = 0..self.places.len() as u32;
        let mut told = Vec::new();
        for place in places {
            let ticket = self.ticket(place);
            let Some(call) = self.call(place).filter(|call| call.untold_bytes > 0) else { continue };
            let bytes = std::mem::take(&mut call.untold_bytes);
            told.push((call.caller.zone, End { zone: call.service, ticket }, bytes));
        }
        told
    }

    /// The caller cancels the call. Returns the notice for the service.
    pub fn cancel(&mut self, caller: End) -> Option<Over> {
        let place = *self.by_caller.get(&caller)?;
        Some(self.end(place, CANCELLED, false, true))
    }

    /// Closes the call of this ticket without a message, if it is open: the service did not get the query.
    pub fn close(&mut self, ticket: u64) {
        if let Some(place) = self.in_use(ticket) {
            self.free(place, Unasked::Answered);
        }
    }

    /// The kernel could not deliver a part of the answer: the call is over for both ends.
    pub fn lose(&mut self, ticket: u64) {
        if let Some(place) = self.in_use(ticket) {
            self.free(place, Unasked::Over(ANSWER_LOST));
        }
    }

    /// Closes the calls whose service missed the deadline.
    pub fn expire(&mut self, now_ms: u64) -> Vec<Over> {
        if self.by_caller.is_empty() || now_ms < self.earliest_ms {
            return Vec::new();
        }
        let late = self.end_all(NO_ANSWER_IN_TIME, |call| call.until_ms <= now_ms);
        let open = self.places.iter().filter_map(|place| match &place.state {
            State::Open(call) => Some(call.until_ms),
            State::Free(_) => None,
        });
        self.earliest_ms = open.min().unwrap_or(u64::MAX);
        late
    }

    /// A time before which no deadline passes; `None` if no call waits.
    pub fn earliest_ms(&self) -> Option<u64> {
        (!self.by_caller.is_empty() && self.earliest_ms != u64::MAX).then_some(self.earliest_ms)
    }

    /// A zone has ended. Returns notices for the services that it called and the zones that called it.
    pub fn forget(&mut self, zone: ZoneId) -> Vec<Over> {
        let mut over = self.end_all(SERVICE_GONE, |call| call.service == zone);
        over.extend(self.end_all(CALLER_GONE, |call| call.caller.zone == zone));
        over
    }

    fn end_all(&mut self, status: u16, which: impl Fn(&Call) -> bool) -> Vec<Over> {
        let mut over = Vec::new();
        for place in 0..self.places.len() as u32 {
            let Some(call) = self.call(place) else { continue };
            if which(call) {
                let (to_caller, to_service) = (status != CALLER_GONE, status != SERVICE_GONE);
                let own = call.caller.zone == call.service;
                over.push(self.end(place, status, to_caller && (to_service || !own), to_service));
            }
        }
        over
    }

    fn end(&mut self, place: u32, status: u16, to_caller: bool, to_service: bool) -> Over {
        let ticket = self.ticket(place);
        let ends = self.call(place).map(|call| (call.caller, End { zone: call.service, ticket }));
        self.free(place, Unasked::Over(status));
        let (caller, service) = ends.unzip();
        Over { caller: caller.filter(|_| to_caller), service: service.filter(|_| to_service), status }
    }

    fn free(&mut self, place: u32, why: Unasked) {
        let Some(it) = self.places.get_mut(place as usize) else { return };
        let State::Open(call) = it.state else { return };
        it.state = State::Free(why);
        self.free.push_back(place);
        self.untold -= usize::from(call.untold_bytes > 0);
        // If a caller uses a ticket twice, the ticket means the later call.
        if self.by_caller.get(&call.caller) == Some(&place) {
            self.by_caller.remove(&call.caller);
        }
        if let Some(open) = self.open_of.get_mut(&call.caller.zone) {
            *open -= 1;
        }
    }
}

/// Why the kernel does not pass on a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The ticket belongs to no open query.
    Unasked(Unasked),
    /// The part is larger than the remaining credit; the call is over.
    BeyondCredit(Over),
}

/// Why the kernel refuses a command about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefused {
    /// An answer to a query that is not open.
    NoSuchQuery(Unasked),
    /// A status that only the kernel may send.
    StatusOfKernel(u16),
    /// A part that is longer than the remaining credit. The call is over.
    BeyondCredit,
    /// More credit than a call may have.
    TooMuchCredit,
    /// The app has too many open queries. It must wait for an answer first.
    TooManyQueries,
}

impl fmt::Display for CallRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallRefused::NoSuchQuery(why) => why.fmt(f),
            CallRefused::StatusOfKernel(status) => {
                write!(f, "a service cannot use the status {status:#06x}: only the kernel uses it")
            }
            CallRefused::BeyondCredit => {
                f.write_str("more was answered than the caller granted credit for; the query is over")
            }
            CallRefused::TooMuchCredit => {
                write!(
                    f,
                    "a call has no more than {} bytes of credit at once",
                    abi::service::CREDIT_BYTES_MAX
                )
            }
            CallRefused::TooManyQueries => {
                write!(f, "{OPEN_CALLS_PER_ZONE} queries of the app are open already")
            }
        }
    }
}

/// Why a caller's command on a call changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCall {
    /// The caller has no open call with this ticket.
    NotOpen,
    /// The call would have more credit than [`CREDIT_BYTES_MAX`].
    TooMuchCredit,
}

#[cfg(test)]
mod tests;
