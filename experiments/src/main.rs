//! `experiments PAPER [NAME …]`: runs a paper's experiments and writes their results.
//!
//! In: names. Out: `NAME.json`, `NAME.svg` and `NAME.png` in the folder of results, and its page. The exit code is 0
//! if all experiments ran, whatever they found; 1 if one could not run; 2 for a usage or configuration error.

use clap::Parser;
use experiments::lab::Lab;
use experiments::machine::Machine;
use experiments::paper::{Experiment, Findings, Paper};
use experiments::report::{Report, page};
use experiments::{PAPERS, png};
use lab::progress::progress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Parser)]
#[command(name = "experiments", about = "Repeat the papers' experiments")]
struct Args {
    /// Which paper; without it, they are listed
    paper: Option<String>,
    /// Which experiments; `all`, or nothing to list them
    names: Vec<String>,
    /// The binary under test; if not said, the one beside this program
    #[arg(long, value_name = "PATH")]
    burnet: Option<PathBuf>,
    /// Short times, to see that all works; what is measured is no figure
    #[arg(long)]
    short: bool,
    /// Where results go; if not said, PAPER/results beside this program's sources, and nowhere with --short
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Measures nothing: makes claims, figures and the page again from the data of earlier runs
    #[arg(long)]
    again: bool,
    /// Measures a part of an experiment in this process, and prints it
    #[arg(long, hide = true, value_name = "KIND:COUNT")]
    part: Option<String>,
}

fn main() -> ExitCode {
    // The node runs this program as an app, by a link with the app's name.
    if experiments::onos::probe::is_started() {
        return experiments::onos::probe::run();
    }
    let done = run(&Args::parse());
    done.unwrap_or_else(|trouble| {
        eprintln!("experiments: {trouble}");
        ExitCode::from(2)
    })
}

fn run(args: &Args) -> Result<ExitCode, String> {
    if let Some(part) = &args.part {
        let measured = match part.split_once(':') {
            Some(("models", part)) => experiments::models::testbed::part(part)?,
            Some(("labels", slices)) => experiments::labels::part(slices)?,
            _ => experiments::onos::scale_part::measure(part)?,
        };
        println!("{measured}");
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = &args.paper else {
        PAPERS.iter().for_each(|it| println!("{:<14} {}", it.name, it.about));
        return Ok(ExitCode::SUCCESS);
    };
    let paper = paper(name)?;
    let is_root = rustix::process::geteuid().is_root();
    let wanted = paper.wanted(&args.names, is_root)?;
    if wanted.is_empty() {
        paper.experiments.iter().for_each(|it| println!("{:<14} {}", it.name, it.about));
        return Ok(ExitCode::SUCCESS);
    }
    if args.again {
        return again(paper, &wanted, &results(paper, args)?);
    }
    let burnet = args.burnet.clone().map_or_else(burnet_beside, Ok)?;
    let lab = Lab::new(&burnet, args.short)?;
    let results = results(paper, args)?;
    let skipped = if is_root { Vec::new() } else { paper.skipped(&args.names) };
    skipped.iter().for_each(|name| eprintln!("experiments: {name}: skipped: needs root"));
    let mut failed = 0;
    let began = Instant::now();
    for (done, experiment) in wanted.iter().enumerate() {
        eprintln!("experiments: {}", progress(done, wanted.len(), experiment.name, began.elapsed()));
        match make(&lab, experiment, &results) {
            Ok(report) => print_claims(&report),
            Err(trouble) => {
                failed += 1;
                eprintln!("experiments: {}: {trouble}", experiment.name);
            }
        }
    }
    write_page(paper, &results)?;
    eprintln!("results are in {}", results.display());
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn paper(name: &str) -> Result<&'static Paper, String> {
    let found = PAPERS.iter().find(|paper| paper.name == name);
    found.ok_or(format!("there is no paper {name}; `experiments` lists them"))
}

fn burnet_beside() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    Ok(own.with_file_name("burnet"))
}

