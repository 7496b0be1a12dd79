//! `burnet attack`: every attack that an app or a switch could try, each against a node of its own, and a scorecard.
//!
//! ```text
//!   case::CASES ──each──> trial (a node with a firewall, a learning switch and the attacker; switches, hosts that ping) ──> Evidence
//!                  │                                                                      verdict::judge ──> held, or what did not
//!                  └─if asked─> throughput (such a node, and as many packet-ins as go) ──> Kept, which is no verdict
//! ```
//!
//! It never touches a node that is running already, nor an interface of the machine, and leaves nothing behind.

mod case;
mod from_a_package;
pub(super) mod from_a_switch;
mod throughput;
mod trial;
mod verdict;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use serde::Serialize;

use crate::cli::CommandError;
use case::{CASES, Case};
use throughput::Kept;

const EXAMPLES: &str = "\
Examples:
  burnet attack                        all of them, some minutes
  burnet attack --case fork-bomb --case clear-tables
  burnet attack --list
  burnet attack --json > scorecard.json
  burnet attack --throughput           also how fast a learning switch is beside each; nothing else should run

Exit code 0 only if all held.";

/// Attacks at once. More make each other's pings late on a small machine.
const JOBS_MAX: u64 = 16;

/// Rounds with each attack: some minutes for one.
const ROUNDS_MAX: i64 = 100;

/// `burnet attack`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AttackArgs {
    /// Only this attack (repeat for more)
    #[arg(long = "case", value_name = "NAME", value_parser = case_name)]
    pub cases: Vec<String>,
    /// List the attacks, and try none
    #[arg(long)]
    pub list: bool,
    /// Also measure how much of its throughput a learning switch keeps beside each, one at a time
    #[arg(long)]
    pub throughput: bool,
    /// With --throughput: so many rounds with each attack, between as many without it and one more
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=ROUNDS_MAX), requires = "throughput")]
    pub rounds: u16,
    /// So many at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=JOBS_MAX))]
    pub jobs: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn case_name(text: &str) -> Result<String, String> {
    match CASES.iter().any(|case| case.name == text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no attack {text}; `burnet attack --list` has them all")),
    }
}

/// What came of one attack.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// Its name.
    pub case: &'static str,
    /// What is tried.
    pub what: &'static str,
    /// Whether everything held.
    pub held: bool,
    /// What stopped it, or what did not hold.
    pub why: String,
    /// Pings of hosts that are none of the attacker's business, while it went on.
    pub pings: usize,
    /// Of these, those without an answer.
    pub lost: usize,
    /// What a learning switch keeps of its throughput, if that was measured. It decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Kept>,
}

/// Runs it. Exit code 0 if all held.
///
/// # Errors
/// The command could not be carried out at all.
pub fn attack(args: &AttackArgs) -> Result<ExitCode, CommandError> {
    let wanted: Vec<&Case> = CASES
        .iter()
        .filter(|case| args.cases.is_empty() || args.cases.iter().any(|name| name == case.name))
        .collect();
    if args.list {
        wanted.iter().for_each(|case| println!("{:<24}{}", case.name, case.what));
        return Ok(ExitCode::SUCCESS);
    }
    crate::descriptors::take_what_is_allowed();
    let jobs = if args.throughput { 1 } else { usize::try_from(args.jobs).unwrap_or(1) };
    let rounds = args.throughput.then_some(args.rounds);
    let scores = try_all(&wanted, jobs, rounds, !args.json)?;
    if args.json {
        print!("{}", super::json(&scores)?);
    } else {
        println!("{}", summary(&scores));
    }
    Ok(if scores.iter().all(|score| score.held) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Tries the cases, some at once, and shows each as soon as it is over; the scores are in the order of the cases.
fn try_all(
    cases: &[&Case],
    jobs: usize,
    rounds: Option<u16>,
    show: bool,
) -> Result<Vec<Score>, CommandError> {
    let (next, scores) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let scored = score(case, rounds);
                    if let (true, Ok(score)) = (show, &scored) {
                        println!("{}", line(score));
                    }
                    scores.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(scored);
                }
            });
        }
    });
    let scores = scores.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut scores = scores.into_iter().collect::<Result<Vec<Score>, CommandError>>()?;
    let place = |score: &Score| cases.iter().position(|case| case.name == score.case);
    scores.sort_by_key(place);
    Ok(scores)
}

/// One attack, from its trial to its verdict, and what is measured beside it.
fn score(case: &Case, rounds: Option<u16>) -> Result<Score, CommandError> {
    let evidence = trial::hold(case)?;
    let (held, why) = match verdict::judge(case, &evidence) {
        Ok(why) => (true, why),
        Err(why) => (false, why),
    };
    let (pings, lost) = (evidence.pings, evidence.lost.len());
    let throughput = rounds.and_then(|rounds| measured(case, rounds));
    Ok(Score { case: case.name, what: case.what, held, why, pings, lost, throughput })
}

/// What is not measured of one case takes nothing from what was found of the others.
fn measured(case: &Case, rounds: u16) -> Option<Kept> {
    match throughput::measure(case, rounds) {
        Ok(kept) => Some(kept),
        Err(error) => {
            eprintln!("burnet: {}: no throughput was measured: {error}", case.name);
            None
        }
    }
}

fn line(score: &Score) -> String {
    let held = if score.held { "held  " } else { "FAILED" };
    let kept = score.throughput.as_ref().map(|kept| format!("; {kept}")).unwrap_or_default();
    format!("{held}  {:<24}{}{kept}", score.case, score.why)
}

fn summary(scores: &[Score]) -> String {
    let held = scores.iter().filter(|score| score.held).count();
    let (pings, lost) =
        scores.iter().fold((0, 0), |(pings, lost), score| (pings + score.pings, lost + score.lost));
    format!("{held} of {} attacks held; {lost} of {pings} pings of others were lost meanwhile", scores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_that_does_not_exist_is_refused_by_name() {
        assert!(case_name("kindness").unwrap_err().contains("no attack kindness"));
        assert_eq!(case_name("exit").as_deref(), Ok("exit"));
    }

    #[test]
    fn the_summary_counts_what_held() {
        let score = |held| Score {
            case: "a",
            what: "",
            held,
            why: String::new(),
            pings: 10,
            lost: 1,
            throughput: None,
        };
        let text = summary(&[score(true), score(false)]);
        assert_eq!(text, "1 of 2 attacks held; 2 of 20 pings of others were lost meanwhile");
    }
}
