//! Counts the refusals of a worker's zones: one record per second for each zone and reason.
//!
//! In: refusals. Out: records. A repeated refusal costs one addition: it allocates nothing and reads no clock.

use abi::ZoneId;
use audit_contract::Record;
use kernel::{Capability, QuotaKind, Refusal};
use std::collections::BTreeMap;

/// The reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A capability, by its name; there are few names.
    Capability(&'static str),
    /// A quota, by its number.
    Quota(u16),
    /// A capability or a quota of a service, by the name that the service sent; at most [`OF_SERVICES_MAX`] names.
    OfService(String),
    /// The command itself.
    Malformed,
    /// Any other reason: a disconnected switch, a query that is not open.
    Other,
}

/// The number of refusals, and the text of the first one.
#[derive(Debug)]
struct Count {
    capability: Option<String>,
    count: u64,
    first: String,
}

/// How many reasons of services are counted separately between two records; services choose the names. Further ones
/// count as [`Cause::Other`].
const OF_SERVICES_MAX: usize = 256;

/// The longest name of a capability that a service may send, in bytes. A longer one is cut.
const NAME_BYTES_MAX: usize = 64;

/// The unrecorded refusals of one worker: at most one entry for each zone and each of the few reasons.
#[derive(Debug, Default)]
pub struct Refusals(BTreeMap<(ZoneId, Cause), Count>);

impl Refusals {
    /// Counts one refusal. It keeps the text of the first of its kind.
    pub fn count(&mut self, zone: ZoneId, refusal: &Refusal, words: impl FnOnce() -> String) {
        let first = || Count { capability: needed(refusal), count: 0, first: words() };
        self.0.entry((zone, cause(refusal))).or_insert_with(first).count += 1;
    }

    /// Counts a refusal by a service: its text begins with the name of the capability or the quota, and a colon.
    pub fn count_of_service(&mut self, zone: ZoneId, is_quota: bool, words: &str) {
        let name = words.split(':').next().unwrap_or_default();
        let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        let name = if is_quota { format!("quota {name}") } else { name.to_owned() };
        let key = (zone, Cause::OfService(name.clone()));
        let has_room = self.0.len() < OF_SERVICES_MAX || self.0.contains_key(&key);
        let key = if has_room { key } else { (zone, Cause::Other) };
        let words = if is_quota { format!("quota {words}") } else { words.to_owned() };
        let first = || Count { capability: Some(name), count: 0, first: words };
        self.0.entry(key).or_insert_with(first).count += 1;
    }

    /// Returns all of them as records with the names of the apps, and resets the counts.
    pub fn take<'n>(&mut self, unix_ms: u64, app: impl Fn(ZoneId) -> &'n str) -> Vec<Record> {
        let record = |((zone, _), Count { capability, count, first }): ((ZoneId, Cause), Count)| {
            let record = Record::new(unix_ms, "refused", "app", first).of_app(app(zone));
            Record { capability, count, ..record }
        };
        std::mem::take(&mut self.0).into_iter().map(record).collect()
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn cause(refusal: &Refusal) -> Cause {
    match refusal {
        Refusal::Needs(capability) | Refusal::Beyond(capability, _) | Refusal::NotFor(capability) => {
            Cause::Capability(capability.name())
        }
        Refusal::KernelsRule => Cause::Capability(Capability::RuleWriteOthers.name()),
        Refusal::Quota { kind, .. } => Cause::Quota(*kind as u16),
        Refusal::MalformedPart { .. } | Refusal::Malformed(_) | Refusal::AllTables => Cause::Malformed,
        _ => Cause::Other,
    }
}

fn needed(refusal: &Refusal) -> Option<String> {
    let quota = |kind: &QuotaKind| format!("quota {kind}");
    match (cause(refusal), refusal) {
        (Cause::Capability(name), _) => Some(name.to_owned()),
        (_, Refusal::Quota { kind, .. }) => Some(quota(kind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;

    fn count(refusals: &mut Refusals, zone: ZoneId, refusal: &Refusal) {
        refusals.count(zone, refusal, || refusal.to_string());
    }

    #[test]
    fn a_flood_of_refusals_is_one_record_for_each_app_and_capability() {
        let mut refusals = Refusals::default();
        let needs = |capability| Refusal::Needs(capability);
        for _ in 0..1_000 {
            count(&mut refusals, ZoneId(1), &needs(Capability::PacketOut));
            count(&mut refusals, ZoneId(2), &needs(Capability::PacketOut));
            count(&mut refusals, ZoneId(2), &Refusal::NotFor(Capability::Query));
        }
        count(&mut refusals, ZoneId(2), &Refusal::NoSuchSwitch(DatapathId(1)));
        let records = refusals.take(5, |zone| if zone == ZoneId(1) { "hub" } else { "mine" });
        let said: Vec<_> = records
            .iter()
            .map(|record| (record.app.as_deref(), record.capability.as_deref(), record.count))
            .collect();
        let expected = [
            (Some("hub"), Some("packet.out"), 1_000),
            (Some("mine"), Some("packet.out"), 1_000),
            (Some("mine"), Some("query"), 1_000),
            (Some("mine"), None, 1),
        ];
        assert_eq!(said, expected);
        assert!(refusals.is_empty());
    }

    #[test]
    fn what_a_service_refuses_is_told_by_the_name_that_it_gives() {
        let mut refusals = Refusals::default();
        for _ in 0..3 {
            refusals.count_of_service(ZoneId(1), false, "store.read: it is not granted for this name");
            refusals.count_of_service(ZoneId(1), true, "store_bytes: the hard limit 10 is reached");
        }
        refusals.count_of_service(ZoneId(1), false, &"é".repeat(1_000));
        let records = refusals.take(5, |_| "hub");
        let said: Vec<_> = records.iter().map(|it| (it.capability.as_deref().unwrap(), it.count)).collect();
        assert_eq!(said, [("quota store_bytes", 3), ("store.read", 3), (&*"é".repeat(32), 1)]);
        for number in 0..1_000 {
            refusals.count_of_service(ZoneId(1), false, &format!("{number}: no"));
        }
        assert_eq!(refusals.take(5, |_| "hub").len(), OF_SERVICES_MAX + 1);
    }
}
