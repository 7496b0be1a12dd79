//! The switches of one worker from their coming up on. Each is asked which rules it had before it connected here, and
//! who owns them. Apps receive the switch when that is known.
//!
//! ```text
//!   switch up ──> Effect::Ask(Asked::Owners) ──> the switch ──parts──> Sessions::on_owners ──> Record::find ──last part──> Sessions::next_ready
//!                        └── a barrier behind it, answered first: the switch does not say ──PASSED_OVER_MS──┘
//! ```
//!
//! A switch has rules from before when this kernel is the successor of one that ended, when another worker had it, or when another controller has
//! it too. Until it has said which, an add could take the place of another app's rule. So nobody is told that it is up, and no command passes to
//! it, until its answer is whole or it is known that there will be none. A switch without rules costs one round trip.
//!
//! In: switches that come and go, and their answers, part by part. Out: questions, owners of rules, and the switches
//! that apps may receive. It never
//! waits, and never asks twice in one session. Bounds: one question for each switch that is up, `ASKED_AT_ONCE` of them in one turn; of one answer as
//! many rules as a record holds ([`crate::record`]).

use crate::datapath::Datapath;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, Refusal};
use crate::own_messages::{Asked, Unanswered};
use crate::owned::Owned;
use crate::owned_check::OwnedCheck;
use crate::reported_rules::{ReportedRule, reported_rules};
use crate::rule_key::{RuleKey, RuleKeys};
use crate::rule_report::{Inquiry, Stage};
use crate::rules::Owner;
use abi::event::{StatsReply, SwitchUp};
use abi::{OpenFlowVersion, ZoneId};
use flow::DatapathId;
use std::collections::BTreeSet;

/// Switches that are asked in one turn of a worker: about as many as come up in one. When a controller starts, thousands come at once, and their
/// answers would come at once too.
const ASKED_AT_ONCE: usize = 32;

/// A question that did not go out is put again after so long.
const RETRY_MS: u64 = 1_000;

/// A switch that has answered the barrier behind the question, and not the question, is given so long to answer late. Load generators answer no
/// questions, and some switches put statistics together beside their other work.
const PASSED_OVER_MS: u64 = 250;

/// The switches that are up, and which of them apps know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    pub datapaths: Datapaths,
    /// The switch that was last commanded, as long as it is up, and what it speaks: commands come in runs for one switch.
    pub last_commanded: Option<(DatapathId, OpenFlowVersion)>,
    /// What switches that come back have still.
    pub owned_check: OwnedCheck,
    /// Switches that are to be asked what they had, and when: at most as many as are up.
    to_ask: BTreeSet<(u64, DatapathId)>,
    /// Switches that are up and of which apps do not hear yet.
    held: BTreeSet<DatapathId>,
    /// Those of which they are to hear now.
    ready: Vec<DatapathId>,
}

/// A rule that a switch has, by its key, and the zone that owns it.
pub(crate) type OwnedRule<'a> = (RuleKey, ZoneId, ReportedRule<'a>);

