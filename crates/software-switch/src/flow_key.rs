//! A packet's fields, packed into words that are hashed and compared directly.
//!
//! In: the fields of a packet, or a match. Out: words. Each bit of each field has one place in them, and the first
//! word says which fields are present. A match then is two such keys, a mask and a value. It matches a packet if
//! `packet & mask == value`.
//!
//! It does not know what a field means. Only `flow::frame` reads the fields of a frame.

use flow::frame::FrameFields;
use flow::{Field, Match, MatchEntry};
use std::hash::{BuildHasherDefault, Hasher};

/// The fields of each word after the first, at most 64 bits together. A field of 128 bits has two words. Fields that
/// rules often name together share a word, so that a mask has few words.
const LAYOUT: [&[Field]; 18] = {
    use Field::*;
    [
        &[InPort, EthType, VlanVid, VlanPcp],
        &[EthDst, IpProto, IpDscp, IpEcn],
        &[EthSrc, Icmpv4Type, Icmpv4Code],
        &[Ipv4Src, Ipv4Dst],
        &[TcpSrc, TcpDst, UdpSrc, UdpDst],
        &[SctpSrc, SctpDst, ArpOp, Icmpv6Type, Icmpv6Code],
        &[Metadata],
        &[ArpSpa, ArpTpa],
        &[ArpSha, Ipv6Exthdr],
        &[ArpTha],
        &[Ipv6Src],
        &[Ipv6Dst],
        &[Ipv6Flabel, MplsLabel, MplsTc, MplsBos],
        &[Ipv6NdTarget],
        &[Ipv6NdSll],
        &[Ipv6NdTll],
        &[PbbIsid, InPhyPort],
        &[TunnelId],
    ]
};

/// The word in which bit n says that the field with number n is present.
const PRESENCE: usize = 0;
/// The number of words in a key: the presence, those of the layout, and three more for the three fields of 128 bits.
pub(crate) const WORDS: usize = 1 + LAYOUT.len() + 3;

/// The position of a field's lowest bit.
#[derive(Clone, Copy)]
struct Place {
    word: usize,
    shift: u32,
}

/// The place of each field, indexed by its number.
const PLACES: [Place; 40] = {
    let mut places = [Place { word: 0, shift: 0 }; 40];
    let (mut group, mut word) = (0, PRESENCE + 1);
    while group < LAYOUT.len() {
        let (mut index, mut shift) = (0, 0);
        while index < LAYOUT[group].len() {
            let field = LAYOUT[group][index];
            places[field.number() as usize] = Place { word, shift };
            shift += field.bits();
            index += 1;
        }
        word += shift.div_ceil(64) as usize;
        group += 1;
    }
    assert!(word == WORDS);
    places
};

/// The fields of a packet, or the mask or the value of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    words: [u64; WORDS],
}

impl FlowKey {
    const NOTHING: FlowKey = FlowKey { words: [0; WORDS] };

    /// The key of a packet with these fields.
    pub(crate) fn of(fields: &FrameFields) -> FlowKey {
        let mut key = FlowKey::NOTHING;
        fields.iter().for_each(|(field, value)| key.put(field, value, true));
        key
    }

    /// The mask and value of a match, or `None` if it names a field of another class, which no packet has.
    pub(crate) fn of_match(matching: &Match) -> Option<MaskedKey> {
        let (mut mask, mut value) = (FlowKey::NOTHING, FlowKey::NOTHING);
        for entry in matching.entries() {
            match entry {
                // A field with a mask of all zeros is the same as an omitted field (1.3.5, 7.2.3.5).
                MatchEntry::Field { mask: Some(0), .. } => {}
                MatchEntry::Field { field, value: wanted, mask: counts } => {
                    let counts = counts.unwrap_or(field.full_mask());
                    mask.put(*field, counts, true);
                    value.put(*field, *wanted & counts, true);
                }
                MatchEntry::Unknown { .. } => return None,
            }
        }
        let mask = Mask::of(&mask);
        let value = mask.applied_to(&value).as_ref().into();
        Some(MaskedKey { mask, value })
    }

    fn put(&mut self, field: Field, value: u128, present: bool) {
        let number = field.number();
        let Place { word, shift } = PLACES[usize::from(number)];
        self.words[PRESENCE] |= u64::from(present) << number;
        if field.bits() > 64 {
            self.words[word] = value as u64;
            self.words[word + 1] = (value >> 64) as u64;
        } else {
            self.words[word] |= (value as u64) << shift;
        }
    }

    /// Whether the packet has an EtherType. A frame that ends within its VLAN tags can be matched but not changed, so
    /// its fields do not determine the result of an action.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_all(1 << Field::EthType.number())
    }

    /// Whether all fields of a mask are present.
    pub(crate) fn has_all(&self, fields: u64) -> bool {
        self.words[PRESENCE] & fields == fields
    }
}

/// A match as a key: the bits that count, and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MaskedKey {
    pub(crate) mask: Mask,
    /// One for each word of the mask.
    pub(crate) value: Box<[u64]>,
}

/// Which bits of a key count: the words with such bits, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mask {
    words: Box<[(u8, u64)]>,
}

