//! The items of a stream, as the parts of an answer carry them.
//!
//! ```text
//!   number: u64 | length of the value: u32 | length of the key: u16 | kind: u8 | 0: u8 | key | value        (little-endian)
//! ```
//!
//! In: bytes from a service. Out: items, or the reason why they are none. It never allocates, and keeps no state: the order of items is checked
//! by `follower`.

use crate::part::PART_BYTES;
use abi::service::PART_COST_BYTES;

/// The bytes of an item before its key.
pub(super) const HEAD_BYTES: usize = 16;

/// The longest item, in bytes, with its head of 16 bytes. An entry of a table that would be longer is not taken.
pub const ITEM_BYTES_MAX: usize = PART_BYTES - PART_COST_BYTES as usize;

/// An update that an app receives from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'a> {
    /// A snapshot begins. It replaces everything that was received before. Changes up to this number are part of it.
    Begin {
        /// The number of the last change that the snapshot includes.
        number: u64,
    },
    /// An entry of the snapshot.
    Entry {
        /// Its key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The snapshot is complete: the app has the state of the service after the change of this number.
    Complete {
        /// The number of the last change that was received.
        number: u64,
    },
    /// The service has set the value of a key. It can come before the snapshot is complete, and for a key that the snapshot still brings.
    Put {
        /// The change's number: one more than that of the change before.
        number: u64,
        /// Its key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// The service has removed a key. It can come before the snapshot is complete, and for an unknown key.
    Removed {
        /// The change's number: one more than that of the change before.
        number: u64,
        /// Its key.
        key: &'a [u8],
    },
    /// The app was too slow, and misses these changes. [`Update::Begin`] follows.
    Missed {
        /// The number of the first missed change.
        from: u64,
        /// The number of the last missed change.
        to: u64,
    },
    /// The stream is over. Nothing more comes with this ticket.
    Ended {
        /// A status of [`crate::query_status`], or the service's own.
        status: u16,
        /// A sentence for people, or empty.
        reason: &'a [u8],
    },
}

impl Update<'_> {
    /// How many changes [`Update::Missed`] is about; 0 for the others.
    pub fn missed(&self) -> u64 {
        match *self {
            Update::Missed { from, to } => to.saturating_sub(from).saturating_add(1),
            _ => 0,
        }
    }
}

const BEGIN: u8 = 1;
const ENTRY: u8 = 2;
const COMPLETE: u8 = 3;
const PUT: u8 = 4;
const REMOVED: u8 = 5;
const MISSED: u8 = 6;

/// How many bytes an item takes.
pub(super) const fn item_bytes(key: &[u8], value: &[u8]) -> usize {
    HEAD_BYTES + key.len() + value.len()
}

/// Appends an item. Its length was checked when it came into the table.
pub(super) fn write(out: &mut Vec<u8>, update: &Update<'_>) {
    let (kind, number, key, value): (_, _, &[u8], &[u8]) = match update {
        Update::Begin { number } => (BEGIN, *number, &[], &[]),
        Update::Entry { key, value } => (ENTRY, 0, key, value),
        Update::Complete { number } => (COMPLETE, *number, &[], &[]),
        Update::Put { number, key, value } => (PUT, *number, key, value),
        Update::Removed { number, key } => (REMOVED, *number, key, &[]),
        Update::Missed { from, to } => (MISSED, *from, &[], &to.to_le_bytes()),
        // The status of the last part says it.
        Update::Ended { .. } => return,
    };
    debug_assert!(item_bytes(key, value) <= ITEM_BYTES_MAX, "an item was not checked");
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&number.to_le_bytes());
    head[8..12].copy_from_slice(&(value.len() as u32).to_le_bytes());
    head[12..14].copy_from_slice(&(key.len() as u16).to_le_bytes());
    head[14] = kind;
    out.extend_from_slice(&head);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Takes the first item off a part. `None` if the bytes are no item: it is the service's fault.
pub(super) fn read<'a>(bytes: &mut &'a [u8]) -> Option<Update<'a>> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let number = u64::from_le_bytes(head[..8].try_into().ok()?);
    let value_len = u32::from_le_bytes(head[8..12].try_into().ok()?);
    let key_len = u16::from_le_bytes(head[12..14].try_into().ok()?);
    let (key, rest) = rest.split_at_checked(key_len.into())?;
    let (value, rest) = rest.split_at_checked(usize::try_from(value_len).ok()?)?;
    *bytes = rest;
    match (head[14], key, value) {
        (BEGIN, [], []) => Some(Update::Begin { number }),
        (ENTRY, key, value) => Some(Update::Entry { key, value }),
        (COMPLETE, [], []) => Some(Update::Complete { number }),
        (PUT, key, value) => Some(Update::Put { number, key, value }),
        (REMOVED, key, []) => Some(Update::Removed { number, key }),
        (MISSED, [], to) => {
            Some(Update::Missed { from: number, to: u64::from_le_bytes(to.try_into().ok()?) })
        }
        _ => None,
    }
}
