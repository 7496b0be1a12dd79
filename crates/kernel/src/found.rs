//! Whose the rules are that a switch had before this kernel knew it: it is asked once for its flow entries, and their cookies say.
//!
//! ```text
//!   switch up ──SETTLE_MS──> Effect::Ask(Asked::Owners) ──> the switch ──parts──> Kernel::on_owners ──> Rules::note_found
//! ```
//!
//! Rules are in a switch from before when this kernel is the successor of one that ended, or when another worker had the switch. What was
//! noted of commands since then is newer than any answer, and stays. Until the answer is there, whoever adds an equal rule takes its place.
//!
//! In: switches that come and go, and their answers, part by part. Out: questions, and owners of rules. It never waits, never asks twice in one
//! session, and allocates nothing for an answer but the memory for rules, if there was none yet. Bounds: one question for each switch that is
//! up, `ASKED_AT_ONCE` of them in one turn, and [`RULES_MAX`] rules of one answer; those beyond are passed over.

use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::entries::{Asked, Unanswered};
use crate::record::RULES_PER_SWITCH;
use crate::rule_key::taken_place;
use crate::rules::Owner;
use crate::visible::entries;
use crate::zones::MAX_ZONE;
use abi::ZoneId;
use abi::event::StatsReply;
use flow::DatapathId;

/// So long a switch is up before it is asked. A switch with many entries is busy with its answer, and what its hosts send comes as soon as
/// it may: that is not to wait behind the answer.
const SETTLE_MS: u64 = 100;

/// Switches that are asked in one turn of a worker. When a controller starts, thousands come at once, and their answers would come at once too.
/// The others are asked in the turns after, which are the longer the more there is to do.
const ASKED_AT_ONCE: usize = 16;

/// A question that did not go out is put again after so long.
const RETRY_MS: u64 = 1_000;

/// Rules that are taken of one answer: no more can be remembered of all switches together.
pub const RULES_MAX: u32 = RULES_PER_SWITCH;

/// What a switch has said of the rules that it had when it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet, or not all.
    Waiting,
    /// It has answered: so many are an app's, as far as they were looked at.
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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It is to be asked at this time.
    Due(u64),
    Open,
    Answered,
    #[default]
    Unanswered,
}

impl Inquiry {
    fn due(due_ms: u64) -> Inquiry {
        Inquiry { stage: Stage::Due(due_ms), rules: 0 }
    }

    pub fn found(self) -> Found {
        match self.stage {
            Stage::Due(_) | Stage::Open => Found::Waiting,
            Stage::Answered => Found::Answered(self.rules),
            Stage::Unanswered => Found::Unanswered(self.rules),
        }
    }
}

impl Kernel {
    /// Asks those switches that have been up for long enough, as far as one turn allows.
    pub fn ask_for_owners(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.say_evictions(effects);
        for _ in 0..ASKED_AT_ONCE {
            let Some((due_ms, datapath)) = self.to_ask.first().copied() else { return };
            if due_ms > now_ms {
                return;
            }
            self.to_ask.remove(&(due_ms, datapath));
            if let Some(there) = self.datapaths.get_mut(&datapath) {
                there.inquiry.stage = Stage::Open;
                effects.push(Effect::Ask { datapath, asked: Asked::Owners });
            }
        }
    }

    /// A switch has come up.
    pub(crate) fn begin_inquiry(&mut self, datapath: DatapathId, now_ms: u64) {
        self.put_inquiry(datapath, now_ms.saturating_add(SETTLE_MS));
    }

    /// A switch is going, or has come anew.
    pub(crate) fn end_inquiry(&mut self, datapath: DatapathId) {
        let stage = self.datapaths.get(&datapath).map(|there| there.inquiry.stage);
        if let Some(Stage::Due(due_ms)) = stage {
            self.to_ask.remove(&(due_ms, datapath));
        }
    }

    fn put_inquiry(&mut self, datapath: DatapathId, due_ms: u64) {
        if let Some(there) = self.datapaths.get_mut(&datapath) {
            there.inquiry = Inquiry::due(due_ms);
            self.to_ask.insert((due_ms, datapath));
        }
    }

    /// A part of an answer. What came before it is remembered already, so that a long one is nobody's delay.
    pub(crate) fn on_owners(&mut self, reply: &StatsReply<'_>, now_ms: u64) {
        let Kernel { datapaths, keys, precedence, .. } = self;
        let Some(there) = datapaths.get_mut(&reply.datapath) else { return };
        let openflow = there.openflow;
        let inquiry = &mut there.inquiry;
        if inquiry.stage != Stage::Open {
            return;
        }
        let of_apps = entries(reply.body).filter(|entry| is_an_apps(entry.owner));
        let mut to_compare = Vec::new();
        for entry in of_apps.take(RULES_MAX.saturating_sub(inquiry.rules) as usize) {
            inquiry.rules += 1;
            let key = keys.of(openflow, reply.datapath, entry.table_id, entry.priority, entry.matching);
            let Some(key) = key else { continue };
            there.record.find(key, Owner::of_cookie(entry.owner), entry.stays, now_ms);
            if precedence.compares(entry.owner) {
                to_compare.push((key, entry));
            }
        }
        if !reply.more {
            inquiry.stage = Stage::Answered;
        }
        for (key, entry) in to_compare {
            let (table_id, priority) = taken_place(openflow, entry.table_id, entry.priority, entry.matching);
            self.on_rule_found((reply.datapath, table_id), key, entry.owner, priority, entry.matching);
        }
    }

    /// There is no answer, or no more of it.
    pub(crate) fn on_owners_unanswered(&mut self, datapath: DatapathId, why: Unanswered, now_ms: u64) {
        if why == Unanswered::NotSent {
            return self.put_inquiry(datapath, now_ms.saturating_add(RETRY_MS));
        }
        if let Some(there) = self.datapaths.get_mut(&datapath) {
            there.inquiry.stage = Stage::Unanswered;
        }
    }
}

/// Whether a cookie's owner is a zone that there can be. The kernel's own rule is known as it is, and what others put into their cookies says
/// nothing here.
fn is_an_apps(owner: ZoneId) -> bool {
    owner != ZoneId::KERNEL && owner.0 <= MAX_ZONE
}