/// Results of short runs must not replace real ones.
fn results(paper: &Paper, args: &Args) -> Result<PathBuf, String> {
    let folder = match (&args.results, args.short) {
        (Some(folder), _) => folder.clone(),
        (None, true) => std::env::temp_dir().join("burnet-experiments"),
        (None, false) => Path::new(env!("CARGO_MANIFEST_DIR")).join(paper.name).join("results"),
    };
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    Ok(folder)
}

/// Makes reports again, as they would be with the claims and figures of today.
fn again(paper: &Paper, wanted: &[Experiment], results: &Path) -> Result<ExitCode, String> {
    for experiment in wanted {
        let maker = paper.maker_of(experiment.name)?;
        let report = report_of(experiment, results).ok_or(format!(
            "{}: there is no report in {}; run it without --again",
            experiment.name,
            results.display()
        ))?;
        let found = maker(&report.data)?;
        let (machine, unix_s, took_s) = (report.machine, report.unix_s, report.took_s);
        print_claims(&keep(experiment, found, (machine, unix_s, took_s), report.short, results)?);
    }
    write_page(paper, results)?;
    Ok(ExitCode::SUCCESS)
}

fn make(lab: &Lab, experiment: &Experiment, results: &Path) -> Result<Report, String> {
    let (began, machine) = (Instant::now(), Machine::describe(&lab.burnet));
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let found = (experiment.run)(lab)?;
    keep(experiment, found, (machine, unix_s, began.elapsed().as_secs_f64()), lab.short, results)
}

/// Writes the report and the figure.
fn keep(
    experiment: &Experiment,
    found: Findings,
    (machine, unix_s, took_s): (Machine, u64, f64),
    short: bool,
    results: &Path,
) -> Result<Report, String> {
    let mut figure = found.figure;
    figure.notes.push(machine.line());
    if short {
        figure.notes.push(
            "With short times. This only checks that everything works, and gives no figures.".to_owned(),
        );
    }
    let report = Report {
        experiment: experiment.name.to_owned(),
        title: figure.title.clone(),
        claims: found.claims,
        data: found.data,
        machine,
        unix_s,
        took_s,
        short,
    };
    let file = |ending: &str| results.join(format!("{}.{ending}", experiment.name));
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    write(&file("json"), &(text + "\n"))?;
    write(&file("svg"), &figure.to_svg())?;
    if let Err(trouble) = png::beside(&file("svg")) {
        eprintln!("experiments: {trouble}");
    }
    Ok(report)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

fn print_claims(report: &Report) {
    println!("{} ({:.0} s)", report.title, report.took_s);
    for claim in &report.claims {
        let held = match claim.holds {
            Some(true) => "as asked ",
            Some(false) => "NOT SO   ",
            None => "         ",
        };
        let asked = claim.asked.as_ref().map(|asked| format!(" (asked: {asked})")).unwrap_or_default();
        println!("  {held}{}: {}{asked}", claim.what, claim.measured);
    }
}

fn report_of(experiment: &Experiment, results: &Path) -> Option<Report> {
    let text = std::fs::read_to_string(results.join(format!("{}.json", experiment.name))).ok()?;
    serde_json::from_str(&text).ok()
}

/// The page of all existing reports, of this run and of earlier ones.
fn write_page(paper: &Paper, results: &Path) -> Result<(), String> {
    let reports: Vec<Report> = paper.experiments.iter().filter_map(|it| report_of(it, results)).collect();
    write(&results.join("README.md"), &page(paper.name, &(paper.source)()?, &reports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_paper_or_experiment_is_refused_by_name() {
        assert!(paper("onix").err().is_some_and(|why| why.contains("no paper onix")));
        for paper in PAPERS {
            let unknown = paper.wanted(&["fig99".to_owned()], true).err();
            assert!(unknown.is_some_and(|why| why.contains("no experiment fig99")));
            let all = |is_root| paper.wanted(&["all".to_owned()], is_root).map(|all| all.len()).ok();
            assert_eq!(all(true), Some(paper.experiments.len()));
            assert_eq!(all(false), Some(paper.experiments.len() - paper.as_root.len()));
            assert!(paper.wanted(&[], true).is_ok_and(|none| none.is_empty()));
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
