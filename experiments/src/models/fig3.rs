//! Figure 3: queries for 5 MB, one every 10 ms, while rules have no hard time-out.
//!
//! The flows of the paper's bound count as queries here, each with two rules: see decision 108.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style, quote};
use crate::report::Claim;
use emulator::{Arrivals, RuleTimeouts};
use profile::Profile;
use profile::compare::{Samples, ks};
use serde_json::{Value, json};
use std::time::Duration;

use super::curves::{NO_HARDWARE, VIRTUAL, cdf_panel, decades, scaled_cdf};
use super::fig2::targets;
use super::paper::{Churn, paper};
use super::players::{OVS, Target};
use super::virtual_bed::{Load, Seen, run, samples};

/// The largest KS distance of throughputs.
pub(super) const KS_LIMIT: f64 = 0.1;
/// The largest difference of shares.
pub(super) const SHARE_LIMIT: f64 = 0.05;
/// The seeds of a target and of its emulator.
pub(super) const SEEDS: [u64; 2] = [1, 2];

/// Further seeds of the target, which show how much it differs from itself.
const OTHER_SEEDS: [u64; 3] = [2, 3, 4];

/// A run, with its throughputs in bits a second.
pub(super) struct Churned {
    pub(super) seen: Seen,
    pub(super) bits_per_s: Samples,
}

/// Runs it.
///
/// # Errors
/// A run or the probe fails.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let (mut claims, mut panels, mut data) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for target in targets() {
        let load = load_of(&paper.fig3, target, lab.time(120.0, 3.0))?;
        lab.say(&format!("{}: at most {} queries at once", target.name, load.open_max));
        let truth = churn(&target.truth()?, &load, SEEDS[0])?;
        let mut curves =
            vec![scaled_cdf(&format!("{} (target)", target.name), Style::Baseline, &truth.bits_per_s, 1e-6)];
        let mut numbers = vec![json_of("target", &truth)];
        claims.push(refusal_claim(target, &paper.fig3, &truth.seen));
        if target.profile != OVS.profile {
            let full = churn(&target.full()?, &load, SEEDS[1])?;
            let others: Vec<Churned> = OTHER_SEEDS
                .into_iter()
                .map(|seed| churn(&target.truth()?, &load, seed))
                .collect::<Result<_, String>>()?;
            claims.extend(likeness_claims(target, &truth, &full, &others));
            numbers.extend(others.iter().map(|other| json_of("target, another seed", other)));
            curves.push(scaled_cdf("emulator", Style::Ours, &full.bits_per_s, 1e-6));
            numbers.push(json_of("emulator", &full));
        }
        let scale = decades(&curves);
        panels.push(cdf_panel(target.name, "throughput of a client, Mb/s", scale, curves));
        data.insert(target.profile.to_owned(), Value::Array(numbers));
    }
    panels.push(quote("The paper", &paper.fig3.place, &paper.fig3.says));
    let figure = Figure {
        title: "Figure 3: throughput of queries for 5 MB".to_owned(),
        panels,
        notes: vec![NO_HARDWARE.to_owned(), VIRTUAL.to_owned()],
    };
    Ok(Findings { claims, data: Value::Object(data), figure })
}

/// Clients begin for so long, and queries have as long again.
pub(super) fn load_of(of: &Churn, target: Target, lasts: Duration) -> Result<Load, String> {
    let open_max = of.flows_max.get(target.profile).copied();
    Ok(Load {
        arrivals: Arrivals::Even,
        every: Duration::from_millis(of.every_ms),
        value_bytes: of.value_bytes,
        lasts,
        counted_from: Duration::ZERO,
        open_max: open_max.ok_or_else(|| format!("the paper has no bound of flows for {}", target.name))?,
        // As long again: what has not completed then counts as failed.
        timeout: lasts,
        rules: RuleTimeouts { idle_s: of.idle_timeout_s, hard_s: 0 },
        with_delays: false,
    })
}

/// Runs the load in virtual time.
pub(super) fn churn(profile: &Profile, load: &Load, seed: u64) -> Result<Churned, String> {
    let seen = run(profile, load, seed)?;
    let bits_per_s = throughputs(&seen, load, &profile.name)?;
    Ok(Churned { seen, bits_per_s })
}

