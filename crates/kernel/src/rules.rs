//! Whose a rule is, by what makes two rules one for a switch: its table, its priority and its match.
//!
//! ```text
//!   add, strict modify, strict delete ──> RuleKey ──> Rules: nobody's that is known, the asker's, or another's (refused)
//!                                                       └─> Sought: the switch is asked whether that one is still there
//! ```
//!
//! An add replaces the equal rule of whoever has it (OpenFlow 1.3.5, 6.4), and no cookie keeps it from that. So the kernel remembers whose the
//! last rules are, eight bytes each: [`REMEMBERED`] for each worker, and never more. Rules fall into buckets of `WAYS`; in a full one the oldest
//! rule of whoever has most there is forgotten. So an app that adds without end pushes out its own rules, and not those of an app that has few.
//! A rule that was forgotten can be replaced. What a switch had before this kernel it says when it has come up ([`crate::found`]); of that
//! nothing takes the place of what is newer, and in a full bucket only of who has much more there.
//!
//! What is remembered may be gone from the switch: a time-out needs no word. So who is refused has the switch asked, once a second for each
//! switch at most, and what it does not have any more is forgotten.
//!
//! In: rules, and what the switch answered. Out: an owner. Never sends anything; allocates its memory with the first rule, and for a question.

use crate::rule_key::RuleKey;
use crate::zones::MAX_ZONE;
use abi::ZoneId;

/// Rules whose owners are remembered.
pub(crate) const REMEMBERED: usize = BUCKETS * WAYS;

/// All of them are 256 KiB, which stay in a core's own cache. With four times as many each add waited for memory: 1,024 switches had half of the
/// throughput of one, and have four fifths with these.
const BUCKETS: usize = 1 << 12;

/// Rules of a bucket: as many as one line of the processor's cache holds.
const WAYS: usize = 8;

/// Bits of a place that hold the owner; 0 is nobody.
const OWNER_BITS: u32 = 6;
const OWNER_MASK: u64 = (1 << OWNER_BITS) - 1;
const _: () = assert!(MAX_ZONE as u64 <= OWNER_MASK, "every zone's number fits where the owner is kept");

/// A switch is asked about a rule as often as this.
const SEEK_INTERVAL_MS: u64 = 1_000;

impl RuleKey {
    fn bucket(self) -> usize {
        // Fewer than there are buckets.
        (self.0 >> OWNER_BITS) as usize % BUCKETS
    }

    fn owned_by(self, owner: ZoneId) -> u64 {
        self.0 & !OWNER_MASK | u64::from(owner.0) & OWNER_MASK
    }
}

/// The owners of the last rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// In each bucket the newest first; 0: free. Nothing until there is a rule.
    places: Vec<u64>,
}

impl Rules {
    fn bucket(&mut self, key: RuleKey) -> Option<&mut [u64]> {
        self.places.chunks_exact_mut(WAYS).nth(key.bucket())
    }

    /// Whose it is, as far as it is known.
    #[inline]
    pub fn owner(&self, key: RuleKey) -> Option<ZoneId> {
        let bucket = self.places.chunks_exact(WAYS).nth(key.bucket())?;
        let place =
            bucket.iter().find(|place| **place & !OWNER_MASK == key.0 & !OWNER_MASK && **place != 0)?;
        // Six bits.
        Some(ZoneId((place & OWNER_MASK) as u16))
    }

    /// It is this zone's from now on.
    pub fn note(&mut self, key: RuleKey, owner: ZoneId) {
        self.begin();
        let Some(bucket) = self.bucket(key) else { return };
        let same = bucket.iter().position(|place| *place & !OWNER_MASK == key.0 & !OWNER_MASK);
        let gives_way = same
            .or_else(|| bucket.iter().position(|place| *place == 0))
            .unwrap_or_else(|| oldest_of_most(bucket, owner));
        bucket[..=gives_way].rotate_right(1);
        bucket[0] = key.owned_by(owner);
    }

