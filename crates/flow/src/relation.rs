//! Relations of two matches: whether one covers or overlaps the other, and whether a rule is within a flowspace.
//!
//! A match is a set of packets. Prerequisites are taken into account. A packet with a `tcp_src` is TCP over IP even if
//! the match does not say so. No packet has a VLAN id without OFPVID_PRESENT. A match for ARP and IPv4 at once matches
//! nothing. A field with a mask of zeros has no effect (1.3.5, 7.2.3.5). Truncated frames are not considered: packets
//! have all fields that their prerequisites imply.
//!
//! Fields of other classes are compared bit by bit. Their prerequisites are unknown. Allocates only in [`within`] and
//! for the result of [`intersection`].

use crate::canonical::prerequisites;
use crate::field::Field;
use crate::matching::{Match, MatchEntry};

/// The number of pieces into which [`within`] cuts a rule before it gives up and returns false. Some dozen prefixes
/// need hundreds. Only a flowspace that is made to explode reaches this bound.
pub const MAX_PIECES: usize = 4096;

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

#[cfg(test)]
pub(crate) mod brute_force;

/// Whether each packet that `narrow` matches is matched by `wide` too.
///
/// ```
/// use flow::{relation::covers, text::parse_match};
/// let wide = parse_match("ip,nw_dst=10.0.0.0/8").unwrap();
/// assert!(covers(&wide, &parse_match("tcp,nw_dst=10.1.0.0/16,tp_dst=22").unwrap()));
/// assert!(!covers(&wide, &parse_match("tcp,tp_dst=22").unwrap()));
/// ```
pub fn covers(wide: &Match, narrow: &Match) -> bool {
    implies_all_of(&Cube::stated_by(narrow), narrow, wide)
        || Cubes::of(narrow, None).iter().all(|cube| implies_all_of(cube, narrow, wide))
}

/// Whether one match of the flowspace covers the rule. Like [`covers`] with each of them, but the rule is prepared once.
///
/// ```
/// use flow::{relation::is_covered_by_one, text::parse_match};
/// let networks = [parse_match("ip,nw_dst=10.0.0.0/16").unwrap(), parse_match("ip,nw_dst=10.1.0.0/16").unwrap()];
/// assert!(is_covered_by_one(&parse_match("ip,nw_dst=10.1.0.9").unwrap(), &networks));
/// assert!(!is_covered_by_one(&parse_match("ip,nw_dst=10.0.0.0/15").unwrap(), &networks));
/// ```
pub fn is_covered_by_one(rule: &Match, flowspace: &[Match]) -> bool {
    // Nearly every rule states its prerequisites, so that the cubes, which need a hundred times as many instructions, are not
    // needed.
    let stated = Cube::stated_by(rule);
    if flowspace.iter().any(|space| implies_all_of(&stated, rule, space)) {
        return true;
    }
    let cubes = Cubes::of(rule, None);
    flowspace.iter().any(|space| cubes.iter().all(|cube| implies_all_of(cube, rule, space)))
}

/// Whether each packet of this cube, which holds packets of `narrow`, is matched by `wide`.
#[inline]
fn implies_all_of(cube: &Cube, narrow: &Match, wide: &Match) -> bool {
    // The last fields are usually the most specific, and decide soonest.
    wide.entries().iter().rev().all(|entry| match entry {
        MatchEntry::Field { field, value, mask: Some(mask) } => cube.implies(*field, *value, *mask),
        MatchEntry::Field { field, value, mask: None } => cube.implies(*field, *value, field.full_mask()),
        MatchEntry::Unknown { .. } => narrow.entries().iter().any(|there| unknown_implies(there, entry)),
    })
}

/// Whether each packet that the rule matches has these bits in a field. Like [`covers`] with a match of that field,
/// without building it.
pub(crate) fn implies(rule: &Match, field: Field, value: u128, mask: u128) -> bool {
    // Nearly every rule states it, so that the cubes are not needed.
    let is_stated = |(there, known): (u128, u128)| mask & !known == 0 && (there ^ value) & mask == 0;
    if rule.get(field).is_some_and(is_stated) {
        return true;
    }
    Cubes::of(rule, None).iter().all(|cube| cube.implies(field, value, mask))
}

