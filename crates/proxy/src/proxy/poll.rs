//! Asks the switch for the counters of its rules, since the model must know which rules are used.
//!
//! In: the time, rules that may have been idle for long, and the switch's answers. Out: requests, uses for the model, and idle rules that
//! end.

use openflow::message::*;
use openflow::{Body, Message};
use profile::model::{Input, RuleId};
use profile::{PromotionOrder, SoftwareUse, Victim};

use super::Proxy;
use crate::commands::Commands;
use crate::own::Own;
use crate::shadow::Reason;

impl Proxy {
    /// The model asks whether packets have met the rule since then.
    pub(super) fn ask_if_idle(&mut self, rule: u64, unused_since_ns: u64, now_ns: u64, out: &mut Commands) {
        if !self.shadow.is_placed(rule) {
            return self.end_idle(rule, now_ns);
        }
        if self.polls.ask_for(rule, unused_since_ns) {
            self.ask_for_counters(out);
        }
    }

    /// Asks, if it is time.
    pub(super) fn poll_if_due(&mut self, now_ns: u64, out: &mut Commands) {
        if self.polls.due_ns().is_some_and(|due| due <= now_ns) {
            self.ask_for_counters(out);
        }
    }

    fn ask_for_counters(&mut self, out: &mut Commands) {
        let Some(version) = self.version else { return };
        let request = FlowStatsRequest::default();
        let body = Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Flow(request) });
        let xid = self.own.await_answer(Own::Poll);
        if (Message { version, xid, body }).encode(&mut out.to_switch).is_ok() {
            self.polls.on_asked();
        }
    }

    /// A part of the answer has come.
    pub(super) fn on_counters(
        &mut self,
        rules: &[FlowStats],
        is_last: bool,
        now_ns: u64,
        out: &mut Commands,
    ) {
        for of in rules {
            let used =
                self.shadow.on_counted(of.table_id, of.priority, &of.matching, of.packet_count, now_ns);
            if let Some((rule, packets)) = used {
                self.tell_model(now_ns, Input::Used { rule: RuleId(rule), at_ns: now_ns, packets });
            }
        }
        if !is_last {
            return;
        }
        let goes_on = self.shadow.has_idle_timeouts() || self.uses_decide();
        for (rule, unused_since_ns) in self.polls.on_answered(goes_on, now_ns) {
            match self.shadow.used_ns(rule).filter(|used| *used > unused_since_ns) {
                Some(at_ns) => {
                    self.tell_model(now_ns, Input::Used { rule: RuleId(rule), at_ns, packets: 0 });
                }
                None => self.end_idle(rule, now_ns),
            }
        }
        if self.polls.has_waiting() {
            self.ask_for_counters(out);
        }
    }

    fn end_idle(&mut self, rule: u64, now_ns: u64) {
        self.end_rule(rule, Reason::IdleTimeout, now_ns);
    }

    /// A time-out ends a rule.
    pub(super) fn end_rule(&mut self, rule: u64, reason: Reason, now_ns: u64) {
        if let Some(booked) = self.shadow.book.remove(rule) {
            self.counters.expired += 1;
            self.shadow.on_gone(rule, booked, reason);
            self.tell_model(now_ns, Input::Deleted(RuleId(rule)));
        }
    }

    /// Whether it depends on uses which rule moves to software or to hardware.
    pub(super) fn uses_decide(&self) -> bool {
        let profile = &self.settings.profile;
        let by_use = |key: &Victim| {
            matches!(
                key,
                Victim::LeastRecentlyUsed | Victim::MostRecentlyUsed | Victim::LeastUsed | Victim::MostUsed
            )
        };
        let promotes = |software: &profile::Software| {
            software.when != SoftwareUse::Only
                && software.promotion.is_some_and(|promotion| {
                    matches!(promotion.order, PromotionOrder::MostUsed | PromotionOrder::MostRecentlyUsed)
                })
        };
        self.is_full()
            && (profile.hardware.as_ref().is_some_and(|hardware| hardware.evict.iter().any(by_use))
                || profile.software.as_ref().is_some_and(promotes))
    }
}
