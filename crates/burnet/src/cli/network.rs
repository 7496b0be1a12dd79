//! `burnet ports`, `links`, `hosts`, `groups`, `meters`, `paths`, `intents`, `events` and `metrics`: what may be asked of the network view.
//!
//! In: the command line. Out: the options, parsed. It never connects to a node.

use super::node::NodeArgs;
use clap::{Args, Subcommand};

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

/// Of `burnet events`.
pub const EVENTS_EXAMPLES: &str = "\
Examples:
  burnet events
  burnet events --kinds link,host --json";

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
