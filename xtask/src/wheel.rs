//! `cargo xtask wheel`: builds the wheel of the Python SDK. And what its tests run in.
//!
//! ```text
//!   python3 ──venv, pip──> target/python (pinned tools) ──maturin──> target/wheels/burnet-….whl ──pip──> target/python
//! ```
//!
//! In: `sdk/python`, a Python 3.11 or later, and at the first time the network, for PyPI. Out: a wheel. It never writes outside the target folder.

use crate::packages::LIMIT;
use crate::python::{self, SDK};
use crate::{process, tree};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// A release build of the extension from nothing takes some minutes on two busy cores.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// `cargo xtask wheel`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`wheel` takes no arguments, and was given `{argument}`"));
    }
    if let Some(reason) = python::why_not() {
        return Err(reason);
    }
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// The folder of the package.
pub fn folder() -> PathBuf {
    tree::root().join("sdk/python")
}

/// Builds the wheel; its path.
pub fn build() -> Result<PathBuf, String> {
    SDK.make()?;
    let wheels = tree::target_folder().join("wheels");
    // So that the one that is there afterwards is the one that was built.
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(SDK.tool("maturin"));
    maturin.args(["build", "--release", "--locked", "--quiet", "--out"]).arg(&wheels);
    maturin.arg("--interpreter").arg(SDK.tool("python"));
    maturin.current_dir(folder()).env("CARGO_TARGET_DIR", tree::target_folder());
    process::must(&mut maturin, BUILD_LIMIT)?;
    let built = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let wheel = built.flatten().map(|entry| entry.path()).find(|path| is_wheel(path));
    wheel.ok_or_else(|| format!("maturin left no wheel in {}", wheels.display()))
}

/// Installs a wheel beside the tools, for the tests.
pub fn install(wheel: &Path) -> Result<(), String> {
    let words = ["install", "--force-reinstall", "--no-deps", "--no-index"];
    process::must(SDK.pip().args(words).arg(wheel), LIMIT)
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "whl")
}

/// The last line of pytest's, in the words of Rust's harness.
pub fn result_of_pytest(line: &str) -> Option<String> {
    let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let words: Vec<&str> = counts.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let count = |kinds: &[&str]| -> Option<u32> {
        let of = |pair: &[&str]| kinds.contains(&pair[1]).then(|| pair[0].parse::<u32>().ok());
        words.windows(2).filter_map(of).sum()
    };
    let (passed, failed, skipped) =
        (count(&["passed"])?, count(&["failed", "error", "errors"])?, count(&["skipped"])?);
    let seconds = time.split(' ').next().unwrap_or_default();
    let is_result = seconds.ends_with('s') && passed + failed + skipped > 0;
    is_result.then(|| format!("test result: {passed} passed; {failed} failed; {skipped} ignored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(result_of_pytest(line).as_deref(), expected, "{line}");
    }

    #[test]
    fn what_only_looks_like_pytests_last_line_counts_nothing() {
        check("", None);
        check("what happened in 1s", None);
        check("many passed in 1s", None);
        check("tests/test_app.py ..... [100%]", None);
    }

    #[test]
    fn pytests_last_line_is_told_in_rusts_words() {
        check("66 passed in 0.55s", Some("test result: 66 passed; 0 failed; 0 ignored"));
        check(
            "=== 2 failed, 60 passed, 3 skipped, 1 warning, 1 error in 70.55s (0:01:10) ===",
            Some("test result: 60 passed; 3 failed; 3 ignored"),
        );
    }
}
