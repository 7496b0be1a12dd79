//! `burnet bench services`: what a call from one app to another costs, beside the wake-ups that it needs.
//!
//! ```text
//!   bare:  thread A ──> thread K ──> thread S ──> thread K ──> thread A            four wake-ups by eventfd and poll
//!   node:  bench-caller ──> kernel ──> bench-service ──> kernel ──> bench-caller   four wake-ups, and all the rest
//! ```
//!
//! The bare round is measured before and after the calls, in the same run. In: how many calls. Out: figures beside what was asked of them. It does not judge.

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::thread::scope;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use serde::Serialize;

use super::args::ServicesArgs;
use super::say;
use crate::apps::{self, bench_caller::Figures, bench_caller::MARK};
use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use burnet::commands::json;

/// Rounds of wake-ups before and after the calls.
const BARE_ROUNDS: usize = 5_000;

/// How long the calls may take in all.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between looks into the log.
const LOOK: Duration = Duration::from_millis(100);

/// What was measured; the JSON that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServicesReport {
    /// Four bare wake-ups: half of the rounds took no longer.
    pub wake_ups_p50_ns: u64,
    /// A query's median by that of four wake-ups.
    pub ratio: f64,
    /// Of the calls.
    pub calls: Figures,
}

/// Measures and prints.
pub fn services(args: &ServicesArgs) -> Result<ExitCode, CommandError> {
    let report = measure(args)?;
    say(if args.json { json(&report)? } else { text(&report) }.trim_end())?;
    Ok(ExitCode::from(u8::from(report.calls.failed > 0)))
}

fn measure(args: &ServicesArgs) -> Result<ServicesReport, CommandError> {
    let mut placed = Ok(());
    let settings = format!(
        "[app.bench-caller.settings]\nalone = {}\nmany = {}\nentries = {}\n",
        args.alone, args.queries, args.entries
    );
    let trouble = |error: std::io::Error| CommandError::DidNotWork(format!("the bare wake-ups: {error}"));
    let mut bare = bare_rounds().map_err(trouble)?;
    let mut node = OwnNode::start_configured(|folder| {
        placed = apps::place(folder);
        apps::table(folder, "bench-service") + &apps::table(folder, "bench-caller") + &settings
    })?;
    placed.map_err(|error| CommandError::DidNotWork(format!("no files for the apps: {error}")))?;
    node.wait_until_it_listens()?;
    let calls = wait_for_figures(&node)?;
    drop(node);
    bare.extend(bare_rounds().map_err(trouble)?);
    bare.sort_unstable();
    let wake_ups_p50_ns = bare[bare.len() / 2];
    let ratio = calls.p50_ns as f64 / wake_ups_p50_ns.max(1) as f64;
    Ok(ServicesReport { wake_ups_p50_ns, ratio, calls })
}

/// The line that the caller logs when it is done.
fn wait_for_figures(node: &OwnNode) -> Result<Figures, CommandError> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let log = std::fs::read_to_string(node.log()).unwrap_or_default();
        if let Some(figures) = log.lines().find_map(figures_in) {
            return Ok(figures);
        }
        std::thread::sleep(LOOK);
    }
    let seconds = PATIENCE.as_secs();
    Err(CommandError::DidNotWork(format!("the calls were not done within {seconds} s")))
}

fn figures_in(line: &str) -> Option<Figures> {
    // The log quotes what an app says, so that quotes in it are escaped.
    let line = line.replace('\\', "");
    let begin = line.find(MARK)? + MARK.len() - 1;
    let end = begin + line[begin..].find('}')? + 1;
    serde_json::from_str(&line[begin..end]).ok()
}

/// Nanoseconds of each round of four wake-ups.
fn bare_rounds() -> std::io::Result<Vec<u64>> {
    let bells: Vec<OwnedFd> = (0..3).map(|_| eventfd(0, EventfdFlags::empty())).collect::<Result<_, _>>()?;
    let [caller, kernel, service] = &bells[..] else { return Ok(Vec::new()) };
    scope(|scope| {
        scope.spawn(|| relay(kernel, &[service, caller]));
        scope.spawn(|| relay(service, &[kernel]));
        let mut rounds = Vec::with_capacity(BARE_ROUNDS);
        for _ in 0..BARE_ROUNDS {
            let began = Instant::now();
            ring(kernel)?;
            wait(caller)?;
            rounds.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(rounds)
    })
}

/// Waits for its own bell and rings the next of these, until all rounds are over.
fn relay(own: &OwnedFd, next: &[&OwnedFd]) {
    for turn in 0..BARE_ROUNDS * next.len() {
        if wait(own).and_then(|()| ring(next[turn % next.len()])).is_err() {
            return;
        }
    }
}

fn ring(bell: &OwnedFd) -> std::io::Result<()> {
    Ok(rustix::io::write(bell, &1_u64.to_ne_bytes()).map(drop)?)
}

/// As an app does: poll, then read.
fn wait(bell: &OwnedFd) -> std::io::Result<()> {
    poll(&mut [PollFd::new(bell, PollFlags::IN)], None)?;
    Ok(rustix::io::read(bell, &mut [0_u8; 8]).map(drop)?)
}

fn text(report: &ServicesReport) -> String {
    let ServicesReport { wake_ups_p50_ns, ratio, calls } = report;
    let us = |ns: u64| ns as f64 / 1e3;
    format!(
        "query and answer, p50        {:.1} us, p99 {:.1} us\n\
         four bare wake-ups, p50      {:.1} us\n\
         ratio                        {ratio:.2} (asked: at most 1.3)\n\
         queries a second             {} (asked: 300,000)\n\
         stream of {} entries    {:.2} s (asked: 1,000,000 of 100 bytes in 1 s)\n\
         failed                       {}",
        us(calls.p50_ns),
        us(calls.p99_ns),
        us(*wake_ups_p50_ns),
        calls.queries_per_s,
        calls.entries,
        calls.stream_ns as f64 / 1e9,
        calls.failed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_a_line_of_the_log_and_nowhere_else() {
        let figures = Figures { p50_ns: 7, entries: 3, ..Figures::default() };
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(figures_in(&format!("INFO app: services {text} app=\"x\"")), Some(figures));
        assert_eq!(figures_in(&format!("INFO \"services {}\"", text.replace('"', "\\\""))), Some(figures));
        assert_eq!(figures_in("services {}"), None);
        assert_eq!(figures_in("services {\"p50_ns\": 1"), None);
    }

    #[test]
    fn bare_wake_ups_come_back_each_round() {
        assert_eq!(bare_rounds().unwrap().len(), BARE_ROUNDS);
    }
}
