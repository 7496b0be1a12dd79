//! Reads OXM TLVs in place, without building a [`crate::Match`].
//!
//! Never allocates, except for the sentence of an error.

use super::{MatchFault, bad, number};
use crate::error::BadInput;
use crate::field::{CLASS_BASIC, Field};

/// `OFPXMC_EXPERIMENTER`: the payload begins with the experimenter's number.
pub(crate) const CLASS_EXPERIMENTER: u16 = 0xffff;

/// The header of a field of OPENFLOW_BASIC: class, field, has-mask, length (1.3.5, 7.2.3.2).
#[inline]
pub const fn field_header(field: Field, has_mask: bool) -> u32 {
    let length = field.bytes() as u32 * if has_mask { 2 } else { 1 };
    (CLASS_BASIC as u32) << 16 | (field.number() as u32) << 9 | (has_mask as u32) << 8 | length
}

/// One OXM TLV in place. Its length is within the input. Nothing else has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// The 32-bit OXM header: class, field, has-mask, length.
    pub header: u32,
    /// The bytes after the header: the value, and the mask if the header has the mask bit.
    pub payload: &'a [u8],
    /// Bytes from the start of the run to the header.
    pub offset: usize,
}

impl<'a> Tlv<'a> {
    /// The class (`oxm_class`).
    #[inline]
    pub const fn class(&self) -> u16 {
        (self.header >> 16) as u16
    }

    /// The field's number within its class (`oxm_field`).
    #[inline]
    pub const fn number(&self) -> u8 {
        (self.header >> 9) as u8 & 0x7f
    }

    /// Whether the header says that a mask follows the value (`oxm_hasmask`).
    #[inline]
    pub const fn has_mask(&self) -> bool {
        self.header & 0x100 != 0
    }

    /// The field, if it is one of OpenFlow 1.3's.
    #[inline]
    pub fn field(&self) -> Option<Field> {
        if self.class() == CLASS_BASIC { Field::from_number(self.number()) } else { None }
    }

    /// The value as a number, if it is one of OpenFlow 1.3's fields and has the field's length.
    #[inline]
    pub fn value(&self) -> Option<u128> {
        let field = self.field()?;
        let plausible = self.payload.len() == field.bytes() * if self.has_mask() { 2 } else { 1 };
        if plausible { self.payload.get(..field.bytes()).map(number) } else { None }
    }

    /// The mask as a number, under the same conditions and if there is one.
    #[inline]
    pub fn mask(&self) -> Option<u128> {
        let field = self.field()?;
        let plausible = self.has_mask() && self.payload.len() == field.bytes() * 2;
        if plausible { self.payload.get(field.bytes()..).map(number) } else { None }
    }
}

/// Iterates over the TLVs of a sequence. Ends after the first that exceeds the input.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// Iterates over a sequence of OXM TLVs in place.
///
/// ```
/// use flow::{Field, canonical::match_tlvs};
/// let in_port_1 = [0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1];
/// let tlv = match_tlvs(&in_port_1).next().unwrap().unwrap();
/// assert_eq!((tlv.field(), tlv.value()), (Some(Field::InPort), Some(1)));
/// ```
#[inline]
pub fn match_tlvs(bytes: &[u8]) -> Tlvs<'_> {
    Tlvs { rest: bytes, offset: 0 }
}

/// The value of a field in a sequence of TLVs; of a masked field, the bits within the mask. `None` if the field is
/// missing, or comes after damaged bytes.
///
/// ```
/// use flow::{Field, canonical::find_field};
/// let in_port_1 = [0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1];
/// assert_eq!(find_field(&in_port_1, Field::InPort), Some(1));
/// assert_eq!(find_field(&in_port_1, Field::Metadata), None);
/// ```
pub fn find_field(bytes: &[u8], wanted: Field) -> Option<u128> {
    let tlv = match_tlvs(bytes).map_while(Result::ok).find(|tlv| tlv.field() == Some(wanted))?;
    Some(tlv.value()? & tlv.mask().unwrap_or(u128::MAX))
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, BadInput>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let split = split_tlv(self.rest);
        let Some((header, payload, rest)) = split else {
            let left = std::mem::take(&mut self.rest).len();
            return Some(Err(cut_off(self.offset, left)));
        };
        let tlv = Tlv { header, payload, offset: self.offset };
        self.offset += 4 + payload.len();
        self.rest = rest;
        Some(Ok(tlv))
    }
}

#[inline]
fn split_tlv(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (header, after) = bytes.split_first_chunk::<4>()?;
    let header = u32::from_be_bytes(*header);
    let (payload, rest) = after.split_at_checked((header & 0xff) as usize)?;
    Some((header, payload, rest))
}

#[cold]
fn cut_off(offset: usize, left: usize) -> BadInput {
    let message = format!("a field needs 4 bytes and the length that it states; only {left} bytes are left");
    bad(MatchFault::BadLen, offset, "oxm_length", message)
}