    /// A switch has had it as this zone's, since nobody knows when: whatever was noted is newer. In a full bucket it has the place of one whose
    /// owner has at least two more there than this zone, and otherwise none.
    pub fn note_found(&mut self, key: RuleKey, owner: ZoneId) {
        self.begin();
        let Some(bucket) = self.bucket(key) else { return };
        let is_it = |place: &u64| place & !OWNER_MASK == key.0 & !OWNER_MASK && *place != 0;
        if bucket.iter().any(is_it) {
            return;
        }
        let count = |zone: u64| bucket.iter().filter(|place| *place & OWNER_MASK == zone).count();
        let gives_way = bucket.iter().position(|place| *place == 0).or_else(|| {
            let oldest = oldest_of_most(bucket, owner);
            let most = count(bucket[oldest] & OWNER_MASK);
            (most > count(u64::from(owner.0)) + 1).then_some(oldest)
        });
        let Some(gives_way) = gives_way else { return };
        bucket[gives_way..].rotate_left(1);
        bucket[WAYS - 1] = key.owned_by(owner);
    }

    fn begin(&mut self) {
        if self.places.is_empty() {
            self.places = vec![0; REMEMBERED];
        }
    }

    /// It is gone, if it was this zone's.
    pub fn forget(&mut self, key: RuleKey, owner: ZoneId) {
        let its = key.owned_by(owner);
        if let Some(place) =
            self.bucket(key).and_then(|bucket| bucket.iter_mut().find(|place| **place == its))
        {
            *place = 0;
        }
    }
}

/// The place in a full bucket of the oldest rule of whoever has most in it with the one that `adder` adds, so that of two who have as many
/// the adder gives way.
fn oldest_of_most(bucket: &[u64], adder: ZoneId) -> usize {
    // Where all are one's, as with a single app that adds much, there is nothing to count.
    let is_all_of_one = bucket.windows(2).all(|pair| (pair[0] ^ pair[1]) & OWNER_MASK == 0);
    if is_all_of_one {
        return bucket.len().saturating_sub(1);
    }
    let count = |place: &u64| {
        let there = bucket.iter().filter(|other| *other & OWNER_MASK == place & OWNER_MASK).count();
        there + usize::from(place & OWNER_MASK == u64::from(adder.0))
    };
    let most = bucket.iter().map(count).max().unwrap_or_default();
    bucket.iter().rposition(|place| count(place) == most).unwrap_or_default()
}

/// A rule of which a switch is asked whether it has it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its table.
    pub table_id: u8,
    /// Whose it was.
    pub owner: ZoneId,
    /// Its match as canonical bytes.
    pub matching: Vec<u8>,
    key: RuleKey,
}

/// What a switch is asked about its rules: one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sought {
    wanted: Option<Wanted>,
    is_there: bool,
    asked_ms: Option<u64>,
}

