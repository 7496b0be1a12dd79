//! A set of zones: a bit for each zone number, without heap memory.
//!
//! ```text
//!   first:  | 63 … 2 1 | some beyond? |   zones 1 to 63; bit 0 says whether the rest is to be looked at
//!   beyond: | 127 … 64 | 191 … 128 | …    zones 64 to MAX_ZONE, all zeros as long as bit 0 is clear
//! ```
//!
//! Each packet-in uses the set, and most nodes have few zones. So all operations read only the first word as long as
//! the set has no zone above 63, and no operation allocates. The set is 128 bytes long and therefore not `Copy`: an
//! accidental copy on the packet path would be expensive. `clone_from` copies only the first word if the others are
//! empty.

use abi::ZoneId;

/// The highest zone number. Number 0 is the kernel, which is in no set. A node starts no more zones than this.
pub const MAX_ZONE: u16 = 1023;

/// The number of words after the first.
const BEYOND: usize = MAX_ZONE as usize / 64;

/// The bit of the first word that is set if `beyond` is not all zeros.
const GOES_ON: u64 = 1;

/// A set of zones.
#[derive(Default, PartialEq, Eq)]
pub struct ZoneSet {
    first: u64,
    beyond: [u64; BEYOND],
}

/// Whether a zone can have this number: 1 to [`MAX_ZONE`].
#[inline]
pub const fn is_zone_number(number: u16) -> bool {
    number.wrapping_sub(1) < MAX_ZONE
}

impl ZoneSet {
    /// The empty set.
    pub const EMPTY: ZoneSet = ZoneSet { first: 0, beyond: [0; BEYOND] };

    /// The set of only this zone; empty if the number is invalid.
    pub fn only(zone: ZoneId) -> ZoneSet {
        let mut set = ZoneSet::EMPTY;
        set.insert(zone);
        set
    }

    /// The set of all valid zones.
    pub fn all() -> ZoneSet {
        ZoneSet { first: u64::MAX, beyond: [u64::MAX; BEYOND] }
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == 0
    }

    /// Whether the set contains this zone.
    #[inline]
    pub fn contains(&self, zone: ZoneId) -> bool {
        match zone.0 {
            number @ 0..64 => (self.first & !GOES_ON) >> number & 1 != 0,
            _ => self.goes_on() && self.contains_beyond(zone),
        }
    }

    #[cold]
    fn contains_beyond(&self, zone: ZoneId) -> bool {
        let (word, bit) = place(zone);
        self.beyond.get(word).is_some_and(|it| it & bit != 0)
    }

    /// Adds a zone. It ignores an invalid number.
    #[inline]
    pub fn insert(&mut self, zone: ZoneId) {
        match zone.0 {
            0 => {}
            number @ 1..64 => self.first |= 1 << number,
            _ => self.insert_beyond(zone),
        }
    }

    #[cold]
    fn insert_beyond(&mut self, zone: ZoneId) {
        let (word, bit) = place(zone);
        if let Some(word) = self.beyond.get_mut(word) {
            *word |= bit;
            self.first |= GOES_ON;
        }
    }

    /// Removes a zone.
    #[inline]
    pub fn remove(&mut self, zone: ZoneId) {
        match zone.0 {
            0 => {}
            number @ 1..64 => self.first &= !(1 << number),
            _ => self.remove_beyond(zone),
        }
    }

    #[cold]
    fn remove_beyond(&mut self, zone: ZoneId) {
        let (word, bit) = place(zone);
        if let Some(word) = self.beyond.get_mut(word) {
            *word &= !bit;
        }
        if self.beyond == [0; BEYOND] {
            self.first &= !GOES_ON;
        }
    }

    /// Adds the zones of the other set.
    #[inline]
    pub fn union_with(&mut self, other: &ZoneSet) {
        self.first |= other.first;
        if other.goes_on() {
            self.union_beyond(other);
        }
    }

    #[cold]
    fn union_beyond(&mut self, other: &ZoneSet) {
        self.beyond.iter_mut().zip(&other.beyond).for_each(|(here, there)| *here |= there);
    }

    /// Removes and returns the zone with the lowest number.
    #[inline]
    pub fn pop(&mut self) -> Option<ZoneId> {
        let zone = self.iter().next()?;
        self.remove(zone);
        Some(zone)
    }

    /// Removes the zones for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(ZoneId) -> bool) {
        let before = self.clone();
        before.iter().filter(|zone| !keep(*zone)).for_each(|zone| self.remove(zone));
    }

    /// Removes all zones.
    #[inline]
    pub fn clear(&mut self) {
        self.clone_from(&ZoneSet::EMPTY);
    }

    /// Calls the function with each zone, the lowest number first. On the packet path it takes fewer instructions than
    /// [`Self::iter`].
    #[inline(always)]
    pub fn for_each(&self, mut each: impl FnMut(ZoneId)) {
        if self.goes_on() {
            return self.for_each_of_many(each);
        }
        let mut word = self.first;
        while word != 0 {
            each(ZoneId(word.trailing_zeros() as u16));
            word &= word - 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn for_each_of_many(&self, each: impl FnMut(ZoneId)) {
        self.iter().for_each(each);
    }

    /// Its zones, the lowest number first.
    #[inline]
    pub fn iter(&self) -> Zones<'_> {
        Zones { word: self.first & !GOES_ON, at: 0, set: self }
    }

    #[inline]
    const fn goes_on(&self) -> bool {
        self.first & GOES_ON != 0
    }
}