/// Whether some packet is matched by both.
///
/// ```
/// use flow::{relation::overlaps, text::parse_match};
/// let web = parse_match("tcp,tp_dst=80").unwrap();
/// assert!(overlaps(&web, &parse_match("ip,nw_src=10.0.0.1").unwrap()));
/// assert!(!overlaps(&web, &parse_match("arp").unwrap()));
/// ```
pub fn overlaps(one: &Match, other: &Match) -> bool {
    unknown_agree(one, other) && !Cubes::of(one, Some(other)).is_nothing()
}

/// The match of the packets that both match, or `None` if there are none. Its fields are in `one`'s order, then in
/// `other`'s.
///
/// ```
/// use flow::{relation::intersection, text::{match_to_string, parse_match}};
/// let both = intersection(&parse_match("ip").unwrap(), &parse_match("in_port=1").unwrap()).unwrap();
/// assert_eq!(match_to_string(&both), "ip,in_port=1");
/// ```
pub fn intersection(one: &Match, other: &Match) -> Option<Match> {
    if !overlaps(one, other) {
        return None;
    }
    let mut both = one.clone();
    for entry in other.entries() {
        match entry {
            MatchEntry::Field { field, value, mask } => {
                let (there, there_mask) = one.get(*field).unwrap_or_default();
                let mask = mask.unwrap_or(field.full_mask()) | there_mask;
                if mask == field.full_mask() {
                    both.set(*field, value | there);
                } else {
                    both.set_masked(*field, value | there, mask);
                }
            }
            MatchEntry::Unknown { .. } => put_unknown(&mut both, entry),
        }
    }
    Some(both)
}

/// Whether the match matches no packet, because fields contradict each other's prerequisites.
///
/// ```
/// use flow::{Field, Match, relation::is_nothing};
/// assert!(is_nothing(&Match::any().with(Field::ArpOp, 1u8).with(Field::EthType, 0x0800u16)));
/// ```
pub fn is_nothing(rule: &Match) -> bool {
    Cubes::of(rule, None).is_nothing()
}

/// Whether the flowspace contains the rule: each packet that the rule matches is matched by at least one match of the
/// flowspace. No single match need cover the whole rule.
///
/// Exact up to [`MAX_PIECES`]. Beyond that the answer is no, so that a rule never passes by mistake. A match with
/// fields of other classes counts for the parts of the rule that it covers completely.
///
/// ```
/// use flow::{relation::within, text::parse_match};
/// let halves = [parse_match("ip,nw_dst=10.0.0.0/9").unwrap(), parse_match("ip,nw_dst=10.128.0.0/9").unwrap()];
/// assert!(within(&parse_match("ip,nw_dst=10.0.0.0/8").unwrap(), &halves));
/// assert!(!within(&parse_match("ip,nw_dst=10.0.0.0/7").unwrap(), &halves));
/// ```
pub fn within(rule: &Match, flowspace: &[Match]) -> bool {
    // Usually one match covers the whole rule, which needs no pieces.
    if is_covered_by_one(rule, flowspace) {
        return true;
    }
    let mut outside: Vec<Cube> = Cubes::of(rule, None).iter().copied().collect();
    let mut pieces = 0;
    for space in flowspace {
        let known = space.entries().iter().all(|entry| match entry {
            MatchEntry::Field { .. } => true,
            MatchEntry::Unknown { .. } => rule.entries().iter().any(|there| unknown_implies(there, entry)),
        });
        if !known {
            continue;
        }
        for cube in Cubes::of(space, None).iter() {
            let mut left = Vec::new();
            for piece in &outside {
                piece.without(cube, &mut left);
                if pieces + left.len() > MAX_PIECES {
                    return false;
                }
            }
            pieces += left.len();
            outside = left;
        }
    }
    outside.is_empty()
}

/// The fixed bits of each field, as value and mask. The mask is zero if nothing is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cube {
    fields: [(u128, u128); 40],
}

/// The packets of a match as one or two cubes. There are two if a prerequisite allows two values: both versions of IP,
/// ARP and reverse ARP, both kinds of MPLS, both messages of neighbour discovery. No two such fields occur together.
#[derive(Clone, Copy, Debug)]
struct Cubes {
    cubes: [Cube; 2],
    count: usize,
}

impl Cubes {
    const NOTHING: Cubes = Cubes { cubes: [Cube { fields: [(0, 0); 40] }; 2], count: 0 };

