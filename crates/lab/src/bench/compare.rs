//! `burnet bench compare`: two targets, measured in turn in one run, and their ratio pair by pair.
//!
//! The speed of a machine varies with time. The ratio of two consecutive rounds varies less. In: two targets and a
//! load. Out: both reports, and the ratios with their spread.

use std::process::ExitCode;

use load::figures::{Ratio, ratio};
use serde::Serialize;

use super::args::{CompareArgs, LoadArgs};
use super::measurement::{Measurement, Report};
use super::target::Target;
use super::watch::Watch;
use crate::printing::print_line;
use burnet::cli::CommandError;
use burnet::commands::{json, table};

/// What comparing amounts to; the JSON that is printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first, as it was named.
    pub a_target: String,
    /// The second.
    pub b_target: String,
    /// The first's responses a second by the second's.
    pub ratio: Option<RatioReport>,
    /// The first's 99th percentile of latency by the second's, where the mode measures it.
    pub p99_ratio: Option<RatioReport>,
    /// The first's rounds.
    pub a: Report,
    /// The second's.
    pub b: Report,
}

/// Ratios of pairs of rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatioReport {
    /// The median of the pairs.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Each pair.
    pub pairs: Vec<f64>,
}

impl From<Ratio> for RatioReport {
    fn from(found: Ratio) -> Self {
        RatioReport { median: found.median, min: found.min, max: found.max, pairs: found.pairs }
    }
}

/// Measures both in turn and prints.
pub fn compare(args: &CompareArgs) -> Result<ExitCode, CommandError> {
    args.load.check()?;
    if args.load.like_cbench {
        return Err(CommandError::Usage(
            "cbench has one controller: --like-cbench goes with burnet bench southbound".to_owned(),
        ));
    }
    let watch = Watch::start(args.load.progress)?;
    let comparison = run((&args.a, &args.load), (&args.b, &args.load), &watch)?;
    if args.load.json {
        print_line(json(&comparison)?.trim_end())?;
    } else {
        print_line(text(&comparison).trim_end())?;
    }
    let incomplete = [(&comparison.a_target, &comparison.a), (&comparison.b_target, &comparison.b)];
    let incomplete: Vec<String> = incomplete
        .into_iter()
        .filter_map(|(target, report)| Some(format!("{target}: {}", report.incomplete.as_ref()?)))
        .collect();
    incomplete.iter().for_each(|why| eprintln!("burnet: {why}"));
    Ok(ExitCode::from(u8::from(!incomplete.is_empty())))
}

/// Both are connected all the time, and rounds are taken in turn: A B A B …
///
/// The rounds are as the first's load says.
///
/// # Errors
/// That a target cannot be started, or that a load cannot begin.
pub fn run(
    (a, load): (&Target, &LoadArgs),
    (b, other_load): (&Target, &LoadArgs),
    watch: &Watch,
) -> Result<Comparison, CommandError> {
    let (open_a, open_b) = (a.open()?, b.open()?);
    let mut first = Measurement::begin(load, open_a.address, |progress| watch.add(&a.to_string(), progress))?;
    let mut second =
        Measurement::begin(other_load, open_b.address, |progress| watch.add(&b.to_string(), progress))?;
    let stopped = |first: &Measurement, second: &Measurement| first.is_stopped() || second.is_stopped();
    let rounds = if first.is_connected() && second.is_connected() { load.rounds() } else { 0 };
    for number in 0..load.warmup.min(rounds) + rounds {
        if stopped(&first, &second) {
            break;
        }
        if number < load.warmup {
            first.warm_up();
            second.warm_up();
        } else {
            first.round();
            second.round();
        }
    }
    Ok(Comparison::of(a.to_string(), b.to_string(), first.report(), second.report()))
}

impl Comparison {
    fn of(a_target: String, b_target: String, a: Report, b: Report) -> Comparison {
        let rates = |report: &Report| -> Vec<f64> {
            report.rounds.iter().map(|round| round.responses_per_s).collect()
        };
        let p99s = |report: &Report| -> Vec<f64> {
            report.rounds.iter().map(|round| round.latency_us.map_or(0.0, |us| us.p99)).collect()
        };
        let timed = a.latency_us.is_some() && b.latency_us.is_some();
        Comparison {
            ratio: ratio(&rates(&a), &rates(&b)).map(Into::into),
            p99_ratio: ratio(&p99s(&a), &p99s(&b)).filter(|_| timed).map(Into::into),
            a_target,
            b_target,
            a,
            b,
        }
    }
}

fn text(comparison: &Comparison) -> String {
    let Comparison { a_target, b_target, ratio, p99_ratio, a, b } = comparison;
    let row = |target: &String, report: &Report| {
        let latency = report.latency_us.map(|us| format!("{:.1} {:.1}", us.p50, us.p99));
        [
            target.clone(),
            format!("{:.0}", report.responses_per_s),
            report.unanswered.to_string(),
            latency.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let headings = ["TARGET", "MEDIAN RESPONSES/S", "UNANSWERED", "P50 P99 US"];
    let mut text = table::columns(headings, &[row(a_target, a), row(b_target, b)]);
    let mut line = |what: &str, ratio: &Option<RatioReport>| {
        if let Some(RatioReport { median, min, max, pairs }) = ratio {
            let count = pairs.len();
            text += &format!(
                "\n{what} {a_target} by {b_target}: {median:.3} ({min:.3} to {max:.3}, {count} pairs)"
            );
        }
    };
    line("responses/s,", ratio);
    line("p99,", p99_ratio);
    text
}
