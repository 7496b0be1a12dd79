//! `cargo xtask demo`: builds Burnet and becomes `burnet demo`.
//!
//! In: arguments for `burnet demo`, handed on as they are. Out: its exit code. It never interprets them.

use crate::process;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Builds the binary, then replaces this process by it, so that Ctrl-C and every other signal reach it.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let Some(binary) = built_binary()? else { return Ok(ExitCode::FAILURE) };
    let error = Command::new(&binary).arg("demo").args(arguments).exec();
    Err(format!("cannot run {}: {error}", binary.display()))
}

/// Builds `burnet` with the laboratory beside it, and asks Cargo where it lies; none when they do not compile (Cargo has said why).
pub fn built_binary() -> Result<Option<PathBuf>, String> {
    binary_after(&["build", "--package", "burnet", "--package", "lab"])
}

/// Where `burnet` lies after Cargo did what `words` say; none when that failed or made no such binary.
pub fn binary_after(words: &[&str]) -> Result<Option<PathBuf>, String> {
    let mut cargo = process::cargo();
    cargo.args(words).args(["--message-format", "json-render-diagnostics"]);
    Ok(process::output_of(&mut cargo).ok().and_then(|messages| executable_in(&messages)))
}

/// The path of the binary `burnet` in Cargo's messages, one JSON object a line. Its unit tests are a program of the same
/// name.
fn executable_in(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut burnet = messages.filter(|it| it["target"]["name"] == "burnet" && it["profile"]["test"] == false);
    burnet.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(messages: &str, expected: Option<&str>) {
        assert_eq!(executable_in(messages), expected.map(PathBuf::from), "{messages}");
    }

    #[test]
    fn the_binary_is_where_cargo_says() {
        let message = |name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"target":{{"name":"{name}"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        check("", None);
        check("not JSON", None);
        check(r#"{"reason":"build-finished","success":true}"#, None);
        check(&message("burnet", false, "null"), None);
        check(&message("flow", false, "\"/t/flow\""), None);
        check(&message("burnet", true, "\"/t/deps/burnet-0\""), None);
        let after_others = ["{}".to_owned(), message("burnet", false, "\"/t/burnet\"")].join("\n");
        check(&after_others, Some("/t/burnet"));
    }
}