    /// The packets of a match, or of two at once.
    fn of(rule: &Match, other: Option<&Match>) -> Cubes {
        let mut cube = Cube { fields: [(0, 0); 40] };
        for entry in rule.entries().iter().chain(other.iter().flat_map(|other| other.entries())) {
            if let MatchEntry::Field { field, value, mask } = entry
                && !cube.meet(*field, *value, mask.unwrap_or(field.full_mask()))
            {
                return Cubes::NOTHING;
            }
        }
        Cubes::closed(cube)
    }

    /// A cube with everything that follows from its prerequisites.
    fn closed(mut cube: Cube) -> Cubes {
        if !cube.close_vlan() {
            return Cubes::NOTHING;
        }
        let (mut choice, mut present) = (None, cube.present());
        // From the fields with the most prerequisites to those with none, so that each step sees what was added before.
        for target in [Field::Icmpv6Type, Field::IpProto, Field::EthType] {
            match cube.allowed(target, present) {
                Allowed::Anything => {}
                Allowed::Nothing => return Cubes::NOTHING,
                Allowed::One(value) => {
                    cube.meet(target, value, target.full_mask());
                }
                Allowed::Two(first, second) => {
                    // The field is present, so its prerequisite holds. Which of the two values it has is open.
                    choice = Some((target, first, second));
                    cube.fields[usize::from(target.number())] = (first, target.full_mask());
                }
            }
            // A target that is known now has prerequisites itself.
            present |= u64::from(cube.get(target).1 != 0) << target.number();
        }
        let mut cubes = Cubes { cubes: [cube; 2], count: 1 };
        if let Some((target, _, second)) = choice {
            cubes.cubes[1].fields[usize::from(target.number())] = (second, target.full_mask());
            cubes.count = 2;
        }
        cubes
    }

    fn iter(&self) -> impl Iterator<Item = &Cube> {
        self.cubes.iter().take(self.count)
    }

    fn is_nothing(&self) -> bool {
        self.count == 0
    }
}

/// The values of a field that the prerequisites of all present fields allow.
enum Allowed {
    Anything,
    Nothing,
    One(u128),
    Two(u128, u128),
}

impl Cube {
    /// The bits that the match itself states, without those that follow from its prerequisites: all of its packets, and
    /// perhaps more.
    #[inline]
    fn stated_by(rule: &Match) -> Cube {
        let mut cube = Cube { fields: [(0, 0); 40] };
        for entry in rule.entries() {
            match entry {
                MatchEntry::Field { field, value, mask } => {
                    cube.fields[usize::from(field.number())] = (*value, mask.unwrap_or(field.full_mask()));
                }
                MatchEntry::Unknown { .. } => {}
            }
        }
        cube
    }

    #[inline]
    fn get(&self, field: Field) -> (u128, u128) {
        self.fields[usize::from(field.number())]
    }

    /// Fixes more bits. Returns whether they agree with the fixed ones.
    fn meet(&mut self, field: Field, value: u128, mask: u128) -> bool {
        let (there, there_mask) = self.get(field);
        let agree = (there ^ value) & mask & there_mask == 0;
        self.fields[usize::from(field.number())] = (there | value & mask, there_mask | mask);
        agree
    }

    /// Whether all of its packets have these bits.
    #[inline]
    fn implies(&self, field: Field, value: u128, mask: u128) -> bool {
        let (there, there_mask) = self.get(field);
        mask & !there_mask == 0 && (there ^ value) & mask == 0
    }

    /// A priority needs a tag; no tag means no id; an id means a tag. Returns whether that is possible.
    fn close_vlan(&mut self) -> bool {
        if self.get(Field::VlanPcp).1 != 0 && !self.meet(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT) {
            return false;
        }
        let (value, mask) = self.get(Field::VlanVid);
        if mask & VLAN_PRESENT != 0 && value & VLAN_PRESENT == 0 {
            return self.meet(Field::VlanVid, 0, Field::VlanVid.full_mask());
        }
        value == 0 || self.meet(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT)
    }

    /// The fields of which some bits are fixed, as bits by their numbers.
    fn present(&self) -> u64 {
        let bit = |(number, (_, mask)): (usize, &(u128, u128))| u64::from(*mask != 0) << number;
        self.fields.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
    }

