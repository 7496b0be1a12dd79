//! The experiments with small numbers: does each of them run to its end, and write what it must?
//!
//! No time is judged here. The tests need the program `burnet` of the same build beside them, which a test of the whole workspace builds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use experiments::paper::Paper;
use experiments::report::Report;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs these experiments of a paper with small numbers, and looks at what they wrote.
fn check(paper: &Paper, names: &[&str]) {
    let program = Path::new(env!("CARGO_BIN_EXE_experiments"));
    let burnet = program.with_file_name("burnet");
    assert!(burnet.is_file(), "{} is missing: cargo build --package burnet", burnet.display());
    let results =
        std::env::temp_dir().join(format!("burnet-short-{}-{}-{}", paper.name, names[0], std::process::id()));
    let ran = Command::new(program)
        .arg(paper.name)
        .args(names)
        .args(["--short", "--results"])
        .arg(&results)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    for name in names {
        let text = std::fs::read_to_string(results.join(format!("{name}.json"))).unwrap();
        let report: Report = serde_json::from_str(&text).unwrap();
        assert!(report.short && !report.claims.is_empty(), "{name}: {said}");
        let figure = std::fs::read_to_string(results.join(format!("{name}.svg"))).unwrap();
        assert!(figure.starts_with("<svg") || figure.starts_with("<?xml"), "{name}");
    }
    std::fs::remove_dir_all(&results).unwrap();
}

#[test]
fn all_experiments_of_onos_run_with_small_numbers() {
    let all: Vec<&str> = experiments::onos::PAPER.experiments.iter().map(|it| it.name).collect();
    check(&experiments::onos::PAPER, &all);
}

/// Those of labels that measure the machine for minutes, and nothing else that tests do not cover.
const OF_A_QUIET_MACHINE: [&str; 2] = ["cost", "fig3"];

/// Those of labels that need root, or those that do not.
fn of_labels(need_root: bool) -> Vec<&'static str> {
    let paper = experiments::labels::PAPER;
    let names = paper.experiments.iter().map(|it| it.name);
    let is_here =
        |name: &&str| !OF_A_QUIET_MACHINE.contains(name) && paper.as_root.contains(name) == need_root;
    names.filter(is_here).collect()
}

#[test]
fn the_experiments_of_labels_run_with_small_numbers() {
    check(&experiments::labels::PAPER, &of_labels(false));
}

/// They wait for TCP on Mininet most of the time, so they run beside those that compute.
#[test]
fn the_experiments_of_labels_that_need_root_run_with_small_numbers() {
    if rustix::process::geteuid().is_root() {
        check(&experiments::labels::PAPER, &of_labels(true));
    } else {
        println!("left out: the_experiments_of_labels_that_need_root_run_with_small_numbers: it needs root");
    }
}

/// Those of the switch models that need neither root nor real time.
#[test]
fn the_experiments_of_models_in_virtual_time_run_with_small_numbers() {
    let paper = experiments::models::PAPER;
    let in_virtual_time =
        |it: &&experiments::paper::Experiment| !paper.needs_root(it) && it.name != "dilation";
    let names: Vec<&str> = paper.experiments.iter().filter(in_virtual_time).map(|it| it.name).collect();
    check(&paper, &names);
}
