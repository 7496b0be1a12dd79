//! `burnet app build`, `sign`, `verify`, `install`, `remove`, `grant`, `revoke`, `show`, `trust`, `untrust`: apps as packages.
//!
//! ```text
//!   arguments ──> state folder, what is required, the time ──> package decides ──> state folder changed, text to print
//! ```
//!
//! It decides nothing about trust or grants: `package::trust` and `package::install` do.

mod build;
mod consent;
mod grants;
mod install;
mod show;

pub use build::{build, sign};
pub use grants::{grant, remove, revoke, trust, untrust};
pub use install::{install, verify};
pub use show::show;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use package::install::Node;
use package::manifest::Ask;
use package::moment::Moment;
use package::state::{State, StateError};
use package::trust::Require;

use crate::apps;
use crate::cli::CommandError;
use crate::cli::package::{PolicyArgs, StateArgs};
use config::{ConfigFile, Environment};

impl From<StateError> for CommandError {
    fn from(error: StateError) -> CommandError {
        CommandError::DidNotWork(error.to_string())
    }
}

/// The properties of this node that matter for a package.
pub fn this_node() -> Node<'static> {
    Node { architecture: std::env::consts::ARCH, abi: abi::table::TABLE_VERSION, built_in: &apps::NAMES }
}

/// The present time. A clock before 1970 counts as 1970.
pub fn now() -> Moment {
    Moment::from_unix_s(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// The state folder that this command uses.
pub fn state(args: &StateArgs) -> Result<State, CommandError> {
    let around = Environment::of_this_process()?;
    Ok(State::at(around.state(args.state.as_deref(), None)?))
}

/// The path of the state folder that this command uses.
pub fn state_folder(command_line: Option<&Path>) -> Result<PathBuf, CommandError> {
    Ok(Environment::of_this_process()?.state(command_line, None)?)
}

/// The state folder that this command uses, and whose signature it requires.
fn policy(args: &PolicyArgs) -> Result<(State, Require), CommandError> {
    let file = args.config.as_deref().map(ConfigFile::read).transpose()?.unwrap_or_default();
    let around = Environment::of_this_process()?;
    let state = around.state(args.state.state.as_deref(), file.node.state.as_deref())?;
    Ok((State::at(state), file.packages.require))
}

/// The requests, one line each. After a dangerous one, a line says why, in red if `colours` are wanted.
fn asks_in_lines(asks: &[Ask], colours: bool) -> String {
    let width = asks.iter().map(|ask| ask.name.len()).max().unwrap_or_default();
    let (red, plain) = if colours { ("\x1b[31m", "\x1b[0m") } else { ("", "") };
    let line = |ask: &Ask| match &ask.danger {
        None => format!("  {:width$}  {}\n", ask.name, ask.words),
        Some(why) => {
            let indent = "";
            format!("  {red}{:width$}  {}\n  {indent:width$}  DANGEROUS: {why}{plain}\n", ask.name, ask.words)
        }
    };
    asks.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dangerous_says_why_below_it() {
        let ask = |name: &str, danger: Option<&str>| Ask {
            name: name.to_owned(),
            words: format!("do {name}"),
            danger: danger.map(str::to_owned),
        };
        let asks = [ask("vendor", Some("it may do anything")), ask("query", None)];
        let plain = "  vendor  do vendor\n          DANGEROUS: it may do anything\n  query   do query\n";
        assert_eq!(asks_in_lines(&asks, false), plain);
        assert!(asks_in_lines(&asks, true).starts_with("  \x1b[31mvendor"));
    }
}
