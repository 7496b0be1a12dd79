//! The commands about keys and packages, as types.
//!
//! It does nothing of what is asked.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use package::key::KeyName;
use package::moment::Moment;
use package::signature::Role;

/// Where the node keeps keys, trust and installed apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct StateArgs {
    /// The state folder [default: $BURNET_STATE, else /var/lib/burnet for root and $XDG_STATE_HOME/burnet for others]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Where the node keeps it, and what it requires of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct PolicyArgs {
    /// Take `[packages]` and `node.state` from this configuration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet key`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct KeyArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: KeyCommand,
}

const KEY_EXAMPLES: &str = "\
Examples:
  burnet key new alice
  burnet key trust alice.pub --role developer --expires 365d
  burnet key distrust alice";

/// The subcommands of `burnet key`.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum KeyCommand {
    /// Create a key pair: a private key for you, a public key to distribute
    #[command(after_help = KEY_EXAMPLES)]
    New(KeyNewArgs),
    /// Show your own keys, and the trusted keys of this node
    List(KeyListArgs),
    /// Trust a public key to sign packages
    #[command(after_help = KEY_EXAMPLES)]
    Trust(KeyTrustArgs),
    /// Revoke a key permanently: packages that it signed no longer start
    Distrust(KeyDistrustArgs),
}

/// `burnet key new`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct KeyNewArgs {
    /// The name of the key
    pub name: KeyName,
    /// The state folder.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet key list`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct KeyListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The state folder.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet key trust`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct KeyTrustArgs {
    /// The public key: a .pub file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The role: a developer writes apps, an operator approves them for this network
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Role,
    /// Use this name instead of the name in the file
    #[arg(long, value_name = "NAME")]
    pub name: Option<KeyName>,
    /// Trust it until: 2027-01-31, 2027-01-31T12:00:00Z, or a number of days such as 365d [default: no end]
    #[arg(long, value_name = "WHEN", value_parser = until)]
    pub expires: Option<Until>,
    /// The state folder.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet key distrust`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct KeyDistrustArgs {
    /// The key's name or id, as in burnet key list
    #[arg(value_name = "KEY")]
    pub which: String,
    /// The state folder.
    #[command(flatten)]
    pub state: StateArgs,
}

/// A time, given as a date or as days from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// This moment.
    At(Moment),
    /// This number of days from now.
    Days(u32),
}

impl Until {
    /// The resulting time.
    pub fn from(self, now: Moment) -> Moment {
        match self {
            Until::At(moment) => moment,
            Until::Days(days) => now.plus_days(days),
        }
    }
}

fn until(text: &str) -> Result<Until, String> {
    match text.strip_suffix('d').map(str::parse) {
        Some(Ok(days)) => Ok(Until::Days(days)),
        _ => {
            text.parse().map(Until::At).map_err(|error| format!("{error}, or a number of days such as 365d"))
        }
    }
}

fn role(text: &str) -> Result<Role, String> {
    match text {
        "developer" => Ok(Role::Developer),
        "operator" => Ok(Role::Operator),
        _ => Err("write developer or operator".to_owned()),
    }
}

/// `burnet app build`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppBuildArgs {
    /// The folder with app.toml
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Put the package into this folder [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `burnet app sign`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppSignArgs {
    /// The package
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The key to sign with, as in burnet key new
    #[arg(long, value_name = "NAME")]
    pub key: KeyName,
    /// The role of the signature
    #[arg(long, value_name = "ROLE", value_parser = role, default_value = "developer")]
    pub role: Role,
    /// The signature is valid until: 2027-01-31, or a number of days such as 365d [default: no end]
    #[arg(long, value_name = "WHEN", value_parser = until)]
    pub expires: Option<Until>,
    /// The state folder with the key.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet app verify`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppVerifyArgs {
    /// The package
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Whom to trust, and for what.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `burnet app install`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppInstallArgs {
    /// The package
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Grant all requests without a prompt; for scripts
    #[arg(long)]
    pub grant_all: bool,
    /// Install it even if a newer version is installed
    #[arg(long)]
    pub allow_downgrade: bool,
    /// Install it even if the same version is installed with different content
    #[arg(long)]
    pub force: bool,
    /// Start it on the running node, or replace the running version
    #[arg(long)]
    pub start: bool,
    /// The socket of the node [default: $BURNET_SOCKET, else the default of burnet run for this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Whom to trust, and for what.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `burnet app remove`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppRemoveArgs {
    /// The app's name
    pub name: String,
    /// The socket of the node that stops it [default: $BURNET_SOCKET, else the default of burnet run for this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The state folder with the app.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet app trust` and `untrust`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct InstalledArgs {
    /// The app's name
    pub name: String,
    /// The state folder with the app.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet app grant`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct GrantArgs {
    /// The app's name
    pub name: String,
    /// The requests to grant, by the names that burnet app show prints [default: all]
    #[arg(value_name = "ASK")]
    pub asks: Vec<String>,
    /// The socket of the node to inform [default: $BURNET_SOCKET, else the default of burnet run for this user]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The state folder with the app.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet app revoke`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct RevokeArgs {
    /// The app's name
    pub name: String,
    /// The grants to revoke, by the names that burnet app show prints
    #[arg(value_name = "ASK")]
    pub asks: Vec<String>,
    /// The state folder with the app.
    #[command(flatten)]
    pub state: StateArgs,
}

/// `burnet app show`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct AppShowArgs {
    /// The app's name [default: all that are installed]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Whom to trust, and for what.
    #[command(flatten)]
    pub policy: PolicyArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let now: Moment = "2026-11-22".parse().unwrap();
        match (until(text).map(|until| until.from(now).to_string()), expected) {
            (Ok(moment), Ok(expected)) => assert_eq!(moment, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
            (got, expected) => panic!("{text}: {got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn a_time_is_said_as_one_or_as_days_from_now() {
        check("soon", Err("\"soon\" is not a time"));
        check("-1d", Err("or a number of days such as 365d"));
        check("99999999999d", Err("is not a time"));
        check("2d", Ok("2026-11-24T00:00:00Z"));
        check("2027-01-31", Ok("2027-01-31T00:00:00Z"));
    }
}
