//! The numbers and statements of "The Price of Virtualization": `experiments/labels/paper.json`, typed from its text.
//!
//! Nothing in it is measured or guessed. If the text gives no number, there is none.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Rates by flow, such as `A to B`, in Gb/s.
pub type Gbps = BTreeMap<String, f64>;

/// The paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The title of the paper.
    pub paper: String,
    /// How the numbers were taken from the paper.
    pub how: String,
    /// Figure 1.
    pub fig1: Collision,
    /// Figure 2.
    pub fig2: Labelled,
    /// Figure 3.
    pub fig3: Said,
    /// Figure 4.
    pub fig4: Fourth,
    /// What it leaves open.
    pub beyond: Said,
}

/// Figure 4: what the text says about it.
pub type Fourth = Said;

/// Figure 1: no labels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collision {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The capacity of each link.
    pub link_gbps: u64,
    /// What each flow gets with shaping.
    pub shaped_gbps: Gbps,
    /// The sum that the text gives.
    pub sum_gbps: f64,
    /// What the network could carry.
    pub bisection_gbps: f64,
    /// What the text says about the figure.
    pub says: Vec<String>,
}

/// Figure 2: labels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// At t1, t2 and t3.
    pub rates_gbps: Vec<Gbps>,
    /// What the text says about the figure.
    pub says: Vec<String>,
}

/// Statements.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The place in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The statements, shortened.
    pub says: Vec<String>,
}

/// Reads the file, which is part of this program.
///
/// # Errors
/// The file is malformed.
pub fn paper() -> Result<Paper, String> {
    let text = include_str!("../../labels/paper.json");
    serde_json::from_str(text).map_err(|error| format!("experiments/labels/paper.json: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_figure_one_is_that_of_its_flows_and_figure_two_fills_the_network() {
        let paper = paper().unwrap();
        assert_eq!(paper.fig1.shaped_gbps.values().sum::<f64>(), paper.fig1.sum_gbps);
        let sums: Vec<f64> = paper.fig2.rates_gbps.iter().map(|rates| rates.values().sum()).collect();
        assert_eq!(sums, [10.0, 20.0, paper.fig1.bisection_gbps]);
    }
}
