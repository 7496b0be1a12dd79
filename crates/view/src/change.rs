//! A change of one object, and the stamp that orders it.
//!
//! In: values. Out: their JSON form, which streams and REST share. It decides nothing.

use crate::kinds::{Key, Object};
use serde::{Deserialize, Serialize};

/// The order of two changes of one object: the later stamp wins, wherever and whenever the changes arrive.
///
/// The term of a switch's mastership comes first, so that a former master cannot overwrite its successor. The origin breaks ties
/// of two nodes that changed an object in the same term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The mastership term. On a single node: the number of the service's run.
    pub term: u64,
    /// Counts the changes of its origin within a term.
    pub sequence: u64,
    /// The number of the node that made the change.
    pub origin: u16,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its place in the order of the object's changes.
    pub stamp: Stamp,
    /// The object.
    pub key: Key,
    /// What the object is from now on, or `None` if it is gone.
    pub object: Option<Object>,
}

/// The value of an entry in a stream of a view's table. The key of the entry is the text of the object's [`Key`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The stamp of the last change.
    pub stamp: Stamp,
    /// The object.
    pub object: Object,
}

impl Record {
    /// The JSON of the record.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Only maps whose keys are no texts can fail, and an object has none.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the JSON of a record.
    ///
    /// # Errors
    /// A sentence about the field that is wrong. It is the service's fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Record, String> {
        serde_json::from_slice(bytes).map_err(|why| format!("a record of the view is damaged: {why}"))
    }
}
