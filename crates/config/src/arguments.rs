//! The options of `burnet run`, as types. They override the file.
//!
//! In: the words of a command line. Out: values, or clap's error. It reads no file.

use std::path::PathBuf;

use clap::Args;
use monitor_channel::protocol::WORKERS_MAX;

use crate::{AppArgument, ListenAddress, LogLevel};

/// `burnet run`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct RunArgs {
    /// Run this app: a built-in or installed one by its name, your own by the path of its program or of the folder with its app.toml; =trusted runs it inside the kernel (repeat for more)
    #[arg(long = "app", value_name = "NAME[=trusted]")]
    pub apps: Vec<AppArgument>,
    /// Grant apps that have no manifest all that an app usually needs, everywhere; for a laptop, never for a network of others
    #[arg(long)]
    pub grant_all: bool,
    /// Listen for switches here instead of 0.0.0.0:6653 and 0.0.0.0:6633 (repeat for more)
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Vec<ListenAddress>,
    /// Read the configuration in this file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve the switches with so many threads [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(WORKERS_MAX)))]
    pub workers: Option<u16>,
    /// The certificate (PEM) that is shown to switches; with --tls-key and --tls-ca
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The authority (PEM) that has signed the switches' certificates
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Take switches without TLS from other machines too, although TLS is set up
    #[arg(long)]
    pub allow_plain: bool,
    /// Listen for the operator's commands at this path
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// How much is logged [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<LogLevel>,
    /// The state folder, with keys and installed apps [default: $BURNET_STATE, else /var/lib/burnet for root]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Begin in safe mode: only the services and the apps of safe_mode.apps, all in process zones
    #[arg(long)]
    pub safe_mode: bool,
    /// Keep incidents, logs and the numbers of zones in this folder, and nothing in the state folder unless --state names it; for programs that run a node of their own
    #[arg(long, hide = true, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// End when the process that started it ends; for programs that run a node of their own
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
    /// For comparison only: everything inside the kernel's process, and nothing that ends is started again
    #[arg(long, hide = true)]
    pub monolithic: bool,
}
