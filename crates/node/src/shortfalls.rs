//! The refusals of apps, by kind, for the operator: one log line for each new kind, and all of them in `burnet app list`.
//!
//! In: the records of workers. Out: log lines and views, with the setting that would allow the command. It grants nothing.
//! The list is lost when the kernel process ends.

use std::collections::BTreeMap;

use audit_contract::Record;

use operator::contract::ShortfallView;

/// The maximum number of kinds for one app; the kernel has fewer. Further ones are only in the records.
const KINDS_MAX: usize = 40;

/// The maximum number of apps; a node has fewer at a time. Further ones are only in the records.
const APPS_MAX: usize = 2_048;

/// The refusals of every app.
#[derive(Debug, Default)]
pub struct Shortfalls(BTreeMap<String, Vec<ShortfallView>>);

impl Shortfalls {
    /// Counts refusals. Returns a line for each new kind.
    pub fn hear(&mut self, records: &[Record], is_packaged: impl Fn(&str) -> bool) -> Vec<String> {
        let refused = records.iter().filter(|record| record.what == "refused");
        refused.filter_map(|record| self.count(record, &is_packaged)).collect()
    }

    fn count(&mut self, record: &Record, is_packaged: &impl Fn(&str) -> bool) -> Option<String> {
        let app = record.app.as_ref()?;
        if self.0.len() >= APPS_MAX && !self.0.contains_key(app) {
            return None;
        }
        let kinds = self.0.entry(app.clone()).or_default();
        if let Some(known) = kinds.iter_mut().find(|known| known.capability == record.capability) {
            known.count = known.count.saturating_add(record.count);
            return None;
        }
        if kinds.len() >= KINDS_MAX {
            return None;
        }
        let remedy = record.capability.as_deref().and_then(|name| remedy(app, name, is_packaged(app)));
        let view = ShortfallView {
            capability: record.capability.clone(),
            count: record.count,
            first: record.text.clone(),
            remedy,
        };
        let line = format!("the app {app} is refused: {}{}", view.first, view.in_words());
        kinds.push(view);
        Some(line)
    }

    /// An app's refusals since the kernel process started.
    pub fn of(&self, app: &str) -> Vec<ShortfallView> {
        self.0.get(app).cloned().unwrap_or_default()
    }
}

/// The setting that would allow the command.
fn remedy(app: &str, name: &str, is_packaged: bool) -> Option<String> {
    if name.starts_with("system.") {
        return None;
    }
    Some(match name.strip_prefix("quota ") {
        Some(_) => format!("raise it in [app.{app}.quotas] of burnet.toml"),
        None if is_packaged => format!("burnet app grant {app} {name}"),
        None => format!("\"{name}\" in its manifest, or in [app.{app}.capabilities] of burnet.toml"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(app: &str, capability: Option<&str>, count: u64, text: &str) -> Record {
        let record = Record::new(5, "refused", "app", text.to_owned()).of_app(app);
        Record { capability: capability.map(str::to_owned), count, ..record }
    }

    #[test]
    fn each_kind_is_a_line_once_and_counted_from_then_on() {
        let mut shortfalls = Shortfalls::default();
        let records = [
            refused("hub", Some("view.read"), 1, "the app does not hold the capability view.read"),
            refused("hub", Some("view.read"), 4, "the app does not hold the capability view.read"),
            Record::new(5, "granted", "kernel", "{}".to_owned()).of_app("hub"),
            refused(
                "hub",
                Some("quota commands per second"),
                9,
                "quota commands per second: the hard limit 7 is reached",
            ),
            refused("hub", None, 1, "of:0000000000000001 is not connected"),
        ];
        let expected = [
            "the app hub is refused: the app does not hold the capability view.read; to allow it: \"view.read\" in its manifest, or in \
             [app.hub.capabilities] of burnet.toml",
            "the app hub is refused: quota commands per second: the hard limit 7 is reached; to allow it: raise it in [app.hub.quotas] \
             of burnet.toml",
            "the app hub is refused: of:0000000000000001 is not connected",
        ];
        assert_eq!(shortfalls.hear(&records, |_| false), expected);
        assert_eq!(shortfalls.hear(&records, |_| false), [""; 0]);
        let counts: Vec<u64> = shortfalls.of("hub").iter().map(|view| view.count).collect();
        assert_eq!(counts, [10, 18, 2]);
        assert_eq!(shortfalls.of("mine"), []);
    }

    #[test]
    fn of_a_package_it_is_a_command_and_of_what_is_for_services_nothing() {
        let remedy_of = |name| remedy("fw", name, true);
        assert_eq!(remedy_of("rule.write").as_deref(), Some("burnet app grant fw rule.write"));
        assert_eq!(remedy_of("system.audit"), None);
    }

    #[test]
    fn no_flood_of_kinds_or_apps_fills_it() {
        let mut shortfalls = Shortfalls::default();
        let kinds: Vec<Record> =
            (0..2 * KINDS_MAX).map(|n| refused("a", Some(&n.to_string()), 1, "no")).collect();
        assert_eq!(shortfalls.hear(&kinds, |_| false).len(), KINDS_MAX);
        let apps: Vec<Record> = (0..2 * APPS_MAX).map(|n| refused(&n.to_string(), None, 1, "no")).collect();
        assert_eq!(shortfalls.hear(&apps, |_| false).len(), APPS_MAX - 1);
    }
}
