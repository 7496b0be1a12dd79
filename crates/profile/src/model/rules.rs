//! The rules of a switch: what the model knows of each, where each is, and which one is chosen to move.
//!
//! In: rules that come, change and go. Out: a rule by its number or slot, and the first by an order. It decides nothing about places.
//! Slots are reused, and a serial number tells the present rule of a slot from earlier ones.

use super::input::{Rule, RuleId};
use super::output::Place;
use super::random::Random;
use crate::hardware::Victim;
use std::cmp::Ordering;
use std::collections::HashMap;

/// How many rules a model holds in all. A profile without limits would otherwise take all memory. Above it, adds are refused.
pub const RULES_MAX: usize = 1 << 20;

/// A rule's slot, and which rule of that slot is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) index: u32,
    pub(super) serial: u64,
}

/// Where the switch has a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// In a table without limits.
    Anywhere,
    Software,
    /// In software, and a write to hardware has begun or waits.
    Promoting,
    /// In the install buffer.
    Buffered,
    /// A write to hardware has begun or waits.
    Writing,
    Hardware,
    /// In hardware, and moving to software.
    Demoting,
    /// Deleted, but the hardware still has it.
    Leaving,
}

/// The lists by which rules are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Software,
    Hardware,
}

impl At {
    fn list(self) -> Option<List> {
        match self {
            At::Software | At::Promoting | At::Demoting => Some(List::Software),
            At::Buffered | At::Writing | At::Hardware => Some(List::Hardware),
            At::Anywhere | At::Leaving => None,
        }
    }
}

/// A rule, as the model knows it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) rule: Rule,
    pub(super) slot: Slot,
    pub(super) at: At,
    pub(super) added_ns: u64,
    pub(super) used_ns: u64,
    pub(super) packets: u64,
    /// Where packets meet it.
    pub(super) place: Option<Place>,
    /// The latest time for which a change of `place` is planned.
    pub(super) changes_ns: u64,
    /// When its time-outs are looked at next.
    pub(super) watched_ns: Option<u64>,
    /// Its place in its list.
    listed: u32,
}

/// The rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    slots: Vec<Option<Known>>,
    free: Vec<u32>,
    by_id: HashMap<RuleId, u32, foldhash::fast::FixedState>,
    software: Vec<u32>,
    hardware: Vec<u32>,
    serial: u64,
}

impl Rules {
    /// How many rules there are, with those that are leaving.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many rules are in software, with those that move to or from there.
    pub(super) fn in_software(&self) -> usize {
        self.software.len()
    }

    /// How many rules are in hardware or on their way there.
    pub(super) fn in_hardware(&self) -> usize {
        self.hardware.len()
    }

