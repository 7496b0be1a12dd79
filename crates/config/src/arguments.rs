//! The options of `burnet run`, as types. They override the file.
//!
//! In: the words of a command line. Out: values, or clap's error. It reads no file.

use std::path::PathBuf;

use clap::Args;
use monitor_channel::protocol::WORKERS_MAX;

use crate::{AppArgument, ListenAddress, LogLevel, SlicesFrom};

/// `burnet run`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct RunArgs {
    /// Run this app: a built-in or installed name, or the path of a program or folder with an app.toml; =trusted runs it inside the kernel process (repeat for more)
    #[arg(long = "app", value_name = "NAME[=trusted]")]
    pub apps: Vec<AppArgument>,
    /// Run the services of the network view, as the table `[network]` of the configuration does
    #[arg(long)]
    pub network: bool,
    /// Grant apps that have no manifest the usual capabilities, without bounds; for test networks only
    #[arg(long)]
    pub grant_all: bool,
    /// Listen for switches here instead of 0.0.0.0:6653 and 0.0.0.0:6633 (repeat for more)
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<ListenAddress>,
    /// Read the configuration in this file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The number of worker threads for switches [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(WORKERS_MAX)))]
    pub workers: Option<u16>,
    /// The certificate (PEM) of the node; with --tls-key and --tls-ca
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The CA certificate (PEM) of the switches
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Also accept switches of other machines without TLS
    #[arg(long)]
    pub allow_plain: bool,
    /// Listen for the operator's commands at this path
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The log level [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<LogLevel>,
    /// The state folder, with keys and installed apps [default: $BURNET_STATE, else /var/lib/burnet for root]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Start in safe mode: only the services and the apps of safe_mode.apps, all in process zones
    #[arg(long)]
    pub safe_mode: bool,
    /// Store incidents, logs and zone numbers in this folder, and use no state folder unless --state is given; for programs that run a node
    #[arg(long, hide = true, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// End when the parent process ends; for programs that run a node
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
    /// For comparison only: run everything inside the kernel process, without restarts
    #[arg(long, hide = true)]
    pub monolithic: bool,
    /// Where the slices come from. No option: the operator changes it while the node runs.
    #[arg(skip)]
    pub slices: SlicesFrom,
}
