//! The key of a rule: a number from its table, its priority and its match. Rules that are equal for a switch have the
//! same key.
//!
//! A switch compares the meaning of a rule, not its encoding. So the order of fields does not matter, a mask of zeros
//! means no field, and a mask of ones means no mask. Nicira's names of fields count as OpenFlow's. OpenFlow 1.0 has
//! only one table. There, a rule that names all twelve fields has the highest priority (1.0.0, 3.4). A priority tag
//! alone is a tag with that priority. There is only one encoding for "no tag".
//!
//! In: a rule's switch, the version of its session, table, priority and match. Out: a number, or the effective table
//! and priority. It never knows the owner of a rule.

use abi::OpenFlowVersion;
use flow::canonical::{
    Part, RuleValues, Said, UsualFields, entry_has_prerequisites, has_prerequisites, is_wild, match_tlvs,
    parts_of_twin, read_match_into,
};
use flow::{DatapathId, Field, MacAddr, Match, MatchEntry};

/// The key of a rule on a switch. Two different rules have the same key with a probability of 2^-58. Without the seed,
/// an app cannot find two such rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleKey(pub(crate) u64);

/// Computes the keys of rules.
#[derive(Clone, Debug)]
pub(crate) struct RuleKeys {
    fields: Fields,
    /// The secrets for a switch, for a place in it, and for the whole rule.
    of_switch: Secret,
    of_place: Secret,
    of_rule: Secret,
    /// Memory for a match.
    scratch: Match,
}

impl RuleKeys {
    pub fn new(seed: u64) -> RuleKeys {
        let [of_switch, of_place, of_rule] = [0, 1, 2].map(|number| Secret::new(seed, NO_FIELD | number));
        RuleKeys { fields: Fields::new(seed), of_switch, of_place, of_rule, scratch: Match::any() }
    }

    /// The key of a rule whose match was parsed without error.
    pub fn of(
        &mut self,
        openflow: OpenFlowVersion,
        datapath: DatapathId,
        table_id: u8,
        priority: u16,
        matching: &[u8],
    ) -> Option<RuleKey> {
        let taken = taken_place(openflow, table_id, priority, matching);
        if let Some(fields) = UsualFields::read(matching) {
            return Some(self.of_taken(openflow, datapath, taken, Matched::Usual(&fields)));
        }
        let mut rule = std::mem::take(&mut self.scratch);
        let is_read = read_match_into(matching, &mut rule).is_ok();
        let matched = Matched::Any { is_complete: has_prerequisites(&rule), rule: &rule };
        let key = is_read.then(|| self.of_taken(openflow, datapath, taken, matched));
        self.scratch = rule;
        key
    }

    /// The same for a rule with a parsed match, and with the table and priority that its switch gives it.
    #[inline]
    pub fn of_taken(
        &self,
        openflow: OpenFlowVersion,
        datapath: DatapathId,
        (table_id, priority): (u8, u16),
        matched: Matched<'_>,
    ) -> RuleKey {
        let place = u64::from(table_id) << 16 | u64::from(priority);
        let begun = self.of_place.number(self.of_switch.number(datapath.0) ^ place);
        // A sum, so that the order does not matter.
        let sum = match matched {
            Matched::Usual(fields) => self.fields.sum_of_usual(fields),
            Matched::Any { is_complete, rule } => self.fields.sum(openflow, rule, is_complete),
        };
        RuleKey(self.of_rule.number(begun.wrapping_add(sum)))
    }
}

/// A parsed match.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Matched<'a> {
    /// A match that has only these fields.
    Usual(&'a UsualFields),
    /// Any.
    Any {
        /// Whether each of its fields has its prerequisites. A switch ignores fields without them.
        is_complete: bool,
        /// The match.
        rule: &'a Match,
    },
}

impl RuleKeys {
    /// The same for a rule that names port, destination and source.
    #[inline]
    pub fn of_values(
        &self,
        datapath: DatapathId,
        (table_id, priority): (u8, u16),
        it: &RuleValues,
    ) -> RuleKey {
        let place = u64::from(table_id) << 16 | u64::from(priority);
        let begun = self.of_place.number(self.of_switch.number(datapath.0) ^ place);
        let number = |field, value| self.fields.secret(field).number(value);
        let sum = number(Field::InPort, u64::from(it.in_port.0))
            .wrapping_add(number(Field::EthDst, it.eth_dst))
            .wrapping_add(number(Field::EthSrc, it.eth_src));
        RuleKey(self.of_rule.number(begun.wrapping_add(sum)))
    }
}

