//! The owners of one switch's rules: a table by the key of a rule, exact, with eight bytes for each rule.
//!
//! ```text
//!   add, strict modify ──> note ──┐
//!   what the switch has ─> find ──┼──> places: 47 bits of the key, age, sure?, seen?, owner ──> owner
//!   removed, deleted ────> forget ┘
//! ```
//!
//! It is an open-addressing table with linear probing. A key is a random number already, so its upper bits are the
//! place where the search begins. The table doubles when three quarters of its places are used; no other step
//! allocates. It never loses a rule: [`crate::record`] decides how many rules there may be before it adds one.
//!
//! A sweep finds the rules that are gone: [`Rules::begin_sweep`] marks all rules as unseen, [`Rules::note`] and
//! [`Rules::find`] mark a rule as seen, and [`Rules::end_sweep`] removes the rules that are still unseen.
//!
//! In: rules that were sent, found or removed. Out: an owner. It knows no switch, no match and no clock.

use crate::rule_key::RuleKey;
use crate::zone_set::{MAX_ZONE, is_zone_number};
use abi::ZoneId;
use zone::prefetch::prefetch;

/// Bits of a place that hold the owner; a place of zeros is free.
const OWNER: u64 = 0x7ff;
const FOREIGN: u64 = MAX_ZONE as u64 + 1;
const _: () = assert!(FOREIGN <= OWNER, "every owner fits where it is kept");

/// Whether the sweep has seen the rule: then it equals [`Rules::seen`].
const SEEN: u64 = 1 << 11;

/// Whether the rule stays in the switch until its end is reported.
const SURE: u64 = 1 << 12;

/// The time when the rule was recorded, in units of [`AGE_MS`]. It wraps after two minutes: then an old rule counts as
/// a young one, which does no harm.
const AGE_SHIFT: u32 = 13;
const AGE: u64 = 0xf;
const AGE_MS: u64 = 1 << 13;

/// The other bits are the key. With a million rules, a new rule has the same 47 bits as one of them with a probability
/// of 2^-27. Without the seed, an app cannot find two such rules.
const KEY: u64 = !(OWNER | SEEN | SURE | AGE << AGE_SHIFT);

/// Places of the smallest table.
const PLACES_MIN: usize = 16;

/// Places of large tables: 64 KiB. With more, a search waits for memory.
const LARGE_PLACES: usize = 1 << 13;

/// The cookie of the kernel's own rules. Its upper bits are no zone's number, as in most rules of other controllers;
/// the rest spells "burnet".
pub const OWN_COOKIE: u64 = ZoneId::KERNEL.stamp(0x6275_726e_6574);

/// The owner of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A zone.
    Zone(ZoneId),
    /// No zone of this node.
    Foreign,
}

impl Owner {
    /// The owner by the cookie of a rule in a switch; `None`: it is the kernel's own.
    pub fn of_cookie(cookie: u64) -> Option<Owner> {
        match ZoneId::owner_of(cookie) {
            _ if cookie == OWN_COOKIE => None,
            zone if is_zone_number(zone.0) => Some(Owner::Zone(zone)),
            _ => Some(Owner::Foreign),
        }
    }

    fn to_bits(self) -> u64 {
        match self {
            Owner::Zone(zone) => u64::from(zone.0) & OWNER,
            Owner::Foreign => FOREIGN,
        }
    }

    fn from_bits(place: u64) -> Owner {
        match place & OWNER {
            FOREIGN => Owner::Foreign,
            // Eleven bits.
            number => Owner::Zone(ZoneId(number as u16)),
        }
    }
}

/// The age of a rule, as precisely as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(u64);

impl Age {
    /// Sent now.
    pub fn at(now_ms: u64) -> Age {
        Age((now_ms / AGE_MS) & AGE)
    }

    /// Sent so long ago that every message that arrives now was sent after it.
    pub fn before(now_ms: u64) -> Age {
        Age((now_ms / AGE_MS).wrapping_sub(2) & AGE)
    }

    /// Whether a message that arrives now may be older than the rule.
    fn is_young(self, now_ms: u64) -> bool {
        (now_ms / AGE_MS).wrapping_sub(self.0) & AGE < 2
    }
}

/// The record of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its owner.
    pub owner: Owner,
    /// Whether the switch certainly has it: it does not time out, and its removal is always reported.
    pub is_sure: bool,
}

