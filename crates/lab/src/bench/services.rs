//! `burnet bench services`: what a call from one app to another costs, beside the wake-ups that it needs.
//!
//! ```text
//!   bare:  thread A ──> thread K ──> thread S ──> thread K ──> thread A            four wake-ups by eventfd and poll
//!   node:  bench-caller ──> kernel ──> bench-service ──> kernel ──> bench-caller   four wake-ups, and all the rest
//! ```
//!
//! `bench-caller` measures queries and bare wake-ups in turn, in short rounds, because the speed of a machine varies with
//! time. In: how many calls. Out: figures beside what was asked of them. It does not judge.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use load::figures::{median, ratio};
use serde::Serialize;

use super::args::ServicesArgs;
use super::compare::RatioReport;
use super::figure::{Bound, Figure, Unit};
use crate::apps::{self, bench_caller::Calls, bench_caller::LINE_START};
use crate::own_node::OwnNode;
use crate::printing::print_line;
use burnet::cli::CommandError;
use burnet::commands::json;

/// How long the calls may take in all.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between looks into the log.
const LOOK: Duration = Duration::from_millis(100);

/// What was measured; the JSON that is printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServicesReport {
    /// Four bare wake-ups: the median of the rounds' medians.
    pub wake_ups_p50_ns: f64,
    /// A query's median by that of four wake-ups, round by round.
    pub ratio: RatioReport,
    /// Of the calls.
    pub calls: Calls,
}

/// Measures and prints.
pub fn services(args: &ServicesArgs) -> Result<ExitCode, CommandError> {
    let report = measure(args)?;
    print_line(if args.json { json(&report)? } else { text(&report) }.trim_end())?;
    Ok(ExitCode::from(u8::from(report.calls.failed > 0)))
}

/// Starts a node with both apps, and waits for the figures of the caller.
///
/// # Errors
/// The node did not start, or the calls were not done in time.
pub fn measure(args: &ServicesArgs) -> Result<ServicesReport, CommandError> {
    let settings = format!(
        "[app.bench-caller.settings]\nalone = {}\nmany = {}\nentries = {}\n",
        args.alone, args.queries, args.entries
    );
    let node = apps::start_node(&["bench-service", "bench-caller"], &settings)?;
    node.wait_until_it_listens()?;
    let calls = wait_for_calls(&node)?;
    let (queries, wake_ups): (Vec<f64>, Vec<f64>) =
        calls.rounds.iter().map(|(query, wake_ups)| (*query as f64, *wake_ups as f64)).unzip();
    let nothing = || CommandError::DidNotWork("the bare wake-ups could not be measured".to_owned());
    let ratio = ratio(&queries, &wake_ups).ok_or_else(nothing)?.into();
    let wake_ups_p50_ns = median(&wake_ups).ok_or_else(nothing)?;
    Ok(ServicesReport { wake_ups_p50_ns, ratio, calls })
}

impl ServicesReport {
    /// The figures of it that have a bound.
    pub fn figures(&self) -> Vec<Figure> {
        let ServicesReport { wake_ups_p50_ns, ratio, calls } = self;
        let rounds = ratio.pairs.len();
        let how = format!(
            "query p50 {:.1} us, p99 {:.1} us; four bare wake-ups {:.1} us; {rounds} pairs of rounds",
            calls.p50_ns as f64 / 1e3,
            calls.p99_ns as f64 / 1e3,
            wake_ups_p50_ns / 1e3
        );
        let query = Figure::new(
            "query by four bare wake-ups, p50",
            Bound::at_most(1.3, Unit::Times),
            ratio.median,
            how,
        )
        .between(ratio.min, ratio.max);
        let per_s = Bound::at_least(3e5, Unit::PerSecond);
        let rate = Figure::new("queries of services", per_s, calls.queries_per_s as f64, "128 at once");
        // The bound is for a million entries.
        let stream_ms = calls.stream_ns as f64 / 1e6 * 1e6 / calls.entries.max(1) as f64;
        let how = format!("{} entries in {:.2} s", calls.entries, calls.stream_ns as f64 / 1e9);
        let asked = Bound::at_most(1000.0, Unit::Ms);
        vec![query, rate, Figure::new("stream of 1000000 entries of 100 bytes", asked, stream_ms, how)]
    }
}

/// The line that the caller logs when it is done.
fn wait_for_calls(node: &OwnNode) -> Result<Calls, CommandError> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let log = std::fs::read_to_string(node.log()).unwrap_or_default();
        if let Some(calls) = log.lines().find_map(calls_in) {
            return Ok(calls);
        }
        std::thread::sleep(LOOK);
    }
    let seconds = PATIENCE.as_secs();
    Err(CommandError::DidNotWork(format!("the calls were not done within {seconds} s")))
}

fn calls_in(line: &str) -> Option<Calls> {
    // The log quotes what an app says, so that quotes in it are escaped.
    let line = line.replace('\\', "");
    let begin = line.find(LINE_START)? + LINE_START.len() - 1;
    let end = begin + line[begin..].find('}')? + 1;
    serde_json::from_str(&line[begin..end]).ok()
}

fn text(report: &ServicesReport) -> String {
    let lines = report.figures().into_iter().map(|figure| figure.line() + "\n");
    lines.collect::<String>() + &format!("failed calls: {}", report.calls.failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_a_line_of_the_log_and_nowhere_else() {
        let figures = Calls { p50_ns: 7, entries: 3, rounds: vec![(2, 1)], ..Calls::default() };
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(calls_in(&format!("INFO app: services {text} app=\"x\"")), Some(figures.clone()));
        assert_eq!(calls_in(&format!("INFO \"services {}\"", text.replace('"', "\\\""))), Some(figures));
        assert_eq!(calls_in("services {}"), None);
        assert_eq!(calls_in("services {\"p50_ns\": 1"), None);
    }
}