/// The table and the priority that a switch gives a rule with these values.
#[inline]
pub(crate) fn taken_place(
    openflow: OpenFlowVersion,
    table_id: u8,
    priority: u16,
    matching: &[u8],
) -> (u8, u16) {
    match openflow {
        OpenFlowVersion::V1_3 => (table_id, priority),
        OpenFlowVersion::V1_0 if is_exact_in_1_0(matching) => (0, u16::MAX),
        OpenFlowVersion::V1_0 => (0, priority),
    }
}

/// The shortest match that has no wildcard in 1.0, which is one of ICMP: a header for each of its twelve fields, and their values.
const EXACT_LEN_MIN: usize = 12 * 4 + 33;

/// The fields of such a match, besides the two of its transport protocol.
const EXACT: [Field; 10] = [
    Field::InPort,
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::VlanPcp,
    Field::IpDscp,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
];

/// The two fields of each protocol whose ports 1.0 has; ICMP type and code take their place.
const EXACT_TRANSPORT: [[Field; 2]; 4] = [
    [Field::TcpSrc, Field::TcpDst],
    [Field::UdpSrc, Field::UdpDst],
    [Field::SctpSrc, Field::SctpDst],
    [Field::Icmpv4Type, Field::Icmpv4Code],
];

/// Whether it names every field of 1.0 with an unmasked value.
#[inline]
fn is_exact_in_1_0(matching: &[u8]) -> bool {
    matching.len() >= EXACT_LEN_MIN && names_all_of_1_0(matching)
}

#[cold]
fn names_all_of_1_0(matching: &[u8]) -> bool {
    let whole = match_tlvs(matching).map_while(Result::ok).filter_map(|tlv| {
        let field = tlv.field()?;
        (tlv.mask().is_none_or(|mask| mask == field.full_mask())).then_some(field)
    });
    let named = whole.fold(0u64, |named, field| named | bit(field));
    let all_of = |fields: &[Field]| fields.iter().all(|field| named & bit(*field) != 0);
    all_of(&EXACT) && EXACT_TRANSPORT.iter().any(|pair| all_of(pair))
}

/// A field's number is below 64.
const fn bit(field: Field) -> u64 {
    1 << field.number()
}

/// Computes numbers from the fields of a match.
#[derive(Clone, Debug)]
struct Fields {
    /// The worker draws it, and no app knows it. An app that knew it could compute a rule within its bounds with the
    /// key of a rule that another app will add.
    seed: u64,
    /// By the field's number, which is below 64, so that a look-up needs no bounds check. Each field has its own
    /// secret, because the numbers are added: a common part would cancel out.
    secrets: [Secret; 64],
}

impl Fields {
    fn new(seed: u64) -> Fields {
        let mut number = 0;
        let secrets = [(); 64].map(|()| {
            number += 1;
            Secret::new(seed, number - 1)
        });
        Fields { seed, secrets }
    }

    #[inline(always)]
    fn secret(&self, field: Field) -> &Secret {
        &self.secrets[usize::from(field.number() & 63)]
    }

    /// The sum for typical rules of learning switches; the result is that of [`Self::sum`].
    #[inline]
    fn sum_of_usual(&self, fields: &UsualFields) -> u64 {
        let UsualFields { in_port, eth_dst, eth_src, eth_type } = *fields;
        let mut sum = 0u64;
        let mut add = |field, value| sum = sum.wrapping_add(self.secret(field).number(value));
        if let Some(port) = in_port {
            add(Field::InPort, u64::from(port.0));
        }
        if let Some(address) = eth_dst {
            add(Field::EthDst, MacAddr::to_u64(address));
        }
        if let Some(address) = eth_src {
            add(Field::EthSrc, MacAddr::to_u64(address));
        }
        if let Some(kind) = eth_type {
            add(Field::EthType, u64::from(kind));
        }
        sum
    }

