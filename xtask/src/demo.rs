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

/// Builds `burnet` and asks Cargo where it lies; none when it does not compile (Cargo has said why).
pub fn built_binary() -> Result<Option<PathBuf>, String> {
    let mut build = process::cargo();
    build.args(["build", "--package", "burnet", "--message-format", "json-render-diagnostics"]);
    Ok(process::output_of(&mut build).ok().and_then(|messages| executable_in(&messages)))
}

/// The path of the binary `burnet` in Cargo's messages, one JSON object a line.
fn executable_in(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut burnet = messages.filter(|message| message["target"]["name"] == "burnet");
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
        check("", None);
        check("not JSON", None);
        check(r#"{"reason":"compiler-artifact","target":{"name":"burnet"},"executable":null}"#, None);
        check(r#"{"reason":"compiler-artifact","target":{"name":"flow"},"executable":"/t/flow"}"#, None);
        check(
            "{\"reason\":\"build-finished\"}\n{\"target\":{\"name\":\"burnet\"},\"executable\":\"/t/burnet\"}",
            Some("/t/burnet"),
        );
    }
}
