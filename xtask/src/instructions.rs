//! `cargo xtask instructions`: how many instructions a packet-in costs on its way to a flow mod, stage by stage.
//!
//! ```text
//!   benches/packet_in --count STAGE VERSION ROUNDS, under callgrind, for few rounds and for many ──> the difference, by packet-in
//! ```
//!
//! Instructions do not depend on what else the machine does, as times do; of two runs the difference has no start-up in it. Allocations and
//! system calls of the loop would be in it too. It needs Valgrind, and installs nothing.

use crate::process;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Packet-ins of a round of the bench.
const BATCH: u64 = 256;
/// Rounds of the shorter and of the longer run.
const FEW: u64 = 20;
const MANY: u64 = 60;

/// In the order in which a packet-in passes them; each includes those before.
const STAGES: [&str; 5] = ["view", "session", "dispatch", "app", "path"];
const VERSIONS: [&str; 2] = ["1.0", "1.3"];

/// Counts and prints a table.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("`instructions` takes no arguments, and was given `{argument}`"));
    }
    if process::find("valgrind").is_none() {
        return Err("valgrind is missing: apt install valgrind".to_owned());
    }
    let bench = built()?;
    println!("{:<10}{:>12}{:>12}", "stage", "OF 1.0", "OF 1.3");
    for stage in STAGES {
        let mut line = format!("{stage:<10}");
        for version in VERSIONS {
            line += &format!("{:>12}", per_packet_in(&bench, stage, version)?);
        }
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The bench, built as it is timed.
fn built() -> Result<PathBuf, String> {
    let mut command = process::cargo();
    command.args(["bench", "-p", "burnet", "--bench", "packet_in", "--no-run", "--message-format=json"]);
    executable(&process::output_of(&mut command)?).ok_or_else(|| "cargo built no bench packet_in".to_owned())
}

/// The path of the bench's program, in what cargo says of all that it built.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_bench = message["target"]["name"] == "packet_in" && message["target"]["kind"][0] == "bench";
        message["executable"].as_str().filter(|_| is_bench).map(PathBuf::from)
    })
}

fn per_packet_in(bench: &PathBuf, stage: &str, version: &str) -> Result<u64, String> {
    let count = |rounds: u64| -> Result<u64, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(bench);
        command.args(["--count", stage, version, &rounds.to_string()]).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("cannot run valgrind: {error}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        collected(&text).ok_or_else(|| format!("valgrind counted nothing ({}): {text}", output.status))
    };
    Ok(count(MANY)?.saturating_sub(count(FEW)?) / ((MANY - FEW) * BATCH))
}

/// The number in callgrind's line `==PID== Collected : NUMBER`.
fn collected(text: &str) -> Option<u64> {
    let (_, rest) = text.lines().find_map(|line| line.split_once("Collected :"))?;
    rest.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callgrind_did_not_count_is_no_number() {
        assert_eq!(collected("==1== Command: x\n"), None);
        assert_eq!(collected("==1== Collected : \n"), None);
    }

    #[test]
    fn the_count_is_in_its_line() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 123456\n==7==\n"), Some(123_456));
    }

    #[test]
    fn the_bench_is_told_from_what_else_was_built() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"packet_in"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"kind":["bench"],"name":"packet_in"},"executable":"/t/packet_in-1"}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/packet_in-1")));
        assert_eq!(executable("{}"), None);
    }
}
