//! The owners of the groups and meters on a node's switches, for all of its workers.
//!
//! ```text
//!   Owned (the worker that has a switch) ──claim, confirm, release──> Claims ──of──> Owned (the worker that has it next)
//!                                                                       └──take_changes──> whoever keeps them longer than this process
//! ```
//!
//! Groups and meters have no cookie, so a switch cannot report their owner. A switch may reconnect at another worker,
//! and a new kernel process may take over. Both read the owners here. Each worker decides by its own record
//! ([`crate::owned`]). It takes the lock when an owner changes, never for a packet or a rule.
//!
//! In: changes in the workers' records of their switches. Out: the owners on one switch, and the changes. It never
//! decides permissions. Bound: [`crate::group_or_meter::MAX_OWNED`] for each zone, counted here.

use crate::group_effects::GroupEffects;
use crate::group_or_meter::{GroupOrMeter, Place};
use abi::ZoneId;
use flow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The owners of one node.
#[derive(Debug, Default)]
pub struct Claims {
    all: Mutex<All>,
    has_changes: AtomicBool,
}

#[derive(Debug, Default)]
struct All {
    owners: BTreeMap<Place, Claim>,
    /// The number of groups and meters of each zone.
    counts: BTreeMap<ZoneId, usize>,
    /// Places whose change [`Claims::take_changes`] has not returned yet.
    changed: BTreeSet<Place>,
    workers: u32,
}

/// The owner and state of a group or meter.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub zone: ZoneId,
    /// Whether the kernel compared its effects with the zone's current grant.
    pub is_judged: bool,
    /// The effects of a group that was made while this process ran.
    pub group_effects: Option<Box<GroupEffects>>,
    /// Whether the switch has confirmed it.
    is_confirmed: bool,
    /// The worker that has the switch.
    worker: u32,
}

/// The current owner of a group or meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerChange {
    /// The switch.
    pub datapath: DatapathId,
    /// The group or meter.
    pub target: GroupOrMeter,
    /// Its zone; `None`: it has no owner any more.
    pub zone: Option<ZoneId>,
}

impl Claims {
    /// Restores an owner from before this process started. The effects of a restored group are unknown.
    pub fn restore(&self, datapath: DatapathId, target: GroupOrMeter, zone: ZoneId) {
        let mut all = self.lock();
        all.put(
            (datapath, target),
            Claim { zone, is_judged: false, group_effects: None, is_confirmed: true, worker: 0 },
        );
    }

    /// Whether [`Self::take_changes`] would return a change. It takes no lock.
    pub fn has_changes(&self) -> bool {
        self.has_changes.load(Ordering::Acquire)
    }

    /// Returns at most this many of the changes since the last call. Later calls return the rest.
    pub fn take_changes(&self, most: usize) -> Vec<OwnerChange> {
        let mut all = self.lock();
        let mut changes = Vec::new();
        while let Some((datapath, target)) = (changes.len() < most).then(|| all.changed.pop_first()).flatten()
        {
            let claim = all.owners.get(&(datapath, target)).filter(|claim| claim.is_confirmed);
            changes.push(OwnerChange { datapath, target, zone: claim.map(|claim| claim.zone) });
        }
        self.has_changes.store(!all.changed.is_empty(), Ordering::Release);
        changes
    }

    /// Returns a number for one more worker.
    pub(crate) fn join(&self) -> u32 {
        let mut all = self.lock();
        all.workers += 1;
        all.workers
    }

    /// This worker serves the switch from now on. Returns the confirmed groups and meters of apps on the switch.
    pub(crate) fn take_over(&self, datapath: DatapathId, worker: u32) -> Vec<(GroupOrMeter, Claim)> {
        let mut all = self.lock();
        let of_switch = all.owners.range_mut(all_of(datapath)).filter(|(_, claim)| claim.is_confirmed);
        let taken = of_switch.map(|((_, target), claim)| {
            claim.worker = worker;
            (*target, claim.clone())
        });
        taken.collect()
    }

    /// The number of groups and meters of a zone.
    pub(crate) fn count(&self, zone: ZoneId) -> usize {
        self.lock().counts.get(&zone).copied().unwrap_or(0)
    }

    /// A zone has requested a group or meter from its switch.
    pub(crate) fn claim(
        &self,
        place: Place,
        zone: ZoneId,
        group_effects: Option<&GroupEffects>,
        worker: u32,
    ) {
        let group_effects = group_effects.cloned().map(Box::new);
        self.lock().put(place, Claim { zone, is_judged: true, group_effects, is_confirmed: false, worker });
    }

    /// A zone that owned it has claimed it again, and the switch has refused: it stays the zone's, as after [`Self::restore`].
    pub(crate) fn keep(&self, place: Place, zone: ZoneId, worker: u32) {
        let claim = Claim { zone, is_judged: false, group_effects: None, is_confirmed: true, worker };
        self.lock().put(place, claim);
        self.note_changed(place);
    }

    /// The switch has confirmed it.
    pub(crate) fn confirm(&self, place: Place, worker: u32) {
        self.change(place, worker, |claim| claim.is_confirmed = true);
        self.note_changed(place);
    }

