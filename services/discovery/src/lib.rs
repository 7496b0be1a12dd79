//! The service `discovery`: it finds switches, ports and links, and publishes them.
//!
//! ```text
//!   switches up and down, port status ──┐                 ┌──> stream of switches, ports and links
//!   probes that come back as packet-ins ┼──> [ engine ] ──┼──> probes as packet-outs
//!   questions of apps ──────────────────┘                 └──> answers, incidents
//! ```
//!
//! In: events of switches, probes that come back, questions of apps. Out: probes, records of the view, answers. It never forwards a
//! host's packet, and writes no file.

pub mod engine;
pub mod frame;
mod incidents;
mod schedule;
pub mod signature;
pub mod tables;
pub mod time;

mod notes;
mod published;
mod service;

pub use service::Discovery;

use std::process::ExitCode;

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Discovery>()
}
