//! What slices have said of themselves, and what the service `labels` knows of them.
//!
//! In: summaries of slices, and standings of the service `labels`. Out: the same, for answers. Which slices there are, the monitor says:
//! a summary of an app that is no slice, or that names another one, is not shown.

use labels_contract::Standing;
use northbound_contract::AppReport;
use slice_contract::{Summary, slice_of};
use std::collections::BTreeMap;

/// The highest number of a zone. A summary from beyond it is dropped.
const ZONE_MAX: u16 = 1_023;

/// The slices.
#[derive(Debug, Default)]
pub struct KnownSlices {
    /// The last summary, by the zone that published it.
    summaries: BTreeMap<u16, Summary>,
    standings: BTreeMap<String, Standing>,
}

impl KnownSlices {
    /// A slice has published its summary. A malformed one changes nothing: it is the slice's mistake.
    pub fn hear(&mut self, zone: u16, payload: &[u8]) {
        if let Some(summary) = Summary::from_bytes(payload).ok().filter(|_| zone <= ZONE_MAX) {
            self.summaries.insert(zone, summary);
        }
    }

    /// The service `labels` has answered, or not: then nothing is known.
    pub fn take(&mut self, standings: Vec<Standing>) {
        self.standings = standings.into_iter().map(|standing| (standing.slice.clone(), standing)).collect();
    }

    /// What a slice has said, if its process runs.
    pub fn summary(&self, app: &AppReport) -> Option<&Summary> {
        let of_app = |summary: &&Summary| slice_of(&app.id) == Some(&summary.slice);
        self.summaries.get(&app.zone).filter(of_app).filter(|_| app.state == "running")
    }

    /// How far a slice is with its flows.
    pub fn standing(&self, slice: &str) -> Option<&Standing> {
        self.standings.get(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_cannot_speak_for_another_slice() {
        let mut slices = KnownSlices::default();
        let blue = Summary { slice: "blue".to_owned(), rules: 3, ..Summary::default() };
        slices.hear(7, &blue.to_bytes());
        slices.hear(ZONE_MAX + 1, &blue.to_bytes());
        slices.hear(7, b"{");
        let check = |id: &str, zone: u16, state: &str, expected: Option<u64>| {
            let report = serde_json::json!({"id": id, "role": "app", "state": state, "zone": zone, "zone_kind": "process",
                                            "restarts": 0, "since_ms": 1, "limits": []});
            let app: AppReport = serde_json::from_value(report).unwrap();
            assert_eq!(slices.summary(&app).map(|it| it.rules), expected, "{id} {zone} {state}");
        };
        check("slice.blue", 7, "running", Some(3));
        check("slice.blue", 7, "stopped", None);
        check("slice.blue", 8, "running", None);
        check("slice.red", 7, "running", None);
        check("blue", 7, "running", None);
        check("slice.blue", ZONE_MAX + 1, "running", None);
    }
}
