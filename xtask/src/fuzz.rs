//! `cargo xtask fuzz [TARGET] [--seconds N] [--seed N]`: runs the fuzz targets of `fuzz/`, one after the other. The
//! target `oracle` runs the fuzzer of the kernel's checks, which is a test of `tests/scenarios/oracle`, from a seed.
//!
//! In: a target's name, a time and a seed. Out: what cargo-fuzz or the test prints, and the corpus that cargo-fuzz
//! found in `fuzz/corpus`. It installs nothing: the developer installs cargo-fuzz and a nightly toolchain.

use crate::process;
use crate::tree;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

/// Long enough to walk the corpus and find a shallow fault in each decoder while a developer waits.
const SECONDS: u32 = 60;

/// A fuzzer that needs more than this for one input has found an input that costs more than its size.
const INPUT_LIMIT_S: u32 = 5;

#[derive(Debug, PartialEq, Eq)]
struct Request {
    target: Option<String>,
    seconds: u32,
    seed: u64,
}

/// The fuzzer of the reference monitor. It needs neither cargo-fuzz nor a nightly toolchain.
const ORACLE: &str = "oracle";

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let request = parse(arguments)?;
    if request.target.as_deref() == Some(ORACLE) {
        println!("fuzzing the reference monitor for {} s from seed {}", request.seconds, request.seed);
        let status = oracle(&request).status().map_err(|error| format!("cannot run cargo test: {error}"))?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let targets = targets()?;
    let chosen: Vec<&String> = match &request.target {
        None => targets.iter().collect(),
        Some(name) => targets.iter().filter(|target| *target == name).collect(),
    };
    if chosen.is_empty() {
        return Err(format!("no such fuzz target; there are: {}", targets.join(", ")));
    }
    if process::find("cargo-fuzz").is_none() {
        return Err("cargo-fuzz is missing: cargo install cargo-fuzz --locked".to_owned());
    }
    for target in chosen {
        println!("fuzzing {target} for {} s", request.seconds);
        let status = command(target, request.seconds).status();
        if !status.map_err(|error| format!("cannot run cargo fuzz: {error}"))?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut request = Request { target: None, seconds: SECONDS, seed: 1 };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let value = words.next().ok_or("--seconds needs a number")?;
            request.seconds =
                value.parse().map_err(|_| format!("--seconds {value}: not a number of seconds"))?;
        } else if word == "--seed" {
            let value = words.next().ok_or("--seed needs a number")?;
            request.seed = value.parse().map_err(|_| format!("--seed {value}: not a number"))?;
        } else if word.starts_with('-') {
            return Err(format!("`fuzz` does not know `{word}`; it takes [TARGET] [--seconds N] [--seed N]"));
        } else if let Some(first) = request.target.replace(word.clone()) {
            return Err(format!("`fuzz` takes one target, and was given `{first}` and `{word}`"));
        }
    }
    Ok(request)
}

/// The targets: the file names in fuzz/fuzz_targets.
fn targets() -> Result<Vec<String>, String> {
    let folder = tree::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> =
        sources.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Half of the time for each version of OpenFlow.
fn oracle(request: &Request) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(tree::root()).stdin(Stdio::null());
    command.args(["test", "--release", "-p", "system-tests", "--test", ORACLE, "no_app_does_at_our_switch"]);
    command.args(["--", "--nocapture"]);
    command.env("BURNET_ORACLE_SECONDS", (request.seconds / 2).max(1).to_string());
    command.env("BURNET_ORACLE_SEED", request.seed.to_string());
    command
}

fn command(target: &str, seconds: u32) -> Command {
    // Through rustup, because the workspace's toolchain is pinned and stable, and the fuzzer's is not.
    let mut command = Command::new("rustup");
    command.current_dir(tree::root()).stdin(Stdio::null()).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command.args(["run", "nightly", "cargo", "fuzz", "run", target, "--"]);
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={INPUT_LIMIT_S}"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Request, &str>) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match (parse(&words), expected) {
            (Ok(request), Ok(expected)) => assert_eq!(request, expected, "{line}"),
            (Err(reason), Err(part)) => assert!(reason.contains(part), "{line}: {reason}"),
            (found, _) => panic!("{line}: {found:?}"),
        }
    }

    #[test]
    fn the_command_line_is_read_or_refused_by_name() {
        check("--seconds", Err("needs a number"));
        check("--seconds soon", Err("soon"));
        check("--minutes 1", Err("--minutes"));
        check("one two", Err("`one` and `two`"));
        check("", Ok(Request { target: None, seconds: SECONDS, seed: 1 }));
        check(
            "decode --seconds 600",
            Ok(Request { target: Some("decode".to_owned()), seconds: 600, seed: 1 }),
        );
        check("--seconds 1", Ok(Request { target: None, seconds: 1, seed: 1 }));
        check("--seed", Err("--seed needs"));
        check("oracle --seed seven", Err("seven"));
        let oracle = Request { target: Some("oracle".to_owned()), seconds: 600, seed: 7 };
        check("oracle --seconds 600 --seed 7", Ok(oracle));
    }
}