    /// The present rule with this number.
    pub(super) fn slot_of(&self, id: RuleId) -> Option<Slot> {
        let index = *self.by_id.get(&id)?;
        Some(self.slots.get(index as usize)?.as_ref()?.slot)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Known> {
        self.slots.get(slot.index as usize)?.as_ref().filter(|known| known.slot == slot)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Known> {
        self.slots.get_mut(slot.index as usize)?.as_mut().filter(|known| known.slot == slot)
    }

    /// Adds a rule. No present rule may have its number.
    pub(super) fn insert(&mut self, rule: Rule, at: At, now_ns: u64) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // RULES_MAX has 32 bits.
            (self.slots.len() - 1) as u32
        });
        self.serial += 1;
        let slot = Slot { index, serial: self.serial };
        self.slots[index as usize] = Some(Known {
            rule,
            slot,
            at,
            added_ns: now_ns,
            used_ns: now_ns,
            packets: 0,
            place: None,
            changes_ns: 0,
            watched_ns: None,
            listed: 0,
        });
        self.by_id.insert(rule.id, index);
        self.enlist(index, at);
        slot
    }

    /// The rule is somewhere else now.
    pub(super) fn move_to(&mut self, slot: Slot, at: At) {
        let Some(known) = self.get_mut(slot) else { return };
        let (before, listed) = (known.at, known.listed);
        known.at = at;
        if before.list() != at.list() {
            self.delist(before, listed);
            self.enlist(slot.index, at);
        }
    }

    /// The rule is deleted, but keeps its slot: its number is free for another.
    pub(super) fn forget_id(&mut self, slot: Slot) {
        if let Some(known) = self.get(slot)
            && self.by_id.get(&known.rule.id) == Some(&slot.index)
        {
            let id = known.rule.id;
            self.by_id.remove(&id);
        }
    }

    /// The rule and its slot are gone.
    pub(super) fn remove(&mut self, slot: Slot) {
        self.forget_id(slot);
        let Some(known) = self.get(slot) else { return };
        let (at, listed) = (known.at, known.listed);
        self.delist(at, listed);
        self.slots[slot.index as usize] = None;
        self.free.push(slot.index);
    }

    fn list(&mut self, list: List) -> &mut Vec<u32> {
        match list {
            List::Software => &mut self.software,
            List::Hardware => &mut self.hardware,
        }
    }

    fn enlist(&mut self, index: u32, at: At) {
        let Some(list) = at.list() else { return };
        let list = self.list(list);
        list.push(index);
        // As long as the slots, whose number has 32 bits.
        let listed = (list.len() - 1) as u32;
        if let Some(known) = &mut self.slots[index as usize] {
            known.listed = listed;
        }
    }

    fn delist(&mut self, at: At, listed: u32) {
        let Some(list) = at.list() else { return };
        let list = self.list(list);
        list.swap_remove(listed as usize);
        if let Some(moved) = list.get(listed as usize).copied()
            && let Some(known) = &mut self.slots[moved as usize]
        {
            known.listed = listed;
        }
    }

    /// The rule in hardware that goes first by these keys, of those that are wanted by their slot and class.
    pub(super) fn first_in_hardware(
        &self,
        keys: &[Victim],
        wanted: impl Fn(Slot, Option<u8>) -> bool,
        random: &mut Random,
    ) -> Option<Slot> {
        let is_wanted = |known: &Known| known.at == At::Hardware && wanted(known.slot, known.rule.class);
        self.first(&self.hardware, is_wanted, keys, random)
    }

    /// The rule in software that goes first by these keys, of those that are wanted.
    pub(super) fn first_in_software(
        &self,
        keys: &[Victim],
        wanted: impl Fn(&Rule) -> bool,
        random: &mut Random,
    ) -> Option<Slot> {
        self.first(&self.software, |known| known.at == At::Software && wanted(&known.rule), keys, random)
    }

    /// Among equals, the oldest goes first, or any if a key says so.
    fn first(
        &self,
        list: &[u32],
        wanted: impl Fn(&Known) -> bool,
        keys: &[Victim],
        random: &mut Random,
    ) -> Option<Slot> {
        let is_random = keys.contains(&Victim::Random);
        let (mut best, mut equals): (Option<&Known>, u64) = (None, 0);
        let known = list.iter().filter_map(|index| self.slots.get(*index as usize)?.as_ref());
        for candidate in known.filter(|known| wanted(known)) {
            let order = best.map_or(Ordering::Less, |best| compare(candidate, best, keys));
            equals = if order == Ordering::Less { 1 } else { equals + u64::from(order.is_eq()) };
            let is_better = match order {
                Ordering::Less => true,
                Ordering::Equal if is_random => random.below(equals) == 0,
                Ordering::Equal => best.is_some_and(|best| candidate.slot.serial < best.slot.serial),
                Ordering::Greater => false,
            };
            if is_better {
                best = Some(candidate);
            }
        }
        best.map(|best| best.slot)
    }
}

/// Which of two rules goes first.
fn compare(one: &Known, two: &Known, keys: &[Victim]) -> Ordering {
    let by_key = |key: &Victim| match key {
        Victim::Oldest => (one.added_ns, one.slot.serial).cmp(&(two.added_ns, two.slot.serial)),
        Victim::Newest => (two.added_ns, two.slot.serial).cmp(&(one.added_ns, one.slot.serial)),
        Victim::LeastRecentlyUsed => one.used_ns.cmp(&two.used_ns),
        Victim::MostRecentlyUsed => two.used_ns.cmp(&one.used_ns),
        Victim::LeastUsed => one.packets.cmp(&two.packets),
        Victim::MostUsed => two.packets.cmp(&one.packets),
        Victim::LowestPriority => one.rule.priority.cmp(&two.rule.priority),
        Victim::HighestPriority => two.rule.priority.cmp(&one.rule.priority),
        Victim::Random => Ordering::Equal,
    };
    keys.iter().map(by_key).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
