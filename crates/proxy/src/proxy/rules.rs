//! Rules: flow mods that the target carries out, and rules that come into the switch or leave it.
//!
//! In: flow mods and outputs of the model. Out: flow mods for the switch, flow removeds and errors for the controller.

use openflow::message::*;
use openflow::{Body, Message};
use profile::MessageType;
use profile::model::{Input, MessageId, Output, Place, Rule, RuleId};
use software_switch::{BookChange, BookedRule, rule_number};

use super::Proxy;
use crate::commands::Commands;
use crate::held::Held;
use crate::own::Own;
use crate::shadow::{Reason, Withdrawal};

/// The meter of all rules in software: a number that controllers, which count from 1, do not reach.
const METER: u32 = 60_000;
/// OFPMC_ADD, OFPMC_DELETE.
const METER_ADD: u16 = 0;
const METER_DELETE: u16 = 2;
/// Flags of meters: OFPMF_KBPS, OFPMF_PKTPS, OFPMF_BURST.
const KBPS: u16 = 1;
const PACKETS_PER_S: u16 = 2;
const BURST: u16 = 4;
/// The queue of the software path is a tenth of a second of its rate, as in the model.
const BURSTS_PER_S: f64 = 10.0;
/// How many meters of the controller are remembered.
const METERS_MAX: usize = 65_536;

impl Proxy {
    /// The type of a flow mod for the model, and the rule that it adds.
    pub(super) fn model_rule(&self, flow_mod: &FlowMod) -> (MessageType, Option<Rule>) {
        let kind = match flow_mod.command {
            FLOW_ADD => MessageType::Add,
            FLOW_MODIFY | FLOW_MODIFY_STRICT => MessageType::Modify,
            FLOW_DELETE | FLOW_DELETE_STRICT => MessageType::Delete,
            _ => MessageType::Other,
        };
        let rule = (kind == MessageType::Add && self.is_full()).then(|| self.rule_of(flow_mod)).flatten();
        (kind, rule)
    }

    fn rule_of(&self, flow_mod: &FlowMod) -> Option<Rule> {
        let FlowMod { table_id, priority, matching, .. } = flow_mod;
        let hardware = self.settings.profile.hardware.as_ref();
        let class = hardware.and_then(|hardware| hardware.class_of(matching));
        Some(Rule {
            id: RuleId(rule_number(*table_id, *priority, matching)?),
            priority: *priority,
            class: class.and_then(|class| u8::try_from(class).ok()),
            idle_timeout_s: flow_mod.idle_timeout_s,
            hard_timeout_s: flow_mod.hard_timeout_s,
        })
    }

    /// The target carries a flow mod out. Returns whether it does, rather than refuse it after all.
    pub(super) fn carry_out_flow_mod(
        &mut self,
        id: MessageId,
        flow_mod: &FlowMod,
        held: &Held,
        at_ns: u64,
        out: &mut Commands,
    ) -> bool {
        let (Some(version), Some(xid)) = (self.version, xid_of(&held.bytes)) else { return false };
        let change = self.shadow.book.carry_out(flow_mod, version);
        let is_delete = matches!(flow_mod.command, FLOW_DELETE | FLOW_DELETE_STRICT);
        if change == BookChange::Unknown || (is_delete && self.shadow.has_others) {
            // What the book cannot compare, the switch can.
            self.shadow.has_others |= flow_mod.command == FLOW_ADD;
            out.to_switch.extend_from_slice(&held.bytes);
            self.barriers.on_sent();
        }
        match change {
            BookChange::Added(rule) => {
                self.shadow.on_added(rule, xid);
                self.note_rule(flow_mod, at_ns);
                if flow_mod.command != FLOW_ADD {
                    return self.add_by_modify(id, rule, flow_mod, held, at_ns, out);
                }
            }
            BookChange::Modified(rules) => {
                self.lengths.on_rule(flow_mod.cookie, &flow_mod.instructions);
                for rule in rules {
                    self.tell_model(at_ns, Input::Modified(RuleId(rule)));
                }
            }
            BookChange::Deleted(rules) => {
                for (rule, booked) in rules {
                    self.shadow.on_gone(rule, booked, Reason::Delete);
                    self.tell_model(at_ns, Input::Deleted(RuleId(rule)));
                }
            }
            BookChange::Unknown => {}
        }
        true
    }

