//! Whether bytes can be read, found out in place: the readers' judgement without their values.
//!
//! What most rules consist of is judged by one table and allocates nothing. What that table does not know (fields of other classes,
//! and whatever is wrong) is left to the readers themselves, so that both always say the same.

use super::action_bytes::{actions_raw, kind as action_kind, read_actions};
use super::instruction_bytes::{instructions_raw, kind as instruction_kind, read_instructions};
use super::match_bytes::read_match;
use crate::error::BadInput;
use crate::field::{CLASS_BASIC, Field};

/// Whether [`read_match`] can read these bytes.
///
/// # Errors
/// As [`read_match`].
///
/// ```
/// use flow::canonical::check_match;
/// assert!(check_match(&[0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1]).is_ok());
/// assert!(check_match(&[0x80, 0x00, 0x00, 0x04, 0, 0, 0]).is_err());
/// ```
#[inline]
pub fn check_match(bytes: &[u8]) -> Result<(), BadInput> {
    if match_is_plain(bytes) { Ok(()) } else { read_match(bytes).map(drop) }
}

/// Whether [`read_actions`] can read these bytes.
///
/// # Errors
/// As [`read_actions`].
#[inline]
pub fn check_actions(bytes: &[u8]) -> Result<(), BadInput> {
    if actions_are_plain(bytes) { Ok(()) } else { read_actions(bytes).map(drop) }
}

/// Whether [`read_instructions`] can read these bytes.
///
/// # Errors
/// As [`read_instructions`].
#[inline]
pub fn check_instructions(bytes: &[u8]) -> Result<(), BadInput> {
    if instructions_are_plain(bytes) { Ok(()) } else { read_instructions(bytes).map(drop) }
}

/// What a field's bytes must be like.
#[derive(Clone, Copy)]
struct Shape {
    bytes: u8,
    maskable: bool,
    /// Of the first two bytes, the bits that the field does not have.
    outside: u16,
}

