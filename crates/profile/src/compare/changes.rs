//! What differs between two profiles: what a new firmware changed.

use crate::file::{known_keys, quantiles, values};
use crate::quantiles::Quantiles;
use crate::whole::Profile;
use std::collections::BTreeMap;

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its key: `cpu.add.service_us`. Values in lists of tables share a key.
    pub key: String,
    /// The value of the first profile as TOML. None: it has none.
    pub first: Option<String>,
    /// The value of the second.
    pub second: Option<String>,
}

impl Change {
    /// Both values as distributions, if it is a delay that both profiles have.
    pub fn delays(&self) -> Option<(Quantiles, Quantiles)> {
        // The costs of the hardware are curves by occupancy, which look alike if they are constant.
        if !self.key.ends_with("_us") || (self.key.starts_with("hardware.") && !self.key.contains("stall")) {
            return None;
        }
        Some((quantiles(self.first.as_deref()?)?, quantiles(self.second.as_deref()?)?))
    }
}

/// Keys that name a profile and not a habit of the switch.
const NAMES: [&str; 3] = ["name", "about", "measurement"];

/// The values that differ, in the order of the file.
pub fn changes(first: &Profile, second: &Profile) -> Vec<Change> {
    let (mut first, mut second) = (by_key(first), by_key(second));
    let mut found = Vec::new();
    for key in known_keys().into_iter().map(|key| key.path) {
        let (first, second) =
            (first.remove(&key).unwrap_or_default(), second.remove(&key).unwrap_or_default());
        // In lists of tables, the first is compared with the first, and so on.
        for index in 0..first.len().max(second.len()) {
            let (first, second) = (first.get(index).cloned(), second.get(index).cloned());
            if first != second {
                found.push(Change { key: key.clone(), first, second });
            }
        }
    }
    found
}

fn by_key(profile: &Profile) -> BTreeMap<String, Vec<String>> {
    let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in values(profile) {
        if !NAMES.contains(&key.split('.').next().unwrap_or_default()) {
            by_key.entry(key).or_default().push(value);
        }
    }
    by_key
}