    fn note_rule(&mut self, flow_mod: &FlowMod, now_ns: u64) {
        self.lengths.on_rule(flow_mod.cookie, &flow_mod.instructions);
        if flow_mod.idle_timeout_s > 0 || self.uses_decide() {
            self.polls.begin(now_ns);
        }
    }

    /// In 1.0, a modify that finds no rule adds one. The model says at once if there is no place for it.
    fn add_by_modify(
        &mut self,
        id: MessageId,
        number: u64,
        flow_mod: &FlowMod,
        held: &Held,
        at_ns: u64,
        out: &mut Commands,
    ) -> bool {
        let Some(rule) = self.rule_of(flow_mod) else { return true };
        let before = self.queue.len();
        self.tell_model(at_ns, Input::Added { id, rule });
        let is_refusal = |output: &Output| match output {
            Output::Refuse { id: of, .. } | Output::Lost { id: of, .. } => *of == id,
            _ => false,
        };
        let Some(at) = self.queue.iter().skip(before).position(is_refusal) else { return true };
        self.shadow.book.remove(number);
        match self.queue.remove(before + at) {
            Output::Refuse { why, .. } => self.refuse(held, why, out),
            _ => self.counters.messages_lost += 1,
        }
        false
    }

    /// From now on, packets meet the rule there, or no longer.
    pub(super) fn in_data_plane(&mut self, rule: u64, place: Option<Place>, at_ns: u64, out: &mut Commands) {
        match place {
            Some(place) => {
                let is_slow = place == Place::Software && self.settings.meters_software();
                let meter = self.meter.filter(|_| is_slow);
                self.counters.unmetered += u64::from(is_slow && meter.is_none());
                if let Some((xid, flow_mod)) = self.shadow.install(rule, meter, at_ns) {
                    self.send_flow_mod(xid, flow_mod, out);
                }
            }
            None => self.withdraw(rule, out),
        }
    }

    fn withdraw(&mut self, rule: u64, out: &mut Commands) {
        let Some(version) = self.version else { return };
        match self.shadow.withdraw(rule, version) {
            Withdrawal::Delete(delete) => self.send_flow_mod(None, delete, out),
            Withdrawal::Tell(removed) => {
                let body = Body::FlowRemoved(removed);
                // A flow removed of a rule that came in this version can be written in it.
                let _ = Message { version, xid: 0, body }.encode(&mut out.to_controller);
            }
            Withdrawal::Nothing => {}
        }
    }

    /// A flow mod for the switch, with the controller's transaction id or a new one.
    fn send_flow_mod(&mut self, xid: Option<u32>, flow_mod: FlowMod, out: &mut Commands) {
        let Some(version) = self.version else { return };
        let xid = xid.unwrap_or_else(|| self.own.next());
        let message = Message { version, xid, body: Body::FlowMod(flow_mod) };
        if message.encode(&mut out.to_switch).is_ok() {
            self.barriers.on_sent();
        } else {
            self.counters.own_errors += 1;
        }
    }

    /// The target removes a rule to make place. The model knows.
    pub(super) fn evict(&mut self, rule: u64) {
        if let Some(booked) = self.shadow.book.remove(rule) {
            self.counters.evicted += 1;
            self.shadow.on_gone(rule, booked, Reason::Delete);
        }
    }

    /// The first request of a session: the switch gets rid of the rules that the model does not know, and gets the meter.
    pub(super) fn begin_session(&mut self, version: openflow::Version, out: &mut Commands) {
        self.version = Some(version);
        self.counters.sessions += 1;
        if !self.is_full() || self.model.is_none() {
            return;
        }
        let everything =
            FlowModFields { command: FLOW_DELETE, table_id: TABLE_ALL, ..FlowModFields::default() };
        self.send_flow_mod(None, everything.with(flow::Match::any(), Vec::new()), out);
        if self.settings.meters_software() && version == openflow::Version::V1_3 {
            self.meter = Some(METER);
            self.change_meter(METER_DELETE, METER, Vec::new(), 0, out);
            let (flags, band) = self.software_band();
            self.change_meter(METER_ADD, METER, vec![band], flags, out);
        }
    }

