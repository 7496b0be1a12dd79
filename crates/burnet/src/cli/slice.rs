//! `burnet slice`: what may be asked about slices of tenants.
//!
//! In: the command line. Out: the options, parsed. It never connects to a node, and reads no file.

use super::RunArgs;
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

const RUN_EXAMPLES: &str = "\
Examples:
  burnet slice run slices.toml
  burnet slice run slices.toml --listen 10.0.0.1:6653 --workers 2

The file has one section [slice.NAME] for each slice. It is the same as burnet run --config FILE, for a file without apps.";

const SHOW_EXAMPLES: &str = "\
Examples:
  burnet slice show blue
  burnet slice show blue --json | jq '.switches[].controllers'";

const LABELS_EXAMPLES: &str = "\
Examples:
  burnet slice labels blue
  burnet slice labels blue --json | jq '.items[] | select(.label_kbps < 1000) | .link'

The node needs the table [network] in its configuration. A label is what the flows of all other slices leave of a link.";

const FLOWS_EXAMPLES: &str = "\
Examples:
  burnet slice flows blue
  burnet slice flows blue --json | jq '[.items[].rate_bps] | add'

The node needs the table [network] in its configuration.";

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
    /// Run a node with the slices of a file, and no apps
    #[command(after_help = RUN_EXAMPLES)]
    Run(SliceRunArgs),
    /// List the slices of the running node: their state, controllers and rules
    List(SliceListArgs),
    /// Show a slice of the running node: its switches, controllers and counters
    #[command(after_help = SHOW_EXAMPLES)]
    Show(SliceShowArgs),
    /// Show what others leave of the links of a slice
    #[command(after_help = LABELS_EXAMPLES)]
    Labels(SliceShowArgs),
    /// Show the flows of a slice: their rates and paths
    #[command(after_help = FLOWS_EXAMPLES)]
    Flows(SliceShowArgs),
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

/// `burnet slice run`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct SliceRunArgs {
    /// The file with the slices
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The options of the node.
    #[command(flatten)]
    pub node: RunArgs,
}

/// `burnet slice list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct SliceListArgs {
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet slice show`, `labels` and `flows`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceShowArgs {
    /// The slice
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}