/// The place of a rule in the table, or the free place for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    at: usize,
    /// The table's `moves` when the place was found.
    moves: u64,
    /// Whether the rule is recorded.
    pub is_known: bool,
    /// Whether the switch certainly has it.
    pub is_sure: bool,
}

/// The owners of one switch's rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The places: a power of two, or none until there is a rule.
    places: Vec<u64>,
    count: usize,
    /// How often a rule was added, removed or moved. A place is valid as long as this number is the same.
    moves: u64,
    /// 0 or [`SEEN`]: the value of that bit in rules that were seen since the last sweep began.
    seen: u64,
}

impl Rules {
    /// The number of rules.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the table is so large that a search waits for memory, if this many switches have such a table. Each switch's turn
    /// brings its table into the cache again.
    #[inline]
    pub fn is_large(&self, switches: usize) -> bool {
        self.places.len().saturating_mul(switches) >= LARGE_PLACES
    }

    /// Fetches the first entry that the search for a rule reads into the processor's cache, without waiting for it.
    #[inline]
    pub fn fetch(&self, key: RuleKey) {
        if let Some(place) = self.places.get(self.home(key.0)) {
            prefetch(place);
        }
    }

    /// The record of a rule.
    #[inline]
    pub fn known(&self, key: RuleKey) -> Option<Known> {
        let place = self.places.get(self.look(key).ok()?)?;
        Some(Known { owner: Owner::from_bits(*place), is_sure: *place & SURE != 0 })
    }

