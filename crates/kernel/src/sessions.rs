//! The connected switches of one worker. When a switch connects, the kernel asks it for its existing rules and their
//! owners. Apps receive the switch when the owners are known.
//!
//! ```text
//!   switch up ──> Effect::Ask(Asked::Owners) ──> the switch ──parts──> Sessions::on_owners ──> Record::find ──last part──> Sessions::next_ready
//!                        └── a barrier behind it, answered first: the switch does not say ──PASSED_OVER_MS──┘
//! ```
//!
//! A switch can have rules for three reasons: this kernel succeeds one that ended, another worker had the switch, or
//! another controller uses it too. Until the switch has reported them, an add could replace another app's rule. So no
//! app receives the switch, and no command passes to it, until its answer is complete or cannot come any more. A switch
//! without rules costs one round trip.
//!
//! In: switches that connect and disconnect, and their answers, part by part. Out: questions, owners of rules, and the
//! switches that apps may receive. It never waits, and never asks twice in one session. Bounds: one question for each
//! connected switch, and `ASKED_AT_ONCE` of them in one turn. Of one answer it takes as many rules as a record holds
//! ([`crate::record`]).

use crate::datapath::Datapath;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, Refusal};
use crate::own_messages::{Asked, Unanswered};
use crate::owned::Owned;
use crate::owned_check::OwnedCheck;
use crate::reported_rules::{ReportedRule, reported_rules};
use crate::rule_key::{RuleKey, RuleKeys, taken_place};
use crate::rule_report::{Inquiry, Stage};
use crate::rules::{OWN_COOKIE, Owner};
use abi::event::{StatsReply, SwitchUp};
use abi::{OpenFlowVersion, ZoneId};
use flow::DatapathId;
use std::collections::BTreeSet;

/// How many switches a worker asks in one turn: about as many as connect in one. When a controller starts, thousands
/// connect at once, and their answers would arrive at once too.
const ASKED_AT_ONCE: usize = 32;

/// The kernel repeats a question that could not be sent after this time.
const RETRY_MS: u64 = 1_000;

/// A switch may answer the barrier before the earlier question. The kernel then waits this long for the answer. Load
/// generators answer no questions, and some switches collect statistics in the background.
const PASSED_OVER_MS: u64 = 250;

/// Whatever apps do, no switch is asked for all of its rules more often than this.
pub(crate) const ANEW_INTERVAL_MS: u64 = 10_000;

/// The connected switches, and which of them apps know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    pub datapaths: Datapaths,
    /// The connected switch of the last command, and its OpenFlow version: several commands in a row usually go to one
    /// switch.
    pub last_commanded: Option<(DatapathId, OpenFlowVersion)>,
    /// The groups and meters that reconnected switches still have.
    pub owned_check: OwnedCheck,
    /// Switches to ask for their rules, and when: at most as many as are connected.
    to_ask: BTreeSet<(u64, DatapathId)>,
    /// Connected switches that apps do not know yet.
    held: BTreeSet<DatapathId>,
    /// Switches that apps may receive now.
    ready: Vec<DatapathId>,
}

/// A rule that a switch reports, by its key, with the zone that owns it, and the table and priority that the switch gives it.
pub(crate) type OwnedRule<'a> = (RuleKey, ZoneId, ReportedRule<'a>, (u8, u16));

