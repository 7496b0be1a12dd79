//! Which objects were removed, and when: so that an older change that arrives late does not bring them back.
//!
//! In: the stamps of removals. Out: the stamp by which an object was removed, as long as it is remembered. It never holds more than
//! [`TOMBSTONES_MAX`].

use crate::change::Stamp;
use crate::kinds::Key;
use std::collections::{BTreeMap, HashMap};

/// How many removals are remembered: as many as happen while a change is under way, with a wide margin. At the bound, the one that
/// arrived first is forgotten. If an older change of its object arrives even later, the object comes back until the next snapshot.
pub const TOMBSTONES_MAX: usize = 65_536;

/// The removals that are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Tombstones {
    /// The stamp of each, and the number of its arrival.
    stamps: HashMap<Key, (Stamp, u64)>,
    arrivals: BTreeMap<u64, Key>,
    last_arrival: u64,
    max: usize,
    forgotten: u64,
}

impl Tombstones {
    pub(crate) fn new(max: usize) -> Tombstones {
        Tombstones { stamps: HashMap::new(), arrivals: BTreeMap::new(), last_arrival: 0, max, forgotten: 0 }
    }

    pub(crate) fn get(&self, key: Key) -> Option<Stamp> {
        self.stamps.get(&key).map(|(stamp, _)| *stamp)
    }

    pub(crate) fn put(&mut self, key: Key, stamp: Stamp) {
        self.remove(key);
        self.last_arrival += 1;
        self.stamps.insert(key, (stamp, self.last_arrival));
        self.arrivals.insert(self.last_arrival, key);
        while self.stamps.len() > self.max {
            let Some((_, oldest)) = self.arrivals.pop_first() else { return };
            self.stamps.remove(&oldest);
            self.forgotten += 1;
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        if let Some((_, arrival)) = self.stamps.remove(&key) {
            self.arrivals.remove(&arrival);
        }
    }

    /// Forgets those that do not stay.
    pub(crate) fn retain(&mut self, stays: impl Fn(Key) -> bool) {
        self.arrivals.retain(|_, key| stays(*key));
        self.stamps.retain(|key, _| stays(*key));
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