    /// What the prerequisites of the fields in `present` say about a field. Most matches have few fields of the 40.
    fn allowed(&self, target: Field, mut present: u64) -> Allowed {
        let (value, mask) = self.get(target);
        let mut left: Option<[Option<u128>; 2]> = None;
        while let Some(field) = Field::from_number(present.trailing_zeros() as u8) {
            present &= present - 1;
            for (_, values) in prerequisites(field).iter().filter(|(needed, _)| *needed == target) {
                let may_be = |wanted: &u128| values.contains(wanted) && (wanted ^ value) & mask == 0;
                let before = left.unwrap_or([values.first().copied(), values.get(1).copied()]);
                left = Some(before.map(|wanted| wanted.filter(may_be)));
            }
        }
        match left {
            None => Allowed::Anything,
            Some([None, None]) => Allowed::Nothing,
            Some([Some(one), None] | [None, Some(one)]) => Allowed::One(one),
            Some([Some(first), Some(second)]) => Allowed::Two(first, second),
        }
    }

    /// Adds the packets of this cube that are not in `other`, as disjoint cubes. There is one for each bit that `other`
    /// fixes and this does not. It has that bit inverted, and the earlier bits as in `other`.
    fn without(&self, other: &Cube, left: &mut Vec<Cube>) {
        let mut inside = *self;
        // In the order of their numbers, prerequisites come first. So a field is split only if it exists.
        for field in Field::all() {
            let (value, mask) = other.get(field);
            let (there, there_mask) = inside.get(field);
            if (there ^ value) & mask & there_mask != 0 {
                left.extend(Cubes::closed(inside).iter());
                return;
            }
            let mut open = mask & !there_mask;
            while open != 0 {
                let bit = 1u128 << open.trailing_zeros();
                open &= !bit;
                let mut outside = inside;
                outside.meet(field, !value, bit);
                left.extend(Cubes::closed(outside).iter());
                inside.meet(field, value, bit);
                if Cubes::closed(inside).is_nothing() {
                    return;
                }
            }
        }
    }
}

/// The value and the mask of a field of another class, without an experimenter's number; a mask of `None` is all ones.
fn unknown_parts(header: u32, body: &[u8]) -> (&[u8], Option<&[u8]>) {
    let skipped = if header >> 16 == 0xffff { 4 } else { 0 };
    let payload = body.get(skipped..).unwrap_or_default();
    if header & 0x100 != 0 && payload.len().is_multiple_of(2) {
        let (value, mask) = payload.split_at(payload.len() / 2);
        (value, Some(mask))
    } else {
        (payload, None)
    }
}

/// The bits of both that are compared: for each byte value and mask of `one`, then of `other`. `None` if they are different fields.
fn unknown_bytes<'a>(
    one: &'a MatchEntry,
    other: &'a MatchEntry,
) -> Option<impl Iterator<Item = ((u8, u8), (u8, u8))> + 'a> {
    let (
        MatchEntry::Unknown { header, body },
        MatchEntry::Unknown { header: other_header, body: other_body },
    ) = (one, other)
    else {
        return None;
    };
    let (value, mask) = unknown_parts(*header, body);
    let (other_value, other_mask) = unknown_parts(*other_header, other_body);
    if !one.same_field(other) || value.len() != other_value.len() {
        return None;
    }
    let byte = |value: &[u8], mask: Option<&[u8]>, at: usize| {
        let mask = mask.map_or(0xff, |mask| mask.get(at).copied().unwrap_or(0));
        (value.get(at).copied().unwrap_or(0), mask)
    };
    Some((0..value.len()).map(move |at| (byte(value, mask, at), byte(other_value, other_mask, at))))
}

/// Whether an entry of another class implies `wide`.
fn unknown_implies(narrow: &MatchEntry, wide: &MatchEntry) -> bool {
    unknown_bytes(narrow, wide).is_some_and(|mut bytes| {
        bytes.all(|((value, mask), (wanted, wanted_mask))| {
            wanted_mask & !mask == 0 && (value ^ wanted) & wanted_mask == 0
        })
    })
}

/// Whether no field of another class contradicts the same field of the other match.
fn unknown_agree(one: &Match, other: &Match) -> bool {
    one.entries().iter().all(|entry| {
        other.entries().iter().all(|there| {
            unknown_bytes(entry, there).is_none_or(|mut bytes| {
                bytes.all(|((value, mask), (wanted, wanted_mask))| (value ^ wanted) & mask & wanted_mask == 0)
            })
        })
    })
}

