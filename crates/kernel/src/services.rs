//! Whether an app may call a service, and what becomes of a call.
//!
//! In: the commands of callers and services. Out: a decision for the worker, which carries it out. It knows a service by the name of its zone alone,
//! and reads neither questions, answers nor the parts of grants that it hands to services.

use crate::calls::{End, NoCall, Over, Wrong};
use crate::capability::Capability;
use crate::decision::{Decision, Effect, Refusal};
use crate::dispatch::Kernel;
use abi::ZoneId;
use abi::command::{Ask, QueryAnswer};
use abi::event::{NOT_GRANTED, OVER_QUOTA, may_be_said};

impl Kernel {
    /// An app calls a service. It may if it holds `query` for the service, or a part of its grant is meant for that service.
    pub(crate) fn ask<'a>(
        &mut self,
        zone: ZoneId,
        ticket: u64,
        ask: Ask<'a>,
        now_ms: u64,
    ) -> Result<Decision<'a>, Refusal> {
        self.check_may_ask(zone, ask.service)?;
        let Some(service) = self.named.get(ask.service).copied() else {
            return Ok(Decision::NoSuchService { ticket, service: ask.service });
        };
        let caller = End { zone, ticket };
        let ticket = self.calls.open(caller, service, &ask, now_ms).ok_or(Refusal::TooManyQueries)?;
        Ok(Decision::Ask { to: service, ticket, ask })
    }

    fn check_may_ask(&self, zone: ZoneId, service: &str) -> Result<(), Refusal> {
        let Some(caller) = self.zone(zone) else { return Ok(()) };
        let grant = &caller.grant;
        match grant.holds_for(Capability::Query, service) || grant.service(service).is_some() {
            true => Ok(()),
            false if grant.holds(Capability::Query) => Err(Refusal::NotFor(Capability::Query)),
            false => Err(Refusal::Needs(Capability::Query)),
        }
    }

    /// A service answers, or sends a part of an answer.
    pub(crate) fn answer<'a>(
        &mut self,
        zone: ZoneId,
        ticket: u64,
        answer: QueryAnswer<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        if !may_be_said(answer.status) {
            return Err(Refusal::StatusOfKernel(answer.status));
        }
        match self.calls.answer(zone, ticket, &answer, now_ms) {
            Ok(End { zone: to, ticket }) => {
                self.count_refusal_of_service(to, answer.status);
                Ok(Decision::Answer { to, ticket, answer })
            }
            Err(Wrong::Unasked(why)) => Err(Refusal::NoSuchQuery(why)),
            Err(Wrong::BeyondCredit(over)) => {
                effects.push(Effect::CallOver(over));
                Err(Refusal::BeyondCredit)
            }
        }
    }

    /// What a service refuses by a grant or a quota counts as if it had been refused here.
    fn count_refusal_of_service(&mut self, caller: ZoneId, status: u16) {
        if matches!(status, NOT_GRANTED | OVER_QUOTA)
            && let Some(Some(zone)) = self.zones.get_mut(usize::from(caller.0))
        {
            zone.counters.refusals += 1;
        }
    }

    /// A caller takes more of an answer.
    pub(crate) fn credit<'a>(
        &mut self,
        zone: ZoneId,
        ticket: u64,
        bytes: u32,
    ) -> Result<Decision<'a>, Refusal> {
        match self.calls.credit(End { zone, ticket }, bytes) {
            Ok((to, bytes)) => Ok(Decision::Credit { to, bytes }),
            // It was on its way while the last part was.
            Err(NoCall::NotOpen) => Ok(Decision::Nothing),
            Err(NoCall::TooMuchCredit) => Err(Refusal::TooMuchCredit),
        }
    }

    /// A caller ends a call.
    pub(crate) fn cancel<'a>(&mut self, zone: ZoneId, ticket: u64) -> Result<Decision<'a>, Refusal> {
        let over = self.calls.cancel(End { zone, ticket });
        Ok(over.and_then(|over| over.service).map_or(Decision::Nothing, |to| Decision::Cancelled { to }))
    }

    /// Closes calls that their services have not answered in time: both ends are to hear so.
    pub fn expire_calls(&mut self, now_ms: u64) -> Vec<Over> {
        self.calls.expire(now_ms)
    }

    /// When the next deadline of a call may pass.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.calls.earliest_ms()
    }

    /// A call could not be handed to its service: it is over. The ticket is the kernel's own.
    pub fn close_call(&mut self, ticket: u64) {
        self.calls.close(ticket);
    }

    /// A part of an answer could not be handed to its caller: the call is over. The ticket is the kernel's own.
    pub fn lose_call(&mut self, ticket: u64) {
        self.calls.lose(ticket);
    }

    /// The service could not be told of credit; [`Self::untold_credit`] gives it again.
    pub fn keep_credit(&mut self, ticket: u64, bytes: u32) {
        self.calls.keep_credit(ticket, bytes);
    }

    /// Credit of which services were not told: whose, for which end, how many bytes. They are to be told now.
    pub fn untold_credit(&mut self) -> Vec<(ZoneId, End, u32)> {
        self.calls.untold()
    }

    /// Why this node has no service of this name, for whoever calls it.
    pub fn explain_missing(&mut self, service: &str, why: &str) {
        self.missing.insert(service.to_owned(), why.to_owned());
    }

    /// What [`Self::explain_missing`] said of it, or nothing.
    pub fn why_missing(&self, service: &str) -> &str {
        self.missing.get(service).map_or("", String::as_str)
    }
}
