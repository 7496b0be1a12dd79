//! `burnet slice`: what may be asked about slices of tenants.
//!
//! In: the command line. Out: the options, parsed. It never connects to a node, and reads no file.

use super::RunArgs;
use super::audit::{Since, since};
use super::node::NodeArgs;
use crate::slice_plan::packets::RuleSpec;
use crate::slice_plan::rehearse::{FlowSpec, SECONDS_MAX};
use clap::{Args, Subcommand, ValueEnum};
use rehearsal::Choose;
use std::path::PathBuf;

/// Of `burnet slice plan` and `burnet slice fit`.
pub const PLAN_EXAMPLES: &str = "\
Examples:
  burnet slice plan slices.toml --network network.toml     on a described network
  burnet slice plan slices.toml                            on the network of the running node
  burnet slice fit slices.toml --network network.toml --json

Exit code 1 if some slice does not fit, 2 if a file is wrong.
docs/reference/slices.md describes both files.";

const REHEARSE_EXAMPLES: &str = "\
Examples:
  burnet slice rehearse slices.toml --network network.toml
  burnet slice rehearse slices.toml --network network.toml --flow red:A-B --flow blue:E-F@0.5
  burnet slice rehearse slices.toml --choose hash                     on the network of the running node
  burnet slice rehearse slices.toml --network network.toml --packets
  burnet slice rehearse slices.toml --network network.toml --packets --rule red:s5:in_port=9,actions=output:3

Tenants, labels and agents run in virtual time, and a model carries the traffic. Each flow sends as much as it can. Without --flow, the first VNIC
of each slice sends to its second, the third to the fourth, and so on. Exit code 1 if a flow gets less than its nominal rate at the end.

With --packets, flows are TCP in an emulated network, and tenants' controllers speak OpenFlow. That takes longer, and shows rules, errors and packet-ins
too.";

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

const REPORT_EXAMPLES: &str = "\
Examples:
  burnet slice report red
  burnet slice report red --json | jq '.items[] | select(.why_less)'

The node needs the table [network] in its configuration. What VNICs get are nominal rates: the share of each flow by the promises of its two ends.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  burnet slice explain red 'priority=5,in_port=1,actions=output:2'
  burnet slice explain red 'tcp,tcp_dst=80,actions=output:2' --switch s1 --json
  burnet slice explain red 'in_port=1,actions=output:2' --file slices.toml      without a node

The ports are those that the tenant sees, and the syntax is that of ovs-ofctl. On a running node, the rules and groups that the slice has are
counted in. Exit code 1 if no switch takes it.";

const APPLY_EXAMPLES: &str = "\
Examples:
  burnet slice apply slices.toml
  burnet slice apply slices.toml --network network.toml      judged on a described network
  burnet slice apply                                         those of the node's configuration again

First the file is checked, as burnet slice plan does. If it is wrong, or some slice does not fit, nothing changes. The node keeps the slices in its
state folder, and uses them in place of those in its configuration, also after a restart.";

const WATCH_EXAMPLES: &str = "\
Examples:
  burnet slice watch
  burnet slice watch blue
  burnet slice watch blue --json | jq --unbuffered 'select(.object.kind == \"label\")'

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
    /// Show what flows of the slices of a file would get, in virtual time
    #[command(after_help = REHEARSE_EXAMPLES)]
    Rehearse(SliceRehearseArgs),
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
    /// Show what the VNICs of a slice are promised, what they get, and why that is less
    #[command(after_help = REPORT_EXAMPLES)]
    Report(SliceReportArgs),
    /// Show what a flow mod of the tenant becomes in the switches, or why it is refused
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(SliceExplainArgs),
    /// End the process of a slice: its controllers are disconnected, and its rules stay
    Pause(SliceShowArgs),
    /// Start the process of a paused slice
    Resume(SliceShowArgs),
    /// Give the running node the slices of a file, and no others, from now on
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(SliceApplyArgs),
    /// Remove a slice from the running node, and its rules from the switches
    Remove(SliceShowArgs),
    /// Show each change of all slices, or of one slice and its labels, until Ctrl-C
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(SliceWatchArgs),
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

/// `burnet slice rehearse`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceRehearseArgs {
    /// The files, and how to ask a node.
    #[command(flatten)]
    pub plan: SlicePlanArgs,
    /// A flow, and when it begins [default: a second after the flow before it]. May be repeated
    #[arg(long = "flow", value_name = "SLICE:FROM-TO[@SECONDS]")]
    pub flows: Vec<FlowSpec>,
    /// How long it goes on after the last flow began
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub seconds: u64,
    /// How the tenants' controllers choose paths
    #[arg(long, value_name = "HOW", default_value = "label")]
    pub choose: Choosing,
    /// Rehearse with packets and OpenFlow messages, by the program burnet-lab
    #[arg(long)]
    pub packets: bool,
    /// Options that need `--packets`.
    #[command(flatten)]
    pub with_packets: PacketArgs,
}

/// What only a rehearsal with packets has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct PacketArgs {
    /// The controller of this slice is a learning switch. May be repeated
    #[arg(long, value_name = "SLICE", requires = "packets")]
    pub learning: Vec<String>,
    /// A rule that the controller of a slice adds, in the syntax of ovs-ofctl. May be repeated
    #[arg(long = "rule", value_name = "SLICE:SWITCH:FLOW[@SECONDS]", requires = "packets")]
    pub rules: Vec<RuleSpec>,
    /// How many entries the table of each switch has [default: 65536]
    #[arg(long, value_name = "ENTRIES", requires = "packets", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub table_entries: Option<u32>,
    /// The seed of all random choices
    #[arg(long, value_name = "NUMBER", requires = "packets")]
    pub seed: Option<u64>,
}

/// How a tenant's controller chooses among paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choosing {
    /// By the labels
    Label,
    /// By a hash of the flow, whatever the labels are
    Hash,
}

impl From<Choosing> for Choose {
    fn from(choosing: Choosing) -> Choose {
        match choosing {
            Choosing::Label => Choose::Label,
            Choosing::Hash => Choose::Number,
        }
    }
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

/// `burnet slice show` and others about one slice.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceShowArgs {
    /// The slice
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet slice report`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceReportArgs {
    /// The slice
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Show means since then: a moment, or how long ago, such as 1h [default: now]
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Since>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet slice explain`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceExplainArgs {
    /// The slice
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The flow mod, in the syntax of ovs-ofctl
    #[arg(value_name = "FLOW MOD")]
    pub flow_mod: String,
    /// Only this switch, such as s1
    #[arg(long, value_name = "SWITCH")]
    pub switch: Option<String>,
    /// Take the slice from this file, without rules and with switches of OpenFlow 1.3, instead of asking the running node
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet slice watch`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceWatchArgs {
    /// The slice [default: all, without labels]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet slice apply`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SliceApplyArgs {
    /// The slices file [default: the slices of the node's configuration]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The description of the network [default: the network of the running node]
    #[arg(long, value_name = "NETWORKFILE")]
    pub network: Option<PathBuf>,
    /// Apply also slices that do not fit
    #[arg(long)]
    pub force: bool,
    /// Show what would leave the switches, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}
