//! How two matches stand to each other: the same, one within the other, overlapping.
//!
//! Never looks at a packet.

use flow::{Match, MatchEntry};

/// Whether both say the same, in whatever order and however a mask of all ones is written.
pub(crate) fn same(one: &Match, two: &Match) -> bool {
    one.entries().len() == two.entries().len() && covers(one, two) && covers(two, one)
}

/// Whether every packet of `narrow` is one of `wide`, as far as their fields tell.
pub(crate) fn covers(wide: &Match, narrow: &Match) -> bool {
    wide.entries().iter().all(|entry| match entry {
        MatchEntry::Field { field, value, mask } => {
            let mask = mask.unwrap_or(field.full_mask());
            narrow
                .get(*field)
                .is_some_and(|(there, its_mask)| mask & !its_mask == 0 && (there ^ value) & mask == 0)
        }
        MatchEntry::Unknown { .. } => narrow.entries().contains(entry),
    })
}

/// Whether a packet could be in both.
pub(crate) fn overlaps(one: &Match, two: &Match) -> bool {
    one.entries().iter().all(|entry| match entry {
        MatchEntry::Field { field, value, mask } => {
            let mask = mask.unwrap_or(field.full_mask());
            two.get(*field).is_none_or(|(there, its_mask)| (there ^ value) & mask & its_mask == 0)
        }
        MatchEntry::Unknown { .. } => true,
    })
}
