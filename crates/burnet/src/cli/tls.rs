//! The words of `burnet tls`.

use super::node::NodeArgs;
use clap::{Args, Subcommand};
use flow::DatapathId;

pub(super) const EXAMPLES: &str = "\
Examples:
  burnet tls pins
  burnet tls forget of:00000000000000a1     after the switch has got another certificate";

/// `burnet tls`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TlsArgs {
    /// What is asked.
    #[command(subcommand)]
    pub command: TlsCommand,
}

/// What may be asked about switches' certificates.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TlsCommand {
    /// List the datapath ids that are pinned, each with the certificate that may speak for it
    Pins {
        /// How the node is reached, and how its answer is printed.
        #[command(flatten)]
        asking: NodeArgs,
    },
    /// Forget to which certificate a datapath id is pinned: the next that speaks for it is pinned
    Forget {
        /// The id: 1, 0x1, 00:00:00:00:00:00:00:01 or of:0000000000000001
        datapath: DatapathId,
        /// How the node is reached, and how its answer is printed.
        #[command(flatten)]
        asking: NodeArgs,
    },
}
