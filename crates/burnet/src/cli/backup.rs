//! The words of `burnet backup` and `burnet restore`.
//!
//! In: the command line. Out: the options, parsed. It opens no file.

use clap::Args;
use std::path::PathBuf;

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  burnet backup --config /etc/burnet/burnet.toml burnet-backup.tar
  burnet backup --state /srv/burnet burnet-backup.tar
  tar -tvf burnet-backup.tar          what is in it

The audit log, incidents and the output of apps are not in it.";

pub(super) const RESTORE_EXAMPLES: &str = "\
Examples:
  burnet restore --config /etc/burnet/burnet.toml burnet-backup.tar

Stop the node first. The state before is moved to before-restore-TIME in the state folder.";

/// `burnet backup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct BackupArgs {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Add this configuration file to the backup, and take node.state and node.socket from it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder [default: $BURNET_STATE, else /var/lib/burnet for root and $XDG_STATE_HOME/burnet for others]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The socket of the node [default: $BURNET_SOCKET, else node.socket of --config, else the default of burnet run for this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Also back up private keys: keep the file as safe as the keys
    #[arg(long)]
    pub with_private_keys: bool,
}

/// `burnet restore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Put the configuration file of the backup here
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder [default: $BURNET_STATE, else /var/lib/burnet for root and $XDG_STATE_HOME/burnet for others]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}
