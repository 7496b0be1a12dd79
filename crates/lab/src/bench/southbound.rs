//! `burnet bench southbound`: a load on one controller.
//!
//! In: what is asked. Out: rounds as they end, the result as text or JSON, and an exit code: 1 if the figures are not what was asked for.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use super::args::SouthboundArgs;
use super::cbench;
use super::measurement::{LatencyUs, Measurement, Report, Round};
use super::watch::Watch;
use crate::printing::print_line;
use burnet::cli::CommandError;
use burnet::commands::{json, table};

/// Measures and prints.
pub fn southbound(args: &SouthboundArgs) -> Result<ExitCode, CommandError> {
    args.load.check()?;
    let watch = Watch::start(args.load.progress)?;
    let name = args.target.to_string();
    let mut measurement =
        Measurement::begin(&args.load, args.target.0, |progress| watch.add(&name, progress))?;
    let says_cbenchs_lines = args.load.like_cbench && !args.load.json;
    let rounds = if measurement.is_connected() { args.load.rounds() } else { 0 };
    for number in 0..args.load.warmup.min(rounds) + rounds {
        if measurement.is_stopped() {
            break;
        }
        let round =
            if number < args.load.warmup { Some(&measurement.warm_up()) } else { measurement.round() };
        if let Some(round) = round.filter(|_| says_cbenchs_lines) {
            print_line(&cbench::round_line(SystemTime::now(), round))?;
        }
    }
    let rates = measurement.rates();
    let report = measurement.report();
    if args.load.json {
        print_line(json(&report)?.trim_end())?;
    } else if says_cbenchs_lines && !rates.is_empty() {
        print_line(&cbench::result_line(report.switches, &rates))?;
    } else {
        print_line(text(&report).trim_end())?;
    }
    Ok(exit_code(&report))
}

/// 1 if the figures are not what was asked for; standard error says why.
fn exit_code(report: &Report) -> ExitCode {
    match &report.incomplete {
        None => ExitCode::SUCCESS,
        Some(why) => {
            eprintln!("burnet: {why}");
            ExitCode::from(1)
        }
    }
}

/// The report for a terminal.
pub fn text(report: &Report) -> String {
    let Report { switches, hosts, version, mode, target, threads, .. } = report;
    let rate = report.rate_per_s.map(|per_s| format!(" at {per_s} a second")).unwrap_or_default();
    let mut text = format!(
        "{target}: {switches} switches of {hosts} hosts, OpenFlow {version}, {mode}{rate}, {threads} thread(s)\n{}\n\n",
        report.machine
    );
    let rows: Vec<[String; 7]> =
        report.rounds.iter().zip(1..).map(|(round, number)| row(number, round)).collect();
    let headings =
        ["ROUND", "RESPONSES/S", "SENT", "OUTSIDE", "UNANSWERED", "SWITCH LEAST-MOST", "P50 P99 MAX US"];
    text += &table::columns(headings, &rows);
    // Writing into a string cannot fail.
    let _ = writeln!(text, "\nmedian {:.0} responses/s", report.responses_per_s);
    if let Some(LatencyUs { p50, p90, p99, p99_9, max }) = report.latency_us {
        let _ = writeln!(
            text,
            "latency in us: p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p99_9:.1}, max {max:.1}"
        );
    }
    text
}

fn row(number: usize, round: &Round) -> [String; 7] {
    let latency = round.latency_us.map(|us| format!("{:.1} {:.1} {:.1}", us.p50, us.p99, us.max));
    [
        number.to_string(),
        format!("{:.0}", round.responses_per_s),
        round.sent.to_string(),
        round.outside.to_string(),
        round.unanswered.to_string(),
        format!("{}-{}", round.answered_by_switch.min, round.answered_by_switch.max),
        latency.unwrap_or_else(|| "-".to_owned()),
    ]
}
