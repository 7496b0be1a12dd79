//! The table of OpenFlow's own match fields, which checks a field's bytes in place.
//!
//! In: OXM TLVs. Out: whether they are sound, and their values. It never says what is wrong: the readers do. It allocates
//! nothing.

use super::tlv::field_header;
use crate::field::Field;

/// Whether readable bytes have vendor extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Only OpenFlow's own definitions: the meaning of every part is known.
    OpenFlow,
    /// There may be vendor extensions. [`crate::vendor`] finds them.
    Vendors,
}

/// The form of a field's bytes.
#[derive(Clone, Copy)]
struct Shape {
    /// The OXM header without a mask; 0 if no field has this number.
    header: u32,
    bytes: u8,
    maskable: bool,
    /// The bits of the first two bytes that are outside the field.
    outside: u16,
}

/// Indexed by the seven bits of a field's number, so that a look-up needs no bounds check.
const SHAPES: [Shape; 128] = {
    let mut shapes = [Shape { header: 0, bytes: 0, maskable: false, outside: 0 }; 128];
    let mut number = 0;
    while number < 128 {
        // Below 128, so it fits.
        if let Some(field) = Field::from_number(number as u8) {
            shapes[number] = shape(field);
        }
        number += 1;
    }
    shapes
};

const fn shape(field: Field) -> Shape {
    let bytes = field.bytes();
    let spare_bits = bytes as u32 * 8 - field.bits();
    // At most twelve bits are spare: the labels of 20 bits in four bytes.
    let outside = !(u16::MAX >> spare_bits);
    Shape { header: field_header(field, false), bytes: bytes as u8, maskable: field.maskable(), outside }
}

/// Whether a value or a mask has a bit outside its field.
#[inline]
fn is_outside(shape: &Shape, value: &[u8]) -> bool {
    if shape.outside == 0 {
        return false;
    }
    let first = value.first().copied().unwrap_or(0);
    let second = value.get(1).copied().unwrap_or(0);
    u16::from_be_bytes([first, second]) & shape.outside != 0
}

/// Reads a field of OPENFLOW_BASIC without a mask at the front. Returns the rest.
#[inline]
fn take_whole<'a>(header: u32, shape: &Shape, after: &'a [u8]) -> Option<&'a [u8]> {
    let (value, rest) = after.split_at_checked(usize::from(shape.bytes))?;
    (header == shape.header && !is_outside(shape, value)).then_some(rest)
}

/// The same with a mask.
fn take_masked<'a>(header: u32, shape: &Shape, after: &'a [u8]) -> Option<&'a [u8]> {
    let bytes = usize::from(shape.bytes);
    let ((value, after), is_there) = (after.split_at_checked(bytes)?, shape.maskable);
    let (mask, rest) = after.split_at_checked(bytes)?;
    let is_within = value.iter().zip(mask).all(|(value, mask)| value & !mask == 0);
    // The mask's bit is set, and the length is twice the field's.
    let expected = (shape.header | 0x100) + u32::from(shape.bytes);
    (is_there && header == expected && is_within && !is_outside(shape, mask)).then_some(rest)
}

/// Hands each field to `take`, with the bytes of its value and of its mask, as long as all are sound fields of
/// OPENFLOW_BASIC and none is there twice. Returns whether that holds to the end.
#[inline]
pub(super) fn each_plain_field<'a>(
    mut bytes: &'a [u8],
    mut take: impl FnMut(Field, &'a [u8], Option<&'a [u8]>),
) -> bool {
    let mut seen = 0u64;
    while let Some((header, after)) = bytes.split_first_chunk::<4>() {
        let header = u32::from_be_bytes(*header);
        let number = header >> 9 & 0x7f;
        let shape = &SHAPES[number as usize];
        let is_masked = header & 0x100 != 0;
        let taken =
            if is_masked { take_masked(header, shape, after) } else { take_whole(header, shape, after) };
        // A field's number is below 64, and that of a sound field is one of OpenFlow's.
        let bit = 1u64 << (number & 63);
        let (Some(rest), Some(field)) = (taken, Field::from_number(number as u8)) else { return false };
        if seen & bit != 0 {
            return false;
        }
        seen |= bit;
        let (value, mask) = after.split_at(usize::from(shape.bytes));
        take(field, value, if is_masked { mask.get(..usize::from(shape.bytes)) } else { None });
        bytes = rest;
    }
    bytes.is_empty()
}

/// The bytes after a set-field's TLV, if the TLV is a complete field of OPENFLOW_BASIC.
#[inline]
pub(super) fn after_set_field(bytes: &[u8]) -> Option<&[u8]> {
    let (header, after) = bytes.split_first_chunk::<4>()?;
    let header = u32::from_be_bytes(*header);
    take_whole(header, &SHAPES[(header >> 9 & 0x7f) as usize], after)
}
