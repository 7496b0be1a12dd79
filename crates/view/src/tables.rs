//! The tables of the view: they take changes in any order, and end in the same state.
//!
//! ```text
//!   changes ──> [ stamps, tombstones ] ──> slots ──> [ integrity ] ──> snapshot, and a batch of notices
//! ```
//!
//! In: changes, in any order and any number of times. Out: for each atomic update, what readers can see of it. The tables never
//! read a clock, and never show an object without what it needs.

use crate::batch::{Batch, Notice, Refusal, Refused};
use crate::change::{Change, Record, Stamp};
use crate::integrity::{dependents, needs};
use crate::kinds::{Key, Kind};
use crate::snapshot::Snapshot;
use crate::tombstones::{TOMBSTONES_MAX, Tombstones};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum number of known objects: a million rules and everything else, four times. A further object is refused, and the batch
/// says so. Changes of known objects are taken.
pub const OBJECTS_MAX: usize = 4_000_000;

/// The tables of the view.
#[derive(Clone, Debug)]
pub struct Tables {
    view: Snapshot,
    tombstones: Tombstones,
    objects_max: usize,
}

impl Default for Tables {
    fn default() -> Self {
        Tables::new()
    }
}

/// An update while it is applied.
#[derive(Default)]
struct Update {
    /// What was visible of each object that may change.
    before: BTreeMap<Key, Option<Arc<Record>>>,
    /// The objects whose visibility is not decided yet.
    undecided: BTreeSet<Key>,
    refused: Vec<Refused>,
    late: usize,
}

impl Tables {
    /// Empty tables.
    pub fn new() -> Tables {
        Tables::with_bounds(OBJECTS_MAX, TOMBSTONES_MAX)
    }

    /// Empty tables that hold at most so many objects and tombstones.
    pub fn with_bounds(objects_max: usize, tombstones_max: usize) -> Tables {
        Tables { view: Snapshot::default(), tombstones: Tombstones::new(tombstones_max), objects_max }
    }

    /// The present state. A copy of it does not change any more.
    pub fn view(&self) -> &Snapshot {
        &self.view
    }

    /// A copy of the present state.
    pub fn snapshot(&self) -> Snapshot {
        self.view.clone()
    }

    /// How many objects are known, visible or not.
    pub fn known(&self) -> usize {
        self.view.known()
    }

    /// How many removals were forgotten because there were too many.
    pub fn forgotten_tombstones(&self) -> u64 {
        self.tombstones.forgotten()
    }

    /// The stamp of an object that is known, visible or not.
    pub fn stamp(&self, key: Key) -> Option<Stamp> {
        self.view.slot(key).map(|slot| slot.record.stamp)
    }

    /// Applies changes as one atomic update. Of two changes of one object, the one with the later stamp wins. A removal wins over a
    /// change with the same stamp.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Batch {
        let mut update = Update::default();
        for change in changes {
            self.take(change, &mut update);
        }
        self.finish(update)
    }

    /// Makes the objects of these kinds exactly those of a service's snapshot, in one atomic update, whatever their stamps are.
    /// The reader of one service follows it even if the clock of its machine went back. Removals of these kinds are forgotten.
    pub fn replace(&mut self, kinds: &[Kind], records: impl IntoIterator<Item = Record>) -> Batch {
        let mut update = Update::default();
        let mut gone: BTreeSet<Key> =
            self.view.known_keys().filter(|key| kinds.contains(&key.kind())).collect();
        self.tombstones.retain(|key| !kinds.contains(&key.kind()));
        for record in records {
            let key = record.object.key();
            if kinds.contains(&key.kind()) {
                gone.remove(&key);
                self.put(key, record, &mut update);
            } else {
                update.refused.push(Refused { key, why: Refusal::OtherKey });
            }
        }
        for key in gone {
            update.touch(&self.view, key);
            self.view.remove(key);
        }
        self.finish(update)
    }

    fn take(&mut self, change: Change, update: &mut Update) {
        let Change { stamp, key, object } = change;
        if object.as_ref().is_some_and(|object| object.key() != key) {
            update.refused.push(Refused { key, why: Refusal::OtherKey });
            return;
        }
        let order = (stamp, object.is_none());
        if self.last(key).is_some_and(|last| order <= last) {
            update.late += 1;
            return;
        }
        match object {
            Some(object) => self.put(key, Record { stamp, object }, update),
            None => {
                update.touch(&self.view, key);
                self.view.remove(key);
                self.tombstones.put(key, stamp);
            }
        }
    }

    /// The last change of an object: its stamp, and whether it was a removal.
    fn last(&self, key: Key) -> Option<(Stamp, bool)> {
        let removed = || self.tombstones.get(key).map(|stamp| (stamp, true));
        self.stamp(key).map(|stamp| (stamp, false)).or_else(removed)
    }

    fn put(&mut self, key: Key, record: Record, update: &mut Update) {
        let known = self.view.slot(key);
        if known.is_some_and(|slot| *slot.record == record) {
            return;
        }
        if known.is_none() && self.known() >= self.objects_max {
            update.refused.push(Refused { key, why: Refusal::Full });
            return;
        }
        update.touch(&self.view, key);
        self.tombstones.remove(key);
        self.view.put(key, Arc::new(record));
    }

    /// Decides what is visible now, and tells what changed.
    fn finish(&mut self, mut update: Update) -> Batch {
        // An object comes after what it needs, so each is decided once.
        while let Some(key) = update.undecided.pop_first() {
            let is_visible = self.is_complete(key);
            self.view.show(key, is_visible);
            let was_visible = update.before.get(&key).is_some_and(Option::is_some);
            if was_visible != is_visible {
                dependents(&self.view, key).into_iter().for_each(|it| update.touch(&self.view, it));
            }
        }
        let Update { before, refused, late, .. } = update;
        let (mut notices, mut gone) = (Vec::new(), Vec::new());
        for (key, before) in before {
            match Notice::of(before, self.view.get(key).cloned()) {
                Some(notice @ Notice::Invisible(_)) => gone.push(notice),
                other => notices.extend(other),
            }
        }
        gone.reverse();
        gone.append(&mut notices);
        if !gone.is_empty() {
            self.view.count_update();
        }
        Batch { notices: gone, refused, late }
    }

    /// Whether the object is known, and all that it needs is visible.
    fn is_complete(&self, key: Key) -> bool {
        let slot = self.view.slot(key);
        slot.is_some_and(|slot| {
            needs(&slot.record.object).into_iter().flatten().all(|needed| self.view.get(needed).is_some())
        })
    }
}

impl Update {
    /// The object may change: remembers what was visible of it.
    fn touch(&mut self, view: &Snapshot, key: Key) {
        self.before.entry(key).or_insert_with(|| view.get(key).cloned());
        self.undecided.insert(key);
    }
}
