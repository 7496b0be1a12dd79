//! Figure 2: the completion times of queries for 64 bytes over each switch.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style, quote};
use crate::report::Claim;
use serde_json::json;
use std::time::Duration;

use super::curves::{NO_HARDWARE, VIRTUAL, cdf, cdf_panel, decades, median_and_tail, summary};
use super::paper::{Clients, paper};
use super::players::{HARDWARE, OVS, Target};
use super::virtual_bed::{Load, Seen, run};

/// The colour of each switch.
const STYLES: [Style; 4] = [Style::Baseline, Style::Ours, Style::Other, Style::Paper];

/// The paper's load, or a shorter one.
pub fn load(lab: &Lab, of: &Clients) -> Load {
    let lasts = lab.time(of.lasts_s as f64, 20.0);
    let counted_from = lab.time(of.counted_from_s as f64, 10.0);
    Load {
        value_bytes: of.value_bytes,
        ..Load::of_figure_2(Duration::from_millis(of.every_ms), lasts, counted_from)
    }
}

/// The targets and Open vSwitch, in the paper's order.
pub fn targets() -> impl Iterator<Item = Target> {
    HARDWARE.into_iter().chain([OVS])
}

/// Runs it.
///
/// # Errors
/// A run fails.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let load = load(lab, &paper.fig2);
    let mut claims = Vec::new();
    let (mut curves, mut data, mut medians) = (Vec::new(), Vec::new(), Vec::new());
    for (target, style) in targets().zip(STYLES) {
        lab.say(&format!("{}: a client every {} ms", target.name, paper.fig2.every_ms));
        let seen = run(&target.truth()?, &load, 1)?;
        let times = seen.completions()?;
        claims.push(completion_claim(target, &seen)?);
        curves.push(cdf(target.name, style, &times));
        medians.push((target.name, times.quantile(0.5)));
        data.push(
            json!({ "switch": target.profile, "completion": summary(&times), "failed": seen.failed, "flow_mods": seen.flow_mods }),
        );
    }
    claims.push(fastest_claim(&medians));
    let scale = decades(&curves);
    let figure = Figure {
        title: "Figure 2: completion times of queries for 64 bytes".to_owned(),
        panels: vec![
            cdf_panel("The switches", "completion time, ms", scale, curves),
            quote("The paper", &paper.fig2.place, &paper.fig2.says),
        ],
        notes: vec![NO_HARDWARE.to_owned(), VIRTUAL.to_owned()],
    };
    Ok(Findings { claims, data: json!({ "switches": data }), figure })
}

fn completion_claim(target: Target, seen: &Seen) -> Result<Claim, String> {
    let text = format!(
        "{}; {} of {} queries failed",
        median_and_tail(&seen.completions()?),
        seen.failed,
        seen.queries()
    );
    Ok(Claim::seen(&format!("{}: completion times", target.name), text))
}

/// The paper says it of Open vSwitch, which is the last.
fn fastest_claim(medians: &[(&str, f64)]) -> Claim {
    let fastest = medians.iter().min_by(|one, two| one.1.total_cmp(&two.1)).map_or("none", |it| it.0);
    Claim::asked("which completes fastest", "OVS", fastest, fastest == OVS.name)
        .beside("OVS, considerably faster than any hardware switch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_is_the_one_with_the_least_median() {
        assert_eq!(fastest_claim(&[("HP", 90.0), ("OVS", 9.0)]).holds, Some(true));
        assert_eq!(fastest_claim(&[("HP", 8.0), ("OVS", 9.0)]).holds, Some(false));
        assert_eq!(fastest_claim(&[]).holds, Some(false));
    }
}
