//! `cargo xtask experiment`: builds the measured programs and the experiments in release mode, and becomes
//! `experiments`.
//!
//! In: arguments for `experiments`, passed on unchanged. The exception is `--debug`, which builds without
//! optimisation: for trying, not for measuring. Out: its exit code. Without the name of an experiment it lists them,
//! and what running one would do. It installs nothing without the option `--install`.

use crate::{packages, process, tree};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What makes PNG of SVG, and Debian's package of it.
const PAINTER: (&str, &str) = ("rsvg-convert", "librsvg2-bin");

/// What the testbed of the experiments `models` runs.
const OF_TESTBED: [(&str, &str); 4] = [
    ("redis-server", "redis-server"),
    ("ethtool", "ethtool"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("nft", "nftables"),
];

/// What is measured, and who measures. The app in a program of its own is one of the zones that are measured.
const PROGRAMS: [&str; 10] = [
    "build",
    "--package",
    "burnet",
    "--package",
    "lab",
    "--package",
    "hub",
    "--package",
    "experiments",
    "--bins",
];

/// The misbehaving app as a shared object, for the baseline.
const SHARED_OBJECTS: [&str; 4] = ["build", "--package", "experiments", "--examples"];

/// What running an experiment does, for a user who only lists them.
const WOULD: &str = "\
`cargo xtask experiment PAPER NAME|all` builds burnet, burnet-lab, hub and the experiments as releases. It runs one experiment after the other, each \
against its own nodes on this machine. It writes NAME.json, NAME.svg and NAME.png into experiments/PAPER/results. With --short it does a quick \
run and writes nothing there. With --again it measures nothing, and makes claims and figures again from the JSON of earlier runs. With --install it first installs librsvg2-bin, which makes the PNG files, and for `models` redis-server, ethtool, openvswitch-switch and nftables; \
this needs root.";

/// The task that the arguments name.
#[derive(Debug, PartialEq, Eq)]
enum Task<'a> {
    /// To list the papers, or the experiments of one.
    List(Option<&'a str>),
    /// To run some; the words for `experiments`.
    Make { debug: bool, install: bool, words: Vec<&'a str> },
}

fn read(arguments: &[String]) -> Task<'_> {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let own = |argument: &&str| !["--debug", "--install"].contains(argument);
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(own).collect();
    let names = words.iter().skip(1).filter(|word| !word.starts_with("--")).count();
    let asks_for_help = words.iter().any(|word| ["--help", "-h"].contains(word));
    match names == 0 && !asks_for_help {
        true => Task::List(words.first().copied().filter(|word| !word.starts_with("--"))),
        false => Task::Make { debug: has("--debug"), install: has("--install"), words },
    }
}

/// Builds, then replaces this process by the experiments.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (debug, install, rest) = match read(arguments) {
        Task::List(paper) => return known(paper).and_then(list),
        Task::Make { debug, install, words } => (debug, install, words),
    };
    known(rest.first().copied().filter(|word| !word.starts_with("--")))?;
    let release: &[&str] = if debug { &[] } else { &["--release"] };
    for words in [&PROGRAMS[..], &SHARED_OBJECTS] {
        if !process::cargo().args(words).args(release).status().is_ok_and(|status| status.success()) {
            return Ok(ExitCode::FAILURE);
        }
    }
    if install {
        install_for(rest.first().copied());
    }
    let program = tree::target_folder().join(if debug { "debug" } else { "release" }).join("experiments");
    let error = Command::new(&program).args(rest).exec();
    Err(format!("cannot run {}: {error}", program.display()))
}

/// Installs what experiments of this paper use. What cannot be installed is said, and the experiments that need it say so too.
fn install_for(paper: Option<&str>) {
    if let Err(why) = packages::install_for(PAINTER.0, PAINTER.1) {
        println!("{why}; there will be no PNG");
    }
    let of_testbed = OF_TESTBED.iter().filter(|_| paper == Some("models"));
    for why in of_testbed.filter_map(|(program, package)| packages::install_for(program, package).err()) {
        println!("{why}; the experiments with processes cannot run");
    }
}

/// The paper, if it has a page in `experiments`. So a typing error is found before anything is built.
fn known(paper: Option<&str>) -> Result<Option<&str>, String> {
    match paper.filter(|paper| !tree::root().join("experiments").join(paper).join("README.md").is_file()) {
        Some(unknown) => {
            Err(format!("no paper has the name `{unknown}`; `cargo xtask experiment` lists them"))
        }
        None => Ok(paper),
    }
}

/// Lists the papers or a paper's experiments, and says what running one would do. It builds only what lists them.
fn list(paper: Option<&str>) -> Result<ExitCode, String> {
    let words = ["run", "--quiet", "--package", "experiments", "--bin", "experiments", "--"];
    let listed = process::cargo().args(words).args(paper).status().is_ok_and(|status| status.success());
    println!("\n{WOULD}");
    Ok(if listed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn without_an_experiment_it_lists_and_installs_nothing() {
        for line in ["rosemary", "rosemary --install", "rosemary --short"] {
            assert_eq!(read(&words(line)), Task::List(Some("rosemary")), "{line}");
        }
        for line in ["", "--debug"] {
            assert_eq!(read(&words(line)), Task::List(None), "{line}");
        }
    }

    #[test]
    fn nothing_is_installed_unasked() {
        let given = words("rosemary fig16 --short");
        let expected =
            Task::Make { debug: false, install: false, words: vec!["rosemary", "fig16", "--short"] };
        assert_eq!(read(&given), expected);
        let given = words("rosemary all --install --debug");
        let expected = Task::Make { debug: true, install: true, words: vec!["rosemary", "all"] };
        assert_eq!(read(&given), expected);
    }
}
