//! What a proxy with the null profile adds to queries: Open vSwitch with and without it, in turn.
//!
//! In: runs of the testbed. Out: the completion times of queries that each wait for their rules, and a claim. It never emulates a switch: the
//! null profile changes nothing.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style};
use crate::report::Claim;
use profile::Profile;
use serde_json::json;

use super::bed::{Device, Load, Outcome, run};
use super::figures::{load, pooled, text_of};
use crate::models::curves::{cdf, cdf_panel, decades, median_and_tail, summary};
use crate::models::delays::PARTS;

/// Runs of each, in turn, so that a slow minute of the machine affects both.
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
    let text = text_of(&Profile::null())?;
    let load =
        Load { lasts: lab.time(LASTS_S, 8.0), counted_from: lab.time(COUNTED_FROM_S, 3.0), ..load(lab)? };
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for number in 1..=lab.times(RUNS, 1) {
        lab.say(&format!("run {number}: Open vSwitch alone, then behind the null profile"));
        alone.push(run(lab, &Device::Ovs, &load)?);
        behind.push(run(lab, &Device::Proxied(text.clone(), "full"), &load)?);
    }
    findings(&alone, &behind)
}

fn findings(alone: &[Outcome], behind: &[Outcome]) -> Result<Findings, String> {
    let [(_, completion), _, _] = PARTS;
    let (one, two) = (pooled(alone, completion)?, pooled(behind, completion)?);
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
