//! The numbers and statements of the switch-models paper: `experiments/models/paper.json`, typed from its text and its Table 1.
//!
//! Nothing in it is measured or guessed. If the text gives no number, there is none.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The title of the paper.
    pub paper: String,
    /// How the numbers were taken from the paper, and that no hardware is here.
    pub how: String,
    /// Table 1.
    pub table1: Table1,
    /// Figure 2.
    pub fig2: Clients,
    /// Figure 3.
    pub fig3: Churn,
    /// Figures 5 to 7.
    pub delays: Delays,
    /// Figure 8.
    pub fig8: Differences,
    /// What the paper says of its machines.
    pub validity: Validity,
}

/// Table 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table1 {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// Its rows.
    pub switches: Vec<Row>,
}

/// A row of Table 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The built-in profile of this switch.
    pub profile: String,
    /// Its name in the paper.
    pub name: String,
    /// Its firmware.
    pub firmware: String,
    /// Its processor.
    pub cpu: String,
    /// The rate of its links, in Gb/s.
    pub link_gbps: u32,
    /// Flow table entries.
    pub entries: u32,
    /// Flow set-ups a second.
    pub setups_per_s: f64,
    /// Whether it has a software table.
    pub software_table: String,
}

/// Figure 2.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The time between two clients.
    pub every_ms: u64,
    /// The value that each asks for.
    pub value_bytes: u64,
    /// The length of the experiment.
    pub lasts_s: u64,
    /// What is counted begins here.
    pub counted_from_s: u64,
    /// What the text says about the figure.
    pub says: Vec<String>,
}

/// Figure 3.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The time between two clients.
    pub every_ms: u64,
    /// The value that each asks for.
    pub value_bytes: u64,
    /// The idle time-out of rules.
    pub idle_timeout_s: u16,
    /// The most concurrent flows, by profile.
    pub flows_max: BTreeMap<String, u32>,
    /// Whether the switch refuses flows, by profile.
    pub refuses: BTreeMap<String, bool>,
    /// What the text says about the figure.
    pub says: Vec<String>,
}

/// Figures 5 to 7.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The range of half of the delays at ingress in Open vSwitch.
    pub ovs_ingress_ms: (f64, f64),
    /// What the text says about the figures.
    pub says: Vec<String>,
}

/// Figure 8.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// By how much the means differ, and the number behind ±, by profile.
    pub mean_differs_ms: BTreeMap<String, (f64, f64)>,
    /// What the text says about the figure.
    pub says: Vec<String>,
}

/// What the paper says of its machines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validity {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The processor use that no experiment exceeded.
    pub processor_max_percent: f64,
}

impl Paper {
    /// The row of a profile.
    pub fn row(&self, profile: &str) -> Option<&Row> {
        self.table1.switches.iter().find(|row| row.profile == profile)
    }
}

/// Reads the file, which is part of this program.
///
/// # Errors
/// The file is malformed.
pub fn paper() -> Result<Paper, String> {
    let text = include_str!("../../models/paper.json");
    serde_json::from_str(text).map_err(|error| format!("experiments/models/paper.json: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::built_in;

    #[test]
    fn each_switch_of_the_file_has_a_profile_with_the_same_table() {
        let paper = paper().unwrap();
        for row in &paper.table1.switches {
            let profile = built_in(&row.profile).unwrap();
            let sizes = profile.hardware.iter().flat_map(|it| &it.capacities).map(|it| it.entries);
            let of_software = profile.software.as_ref().and_then(|it| it.entries);
            let largest = sizes.chain(of_software).max();
            assert_eq!(largest, Some(row.entries), "{}", row.name);
            assert!(paper.fig3.flows_max.contains_key(&row.profile), "{}", row.name);
            assert!(paper.fig3.refuses.contains_key(&row.profile), "{}", row.name);
        }
        let three = paper.fig8.mean_differs_ms.keys().all(|name| paper.row(name).is_some());
        assert!(three && paper.fig8.mean_differs_ms.len() == 3);
    }
}
