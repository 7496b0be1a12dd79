//! The sets by number and by name, and how many of their entries are in which class.
//!
//! In: changes of entries. Out: which sets have finished a step, and which have another state than before. It sends nothing.

use crate::key::EntryKey;
use crate::slot::{Class, IN_STEP, Slot, State};
use crate::wanted::{Body, Place};
use flows_contract::{Failure, Phase, SetOptions, SetState};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The most sets that are kept. One more is refused with the status `FULL`.
pub const SETS_MAX: usize = 1 << 20;

/// What a step of a set's change does with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Send it, or wait for it if it is on its way.
    Add,
    /// Send it in place of the earlier version's entry.
    Replace {
        /// The new place in the body.
        place: Place,
        /// The new content.
        content: u64,
    },
    /// Remove it.
    Remove,
}

/// One part of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Parts with a lower number are confirmed before it begins.
    pub order: u16,
    /// The number of the switch.
    pub switch: u32,
    /// The entry.
    pub key: EntryKey,
    /// What to do.
    pub op: Op,
}

/// One set.
#[derive(Debug)]
pub struct Set {
    /// The number of its owner.
    pub owner: u32,
    /// Its name.
    pub name: Box<str>,
    /// Its version.
    pub version: u64,
    /// How it is kept.
    pub options: SetOptions,
    /// Its bodies: the present one first, then those whose entries may still be in switches.
    pub bodies: Vec<Rc<Body>>,
    /// The parts of the change that have not begun, in reverse order.
    pub plan: Vec<Part>,
    /// Its change goes in steps: as a bundle it was refused.
    pub goes_alone: bool,
    /// Entries for which the present step waits.
    pub open: u32,
    /// How many entries it wants.
    pub wanted: u32,
    /// It is being removed.
    pub is_removing: bool,
    /// The last failure of one of its entries.
    pub failure: Option<Box<Failure>>,
    counts: [u32; 4],
    is_dirty: bool,
}

impl Set {
    /// The number of entries of a class.
    pub fn count(&self, class: Class) -> u32 {
        self.counts.get(class as usize).copied().unwrap_or_default()
    }

    /// Its state. Only `waiting` needs to know which switches are away.
    pub fn state(&self, away: impl FnOnce() -> Vec<flow::DatapathId>) -> SetState {
        let (installed, failed) = (self.count(Class::Installed), self.count(Class::Failed));
        let is_changing = self.open > 0 || !self.plan.is_empty();
        let phase = match &self.failure {
            Some(failure) if failed > 0 => Phase::Failed((**failure).clone()),
            _ if self.is_removing => Phase::Removing,
            _ if installed == self.wanted && !is_changing => Phase::Installed,
            _ if self.count(Class::Waiting) > 0 && self.count(Class::Active) == 0 => {
                Phase::Waiting { switches: away() }
            }
            _ => Phase::Pending,
        };
        // Of a change that goes on, some installed entries are those of the earlier version.
        let earlier = self.plan.iter().filter(|part| part.op != Op::Add).count();
        let confirmed = installed.saturating_sub(u32::try_from(earlier).unwrap_or(u32::MAX)).min(self.wanted);
        SetState { version: self.version, wanted: self.wanted, confirmed, phase }
    }
}

/// All sets.
#[derive(Debug, Default)]
pub struct Sets {
    sets: Vec<Option<Set>>,
    free: Vec<u32>,
    by_name: BTreeMap<u32, BTreeMap<Box<str>, u32>>,
    /// Sets whose present step has just finished.
    pub finished: Vec<u32>,
    /// Sets whose state may have changed since it was last told.
    pub dirty: Vec<u32>,
    /// Owners and names of sets that were deleted since this was last taken.
    pub deleted: Vec<(u32, Box<str>)>,
    count: usize,
}

impl Sets {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A set by its number.
    pub fn get(&self, number: u32) -> Option<&Set> {
        self.sets.get(number as usize)?.as_ref()
    }

