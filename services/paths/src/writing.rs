//! Changes of intents for the store.
//!
//! In: an intent, or its number. Out: its key, and the value of it. It sends nothing.

use crate::engine::Kept;
use view::IntentId;

/// The first part of the keys of intents.
pub const PREFIX: &str = "paths/intent/";

/// A change that waits for the store.
#[derive(Debug, PartialEq)]
pub enum Writing {
    /// An intent is added.
    Add(Box<Kept>),
    /// An intent wants something else from now on.
    Change(Box<Kept>),
    /// The hosts of an intent are at another place. Nobody waits for it.
    Places(Box<Kept>),
    /// An intent is withdrawn.
    Delete(IntentId),
}

/// What a change does. A group has changes of one kind, because the store makes all of a group or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It takes room.
    Adds,
    /// It replaces a value, which mostly needs little room.
    Changes,
    /// The same, and nobody asked for it: it must not fail because of what others ask for.
    Moves,
    /// It frees room.
    Deletes,
}

impl Writing {
    /// The intent.
    pub fn id(&self) -> IntentId {
        match self {
            Writing::Add(kept) | Writing::Change(kept) | Writing::Places(kept) => kept.id,
            Writing::Delete(id) => *id,
        }
    }

    /// The value of its key. `None`: there is none.
    pub fn value(&self) -> Option<Vec<u8>> {
        match self {
            // Only maps whose keys are no texts can fail.
            Writing::Add(kept) | Writing::Change(kept) | Writing::Places(kept) => {
                Some(serde_json::to_vec(kept).unwrap_or_default())
            }
            Writing::Delete(_) => None,
        }
    }

    /// What it does.
    pub fn what(&self) -> What {
        match self {
            Writing::Add(_) => What::Adds,
            Writing::Change(_) => What::Changes,
            Writing::Places(_) => What::Moves,
            Writing::Delete(_) => What::Deletes,
        }
    }
}

/// A change with the number of its write.
#[derive(Debug, PartialEq)]
pub struct Numbered {
    /// The number: writes are counted from the start of the service.
    pub number: u64,
    /// The change.
    pub change: Writing,
}

/// The key of an intent.
pub fn key_of(id: IntentId) -> String {
    // With leading zeros, so that keys are in the order of the numbers.
    format!("{PREFIX}{:020}", id.0)
}
