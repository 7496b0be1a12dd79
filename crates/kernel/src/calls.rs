//! Calls to services that are open: who asked whom, until when, and how much of an answer may still come.
//!
//! ```text
//!   open ──> a ticket ──> answer (part) … answer (last part)
//!                    └──> credit, cancel, expire, forget (a zone is gone)  ──> Over: whom to tell, and why
//! ```
//!
//! In: zones, tickets, lengths, the time. Out: where a part goes, or why it does not. It never holds what was asked or answered, and knows no
//! service by name.

use abi::ZoneId;
use abi::event::{ANSWER_LOST, CALLER_GONE, CANCELLED, NO_ANSWER_IN_TIME, SERVICE_GONE, TOO_MUCH};
use abi::service::{Ask, CREDIT_BYTES_MAX, Form, QueryAnswer, at_home, home_of};
use std::collections::{HashMap, VecDeque};
use std::fmt;

/// How many calls of one zone may be open. One more is refused: a service that does not answer must not make the kernel grow.
pub const OPEN_CALLS_PER_ZONE: u16 = 256;

/// Bits of a ticket that say which place it has; the others up to its home say how often the place was used.
const PLACE_BITS: u32 = 20;

/// One end of a call: a zone, and the ticket by which it knows the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The zone.
    pub zone: ZoneId,
    /// The caller's own ticket, or the kernel's, which the service hears.
    pub ticket: u64,
}

/// A call is over before its last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Over {
    /// Who is to get `status` as the last part; `None` if the caller is gone, or ended it.
    pub caller: Option<End>,
    /// Who is to hear that it is over; `None` if the service is gone.
    pub service: Option<End>,
    /// Why, a status of [`abi::event`].
    pub status: u16,
}

/// Why a part of an answer does not pass. It is the service's fault, or it came too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unasked {
    /// No such call was ever made to this service.
    Never,
    /// It was answered to the end.
    Answered,
    /// It is over for this reason, a status of [`abi::event`].
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
    /// `u64::MAX`: a stream that has begun.
    until_ms: u64,
    credit_bytes: u32,
    /// Credit that the service was not told of yet, since it does not keep up.
    untold_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open(Call),
    Free(Unasked),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// How often it was used: a ticket of an earlier use is not mistaken for one of this.
    uses: u32,
    state: State,
    /// Which service had it last.
    service: ZoneId,
}

/// The open calls of one kernel. As many places as calls were ever open at once: at most [`OPEN_CALLS_PER_ZONE`] for each zone.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The number of the worker whose kernel this is; the home of its tickets.
    home: u8,
    places: Vec<Place>,
    /// The one that was freed first is used first, so that a late answer hears for long why it is late.
    free: VecDeque<u32>,
    by_caller: HashMap<End, u32>,
    open_of: HashMap<ZoneId, u16>,
    /// No deadline is earlier.
    earliest_ms: u64,
    /// Calls whose service was not told of all credit.
    untold: usize,
}

impl Calls {
    /// Of the kernel of this worker.
    pub fn at(home: u8) -> Calls {
        Calls { home, ..Calls::default() }
    }