    /// A set by its number.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Set> {
        self.sets.get_mut(number as usize)?.as_mut()
    }

    /// The switches of all steps that have not begun.
    pub fn planned_switches(&self) -> impl Iterator<Item = u32> {
        self.sets.iter().flatten().flat_map(|set| &set.plan).map(|part| part.switch)
    }

    /// The number of a set.
    pub fn number(&self, owner: u32, name: &str) -> Option<u32> {
        self.by_name.get(&owner)?.get(name).copied()
    }

    /// The sets of an owner behind a name, in the order of names.
    pub fn of(&self, owner: u32, after: &str) -> impl Iterator<Item = (u32, &Set)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let names = self.by_name.get(&owner).into_iter();
        let behind = names.flat_map(move |names| names.range::<str, _>((Excluded(after), Unbounded)));
        behind.filter_map(|(_, number)| Some((*number, self.get(*number)?)))
    }

    /// Creates a set, and returns its number. `None`: there are [`SETS_MAX`].
    pub fn create(&mut self, owner: u32, name: &str) -> Option<u32> {
        if self.count >= SETS_MAX {
            return None;
        }
        let number = self.free.pop().unwrap_or(u32::try_from(self.sets.len()).ok()?);
        let set = Set {
            owner,
            name: name.into(),
            version: 0,
            options: SetOptions::default(),
            bodies: Vec::new(),
            plan: Vec::new(),
            goes_alone: false,
            open: 0,
            wanted: 0,
            is_removing: false,
            failure: None,
            counts: [0; 4],
            is_dirty: false,
        };
        if number as usize == self.sets.len() {
            self.sets.push(None);
        }
        self.by_name.entry(owner).or_default().insert(set.name.clone(), number);
        self.sets[number as usize] = Some(set);
        self.count += 1;
        Some(number)
    }

    /// Forgets a set.
    pub fn delete(&mut self, number: u32) {
        let Some(set) = self.sets.get_mut(number as usize).and_then(Option::take) else { return };
        if let Some(names) = self.by_name.get_mut(&set.owner) {
            names.remove(&set.name);
        }
        self.free.push(number);
        self.count -= 1;
        self.deleted.push((set.owner, set.name));
    }

    /// Notes that the state of a set may have changed.
    pub fn touch(&mut self, number: u32) {
        if let Some(set) = self.get_mut(number)
            && !std::mem::replace(&mut set.is_dirty, true)
        {
            self.dirty.push(number);
        }
    }

    /// The sets whose state may have changed since the last call.
    pub fn take_dirty(&mut self) -> Vec<u32> {
        let dirty = std::mem::take(&mut self.dirty);
        for number in &dirty {
            if let Some(set) = self.get_mut(*number) {
                set.is_dirty = false;
            }
        }
        dirty
    }

    /// Gives a slot another state, and counts it. `is_ready` says whether its switch is, before and after.
    pub fn set_state(&mut self, slot: &mut Slot, state: State, is_ready: (bool, bool)) {
        let before = slot.class(is_ready.0);
        slot.state = state;
        self.recount(slot, before, is_ready.1);
        if matches!(state, State::Installed) {
            self.leave_step(slot);
        }
    }

    /// Counts a slot whose class was another one.
    pub fn recount(&mut self, slot: &Slot, before: Class, is_ready: bool) {
        let after = slot.class(is_ready);
        let Some(number) = slot.set_number().filter(|_| before != after) else { return };
        if let Some(set) = self.get_mut(number) {
            set.add(before, -1);
            set.add(after, 1);
        }
        self.touch(number);
    }

    /// The present step waits for this slot.
    pub fn enter_step(&mut self, slot: &mut Slot) {
        if slot.has(IN_STEP) {
            return;
        }
        if let Some(set) = slot.set_number().and_then(|number| self.get_mut(number)) {
            slot.set(IN_STEP, true);
            set.open += 1;
        }
    }

    /// The present step waits for this slot no more.
    pub fn leave_step(&mut self, slot: &mut Slot) {
        let Some(number) = slot.set_number().filter(|_| slot.has(IN_STEP)) else { return };
        slot.set(IN_STEP, false);
        if let Some(set) = self.get_mut(number) {
            set.open = set.open.saturating_sub(1);
            if set.open == 0 {
                self.finished.push(number);
            }
        }
        self.touch(number);
    }

    /// A slot is dropped: it counts no more.
    pub fn drop_slot(&mut self, mut slot: Slot, is_ready: bool) {
        let before = slot.class(is_ready);
        slot.state = State::Orphan;
        self.recount(&slot, before, is_ready);
        self.leave_step(&mut slot);
    }
}

impl Set {
    fn add(&mut self, class: Class, difference: i32) {
        if let Some(count) = self.counts.get_mut(class as usize) {
            *count = count.saturating_add_signed(difference);
        }
    }
}
