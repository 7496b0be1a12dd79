//! `burnet attack`: every attack that an app, a switch or a tenant could try, each against a node of its own, and a scorecard.
//!
//! ```text
//!   catalogue ──each, on each combination──> trial (a node with a firewall, a learning switch and the attacker; switches, hosts that ping)
//!                  │                           └─> Evidence ──verdict::judge──> held, failed, or not judged and tried again
//!                  └─if asked─> throughput (such a node, and as many packet-ins as go) ──> Kept, which is no verdict
//! ```
//!
//! It never touches a running node or switch, or an interface of the machine, and leaves nothing behind.

mod arrivals;
mod case;
mod catalogue;
mod combination;
mod configuration;
mod folders;
mod from_a_package;
pub(crate) mod from_a_switch;
mod from_a_tenant;
mod from_the_operator;
mod looks;
mod ovs;
mod process;
mod scorecard;
mod stop;
mod switch_tables;
mod tenant_faults;
mod tenant_messages;
mod tenant_neighbour;
mod tenant_series;
mod tenant_words;
mod throughput;
mod trial;
mod trial_network;
mod verdict;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;

use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;
use case::{Case, Family};
use combination::{Combination, SwitchKind, TenantVersion, Versions};
use scorecard::Score;
use throughput::Kept;
use trial::Holds;
use verdict::{Evidence, Verdict};

const EXAMPLES: &str = "\
Examples:
  burnet attack                        all of them on emulated switches with OpenFlow 1.3, a minute or two
  burnet attack --openflow all         with 1.0 too
  sudo burnet attack --switch ovs      on Open vSwitch, which it starts for itself
  burnet attack --family identity --case fork-bomb
  burnet attack --family tenants --together --openflow all
  burnet attack --list
  burnet attack --json > scorecard.json
  burnet attack --throughput           also how fast a learning switch is beside each; nothing else should run

Exit code 0 only if all held.";

/// How many attacks run at once. On a small machine, more would make each other's pings late.
const JOBS_MAX: u64 = 16;

/// The most rounds with each attack. They take some minutes.
const ROUNDS_MAX: i64 = 100;

/// How often a case is tried that cannot be judged.
const TRIES_MAX: u8 = 3;

/// How often signals are checked.
const LOOK: Duration = Duration::from_millis(100);

/// The exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// `burnet attack`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AttackArgs {
    /// Only this attack (repeat for more)
    #[arg(long = "case", value_name = "NAME", value_parser = case_name)]
    pub cases: Vec<String>,
    /// Only attacks of this family (repeat for more)
    #[arg(long = "family", value_name = "NAME", value_parser = catalogue::family)]
    pub families: Vec<Family>,
    /// On which switches
    #[arg(long = "switch", value_name = "KIND", value_enum, default_value_t = SwitchKind::Emulated)]
    pub switch: SwitchKind,
    /// With which version of OpenFlow
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = Versions::V1_3)]
    pub openflow: Versions,
    /// With which version tenants' controllers attack. Without it, as the switches
    #[arg(long, value_name = "VERSION", value_enum)]
    pub tenant_openflow: Option<TenantVersion>,
    /// Try the attacks of tenants against one node, one after the other: quicker, and their slices come and go
    #[arg(long, conflicts_with_all = ["throughput", "jobs"])]
    pub together: bool,
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
    catalogue::find(text).map(|case| case.name.to_owned())
}

