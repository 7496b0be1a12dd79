//! The calls of apps to services: whether an app may call a service, and the answers.
//!
//! In: the commands of callers and services, with the grant of the caller. Out: a decision, which the worker executes.
//! It knows only the names of services. It reads neither queries nor answers, nor the parts of grants that services
//! receive.

use crate::calls::{CallRefused, Calls, End, NoCall, Over, Wrong};
use crate::capability::Capability;
use crate::decision::{Decision, Effect, Refusal};
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::{Ask, QueryAnswer};
use abi::event::may_be_said;
use std::collections::{BTreeMap, HashMap};

/// The services of a node, and the open calls of one worker.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// The open calls.
    pub calls: Calls,
    /// The zones by the names of their apps. If two zones have one name, the one with the higher number.
    named: HashMap<String, ZoneId>,
    /// Why this node does not run a service. At most one entry for each service that it knows.
    missing: BTreeMap<String, String>,
}

impl Services {
    /// Creates the services of this worker.
    pub(crate) fn at(worker: u8) -> Services {
        Services { calls: Calls::at(worker), ..Services::default() }
    }

    /// The zones have changed.
    pub(crate) fn index(&mut self, zones: &[Option<Zone>]) {
        let there = zones.iter().zip(0..).filter_map(|(zone, number)| Some((zone.as_ref()?, number)));
        self.named = there.map(|(zone, number)| (zone.name.clone(), ZoneId(number))).collect();
    }

    /// An app calls a service. It needs `query` for the service, or a part of its grant for that service.
    pub(crate) fn ask<'a>(
        &mut self,
        caller: End,
        zone: Option<&Zone>,
        ask: Ask<'a>,
        now_ms: u64,
    ) -> Result<Decision<'a>, Refusal> {
        if let Some(zone) = zone {
            check_may_ask(zone, ask.service)?;
        }
        let Some(service) = self.named.get(ask.service).copied() else {
            return Ok(Decision::NoSuchService { ticket: caller.ticket, service: ask.service });
        };
        let ticket = self.calls.open(caller, service, &ask, now_ms);
        let ticket = ticket.ok_or(Refusal::Call(CallRefused::TooManyQueries))?;
        Ok(Decision::Ask { to: service, ticket, ask })
    }

    /// A service answers, or sends a part of an answer.
    pub(crate) fn answer<'a>(
        &mut self,
        service: End,
        answer: QueryAnswer<'a>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        if !may_be_said(answer.status) {
            return Err(Refusal::Call(CallRefused::StatusOfKernel(answer.status)));
        }
        match self.calls.answer(service.zone, service.ticket, &answer, now_ms) {
            Ok(End { zone: to, ticket }) => Ok(Decision::Answer { to, ticket, answer }),
            Err(Wrong::Unasked(why)) => Err(Refusal::Call(CallRefused::NoSuchQuery(why))),
            Err(Wrong::BeyondCredit(over)) => {
                effects.push(Effect::CallOver(over));
                Err(Refusal::Call(CallRefused::BeyondCredit))
            }
        }
    }

    /// A caller grants more credit for an answer.
    pub(crate) fn credit<'a>(&mut self, caller: End, bytes: u32) -> Result<Decision<'a>, Refusal> {
        match self.calls.credit(caller, bytes) {
            Ok((to, bytes)) => Ok(Decision::Credit { to, bytes }),
            // The last part of the answer was sent before the credit arrived.
            Err(NoCall::NotOpen) => Ok(Decision::Nothing),
            Err(NoCall::TooMuchCredit) => Err(Refusal::Call(CallRefused::TooMuchCredit)),
        }
    }

    /// A caller cancels a call.
    pub(crate) fn cancel<'a>(&mut self, caller: End) -> Decision<'a> {
        let over = self.calls.cancel(caller);
        over.and_then(|over| over.service).map_or(Decision::Nothing, |to| Decision::Cancelled { to })
    }

    /// A zone has ended. Returns the calls that end with it.
    pub(crate) fn forget(&mut self, zone: ZoneId) -> Vec<Over> {
        self.calls.forget(zone)
    }

    /// Stores why this node has no service of this name, for its callers.
    pub fn explain_missing(&mut self, service: &str, why: &str) {
        self.missing.insert(service.to_owned(), why.to_owned());
    }

    /// The reason that [`Self::explain_missing`] stored, or nothing.
    pub fn why_missing(&self, service: &str) -> &str {
        self.missing.get(service).map_or("", String::as_str)
    }
}

fn check_may_ask(caller: &Zone, service: &str) -> Result<(), Refusal> {
    let grant = &caller.grant;
    match grant.holds_for(Capability::Query, service) || grant.service(service).is_some() {
        true => Ok(()),
        false if grant.holds(Capability::Query) => Err(Refusal::NotFor(Capability::Query)),
        false => Err(Refusal::Needs(Capability::Query)),
    }
}
