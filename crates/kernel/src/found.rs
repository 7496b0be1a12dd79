//! Which rules a switch had before it came up here, and whose they are: it is asked, and apps hear of it when that is known.
//!
//! ```text
//!   switch up ──> Effect::Ask(Asked::Owners) ──> the switch ──parts──> Kernel::on_owners ──> Record::find ──last part──> Kernel::next_ready
//!                        └── a barrier behind it, answered first: the switch does not say ──PASSED_OVER_MS──┘
//! ```
//!
//! A switch has rules from before when this kernel is the successor of one that ended, when another worker had it, or when another controller has
//! it too. Until it has said which, an add could take the place of another app's rule. So nobody is told that it is up, and no command passes to
//! it, until its answer is whole or it is known that there will be none. A switch without rules costs one round trip.
//!
//! In: switches that come and go, and their answers, part by part. Out: questions, owners of rules, and the switches that apps may hear of. It never
//! waits, and never asks twice in one session. Bounds: one question for each switch that is up, `ASKED_AT_ONCE` of them in one turn; of one answer as
//! many rules as a record holds ([`crate::record`]).

use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::found_rules::found_rules;
use crate::own_messages::{Asked, Unanswered};
use crate::rule_key::taken_place;
use crate::rules::Owner;
use abi::event::StatsReply;
use flow::DatapathId;

/// Switches that are asked in one turn of a worker: about as many as come up in one. When a controller starts, thousands come at once, and their
/// answers would come at once too.
const ASKED_AT_ONCE: usize = 32;

/// A question that did not go out is put again after so long.
const RETRY_MS: u64 = 1_000;

/// A switch that has answered the barrier behind the question, and not the question, is given so long to answer late. Load generators answer no
/// questions, and some switches put statistics together beside their other work.
const PASSED_OVER_MS: u64 = 250;

/// What a switch has said of the rules that it had when it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet, or not all.
    Waiting,
    /// It has answered: so many are an app's.
    Answered(u32),
    /// It did not answer, or not to the end. So many were an app's until then.
    Unanswered(u32),
}

/// The question to one switch, from its coming up on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inquiry {
    stage: Stage,
    /// Rules of its answer that are an app's.
    rules: u32,
    /// Whether it is to be asked once more when this answer is whole.
    is_due_again: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It is to be asked at this time.
    Due(u64),
    /// It has been asked.
    Open,
    /// A part of its answer is there.
    Begun,
    /// It has passed the question over, and has until this time.
    Passed(u64),
    Answered,
    #[default]
    Unanswered,
}

impl Inquiry {
    pub fn found(self) -> Found {
        match self.stage {
            Stage::Due(_) | Stage::Open | Stage::Begun | Stage::Passed(_) => Found::Waiting,
            Stage::Answered => Found::Answered(self.rules),
            Stage::Unanswered => Found::Unanswered(self.rules),
        }
    }
}

impl Kernel {
    /// Asks those switches whose time it is, as far as one turn allows.
    pub fn ask_for_owners(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.say_evictions(effects);
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
                self.ask_what_is_there(datapath, effects);
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
    pub(crate) fn begin_inquiry(&mut self, datapath: DatapathId, now_ms: u64) {
        self.held.insert(datapath);
        self.put_inquiry(datapath, Stage::Due(now_ms));
    }

    /// A switch that is up is to be asked once more, and stays up meanwhile.
    pub(crate) fn ask_anew(&mut self, datapath: DatapathId, now_ms: u64) {
        match self.datapaths.get_mut(&datapath).map(|there| &mut there.inquiry) {
            // The answers to two questions could not be told apart.
            Some(inquiry) if inquiry.stage == Stage::Begun => inquiry.is_due_again = true,
            Some(Inquiry { stage: Stage::Answered | Stage::Unanswered, .. }) => {
                self.put_inquiry(datapath, Stage::Due(now_ms));
            }
            _ => {}
        }
    }

    /// A switch is going, or has come anew. Says whether apps had not heard of it.
    pub(crate) fn end_inquiry(&mut self, datapath: DatapathId) -> bool {
        self.take_from_queue(datapath);
        self.ready.retain(|ready| *ready != datapath);
        self.still_there.give_up(datapath);
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
            self.still_there.give_up(datapath);
            self.ready.push(datapath);
        }
    }

    /// A part of an answer. What came before it is known already, so that a long one is nobody's delay. One that comes late is listened to all the
    /// same.
    pub(crate) fn on_owners(&mut self, reply: &StatsReply<'_>, now_ms: u64) {
        let Kernel { datapaths, keys, precedence, .. } = self;
        let Some(there) = datapaths.get_mut(&reply.datapath) else { return };
        if matches!(there.inquiry.stage, Stage::Due(_) | Stage::Answered) {
            return;
        }
        let openflow = there.openflow;
        let mut to_compare = Vec::new();
        for entry in found_rules(reply.body) {
            let Some(owner) = Owner::of_cookie(entry.cookie) else { continue };
            let key = keys.of(openflow, reply.datapath, entry.table_id, entry.priority, entry.matching);
            let Some(key) = key else { continue };
            there.record.find(key, owner, entry.stays, now_ms);
            if let Owner::Zone(zone) = owner {
                there.inquiry.rules = there.inquiry.rules.saturating_add(1);
                if precedence.compares(zone) {
                    to_compare.push((key, zone, entry));
                }
            }
        }
        if there.inquiry.stage == Stage::Open {
            there.inquiry.stage = Stage::Begun;
        }
        for (key, zone, entry) in to_compare {
            let (table_id, priority) = taken_place(openflow, entry.table_id, entry.priority, entry.matching);
            self.on_rule_found((reply.datapath, table_id), key, zone, priority, entry.matching);
        }
        // Behind the last rule, so that no app hears of the switch before all are known.
        if !reply.more {
            self.settle_inquiry(reply.datapath, Stage::Answered);
            let inquiry = self.datapaths.get_mut(&reply.datapath).map(|there| &mut there.inquiry);
            if inquiry.is_some_and(|inquiry| std::mem::take(&mut inquiry.is_due_again)) {
                self.put_inquiry(reply.datapath, Stage::Due(now_ms));
            }
        }
    }

    /// There is no answer, or no more of it.
    pub(crate) fn on_owners_unanswered(&mut self, datapath: DatapathId, why: Unanswered, now_ms: u64) {
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
