//! Reads and writes a match as bytes.
//!
//! Never checks prerequisites: [`super::check_prerequisites`] does, since a packet-in must be readable without them.

use super::plain_field::{Dialect, each_plain_field};
use super::tlv::{CLASS_EXPERIMENTER, Tlv, field_header, match_tlvs};
use super::{MatchFault, bad, number};
use crate::error::BadInput;
use crate::field::{CLASS_BASIC, Field};
use crate::matching::{FieldValue, Match, MatchEntry};

/// How many fields of other classes a match may have. Open vSwitch has about 140 of its own; the bound keeps the search for
/// duplicates short. One more is refused with OFPBMC_BAD_FIELD.
pub const MAX_UNKNOWN_FIELDS: usize = 256;

/// Reads a run of OXM TLVs.
///
/// Fields of OPENFLOW_BASIC are parsed. Fields of other classes are kept unchanged.
///
/// # Errors
/// OFPET_BAD_MATCH with one of these codes (1.3.5, 7.2.3.3 to 7.2.3.6). OFPBMC_BAD_LEN: the length is not the field's
/// or exceeds the input. OFPBMC_BAD_FIELD: OPENFLOW_BASIC has no such number. OFPBMC_BAD_MASK: a mask on a field
/// without masks, or wider than the field. OFPBMC_BAD_VALUE: a value wider than its field. OFPBMC_BAD_WILDCARDS: value
/// bits outside the mask. OFPBMC_DUP_FIELD: a field appears twice.
///
/// ```
/// use flow::{Field, canonical::read_match};
/// let to_ten = [0x80, 0x00, 0x19, 0x08, 10, 0, 0, 0, 255, 0, 0, 0];
/// assert_eq!(read_match(&to_ten).unwrap().get(Field::Ipv4Dst), Some((0x0a00_0000, 0xff00_0000)));
/// let outside_its_mask = [0x80, 0x00, 0x19, 0x08, 10, 0, 0, 1, 255, 0, 0, 0];
/// assert_eq!(read_match(&outside_its_mask).unwrap_err().error.code, 5);
/// ```
pub fn read_match(bytes: &[u8]) -> Result<Match, BadInput> {
    let mut rule = Match::any();
    read_match_into(bytes, &mut rule)?;
    Ok(rule)
}

/// Reads into an existing match: drops its entries and uses its memory again. After an error, it holds what was read
/// before the error. Returns whether the match may have vendor extensions.
///
/// # Errors
/// As [`read_match`].
///
/// ```
/// use flow::Match;
/// use flow::canonical::{Dialect, read_match_into};
/// let mut rule = Match::any();
/// assert_eq!(read_match_into(&[0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1], &mut rule), Ok(Dialect::OpenFlow));
/// assert!(read_match_into(&[0x80, 0x00, 0x00, 0x04, 0, 0, 0], &mut rule).is_err());
/// ```
pub fn read_match_into(bytes: &[u8], rule: &mut Match) -> Result<Dialect, BadInput> {
    rule.clear();
    // Most matches have sound fields of OPENFLOW_BASIC only.
    let is_read = each_plain_field(bytes, |field, value, mask| {
        rule.append(MatchEntry::Field { field, value: number(value), mask: mask.map(number) });
    });
    if is_read { Ok(Dialect::OpenFlow) } else { read_any_match_into(bytes, rule).map(|()| Dialect::Vendors) }
}

/// Reads the TLVs one by one, and says what is wrong with the first that is not sound.
pub(super) fn read_any_match_into(bytes: &[u8], rule: &mut Match) -> Result<(), BadInput> {
    rule.clear();
    let mut known = 0u64;
    let mut unknown = 0;
    for tlv in match_tlvs(bytes) {
        let tlv = tlv?;
        let entry = read_entry(&tlv)?;
        let twice = match &entry {
            MatchEntry::Field { field, .. } => known >> field.number() & 1 == 1,
            MatchEntry::Unknown { .. } => rule.entries().iter().any(|there| there.same_field(&entry)),
        };
        if twice {
            return Err(bad(MatchFault::DupField, tlv.offset, "oxm_field", "the field appears twice"));
        }
        match &entry {
            MatchEntry::Field { field, .. } => known |= 1 << field.number(),
            MatchEntry::Unknown { .. } => unknown += 1,
        }
        if unknown > MAX_UNKNOWN_FIELDS {
            let message = format!("more than {MAX_UNKNOWN_FIELDS} fields outside OPENFLOW_BASIC");
            return Err(bad(MatchFault::BadField, tlv.offset, "oxm_class", message));
        }
        rule.append(entry);
    }
    Ok(())
}

