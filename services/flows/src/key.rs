//! What makes two entries of a switch the same, and what makes their contents the same.
//!
//! ```text
//!   table, priority, match ──> EntryKey (62 bits)         key, instructions, time-outs ──> Content (48 bits: the rule's cookie)
//! ```
//!
//! In: canonical bytes. Out: numbers that are the same in every run of the service. The order of a match's fields does not matter, and
//! neither does a mask of zeros or of ones. The hash is that of the standard library (SipHash with a fixed key). If a later version
//! of it makes other numbers, all rules are replaced once.

use std::hash::{DefaultHasher, Hasher};

/// The name of a rule, group or meter within its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey(u64);

/// What kind of entry a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A rule, with its number.
    Rule(u64),
    /// A group, with its id.
    Group(u32),
    /// A meter, with its id.
    Meter(u32),
}

const KIND_SHIFT: u32 = 62;
const GROUP: u64 = 1;
const METER: u64 = 2;

impl EntryKey {
    /// The key of a group.
    pub fn group(group_id: u32) -> EntryKey {
        EntryKey(GROUP << KIND_SHIFT | u64::from(group_id))
    }

    /// The key of a meter.
    pub fn meter(meter_id: u32) -> EntryKey {
        EntryKey(METER << KIND_SHIFT | u64::from(meter_id))
    }

    /// The key of the rule with this number, as it is in its id.
    pub fn of_rule_number(number: u64) -> EntryKey {
        EntryKey(number & ((1 << KIND_SHIFT) - 1))
    }

    /// The key of a rule with this match, as canonical bytes.
    pub fn rule(table_id: u8, priority: u16, matching: &[u8]) -> EntryKey {
        let mut hasher = DefaultHasher::new();
        hasher.write_u32(u32::from(table_id) << 16 | u32::from(priority));
        let mut fields = Fields::default();
        if !fields.read(matching) {
            // A damaged or very long match stands for itself. The kernel refuses a damaged one.
            hasher.write(matching);
        }
        fields.sorted().iter().for_each(|field| field.hash(&mut hasher));
        EntryKey::of_rule_number(hasher.finish())
    }

    /// What it names.
    pub fn kind(self) -> EntryKind {
        // Ids of groups and meters have 32 bits.
        match self.0 >> KIND_SHIFT {
            GROUP => EntryKind::Group(self.0 as u32),
            METER => EntryKind::Meter(self.0 as u32),
            _ => EntryKind::Rule(self.0),
        }
    }

    /// Whether it names a rule.
    pub fn is_rule(self) -> bool {
        self.0 >> KIND_SHIFT == 0
    }

    /// The number of a rule in its id, or the id of a group or meter.
    pub fn number(self) -> u64 {
        match self.kind() {
            EntryKind::Rule(number) => number,
            EntryKind::Group(id) | EntryKind::Meter(id) => id.into(),
        }
    }

    /// Its bits, as a hasher of tables needs them.
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// The fields of a match that are sorted in place. A match with more fields stands for itself.
const FIELDS_MAX: usize = 16;

#[derive(Clone, Copy, Default)]
struct FieldBits<'a> {
    header: u32,
    value: &'a [u8],
    mask: Option<&'a [u8]>,
}

impl FieldBits<'_> {
    fn hash(&self, hasher: &mut DefaultHasher) {
        hasher.write_u32(self.header);
        match self.mask {
            None => hasher.write(self.value),
            // Bits outside the mask mean nothing.
            Some(mask) => {
                self.value
                    .iter()
                    .zip(mask)
                    .for_each(|(value, mask)| hasher.write_u16(u16::from_be_bytes([value & mask, *mask])));
            }
        }
    }
}

#[derive(Default)]
struct Fields<'a> {
    fields: [FieldBits<'a>; FIELDS_MAX],
    length: usize,
}

/// The bit of an OXM header that says that a mask follows, and the length behind it (OpenFlow 1.3.5, 7.2.3.2).
const HAS_MASK: u32 = 0x100;
const LENGTH: u32 = 0xff;

