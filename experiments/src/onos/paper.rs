//! The numbers and statements of the ONOS paper: `experiments/onos/paper.json`, typed from its text.
//!
//! Nothing in it is measured or guessed. If the text gives no number, there is none.

use serde::Deserialize;

/// The paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The title of the paper.
    pub paper: String,
    /// How the numbers were taken from the paper.
    pub how: String,
    /// Changes of the network state.
    pub table1: Table1,
    /// Rerouting.
    pub table2: Latency,
    /// Path installation.
    pub table3: Installation,
    /// What the project reached later.
    pub later_records: Records,
    /// Polling.
    pub polling: Said,
    /// The demonstration on Internet2.
    pub demonstration: Demonstration,
}

/// Table 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table1 {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The rows for a switch.
    pub switch_ms: Rows,
    /// Reads of the generic model for a switch.
    pub generic_reads: usize,
    /// Writes of the generic model for a switch.
    pub generic_writes: usize,
    /// A link in the generic model.
    pub link_generic_ms: f64,
    /// A link in the new model.
    pub link_new_ms: f64,
    /// A link in the new model with InfiniBand.
    pub link_infiniband_ms: f64,
}

/// The rows of table 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Row 1.
    pub generic_graph: Row,
    /// Row 2.
    pub new_model: Row,
    /// Row 3.
    pub protocol_buffers: Row,
    /// Row 4.
    pub infiniband: Row,
}

/// A row of table 1, in milliseconds. A dash in the paper is 0.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Reading from the data store.
    pub read: f64,
    /// Writing to it.
    pub write: f64,
    /// Serialisation.
    pub serialise: f64,
    /// Deserialisation.
    pub deserialise: f64,
    /// The rest.
    pub other: f64,
    /// All of it.
    pub total: f64,
}

/// Table 2, in milliseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// To the first flow mod, median.
    pub first_median_ms: f64,
    /// To the first flow mod, 99th percentile.
    pub first_p99_ms: f64,
    /// To the last flow mod, median.
    pub total_median_ms: f64,
    /// To the last flow mod, 99th percentile.
    pub total_p99_ms: f64,
}

/// Table 3.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installation {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// To the first flow mod, median.
    pub first_median_ms: f64,
    /// To the first flow mod, 99th percentile.
    pub first_p99_ms: f64,
    /// To the last flow mod, median.
    pub total_median_ms: f64,
    /// To the last flow mod, 99th percentile.
    pub total_p99_ms: f64,
    /// The throughput that the paper derives.
    pub paths_per_s: f64,
    /// The throughput that the paper aims at, on a cluster.
    pub paths_per_s_wanted: f64,
}

/// What the project reached later with one node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// The place.
    #[serde(rename = "where")]
    pub place: String,
    /// Rules a second.
    pub rules_per_s: f64,
    /// Intents a second.
    pub intents_per_s: f64,
    /// From a port down to the graph.
    pub port_down_to_graph_ms: f64,
}

/// A statement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The statements.
    pub says: Vec<String>,
}

/// The demonstration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demonstration {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// Its switches.
    pub switches: usize,
    /// Its links.
    pub links: usize,
}

/// Reads the file, which is part of this program.
///
/// # Errors
/// The file is malformed.
pub fn paper() -> Result<Paper, String> {
    let text = include_str!("../../onos/paper.json");
    serde_json::from_str(text).map_err(|error| format!("experiments/onos/paper.json: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_it_is_read_and_the_rows_add_up() {
        let paper = paper().unwrap();
        let Rows { generic_graph, new_model, protocol_buffers, infiniband } = paper.table1.switch_ms;
        for row in [generic_graph, new_model, protocol_buffers, infiniband] {
            let sum = row.read + row.write + row.serialise + row.deserialise + row.other;
            assert!((sum - row.total).abs() <= row.total * 0.05, "{row:?} adds up to {sum}");
        }
        assert!(paper.table2.first_median_ms < paper.table2.total_median_ms);
        assert_eq!((1_000.0 / paper.table3.total_median_ms * 1_000.0).round(), paper.table3.paths_per_s);
    }
}
