//! `cargo xtask experiment`: builds what is measured and the experiments, as releases, and becomes `experiments`.
//!
//! In: arguments for `experiments`, handed on as they are, but for `--debug`, which builds without optimisation: to try, not to measure. Out: its
//! exit code. As root it installs the program that makes PNG of SVG, if that is missing.

use crate::{packages, process, tree};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What makes PNG of SVG, and Debian's package of it.
const PAINTER: (&str, &str) = ("rsvg-convert", "librsvg2-bin");

/// What is measured, and who measures. The app in a program of its own is one of the zones that are measured.
const PROGRAMS: [&str; 8] =
    ["build", "--package", "burnet", "--package", "hub", "--package", "experiments", "--bins"];

/// The misbehaving app as a shared object, for the baseline.
const SHARED_OBJECTS: [&str; 4] = ["build", "--package", "experiments", "--examples"];

/// Builds, then replaces this process by the experiments.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let debug = arguments.iter().any(|argument| argument == "--debug");
    let rest: Vec<&String> = arguments.iter().filter(|argument| *argument != "--debug").collect();
    if rest.first().is_none_or(|paper| *paper != "rosemary") {
        let given = rest.first().map_or("nothing".to_owned(), |paper| format!("`{paper}`"));
        return Err(format!("`experiment` takes a paper's name first, rosemary, and was given {given}"));
    }
    let release: &[&str] = if debug { &[] } else { &["--release"] };
    for words in [&PROGRAMS[..], &SHARED_OBJECTS] {
        if !process::cargo().args(words).args(release).status().is_ok_and(|status| status.success()) {
            return Ok(ExitCode::FAILURE);
        }
    }
    if let Err(why) = packages::install_for(PAINTER.0, PAINTER.1) {
        println!("{why}; there will be no PNG");
    }
    let program = tree::target_folder().join(if debug { "debug" } else { "release" }).join("experiments");
    let error = Command::new(&program).args(rest).exec();
    Err(format!("cannot run {}: {error}", program.display()))
}
