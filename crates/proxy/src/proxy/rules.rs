//! Rules: flow mods that the target carries out, and rules that come into the switch or leave it.
//!
//! In: flow mods and outputs of the model. Out: flow mods for the switch, flow removeds and errors for the controller.

use openflow::message::*;
use openflow::{Body, Header, Message};
use profile::MessageType;
use profile::model::{Input, MessageId, Output, Place, Rule, RuleId};
use software_switch::{BookChange, BookedRule, rule_number};

use super::Proxy;
use super::act::egress;
use crate::commands::{Commands, Passage};
use crate::held::Held;
use crate::own::Own;
use crate::shadow::{Origin, Reason, RefusedBySwitch, Withdrawal};
use crate::wire;

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
        let request = self.shadow.request(xid, &held.bytes, held.since_ns);
        let is_delete = matches!(flow_mod.command, FLOW_DELETE | FLOW_DELETE_STRICT);
        if change == BookChange::Unknown || (is_delete && self.shadow.has_others) {
            // What the book cannot compare, the switch can.
            self.shadow.has_others |= flow_mod.command == FLOW_ADD;
            out.to_switch.extend_from_slice(&held.bytes);
            self.barriers.on_sent();
        }
        match change {
            BookChange::Added(rule) => {
                self.shadow.on_added(rule, &request);
                self.note_rule(flow_mod, at_ns);
                if flow_mod.command != FLOW_ADD {
                    return self.add_by_modify(id, rule, flow_mod, held, at_ns, out);
                }
            }
            BookChange::Modified(rules) => {
                self.lengths.on_rule(flow_mod.cookie, &flow_mod.instructions);
                for rule in rules {
                    self.shadow.on_modified(rule, &request);
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
        if self.uses_decide() {
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
        self.shadow.on_not_added(number);
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
                let xid = self.own.next();
                if let Some((flow_mod, since_ns)) = self.shadow.install(rule, meter, xid, at_ns) {
                    out.releases.extend(since_ns.map(|since_ns| egress(since_ns, at_ns)));
                    self.send_flow_mod(xid, flow_mod, out);
                    self.new_rules.note(rule, at_ns);
                }
                // The polls may have ended since the flow mod came, because no rule with a time-out was in the switch.
                if self.shadow.has_idle_timeout(rule) {
                    self.polls.begin(at_ns);
                }
            }
            None => self.withdraw(rule, out),
        }
    }

    fn withdraw(&mut self, rule: u64, out: &mut Commands) {
        let Some(version) = self.version else { return };
        match self.shadow.withdraw(rule, version) {
            Withdrawal::Delete(delete) => {
                let xid = self.own.next();
                self.send_flow_mod(xid, delete, out);
            }
            Withdrawal::Tell(removed) => {
                let body = Body::FlowRemoved(removed);
                // A flow removed of a rule that came in this version can be written in it.
                let _ = Message { version, xid: 0, body }.encode(&mut out.to_controller);
            }
            Withdrawal::Nothing => {}
        }
    }

    /// A flow mod for the switch, with a transaction id of the proxy.
    fn send_flow_mod(&mut self, xid: u32, flow_mod: FlowMod, out: &mut Commands) {
        let Some(version) = self.version else { return };
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

    /// The first request of a session: the switch gets rid of the rules that the model does not know, and gets the meter of rules in software.
    pub(super) fn begin_session(&mut self, version: openflow::Version, out: &mut Commands) {
        self.version = Some(version);
        self.counters.sessions += 1;
        if !self.is_full() || self.model.is_none() {
            return;
        }
        let everything =
            FlowModFields { command: FLOW_DELETE, table_id: TABLE_ALL, ..FlowModFields::default() };
        let xid = self.own.next();
        self.send_flow_mod(xid, everything.with(flow::Match::any(), Vec::new()), out);
        self.begin_meter(version, out);
    }

    /// The switch has refused a message. If the proxy sent it for one of the controller, the error is about that one.
    pub(super) fn on_switch_error(
        &mut self,
        header: Header,
        error: &[u8],
        at_ns: u64,
        out: &mut Commands,
    ) -> Passage {
        if let Some(RefusedBySwitch { origin, gone, restored }) =
            self.shadow.on_error(header.xid, header.version)
        {
            match origin {
                Origin::Request(of) => {
                    wire::error_about(error, of.xid, &of.beginning, &mut out.to_controller)
                }
                Origin::Told => {}
                Origin::Model => self.counters.own_errors += 1,
            }
            if let Some(rule) = gone {
                self.tell_model(at_ns, Input::Deleted(RuleId(rule)));
            }
            if let Some(add) = restored {
                self.lengths.on_rule(add.cookie, &add.instructions);
                if let Some(rule) = self.rule_of(&add).filter(|_| self.is_full()) {
                    self.tell_model(at_ns, Input::Restored(rule));
                }
            }
            return Passage::Taken;
        }
        if !self.own.is_own(header.xid) {
            return Passage::Unchanged;
        }
        self.counters.own_errors += 1;
        // An error is an answer too: nothing may wait for another one.
        match self.own.answered(header.xid) {
            Some(Own::Barrier(behind)) => self.on_confirmed(behind, out),
            Some(Own::Poll) => self.polls.on_refused(at_ns),
            // Without the meter, rules in software forward at full rate, and are counted.
            Some(Own::Meter) => self.meter = None,
            None => {}
        }
        self.own.forget(header.xid);
        Passage::Taken
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
            let (duration_s, duration_ns) = self.of_target(told.duration_s, told.duration_ns);
            let body = Body::FlowRemoved(FlowRemoved { duration_s, duration_ns, ..told });
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
