//! The options of commands that ask a running node.
//!
//! In: the command line. Out: the options, parsed. It never connects to a node.

use clap::Args;
use std::path::PathBuf;

/// The options of every command that talks to a running node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct NodeArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The socket of the node [default: $BURNET_SOCKET, else the default of burnet run for this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}