/// Reads and checks one TLV, without regard to its neighbours.
pub(super) fn read_entry(tlv: &Tlv<'_>) -> Result<MatchEntry, BadInput> {
    match tlv.class() {
        CLASS_BASIC => read_field(tlv),
        CLASS_EXPERIMENTER if tlv.payload.len() < 4 => {
            let message = "an experimenter's field has its 4-byte number first";
            Err(bad(MatchFault::BadLen, tlv.offset + 3, "oxm_length", message))
        }
        _ => Ok(MatchEntry::Unknown { header: tlv.header, body: tlv.payload.to_vec() }),
    }
}

fn read_field(tlv: &Tlv<'_>) -> Result<MatchEntry, BadInput> {
    let Some(field) = tlv.field() else {
        let message = format!("OPENFLOW_BASIC has no field {}", tlv.number());
        return Err(bad(MatchFault::BadField, tlv.offset, "oxm_field", message));
    };
    if tlv.has_mask() && !field.maskable() {
        let message = format!("{} takes no mask", field.name());
        return Err(bad(MatchFault::BadMask, tlv.offset, "oxm_hasmask", message));
    }
    let bytes = field.bytes();
    let expected = if tlv.has_mask() { 2 * bytes } else { bytes };
    if tlv.payload.len() != expected {
        let message = format!("{} has {expected} bytes, not {}", field.name(), tlv.payload.len());
        return Err(bad(MatchFault::BadLen, tlv.offset + 3, "oxm_length", message));
    }
    let (value, mask) = tlv.payload.split_at(bytes);
    let (value, mask) = (number(value), tlv.has_mask().then(|| number(mask)));
    if mask.is_some_and(|mask| mask & !field.full_mask() != 0) {
        let message = format!("the mask is wider than {}'s {} bits", field.name(), field.bits());
        return Err(bad(MatchFault::BadMask, tlv.offset + 4 + bytes, "oxm_mask", message));
    }
    if value & !field.full_mask() != 0 {
        let message = format!("the value is wider than {}'s {} bits", field.name(), field.bits());
        return Err(bad(MatchFault::BadValue, tlv.offset + 4, "oxm_value", message));
    }
    if mask.is_some_and(|mask| value & !mask != 0) {
        let message = format!("{} has bits outside its mask", field.name());
        return Err(bad(MatchFault::BadWildcards, tlv.offset + 4, "oxm_value", message));
    }
    Ok(MatchEntry::Field { field, value, mask })
}

/// How many bytes [`write_match`] appends for a match.
pub fn match_len(rule: &Match) -> usize {
    rule.entries().iter().map(entry_len).sum()
}

pub(super) fn entry_len(entry: &MatchEntry) -> usize {
    match entry {
        MatchEntry::Field { field, mask, .. } => 4 + field.bytes() * if mask.is_some() { 2 } else { 1 },
        MatchEntry::Unknown { body, .. } => 4 + body.len().min(0xff),
    }
}

/// Appends a match's TLVs in the order of its entries: the bytes that [`read_match`] read.
///
/// Bits of a value outside its field or mask are dropped. The length of an unknown field is that of its body. So the
/// result can always be read.
pub fn write_match(rule: &Match, out: &mut Vec<u8>) {
    out.reserve(match_len(rule));
    let mut writer = MatchWriter::new(out);
    for entry in rule.entries() {
        match entry {
            MatchEntry::Field { field, value, mask: None } => writer.field(*field, *value),
            MatchEntry::Field { field, value, mask: Some(mask) } => writer.masked(*field, *value, *mask),
            MatchEntry::Unknown { header, body } => writer.unknown(*header, body),
        };
    }
}