    /// The sum of any match.
    fn sum(&self, openflow: OpenFlowVersion, rule: &Match, is_complete: bool) -> u64 {
        if openflow == OpenFlowVersion::V1_0 {
            return self.sum_in_1_0(rule);
        }
        let is_whole = |entry: &MatchEntry| matches!(entry, MatchEntry::Field { .. });
        if !rule.entries().iter().all(is_whole) {
            return self.sum_with_twins(rule);
        }
        let fields =
            rule.entries().iter().filter(|entry| is_complete || entry_has_prerequisites(rule, entry));
        fields.fold(0, |sum, entry| sum.wrapping_add(self.number_of_entry(entry)))
    }

    /// In 1.0, a tag has one form only: none, a number, or any if the priority is set (1.0.0, 5.2.3).
    fn sum_in_1_0(&self, rule: &Match) -> u64 {
        let has_pcp = rule.get(Field::VlanPcp).is_some();
        let vid = match rule.get(Field::VlanVid).filter(|(_, mask)| *mask != 0) {
            Some((value, mask)) if mask & VLAN_PRESENT != 0 && value & VLAN_PRESENT == 0 => {
                self.number_of(Field::VlanVid, 0, Field::VlanVid.full_mask())
            }
            Some((value, mask)) => self.number_of(Field::VlanVid, value, mask),
            None if has_pcp => self.number_of(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
            None => 0,
        };
        let others = rule.entries().iter().filter(|entry| match entry {
            MatchEntry::Field { field: Field::VlanVid, .. } => false,
            MatchEntry::Field { field: Field::VlanPcp, .. } => true,
            _ => entry_has_prerequisites(rule, entry),
        });
        others.fold(vid, |sum, entry| sum.wrapping_add(self.number_of_entry(entry)))
    }

    /// The sum of a match with fields of other classes. The prerequisites of such fields may be given under either
    /// name, so no field is ignored.
    #[cold]
    fn sum_with_twins(&self, rule: &Match) -> u64 {
        rule.entries().iter().fold(0, |sum, entry| sum.wrapping_add(self.number_of_entry(entry)))
    }

    /// The number of a field without a mask.
    fn number_of_whole(&self, field: Field, value: u128) -> u64 {
        let number = self.secret(field).number(value as u64);
        if field.bytes() > 8 { mixed(number ^ (value >> 64) as u64) } else { number }
    }

    /// The number of a field with this mask; 0 if the mask is zero.
    fn number_of(&self, field: Field, value: u128, mask: u128) -> u64 {
        match mask {
            0 => 0,
            mask if mask == field.full_mask() => self.number_of_whole(field, value),
            mask => number_of_masked(self.secret(field).hides, value, mask),
        }
    }

    /// The number of an entry; 0 if its mask is zero.
    fn number_of_entry(&self, entry: &MatchEntry) -> u64 {
        match entry {
            MatchEntry::Field { field, value, mask: None } => self.number_of_whole(*field, *value),
            MatchEntry::Field { field, value, mask: Some(mask) } => self.number_of(*field, *value, *mask),
            MatchEntry::Unknown { header, body } => self.number_of_unknown(*header, body),
        }
    }

    fn number_of_unknown(&self, header: u32, body: &[u8]) -> u64 {
        let seed = self.seed;
        let mut sum = 0u64;
        let is_known = parts_of_twin(header, body, &mut |Part { of, value, mask }| {
            sum = sum.wrapping_add(match of {
                Said::Field(field) => self.number_of(field, value, mask),
                Said::Register(number) => {
                    number_of_masked(mixed(seed ^ (REGISTERS | u64::from(number))), value, mask)
                }
                Said::Nicira(number) => {
                    number_of_masked(mixed(seed ^ (NICIRAS | u64::from(number))), value, mask)
                }
            });
        });
        if is_known {
            sum
        } else if is_wild(header, body) {
            0
        } else {
            number_of_bytes(seed, header, body)
        }
    }
}

/// OFPVID_PRESENT: the bit of vlan_vid for a packet with a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// Both halves of each.
fn number_of_masked(begun: u64, value: u128, mask: u128) -> u64 {
    [value, mask].iter().fold(begun, |number, it| mixed(mixed(number ^ *it as u64) ^ (*it >> 64) as u64))
}

/// The first number for fields that OpenFlow 1.3 lacks: above those of its fields, and separate for each kind.
const REGISTERS: u64 = 1 << 33;
const NICIRAS: u64 = 1 << 34;
const UNKNOWN: u64 = 1 << 32;

/// The number of an unknown field. If its mask is all ones, the mask, its bit and its length do not count.
fn number_of_bytes(seed: u64, header: u32, body: &[u8]) -> u64 {
    let (experimenter, rest) = body.split_at(if header >> 16 == 0xffff { body.len().min(4) } else { 0 });
    let has_mask = header & 0x100 != 0;
    let (value, mask) = rest.split_at(if has_mask { rest.len() / 2 } else { rest.len() });
    let begun = mixed(seed ^ (UNKNOWN | u64::from(header >> 9)));
    let begun = experimenter.iter().fold(begun, |number, byte| mixed(number ^ u64::from(*byte)));
    let masks = mask.iter().copied().chain(std::iter::repeat(0xff));
    value
        .iter()
        .zip(masks)
        .fold(begun, |number, (value, mask)| mixed(number ^ (u64::from(value & mask) << 8 | u64::from(mask))))
}

/// The first number for parts that are not fields.
const NO_FIELD: u64 = 1 << 35;

/// Mixes the value of one field: both halves of a product with a secret factor (a folded multiplication, as in wyhash
/// and foldhash). It takes four instructions; [`mixed`] takes eleven, and a rule has six values. The factor must be
/// secret too. With a known one, a sender that changes the highest bits of two fields changes their sum by few values,
/// and one of them may be zero.
#[derive(Clone, Copy, Debug)]
struct Secret {
    hides: u64,
    times: u64,
}

impl Secret {
    fn new(seed: u64, of: u64) -> Secret {
        let hides = mixed(seed ^ (of + 1));
        // An odd factor loses nothing.
        Secret { hides, times: mixed(hides ^ seed.rotate_left(32)) | 1 }
    }

