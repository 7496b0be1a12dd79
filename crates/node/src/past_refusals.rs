//! Counts the refused commands of ended zones. So the operator also sees the refusals of an app that crashes quickly
//! again and again.
//!
//! In: the count of a zone that ends. Out: the count of its app. At most one entry for each zone number.

use abi::ZoneId;
use std::collections::BTreeMap;

/// For each ended zone, its app and the number of its refused commands.
#[derive(Default)]
pub struct PastRefusals(BTreeMap<ZoneId, (String, u64)>);

impl PastRefusals {
    /// A zone has ended.
    pub fn note(&mut self, zone: ZoneId, app: &str, refusals: u64) {
        self.0.insert(zone, (app.to_owned(), refusals));
    }

    /// The refused commands of all earlier starts of an app's zone.
    pub fn of(&self, zone: ZoneId, app: &str) -> u64 {
        self.0.get(&zone).filter(|(of, _)| of == app).map_or(0, |(_, refusals)| *refusals)
    }

    /// Each ended zone with its count.
    pub fn iter(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.0.iter().map(|(zone, (_, refusals))| (*zone, *refusals))
    }
}