/// Carries out `burnet attack`. The exit code is 0 if all attacks held.
///
/// # Errors
///
/// The command could not be carried out at all.
pub fn attack(args: &AttackArgs) -> Result<ExitCode, CommandError> {
    let wanted = scorecard::wanted(&args.cases, &args.families);
    if args.list {
        match args.json {
            true => print!("{}", burnet::commands::json(&scorecard::list_for_programs(&wanted))?),
            false => println!("{}", scorecard::list(&wanted)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.switch == SwitchKind::Ovs
        && let Some(missing) = ovs::is_missing()
    {
        return Err(CommandError::Usage(format!("Open vSwitch cannot be attacked here: {missing}")));
    }
    node::descriptors::take_what_is_allowed();
    if args.together {
        return tenant_series::together(&wanted, args);
    }
    let jobs = if args.throughput { 1 } else { usize::try_from(args.jobs).unwrap_or(1) };
    let rounds = args.throughput.then_some(args.rounds);
    let pairs =
        combination::pairs(&wanted, &Combination::asked(args.switch, args.openflow, args.tenant_openflow));
    let scores = try_all(&pairs, jobs, rounds, !args.json)?;
    if args.json {
        print!("{}", burnet::commands::json(&scores)?);
    } else {
        println!("{}", scorecard::summary(&scores));
    }
    if stop::came() {
        eprintln!("burnet: stopped after {} of {} attacks", scores.len(), pairs.len());
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if scores.iter().all(|score| score.held) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Tries the cases, some at once, and prints each result as soon as it is known. The scores are in the order of the
/// cases. A signal ends all of them.
fn try_all(
    pairs: &[(&Case, Combination)],
    jobs: usize,
    rounds: Option<u16>,
    show: bool,
) -> Result<Vec<Score>, CommandError> {
    let signal = StopSignal::listen()?;
    let (next, scores) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let try_next = || {
            while let (false, at) = (stop::came(), next.fetch_add(1, Ordering::Relaxed))
                && let Some((case, combination)) = pairs.get(at)
            {
                let score = score(case, *combination, rounds);
                if stop::came() {
                    return;
                }
                if show {
                    println!("{}", scorecard::line(&score));
                }
                scores.lock().unwrap_or_else(PoisonError::into_inner).push((at, score));
            }
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(try_next)).collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if signal.came_within(LOOK) {
                stop::tell();
                break;
            }
        }
    });
    let mut scores = scores.into_inner().unwrap_or_else(PoisonError::into_inner);
    scores.sort_by_key(|(at, _)| *at);
    Ok(scores.into_iter().map(|(_, score)| score).collect())
}

/// One attack, from its trials to its verdict and its throughput, if that is measured.
fn score(case: &Case, combination: Combination, rounds: Option<u16>) -> Score {
    let (mut tries, began) = (0, Instant::now());
    let (evidence, verdict) = loop {
        tries += 1;
        let (evidence, verdict) = judged(case, combination);
        let again = matches!(verdict, Verdict::NotJudged(_)) && tries < TRIES_MAX && !stop::came();
        if !again {
            break (evidence, verdict);
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    let throughput = rounds.and_then(|rounds| measured(case, rounds));
    let score = Score::new(case, combination, verdict, tries);
    Score { pings: evidence.pings, lost: evidence.lost.len(), seconds, throughput, ..score }
}

/// One trial. If pings were lost, a trial without the attack must lose none, or the result shows nothing.
fn judged(case: &Case, combination: Combination) -> (Evidence, Verdict) {
    let evidence = match trial::hold(case, combination, Holds::Attack) {
        Ok(evidence) => evidence,
        Err(error) => return (Evidence::default(), Verdict::NotJudged(error.to_string())),
    };
    let mut verdict = verdict::judge(case, &evidence);
    if matches!(verdict, Verdict::Failed(_)) && !evidence.lost.is_empty() && !stop::came() {
        match trial::hold(case, combination, Holds::Control) {
            Ok(control) if control.lost.is_empty() && control.lost_before.is_empty() => {}
            Ok(_) => verdict = Verdict::NotJudged("pings are lost without the attack too".to_owned()),
            Err(error) => verdict = Verdict::NotJudged(format!("no control without the attack: {error}")),
        }
    }
    (evidence, verdict)
}

/// A case whose throughput cannot be measured does not affect the other cases.
fn measured(case: &Case, rounds: u16) -> Option<Kept> {
    match throughput::measure(case, rounds) {
        Ok(kept) => Some(kept),
        Err(error) => {
            eprintln!("burnet: {}: no throughput was measured: {error}", case.name);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_that_does_not_exist_is_refused_by_name() {
        assert!(case_name("kindness").unwrap_err().contains("no attack kindness"));
        assert_eq!(case_name("exit").as_deref(), Ok("exit"));
    }
}
