//! Checks in place whether bytes can be read, without making values.
//!
//! One table checks OpenFlow's own fields, actions and instructions, and allocates nothing. The readers check the rest:
//! vendor extensions, and all that is wrong. So both always agree.

use super::action_bytes::{actions_raw, kind as action_kind, read_actions};
use super::instruction_bytes::{instructions_raw, kind as instruction_kind, read_instructions};
use super::plain_field::{Dialect, after_set_field};
use crate::error::BadInput;

/// Checks whether [`read_actions`] can read these bytes, and whether they may have vendor extensions.
///
/// # Errors
/// As [`read_actions`].
#[inline]
pub fn check_actions(bytes: &[u8]) -> Result<Dialect, BadInput> {
    if is_one_output(bytes) || actions_are_plain(bytes) {
        Ok(Dialect::OpenFlow)
    } else {
        read_actions(bytes).map(|_| Dialect::Vendors)
    }
}

/// Checks whether [`read_instructions`] can read these bytes, and whether they may have vendor extensions.
///
/// # Errors
/// As [`read_instructions`].
#[inline]
pub fn check_instructions(bytes: &[u8]) -> Result<Dialect, BadInput> {
    if applies_one_output(bytes) || instructions_are_plain(bytes) {
        Ok(Dialect::OpenFlow)
    } else {
        read_instructions(bytes).map(|_| Dialect::Vendors)
    }
}

/// An output, the beginning of its 16 bytes.
const OUTPUT: [u8; 4] = [0, 0, 0, 16];

/// Apply-actions with one output, the beginning of its 24 bytes.
const APPLY_ONE_OUTPUT: [u8; 4] = [0, 4, 0, 24];

/// Whether it is one output, as in most packet-outs.
#[inline]
fn is_one_output(actions: &[u8]) -> bool {
    actions.len() == 16 && actions.first_chunk() == Some(&OUTPUT)
}

/// Whether it is one output that is applied, as in most rules.
#[inline]
fn applies_one_output(instructions: &[u8]) -> bool {
    instructions.first_chunk() == Some(&APPLY_ONE_OUTPUT) && instructions.get(8..).is_some_and(is_one_output)
}

#[inline]
fn actions_are_plain(bytes: &[u8]) -> bool {
    actions_raw(bytes).all(|raw| {
        let Ok(raw) = raw else { return false };
        match raw.kind {
            action_kind::OUTPUT => raw.bytes.len() == 16,
            action_kind::SET_FIELD => raw.bytes.get(4..).is_some_and(|field| {
                // The padding is shorter than eight bytes, so it is not another field.
                after_set_field(field).is_some_and(|padding| padding.len() < 8)
            }),
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
            // Experimenter actions are rare. The reader handles them.
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
    use crate::Match;
    use crate::arbitrary;
    use crate::canonical::match_bytes::{read_any_match_into, read_match_into};
    use crate::canonical::{write_actions, write_instructions, write_match};
    use crate::vendor::{VendorPart, parts_of_actions, parts_of_instructions, parts_of_match};
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

    /// The match, or what is wrong with it, by the table and by the reader of any match.
    fn by_table_and_by_reader(bytes: &[u8]) -> [Result<Match, BadInput>; 2] {
        let (mut by_table, mut by_reader) = (Match::any(), Match::any());
        let of_table = read_match_into(bytes, &mut by_table).map(drop);
        let of_reader = read_any_match_into(bytes, &mut by_reader);
        [of_table.map(|()| by_table), of_reader.map(|()| by_reader)]
    }

    fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
        proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3)
    }

    proptest! {
        #[test]
        fn a_match_is_read_by_the_table_as_by_the_reader(rule in arbitrary::rule(), changes in changes(), cut in 0usize..3) {
            let mut bytes = Vec::new();
            write_match(&rule, &mut bytes);
            let [by_table, by_reader] = by_table_and_by_reader(&bytes);
            prop_assert!(by_table == Ok(rule) && by_table == by_reader);
            let bytes = damaged(bytes, &changes, cut);
            let [by_table, by_reader] = by_table_and_by_reader(&bytes);
            prop_assert_eq!(by_table, by_reader);
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
            prop_assert_eq!(check_actions(&bytes).map(drop), read_actions(&bytes).map(drop));
        }

        #[test]
        fn instructions_are_judged_as_they_are_read(
            instructions in arbitrary::instructions(), changes in changes(), cut in 0usize..10
        ) {
            let mut bytes = Vec::new();
            if write_instructions(&instructions, &mut bytes).is_ok() {
                prop_assert_eq!(check_instructions(&bytes).map(drop), read_instructions(&bytes).map(drop));
            }
            let bytes = damaged(bytes, &changes, cut);
            prop_assert_eq!(check_instructions(&bytes).map(drop), read_instructions(&bytes).map(drop));
        }

        #[test]
        fn what_has_no_vendors_part_is_openflows_alone(
            rule in arbitrary::rule(), actions in arbitrary::actions(), instructions in arbitrary::instructions()
        ) {
            let (mut bytes, mut list, mut all) = (Vec::new(), Vec::new(), Vec::new());
            write_match(&rule, &mut bytes);
            let is_written = write_actions(&actions, &mut list).is_ok();
            let are_written = write_instructions(&instructions, &mut all).is_ok();
            let check = |dialect: Result<Dialect, BadInput>, part: Option<VendorPart>| {
                let expected = if part.is_some() { Dialect::Vendors } else { Dialect::OpenFlow };
                prop_assert_eq!(dialect, Ok(expected));
                Ok(())
            };
            check(read_match_into(&bytes, &mut Match::any()), parts_of_match(&bytes).next())?;
            if is_written {
                check(check_actions(&list), parts_of_actions(&list).next())?;
            }
            if are_written && check_instructions(&all).is_ok() {
                check(check_instructions(&all), parts_of_instructions(&all).next())?;
            }
        }

        #[test]
        fn any_bytes_are_judged_as_they_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let [by_table, by_reader] = by_table_and_by_reader(&bytes);
            prop_assert_eq!(by_table, by_reader);
            prop_assert_eq!(check_actions(&bytes).map(drop), read_actions(&bytes).map(drop));
            prop_assert_eq!(check_instructions(&bytes).map(drop), read_instructions(&bytes).map(drop));
        }
    }
}
