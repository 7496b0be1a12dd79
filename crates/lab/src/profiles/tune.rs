//! `burnet profile tune`: corrects the residual delays of a profile so that the QQ plot of an emulation and the real switch is on its
//! diagonal.
//!
//! ```text
//!   runs of the real switch ──────────────────┬─ first, third … ──> a correction ──> a new profile
//!   runs with the profile: files, or played ──┘─ second, fourth … ──> is the new one nearer?
//! ```
//!
//! In: a profile, and files with delays. Out: what was found, and a new profile if it is nearer. It writes only the file of `--out`. It
//! never talks to a switch.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;
use burnet::commands::{json, table};
use clap::Args;
use emulator::run::Clock;
use emulator::scenario::Scenario;
use emulator::{Profiles, profiles};
use profile::compare::{Correction, QqDistance, Samples};
use profile::{Fit, Profile, Tuned};
use serde::Serialize;

use super::samples;
use crate::printing::print;

/// What of a profile is judged: the name of the fit in the file.
const JUDGED: &str = "delays of held-back runs, after burnet profile tune";

/// `burnet profile tune`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TuneArgs {
    /// The profile to correct: the name of a built-in one, or a file
    #[arg(value_name = "NAME|FILE")]
    pub profile: String,
    /// Delays of the real switch, a file for each run: a number of microseconds in each line, or the JSON of burnet emulate
    #[arg(value_name = "SAMPLES", required = true, num_args = 2..)]
    pub samples: Vec<PathBuf>,
    /// Delays of an emulation with this profile under the same load, a file for each run (repeat)
    #[arg(long = "emulated", value_name = "SAMPLES", required_unless_present = "scenario")]
    pub emulated: Vec<PathBuf>,
    /// The same load as a scenario in virtual time: its queries are played with the profile, and again with the new one
    #[arg(long, value_name = "FILE.toml", conflicts_with = "emulated")]
    pub scenario: Option<PathBuf>,
    /// How often a delay contains the way from a packet to its rule: a query over a new connection takes it twice
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub passes: u32,
    /// Write the new profile to this file
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
    /// Its name [default: that of the old one with -tuned behind]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Where runs of the emulation come from.
enum Emulator {
    Files(Vec<Samples>),
    Scenario(Box<Scenario>, StopSignal),
}

/// Runs for the fit, and others for the judgement.
struct Split {
    fit: Samples,
    held_back: Samples,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    profile: String,
    /// What the emulation needs, in microseconds: one number, or points of probability and number.
    correction: Vec<[f64; 2]>,
    is_constant: bool,
    /// The part of it that the residual delays can take.
    applied: Vec<[f64; 2]>,
    /// How the emulation with the new profile was judged.
    judged_by: &'static str,
    before: Distance,
    after: Distance,
    is_better: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<PathBuf>,
}

/// The distance of an emulation from the runs of the real switch that were held back.
#[derive(Debug, Serialize)]
struct Distance {
    /// The mean distance of the QQ plot from its diagonal.
    qq_us: f64,
    mean_us: f64,
    ks: f64,
    ks_limit: f64,
}

