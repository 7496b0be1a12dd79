//! `burnet profile trial`: runs an app against a network whose switches play one profile after another.
//!
//! ```text
//!   for each profile:  a node with the app ⇄ an emulated network that plays the scenario ──> a row
//! ```
//!
//! In: an app, a scenario, profiles. Out: a table or JSON. Each trial has a node of its own, which ends with it. It runs in real time: the
//! timers of an app and of the kernel cannot be made faster, and nobody knows for certain when they have nothing more to send.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use burnet::apps;
use burnet::cli::{CommandError, RunArgs};
use burnet::commands::stop_signal::StopSignal;
use burnet::commands::{json, table};
use clap::Args;
use config::{AppArgument, Config, Environment, LogLevel};
use emulator::host::query::quantile;
use emulator::run::Clock;
use emulator::scenario::Scenario;
use emulator::validity::Validity;
use emulator::{Profiles, QueriesReport, SwitchOptions, profiles};
use profile::Profile;
use serde::Serialize;

use crate::emulate::{Played, PlayedOnce, play_once};
use crate::own_node::{OwnNode, SOMEWHERE};
use crate::printing::print;
use crate::stage::Stage;

/// `burnet profile trial`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TrialArgs {
    /// The app that controls the network, as in burnet run (repeat for more)
    #[arg(long = "app", value_name = "NAME[=trusted]", required = true)]
    pub apps: Vec<AppArgument>,
    /// The settings and grants of apps, as in burnet run
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// The scenario that is played with each profile, in real time
    #[arg(long, value_name = "FILE.toml")]
    pub scenario: PathBuf,
    /// Only this profile: the name of a built-in one, or a file (repeat for more) [default: all built-in ones]
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// As in burnet run
    #[arg(long)]
    pub grant_all: bool,
    /// How many seconds the switches of a trial may take to be connected
    #[arg(long = "wait", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub wait_s: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What came of an app with a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    profile: String,
    /// What came of it, if the trial could be made.
    #[serde(flatten)]
    outcome: Option<Outcome>,
    /// Why it could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Outcome {
    /// Rules for which a table had no room.
    rules_refused: u64,
    /// Packets for the controller that switches lost.
    packet_ins_lost: u64,
    packet_ins: u64,
    flow_mods: u64,
    /// How long queries took; if the scenario has none, its pings. `None`: none was answered.
    set_up_ms: Option<SetUp>,
    /// How many of them were not answered.
    unanswered: usize,
    expectations: usize,
    expectations_held: usize,
    /// Whether this machine has kept up, so that the times can be believed.
    validity: Option<Validity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct SetUp {
    answered: usize,
    p50: f64,
    p99: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    apps: Vec<String>,
    scenario: PathBuf,
    trials: Vec<Row>,
}