/// Appends TLVs one by one, without a [`Match`] and without allocation except the buffer's growth. The caller makes
/// sure that no field appears twice.
///
/// ```
/// use flow::{Field, PortNo, canonical::{MatchWriter, find_field}};
/// let mut bytes = Vec::new();
/// MatchWriter::new(&mut bytes).field(Field::InPort, PortNo(3)).field(Field::EthType, 0x0800u16);
/// assert_eq!(find_field(&bytes, Field::EthType), Some(0x0800));
/// ```
#[derive(Debug)]
pub struct MatchWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> MatchWriter<'a> {
    /// A writer that appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        MatchWriter { out }
    }

    /// Appends a field with its whole value. Bits that the field does not have are dropped.
    #[inline]
    pub fn field(&mut self, field: Field, value: impl Into<FieldValue>) -> &mut Self {
        // Header and value at once: of a field that is known where this is compiled, they are two words.
        let mut bytes = [0; 20];
        let length = field.bytes();
        let number = (value.into().0 & field.full_mask()).to_be_bytes();
        bytes[..4].copy_from_slice(&field_header(field, false).to_be_bytes());
        bytes[4..4 + length].copy_from_slice(&number[16 - length..]);
        self.out.extend_from_slice(&bytes[..4 + length]);
        self
    }

    /// Appends a field with a mask. Bits outside the mask or the field are dropped.
    #[inline]
    pub fn masked(
        &mut self,
        field: Field,
        value: impl Into<FieldValue>,
        mask: impl Into<FieldValue>,
    ) -> &mut Self {
        let mask = mask.into().0;
        self.out.extend_from_slice(&field_header(field, true).to_be_bytes());
        self.number(field, value.into().0 & mask).number(field, mask)
    }

    /// Appends a field of another class: its OXM header and its payload. The length comes from the body, of which at
    /// most 255 bytes are written.
    pub fn unknown(&mut self, header: u32, body: &[u8]) -> &mut Self {
        let body = body.get(..0xff).unwrap_or(body);
        let header = header & !0xff | body.len() as u32;
        self.out.extend_from_slice(&header.to_be_bytes());
        self.out.extend_from_slice(body);
        self
    }

    #[inline]
    fn number(&mut self, field: Field, value: u128) -> &mut Self {
        let bytes = (value & field.full_mask()).to_be_bytes();
        self.out.extend_from_slice(&bytes[16 - field.bytes()..]);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], code: u16, offset: usize) {
        let refused = read_match(bytes).unwrap_err();
        assert_eq!((refused.error.kind, refused.error.code, refused.offset), (4, code, offset), "{refused}");
    }

    #[test]
    fn lengths_that_lie_are_bad_len() {
        check(&[0x80], 1, 0);
        check(&[0x80, 0, 0, 4, 0, 0, 0], 1, 0);
        check(&[0x80, 0, 0, 3, 0, 0, 0], 1, 3);
        check(&[0x80, 0, 0, 4, 0, 0, 0, 1, 0x80], 1, 8);
        check(&[0xff, 0xff, 0, 3, 0, 0, 0], 1, 3);
    }

    #[test]
    fn a_number_that_openflow_basic_lacks_is_bad_field() {
        check(&[0x80, 0, 40 << 1, 2, 0, 0], 6, 0);
    }

    #[test]
    fn a_mask_where_none_may_be_is_bad_mask() {
        check(&[0x80, 0, 1, 8, 0, 0, 0, 1, 255, 255, 255, 255], 8, 0);
    }

    #[test]
    fn bits_that_a_field_does_not_have_are_refused() {
        check(&[0x80, 0, 6 << 1, 2, 0x20, 0], 7, 4);
        check(&[0x80, 0, 6 << 1 | 1, 4, 0, 0, 0x20, 0], 8, 6);
    }

    #[test]
    fn bits_outside_the_mask_are_bad_wildcards() {
        check(&[0x80, 0, 11 << 1 | 1, 8, 10, 0, 0, 1, 255, 0, 0, 0], 5, 4);
    }

    #[test]
    fn a_field_that_is_there_twice_is_dup_field() {
        check(&[0x80, 0, 5 << 1, 2, 8, 0, 0x80, 0, 5 << 1, 2, 8, 0], 10, 6);
        check(&[0, 1, 0, 1, 9, 0, 1, 1, 2, 9, 9], 10, 5);
    }

    #[test]
    fn too_many_unknown_fields_are_refused() {
        let bytes: Vec<u8> = (0..=256u16).flat_map(|class| [(class >> 8) as u8, class as u8, 0, 0]).collect();
        check(&bytes, 6, 1024);
        assert_eq!(read_match(&bytes[..1024]).unwrap().entries().len(), 256);
    }

    #[test]
    fn other_classes_are_kept_whole() {
        let tcp_flags_of_the_onf = [0xff, 0xff, 42 << 1, 6, 0x4f, 0x4e, 0x46, 0, 0, 2];
        let rule = read_match(&tcp_flags_of_the_onf).unwrap();
        let mut again = Vec::new();
        write_match(&rule, &mut again);
        assert_eq!(again, tcp_flags_of_the_onf);
    }

    #[test]
    fn two_experimenters_may_use_one_number() {
        let bytes = [0xff, 0xff, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0, 4, 0, 0, 0, 2];
        assert_eq!(read_match(&bytes).unwrap().entries().len(), 2);
    }
}