/// Adds an entry of another class, or joins it with the entry for the same field.
fn put_unknown(both: &mut Match, entry: &MatchEntry) {
    let like = both.entries().iter().find(|there| there.same_field(entry));
    let Some(bytes) = like.and_then(|there| unknown_bytes(there, entry)) else {
        both.put(entry.clone());
        return;
    };
    let joined: Vec<(u8, u8)> = bytes
        .map(|((value, mask), (more, more_mask))| (value & mask | more & more_mask, mask | more_mask))
        .collect();
    let MatchEntry::Unknown { header, body } = entry else { return };
    let own_number = if header >> 16 == 0xffff { body.get(..4).unwrap_or_default() } else { &[] };
    let masked = joined.iter().any(|(_, mask)| *mask != 0xff);
    let mut body = own_number.to_vec();
    body.extend(joined.iter().map(|(value, _)| *value));
    if masked {
        body.extend(joined.iter().map(|(_, mask)| *mask));
    }
    // A payload has at most 255 bytes. Two payloads of equal length that had room for their masks have it again.
    let length = u32::try_from(body.len()).unwrap_or(0xff).min(0xff);
    let header = header & !0x1ff | u32::from(masked) << 8 | length;
    both.put(MatchEntry::Unknown { header, body });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_match;

    fn rule(text: &str) -> Match {
        parse_match(text).unwrap()
    }

    #[test]
    fn contradictions_match_nothing() {
        let contradiction = Match::any().with(Field::ArpSpa, 1u8).with(Field::Ipv4Src, 1u8);
        assert!(is_nothing(&contradiction));
        assert!(is_nothing(&Match::any().with(Field::VlanVid, 5u8)));
        assert!(is_nothing(&Match::any().with(Field::VlanVid, 0u8).with(Field::VlanPcp, 1u8)));
        assert!(is_nothing(&Match::any().with(Field::TcpSrc, 1u8).with(Field::IpProto, 17u8)));
        assert!(covers(&rule("in_port=1"), &contradiction));
        assert!(!overlaps(&Match::any(), &contradiction));
    }

    #[test]
    fn prerequisites_are_said_even_where_they_are_not_written() {
        let tcp = Match::any().with(Field::TcpSrc, 80u8);
        assert!(covers(&Match::any().with(Field::IpProto, 6u8), &tcp));
        assert!(!covers(&rule("ip"), &tcp), "it may be IPv6");
        assert!(!overlaps(&rule("arp"), &tcp));
        assert!(within(&tcp, &[rule("ip"), rule("ipv6")]));
    }

    #[test]
    fn tags_are_understood() {
        let untagged = rule("vlan_vid=0/0x1000");
        assert!(covers(&rule("vlan_vid=0"), &untagged));
        assert!(within(&Match::any(), &[untagged.clone(), rule("vlan_vid=0x1000/0x1000")]));
        assert!(!overlaps(&untagged, &rule("dl_vlan=0")));
    }

    #[test]
    fn fields_of_other_classes_are_compared_by_their_bits() {
        assert!(covers(&rule("reg0=0x5/0xf"), &rule("reg0=0x15")));
        assert!(!covers(&rule("reg0=0x15"), &rule("reg0=0x5/0xf")));
        assert!(!covers(&rule("reg0=1"), &rule("reg1=1")));
        assert!(!overlaps(&rule("reg0=1"), &rule("reg0=2")));
        assert_eq!(
            intersection(&rule("reg0=0x5/0xf"), &rule("reg0=0x10/0xf0")),
            Some(rule("reg0=0x15/0xff"))
        );
        assert!(within(&rule("reg0=1,ip"), &[rule("reg0=1/1,tcp"), rule("ip")]));
        assert!(!within(&rule("ip"), &[rule("reg0=1"), rule("reg0=0")]));
    }

    #[test]
    fn a_flowspace_that_explodes_is_answered_with_no() {
        let spaces: Vec<Match> = (0..64u32)
            .map(|bit| {
                Match::any().with_masked(Field::Metadata, 1u64 << bit, 1u64 << bit | 1 << ((bit + 7) % 64))
            })
            .collect();
        assert!(!within(&Match::any(), &spaces));
    }
}
