//! The apps of the node, as the monitor reported them last, with their last samples.
//!
//! In: reports of the monitor. Out: the same, for answers. The samples of an app that is gone are forgotten.

use northbound_contract::{AppReport, NodeReport};
use std::collections::{BTreeMap, VecDeque};

/// The samples that are kept of each app: half a minute. The oldest is dropped.
pub const SAMPLES_MAX: usize = 60;

/// What an app used at one time, by resource.
pub type Sample = BTreeMap<String, u64>;

/// The apps.
#[derive(Debug, Default)]
pub struct KnownApps {
    reports: Vec<AppReport>,
    samples: BTreeMap<String, VecDeque<Sample>>,
}

impl KnownApps {
    /// Takes a report of the monitor.
    pub fn take(&mut self, report: NodeReport) {
        self.samples.retain(|name, _| report.apps.iter().any(|app| app.id == *name));
        for app in &report.apps {
            let Some(sample) = &app.sample else { continue };
            let kept = self.samples.entry(app.id.clone()).or_default();
            // A report between two measurements repeats the sample.
            if kept.back() == Some(sample) {
                continue;
            }
            if kept.len() >= SAMPLES_MAX {
                kept.pop_front();
            }
            kept.push_back(sample.clone());
        }
        self.reports = report.apps;
    }

    /// All, in the order of the monitor.
    pub fn iter(&self) -> impl Iterator<Item = &AppReport> {
        self.reports.iter()
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&AppReport> {
        self.reports.iter().find(|app| app.id == id)
    }

    /// The last samples of an app, the oldest first.
    pub fn samples(&self, id: &str) -> impl Iterator<Item = &Sample> {
        self.samples.get(id).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(app: &str, sample: Option<u64>) -> NodeReport {
        let mut apps: Vec<AppReport> = serde_json::from_value(serde_json::json!([{
            "id": app, "role": "app", "state": "running", "zone": 1, "zone_kind": "process", "restarts": 0, "since_ms": 1, "limits": [],
        }]))
        .unwrap();
        apps[0].sample = sample.map(|at| BTreeMap::from([("unix_ms".to_owned(), at)]));
        NodeReport { apps }
    }

    #[test]
    fn the_last_samples_are_kept_and_each_once() {
        let mut apps = KnownApps::default();
        apps.take(report("hub", None));
        assert_eq!(apps.samples("hub").count(), 0);
        let most = u64::try_from(SAMPLES_MAX).unwrap();
        for at in 0..=most {
            apps.take(report("hub", Some(at)));
            apps.take(report("hub", Some(at)));
        }
        let found: Vec<u64> = apps.samples("hub").map(|it| it["unix_ms"]).collect();
        assert_eq!(found, (1..=most).collect::<Vec<_>>());
        apps.take(report("other", Some(1)));
        assert_eq!((apps.samples("hub").count(), apps.get("hub")), (0, None));
    }
}