    /// The group's effects have changed.
    pub(crate) fn grow(&self, place: Place, group_effects: &GroupEffects, worker: u32) {
        self.change(place, worker, |claim| claim.group_effects = Some(Box::new(group_effects.clone())));
    }

    /// Removes the owner, unless another worker serves the switch by now.
    pub(crate) fn release(&self, place: Place, worker: u32) {
        let mut all = self.lock();
        if all.owners.get(&place).is_some_and(|claim| claim.worker == worker) {
            all.remove(place);
            drop(all);
            self.note_changed(place);
        }
    }

    /// A zone has a different grant now.
    pub(crate) fn on_other_grant(&self, zone: ZoneId) {
        let mut all = self.lock();
        all.owners.values_mut().filter(|claim| claim.zone == zone).for_each(|claim| claim.is_judged = false);
    }

    fn change(&self, place: Place, worker: u32, change: impl FnOnce(&mut Claim)) {
        let mut all = self.lock();
        all.owners.get_mut(&place).filter(|claim| claim.worker == worker).map(change);
    }

    fn note_changed(&self, place: Place) {
        self.lock().changed.insert(place);
        self.has_changes.store(true, Ordering::Release);
    }

    /// No update can panic halfway, so the data is valid even if a thread panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn put(&mut self, place: Place, claim: Claim) {
        self.remove(place);
        *self.counts.entry(claim.zone).or_default() += 1;
        self.owners.insert(place, claim);
    }

    fn remove(&mut self, place: Place) {
        let Some(claim) = self.owners.remove(&place) else { return };
        if let Some(count) = self.counts.get_mut(&claim.zone) {
            *count = count.saturating_sub(1);
        }
    }
}

fn all_of(datapath: DatapathId) -> std::ops::RangeInclusive<Place> {
    (datapath, GroupOrMeter::Group(0))..=(datapath, GroupOrMeter::Meter(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: DatapathId = DatapathId(1);
    const GROUP: Place = (SWITCH, GroupOrMeter::Group(7));
    const APP: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(2);

    fn changes(claims: &Claims) -> Vec<(GroupOrMeter, Option<u16>)> {
        let changes = claims.take_changes(100).into_iter();
        changes.map(|change| (change.target, change.zone.map(|zone| zone.0))).collect()
    }

    fn owners(claims: &Claims, worker: u32) -> Vec<(GroupOrMeter, u16)> {
        let owners = claims.take_over(SWITCH, worker).into_iter();
        owners.map(|(target, claim)| (target, claim.zone.0)).collect()
    }

    #[test]
    fn what_a_switch_has_confirmed_is_known_to_the_worker_that_has_it_next() {
        let claims = Claims::default();
        let (first, second) = (claims.join(), claims.join());
        claims.claim(GROUP, APP, None, first);
        assert_eq!(
            (owners(&claims, first), claims.has_changes()),
            (vec![], false),
            "it may still be refused"
        );
        claims.confirm(GROUP, first);
        assert_eq!(owners(&claims, second), [(GroupOrMeter::Group(7), 1)]);
        assert_eq!(changes(&claims), [(GroupOrMeter::Group(7), Some(1))]);
    }

    #[test]
    fn a_worker_that_has_lost_a_switch_takes_nothing_from_the_next() {
        let claims = Claims::default();
        let (first, second) = (claims.join(), claims.join());
        claims.claim(GROUP, APP, None, first);
        claims.claim(GROUP, OTHER, None, second);
        claims.release(GROUP, first);
        claims.confirm(GROUP, second);
        assert_eq!(owners(&claims, second), [(GroupOrMeter::Group(7), 2)]);
        assert_eq!((claims.count(APP), claims.count(OTHER)), (0, 1));
    }

    #[test]
    fn changes_are_told_once_as_they_are_now() {
        let claims = Claims::default();
        let worker = claims.join();
        for id in 0..3 {
            claims.claim((SWITCH, GroupOrMeter::Meter(id)), APP, None, worker);
            claims.confirm((SWITCH, GroupOrMeter::Meter(id)), worker);
        }
        claims.release((SWITCH, GroupOrMeter::Meter(1)), worker);
        assert_eq!(claims.take_changes(2).len(), 2);
        assert!(claims.has_changes());
        assert_eq!(changes(&claims), [(GroupOrMeter::Meter(2), Some(1))]);
        assert!(!claims.has_changes());
        assert_eq!((changes(&claims), claims.count(APP)), (vec![], 2));
    }

    #[test]
    fn what_was_restored_is_known_and_not_told_again() {
        let claims = Claims::default();
        claims.restore(SWITCH, GroupOrMeter::Group(7), APP);
        claims.restore(SWITCH, GroupOrMeter::Group(7), OTHER);
        assert_eq!((changes(&claims), claims.count(APP), claims.count(OTHER)), (vec![], 0, 1));
        assert_eq!(owners(&claims, 1), [(GroupOrMeter::Group(7), 2)]);
    }
}
