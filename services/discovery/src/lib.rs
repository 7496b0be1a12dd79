//! The service `discovery`: it finds switches, ports and links, and publishes them.
//!
//! ```text
//!   switches up and down, port status ──┐                       ┌──> stream of switches, ports and links
//!   probes that come back as packet-ins ┴──> [ this service ] ──┴──> probes as packet-outs
//! ```
//!
//! In: events of switches, probes that come back, questions of apps. Out: probes, records of the view, answers. It never forwards a
//! host's packet, and writes no file.

use burnet_sdk::{App, Interests, Settings};
use serde::Deserialize;
use std::process::ExitCode;

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// The settings: `[network.discovery]` of `burnet.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DiscoverySettings {}

/// The service.
struct Discovery;

/// Runs the service until its zone ends.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Discovery>()
}

impl App for Discovery {
    fn new(settings: &Settings) -> Result<Self, String> {
        let DiscoverySettings {} = settings.read()?;
        Ok(Discovery)
    }

    fn interests(&self) -> Interests {
        Interests::none().switches().ports()
    }
}
