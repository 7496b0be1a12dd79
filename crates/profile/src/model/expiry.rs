//! The rules whose time-outs the model watches, by the time at which they may end.
//!
//! In: rules with time-outs, and the time. Out: the rules that end. A rule that was used in the meantime is filed again, so that a use
//! costs nothing here.

use super::output::Output;
use super::rules::{Known, Rules, Slot};
use super::scan::ScanTimes;
use crate::timeouts::Timeouts;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many entries there may be beside two for each rule, before those of deleted rules are removed.
const STALE_MAX: usize = 64;

/// The watched rules.
#[derive(Clone, Debug)]
pub(super) struct Expiry {
    times: ScanTimes,
    by_time: BinaryHeap<Reverse<(u64, Slot)>>,
}

impl Expiry {
    pub(super) fn new(timeouts: &Timeouts, seed: u64) -> Self {
        Expiry { times: ScanTimes::new(timeouts, seed), by_time: BinaryHeap::new() }
    }

    pub(super) fn times(&self) -> ScanTimes {
        self.times
    }

    /// Watches a rule that was added, changed or used.
    pub(super) fn watch(&mut self, slot: Slot, rules: &mut Rules) {
        let Some(known) = rules.get_mut(slot) else { return };
        let Some((due, _)) = self.end_of(known) else { return };
        // An entry at an earlier time finds the new time when it comes up.
        if known.watched_ns.is_some_and(|watched| watched <= due) {
            return;
        }
        known.watched_ns = Some(due);
        self.by_time.push(Reverse((due, slot)));
        if self.by_time.len() > 2 * rules.len() + STALE_MAX {
            let watched =
                |slot: Slot, due| rules.get(slot).is_some_and(|known| known.watched_ns == Some(due));
            self.by_time.retain(|Reverse((due, slot))| watched(*slot, *due));
        }
    }

    /// When a rule ends, and whether by its hard time-out.
    fn end_of(&self, known: &Known) -> Option<(u64, bool)> {
        let (idle_s, hard_s) = (known.rule.idle_timeout_s, known.rule.hard_timeout_s);
        let idle = (idle_s > 0).then(|| (self.times.idle_end_ns(known.used_ns, idle_s), false));
        let hard = (hard_s > 0).then(|| (self.times.hard_end_ns(known.added_ns, hard_s), true));
        [hard, idle].into_iter().flatten().min_by_key(|(end, _)| *end)
    }

    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.by_time.peek().map(|Reverse((due, _))| *due)
    }

    /// The first entry's time has come. Returns what happens to its rule, if it ends.
    pub(super) fn on_due(&mut self, rules: &mut Rules) -> Option<Output> {
        let Reverse((due, slot)) = self.by_time.pop()?;
        let known = rules.get_mut(slot).filter(|known| known.watched_ns == Some(due))?;
        known.watched_ns = None;
        let (id, used_ns) = (known.rule.id, known.used_ns);
        let (end, is_hard) = self.end_of(known)?;
        if end > due {
            self.watch(slot, rules);
            return None;
        }
        Some(if is_hard {
            Output::Expire { rule: id }
        } else {
            Output::ExpireIfIdle { rule: id, unused_since_ns: used_ns }
        })
    }
}