/// The throughput of each query that completed.
pub(super) fn throughputs(seen: &Seen, load: &Load, over: &str) -> Result<Samples, String> {
    let bits = load.value_bytes as f64 * 8.0;
    let rates: Vec<f64> = seen.completion_us.iter().map(|us| bits * 1e6 / us.max(1.0)).collect();
    samples(&rates, &format!("throughputs over {over}"))
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

/// The share of flow mods that the switch refused.
pub(super) fn refused(seen: &Seen) -> f64 {
    share(seen.refused as f64, seen.flow_mods as f64)
}

/// The share of counted queries that completed.
pub(super) fn completed(seen: &Seen) -> f64 {
    share(seen.completion_us.len() as f64, seen.queries() as f64)
}

/// Whether the switch refuses flows as the paper says.
pub(super) fn refusal_claim(target: Target, of: &Churn, seen: &Seen) -> Claim {
    let refuses = of.refuses.get(target.profile).copied().unwrap_or(false);
    let word = |refuses: bool| if refuses { "refuses flows" } else { "refuses none" };
    let text = format!(
        "{}: {} of {} flow mods; {} of {} queries completed, {} did not begin",
        word(seen.refused > 0),
        seen.refused,
        seen.flow_mods,
        seen.completion_us.len(),
        seen.queries(),
        seen.skipped
    );
    Claim::asked(
        &format!("{}: a full table", target.name),
        word(refuses),
        text,
        (seen.refused > 0) == refuses,
    )
    .beside(word(refuses))
}

/// Whether the emulator is like its target. What the target differs from itself with other seeds stands beside: it is no limit.
fn likeness_claims(target: Target, truth: &Churned, full: &Churned, others: &[Churned]) -> Vec<Claim> {
    let range =
        |values: &[f64]| values.iter().fold((f64::MAX, 0.0_f64), |(a, b), it| (a.min(*it), b.max(*it)));
    let claim = |what: &str, of: fn(&Seen) -> f64| {
        let (one, two) = (of(&truth.seen), of(&full.seen));
        let (least, most) = range(&others.iter().map(|other| of(&other.seen) * 100.0).collect::<Vec<f64>>());
        let text = format!(
            "target {:.1} %, emulator {:.1} %; the target with other seeds {least:.1} to {most:.1} %",
            one * 100.0,
            two * 100.0
        );
        let asked = format!("within {:.0} % of all", SHARE_LIMIT * 100.0);
        Claim::asked(
            &format!("{}: share {what}", target.name),
            &asked,
            text,
            (one - two).abs() <= SHARE_LIMIT,
        )
    };
    let from_target = |other: &Churned| ks(&truth.bits_per_s, &other.bits_per_s).distance;
    let distance = from_target(full);
    let (least, most) = range(&others.iter().map(from_target).collect::<Vec<f64>>());
    vec![
        claim("of flow mods refused", refused),
        claim("of queries completed", completed),
        Claim::asked(
            &format!("{}: KS distance of throughputs", target.name),
            &format!("< {KS_LIMIT}"),
            format!("{distance:.3}; the target to itself {least:.3} to {most:.3}"),
            distance < KS_LIMIT,
        ),
    ]
}

/// Counts and quantiles.
pub(super) fn json_of(who: &str, churned: &Churned) -> Value {
    let Churned { seen, bits_per_s } = churned;
    let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|q| (q, bits_per_s.quantile(q)));
    json!({
        "who": who,
        "completed": seen.completion_us.len(),
        "failed": seen.failed,
        "did_not_begin": seen.skipped,
        "flow_mods": seen.flow_mods,
        "refused": seen.refused,
        "quantiles_bits_per_s": quantiles,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::players::HARDWARE;

    #[test]
    fn one_refusal_is_enough_and_none_is_asked_of_the_hp() {
        let of = paper().unwrap().fig3;
        let (none, one) =
            (Seen::default(), Seen { refused: 1, flow_mods: 9, completion_us: vec![1.0], ..Seen::default() });
        let [hp, monaco, _] = HARDWARE;
        let holds = |target, seen| refusal_claim(target, &of, seen).holds;
        assert_eq!([holds(hp, &none), holds(hp, &one)], [Some(true), Some(false)]);
        assert_eq!([holds(monaco, &none), holds(monaco, &one)], [Some(false), Some(true)]);
        assert_eq!((refused(&none), completed(&none)), (0.0, 0.0), "nothing of nothing");
    }
}
