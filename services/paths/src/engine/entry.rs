//! One intent: what is wanted, how far it is, and its plan.
//!
//! In: what the engine decides. Out: the intent as the view has it. It decides only what a state means.

use crate::plan::{Leg, Plan};
use flow::DatapathId;
use serde::{Deserialize, Serialize};
use view::{Annotations, ConnectPoint, Ends, HostId, Intent, IntentId, IntentState, PathId, Wanted};

/// How many earlier plans are remembered while none is confirmed. Beyond it, the oldest one that was never confirmed is forgotten: a packet
/// that is still on it can be lost.
const EARLIER_MAX: usize = 4;

/// What the store keeps of an intent. All else is computed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Its number.
    pub id: IntentId,
    /// The app that added it.
    pub owner: String,
    /// The name that its owner gave it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is wanted.
    pub wanted: Box<Wanted>,
    /// Notes.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
    /// Where its two hosts were last. After a restart, hosts that say nothing are still served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<Box<[ConnectPoint; 2]>>,
}

/// An intent of the engine.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the store keeps.
    pub kept: Kept,
    /// How far it is.
    pub state: IntentState,
    /// Why it is not installed.
    pub reason: Option<String>,
    /// When the state began.
    pub since_ms: u64,
    /// The version of its rules that was put last; 0: none.
    pub version: u64,
    /// Its paths.
    pub(crate) plan: Option<Plan>,
    /// The paths whose rules can be in the switches beside the present ones: what was confirmed last, and what came after it.
    pub(crate) earlier: Vec<Plan>,
    /// Whether the rules of `version` are confirmed.
    pub(crate) is_confirmed: bool,
    /// Whether rules were ever confirmed, so that a change must leave no gap.
    pub(crate) has_carried: bool,
    /// Put rules even if the plan stays the same.
    pub(crate) must_put: bool,
    /// Whether rules of an earlier run can be in the switches.
    pub(crate) is_from_before: bool,
}

impl Entry {
    pub(crate) fn new(kept: Kept, state: IntentState, now_ms: u64) -> Entry {
        Entry {
            kept,
            state,
            reason: None,
            since_ms: now_ms,
            version: 0,
            plan: None,
            earlier: Vec::new(),
            is_confirmed: false,
            has_carried: false,
            must_put: false,
            is_from_before: false,
        }
    }

    /// Whether it is in the store and not withdrawn.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self.state, IntentState::Requested | IntentState::Withdrawing)
    }

    /// Whether a change of a link's capacity or latency concerns it.
    pub(crate) fn has_bounds(&self) -> bool {
        let constraints = &self.kept.wanted.constraints;
        constraints.bandwidth_kbps > 0 || constraints.latency_us_max.is_some()
    }

    pub(crate) fn hosts(&self) -> Vec<HostId> {
        match self.kept.wanted.ends {
            Ends::HostToHost { one, two } => vec![one, two],
            _ => Vec::new(),
        }
    }

    pub(crate) fn path_id(&self, leg: &Leg) -> PathId {
        PathId { intent: self.kept.id, leg: leg.number, backup: leg.backup }
    }

    /// The ids of its paths.
    pub(crate) fn path_ids(&self) -> impl Iterator<Item = PathId> {
        self.plan.iter().flat_map(|plan| &plan.legs).map(|leg| self.path_id(leg))
    }

    /// Whether its rules must be added from the far end, since packets are on the way.
    pub fn is_in_order(&self) -> bool {
        !self.earlier.is_empty() || self.is_from_before
    }

    /// Enters a state. Says whether something changed.
    pub(crate) fn enter(&mut self, state: IntentState, reason: Option<String>, now_ms: u64) -> bool {
        let is_change = self.state != state || self.reason != reason;
        if self.state != state {
            self.since_ms = now_ms;
        }
        (self.state, self.reason) = (state, reason);
        is_change
    }

    pub(crate) fn replace_wish(&mut self, kept: Kept) {
        self.kept = kept;
        // Its rules have other matches, so the earlier plan says nothing about them.
        self.plan = None;
        self.earlier.clear();
        self.is_from_before = true;
        self.must_put = true;
    }

    /// Replaces the plan of the intent. Its rules are written with this version.
    pub(crate) fn use_plan(&mut self, plan: Plan, version: u64, now_ms: u64) {
        let before = self.plan.replace(plan);
        self.earlier.extend(before.filter(|_| self.has_carried));
        if self.earlier.len() > EARLIER_MAX {
            self.earlier.remove(1);
        }
        (self.version, self.is_confirmed, self.must_put) = (version, false, false);
        self.settle_state(now_ms);
    }

    /// The state that follows from what is confirmed.
    pub(crate) fn settle_state(&mut self, now_ms: u64) {
        let state = match (self.is_confirmed, self.has_carried) {
            (true, _) => IntentState::Installed,
            (false, true) => IntentState::Rerouting,
            (false, false) => IntentState::Installing,
        };
        let lacks = self.plan.as_ref().and_then(|plan| plan.lacks.clone());
        self.enter(state, lacks, now_ms);
    }

    /// Every switch has confirmed the rules.
    pub(crate) fn confirm(&mut self, now_ms: u64) -> bool {
        if self.is_confirmed && self.state == IntentState::Installed {
            return false;
        }
        (self.is_confirmed, self.has_carried) = (true, true);
        self.earlier.clear();
        self.is_from_before = false;
        // One that waits for a path has rules that lead nowhere now.
        if self.state != IntentState::Waiting {
            self.settle_state(now_ms);
        }
        true
    }

    /// A switch of the path is not connected.
    pub(crate) fn await_switch(&mut self, switch: DatapathId, now_ms: u64) -> bool {
        self.is_confirmed = false;
        if self.state == IntentState::Waiting {
            return false;
        }
        let state = if self.has_carried { IntentState::Rerouting } else { IntentState::Installing };
        self.enter(state, Some(format!("the switch {switch} is not connected")), now_ms)
    }

    /// The intent as the view has it.
    pub fn to_intent(&self) -> Intent {
        let Kept { id, owner, name, wanted, annotations, .. } = self.kept.clone();
        let (state, reason, since_ms) = (self.state, self.reason.clone(), self.since_ms);
        Intent { id, owner, name, state, reason, wanted, since_ms, annotations }
    }
}
