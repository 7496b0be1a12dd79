//! Whether a command may pass, and as what.
//!
//! Never changes what an app asked for but for one thing: the upper bits of a cookie are the owner's.

use crate::capability::Capability;
use crate::decision::{Decision, Effect, Refusal};
use crate::dispatch::{Kernel, needed_to_hear};
use crate::subscription::Subscription;
use abi::command::{Command, FlowMod, Subscribe, What};
use abi::event::kind;
use abi::zone_id::COOKIE_MASK;
use abi::{Frame, ZoneId};

/// `ofp_flow_mod_command`: an add sets the cookie, everything else is restricted by it.
const FLOW_ADD: u8 = 0;

impl Kernel {
    /// A command of a zone: what becomes of it. What else follows is appended to `effects`.
    pub fn on_command<'a>(
        &mut self,
        zone: ZoneId,
        frame: &Frame<'a>,
        effects: &mut Vec<Effect>,
    ) -> Decision<'a> {
        let decision = match Command::read(frame) {
            Ok(command) => self.decide(zone, command, effects),
            Err(malformed) => Err(Refusal::Malformed(malformed)),
        };
        if let Some(Some(zone)) = self.zones.get_mut(usize::from(zone.0)) {
            zone.counters.commands += 1;
            zone.counters.refusals += u64::from(decision.is_err());
        }
        decision.unwrap_or_else(Decision::Refuse)
    }

    fn decide<'a>(
        &mut self,
        zone: ZoneId,
        command: Command<'a>,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        if let Some(capability) = needed_for(&command.what) {
            self.require(zone, capability)?;
        }
        match command.what {
            What::Subscribe(subscribe) => self.decide_subscription(zone, &subscribe, effects),
            What::FlowMod(flow_mod) => {
                let stamped = self.stamp(zone, flow_mod);
                self.send(Command { what: What::FlowMod(stamped), ..command })
            }
            What::PacketOut(_)
            | What::GroupMod(_)
            | What::MeterMod(_)
            | What::PortMod(_)
            | What::StatsRequest(_)
            | What::Barrier => self.send(command),
            What::Publish(publish) => {
                Ok(Decision::Publish { to: self.hearers_of(kind::TOPIC).without(zone), publish })
            }
            What::Query(ask) => self.ask(zone, command.ticket, ask),
            What::QueryAnswer(answer) => {
                let asker = self.queries.answer(zone, command.ticket, answer.more);
                let (to, ticket) = asker.ok_or(Refusal::NoSuchQuery)?;
                Ok(Decision::Answer { to, ticket, answer })
            }
            What::Log(log) => Ok(Decision::Log(log)),
        }
    }

    #[inline]
    fn require(&self, zone: ZoneId, capability: Capability) -> Result<(), Refusal> {
        let held = self.zone(zone).is_some_and(|zone| zone.capabilities.allow(capability));
        if held { Ok(()) } else { Err(Refusal::Needs(capability)) }
    }

    fn decide_subscription<'a>(
        &mut self,
        zone: ZoneId,
        asked: &Subscribe<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<Decision<'a>, Refusal> {
        let subscription = Subscription::read(asked).map_err(Refusal::Malformed)?;
        for kind in (0..64).filter(|kind| subscription.hears(*kind)) {
            self.require(zone, needed_to_hear(kind))?;
        }
        self.subscribe(zone, subscription, effects);
        Ok(Decision::Subscribed)
    }

    #[inline]
    fn send<'a>(&mut self, command: Command<'a>) -> Result<Decision<'a>, Refusal> {
        if self.last_commanded != Some(command.datapath) {
            if !self.datapaths.contains_key(&command.datapath) {
                return Err(Refusal::NoSuchSwitch(command.datapath));
            }
            self.last_commanded = Some(command.datapath);
        }
        Ok(Decision::Send(command))
    }

    /// The flow mod as its owner's.
    #[inline]
    fn stamp<'a>(&self, zone: ZoneId, flow_mod: FlowMod<'a>) -> FlowMod<'a> {
        let (cookie, cookie_mask) = self.owned(zone, &flow_mod);
        FlowMod { cookie, cookie_mask, ..flow_mod }
    }

    /// The cookie with its owner, and a mask that keeps the rules of others out of reach.
    #[inline]
    fn owned(&self, zone: ZoneId, flow_mod: &FlowMod<'_>) -> (u64, u64) {
        let own_mask = flow_mod.cookie_mask & COOKIE_MASK;
        if flow_mod.command == FLOW_ADD {
            return (zone.stamp(flow_mod.cookie), 0);
        }
        if self.require(zone, Capability::RuleWriteOthers).is_ok() {
            return (flow_mod.cookie, flow_mod.cookie_mask);
        }
        (zone.stamp(flow_mod.cookie), !COOKIE_MASK | own_mask)
    }

    fn ask<'a>(
        &mut self,
        zone: ZoneId,
        ticket: u64,
        ask: abi::command::Ask<'a>,
    ) -> Result<Decision<'a>, Refusal> {
        let Some(service) = self.zone_named(ask.service) else {
            return Ok(Decision::NoSuchService { ticket });
        };
        let ticket = self.queries.open(zone, ticket, service).ok_or(Refusal::TooManyQueries)?;
        Ok(Decision::Ask { to: service, ticket, ask })
    }

    fn zone_named(&self, name: &str) -> Option<ZoneId> {
        let place = self.zones.iter().position(|zone| zone.as_ref().is_some_and(|zone| zone.name == name))?;
        // There are 64 places.
        Some(ZoneId(place as u16))
    }
}

/// The capability that a command needs, where it needs one whatever it says.
fn needed_for(what: &What<'_>) -> Option<Capability> {
    match what {
        What::PacketOut(_) => Some(Capability::PacketOut),
        What::FlowMod(_) | What::GroupMod(_) | What::MeterMod(_) => Some(Capability::RuleWrite),
        What::PortMod(_) => Some(Capability::PortWrite),
        What::StatsRequest(_) => Some(Capability::StatsRead),
        What::Publish(_) => Some(Capability::Publish),
        What::Query(_) => Some(Capability::Query),
        What::Subscribe(_) | What::Barrier | What::QueryAnswer(_) | What::Log(_) => None,
    }
}
