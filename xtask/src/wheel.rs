//! `cargo xtask wheel`: builds the wheel of the Python SDK. And what its tests run in.
//!
//! ```text
//!   python3 ──venv, pip──> target/python (pinned tools) ──maturin──> target/wheels/burnet-….whl ──pip──> target/python
//! ```
//!
//! In: `sdk/python`, a Python 3.11 or later, and at the first time the network, for PyPI. Out: a wheel. It never writes outside the target folder.

use crate::process;
use crate::tree;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What builds and checks the package. Pinned, so that a new version of one of them is a change of ours.
const TOOLS: [&str; 4] = ["maturin==1.16.0", "mypy==2.4.1", "pytest==9.2.0", "ruff==0.17.6"];

/// Asked of python3 before anything is made: whether it is new enough, and can make environments (Debian has that in a package of its own).
const ABLE: &str = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))";

/// `cargo xtask wheel`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`wheel` takes no arguments, and was given `{argument}`"));
    }
    if let Some(reason) = why_not() {
        return Err(reason);
    }
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// Why no wheel can be built here, as a sentence.
pub fn why_not() -> Option<String> {
    let mut python = Command::new("python3");
    python.args(["-c", ABLE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match python.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some("python3 is older than 3.11, or lacks venv (Debian: python3-venv)".to_owned()),
        Err(_) => Some("there is no python3".to_owned()),
    }
}

/// The folder of the package.
pub fn folder() -> PathBuf {
    tree::root().join("sdk/python")
}

/// A program of the environment that [`build`] makes.
pub fn tool(name: &str) -> PathBuf {
    environment().join("bin").join(name)
}

fn environment() -> PathBuf {
    tree::target_folder().join("python")
}

/// Builds the wheel; its path.
pub fn build() -> Result<PathBuf, String> {
    make_environment()?;
    let wheels = tree::target_folder().join("wheels");
    // So that the one that is there afterwards is the one that was built.
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = Command::new(tool("maturin"));
    maturin.args(["build", "--release", "--locked", "--quiet", "--out"]).arg(&wheels);
    maturin.arg("--interpreter").arg(tool("python"));
    maturin.current_dir(folder()).env("CARGO_TARGET_DIR", tree::target_folder());
    must(&mut maturin)?;
    let built = fs::read_dir(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let wheel = built.flatten().map(|entry| entry.path()).find(|path| is_wheel(path));
    wheel.ok_or_else(|| format!("maturin left no wheel in {}", wheels.display()))
}

/// Installs a wheel beside the tools, for the tests.
pub fn install(wheel: &Path) -> Result<(), String> {
    must(pip().args(["install", "--force-reinstall", "--no-deps", "--no-index"]).arg(wheel))
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "whl")
}

fn make_environment() -> Result<(), String> {
    let (environment, wanted) = (environment(), TOOLS.join("\n"));
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    must(pip().arg("install").args(TOOLS)).map_err(|reason| {
        format!("{reason}: {} come from PyPI; is this machine offline?", TOOLS.join(", "))
    })?;
    fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))
}

fn pip() -> Command {
    let mut pip = Command::new(tool("python"));
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    pip
}

fn must(command: &mut Command) -> Result<(), String> {
    let shown = process::shown(command);
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})")),
        Err(error) => Err(format!("cannot run {shown}: {error}")),
    }
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
