//! A copy of a service's table, kept by the app that follows it.
//!
//! In: updates. Out: the entries as far as they are known. It is as large as the service's table: what an app need not keep, it handles in
//! `App::on_stream` itself.

use super::item::Update;
use std::collections::BTreeMap;

/// A copy of a service's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    number: u64,
    is_complete: bool,
}

impl Replica {
    /// Nothing yet.
    pub fn new() -> Replica {
        Replica::default()
    }

    /// Takes an update over. When the stream has ended, the entries stay as they were, and are not complete any more.
    pub fn apply(&mut self, update: &Update<'_>) {
        match *update {
            Update::Begin { number } => *self = Replica { number, ..Replica::default() },
            Update::Entry { key, value } => drop(self.entries.insert(key.to_vec(), value.to_vec())),
            Update::Complete { number } => (self.number, self.is_complete) = (number, true),
            Update::Put { number, key, value } => {
                self.number = number;
                self.entries.insert(key.to_vec(), value.to_vec());
            }
            Update::Removed { number, key } => {
                self.number = number;
                self.entries.remove(key);
            }
            Update::Missed { .. } | Update::Ended { .. } => self.is_complete = false,
        }
    }

    /// Whether it is the service's table as it was after the change [`Replica::number`]. If not, a snapshot is on its way.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The number of the last change in it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The value of a key, if it is known.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(Vec::as_slice)
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}
