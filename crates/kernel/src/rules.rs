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

use crate::zones::MAX_ZONE;
use abi::ZoneId;
use flow::canonical::{UsualFields, entry_has_prerequisites, read_match_into};
use flow::{DatapathId, Field, MacAddr, Match, MatchEntry};

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

/// What makes two rules of two switches one, as a number. Two that differ have the same one in 2^58, and which two nobody can tell who does not
/// know the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleKey(u64);

/// What makes keys of rules.
#[derive(Clone, Debug)]
pub(crate) struct RuleKeys {
    /// Drawn by whoever made the kernel, and known to no app: each step of a key can be undone, so an app could otherwise work out a
    /// rule within its bounds that has the key of one that another is going to add.
    seed: u64,
    /// How the numbers of port, destination, source and EtherType begin.
    begun: [u64; 4],
    /// Memory for a match.
    scratch: Match,
}

impl RuleKeys {
    pub fn new(seed: u64) -> RuleKeys {
        let begun = [Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType];
        RuleKeys { seed, begun: begun.map(|field| begun_with(seed, field)), scratch: Match::any() }
    }

    /// Of a rule whose match was found readable. Fields may stand in any order; what says nothing, by its mask or since 1.0 would pass it
    /// over, counts for nothing.
    pub fn of(
        &mut self,
        datapath: DatapathId,
        table_id: u8,
        priority: u16,
        matching: &[u8],
    ) -> Option<RuleKey> {
        let place = u64::from(table_id) << 16 | u64::from(priority);
        // The seed turned, so that a switch is not mixed as a field is.
        let begun = mixed(mixed(datapath.0 ^ self.seed.rotate_left(32)) ^ place);
        // A sum, so that the order does not matter.
        let sum = match UsualFields::read(matching) {
            Some(fields) => sum_of_usual(self.begun, &fields),
            None => sum_of_all(self.seed, matching, &mut self.scratch)?,
        };
        Some(RuleKey(mixed(begun.wrapping_add(sum))))
    }
}

impl RuleKey {
    fn bucket(self) -> usize {
        // Fewer than there are buckets.
        (self.0 >> OWNER_BITS) as usize % BUCKETS
    }

    fn owned_by(self, owner: ZoneId) -> u64 {
        self.0 & !OWNER_MASK | u64::from(owner.0) & OWNER_MASK
    }
}

/// Of what learning switches add; it gives what [`sum_of_all`] does.
#[inline]
fn sum_of_usual(begun: [u64; 4], fields: &UsualFields) -> u64 {
    let UsualFields { in_port, eth_dst, eth_src, eth_type } = fields;
    let values = [
        in_port.map(|port| port.0.into()),
        eth_dst.map(MacAddr::to_u64),
        eth_src.map(MacAddr::to_u64),
        eth_type.map(u64::from),
    ];
    let numbers =
        begun.iter().zip(values).map(|(begun, value)| value.map_or(0, |value| mixed(begun ^ value)));
    numbers.fold(0, u64::wrapping_add)
}

fn sum_of_all(seed: u64, matching: &[u8], scratch: &mut Match) -> Option<u64> {
    read_match_into(matching, scratch).ok()?;
    let rule = &*scratch;
    let fields = rule.entries().iter().filter(|entry| entry_has_prerequisites(rule, entry));
    Some(fields.fold(0, |sum, entry| sum.wrapping_add(number_of(seed, entry))))
}

/// How the number of a field begins. Each field's is seeded, since fields are added up: what all had in common would cancel out.
fn begun_with(seed: u64, field: Field) -> u64 {
    mixed(seed ^ (u64::from(field.number()) + 1))
}

/// What a field without a mask says, as a number.
fn number_of_whole(seed: u64, field: Field, value: u128) -> u64 {
    let number = mixed(begun_with(seed, field) ^ value as u64);
    if field.bytes() > 8 { mixed(number ^ (value >> 64) as u64) } else { number }
}

/// What a field says, as a number; 0 if it says nothing.
fn number_of(seed: u64, entry: &MatchEntry) -> u64 {
    match entry {
        MatchEntry::Field { mask: Some(0), .. } => 0,
        MatchEntry::Field { field, value, mask } => match mask.filter(|mask| *mask != field.full_mask()) {
            None => number_of_whole(seed, *field, *value),
            // Both halves of each.
            Some(mask) => [*value, mask].iter().fold(begun_with(seed, *field), |number, it| {
                mixed(mixed(number ^ *it as u64) ^ (*it >> 64) as u64)
            }),
        },
        MatchEntry::Unknown { header, body } => {
            // Above the numbers of fields.
            let begun = mixed(seed ^ (1 << 32 | u64::from(*header)));
            body.iter().fold(begun, |number, byte| mixed(number ^ u64::from(*byte)))
        }
    }
}

