//! A match: the packets to which a rule applies.
//!
//! Keeps the entries in their order, so that bytes are written as they were read. A field never appears twice, and a
//! value never has a bit outside its mask. Readers refuse both.

use crate::field::Field;
use crate::mac::MacAddr;
use crate::port::PortNo;

/// One part of a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatchEntry {
    /// A field of OpenFlow 1.3.
    Field {
        /// The field.
        field: Field,
        /// The value, right-aligned; bits outside the mask are zero.
        value: u128,
        /// The bits that count; `None` means all. A mask of all ones is kept.
        mask: Option<u128>,
    },
    /// A TLV of another class (Nicira's, an experimenter's), kept unchanged.
    Unknown {
        /// The 32-bit OXM header: class, field, has-mask, length.
        header: u32,
        /// The payload, `header & 0xff` bytes.
        body: Vec<u8>,
    },
}

/// The packets that match all entries. Without entries: every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match {
    entries: Vec<MatchEntry>,
}

impl Match {
    /// The match of every packet.
    pub const fn any() -> Self {
        Match { entries: Vec::new() }
    }

    /// Its entries, in their original order.
    pub fn entries(&self) -> &[MatchEntry] {
        &self.entries
    }

    /// Whether it matches every packet.
    pub fn is_any(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value and the mask of a field. The mask is all ones if none was given.
    pub fn get(&self, wanted: Field) -> Option<(u128, u128)> {
        self.entries.iter().find_map(|entry| match entry {
            MatchEntry::Field { field, value, mask } if *field == wanted => {
                Some((*value, mask.unwrap_or(wanted.full_mask())))
            }
            _ => None,
        })
    }

    /// Adds a field with its whole value, or replaces it. Bits that the field does not have are dropped.
    pub fn set(&mut self, field: Field, value: u128) {
        self.put(MatchEntry::Field { field, value: value & field.full_mask(), mask: None });
    }

    /// Adds a field with a mask, or replaces it. Bits outside the mask or the field are dropped.
    pub fn set_masked(&mut self, field: Field, value: u128, mask: u128) {
        let mask = mask & field.full_mask();
        self.put(MatchEntry::Field { field, value: value & mask, mask: Some(mask) });
    }

    /// The same with one more field; for building a match in an expression.
    pub fn with(mut self, field: Field, value: impl Into<FieldValue>) -> Self {
        self.set(field, value.into().0);
        self
    }

    /// The same with one more masked field.
    pub fn with_masked(
        mut self,
        field: Field,
        value: impl Into<FieldValue>,
        mask: impl Into<FieldValue>,
    ) -> Self {
        self.set_masked(field, value.into().0, mask.into().0);
        self
    }

    /// Adds an entry unchanged, or replaces the one for the same field.
    pub fn put(&mut self, entry: MatchEntry) {
        match self.entries.iter_mut().find(|there| there.same_field(&entry)) {
            Some(there) => *there = entry,
            None => self.entries.push(entry),
        }
    }

    /// Drops every entry and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Becomes a copy of `other` and keeps its own memory.
    pub fn copy_from(&mut self, other: &Match) {
        self.entries.clone_from(&other.entries);
    }

    /// Keeps the entries for which `wanted` returns true, in their order.
    pub(crate) fn retain(&mut self, wanted: impl FnMut(&MatchEntry) -> bool) {
        self.entries.retain(wanted);
    }

    /// Adds an entry. The caller knows that its field is not present yet.
    pub(crate) fn append(&mut self, entry: MatchEntry) {
        self.entries.push(entry);
    }

    /// Sorts the entries: OpenFlow's fields first, in the order of their numbers, so that prerequisites come first.
    /// Fields of other classes follow in their order.
    pub fn sorted(mut self) -> Self {
        self.entries.sort_by_key(|entry| match entry {
            MatchEntry::Field { field, .. } => field.number(),
            MatchEntry::Unknown { .. } => u8::MAX,
        });
        self
    }

    /// Removes a field. Returns whether it was present.
    pub fn remove(&mut self, unwanted: Field) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !matches!(entry, MatchEntry::Field { field, .. } if *field == unwanted));
        self.entries.len() < before
    }
}

impl MatchEntry {
    /// Whether both are about the same field, whatever their values.
    pub fn same_field(&self, other: &MatchEntry) -> bool {
        match (self, other) {
            (MatchEntry::Field { field: one, .. }, MatchEntry::Field { field: two, .. }) => one == two,
            (
                MatchEntry::Unknown { header: one, body: first },
                MatchEntry::Unknown { header: two, body: second },
            ) => {
                // Compare class and field. Mask bit and length are only part of the form. Each experimenter (class
                // 0xffff) numbers its own fields; the experimenter's number is the first four bytes.
                one >> 9 == two >> 9 && (one >> 16 != 0xffff || first.get(..4) == second.get(..4))
            }
            _ => false,
        }
    }
}

/// A field's value as a number, converted from ports, addresses and integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue(pub u128);

macro_rules! field_value_from_numbers {
    ($($number:ty),*) => {
        $(impl From<$number> for FieldValue {
            fn from(number: $number) -> Self {
                FieldValue(u128::from(number))
            }
        })*
    };
}
field_value_from_numbers!(u8, u16, u32, u64, u128);

impl From<MacAddr> for FieldValue {
    fn from(address: MacAddr) -> Self {
        FieldValue(u128::from(address.to_u64()))
    }
}

impl From<PortNo> for FieldValue {
    fn from(port: PortNo) -> Self {
        FieldValue(u128::from(port.0))
    }
}

impl From<std::net::Ipv4Addr> for FieldValue {
    fn from(address: std::net::Ipv4Addr) -> Self {
        FieldValue(u128::from(u32::from(address)))
    }
}

impl From<std::net::Ipv6Addr> for FieldValue {
    fn from(address: std::net::Ipv6Addr) -> Self {
        FieldValue(u128::from(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_there_once() {
        let mut rule = Match::any().with(Field::InPort, PortNo(1)).with(Field::EthType, 0x800u16);
        rule.set(Field::InPort, 2);
        assert_eq!(rule.entries().len(), 2);
        assert_eq!(rule.get(Field::InPort), Some((2, 0xffff_ffff)));
    }

    #[test]
    fn bits_outside_the_mask_are_dropped() {
        let rule = Match::any().with_masked(Field::Ipv4Src, 0x0a00_0001u32, 0xff00_0000u32);
        assert_eq!(rule.get(Field::Ipv4Src), Some((0x0a00_0000, 0xff00_0000)));
    }
}
