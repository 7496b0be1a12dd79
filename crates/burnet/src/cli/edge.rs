//! `burnet edge`: what may be asked of the agent on a server.
//!
//! In: the command line. Out: the options, parsed. It reads no file.

use clap::Args;
use std::path::PathBuf;

/// What is shown at the end of the help.
pub const EXAMPLES: &str = "\
Examples:
  burnet edge /etc/burnet/edge.toml
  burnet edge edge.toml --check      only whether the files are sound
  burnet edge edge.toml --clean      remove what a run left that was killed

It needs root or CAP_NET_ADMIN, nft and tc. Ctrl-C or SIGTERM ends it, and removes what it made. docs/reference/edge.md describes the files.";

/// `burnet edge`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct EdgeArgs {
    /// The file of the agent
    pub file: PathBuf,
    /// Check the files, and start nothing
    #[arg(long)]
    pub check: bool,
    /// Remove what an earlier run made on the interface, and start nothing
    #[arg(long, conflicts_with = "check")]
    pub clean: bool,
}
