//! A set of zones: a bit for each zone number, without memory of its own.
//!
//! ```text
//!   first:  | 63 … 2 1 | some beyond? |   zones 1 to 63; bit 0 says whether the rest is to be looked at
//!   beyond: | 127 … 64 | 191 … 128 | …    zones 64 to MAX_ZONE, all zeros as long as bit 0 is clear
//! ```
//!
//! The set is on the way of each packet-in, and most nodes have few zones. So all operations there look at the first word only, as long as no zone
//! beyond 63 is in the set, and no operation allocates. The set is 128 bytes long and therefore not `Copy`: a copy on the packet path would cost more
//! than all the rest that is done with it. `clone_from` copies the first word only, where that is all there is.

use abi::ZoneId;

/// The highest zone number. Number 0 is the kernel, which is in no set. A node that is asked for more zones refuses to start them.
pub const MAX_ZONE: u16 = 1023;

/// Words beyond the first.
const BEYOND: usize = MAX_ZONE as usize / 64;

/// The bit of the first word that says that `beyond` is not all zeros.
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
    /// No zone.
    pub const EMPTY: ZoneSet = ZoneSet { first: 0, beyond: [0; BEYOND] };

    /// This zone alone; none if no zone can have its number.
    pub fn only(zone: ZoneId) -> ZoneSet {
        let mut set = ZoneSet::EMPTY;
        set.insert(zone);
        set
    }

    /// Every zone that there can be.
    pub fn all() -> ZoneSet {
        ZoneSet { first: u64::MAX, beyond: [u64::MAX; BEYOND] }
    }

    /// Whether no zone is in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == 0
    }

    /// Whether this zone is in it.
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

    /// One zone more. Nothing happens if no zone can have its number.
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

    /// One zone less.
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

    /// The zones of the other set too.
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

    /// Takes the zone with the lowest number out.
    #[inline]
    pub fn pop(&mut self) -> Option<ZoneId> {
        let zone = self.iter().next()?;
        self.remove(zone);
        Some(zone)
    }

    /// Takes those out that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(ZoneId) -> bool) {
        let before = self.clone();
        before.iter().filter(|zone| !keep(*zone)).for_each(|zone| self.remove(zone));
    }

    /// Takes all zones out.
    #[inline]
    pub fn clear(&mut self) {
        self.clone_from(&ZoneSet::EMPTY);
    }

    /// Calls this with each zone, the lowest number first. On the packet path it takes fewer instructions than [`Self::iter`].
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

/// Where a zone beyond the first word has its bit: the index of the word, and the bit.
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
    /// What is left of the word at `at`; word 0 is the first.
    word: u64,
    at: usize,
    set: &'s ZoneSet,
}

impl ZoneSet {
    /// The next word that has a zone, from this index of `beyond` on, and its number.
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
        // As many below 64 as beyond, and some that no zone can have.
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