    #[inline(always)]
    fn number(&self, value: u64) -> u64 {
        let product = u128::from(value ^ self.hides) * u128::from(self.times);
        product as u64 ^ (product >> 64) as u64
    }
}

/// Spreads a number over all bits (the last step of SplitMix64).
#[inline(always)]
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
        RuleKeys::new(SEED)
            .of(OpenFlowVersion::V1_3, DatapathId(datapath), table_id, priority, &bytes)
            .unwrap()
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
                RuleKeys::new(SEED).of(OpenFlowVersion::V1_3, DatapathId(1), 0, 5, &bytes).unwrap()
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

    /// How many of these rules have a distinct key, with the bits that a record keeps.
    fn told_apart(seed: u64, rules: impl Iterator<Item = Match>) -> usize {
        let mut keys = RuleKeys::new(seed);
        let kept = rules.map(|rule| {
            let mut bytes = Vec::new();
            write_match(&rule, &mut bytes);
            keys.of(OpenFlowVersion::V1_3, DatapathId(1), 0, 5, &bytes).unwrap().0 >> 13
        });
        kept.collect::<std::collections::HashSet<u64>>().len()
    }

    #[test]
    fn rules_that_differ_in_few_bits_have_keys_of_their_own() {
        use flow::Field::{EthDst, EthSrc, InPort, Metadata};
        for seed in [0, 1, u64::MAX, SEED] {
            let in_a_row = (0..1 << 16).map(|number: u64| {
                Match::any()
                    .with(EthDst, number & 0xff)
                    .with(EthSrc, number >> 8 & 0xf)
                    .with(InPort, (number >> 12) as u32)
            });
            assert_eq!(told_apart(seed, in_a_row), 1 << 16);
            // The highest bits, which a product changes least.
            let highest = (0..1 << 16).map(|number: u64| {
                let (one, other) = (number & 0xff, number >> 8);
                Match::any()
                    .with(Metadata, one << 56)
                    .with(EthDst, other << 40)
                    .with(EthSrc, (one ^ other) << 40)
            });
            assert_eq!(told_apart(seed, highest), 1 << 16);
        }
    }

    #[test]
    fn keys_of_one_seed_say_nothing_of_those_of_another() {
        let rule = |number: u64| Match::any().with(flow::Field::EthDst, number);
        let key = |seed: u64, number: u64| {
            let mut bytes = Vec::new();
            write_match(&rule(number), &mut bytes);
            RuleKeys::new(seed).of(OpenFlowVersion::V1_3, DatapathId(1), 0, 5, &bytes).unwrap().0
        };
        // The difference between the keys of two rules is another number with each seed.
        let differences: std::collections::HashSet<u64> =
            (0..1_000).map(|seed| key(seed, 1) ^ key(seed, 2)).collect();
        assert_eq!(differences.len(), 1_000);
    }
}
