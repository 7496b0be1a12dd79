//! How full the hardware table is: its memories, and the priorities of the rules in it.
//!
//! In: rules that come and go, by class and priority. Out: whether one more has room, and how many have a lower or higher priority. It
//! does not know which rules they are.

use crate::hardware::{AddCost, Capacity};

/// How much of a memory may be used, in rules: rounding must not take away the last place of a memory that classes share.
const ROUNDING: f64 = 1e-9;

#[derive(Clone, Debug)]
struct Class {
    memory: u8,
    entries: u32,
    used: u32,
}

/// The memories of a hardware table. A rule of a class with n entries takes 1/n of its memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    classes: Vec<Class>,
}

impl Memory {
    pub(super) fn new(capacities: &[Capacity]) -> Self {
        let class = |of: &Capacity| Class {
            memory: of.memory,
            // A probe that found no end says nothing about where it is.
            entries: if of.at_least { u32::MAX } else { of.entries },
            used: 0,
        };
        Memory { classes: capacities.iter().map(class).collect() }
    }

    /// Whether there is such a class.
    pub(super) fn knows(&self, class: u8) -> bool {
        self.classes.get(usize::from(class)).is_some_and(|class| class.entries > 0)
    }

    /// Whether two classes share a memory.
    pub(super) fn shares(&self, one: u8, two: u8) -> bool {
        let memory_of = |class: u8| self.classes.get(usize::from(class)).map(|class| class.memory);
        memory_of(one) == memory_of(two)
    }

    /// Whether one more rule of this class has room. Exact as long as one class of the memory is in use.
    pub(super) fn has_room(&self, class: u8) -> bool {
        let Some(wanted) = self.classes.get(usize::from(class)) else { return false };
        let others = self.classes.iter().enumerate().filter(|(index, other)| {
            *index != usize::from(class) && other.memory == wanted.memory && other.used > 0
        });
        let of_others: f64 = others.map(|(_, other)| f64::from(other.used) / f64::from(other.entries)).sum();
        if of_others == 0.0 {
            return wanted.used < wanted.entries;
        }
        let own = f64::from(wanted.used + 1) / f64::from(wanted.entries);
        wanted.entries > 0 && own + of_others <= 1.0 + ROUNDING
    }

    pub(super) fn take(&mut self, class: u8) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.used += 1;
        }
    }

    pub(super) fn give_back(&mut self, class: u8) {
        if let Some(class) = self.classes.get_mut(usize::from(class)) {
            class.used = class.used.saturating_sub(1);
        }
    }
}

/// The priorities of the rules that are written, sorted. They are kept only if the cost of an add depends on them.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    sorted: Option<Vec<u16>>,
    count: u32,
}

impl Priorities {
    pub(super) fn new(cost: &AddCost) -> Self {
        let is_same = cost.same == cost.ascending && cost.same == cost.descending && cost.random.is_none();
        Priorities { sorted: (!is_same).then(Vec::new), count: 0 }
    }

    /// How many rules are written, how many of these have a lower, and how many a higher priority.
    pub(super) fn around(&self, priority: u16) -> (u32, u32, u32) {
        let Some(sorted) = &self.sorted else { return (self.count, 0, 0) };
        let lower = sorted.partition_point(|other| *other < priority);
        let higher = sorted.len() - sorted.partition_point(|other| *other <= priority);
        // There are at most as many as rules, whose number has 32 bits.
        (self.count, lower as u32, higher as u32)
    }

    pub(super) fn insert(&mut self, priority: u16) {
        self.count += 1;
        if let Some(sorted) = &mut self.sorted {
            sorted.insert(sorted.partition_point(|other| *other < priority), priority);
        }
    }

    pub(super) fn remove(&mut self, priority: u16) {
        self.count = self.count.saturating_sub(1);
        if let Some(sorted) = &mut self.sorted
            && let Ok(index) = sorted.binary_search(&priority)
        {
            sorted.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::model::random::{Random, Stream};

    fn class(entries: u32, memory: u8) -> Capacity {
        Capacity { memory, ..Capacity::any(entries) }
    }

    #[test]
    fn classes_of_one_memory_share_it_and_others_do_not() {
        let mut memory = Memory::new(&[class(6, 0), class(3, 0), class(2, 1)]);
        (0..4).for_each(|_| memory.take(0));
        assert!(memory.has_room(1));
        memory.take(1);
        assert!(!memory.has_room(0) && !memory.has_room(1), "4/6 + 1/3 is all of it");
        assert!(memory.has_room(2));
        memory.give_back(0);
        assert!(memory.has_room(0) && !memory.has_room(1));
        assert!(!memory.has_room(3), "no such class");
    }

    #[test]
    fn it_has_room_as_whole_numbers_say() {
        for seed in 0..200 {
            let mut random = Random::new(seed, Stream::Choice);
            let entries = [1 + random.below(3000), 1 + random.below(3000)];
            let mut memory = Memory::new(&entries.map(|entries| class(entries as u32, 0)));
            let mut used = [0u64; 2];
            for _ in 0..6000 {
                let index = random.below(2) as usize;
                let mut more = used;
                more[index] += 1;
                let fits = more[0] * entries[1] + more[1] * entries[0] <= entries[0] * entries[1];
                assert_eq!(memory.has_room(index as u8), fits, "{entries:?}, {used:?} used");
                if fits {
                    used = more;
                    memory.take(index as u8);
                } else if random.below(3) == 0 && used[index] > 0 {
                    used[index] -= 1;
                    memory.give_back(index as u8);
                }
            }
        }
    }

    #[test]
    fn priorities_are_counted_as_by_looking_at_each() {
        let cost = AddCost { ascending: Curve::constant(1.0), ..AddCost::default() };
        let (mut priorities, mut all) = (Priorities::new(&cost), Vec::<u16>::new());
        let mut random = Random::new(1, Stream::Choice);
        for _ in 0..5000 {
            let priority = random.below(20) as u16;
            let count =
                |wanted: &dyn Fn(u16) -> bool| all.iter().filter(|other| wanted(**other)).count() as u32;
            let expected =
                (count(&|_| true), count(&|other| other < priority), count(&|other| other > priority));
            assert_eq!(priorities.around(priority), expected);
            if random.below(3) == 0 && !all.is_empty() {
                priorities.remove(all.swap_remove(random.below(all.len() as u64) as usize));
            } else {
                priorities.insert(priority);
                all.push(priority);
            }
        }
    }
}
