//! `burnet slice`: what may be asked about slices of tenants.
//!
//! In: the command line. Out: the options, parsed. It never reads a file.

use super::node::NodeArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Of `burnet slice plan` and `burnet slice fit`.
pub const PLAN_EXAMPLES: &str = "\
Examples:
  burnet slice plan slices.toml --network network.toml     on a described network
  burnet slice plan slices.toml                            on the network of the running node
  burnet slice fit slices.toml --network network.toml --json

Exit code 1 if some slice does not fit, 2 if a file is wrong.
docs/reference/slices.md describes both files.";

/// `burnet slice`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SliceArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: SliceCommand,
}

/// What may be asked about slices.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum SliceCommand {
    /// Show what each slice of a file gets of the network, or why not
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(SlicePlanArgs),
    /// Show whether the slices of a file fit, and if not, what would
    #[command(after_help = PLAN_EXAMPLES)]
    Fit(SlicePlanArgs),
}

/// `burnet slice plan` and `burnet slice fit`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SlicePlanArgs {
    /// The slices file, or a burnet.toml with slices
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The description of the network [default: the network of the running node]
    #[arg(long, value_name = "NETWORKFILE")]
    pub network: Option<PathBuf>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}