    /// This owner has the rule from now on.
    #[inline]
    pub fn note(&mut self, key: RuleKey, owner: Owner, is_sure: bool, age: Age) {
        if (self.count + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        let place = self.word(key, owner, is_sure, age);
        let at = self.look(key).unwrap_or_else(|free| {
            self.count += 1;
            self.moves += 1;
            free
        });
        self.places[at] = place;
    }

    /// The place of this owner's rule, or a free place for it.
    #[inline(always)]
    pub fn slot(&self, key: RuleKey, owner: Owner) -> Option<Slot> {
        let moves = self.moves;
        match self.look(key) {
            Ok(at) => {
                let place = *self.places.get(at)?;
                let is_its = place & OWNER == owner.to_bits();
                is_its.then_some(Slot { at, moves, is_known: true, is_sure: place & SURE != 0 })
            }
            Err(at) if (self.count + 1) * 4 <= self.places.len() * 3 => {
                Some(Slot { at, moves, is_known: false, is_sure: false })
            }
            Err(_) => None,
        }
    }

    /// This owner has the rule from now on, like [`Self::note`]. Returns `false` and changes nothing if the place may
    /// be outdated.
    #[inline]
    pub fn note_at(&mut self, slot: Slot, key: RuleKey, owner: Owner, is_sure: bool, age: Age) -> bool {
        if slot.moves != self.moves {
            return false;
        }
        let word = self.word(key, owner, is_sure, age);
        let Some(place) = self.places.get_mut(slot.at) else { return false };
        // A line of the cache that was not written need not go back to memory.
        if *place != word {
            *place = word;
        }
        if !slot.is_known {
            self.count += 1;
            self.moves += 1;
        }
        true
    }

    #[inline]
    fn word(&self, key: RuleKey, owner: Owner, is_sure: bool, age: Age) -> u64 {
        let is_sure = if is_sure { SURE } else { 0 };
        key.0 & KEY | age.0 << AGE_SHIFT | is_sure | self.seen | owner.to_bits()
    }

    /// The switch reports the rule. Returns whether it was recorded: the record is newer than the report, and stays
    /// unchanged.
    pub fn find(&mut self, key: RuleKey) -> bool {
        let Ok(at) = self.look(key) else { return false };
        self.places[at] = self.places[at] & !SEEN | self.seen;
        true
    }

    /// Removes the rule, if this owner has it.
    pub fn forget(&mut self, key: RuleKey, owner: Owner) {
        if let Ok(at) = self.look(key)
            && Owner::from_bits(self.places[at]) == owner
        {
            self.remove(at);
        }
    }

    /// The switch reports that it removed this owner's rule. A rule that was sent a moment ago may be newer than the
    /// report: it stays, but is uncertain.
    pub fn on_removed(&mut self, key: RuleKey, owner: Owner, now_ms: u64) {
        let Ok(at) = self.look(key) else { return };
        let place = self.places[at];
        if Owner::from_bits(place) != owner {
            return;
        }
        if Age(place >> AGE_SHIFT & AGE).is_young(now_ms) {
            self.places[at] = place & !SURE;
        } else {
            self.remove(at);
        }
    }

    /// Starts to track which rules are seen.
    pub fn begin_sweep(&mut self) {
        self.seen ^= SEEN;
    }

    /// Removes all rules that were not seen since the sweep began, and frees their memory.
    pub fn end_sweep(&mut self) {
        let seen = self.seen;
        let is_kept = |place: &u64| *place != 0 && *place & SEEN == seen;
        let kept = self.places.iter().copied().filter(is_kept).collect::<Vec<_>>();
        self.refill(room_for(kept.len()), &kept);
    }

    #[cold]
    fn grow(&mut self) {
        let all: Vec<u64> = self.places.iter().copied().filter(|place| *place != 0).collect();
        self.refill((self.places.len() * 2).max(PLACES_MIN), &all);
    }

    fn refill(&mut self, places: usize, rules: &[u64]) {
        self.places = vec![0; places];
        self.count = rules.len();
        self.moves += 1;
        for rule in rules {
            if let Err(free) = self.look(RuleKey(*rule)) {
                self.places[free] = *rule;
            }
        }
    }

    /// The place of the rule, or the free place for it. Without any places it is 0.
    #[inline]
    fn look(&self, key: RuleKey) -> Result<usize, usize> {
        if self.places.is_empty() {
            return Err(0);
        }
        let wanted = key.0 & KEY;
        let mut at = self.home(wanted);
        // The loop ends, because a quarter of the places is free.
        loop {
            match self.places[at] {
                0 => return Err(at),
                place if place & KEY == wanted => return Ok(at),
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    /// The place where the search begins: the upper bits of the key, as many as a place number has.
    #[inline]
    fn home(&self, place: u64) -> usize {
        (place >> (64 - self.places.len().trailing_zeros())) as usize
    }

    /// Frees a place. Rules behind it that a search would no longer find move up.
    fn remove(&mut self, mut hole: usize) {
        let last = self.places.len() - 1;
        let mut at = (hole + 1) & last;
        while self.places[at] != 0 {
            let place = self.places[at];
            let from_home = at.wrapping_sub(self.home(place)) & last;
            if from_home >= at.wrapping_sub(hole) & last {
                self.places[hole] = place;
                hole = at;
            }
            at = (at + 1) & last;
        }
        self.places[hole] = 0;
        self.count -= 1;
        self.moves += 1;
    }
}

/// The number of places for this many rules: at most half of them are used. It is 0 for no rules.
fn room_for(rules: usize) -> usize {
    if rules == 0 { 0 } else { (rules * 2).next_power_of_two().max(PLACES_MIN) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule_key::mixed;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const ONE: Owner = Owner::Zone(ZoneId(1));
    const OTHER: Owner = Owner::Zone(ZoneId(1023));
    const NOW: Age = Age(3);

    fn key(number: u64) -> RuleKey {
        RuleKey(mixed(number))
    }

    fn owner(rules: &Rules, number: u64) -> Option<Owner> {
        rules.known(key(number)).map(|known| known.owner)
    }

    #[test]
    fn the_last_to_add_a_rule_has_it_until_it_is_gone() {
        let mut rules = Rules::default();
        rules.forget(key(1), ONE);
        assert_eq!((owner(&rules, 1), rules.find(key(1))), (None, false));
        rules.note(key(1), ONE, false, NOW);
        assert_eq!((owner(&rules, 1), owner(&rules, 2)), (Some(ONE), None));
        rules.forget(key(1), OTHER);
        assert_eq!(owner(&rules, 1), Some(ONE));
        rules.note(key(1), OTHER, true, NOW);
        assert_eq!(rules.known(key(1)), Some(Known { owner: OTHER, is_sure: true }));
        rules.forget(key(1), OTHER);
        assert_eq!((owner(&rules, 1), rules.len()), (None, 0));
    }

    #[test]
    fn a_cookie_that_names_no_zone_is_of_somebody_elses_rule() {
        assert_eq!(Owner::of_cookie(ZoneId(1023).stamp(OWN_COOKIE)), Some(OTHER));
        assert_eq!(Owner::of_cookie(OWN_COOKIE), None);
        for number in [0, 1024, 0x0a00, u16::MAX] {
            assert_eq!(Owner::of_cookie(ZoneId(number).stamp(7)), Some(Owner::Foreign), "{number}");
        }
        let mut rules = Rules::default();
        rules.note(key(1), Owner::Foreign, false, NOW);
        assert_eq!(owner(&rules, 1), Some(Owner::Foreign));
    }

    #[test]
    fn who_adds_without_end_pushes_nothing_out() {
        let mut rules = Rules::default();
        (0..1_000).for_each(|number| rules.note(key(number), ONE, false, NOW));
        (1_000..300_000).for_each(|number| rules.note(key(number), OTHER, false, NOW));
        assert!((0..1_000).all(|number| owner(&rules, number) == Some(ONE)));
        assert!((1_000..300_000).all(|number| owner(&rules, number) == Some(OTHER)));
        assert_eq!((rules.len(), rules.places.len()), (300_000, 1 << 19));
    }

    #[test]
    fn a_sweep_forgets_what_was_not_seen_and_gives_its_memory_back() {
        let mut rules = Rules::default();
        (0..1_000).for_each(|number| rules.note(key(number), ONE, false, NOW));
        for _ in 0..2 {
            rules.begin_sweep();
            assert!((500..510).all(|number| rules.find(key(number))));
            rules.note(key(2_000), OTHER, false, NOW);
            rules.end_sweep();
            assert!((500..510).all(|number| owner(&rules, number) == Some(ONE)));
            assert_eq!((rules.len(), rules.places.len(), owner(&rules, 2_000)), (11, 32, Some(OTHER)));
        }
        rules.begin_sweep();
        rules.end_sweep();
        assert_eq!((rules.len(), rules.places.capacity()), (0, 0));
    }

    #[test]
    fn a_rule_that_was_sent_again_outlives_the_word_that_it_was_gone() {
        for now_ms in (0..600_000).step_by(1_000) {
            let mut rules = Rules::default();
            rules.note(key(1), ONE, true, Age::at(now_ms));
            rules.on_removed(key(1), OTHER, now_ms + 60_000);
            rules.on_removed(key(1), ONE, now_ms + AGE_MS - 1);
            assert_eq!(rules.known(key(1)), Some(Known { owner: ONE, is_sure: false }), "{now_ms}");
            rules.on_removed(key(1), ONE, now_ms + 2 * AGE_MS);
            assert_eq!(rules.known(key(1)), None, "{now_ms}");
            rules.note(key(1), ONE, true, Age::before(now_ms));
            rules.on_removed(key(1), ONE, now_ms);
            assert_eq!(rules.known(key(1)), None, "{now_ms}: it was there before");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Note(u64, u16, bool),
        Forget(u64, u16),
        Find(u64),
        Sweep(Vec<u64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let number = 0..60_u64;
        prop_oneof![
            6 => (number.clone(), 1..4_u16, any::<bool>()).prop_map(|(number, zone, sure)| Step::Note(number, zone, sure)),
            4 => (number.clone(), 1..4_u16).prop_map(|(number, zone)| Step::Forget(number, zone)),
            1 => number.clone().prop_map(Step::Find),
            1 => proptest::collection::vec(number, 0..60).prop_map(Step::Sweep),
        ]
    }

    proptest! {
        /// Clustered keys: their upper bits take few values, so that most searches run into each other and over the
        /// table's end.
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec(step(), 0..200)) {
            let key = |number: u64| RuleKey(u64::MAX << 61 & mixed(number) | (number + 1) << 20 | 0x1fff);
            let (mut rules, mut map) = (Rules::default(), HashMap::<u64, (u16, bool)>::new());
            for step in steps {
                match step {
                    Step::Note(number, zone, sure) => {
                        rules.note(key(number), Owner::Zone(ZoneId(zone)), sure, Age(number & AGE));
                        map.insert(number, (zone, sure));
                    }
                    Step::Forget(number, zone) => {
                        rules.forget(key(number), Owner::Zone(ZoneId(zone)));
                        if map.get(&number).is_some_and(|(owner, _)| *owner == zone) {
                            map.remove(&number);
                        }
                    }
                    Step::Find(number) => prop_assert_eq!(rules.find(key(number)), map.contains_key(&number)),
                    Step::Sweep(seen) => {
                        rules.begin_sweep();
                        seen.iter().for_each(|number| {
                            rules.find(key(*number));
                        });
                        rules.end_sweep();
                        map.retain(|number, _| seen.contains(number));
                    }
                }
                prop_assert_eq!(rules.len(), map.len());
                for number in 0..60 {
                    let known = map.get(&number).map(|(zone, is_sure)| {
                        Known { owner: Owner::Zone(ZoneId(*zone)), is_sure: *is_sure }
                    });
                    prop_assert_eq!(rules.known(key(number)), known);
                }
            }
        }
    }
}