/// The place of a zone above the first word: the index of the word, and the bit.
fn place(zone: ZoneId) -> (usize, u64) {
    let number = usize::from(zone.0);
    ((number / 64).wrapping_sub(1), 1 << (number % 64))
}

impl Clone for ZoneSet {
    fn clone(&self) -> ZoneSet {
        ZoneSet { first: self.first, beyond: self.beyond }
    }

    #[inline]
    fn clone_from(&mut self, other: &ZoneSet) {
        if (self.first | other.first) & GOES_ON != 0 {
            self.beyond = other.beyond;
        }
        self.first = other.first;
    }
}

impl std::fmt::Debug for ZoneSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(|zone| zone.0)).finish()
    }
}

impl FromIterator<ZoneId> for ZoneSet {
    fn from_iter<I: IntoIterator<Item = ZoneId>>(zones: I) -> ZoneSet {
        let mut set = ZoneSet::EMPTY;
        zones.into_iter().for_each(|zone| set.insert(zone));
        set
    }
}

impl<'s> IntoIterator for &'s ZoneSet {
    type Item = ZoneId;
    type IntoIter = Zones<'s>;

    #[inline]
    fn into_iter(self) -> Zones<'s> {
        self.iter()
    }
}

/// The zones of a set, the lowest number first.
#[derive(Clone, Debug)]
pub struct Zones<'s> {
    /// The rest of the word at `at`; word 0 is the first.
    word: u64,
    at: usize,
    set: &'s ZoneSet,
}

impl ZoneSet {
    /// The next word that has a zone, from this index of `beyond`, and its number.
    // By value: a reference to the iterator would keep the iterator in memory, and out of registers.
    #[cold]
    fn next_word(&self, from: usize) -> Option<(u64, usize)> {
        let words = self.beyond.iter().zip(1..).skip(from);
        words.map(|(word, at)| (*word, at)).find(|(word, _)| *word != 0)
    }
}

impl Iterator for Zones<'_> {
    type Item = ZoneId;

    #[inline]
    fn next(&mut self) -> Option<ZoneId> {
        if self.word == 0 {
            if !self.set.goes_on() {
                return None;
            }
            (self.word, self.at) = self.set.next_word(self.at)?;
        }
        let bit = self.word.trailing_zeros() as u16;
        self.word &= self.word - 1;
        // There are sixteen words.
        Some(ZoneId(self.at as u16 * 64 + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(numbers: &[u16]) -> ZoneSet {
        numbers.iter().map(|number| ZoneId(*number)).collect()
    }

    #[test]
    fn numbers_that_no_zone_can_have_are_in_no_set() {
        for number in [0, 1024, 1087, 1088, u16::MAX] {
            assert_eq!(set(&[number]), ZoneSet::EMPTY, "{number}");
            assert!(!ZoneSet::all().contains(ZoneId(number)) && !is_zone_number(number), "{number}");
            let mut all = ZoneSet::all();
            all.remove(ZoneId(number));
            assert_eq!(all, ZoneSet::all(), "{number}");
        }
        assert_eq!(ZoneSet::all().iter().count(), usize::from(MAX_ZONE));
        assert!(is_zone_number(1) && is_zone_number(MAX_ZONE));
    }

    #[test]
    fn a_set_gives_its_zones_in_order_and_once() {
        assert_eq!(format!("{:?}", set(&[1023, 64, 63, 1, 1, 500])), "{1, 63, 64, 500, 1023}");
        assert_eq!(format!("{:?}", set(&[])), "{}");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u16),
        Remove(u16),
        Pop,
        Clear,
        Union(Vec<u16>),
        Become(Vec<u16>),
    }

    fn step() -> impl Strategy<Value = Step> {
        // As many numbers below 64 as above, and some invalid ones.
        let number = || prop_oneof![0_u16..70, 60_u16..200, 1000_u16..1100];
        let numbers = move || proptest::collection::vec(number(), 0..6);
        prop_oneof![
            4 => number().prop_map(Step::Insert),
            3 => number().prop_map(Step::Remove),
            1 => Just(Step::Pop),
            1 => Just(Step::Clear),
            1 => numbers().prop_map(Step::Union),
            1 => numbers().prop_map(Step::Become),
        ]
    }

    fn take(step: &Step, set: &mut ZoneSet, oracle: &mut BTreeSet<u16>) {
        match step {
            Step::Insert(number) => {
                set.insert(ZoneId(*number));
                oracle.insert(*number);
            }
            Step::Remove(number) => {
                set.remove(ZoneId(*number));
                oracle.remove(number);
            }
            Step::Pop => assert_eq!(set.pop(), oracle.pop_first().map(ZoneId)),
            Step::Clear => {
                set.clear();
                oracle.clear();
            }
            Step::Union(others) => {
                set.union_with(&self::set(others));
                oracle.extend(others);
            }
            Step::Become(others) => {
                set.clone_from(&self::set(others));
                *oracle = others.iter().copied().collect();
            }
        }
        oracle.retain(|number| is_zone_number(*number));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(steps in proptest::collection::vec(step(), 0..60)) {
            let (mut set, mut oracle) = (ZoneSet::EMPTY, BTreeSet::new());
            for step in &steps {
                take(step, &mut set, &mut oracle);
                let numbers: Vec<u16> = oracle.iter().copied().collect();
                prop_assert_eq!(set.iter().map(|zone| zone.0).collect::<Vec<_>>(), numbers.clone());
                prop_assert_eq!(&set, &self::set(&numbers));
                prop_assert_eq!(set.is_empty(), numbers.is_empty());
                prop_assert!((0..1100).all(|number| set.contains(ZoneId(number)) == oracle.contains(&number)));
            }
        }
    }
}
