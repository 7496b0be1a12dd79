//! `burnet incidents`, `burnet safe-mode`, `burnet app quarantine` and `burnet app logs`: what may be asked of what went wrong.

use clap::{Args, Subcommand};

use super::node::NodeArgs;
use super::package::StateArgs;

/// Of `burnet incidents`.
pub const EXAMPLES: &str = "\
Examples:
  burnet incidents                what went wrong, newest last
  burnet incidents show 12        one of them, with all that was seen
  burnet incidents --json | jq -r '.[].finding.culprit'

It reads the state folder, so it needs no running node.";

/// Of `burnet app logs`.
pub const LOGS_EXAMPLES: &str = "\
Examples:
  burnet app logs my-app --lines 20
  burnet app logs my-app --follow

Each line has the time, the number of the app's start, and the text. The log of the node has the same lines.";

/// `burnet incidents`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct IncidentsArgs {
    /// The subcommand. Without one, the list is shown.
    #[command(subcommand)]
    pub command: Option<IncidentsCommand>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Where the node keeps them.
    #[command(flatten)]
    pub state: IncidentsFolder,
}

/// Where incidents are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct IncidentsFolder {
    /// The state folder of the node [default: $BURNET_STATE, else /var/lib/burnet for root and $XDG_STATE_HOME/burnet for others]
    #[arg(long, value_name = "DIR", global = true)]
    pub state: Option<std::path::PathBuf>,
}

/// What may be asked about incidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
pub enum IncidentsCommand {
    /// List them
    List,
    /// Show one incident with its evidence
    Show {
        /// The number of the incident
        number: u64,
    },
}

/// `burnet safe-mode`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SafeModeArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: SafeModeCommand,
}

/// What may be asked about safe mode.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum SafeModeCommand {
    /// Show whether the node is in safe mode, since when and why
    Show {
        /// The node's socket, and the output format.
        #[command(flatten)]
        asking: NodeArgs,
    },
    /// Leave safe mode: all apps run again, and apps that caused no failure are trusted again
    Leave {
        /// The node's socket, and the output format.
        #[command(flatten)]
        asking: NodeArgs,
    },
}

/// `burnet app quarantine`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AppQuarantineArgs {
    /// The app's name, as in burnet app list
    pub name: String,
    /// The reason; burnet app list and burnet incidents show it
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet app logs`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AppLogsArgs {
    /// The app's name, as in burnet app list
    pub name: String,
    /// Follow the output
    #[arg(long)]
    pub follow: bool,
    /// Print the last N lines
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub lines: usize,
    /// Where the node keeps them.
    #[command(flatten)]
    pub state: StateArgs,
}
