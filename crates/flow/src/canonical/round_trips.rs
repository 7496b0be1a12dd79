//! Properties of all values and all bytes.

use super::*;
use crate::arbitrary;
use crate::field::Field;
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that are often nearly right: numbers that mean something, and a few changed bytes.
fn damaged(bytes: Vec<u8>, damage: &[(usize, u8)], cut: usize) -> Vec<u8> {
    let mut bytes = bytes;
    for (at, byte) in damage {
        if let Some(there) = at.checked_rem(bytes.len()).and_then(|at| bytes.get_mut(at)) {
            *there = *byte;
        }
    }
    bytes.truncate(bytes.len().saturating_sub(cut));
    bytes
}

fn bytes_of(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn damage() -> impl Strategy<Value = (Vec<(usize, u8)>, usize)> {
    (vec((any::<usize>(), any::<u8>()), 0..4), prop_oneof![4 => Just(0), 1 => 0..9usize])
}

proptest! {
    #[test]
    fn a_match_comes_back(rule in arbitrary::rule()) {
        let bytes = bytes_of(|out| write_match(&rule, out));
        prop_assert_eq!(bytes.len(), match_len(&rule));
        prop_assert_eq!(read_match(&bytes), Ok(rule.clone()));
        for field in Field::all() {
            prop_assert_eq!(find_field(&bytes, field), rule.get(field).map(|(value, _)| value));
        }
    }

    #[test]
    fn actions_come_back(actions in arbitrary::actions()) {
        let bytes = bytes_of(|out| write_actions(&actions, out).unwrap());
        prop_assert_eq!(bytes.len() % 8, 0);
        prop_assert_eq!(actions_raw(&bytes).count(), actions.len());
        prop_assert_eq!(read_actions(&bytes), Ok(actions));
    }

    #[test]
    fn instructions_come_back(instructions in arbitrary::instructions()) {
        let bytes = bytes_of(|out| write_instructions(&instructions, out).unwrap());
        prop_assert_eq!(read_instructions(&bytes), Ok(instructions));
    }

    #[test]
    fn the_bytes_of_a_match_come_back_or_are_refused(
        rule in arbitrary::rule(),
        (changes, cut) in damage(),
    ) {
        let bytes = damaged(bytes_of(|out| write_match(&rule, out)), &changes, cut);
        match read_match(&bytes) {
            Ok(rule) => prop_assert_eq!(bytes_of(|out| write_match(&rule, out)), bytes),
            Err(refused) => prop_assert!(refused.offset <= bytes.len()),
        }
    }

    #[test]
    fn the_bytes_of_actions_come_back_or_are_refused(
        actions in arbitrary::actions(),
        (changes, cut) in damage(),
    ) {
        let bytes = damaged(bytes_of(|out| write_actions(&actions, out).unwrap()), &changes, cut);
        match read_actions(&bytes) {
            // Padding may have been damaged, and is not kept: what is written is as long and means the same.
            Ok(actions) => {
                let again = bytes_of(|out| write_actions(&actions, out).unwrap());
                prop_assert_eq!(again.len(), bytes.len());
                prop_assert_eq!(read_actions(&again), Ok(actions));
            }
            Err(refused) => prop_assert!(refused.offset <= bytes.len() + 7),
        }
    }

    #[test]
    fn the_bytes_of_instructions_come_back_or_are_refused(
        instructions in arbitrary::instructions(),
        (changes, cut) in damage(),
    ) {
        let bytes = damaged(bytes_of(|out| write_instructions(&instructions, out).unwrap()), &changes, cut);
        if let Ok(instructions) = read_instructions(&bytes) {
            let again = bytes_of(|out| write_instructions(&instructions, out).unwrap());
            prop_assert_eq!(again.len(), bytes.len());
            prop_assert_eq!(read_instructions(&again), Ok(instructions));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..300)) {
        let _ = read_match(&bytes);
        let _ = read_actions(&bytes);
        let _ = read_instructions(&bytes);
        let _ = instructions_raw(&bytes).map_while(Result::ok).filter_map(|i| i.actions()).flatten().count();
        let _ = find_field(&bytes, Field::InPort);
    }

    #[test]
    fn the_actions_of_1_0_are_written_or_refused(actions in vec(arbitrary::action_of_1_0(), 0..5)) {
        let mut bytes = Vec::new();
        match write_actions(&actions, &mut bytes) {
            Ok(()) => prop_assert!(read_actions(&bytes).is_ok()),
            Err(_) => prop_assert!(bytes.is_empty()),
        }
    }

    #[test]
    fn sorting_brings_prerequisites_first(rule in arbitrary::rule()) {
        if check_prerequisites(&rule).is_ok() {
            prop_assert!(check_prerequisites(&rule.sorted()).is_ok());
        }
    }
}