const SHAPES: [Shape; 40] = {
    let mut shapes = [Shape { bytes: 0, maskable: false, outside: 0 }; 40];
    let mut number = 0;
    while number < 40 {
        // The number is below 40, and every number below 40 is a field's.
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
    Shape { bytes: bytes as u8, maskable: field.maskable(), outside }
}

/// Whether a value or a mask has a bit that its field has not.
#[inline]
fn is_outside(shape: Shape, value: &[u8]) -> bool {
    let first = value.first().copied().unwrap_or(0);
    let second = value.get(1).copied().unwrap_or(0);
    u16::from_be_bytes([first, second]) & shape.outside != 0
}

/// Takes a field of OPENFLOW_BASIC off the front: its number, and what follows it. `None` for anything that is not sound or not plain.
#[inline]
fn take_plain_field(bytes: &[u8], may_be_masked: bool) -> Option<(u32, &[u8])> {
    let (header, after) = bytes.split_first_chunk::<4>()?;
    let header = u32::from_be_bytes(*header);
    let number = header >> 9 & 0x7f;
    let shape = *SHAPES.get(number as usize)?;
    let (length, has_mask) = ((header & 0xff) as usize, header & 0x100 != 0);
    let (payload, rest) = after.split_at_checked(length)?;
    let (value, mask) = payload.split_at_checked(usize::from(shape.bytes))?;
    let sound = if has_mask {
        let masked = value.iter().zip(mask).all(|(value, mask)| value & !mask == 0);
        may_be_masked && shape.maskable && mask.len() == value.len() && masked && !is_outside(shape, mask)
    } else {
        mask.is_empty() && !is_outside(shape, value)
    };
    (header >> 16 == u32::from(CLASS_BASIC) && sound).then_some((number, rest))
}

#[inline]
fn match_is_plain(mut bytes: &[u8]) -> bool {
    let mut seen = 0u64;
    while !bytes.is_empty() {
        let Some((number, rest)) = take_plain_field(bytes, true) else { return false };
        if seen >> number & 1 == 1 {
            return false;
        }
        seen |= 1 << number;
        bytes = rest;
    }
    true
}

#[inline]
fn actions_are_plain(bytes: &[u8]) -> bool {
    actions_raw(bytes).all(|raw| {
        let Ok(raw) = raw else { return false };
        match raw.kind {
            action_kind::OUTPUT => raw.bytes.len() == 16,
            action_kind::SET_FIELD => raw.bytes.get(4..).is_some_and(|field| {
                // The padding is shorter than a multiple of eight, and nobody's field.
                take_plain_field(field, false).is_some_and(|(_, padding)| padding.len() < 8)
            }),
            action_kind::EXPERIMENTER => true,
            action_kind::COPY_TTL_OUT..=action_kind::COPY_TTL_IN
            | action_kind::SET_MPLS_TTL..=action_kind::DEC_NW_TTL
            | action_kind::PUSH_PBB
            | action_kind::POP_PBB => raw.bytes.len() == 8,
            _ => false,
        }
    })
}

#[inline]
fn instructions_are_plain(bytes: &[u8]) -> bool {
    let mut seen = 0u32;
    instructions_raw(bytes).all(|raw| {
        let Ok(raw) = raw else { return false };
        let sound = match raw.kind {
            instruction_kind::GOTO_TABLE | instruction_kind::CLEAR_ACTIONS | instruction_kind::METER => {
                raw.bytes.len() == 8
            }
            instruction_kind::WRITE_METADATA => raw.bytes.len() == 24,
            instruction_kind::WRITE_ACTIONS | instruction_kind::APPLY_ACTIONS => {
                actions_are_plain(raw.bytes.get(8..).unwrap_or_default())
            }
            // Experimenters' are rare; the reader knows them.
            _ => false,
        };
        let first = seen >> (raw.kind & 31) & 1 == 0;
        seen |= 1 << (raw.kind & 31);
        sound && first
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary;
    use crate::canonical::{write_actions, write_instructions, write_match};
    use proptest::prelude::*;

    /// The same bytes with some of them changed and the end cut off.
    fn damaged(mut bytes: Vec<u8>, changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
        for (place, value) in changes {
            if !bytes.is_empty() {
                let place = place % bytes.len();
                bytes[place] = *value;
            }
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    }

    fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
        proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3)
    }

    proptest! {
        #[test]
        fn a_match_is_judged_as_it_is_read(rule in arbitrary::rule(), changes in changes(), cut in 0usize..3) {
            let mut bytes = Vec::new();
            write_match(&rule, &mut bytes);
            prop_assert!(check_match(&bytes).is_ok());
            let bytes = damaged(bytes, &changes, cut);
            prop_assert_eq!(check_match(&bytes), read_match(&bytes).map(drop));
        }

        #[test]
        fn actions_are_judged_as_they_are_read(
            actions in arbitrary::actions(), changes in changes(), cut in 0usize..10
        ) {
            let mut bytes = Vec::new();
            if write_actions(&actions, &mut bytes).is_ok() {
                prop_assert!(check_actions(&bytes).is_ok());
            }
            let bytes = damaged(bytes, &changes, cut);
            prop_assert_eq!(check_actions(&bytes), read_actions(&bytes).map(drop));
        }

        #[test]
        fn instructions_are_judged_as_they_are_read(
            instructions in arbitrary::instructions(), changes in changes(), cut in 0usize..10
        ) {
            let mut bytes = Vec::new();
            if write_instructions(&instructions, &mut bytes).is_ok() {
                prop_assert_eq!(check_instructions(&bytes), read_instructions(&bytes).map(drop));
            }
            let bytes = damaged(bytes, &changes, cut);
            prop_assert_eq!(check_instructions(&bytes), read_instructions(&bytes).map(drop));
        }

        #[test]
        fn any_bytes_are_judged_as_they_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(check_match(&bytes), read_match(&bytes).map(drop));
            prop_assert_eq!(check_actions(&bytes), read_actions(&bytes).map(drop));
            prop_assert_eq!(check_instructions(&bytes), read_instructions(&bytes).map(drop));
        }
    }
}