    /// The rate of rules in software, as a band.
    fn software_band(&self) -> (u16, MeterBand) {
        let software = self.settings.profile.software.as_ref();
        let bits = software.and_then(|software| software.forward_bits_per_s);
        let packets = software.and_then(|software| software.forward_packets_per_s);
        // A band has one unit. The rate in bits is the one that hosts feel.
        let (unit, rate) = match bits {
            Some(bits) => (KBPS, bits / 1000.0),
            None => (PACKETS_PER_S, packets.unwrap_or(f64::MAX)),
        };
        // Converting saturates.
        let (rate, burst) = (rate.max(1.0) as u32, (rate / BURSTS_PER_S).max(1.0) as u32);
        (unit | BURST, MeterBand { rate, burst_size: burst, kind: MeterBandKind::Drop })
    }

    fn change_meter(
        &mut self,
        command: u16,
        meter_id: u32,
        bands: Vec<MeterBand>,
        flags: u16,
        out: &mut Commands,
    ) {
        let Some(version) = self.version else { return };
        let body = Body::MeterMod(MeterMod { command, flags, meter_id, bands });
        let xid = self.own.next();
        if (Message { version, xid, body }).encode(&mut out.to_switch).is_ok() {
            self.barriers.on_sent();
        }
    }

    /// The controller changes meters. If it deletes all, that means all of its own.
    pub(super) fn carry_out_meter_mod(&mut self, bytes: &[u8], out: &mut Commands) {
        let decoded = Message::decode(bytes).ok();
        let Some(Message { body: Body::MeterMod(wanted), .. }) = decoded.filter(|_| self.meter.is_some())
        else {
            out.to_switch.extend_from_slice(bytes);
            return self.barriers.on_sent();
        };
        if wanted.command == METER_DELETE && wanted.meter_id == METER_ALL {
            for meter in std::mem::take(&mut self.meters) {
                self.change_meter(METER_DELETE, meter, Vec::new(), 0, out);
            }
            return;
        }
        match wanted.command {
            METER_ADD if self.meters.len() < METERS_MAX => {
                self.meters.insert(wanted.meter_id);
            }
            METER_DELETE => {
                self.meters.remove(&wanted.meter_id);
            }
            _ => {}
        }
        out.to_switch.extend_from_slice(bytes);
        self.barriers.on_sent();
    }

    /// The meter of rules in software.
    pub(super) fn own_meter(&self) -> Option<u32> {
        self.meter
    }

    /// The switch has refused a message. Returns whether that was one of the proxy.
    pub(super) fn on_switch_error(&mut self, xid: u32, at_ns: u64, out: &mut Commands) -> bool {
        if self.own.is_own(xid) {
            self.counters.own_errors += 1;
            // An error is an answer too: nothing may wait for another one.
            match self.own.answered(xid) {
                Some(Own::Barrier(behind)) => self.on_confirmed(behind, out),
                Some(Own::Poll) => self.polls.on_refused(at_ns),
                None => {}
            }
            self.own.forget(xid);
            return true;
        }
        if let Some(rule) = self.shadow.on_error(xid) {
            self.tell_model(at_ns, Input::Deleted(RuleId(rule)));
        }
        false
    }

    /// The switch says that a rule is gone.
    pub(super) fn on_flow_removed(&mut self, xid: u32, removed: FlowRemoved, at_ns: u64, out: &mut Commands) {
        use crate::shadow::Removed;
        let Some(version) = self.version else { return };
        let told = match self.shadow.on_flow_removed(removed, version) {
            Removed::Expected(told) => told,
            Removed::BySwitch { rule, told } => {
                self.tell_model(at_ns, Input::Deleted(RuleId(rule)));
                told
            }
            Removed::Unknown => None,
        };
        if let Some(told) = told {
            let body = Body::FlowRemoved(told);
            // It came in this version, with the time-outs of a flow mod in this version.
            let _ = Message { version, xid, body }.encode(&mut out.to_controller);
        }
    }

    /// A rule as the controller wants it.
    pub(super) fn booked(&self, of: &FlowStats) -> Option<BookedRule> {
        self.shadow.booked(of.table_id, of.priority, &of.matching)
    }
}

fn xid_of(message: &[u8]) -> Option<u32> {
    openflow::Header::read(message).ok().map(|header| header.xid)
}
