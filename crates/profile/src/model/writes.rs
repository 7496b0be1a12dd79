//! The hardware table as a server: it carries out one change after another, and stalls from time to time.
//!
//! In: changes, in order, and the time. Out: which change begins or ends. The cost of a change depends on what is written. It does not
//! know what rules are for, and never decides whether one has room: that is `tables`.

use super::draw::{Draw, nanoseconds};
use super::memory::Priorities;
use super::random::Stream;
use super::rules::Slot;
use crate::curve::Curve;
use crate::hardware::{AddCost, Hardware, ModifyKind, Stall, StallInterval};
use std::collections::VecDeque;

/// Stalls that are passed over at once while the hardware has nothing to do. After a silence of more, the next stall counts from its end.
const STALLS_PASSED_MAX: u32 = 1000;

/// What the hardware does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Writes a new rule.
    Write,
    /// Changes a rule in its place.
    Rewrite,
    /// Deletes a rule and writes it again.
    Replace,
    /// Deletes a rule.
    Erase,
}

/// One change of the hardware table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) slot: Slot,
    pub(super) priority: u16,
    pub(super) kind: ChangeKind,
    /// Whether a message caused it. Barriers and the CPU wait for these only.
    pub(super) is_of_message: bool,
}

/// The hardware table as a server.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    add: AddCost,
    modify: Curve,
    delete: Curve,
    modify_kind: ModifyKind,
    priorities: Priorities,
    waiting: VecDeque<Change>,
    current: Option<(u64, Change)>,
    stalls: Option<Stalls>,
    /// Changes of messages that have not ended.
    of_messages: usize,
}

impl Writes {
    pub(super) fn new(hardware: &Hardware, seed: u64) -> Self {
        Writes {
            add: hardware.add.clone(),
            modify: hardware.modify.clone(),
            delete: hardware.delete.clone(),
            modify_kind: hardware.modify_kind,
            priorities: Priorities::new(&hardware.add),
            waiting: VecDeque::new(),
            current: None,
            stalls: hardware.stall.as_ref().map(|stall| Stalls::new(stall, seed)),
            of_messages: 0,
        }
    }

    /// How a rule is modified.
    pub(super) fn modify_kind(&self) -> ChangeKind {
        match self.modify_kind {
            ModifyKind::InPlace => ChangeKind::Rewrite,
            ModifyKind::DeleteAndAdd => ChangeKind::Replace,
        }
    }

    /// How many changes wait.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether changes of messages have not ended.
    pub(super) fn has_messages(&self) -> bool {
        self.of_messages > 0
    }

    /// A change waits for its turn. If the hardware is free it begins now: returns the change that begins.
    pub(super) fn push(&mut self, change: Change, now_ns: u64) -> Option<Change> {
        self.of_messages += usize::from(change.is_of_message);
        self.waiting.push_back(change);
        self.begin(now_ns)
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.current.map(|(ends, _)| ends)
    }

    /// The change that ends, and the one that begins after it.
    pub(super) fn on_due(&mut self) -> (Option<Change>, Option<Change>) {
        let Some((ends, change)) = self.current.take() else { return (None, None) };
        match change.kind {
            ChangeKind::Write => self.priorities.insert(change.priority),
            ChangeKind::Erase => self.priorities.remove(change.priority),
            ChangeKind::Rewrite | ChangeKind::Replace => {}
        }
        self.of_messages -= usize::from(change.is_of_message);
        let next = self.begin(ends);
        (Some(change), next)
    }

    fn begin(&mut self, now_ns: u64) -> Option<Change> {
        if self.current.is_some() {
            return None;
        }
        let change = self.waiting.pop_front()?;
        let begins = self.stalls.as_mut().map_or(now_ns, |stalls| stalls.pass(now_ns));
        let cost = nanoseconds(self.cost_us(&change));
        self.current = Some((begins.saturating_add(cost), change));
        Some(change)
    }

    fn cost_us(&self, change: &Change) -> f64 {
        let (rules, lower, higher) = self.priorities.around(change.priority);
        let count = f64::from(rules);
        match change.kind {
            ChangeKind::Write => self.add.at(rules, lower, higher),
            ChangeKind::Rewrite => self.modify.at(count),
            ChangeKind::Replace => {
                self.delete.at(count) + self.add.at(rules.saturating_sub(1), lower, higher)
            }
            ChangeKind::Erase => self.delete.at(count),
        }
    }
}

/// When the hardware takes no change.
#[derive(Clone, Debug)]
struct Stalls {
    interval: Option<Draw>,
    changes: u32,
    lasts: Draw,
    /// The next stall, or the present one.
    from_ns: u64,
    until_ns: u64,
    changes_left: u32,
}

impl Stalls {
    fn new(stall: &Stall, seed: u64) -> Self {
        let (interval, changes) = match &stall.interval {
            StallInterval::TimeUs(interval) => (Some(Draw::new(interval, seed, Stream::StallInterval)), 0),
            StallInterval::Changes(changes) => (None, (*changes).max(1)),
        };
        let lasts = Draw::new(&stall.lasts_us, seed, Stream::StallLength);
        let mut stalls = Stalls { interval, changes, lasts, from_ns: 0, until_ns: 0, changes_left: changes };
        stalls.plan(0);
        stalls
    }

    /// Plans the next stall by time, after one that ended then.
    fn plan(&mut self, ended_ns: u64) {
        if let Some(interval) = &mut self.interval {
            self.from_ns = ended_ns.saturating_add(interval.next_ns());
            self.until_ns = self.from_ns.saturating_add(self.lasts.next_ns());
        }
    }

    /// When a change begins that could begin now.
    fn pass(&mut self, now_ns: u64) -> u64 {
        if self.interval.is_none() {
            return self.pass_by_count(now_ns);
        }
        for _ in 0..STALLS_PASSED_MAX {
            if self.until_ns > now_ns {
                return if self.from_ns <= now_ns { self.until_ns } else { now_ns };
            }
            self.plan(self.until_ns);
        }
        self.plan(now_ns);
        now_ns
    }

    fn pass_by_count(&mut self, now_ns: u64) -> u64 {
        let Some(left) = self.changes_left.checked_sub(1) else {
            self.changes_left = self.changes - 1;
            return now_ns.saturating_add(self.lasts.next_ns());
        };
        self.changes_left = left;
        now_ns
    }
}
