//! The words of `burnet tls`.

use super::node::NodeArgs;
use clap::{Args, Subcommand};
use flow::DatapathId;

pub(super) const EXAMPLES: &str = "\
Examples:
  burnet tls pins
  burnet tls forget of:00000000000000a1     after the switch got another certificate";

/// `burnet tls`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TlsArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: TlsCommand,
}

/// What may be asked about switches' certificates.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum TlsCommand {
    /// List the pinned datapath ids, each with its certificate
    Pins {
        /// The node's socket, and the output format.
        #[command(flatten)]
        asking: NodeArgs,
    },
    /// Remove the pin of a datapath id: the next certificate that claims the id is pinned
    Forget {
        /// The id: 1, 0x1, 00:00:00:00:00:00:00:01 or of:0000000000000001
        datapath: DatapathId,
        /// The node's socket, and the output format.
        #[command(flatten)]
        asking: NodeArgs,
    },
}
