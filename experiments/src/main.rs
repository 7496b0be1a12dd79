//! `experiments rosemary [NAME …]`: runs a paper's experiments and writes their results.
//!
//! In: names. Out: `NAME.json`, `NAME.svg` and `NAME.png` in the folder of results, and its page. The exit code is 0
//! if all experiments ran, whatever they found; 1 if one could not run; 2 for a usage or configuration error.

use clap::{Parser, Subcommand};
use experiments::lab::Lab;
use experiments::machine::Machine;
use experiments::outcome::{Outcome, page};
use experiments::png;
use experiments::rosemary::{EXPERIMENTS, Experiment, source};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Parser)]
#[command(name = "experiments", about = "Repeat the papers' experiments")]
struct Cli {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Debug, Subcommand)]
enum Paper {
    /// Rosemary (CCS 2014): apps that nobody has to trust
    Rosemary(Args),
}

#[derive(Debug, clap::Args)]
struct Args {
    /// Which experiments; `all`, or nothing to list them
    names: Vec<String>,
    /// The binary under test; if not said, the one beside this program
    #[arg(long, value_name = "PATH")]
    burnet: Option<PathBuf>,
    /// Short times, to see that all works; what is measured is no figure
    #[arg(long)]
    short: bool,
    /// Where results go; if not said, rosemary/results beside this program's sources, and nowhere with --short
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Paper::Rosemary(args) = Cli::parse().paper;
    match rosemary(&args) {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("experiments: {trouble}");
            ExitCode::from(2)
        }
    }
}

fn rosemary(args: &Args) -> Result<ExitCode, String> {
    let wanted = wanted(&args.names)?;
    if wanted.is_empty() {
        EXPERIMENTS.iter().for_each(|it| println!("{:<14}{}", it.name, it.about));
        return Ok(ExitCode::SUCCESS);
    }
    let burnet = args.burnet.clone().map_or_else(burnet_beside, Ok)?;
    let lab = Lab::new(&burnet, args.short)?;
    let results = results(args)?;
    let mut failed = 0;
    let began = Instant::now();
    for (done, experiment) in wanted.iter().enumerate() {
        eprintln!("experiments: {}", progress(done, wanted.len(), experiment.name, began.elapsed()));
        match make(&lab, experiment, &results) {
            Ok(outcome) => print_claims(&outcome),
            Err(trouble) => {
                failed += 1;
                eprintln!("experiments: {}: {trouble}", experiment.name);
            }
        }
    }
    write_page(&results)?;
    eprintln!("results are in {}", results.display());
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The line of progress: which experiment begins, of how many, and an estimate of the remaining time.
fn progress(done: usize, total: usize, name: &str, elapsed: Duration) -> String {
    let left = u32::try_from(done).ok().filter(|done| *done > 0).map(|done| {
        let rest = u32::try_from(total).unwrap_or(u32::MAX).saturating_sub(done);
        let left_s = (elapsed / done).saturating_mul(rest).as_secs();
        format!(", about {} min {} s left", left_s / 60, left_s % 60)
    });
    format!("{} of {total}: {name}{}", done + 1, left.unwrap_or_default())
}

fn wanted(names: &[String]) -> Result<Vec<Experiment>, String> {
    if names.iter().any(|name| name == "all") {
        return Ok(EXPERIMENTS.to_vec());
    }
    let find = |name: &String| {
        EXPERIMENTS
            .iter()
            .find(|it| it.name == name)
            .copied()
            .ok_or(format!("there is no experiment {name}; `experiments rosemary` lists them"))
    };
    names.iter().map(find).collect()
}

fn burnet_beside() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    Ok(own.with_file_name("burnet"))
}

/// Results of short runs must not replace real ones.
fn results(args: &Args) -> Result<PathBuf, String> {
    let folder = match (&args.results, args.short) {
        (Some(folder), _) => folder.clone(),
        (None, true) => std::env::temp_dir().join("burnet-experiments"),
        (None, false) => Path::new(env!("CARGO_MANIFEST_DIR")).join("rosemary/results"),
    };
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    Ok(folder)
}

fn make(lab: &Lab, experiment: &Experiment, results: &Path) -> Result<Outcome, String> {
    let (began, machine) = (Instant::now(), Machine::describe(&lab.burnet));
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let found = (experiment.run)(lab)?;
    let mut figure = found.figure;
    figure.notes.push(machine.line());
    if lab.short {
        figure.notes.push("With short times, to see that all works: no figures.".to_owned());
    }
    let outcome = Outcome {
        experiment: experiment.name.to_owned(),
        title: figure.title.clone(),
        claims: found.claims,
        data: found.data,
        machine,
        unix_s,
        took_s: began.elapsed().as_secs_f64(),
        short: lab.short,
    };
    let file = |ending: &str| results.join(format!("{}.{ending}", experiment.name));
    let text = serde_json::to_string_pretty(&outcome).map_err(|error| error.to_string())?;
    write(&file("json"), &(text + "\n"))?;
    write(&file("svg"), &figure.to_svg())?;
    if let Err(trouble) = png::beside(&file("svg")) {
        lab.say(&trouble);
    }
    Ok(outcome)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

fn print_claims(outcome: &Outcome) {
    println!("{} ({:.0} s)", outcome.title, outcome.took_s);
    for claim in &outcome.claims {
        let held = match claim.holds {
            Some(true) => "as asked ",
            Some(false) => "NOT SO   ",
            None => "         ",
        };
        let asked = claim.asked.as_ref().map(|asked| format!(" (asked: {asked})")).unwrap_or_default();
        println!("  {held}{}: {}{asked}", claim.what, claim.measured);
    }
}

/// The page of all existing outcomes, of this run and of earlier ones.
fn write_page(results: &Path) -> Result<(), String> {
    let read = |it: &Experiment| {
        let text = std::fs::read_to_string(results.join(format!("{}.json", it.name))).ok()?;
        serde_json::from_str::<Outcome>(&text).ok()
    };
    let outcomes: Vec<Outcome> = EXPERIMENTS.iter().filter_map(read).collect();
    write(&results.join("README.md"), &page(&source()?, &outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_does_not_exist_is_refused_by_name() {
        assert!(wanted(&["fig99".to_owned()]).err().is_some_and(|why| why.contains("no experiment fig99")));
        assert_eq!(wanted(&["all".to_owned()]).map(|all| all.len()).ok(), Some(EXPERIMENTS.len()));
        assert!(wanted(&[]).is_ok_and(|none| none.is_empty()));
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
