//! What a proxy with the null profile adds to queries: Open vSwitch with and without it, in turn.
//!
//! In: nothing but the laboratory. Out: completion times, of which each has its rules set up first, and a claim. No switch is emulated here.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style};
use crate::report::Claim;
use profile::Profile;
use profile::compare::Samples;
use serde_json::json;
use std::time::Duration;

use super::bed::{Device, Load, Outcome, run};
use crate::models::curves::{cdf, cdf_panel, decades, median_and_tail, summary};
use crate::models::delays::{PARTS, Part};
use crate::models::paper::paper;
use crate::models::virtual_bed::samples;

/// Runs of each, in turn, so that a slow minute of the machine is a part of both.
const RUNS: usize = 3;
const LASTS_S: f64 = 40.0;
/// What comes before is not counted: processes start.
const COUNTED_FROM_S: f64 = 5.0;
/// The most that the null profile may add.
const ADDED_MAX: f64 = 0.1;

/// Runs it.
///
/// # Errors
/// A run fails.
pub fn round_trip(lab: &Lab) -> Result<Findings, String> {
    let null = Profile::null();
    let text = null.to_toml().map_err(|why| format!("{}: {why}", null.name))?;
    let load = load(lab)?;
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for number in 1..=lab.times(RUNS, 1) {
        lab.say(&format!("run {number}: Open vSwitch alone, then behind the null profile"));
        alone.push(run(lab, &Device::Ovs, &load)?);
        behind.push(run(lab, &Device::Proxied(text.clone(), "full"), &load)?);
    }
    findings(&alone, &behind)
}

fn load(lab: &Lab) -> Result<Load, String> {
    let of = paper()?.fig2;
    Ok(Load {
        every: Duration::from_millis(of.every_ms),
        lasts: lab.time(LASTS_S, 8.0),
        counted_from: lab.time(COUNTED_FROM_S, 3.0),
        value_bytes: usize::try_from(of.value_bytes).map_err(|why| why.to_string())?,
        busy_loops: 0,
    })
}

fn completions(runs: &[Outcome]) -> Result<Samples, String> {
    let all: Vec<f64> = runs.iter().flat_map(|run| run.seen.completion_us.iter().copied()).collect();
    samples(&all, "queries")
}

fn pooled(runs: &[Outcome], of: Part) -> Result<Samples, String> {
    let all: Vec<f64> = runs.iter().flat_map(|run| of(&run.seen).iter().copied()).collect();
    samples(&all, "delays")
}

fn findings(alone: &[Outcome], behind: &[Outcome]) -> Result<Findings, String> {
    let (one, two) = (completions(alone)?, completions(behind)?);
    let added = two.quantile(0.5) / one.quantile(0.5) - 1.0;
    let mut claims = vec![Claim::asked(
        "what the null profile adds to the median query",
        &format!("at most {:.0} %", 100.0 * ADDED_MAX),
        format!("{:.1} %", 100.0 * added),
        added <= ADDED_MAX,
    )];
    for (part, of) in PARTS {
        let (one, two) = (median_and_tail(&pooled(alone, of)?), median_and_tail(&pooled(behind, of)?));
        claims.push(Claim::seen(part, format!("Open vSwitch alone {one}; behind the null profile {two}")));
    }
    let curves = vec![
        cdf("Open vSwitch alone", Style::Baseline, &one),
        cdf("behind the null profile", Style::Ours, &two),
    ];
    let scale = decades(&curves);
    let figure = Figure {
        title: "What a proxy with the null profile adds".to_owned(),
        panels: vec![cdf_panel("Queries whose rules are set up first", "completion time, ms", scale, curves)],
        notes: vec![
            "Not in the paper. In real time, as root: namespaces, redis-server, Open vSwitch and a node."
                .to_owned(),
        ],
    };
    let data = json!({ "alone": summary(&one), "behind": summary(&two) });
    Ok(Findings { claims, data, figure })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::virtual_bed::Seen;

    #[test]
    fn a_tenth_more_is_allowed_and_two_tenths_are_not() {
        let outcome = |us: f64| Outcome {
            seen: Seen {
                completion_us: vec![us; 30],
                ingress_us: vec![us],
                egress_us: vec![us],
                ..Seen::default()
            },
            validity: None,
            unread: 0,
        };
        let holds = |us: f64| findings(&[outcome(1000.0)], &[outcome(us)]).unwrap().claims[0].holds;
        assert_eq!(holds(1095.0), Some(true));
        assert_eq!(holds(1200.0), Some(false));
    }
}
