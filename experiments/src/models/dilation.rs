//! Time dilation: a load that this machine cannot emulate in real time, ten times slower.
//!
//! ```text
//!   burnet-lab bench profiles: virtual time │ real time │ real time in slow motion ──> verdicts and completion times
//! ```
//!
//! The truth is the run in virtual time. In: the program of the laboratory. Out: whether the meter calls the runs valid, and how far their
//! completion times are from the truth. The hosts are emulated, and their timers of TCP are not slowed.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style};
use crate::report::Claim;
use profile::compare::{Samples, ks};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

use super::curves::{cdf, cdf_panel, decades, median_and_tail};
use super::judged::KS_LIMIT;

/// How many times slower.
const FACTOR: u32 = 10;
/// A switch with a fast CPU, so that 250 of them are too much for two cores. Each has half the load that its CPU can take.
const PROFILE: &str = "ovs-1.7-x3210";
const SWITCHES: usize = 250;
const RULES_PER_S: u32 = 200;

/// A run of the laboratory.
struct Ran {
    completions: Samples,
    /// What the meter says, in a word. Virtual time has no meter.
    verdict: Option<String>,
    report: Value,
}

/// Runs it.
///
/// # Errors
/// The laboratory is not there, or a run fails.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let switches = lab.times(SWITCHES, 20);
    let seconds = lab.time(20.0, 2.0).as_secs();
    let factor = if lab.short { 2 } else { FACTOR };
    let run = |what: &str, words: &[&str]| {
        lab.say(&format!("{switches} switches for {seconds} s: {what}"));
        bench(lab, switches, seconds, words)
    };
    let truth = run("virtual time", &["--virtual-time"])?;
    let real = run("real time", &[])?;
    let slow = run(&format!("{factor} times slower"), &["--slow-motion", &factor.to_string()])?;
    let distance = |ran: &Ran| ks(&truth.completions, &ran.completions).distance;
    let (far, near) = (distance(&real), distance(&slow));
    let said = |ran: &Ran| ran.verdict.clone().unwrap_or_else(|| "nothing".to_owned());
    let claims = vec![
        Claim::asked("what the meter says in real time", "invalid", said(&real), said(&real) == "invalid"),
        Claim::asked("what it says in slow motion", "valid", said(&slow), said(&slow) == "valid"),
        Claim::asked(
            "slow motion beside virtual time, KS",
            &format!("below {KS_LIMIT}"),
            format!("{near:.3}"),
            near < KS_LIMIT,
        ),
        Claim::seen("real time beside virtual time, KS", format!("{far:.3}")),
        Claim::seen("completion times in virtual time", median_and_tail(&truth.completions)),
    ];
    let data = json!({
        "switches": switches, "seconds": seconds, "factor": factor,
        "virtual": truth.report, "real": real.report, "slow": slow.report,
    });
    let curves = vec![
        cdf("virtual time", Style::Baseline, &truth.completions),
        cdf("real time", Style::Other, &real.completions),
        cdf("slow motion", Style::Ours, &slow.completions),
    ];
    let scale = decades(&curves);
    let figure = Figure {
        title: format!("{switches} switches in real time and {factor} times slower"),
        panels: vec![cdf_panel("Queries", "completion time, ms", scale, curves)],
        notes: vec![
            "Not in the paper, which leaves dilation to later work. The curves depend on the machine."
                .to_owned(),
        ],
    };
    Ok(Findings { claims, data, figure })
}

fn bench(lab: &Lab, switches: usize, seconds: u64, words: &[&str]) -> Result<Ran, String> {
    let laboratory =
        lab.beside("burnet-lab").ok_or("burnet-lab is not beside the binary: cargo build -p lab")?;
    let mut command = Command::new(laboratory);
    command.args(["bench", "profiles", "--json", "--profile", PROFILE, "--switches", &switches.to_string()]);
    command.args(["--seconds", &seconds.to_string(), "--rules-per-s", &RULES_PER_S.to_string()]);
    let ran = command.args(words).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("burnet-lab does not start: {error}"))?;
    if !ran.status.success() {
        return Err(format!("burnet-lab bench profiles: {}", String::from_utf8_lossy(&ran.stderr).trim()));
    }
    let report: Value =
        serde_json::from_slice(&ran.stdout).map_err(|error| format!("its report: {error}"))?;
    read(report)
}

fn read(report: Value) -> Result<Ran, String> {
    let quantiles = report["completion_ms"].as_array().ok_or("its report has no completion times")?;
    let us = quantiles.iter().filter_map(Value::as_f64).map(|ms| ms * 1e3).collect();
    let completions = Samples::new(us).map_err(|why| format!("no query was completed: {why}"))?;
    let verdict = report["validity"]["validity"].as_str().map(str::to_owned);
    Ok(Ran { completions, verdict, report })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_completed_queries_is_an_error() {
        assert!(read(json!({ "completion_ms": [] })).is_err());
        assert!(read(json!({})).is_err());
        let ran = read(json!({ "completion_ms": [1.0, 2.0], "validity": { "validity": "valid" } })).unwrap();
        assert_eq!((ran.completions.count(), ran.verdict.as_deref()), (2, Some("valid")));
    }
}
