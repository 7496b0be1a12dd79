//! The numbers and statements of the Rosemary paper: `experiments/rosemary/paper.json`, typed from its text.
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
    /// Application crash.
    pub fig16: Said,
    /// Memory against time.
    pub fig17: Leak,
    /// Data access denied.
    pub fig18: Said,
    /// Figures 19 to 22.
    pub throughput: Throughput,
    /// Table 1.
    pub table1: Table1,
}

/// A figure that is a screenshot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The statements of the figure.
    pub says: Vec<String>,
}

/// Figure 17.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leak {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// When the leak begins, on the time axis of the figure.
    pub leak_begins_s: f64,
    /// When Rosemary's app has reached its limit.
    pub rosemary_at_limit_s: f64,
    /// That limit.
    pub rosemary_limit_bytes: f64,
    /// When Floodlight has no more memory.
    pub floodlight_out_of_memory_s: f64,
}

/// Figures 19 to 22.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// The load generator and the app.
    pub tool: String,
    /// The place in the paper for 1 Gb/s.
    pub where_1g: String,
    /// The place in the paper for 10 Gb/s.
    pub where_10g: String,
    /// Figure 19.
    pub fig19_says: Vec<String>,
    /// Figure 20.
    pub fig20_says: Vec<String>,
    /// Figure 21.
    pub fig21_says: Vec<String>,
    /// Figure 22.
    pub fig22_says: Vec<String>,
    /// The throughput of a user app as a share of a kernel app's, minimum and maximum, at 1 Gb/s.
    pub user_by_kernel_1g: (f64, f64),
    /// The paper's statement about it, shortened.
    pub user_by_kernel_1g_says: String,
    /// The same at 10 Gb/s.
    pub user_by_kernel_10g: (f64, f64),
    /// The paper's statement about that.
    pub user_by_kernel_10g_says: String,
    /// The throughput that a kernel app exceeds, according to the paper.
    pub kernel_app_most_per_s: f64,
}

/// Table 1 and what belongs to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table1 {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The threshold for rules, in per cent of a switch's table.
    pub rule_threshold_percent: f64,
}

/// Reads the file, which is part of this program.
///
/// # Errors
/// The file is malformed.
pub fn paper() -> Result<Paper, String> {
    let text = include_str!("../../rosemary/paper.json");
    serde_json::from_str(text).map_err(|error| format!("experiments/rosemary/paper.json: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_it_is_read() {
        let paper = paper().unwrap();
        assert!(paper.fig17.leak_begins_s < paper.fig17.rosemary_at_limit_s);
        assert!(!paper.fig16.says.is_empty() && !paper.fig18.says.is_empty());
    }
}
