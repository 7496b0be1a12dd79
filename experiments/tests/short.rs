//! The experiments of the ONOS paper with small numbers: does each of them run to its end, and write what it must?
//!
//! No time is judged here. The test needs the program `burnet` of the same build beside it, which a test of the whole workspace builds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use experiments::report::Report;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn all_experiments_of_onos_run_with_small_numbers() {
    let program = Path::new(env!("CARGO_BIN_EXE_experiments"));
    let burnet = program.with_file_name("burnet");
    assert!(burnet.is_file(), "{} is missing: cargo build --package burnet", burnet.display());
    let results = std::env::temp_dir().join(format!("burnet-short-{}", std::process::id()));
    let ran = Command::new(program)
        .args(["onos", "all", "--short", "--results"])
        .arg(&results)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    for experiment in experiments::onos::PAPER.experiments {
        let text = std::fs::read_to_string(results.join(format!("{}.json", experiment.name))).unwrap();
        let report: Report = serde_json::from_str(&text).unwrap();
        assert!(report.short && !report.claims.is_empty(), "{}: {said}", experiment.name);
        let figure = std::fs::read_to_string(results.join(format!("{}.svg", experiment.name))).unwrap();
        assert!(figure.starts_with("<svg") || figure.starts_with("<?xml"), "{}", experiment.name);
    }
    std::fs::remove_dir_all(&results).unwrap();
}