impl Mask {
    fn of(bits: &FlowKey) -> Mask {
        let numbered = bits.words.iter().enumerate();
        Mask { words: numbered.filter(|(_, bits)| **bits != 0).map(|(at, bits)| (at as u8, *bits)).collect() }
    }

    /// All that it says, as words: for a hash.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().flat_map(|(at, bits)| [u64::from(*at), *bits])
    }

    /// The fields that it tests, one bit for each field number.
    pub(crate) fn fields(&self) -> u64 {
        self.words.first().filter(|(at, _)| usize::from(*at) == PRESENCE).map_or(0, |(_, bits)| *bits)
    }

    /// The bits of a key that count.
    pub(crate) fn applied_to(&self, key: &FlowKey) -> Masked {
        let mut masked = Masked { words: [0; WORDS], count: self.words.len() };
        for (to, (at, bits)) in masked.words.iter_mut().zip(&*self.words) {
            *to = key.words[usize::from(*at)] & bits;
        }
        masked
    }

    /// The bits of `value` that count here, where `value` is a key under this mask or a wider one. `None` if this
    /// mask tests bits that `of` does not.
    pub(crate) fn narrowed(&self, of: &MaskedKey) -> Option<Masked> {
        let mut key = FlowKey::NOTHING;
        let mut counts = FlowKey::NOTHING;
        for ((at, bits), value) in of.mask.words.iter().zip(&*of.value) {
            key.words[usize::from(*at)] = *value;
            counts.words[usize::from(*at)] = *bits;
        }
        let within = self.words.iter().all(|(at, bits)| bits & !counts.words[usize::from(*at)] == 0);
        within.then(|| self.applied_to(&key))
    }

    /// The bits that count in either mask.
    pub(crate) fn or(&self, other: &Mask) -> Mask {
        let mut both = FlowKey::NOTHING;
        self.words.iter().chain(&*other.words).for_each(|(at, bits)| both.words[usize::from(*at)] |= bits);
        Mask::of(&both)
    }
}

/// The bits of a key that count for a mask: one word for each word of the mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masked {
    words: [u64; WORDS],
    count: usize,
}

impl AsRef<[u64]> for Masked {
    fn as_ref(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

/// Hashes words by a multiplication to twice their width, and folds the halves. It has no secret: a user who makes
/// colliding rules or packets only slows down an emulated switch of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordHasher(u64);

/// For maps with words as keys.
pub(crate) type WordHash = BuildHasherDefault<WordHasher>;

impl WordHasher {
    /// The hash of words.
    pub(crate) fn of(words: &[u64]) -> u64 {
        words.iter().fold(WordHasher(0), |hasher, word| hasher.with(*word)).0
    }

    const fn with(self, word: u64) -> WordHasher {
        /// An odd number with as many ones as zeros: 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = (self.0 ^ word ^ SPREAD.rotate_left(23)) as u128 * SPREAD as u128;
        WordHasher(product as u64 ^ (product >> 64) as u64)
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| *self = self.with(u64::from_ne_bytes(*word)));
        rest.iter().for_each(|byte| *self = self.with(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;
    use proptest::prelude::*;

    #[test]
    fn no_two_fields_share_a_bit() {
        let mut seen = FlowKey::NOTHING;
        for field in Field::all() {
            let mut one = FlowKey::NOTHING;
            one.put(field, field.full_mask(), true);
            let bits: u32 = one.words[1..].iter().map(|word| word.count_ones()).sum();
            assert_eq!(bits, field.bits(), "{}", field.name());
            for (seen, word) in seen.words.iter_mut().zip(one.words) {
                assert_eq!(*seen & word, 0, "{}", field.name());
                *seen |= word;
            }
        }
    }

    #[test]
    fn a_field_of_zero_is_not_a_field_that_is_not_there() {
        let zero = FlowKey::of_match(&Match::any().with(Field::TcpDst, 0u16)).unwrap();
        assert_ne!(zero.mask.applied_to(&FlowKey::NOTHING).as_ref(), &*zero.value);
    }

    fn arbitrary_match() -> impl Strategy<Value = Match> {
        let entry = (0u8..40, any::<u128>(), prop_oneof![Just(u128::MAX), Just(0), any::<u128>()]);
        proptest::collection::vec(entry, 0..6).prop_map(|entries| {
            let mut matching = Match::any();
            for (number, value, mask) in entries {
                matching.set_masked(Field::from_number(number).unwrap(), value, mask);
            }
            matching
        })
    }

    proptest! {
        #[test]
        fn a_key_says_of_a_packet_what_the_match_says(
            matching in arbitrary_match(),
            frame in proptest::collection::vec(any::<u8>(), 14..90),
            present in any::<u64>(),
        ) {
            let mut fields = FrameFields::read(&frame).from_port(PortNo(1));
            // Makes sure that a good part of the packets have the fields that the match names.
            for entry in matching.entries() {
                if let MatchEntry::Field { field, value, .. } = entry
                    && present >> field.number() & 1 == 1
                {
                    fields.set(*field, *value);
                }
            }
            let wanted = FlowKey::of_match(&matching).unwrap();
            let key = FlowKey::of(&fields);
            let says = key.has_all(wanted.mask.fields())
                && wanted.mask.applied_to(&key).as_ref() == &*wanted.value;
            prop_assert_eq!(says, matching.matches(&fields));
        }
    }
}
