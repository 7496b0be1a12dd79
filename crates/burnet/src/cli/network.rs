//! `burnet ports`, `links`, `hosts`, `groups`, `meters`, `paths`, `intents`, `annotate`, `events` and `metrics`: what may be asked of the network view.
//!
//! In: the command line. Out: the options, parsed. It never connects to a node.

use super::node::NodeArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Of the commands that list objects.
pub const LIST_EXAMPLES: &str = "\
Examples:
  burnet links
  burnet hosts --where switch=1 --where vlan=100
  burnet ports --json | jq -r '.[] | select(.live | not) | .id'
  burnet links --watch                 the present links, then each change

The node needs the table [network] in its configuration, or burnet run --network.";

/// Of `burnet intents`.
pub const INTENTS_EXAMPLES: &str = "\
Examples:
  burnet intents
  burnet intents --where state=failed
  burnet intents add 00:00:00:00:00:01 00:00:00:00:00:02 --wait
  burnet intents add of:1/1 of:4/2 --bandwidth-kbps 100000 --protected --name backup-link
  burnet intents withdraw 7 --wait";

/// Of `burnet annotate`.
pub const ANNOTATE_EXAMPLES: &str = "\
Examples:
  burnet annotate of:1 name=Vienna latitude=48.21 longitude=16.37
  burnet annotate of:1/2 note='to the roof'
  burnet annotate of:1 note=            remove a note

The map shows the notes name, latitude and longitude of a switch.";

/// Of `burnet events`.
pub const EVENTS_EXAMPLES: &str = "\
Examples:
  burnet events
  burnet events --kinds link,host --json";

/// Of `burnet explain`.
pub const EXPLAIN_EXAMPLES: &str = "\
Examples:
  burnet explain 10.0.0.1 10.0.0.2                    both directions
  burnet explain 10.0.0.1 10.0.0.2 'tcp_dst=80'       this packet
  burnet explain --at of:1/3 'eth_dst=00:00:00:00:00:02,ip_dst=10.0.0.2,tcp_dst=80'
  burnet explain 10.0.0.1 10.0.0.2 --watch 5          which counters move within 5 seconds

The rules are read from the switches on the way. The fields are those of ovs-ofctl and of ovs-appctl ofproto/trace.";

/// `burnet explain`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ExplainArgs {
    /// Two hosts or ports, and the fields of a packet if it is no plain one; with --at only the fields
    #[arg(value_name = "A B [FIELDS]", num_args = 0..=3)]
    pub words: Vec<String>,
    /// Where the packet enters the network, such as of:1/3
    #[arg(long, value_name = "PORT")]
    pub at: Option<String>,
    /// Where it should arrive: a host or a port
    #[arg(long, value_name = "HOST")]
    pub to: Option<String>,
    /// Only from A to B
    #[arg(long)]
    pub one_way: bool,
    /// Ask again after so many seconds (2), and show which counters have moved
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub watch: Option<u64>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// Of `burnet plan`, `burnet apply` and `burnet rollback`.
pub const FILE_EXAMPLES: &str = "\
Examples:
  burnet plan -f network.toml          what the file would change
  burnet apply -f network.toml --wait  change it, and wait until the switches have confirmed it
  burnet rollback campus --wait        return to the version before
  burnet rollback campus --to 0        withdraw everything of this file

docs/reference/network-file.md describes the file.";

/// `burnet plan`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct PlanArgs {
    /// The file that says what is wanted
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet apply`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ApplyArgs {
    /// The file that says what is wanted
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Wait until every switch has confirmed it, or until something fails
    #[arg(long)]
    pub wait: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet rollback`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RollbackArgs {
    /// The name in the file
    pub name: String,
    /// The version to return to; 0: before the first one
    #[arg(long, value_name = "VERSION")]
    pub to: Option<u64>,
    /// Wait until every switch has confirmed it, or until something fails
    #[arg(long)]
    pub wait: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// A command that lists objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ObjectsArgs {
    /// Only objects that this filter lets through, such as switch=1 or state=down (repeat for more)
    #[arg(long = "where", value_name = "NAME=VALUE")]
    pub filters: Vec<String>,
    /// Show the present objects, then each change, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet intents`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct IntentsArgs {
    /// The subcommand. Without one, the list is shown.
    #[command(subcommand)]
    pub command: Option<IntentsCommand>,
    /// Which intents, and how they are shown.
    #[command(flatten)]
    pub list: ObjectsArgs,
}

/// What may be done with intents.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum IntentsCommand {
    /// Connect two hosts in both directions, or one port to another in one direction
    Add(AddIntentArgs),
    /// Withdraw an intent: its rules are removed
    Withdraw(WithdrawIntentArgs),
}

/// `burnet intents add`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AddIntentArgs {
    /// A host, such as 00:00:00:00:00:01, or a port, such as of:1/2
    pub from: String,
    /// The other host or port
    pub to: String,
    /// A name for it; adding the same again under this name changes nothing
    #[arg(long)]
    pub name: Option<String>,
    /// The priority of its rules
    #[arg(long)]
    pub priority: Option<u16>,
    /// Reserve this much on each link of its path
    #[arg(long, value_name = "KBPS")]
    pub bandwidth_kbps: Option<u64>,
    /// Install a backup path beforehand
    #[arg(long)]
    pub protected: bool,
    /// Wait until every switch has confirmed it, or until it fails
    #[arg(long)]
    pub wait: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet intents withdraw`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct WithdrawIntentArgs {
    /// The number of the intent
    pub id: u64,
    /// Wait until no rule of it is left
    #[arg(long)]
    pub wait: bool,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet annotate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct AnnotateArgs {
    /// A switch, a port, a link or a host, such as of:1, of:1/2, of:1/2-of:2/1 or 00:00:00:00:00:01
    pub object: String,
    /// The notes; without a value, the note is removed
    #[arg(value_name = "NAME=VALUE", required = true)]
    pub notes: Vec<String>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct EventsArgs {
    /// Only changes of these kinds of objects: switch, port, link, host, path, intent, counters, incident
    #[arg(long, value_name = "KINDS")]
    pub kinds: Option<String>,
    /// The node's socket, and the output format.
    #[command(flatten)]
    pub asking: NodeArgs,
}

/// `burnet metrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct MetricsArgs {
    /// The node's socket.
    #[command(flatten)]
    pub asking: NodeArgs,
}
