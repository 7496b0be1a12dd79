//! Lists the keys of profiles, and the values of one.
//!
//! In: the description of the keys. Out: each key with its form and default, or with its value.

use super::form::Form;
use super::keys::{Need, Visitor, visit};
use crate::whole::Profile;

/// Whether a key must be in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    /// It must, if its table is there.
    Required,
    /// It has this value otherwise, as TOML.
    Default(String),
    /// Without it, this holds.
    Absent(String),
}

/// A key of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// Its path: `cpu.add.service_us`.
    pub path: String,
    /// What is expected there.
    pub expected: String,
    /// Whether it must be there.
    pub need: KeyNeed,
    /// The value of the default profile, as TOML.
    pub value: Option<String>,
}

/// Collects what it visits.
struct Listing {
    all: bool,
    keys: Vec<KnownKey>,
    path: Vec<&'static str>,
}

impl Listing {
    fn of(profile: &Profile, all: bool) -> Vec<KnownKey> {
        let mut listing = Listing { all, keys: Vec::new(), path: Vec::new() };
        visit(&mut profile.clone(), &mut listing);
        listing.keys
    }
}

impl Visitor for Listing {
    fn value(&mut self, key: &'static str, need: Need, form: &mut dyn Form) {
        let path = self.path.iter().copied().chain([key]).collect::<Vec<_>>().join(".");
        let need = match need {
            Need::Required => KeyNeed::Required,
            Need::Default(text) => KeyNeed::Default(text.to_owned()),
            Need::Absent(text) => KeyNeed::Absent(text.to_owned()),
        };
        self.keys.push(KnownKey { path, expected: form.expected(), need, value: form.written() });
    }

    fn open(&mut self, key: &'static str, _: Need, there: bool) -> bool {
        let visited = there || self.all;
        if visited {
            self.path.push(key);
        }
        visited
    }

    fn close(&mut self) {
        self.path.pop();
    }

    fn list(&mut self, _: &'static str, _: Need, have: usize, _: usize) -> usize {
        if self.all { 1 } else { have }
    }

    fn open_item(&mut self, key: &'static str, _: usize) {
        self.path.push(key);
    }

    fn wants_all(&self) -> bool {
        self.all
    }
}

/// Every key of a profile, in the order of the file.
pub(super) fn known_keys() -> Vec<KnownKey> {
    Listing::of(&Profile::default(), true)
}

/// The values that a profile states: not the defaults without a source of their own.
pub(super) fn stated(profile: &Profile) -> Vec<(String, String)> {
    let keys = Listing::of(profile, false).into_iter();
    let stated = keys.filter(|key| match (&key.need, &key.value) {
        (KeyNeed::Default(default), Some(value)) => default != value || profile.sources.has(&key.path),
        _ => true,
    });
    stated.filter_map(|key| Some((key.path, key.value?))).collect()
}

/// The values of a profile.
pub(super) fn values(profile: &Profile) -> Vec<(String, String)> {
    let keys = Listing::of(profile, false);
    keys.into_iter().filter_map(|key| Some((key.path, key.value?))).collect()
}
