//! What makes two rules one for a switch, as a number: its table, its priority and its match.
//!
//! In: a rule's switch, table, priority and match. Out: a number. Never knows whose a rule is.

use flow::canonical::{UsualFields, entry_has_prerequisites, read_match_into};
use flow::{DatapathId, Field, MacAddr, Match, MatchEntry};

/// What makes two rules of two switches one, as a number. Two that differ have the same one in 2^58, and which two nobody can tell who does not
/// know the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleKey(pub(crate) u64);

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
pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::write_match;
    use flow::text::parse_match;

    const SEED: u64 = 0x243f_6a88_85a3_08d3;

    fn key_in(datapath: u64, table_id: u8, priority: u16, matching: &str) -> RuleKey {
        let mut bytes = Vec::new();
        write_match(&parse_match(matching).unwrap(), &mut bytes);
        RuleKeys::new(SEED).of(DatapathId(datapath), table_id, priority, &bytes).unwrap()
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
}
