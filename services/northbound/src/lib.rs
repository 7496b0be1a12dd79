//! The service `northbound`: the REST interface of a node, streams of changes, and the web page.
//!
//! ```text
//!   discovery, hosts, flows, paths ──streams──> State ──answer──> HTTP, server-sent events, WebSocket ──> people, programs
//!                                  <──queries── writes <──────────
//! ```
//!
//! In: the streams of the services that know the network, and requests. Out: answers and events. It holds no state of its own: what a
//! request changes is kept by the service that knows it. It changes no switch.

mod access;
pub mod api;
mod app;
mod bodies;
mod counters;
mod feed;
mod files;
mod guard;
mod http;
mod incidents;
mod known_apps;
mod server;
mod slices;
mod state;
mod steps;
mod versions;
mod way;
mod ways;
mod wire;

use std::process::ExitCode;

/// What the service needs of its node: the tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// Checks a certificate and its key before the service starts.
///
/// # Errors
/// A sentence that begins with the key of the configuration.
pub fn check_identity(identity: &northbound_contract::Identity) -> Result<(), String> {
    server::tls::acceptor(identity).map(drop)
}

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk_tokio::run(server::serve)
}
