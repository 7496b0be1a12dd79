//! Where each value of a profile is from.
//!
//! In: key paths (`cpu.add.service_us`) and origins. Out: the origin of a value: that of the longest path that leads to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The path that stands for every value.
pub const EVERYTHING: &str = "*";

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A probe measured it.
    Measured {
        /// The day, `2026-11-25`.
        date: String,
        /// The firmware of the switch then.
        firmware: String,
        /// How many samples it is computed from.
        samples: u32,
    },
    /// A publication gives the number. The text names it and the place in it.
    Published(String),
    /// It is computed from published numbers. The text says how.
    Reconstructed(String),
    /// It is a guess. The text gives the reason.
    Assumed(String),
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Measured { date, firmware, samples } => {
                write!(f, "measured {date}, firmware {firmware}, {samples} samples")
            }
            Provenance::Published(text) => write!(f, "published: {text}"),
            Provenance::Reconstructed(text) => write!(f, "reconstructed: {text}"),
            Provenance::Assumed(text) => write!(f, "assumed: {text}"),
        }
    }
}

/// The origins of all values of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    by_path: BTreeMap<String, Provenance>,
}

impl Sources {
    /// One origin for every value.
    pub fn everything(provenance: Provenance) -> Self {
        Sources { by_path: BTreeMap::from([(EVERYTHING.to_owned(), provenance)]) }
    }

    /// Sets the origin of a value, or of all values below a path.
    pub fn set(&mut self, path: impl Into<String>, provenance: Provenance) {
        self.by_path.insert(path.into(), provenance);
    }

    /// The origin of a value: that of the longest path that leads to it, of [`EVERYTHING`] if there is no other.
    pub fn of(&self, path: &str) -> Option<&Provenance> {
        self.entry_of(path).map(|(_, provenance)| provenance)
    }

    /// The same, with the path that gave it.
    pub fn entry_of(&self, path: &str) -> Option<(&str, &Provenance)> {
        let mut end = path.len();
        loop {
            if let Some((found, provenance)) = self.by_path.get_key_value(&path[..end]) {
                return Some((found, provenance));
            }
            match path[..end].rfind('.') {
                Some(dot) => end = dot,
                None => break,
            }
        }
        self.by_path.get_key_value(EVERYTHING).map(|(found, provenance)| (found.as_str(), provenance))
    }

    /// Drops the paths that lead to none of these values. The path of everything stays.
    pub fn keep_used_by<'a>(&mut self, values: impl Iterator<Item = &'a str>) {
        let used: BTreeSet<String> =
            values.filter_map(|value| self.entry_of(value)).map(|(path, _)| path.to_owned()).collect();
        self.by_path.retain(|path, _| path == EVERYTHING || used.contains(path));
    }

    /// Whether this very path has an origin.
    pub fn has(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// All paths with their origins, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Provenance)> {
        self.by_path.iter().map(|(path, provenance)| (path.as_str(), provenance))
    }
}
