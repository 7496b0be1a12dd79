//! The laboratory's command line against its reference page.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use clap::{Command, CommandFactory};
use lab::cli::Cli;
use std::path::Path;

#[test]
fn each_command_and_option_is_in_the_reference() {
    fn check(path: &str, command: &Command, reference: &str) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long() else { continue };
            assert!(
                reference.contains(&format!("`--{long}")),
                "cli.md does not say what {path} --{long} does"
            );
        }
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = match below.get_name() {
                "apps" => "burnet-lab apps".to_owned(),
                name => format!("{path} {name}"),
            };
            assert!(reference.contains(&path), "cli.md does not say what {path} does");
            check(&path, below, reference);
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    check("burnet", &Cli::command(), &std::fs::read_to_string(page).unwrap());
}
