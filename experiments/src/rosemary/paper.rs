//! The numbers and statements of the Rosemary paper: `experiments/rosemary/paper.json`, typed from its text.
//!
//! Nothing in it is measured or guessed. If the text gives no number, there is none.

use serde::Deserialize;

/// The paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Which paper.
    pub paper: String,
    /// How the numbers were had.
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
    /// Where in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// What it shows.
    pub says: Vec<String>,
}

/// Figure 17.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leak {
    /// Where in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// On the figure's own clock.
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
    /// What generated and what answered.
    pub tool: String,
    /// Where in the paper, for 1 Gb/s.
    pub where_1g: String,
    /// Where in the paper, for 10 Gb/s.
    pub where_10g: String,
    /// Figure 19.
    pub fig19_says: Vec<String>,
    /// Figure 20.
    pub fig20_says: Vec<String>,
    /// Figure 21.
    pub fig21_says: Vec<String>,
    /// Figure 22.
    pub fig22_says: Vec<String>,
    /// A user app's throughput by a kernel app's, least and most, at 1 Gb/s.
    pub user_by_kernel_1g: (f64, f64),
    /// In the paper's words, more or less.
    pub user_by_kernel_1g_says: String,
    /// The same at 10 Gb/s.
    pub user_by_kernel_10g: (f64, f64),
    /// Likewise.
    pub user_by_kernel_10g_says: String,
    /// What a kernel app is said to exceed.
    pub kernel_app_most_per_s: f64,
}

/// Table 1 and what belongs to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table1 {
    /// Where in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// Of a switch's table, so many hundredths are the threshold for rules.
    pub rule_threshold_percent: f64,
}

/// Reads the file, which is part of this program.
///
/// # Errors
/// It was written wrongly.
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