/// Runs the command. The exit code is 1 if the new profile is not nearer to the runs that were held back.
pub(super) fn tune(args: &TuneArgs) -> Result<ExitCode, CommandError> {
    let old = profiles::read(&args.profile, Path::new("")).map_err(CommandError::Usage)?;
    let target = read_runs(&args.samples)?;
    let runs = target.len();
    let emulator = Emulator::of(args)?;
    let emulated = emulator.runs(&old, runs)?;
    let (target, emulated) = (Split::of(&target)?, Split::of(&emulated)?);
    let correction = Correction::fitted(&target.fit, &emulated.fit).map_err(unusable)?;
    let Tuned { profile: tuned, applied } = old.tuned(&correction, args.passes);
    let (again, judged_by) = match &emulator {
        Emulator::Files(_) => {
            let corrected = applied.applied_to(&emulated.held_back, &emulated.fit);
            (corrected.map_err(unusable)?, "the correction of runs with the old profile")
        }
        Emulator::Scenario(..) => {
            (Split::of(&emulator.runs(&tuned, runs)?)?.held_back, "runs with the new profile")
        }
    };
    let before = QqDistance::of(&target.held_back, &emulated.held_back);
    let after = QqDistance::of(&target.held_back, &again);
    let name = args.name.clone().unwrap_or_else(|| format!("{}-tuned", old.name));
    let how = how_tuned(&correction, target.fit.count(), args.passes);
    let fit = Fit {
        what: JUDGED.to_owned(),
        samples: count(&target.held_back),
        ks: after.ks,
        ks_limit: after.ks_limit,
    };
    let is_better = after.us < before.us;
    let written = args.out.clone().filter(|_| is_better);
    if let Some(file) = &written {
        write(file, &tuned.with_tuning(name, &how, fit))?;
    }
    let report = Report {
        profile: old.name,
        is_constant: matches!(correction, Correction::Constant(_)),
        correction: points(&correction),
        applied: points(&applied),
        judged_by,
        before: before.into(),
        after: after.into(),
        is_better,
        written,
    };
    print(&if args.json { json(&report)? } else { report.text() })?;
    Ok(if is_better { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The samples of each file.
fn read_runs(files: &[PathBuf]) -> Result<Vec<Samples>, CommandError> {
    files.iter().map(|file| samples::read(file).map_err(CommandError::Usage)).collect()
}

fn unusable(bad: profile::compare::BadSamples) -> CommandError {
    CommandError::Usage(format!("the delays cannot be compared: {bad}"))
}

fn count(samples: &Samples) -> u32 {
    u32::try_from(samples.count()).unwrap_or(u32::MAX)
}

fn write(file: &Path, profile: &Profile) -> Result<(), CommandError> {
    let text = profile.to_toml().map_err(|bad| CommandError::DidNotWork(bad.to_string()))?;
    std::fs::write(file, text)
        .map_err(|error| CommandError::DidNotWork(format!("{} cannot be written: {error}", file.display())))
}

impl Emulator {
    fn of(args: &TuneArgs) -> Result<Self, CommandError> {
        let Some(file) = &args.scenario else { return Ok(Emulator::Files(read_runs(&args.emulated)?)) };
        let scenario = Scenario::read(file).map_err(|error| CommandError::Usage(error.to_string()))?;
        if scenario.clock != Clock::Virtual || scenario.queries.is_empty() {
            return Err(CommandError::Usage(format!(
                "{}: expected time = \"virtual\" and events with queries",
                file.display()
            )));
        }
        Ok(Emulator::Scenario(Box::new(scenario), StopSignal::listen()?))
    }

    /// Runs of the emulation with this profile: those of the files, or as many as are asked for, each with another seed.
    fn runs(&self, profile: &Profile, count: usize) -> Result<Vec<Samples>, CommandError> {
        let (scenario, stop) = match self {
            Emulator::Files(runs) => return Ok(runs.clone()),
            Emulator::Scenario(scenario, stop) => (scenario, stop),
        };
        let seeds = (0..count).map(|run| scenario.seed.wrapping_add(run as u64));
        seeds.map(|seed| played(scenario, profile, seed, stop)).collect()
    }
}

/// The completion times of a scenario's queries.
fn played(
    scenario: &Scenario,
    profile: &Profile,
    seed: u64,
    stop: &StopSignal,
) -> Result<Samples, CommandError> {
    let scenario = Scenario { profiles: Profiles::for_all(profile.clone()), seed, ..scenario.clone() };
    let rehearsal = scenario.rehearse(1, || stop.came_within(Duration::ZERO));
    let stopped = || CommandError::DidNotWork("it was told to stop before it was done".to_owned());
    let rehearsal = rehearsal.ok_or_else(stopped)?;
    if let Some(trouble) = rehearsal.trouble.first() {
        return Err(CommandError::DidNotWork(format!("the scenario could not be played: {trouble}")));
    }
    // In the order in which they began, since neighbours depend on each other.
    let records = rehearsal.queries.iter().flat_map(|(_, report)| &report.records);
    let took = records.filter_map(|record| record.took()).map(|took| took.as_secs_f64() * 1e6);
    Samples::new(took.collect()).map_err(unusable)
}

impl Split {
    /// The first, third … run for the fit, and the others for the judgement.
    fn of(runs: &[Samples]) -> Result<Self, CommandError> {
        let every_second = |from: usize| Samples::pooled(runs.iter().skip(from).step_by(2));
        match (every_second(0), every_second(1)) {
            (Ok(fit), Ok(held_back)) => Ok(Split { fit, held_back }),
            _ => Err(CommandError::Usage(
                "expected at least two runs: one is held back to judge the other".to_owned(),
            )),
        }
    }
}

fn points(correction: &Correction) -> Vec<[f64; 2]> {
    match correction {
        Correction::Constant(us) => vec![[0.5, *us]],
        Correction::Quantiles(points) => points.iter().map(|&(p, us)| [p, us]).collect(),
    }
}

fn how_tuned(correction: &Correction, samples: usize, passes: u32) -> String {
    let what = match correction {
        Correction::Constant(us) => format!("{us:+.1} µs"),
        Correction::Quantiles(points) => format!("a correction at {} quantiles", points.len()),
    };
    format!("burnet profile tune: {what} in {passes} passes, from {samples} delays")
}

impl From<QqDistance> for Distance {
    fn from(QqDistance { us, mean_us, ks, ks_limit }: QqDistance) -> Self {
        Distance { qq_us: us, mean_us, ks, ks_limit }
    }
}

impl Report {
    fn text(&self) -> String {
        let mut text = match self.correction.as_slice() {
            [[_, us]] if self.is_constant => format!("correction   {us:+.1} µs\n"),
            points => {
                let us = |[_, us]: &[f64; 2]| *us;
                let (low, high) = points
                    .iter()
                    .map(us)
                    .fold((f64::MAX, f64::MIN), |(low, high), us| (low.min(us), high.max(us)));
                format!("correction   at {} quantiles, from {low:+.1} to {high:+.1} µs\n", points.len())
            }
        };
        if self.applied != self.correction {
            text += "             not all of it: no residual delay can be negative\n";
        }
        let _ = writeln!(text, "judged by    {}, and runs of the switch that were held back", self.judged_by);
        let row = |name: &str, of: &Distance| {
            [
                name.to_owned(),
                format!("{:.1} µs", of.qq_us),
                format!("{:+.1} µs", of.mean_us),
                format!("{:.4} (limit {:.4})", of.ks, of.ks_limit),
            ]
        };
        text += &table::columns(
            ["", "FROM DIAGONAL", "MEAN", "KS"],
            &[row("before", &self.before), row("after", &self.after)],
        );
        match (&self.written, self.is_better) {
            (Some(file), _) => text += &format!("written to {}\n", file.display()),
            (None, true) => {}
            (None, false) => {
                text += "refused: the new profile is not nearer to the runs that were held back\n"
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_cannot_judge_itself() {
        let run = Samples::new(vec![1.0, 2.0]).unwrap();
        assert!(Split::of(std::slice::from_ref(&run)).is_err());
        let other = Samples::new(vec![3.0]).unwrap();
        let split = Split::of(&[run.clone(), other.clone(), run.clone()]).unwrap();
        assert_eq!((split.fit.count(), split.held_back), (4, other));
    }

    #[test]
    fn the_report_says_what_was_refused_and_why() {
        let distance = |us| Distance { qq_us: us, mean_us: us, ks: 0.1, ks_limit: 0.05 };
        let report = Report {
            profile: "x".to_owned(),
            correction: vec![[0.5, -100.0]],
            is_constant: true,
            applied: vec![[0.5, -60.0]],
            judged_by: "runs with the new profile",
            before: distance(10.0),
            after: distance(11.0),
            is_better: false,
            written: None,
        };
        let text = report.text();
        assert!(text.starts_with("correction   -100.0 µs\n             not all of it"), "{text}");
        assert!(text.contains("after   11.0 µs        +11.0 µs  0.1000 (limit 0.0500)\nrefused"), "{text}");
    }
}