/// Spreads a number over all bits (the last step of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
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
    use flow::canonical::write_match;
    use flow::text::parse_match;

    const ONE: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(63);
    const SEED: u64 = 0x243f_6a88_85a3_08d3;

    fn key_in(datapath: u64, table_id: u8, priority: u16, matching: &str) -> RuleKey {
        let mut bytes = Vec::new();
        write_match(&parse_match(matching).unwrap(), &mut bytes);
        RuleKeys::new(SEED).of(DatapathId(datapath), table_id, priority, &bytes).unwrap()
    }

    fn key(number: u64) -> RuleKey {
        RuleKey(mixed(number))
    }

    #[test]
    fn a_rule_is_another_by_switch_table_priority_and_match() {
        let rule = key_in(1, 0, 5, "ip,nw_dst=10.0.0.1");
        for (datapath, table_id, priority, matching) in [
            (2, 0, 5, "ip,nw_dst=10.0.0.1"),
            (1, 1, 5, "ip,nw_dst=10.0.0.1"),
            (1, 0, 6, "ip,nw_dst=10.0.0.1"),
            (1, 0, 5, "ip,nw_dst=10.0.0.2"),
            (1, 0, 5, "ip,nw_dst=10.0.0.0/31"),
            (1, 0, 5, "ip,nw_src=10.0.0.1"),
            (1, 0, 5, "ip"),
        ] {
            assert_ne!(key_in(datapath, table_id, priority, matching), rule, "{matching}");
        }
    }

    #[test]
    fn a_rule_is_the_same_however_its_match_is_written() {
        let check = |one: &Match, other: &Match| {
            let key = |rule: &Match| {
                let mut bytes = Vec::new();
                write_match(rule, &mut bytes);
                RuleKeys::new(SEED).of(DatapathId(1), 0, 5, &bytes).unwrap()
            };
            assert_eq!(key(one), key(other), "{one:?} {other:?}");
        };
        use flow::Field::{EthDst, EthSrc, EthType, InPort, Ipv4Dst, Metadata, TcpDst};
        let in_place = Match::any().with(InPort, 3u32).with(EthSrc, 7u64).with(EthDst, 9u64);
        check(&in_place, &Match::any().with(EthDst, 9u64).with(InPort, 3u32).with(EthSrc, 7u64));
        check(&in_place, &in_place.clone().with_masked(Metadata, 0u64, 0u64));
        check(&in_place, &in_place.clone().with(TcpDst, 80u16));
        let plain = Match::any().with(EthType, 0x800u16).with(Ipv4Dst, 10u32);
        check(&plain, &Match::any().with(Ipv4Dst, 10u32).with(EthType, 0x800u16));
        check(&plain, &Match::any().with(EthType, 0x800u16).with_masked(Ipv4Dst, 10u32, u32::MAX));
        check(&plain, &plain.clone().with_masked(Metadata, 0u64, 0u64));
        check(&plain, &plain.clone().with_masked(EthDst, 0u64, 0u64));
        check(&plain, &plain.clone().with(TcpDst, 80u16));
    }

    /// Undoes [`mixed`].
    fn unmixed(number: u64) -> u64 {
        let unshifted = |number: u64, by: u32| (1..64 / by + 1).fold(number, |it, _| number ^ it >> by);
        let number = unshifted(number, 31).wrapping_mul(0x3196_42b2_d24d_8ec3);
        let number = unshifted(number, 27).wrapping_mul(0x96de_1b17_3f11_9089);
        unshifted(number, 30).wrapping_sub(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn who_does_not_know_the_seed_cannot_work_out_a_rule_with_the_key_of_another() {
        use flow::Field::{EthDst, Metadata};
        let key = |seed: u64, rule: &Match| {
            let mut bytes = Vec::new();
            write_match(rule, &mut bytes);
            RuleKeys::new(seed).of(DatapathId(1), 0, 5, &bytes).unwrap()
        };
        assert_eq!((unmixed(mixed(SEED)), mixed(unmixed(SEED))), (SEED, SEED));
        let forged_with = |seed: u64| {
            let metadata = unmixed(number_of_whole(seed, EthDst, 9)) ^ begun_with(seed, Metadata);
            Match::any().with(Metadata, metadata)
        };
        let another = Match::any().with(EthDst, 9u64);
        assert_eq!(key(SEED, &forged_with(SEED)), key(SEED, &another), "who knows it can");
        (0..1_000).for_each(|guessed| {
            assert_ne!(key(SEED, &forged_with(guessed)), key(SEED, &another), "{guessed}");
        });
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