    /// Opens a call, and gives the kernel's ticket for it; `None` if the caller has too many.
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
        // Never 0, which is the ticket of what has none.
        at_home(self.home, (u64::from(uses) << PLACE_BITS) | (u64::from(place) + 1))
    }

    fn place_of(&self, ticket: u64) -> Option<u32> {
        let number = u32::try_from(ticket & ((1 << PLACE_BITS) - 1)).ok()?.checked_sub(1)?;
        let is_known = home_of(ticket) == self.home && (number as usize) < self.places.len();
        is_known.then_some(number)
    }

    /// The place of this ticket in its present use.
    fn in_use(&self, ticket: u64) -> Option<u32> {
        self.place_of(ticket).filter(|place| self.ticket(*place) == ticket)
    }

    fn call(&mut self, place: u32) -> Option<&mut Call> {
        match self.places.get_mut(place as usize) {
            Some(Place { state: State::Open(call), .. }) => Some(call),
            _ => None,
        }
    }

    /// Part of an answer: returns its caller. The last part closes the call. One beyond the credit closes it too, and
    /// comes back as what both ends
    /// are to hear.
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

    /// A part that is not the last has passed.
    fn go_on(&mut self, place: u32, part: &QueryAnswer<'_>, now_ms: u64) {
        let Some(call) = self.call(place) else { return };
        call.credit_bytes -= part.cost_bytes();
        call.until_ms = match call.form {
            Form::Stream => u64::MAX,
            Form::Query => now_ms.saturating_add(call.deadline_ms.into()),
        };
    }

    /// Why a ticket is none of a call that is open.
    fn why_not(&self, service: ZoneId, ticket: u64) -> Unasked {
        let place = self.place_of(ticket).and_then(|place| self.places.get(place as usize));
        match place {
            // Of an earlier use of the place: it was over long ago, however it ended.
            Some(place) if place.service == service => Unasked::Answered,
            _ => Unasked::Never,
        }
    }

    /// The caller grants more: the service's end and how much it is to be told of.
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

    /// The service could not be told of credit now; [`Self::untold`] gives it again.
    pub fn keep_credit(&mut self, ticket: u64, bytes: u32) {
        let Some(call) = self.in_use(ticket).and_then(|place| self.call(place)) else { return };
        let is_first = call.untold_bytes == 0;
        call.untold_bytes += bytes;
        self.untold += usize::from(is_first && bytes > 0);
    }

    /// Credit of which services were not told yet; they are to be told now.
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

    /// The caller does not want it any more: the service is to hear so.
    pub fn cancel(&mut self, caller: End) -> Option<Over> {
        let place = *self.by_caller.get(&caller)?;
        Some(self.end(place, CANCELLED, false, true))
    }

    /// The call of this ticket ends without a message, if it is open: the service did not get it.
    pub fn close(&mut self, ticket: u64) {
        if let Some(place) = self.in_use(ticket) {
            self.free(place, Unasked::Answered);
        }
    }

    /// A part of the answer could not be handed over: the call is over for both.
    pub fn lose(&mut self, ticket: u64) {
        if let Some(place) = self.in_use(ticket) {
            self.free(place, Unasked::Over(ANSWER_LOST));
        }
    }

    /// Closes those whose service has said nothing in time.
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

    /// When the next deadline may pass; `None` if nothing waits.
    pub fn earliest_ms(&self) -> Option<u64> {
        (!self.by_caller.is_empty() && self.earliest_ms != u64::MAX).then_some(self.earliest_ms)
    }

    /// A zone has ended. The services that it called and the zones that called it are told.
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
        // A caller that uses a ticket twice has the later call under it.
        if self.by_caller.get(&call.caller) == Some(&place) {
            self.by_caller.remove(&call.caller);
        }
        if let Some(open) = self.open_of.get_mut(&call.caller.zone) {
            *open -= 1;
        }
    }
}

/// Why a part of an answer does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It answers nothing.
    Unasked(Unasked),
    /// It is more than the caller takes; the call is over.
    BeyondCredit(Over),
}

/// Why the kernel refuses a command about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRefused {
    /// An answer to a query that is not open.
    NoSuchQuery(Unasked),
    /// An answer with a status that only the kernel gives.
    StatusOfKernel(u16),
    /// A part of an answer that is longer than the credit that is left. The call is over.
    BeyondCredit,
    /// More credit than a call may have.
    TooMuchCredit,
    /// Too many queries are open. The oldest must be answered first.
    TooManyQueries,
}

impl fmt::Display for CallRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallRefused::NoSuchQuery(why) => why.fmt(f),
            CallRefused::StatusOfKernel(status) => {
                write!(f, "a service does not say the status {status:#06x}: it is the kernel's")
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

/// Why a caller's word on a call changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCall {
    /// It has no open call of this ticket.
    NotOpen,
    /// The call would have more credit than [`CREDIT_BYTES_MAX`].
    TooMuchCredit,
}

#[cfg(test)]
mod tests;