impl Sought {
    /// Whether it is time to ask about this rule; if so, it is taken to be asked now. As long as a question is open there is no other, since the
    /// answer does not say to which of them it belongs; that every question ends, by an answer or by [`Self::on_no_answer`], is for whoever asks.
    pub fn seek(&mut self, key: RuleKey, table_id: u8, owner: ZoneId, matching: &[u8], now_ms: u64) -> bool {
        let is_soon = self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) < SEEK_INTERVAL_MS);
        if is_soon || self.wanted.is_some() {
            return false;
        }
        let wanted = Wanted { table_id, owner, matching: matching.to_vec(), key };
        *self = Sought { wanted: Some(wanted), is_there: false, asked_ms: Some(now_ms) };
        true
    }

    /// What is asked about.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// The switch has this rule, or has just been given it.
    pub fn on_rule(&mut self, key: RuleKey) {
        self.is_there |= self.wanted.as_ref().is_some_and(|wanted| wanted.key == key);
    }

    /// The answer is whole: the rule that is not there any more, and whose it was.
    pub fn on_end(&mut self) -> Option<(RuleKey, ZoneId)> {
        let wanted = self.wanted.take()?;
        (!self.is_there).then_some((wanted.key, wanted.owner))
    }

    /// There is no answer this time.
    pub fn on_no_answer(&mut self) {
        self.wanted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule_key::mixed;

    const ONE: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(63);

    fn key(number: u64) -> RuleKey {
        RuleKey(mixed(number))
    }

    #[test]
    fn the_last_to_add_a_rule_has_it_until_it_is_gone() {
        let mut rules = Rules::default();
        assert_eq!(rules.owner(key(1)), None);
        rules.note(key(1), ONE);
        assert_eq!((rules.owner(key(1)), rules.owner(key(2))), (Some(ONE), None));
        rules.forget(key(1), OTHER);
        assert_eq!(rules.owner(key(1)), Some(ONE));
        rules.note(key(1), OTHER);
        assert_eq!(rules.owner(key(1)), Some(OTHER));
        rules.forget(key(1), OTHER);
        assert_eq!(rules.owner(key(1)), None);
    }

    #[test]
    fn who_adds_without_end_pushes_out_its_own_rules_only() {
        let mut rules = Rules::default();
        (0..1_000).for_each(|number| rules.note(key(number), ONE));
        (1_000..1_000_000).for_each(|number| rules.note(key(number), OTHER));
        assert!((0..1_000).all(|number| rules.owner(key(number)) == Some(ONE)));
        let left = (1_000..1_000_000).filter(|number| rules.owner(key(*number)).is_some()).count();
        assert!((REMEMBERED * 9 / 10..=REMEMBERED).contains(&left), "{left}");
        assert_eq!(rules.places.len(), REMEMBERED);
    }

    proptest::proptest! {
        /// Of a few rules of one bucket, by two who add and three of whom a switch says that it has their rules.
        #[test]
        fn what_a_switch_has_said_never_takes_the_place_of_what_is_newer(
            added in proptest::collection::vec((0..12_u64, 1..3_u16), 0..20),
            found in proptest::collection::vec((0..40_u64, 1..4_u16), 0..60),
        ) {
            let same_bucket = |number: u64| RuleKey(mixed(number) & !(((BUCKETS as u64) - 1) << OWNER_BITS));
            let mut rules = Rules::default();
            added.iter().for_each(|(number, zone)| rules.note(same_bucket(*number), ZoneId(*zone)));
            let before: Vec<_> = (0..12).map(|number| rules.owner(same_bucket(number))).collect();
            found.iter().for_each(|(number, zone)| rules.note_found(same_bucket(*number), ZoneId(*zone)));
            let owned = |rules: &Rules, zone: u16| {
                rules.places.iter().filter(|place| *place & OWNER_MASK == u64::from(zone)).count()
            };
            for (number, owner) in before.iter().enumerate().filter_map(|(number, it)| Some((number, (*it)?))) {
                let now = rules.owner(same_bucket(number as u64));
                // Either it is as it was, or its owner had so many that one of them gave way.
                proptest::prop_assert!(now == Some(owner) || owned(&rules, owner.0) >= 2, "{number} {now:?}");
            }
            proptest::prop_assert!((1..4).map(|zone| owned(&rules, zone)).sum::<usize>() <= WAYS);
        }
    }

    #[test]
    fn what_switches_say_without_end_leaves_those_who_have_few_theirs() {
        let mut rules = Rules::default();
        (0..1_000).for_each(|number| rules.note(key(number), ONE));
        (1_000..1_000_000).for_each(|number| rules.note_found(key(number), OTHER));
        assert!((0..1_000).all(|number| rules.owner(key(number)) == Some(ONE)));
        (1_000_000..1_001_000).for_each(|number| rules.note_found(key(number), ZoneId(7)));
        let found = (1_000_000..1_001_000).filter(|number| rules.owner(key(*number)).is_some()).count();
        assert!(found > 990, "{found}: those of whom there are few have room beside one who has all");
        assert_eq!(rules.places.len(), REMEMBERED);
    }

    #[test]
    fn a_switch_is_asked_about_one_rule_at_a_time_and_seldom() {
        let mut sought = Sought::default();
        let seek = |sought: &mut Sought, number, now_ms| sought.seek(key(number), 0, ONE, &[], now_ms);
        assert!(seek(&mut sought, 1, 0) && !seek(&mut sought, 2, 5_000));
        sought.on_rule(key(2));
        assert_eq!(sought.on_end(), Some((key(1), ONE)));
        assert!(seek(&mut sought, 2, 5_000) && !seek(&mut sought, 1, 5_900));
        sought.on_rule(key(2));
        assert_eq!(sought.on_end(), None);
        assert!(!seek(&mut sought, 1, 5_999) && seek(&mut sought, 1, 6_000));
        assert!(!seek(&mut sought, 2, 600_000), "an answer that is late would be taken for that of another");
        sought.on_no_answer();
        assert!(seek(&mut sought, 2, 600_000));
    }
}