impl Sessions {
    /// The switches that are ready for apps, as switch-up events with their present state.
    pub fn switches(&self) -> impl Iterator<Item = SwitchUp<'_>> {
        let known = self.datapaths.iter().filter(|(id, _)| !self.is_held(**id));
        known.map(|(id, datapath)| datapath.switch_up(*id))
    }

    /// One of them.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchUp<'_>> {
        let datapath = self.datapaths.get(&id).filter(|_| !self.is_held(id))?;
        Some(datapath.switch_up(id))
    }

    /// A switch connected. The kernel may know the owners of this many of its rules.
    pub fn on_switch_up(&mut self, up: &SwitchUp<'_>, rules_per_switch: u32) {
        self.last_commanded = None;
        self.end_inquiry(up.datapath);
        let mut datapath = Datapath::new(up);
        datapath.record.bound_to(None, rules_per_switch);
        self.datapaths.insert(up.datapath, datapath);
    }

    /// A switch disconnected.
    pub fn on_switch_down(&mut self, id: DatapathId) {
        self.last_commanded = None;
        self.end_inquiry(id);
        self.datapaths.remove(&id);
    }

    /// Whether this switch is connected here.
    #[inline]
    pub fn is_up(&self, datapath: DatapathId) -> bool {
        self.last_commanded.is_some_and(|(last, _)| last == datapath)
            || self.datapaths.contains_key(&datapath)
    }

    /// The OpenFlow version of a switch that is connected here. For any other switch the command is refused, and
    /// nothing is recorded.
    #[inline]
    pub fn check_here(&mut self, datapath: DatapathId) -> Result<OpenFlowVersion, Refusal> {
        match self.last_commanded {
            Some((last, openflow)) if last == datapath => Ok(openflow),
            _ => self.look_up(datapath),
        }
    }

    fn look_up(&mut self, datapath: DatapathId) -> Result<OpenFlowVersion, Refusal> {
        let there = self.datapaths.get(&datapath).ok_or(Refusal::NoSuchSwitch(datapath))?;
        if self.is_held(datapath) {
            return Err(Refusal::NotUpYet(datapath));
        }
        self.last_commanded = Some((datapath, there.openflow));
        Ok(there.openflow)
    }

    /// Whether this switch speaks OpenFlow 1.0.
    pub fn speaks_1_0(&self, datapath: DatapathId) -> bool {
        self.datapaths.get(&datapath).is_some_and(|there| there.openflow == OpenFlowVersion::V1_0)
    }

    /// Asks the switches that are due, as many as one turn allows.
    pub fn ask_for_owners(&mut self, owned: &Owned, now_ms: u64, effects: &mut Vec<Effect>) {
        for _ in 0..ASKED_AT_ONCE {
            let Some((due_ms, datapath)) = self.to_ask.first().copied() else { return };
            if due_ms > now_ms {
                return;
            }
            self.to_ask.remove(&(due_ms, datapath));
            let Some(there) = self.datapaths.get_mut(&datapath) else { continue };
            if matches!(there.inquiry.stage, Stage::Passed(_)) {
                self.settle_inquiry(datapath, Stage::Unanswered);
            } else {
                let has_answered = there.inquiry.has_answered;
                let (stage, asked_ms) = (Stage::Open, now_ms);
                there.inquiry = Inquiry { stage, rules: 0, due_again_ms: None, asked_ms, has_answered };
                if self.is_held(datapath) {
                    self.owned_check.ask(datapath, owned, effects);
                }
                effects.push(Effect::Ask { datapath, asked: Asked::Owners });
            }
        }
    }

    /// When the kernel next asks a switch, or stops waiting for one.
    pub fn asks_next_ms(&self) -> Option<u64> {
        self.to_ask.first().map(|(due_ms, _)| *due_ms)
    }

    /// Whether the kernel holds a connected switch back from apps. The worker keeps the switch's events until apps may
    /// receive them.
    #[inline]
    pub fn is_held(&self, datapath: DatapathId) -> bool {
        !self.held.is_empty() && self.held.contains(&datapath)
    }

    /// Whether this switch is held, and has answered the barrier after the question but not the question. Then no
    /// answer will follow.
    pub fn is_passed_over(&self, datapath: DatapathId) -> bool {
        matches!(self.datapaths.get(&datapath).map(|it| it.inquiry.stage), Some(Stage::Passed(_)))
    }

    /// Returns a switch that apps may receive from now on. It returns each switch once.
    pub fn next_ready(&mut self) -> Option<DatapathId> {
        loop {
            let datapath = self.ready.pop()?;
            if self.datapaths.contains_key(&datapath) && !self.held.contains(&datapath) {
                return Some(datapath);
            }
        }
    }

    /// A switch has connected.
    pub fn begin_inquiry(&mut self, datapath: DatapathId, now_ms: u64) {
        self.held.insert(datapath);
        self.put_inquiry(datapath, Stage::Due(now_ms));
    }

    /// Asks a connected switch once more. Apps keep it meanwhile.
    pub fn ask_anew(&mut self, datapath: DatapathId, now_ms: u64) {
        let Some(there) = self.datapaths.get_mut(&datapath) else { return };
        match &mut there.inquiry {
            // The answers to two questions could not be distinguished.
            Inquiry { stage: Stage::Begun, due_again_ms, .. } => {
                *due_again_ms = Some(due_again_ms.map_or(now_ms, |at_ms| at_ms.min(now_ms)));
            }
            Inquiry { stage: Stage::Due(at_ms), .. } if *at_ms <= now_ms => {}
            Inquiry { stage: Stage::Due(_) | Stage::Answered | Stage::Unanswered, .. } => {
                self.take_from_queue(datapath);
                self.put_inquiry(datapath, Stage::Due(now_ms));
            }
            _ => {}
        }
    }

    /// The same because of what an app does: seldom, and not if the switch has no rules.
    pub fn ask_anew_seldom(&mut self, datapath: DatapathId, now_ms: u64) {
        let Some(there) = self.datapaths.get(&datapath).filter(|there| there.record.has_any()) else {
            return;
        };
        let at_ms = now_ms.max(there.inquiry.asked_ms.saturating_add(ANEW_INTERVAL_MS));
        self.ask_anew(datapath, at_ms);
    }

    /// A switch disconnects, or has connected again. Returns whether apps did not know it yet.
    pub fn end_inquiry(&mut self, datapath: DatapathId) -> bool {
        self.take_from_queue(datapath);
        self.ready.retain(|ready| *ready != datapath);
        self.owned_check.give_up(datapath);
        self.held.remove(&datapath)
    }

    fn put_inquiry(&mut self, datapath: DatapathId, stage: Stage) {
        let Some(there) = self.datapaths.get_mut(&datapath) else { return };
        there.inquiry.stage = stage;
        if let Stage::Due(at_ms) | Stage::Passed(at_ms) = stage {
            self.to_ask.insert((at_ms, datapath));
        }
    }

    fn take_from_queue(&mut self, datapath: DatapathId) {
        let stage = self.datapaths.get(&datapath).map(|there| there.inquiry.stage);
        if let Some(Stage::Due(at_ms) | Stage::Passed(at_ms)) = stage {
            self.to_ask.remove(&(at_ms, datapath));
        }
    }

    fn settle_inquiry(&mut self, datapath: DatapathId, stage: Stage) {
        self.take_from_queue(datapath);
        self.put_inquiry(datapath, stage);
        if self.held.remove(&datapath) {
            self.owned_check.give_up(datapath);
            self.ready.push(datapath);
        }
    }

    /// Takes a part of an answer, also a late one. The parts before it are already recorded, so a long answer delays no
    /// other work. `goes`: whether a rule is to be deleted for its zone, so that it is no rule any more. Returns the rules of those zones whose
    /// rules are compared.
    pub fn on_owners<'r>(
        &mut self,
        reply: &StatsReply<'r>,
        keys: &mut RuleKeys,
        mut goes: impl FnMut(OpenFlowVersion, ZoneId, RuleKey, &ReportedRule<'_>) -> bool,
        mut compares: impl FnMut(ZoneId, &ReportedRule<'_>, (u8, u16)) -> bool,
        now_ms: u64,
    ) -> Vec<OwnedRule<'r>> {
        let mut to_compare = Vec::new();
        let Some(there) = self.datapaths.get_mut(&reply.datapath) else { return to_compare };
        if matches!(there.inquiry.stage, Stage::Due(_) | Stage::Answered) {
            return to_compare;
        }
        for rule in reported_rules(reply.body) {
            if rule.cookie == OWN_COOKIE && rule.table_id > 0 && there.has_table(rule.table_id) {
                // An earlier run of the node has put its table-miss rule there.
                there.later_punts.add(rule.table_id);
            }
            let Some(owner) = Owner::of_cookie(rule.cookie) else { continue };
            let key = keys.of(there.openflow, reply.datapath, rule.table_id, rule.priority, rule.matching);
            let Some(key) = key else { continue };
            if let Owner::Zone(zone) = owner
                && goes(there.openflow, zone, key, &rule)
            {
                there.record.forget(key, owner);
                continue;
            }
            there.record.find(key, owner, rule.stays, now_ms);
            if let Owner::Zone(zone) = owner {
                there.inquiry.rules = there.inquiry.rules.saturating_add(1);
                let place = taken_place(there.openflow, rule.table_id, rule.priority, rule.matching);
                if compares(zone, &rule, place) {
                    to_compare.push((key, zone, rule, place));
                }
            }
        }
        if there.inquiry.stage == Stage::Open {
            there.inquiry.stage = Stage::Begun;
        }
        to_compare
    }

    /// Whether an answer of this switch with its rules is expected. Any other is ignored.
    pub fn expects_owners(&self, datapath: DatapathId) -> bool {
        let stage = self.datapaths.get(&datapath).map(|there| there.inquiry.stage);
        !matches!(stage, None | Some(Stage::Due(_) | Stage::Answered))
    }

    /// The last part of an answer was read. Call it after the last rule, so that no app receives the switch before all
    /// rules are known. Returns whether all of them are known now, and the switch need not be asked once more.
    pub fn on_last_owners(&mut self, datapath: DatapathId, now_ms: u64) -> bool {
        if !self.expects_owners(datapath) {
            return false;
        }
        self.settle_inquiry(datapath, Stage::Answered);
        let Some(there) = self.datapaths.get_mut(&datapath) else { return false };
        there.inquiry.has_answered = true;
        let again_ms = there.inquiry.due_again_ms.take();
        if let Some(at_ms) = again_ms {
            self.put_inquiry(datapath, Stage::Due(at_ms.max(now_ms)));
        }
        again_ms.is_none()
    }

    /// There is no answer, or it ended early.
    pub fn on_owners_unanswered(&mut self, datapath: DatapathId, why: Unanswered, now_ms: u64) {
        let stage = self.datapaths.get(&datapath).map(|there| there.inquiry.stage);
        match (stage, why) {
            (None | Some(Stage::Answered | Stage::Unanswered), _) => {}
            (_, Unanswered::NotSent) => {
                self.put_inquiry(datapath, Stage::Due(now_ms.saturating_add(RETRY_MS)));
            }
            (Some(Stage::Open), Unanswered::PassedOver) => {
                self.put_inquiry(datapath, Stage::Passed(now_ms.saturating_add(PASSED_OVER_MS)));
            }
            // Its answer has begun, and ends by itself.
            (_, Unanswered::PassedOver) => {}
            (_, Unanswered::Silence | Unanswered::Refused) => {
                self.settle_inquiry(datapath, Stage::Unanswered);
            }
        }
    }
}