impl<'a> Fields<'a> {
    /// Whether all fields were read.
    fn read(&mut self, mut bytes: &'a [u8]) -> bool {
        while !bytes.is_empty() {
            let Some((header, rest)) = bytes.split_first_chunk::<4>() else { return false };
            let header = u32::from_be_bytes(*header);
            let Some((payload, rest)) = rest.split_at_checked((header & LENGTH) as usize) else {
                return false;
            };
            bytes = rest;
            let (value, mask) = match header & HAS_MASK {
                0 => (payload, None),
                _ => {
                    let (value, mask) = payload.split_at(payload.len() / 2);
                    (value, Some(mask).filter(|mask| mask.iter().any(|byte| *byte != 0xff)))
                }
            };
            if mask.is_some_and(|mask| mask.iter().all(|byte| *byte == 0)) {
                continue;
            }
            let Some(place) = self.fields.get_mut(self.length) else { return false };
            *place = FieldBits { header: header & !(HAS_MASK | LENGTH), value, mask };
            self.length += 1;
        }
        true
    }

    fn sorted(&mut self) -> &[FieldBits<'a>] {
        let fields = &mut self.fields[..self.length];
        fields.sort_unstable_by_key(|field| field.header);
        fields
    }
}

/// The bits of a content.
const CONTENT_BITS: u64 = (1 << 48) - 1;

/// The content of a rule: 48 bits, which are also the app's part of its cookie. So the rules of a switch say by themselves whether they
/// are as wanted, also after a restart.
pub fn rule_content(key: EntryKey, instructions: &[u8], idle_timeout_s: u16, hard_timeout_s: u16) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(key.0);
    hasher.write_u32(u32::from(idle_timeout_s) << 16 | u32::from(hard_timeout_s));
    hasher.write(instructions);
    hasher.finish() & CONTENT_BITS
}

/// The content of a group or a meter.
pub fn other_content(key: EntryKey, kind: u16, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(key.0);
    hasher.write_u16(kind);
    hasher.write(body);
    hasher.finish() & CONTENT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::write_match;
    use flow::text::parse_match;
    use flow::{Field, Match};

    fn bytes(rule: &Match) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_match(rule, &mut bytes);
        bytes
    }

    fn key(text: &str) -> EntryKey {
        EntryKey::rule(0, 1, &bytes(&parse_match(text).unwrap()))
    }

    #[test]
    fn what_a_switch_takes_for_one_rule_has_one_key() {
        let one = Match::any().with(Field::InPort, 1u32).with(Field::EthType, 0x0800u16);
        let other = Match::any().with(Field::EthType, 0x0800u16).with(Field::InPort, 1u32);
        assert_eq!(EntryKey::rule(0, 1, &bytes(&one)), EntryKey::rule(0, 1, &bytes(&other)));
        let full = Match::any().with_masked(Field::EthDst, 5u64, 0xffff_ffff_ffffu64);
        assert_eq!(EntryKey::rule(0, 1, &bytes(&full)), key("dl_dst=00:00:00:00:00:05"));
        assert_ne!(key("ip,nw_dst=10.0.0.0/8"), key("ip,nw_dst=10.0.0.0/9"));
        assert_ne!(key("ip,nw_dst=10.0.0.0/8"), key("ip,nw_src=10.0.0.0/8"));
        assert_ne!(key(""), EntryKey::rule(1, 1, &[]));
        assert_ne!(key(""), EntryKey::rule(0, 2, &[]));
        assert!(key("").is_rule() && !EntryKey::group(1).is_rule());
        assert_ne!(EntryKey::group(1), EntryKey::meter(1));
    }

    #[test]
    fn a_damaged_match_has_a_key_too() {
        let sound = bytes(&parse_match("tcp,tp_dst=80").unwrap());
        let keys: std::collections::BTreeSet<_> =
            (0..sound.len()).map(|end| EntryKey::rule(0, 1, &sound[..end])).collect();
        assert!(keys.len() > 2 && !keys.contains(&EntryKey::rule(0, 1, &sound)));
    }
}