/// Runs the command. The exit code is 1 if a trial could not be made.
pub(super) fn trial(args: &TrialArgs) -> Result<ExitCode, CommandError> {
    let scenario = Scenario::read(&args.scenario).map_err(|error| CommandError::Usage(error.to_string()))?;
    if scenario.clock == Clock::Virtual {
        return Err(CommandError::Usage(format!(
            "{}: an app runs in real time: leave out time = \"virtual\"",
            args.scenario.display()
        )));
    }
    let profiles = chosen(&args.profiles)?;
    // An app that cannot run is refused here, and not after a wait for a node that refuses it.
    let asked = RunArgs {
        apps: args.apps.clone(),
        config: args.config.clone(),
        grant_all: args.grant_all,
        ..RunArgs::default()
    };
    Config::load(&asked, &Environment::of_this_process()?, &apps::WITHIN)?;
    node::descriptors::take_what_is_allowed();
    let mut stop = StopSignal::listen()?;
    let mut stage = Stage::on_stderr();
    let mut trials = Vec::new();
    for profile in profiles {
        stage.say(&format!("{}: {}", profile.name, profile.about));
        let name = profile.name.clone();
        let (outcome, returned) = try_with(args, &scenario, profile, stop);
        stop = returned;
        if stop.came_within(Duration::ZERO) {
            return Err(CommandError::DidNotWork(
                "it was told to stop before all trials were made".to_owned(),
            ));
        }
        trials.push(match outcome {
            Ok(outcome) => Row { profile: name, outcome: Some(outcome), error: None },
            Err(error) => Row { profile: name, outcome: None, error: Some(error.to_string()) },
        });
    }
    let apps = args.apps.iter().map(crate::own_node::as_written).collect();
    let report = Report { apps, scenario: args.scenario.clone(), trials };
    print(&if args.json { json(&report)? } else { report.text() })?;
    let all_made = report.trials.iter().all(|row| row.error.is_none());
    Ok(if all_made { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The profiles with these names, or all that are built in.
fn chosen(names: &[String]) -> Result<Vec<Profile>, CommandError> {
    if names.is_empty() {
        return Ok(profile::built_in::names().filter_map(profile::built_in).collect());
    }
    names.iter().map(|name| profiles::read(name, Path::new("")).map_err(CommandError::Usage)).collect()
}

/// One trial, with a node of its own.
fn try_with(
    args: &TrialArgs,
    scenario: &Scenario,
    profile: Profile,
    stop: StopSignal,
) -> (Result<Outcome, CommandError>, StopSignal) {
    let started =
        OwnNode::start_by(args.config.as_deref(), SOMEWHERE, args.grant_all, &args.apps, LogLevel::Error)
            .and_then(|node| Ok((node.wait_until_it_listens()?, node)));
    let (address, node) = match started {
        Ok(started) => started,
        Err(error) => return (Err(error), stop),
    };
    let versions = scenario.versions.unwrap_or(emulator::Versions::Both);
    let options =
        SwitchOptions { versions, profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
    let wait = Duration::from_secs(u64::from(args.wait_s));
    let (played, stop) = play_once(scenario, address, &options, wait, stop);
    // The node ends after the network, whose counters have been read by now.
    drop(node);
    (played.map(|played| Outcome::of(&played)), stop)
}

impl Outcome {
    fn of(PlayedOnce { played, counters, switches, verdict }: &PlayedOnce) -> Self {
        let (set_up_ms, unanswered) = set_up(played);
        Outcome {
            rules_refused: switches.rules_refused,
            packet_ins_lost: switches.packet_ins_unheard,
            packet_ins: counters.packet_ins,
            flow_mods: counters.flow_mods,
            set_up_ms,
            unanswered,
            expectations: played.judged.len(),
            expectations_held: played.judged.iter().filter(|judged| judged.held).count(),
            validity: verdict.as_ref().map(|verdict| verdict.validity),
        }
    }
}

/// How long flows took until they were answered, and how many were not.
fn set_up(played: &Played) -> (Option<SetUp>, usize) {
    let reports = || played.queries.iter().map(|(_, report)| report);
    let of_queries = |report: &QueriesReport| report.completion_times(Duration::ZERO);
    let (mut times, unanswered): (Vec<Duration>, usize) = if played.queries.is_empty() {
        let lost = played.round_trips.iter().filter(|trip| trip.is_none()).count();
        (played.round_trips.iter().copied().flatten().collect(), lost)
    } else {
        let failed = reports().map(|report| report.failed(Duration::ZERO)).sum();
        (reports().flat_map(of_queries).collect(), failed)
    };
    times.sort_unstable();
    let at = |share| quantile(&times, share).map(|time| time.as_secs_f64() * 1000.0);
    let set_up = at(0.5).zip(at(0.99)).map(|(p50, p99)| SetUp { answered: times.len(), p50, p99 });
    (set_up, unanswered)
}

const HEADINGS: [&str; 8] =
    ["PROFILE", "REFUSED", "LOST", "SET-UP P50", "P99", "UNANSWERED", "EXPECTED", "VALIDITY"];

impl Report {
    fn text(&self) -> String {
        let mut text = format!("{} in {}\n", self.apps.join(", "), self.scenario.display());
        let rows: Vec<[String; 8]> = self.trials.iter().map(Row::cells).collect();
        text += &table::columns(HEADINGS, &rows);
        for row in &self.trials {
            if let Some(error) = &row.error {
                text += &format!("{}: {error}\n", row.profile);
            }
        }
        text
    }
}

impl Row {
    fn cells(&self) -> [String; 8] {
        let none = || "-".to_owned();
        let Some(of) = &self.outcome else {
            return [self.profile.clone(), none(), none(), none(), none(), none(), none(), none()];
        };
        let ms = |at: fn(SetUp) -> f64| of.set_up_ms.map_or_else(none, |ms| format!("{:.3} ms", at(ms)));
        [
            self.profile.clone(),
            of.rules_refused.to_string(),
            of.packet_ins_lost.to_string(),
            ms(|set_up| set_up.p50),
            ms(|set_up| set_up.p99),
            of.unanswered.to_string(),
            format!("{}/{}", of.expectations_held, of.expectations),
            of.validity.map_or_else(none, |validity| validity.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(round_trips_ms: &[Option<u64>]) -> Played {
        let round_trips = round_trips_ms.iter().map(|ms| ms.map(Duration::from_millis)).collect();
        Played { judged: Vec::new(), queries: Vec::new(), round_trips }
    }

    #[test]
    fn without_queries_the_pings_are_the_set_up() {
        assert_eq!(set_up(&played(&[])), (None, 0));
        assert_eq!(set_up(&played(&[None])), (None, 1));
        let found = set_up(&played(&[Some(30), None, Some(10), Some(20)]));
        assert_eq!(found, (Some(SetUp { answered: 3, p50: 20.0, p99: 30.0 }), 1));
    }

    #[test]
    fn a_trial_that_could_not_be_made_has_a_row_and_a_reason() {
        let outcome = Outcome {
            rules_refused: 7,
            packet_ins_lost: 2,
            packet_ins: 9,
            flow_mods: 9,
            set_up_ms: Some(SetUp { answered: 1, p50: 1.5, p99: 2.5 }),
            unanswered: 0,
            expectations: 3,
            expectations_held: 2,
            validity: Some(Validity::Valid),
        };
        let trials = vec![
            Row { profile: "null".to_owned(), outcome: Some(outcome), error: None },
            Row { profile: "slow".to_owned(), outcome: None, error: Some("after 30 s".to_owned()) },
        ];
        let report = Report { apps: vec!["hub".to_owned()], scenario: "s.toml".into(), trials };
        let text = report.text();
        assert!(text.starts_with("hub in s.toml\nPROFILE"), "{text}");
        assert!(
            text.contains("null     7        2     1.500 ms    2.500 ms  0           2/3       valid\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "slow     -        -     -           -         -           -         -\nslow: after 30 s\n"
            ),
            "{text}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(
            (&json["trials"][0]["rules_refused"], &json["trials"][1]["error"]),
            (&7.into(), &"after 30 s".into())
        );
    }
}