impl Sessions {
    /// The switches that are up and of which apps may hear, as they would come up now.
    pub fn switches(&self) -> impl Iterator<Item = SwitchUp<'_>> {
        let known = self.datapaths.iter().filter(|(id, _)| !self.is_held(**id));
        known.map(|(id, datapath)| datapath.switch_up(*id))
    }

    /// One of them.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchUp<'_>> {
        let datapath = self.datapaths.get(&id).filter(|_| !self.is_held(id))?;
        Some(datapath.switch_up(id))
    }

    /// A switch came up. Of so many rules of it the owners are known.
    pub fn on_switch_up(&mut self, up: &SwitchUp<'_>, rules_per_switch: u32) {
        self.last_commanded = None;
        self.end_inquiry(up.datapath);
        let mut datapath = Datapath::new(up);
        datapath.record.bound_to(None, rules_per_switch);
        self.datapaths.insert(up.datapath, datapath);
    }

    /// A switch is down.
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

    /// Of a switch that is not here nothing is remembered, and what is remembered here says nothing of it. Of one that is, what it speaks.
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

    /// Asks those switches whose time it is, as far as one turn allows.
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
                there.inquiry = Inquiry { stage: Stage::Open, rules: 0, is_due_again: false };
                if self.is_held(datapath) {
                    self.owned_check.ask(datapath, owned, effects);
                }
                effects.push(Effect::Ask { datapath, asked: Asked::Owners });
            }
        }
    }

    /// When a switch is to be asked next, or is waited for no longer.
    pub fn asks_next_ms(&self) -> Option<u64> {
        self.to_ask.first().map(|(due_ms, _)| *due_ms)
    }

    /// Whether a switch has come up of which apps do not hear yet. What it sends them is to be kept until they do.
    #[inline]
    pub fn is_held(&self, datapath: DatapathId) -> bool {
        !self.held.is_empty() && self.held.contains(&datapath)
    }

    /// Whether this switch is held, has answered the barrier behind the question and not the question: no answer is on its way behind what it has sent.
    pub fn is_passed_over(&self, datapath: DatapathId) -> bool {
        matches!(self.datapaths.get(&datapath).map(|it| it.inquiry.stage), Some(Stage::Passed(_)))
    }

    /// A switch of which apps may hear from now on, each once.
    pub fn next_ready(&mut self) -> Option<DatapathId> {
        loop {
            let datapath = self.ready.pop()?;
            if self.datapaths.contains_key(&datapath) && !self.held.contains(&datapath) {
                return Some(datapath);
            }
        }
    }

    /// A switch has come up.
    pub fn begin_inquiry(&mut self, datapath: DatapathId, now_ms: u64) {
        self.held.insert(datapath);
        self.put_inquiry(datapath, Stage::Due(now_ms));
    }

    /// A switch that is up is to be asked once more, and stays up meanwhile.
    pub fn ask_anew(&mut self, datapath: DatapathId, now_ms: u64) {
        match self.datapaths.get_mut(&datapath).map(|there| &mut there.inquiry) {
            // The answers to two questions could not be told apart.
            Some(inquiry) if inquiry.stage == Stage::Begun => inquiry.is_due_again = true,
            Some(Inquiry { stage: Stage::Answered | Stage::Unanswered, .. }) => {
                self.put_inquiry(datapath, Stage::Due(now_ms));
            }
            _ => {}
        }
    }

    /// A switch disconnects, or has connected again. Says whether apps had not heard of it.
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

    /// A part of an answer. What came before it is known already, so that a long one is nobody's delay. One that comes late is listened to all the
    /// same. Gives the rules of those zones whose rules are compared.
    pub fn on_owners<'r>(
        &mut self,
        reply: &StatsReply<'r>,
        keys: &mut RuleKeys,
        compares: impl Fn(ZoneId) -> bool,
        now_ms: u64,
    ) -> Vec<OwnedRule<'r>> {
        let mut to_compare = Vec::new();
        let Some(there) = self.datapaths.get_mut(&reply.datapath) else { return to_compare };
        if matches!(there.inquiry.stage, Stage::Due(_) | Stage::Answered) {
            return to_compare;
        }
        for rule in reported_rules(reply.body) {
            let Some(owner) = Owner::of_cookie(rule.cookie) else { continue };
            let key = keys.of(there.openflow, reply.datapath, rule.table_id, rule.priority, rule.matching);
            let Some(key) = key else { continue };
            there.record.find(key, owner, rule.stays, now_ms);
            if let Owner::Zone(zone) = owner {
                there.inquiry.rules = there.inquiry.rules.saturating_add(1);
                if compares(zone) {
                    to_compare.push((key, zone, rule));
                }
            }
        }
        if there.inquiry.stage == Stage::Open {
            there.inquiry.stage = Stage::Begun;
        }
        to_compare
    }

    /// The last part of an answer was read. Called after its last rule, so that no app receives the switch before all are known.
    pub fn on_last_owners(&mut self, datapath: DatapathId, now_ms: u64) {
        let stage = self.datapaths.get(&datapath).map(|there| there.inquiry.stage);
        if matches!(stage, None | Some(Stage::Due(_) | Stage::Answered)) {
            return;
        }
        self.settle_inquiry(datapath, Stage::Answered);
        let inquiry = self.datapaths.get_mut(&datapath).map(|there| &mut there.inquiry);
        if inquiry.is_some_and(|inquiry| std::mem::take(&mut inquiry.is_due_again)) {
            self.put_inquiry(datapath, Stage::Due(now_ms));
        }
    }

    /// There is no answer, or no more of it.
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
