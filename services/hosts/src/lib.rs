//! The service `hosts`: which hosts are in the network, where, and with which addresses.
//!
//! ```text
//!   switches ──ARP, neighbour discovery, DHCP──> [ engine ] ──a stream of view::Record──> apps
//!   discovery ──switches, ports, links─────────>     │  └──probes──> switches
//!   apps ──questions───────────────────────────>     └──incidents──> log, topic hosts.incident
//!   store <──configured hosts, notes──> [ storage ]
//! ```
//!
//! In: packet-ins, the stream of discovery, questions with their grants. Out: the table of hosts as a stream, answers, probes,
//! incidents. This file only carries out what the engine decides. It forwards no packet.

pub mod bounds;
mod claims;
mod edges;
pub mod engine;
pub mod frame;
mod incidents;
pub mod kept;
pub mod probe;
mod punting;
mod service;
mod storage;
mod table;

pub use bounds::HostsSettings;
pub use service::Hosts;

use std::process::ExitCode;

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Hosts>()
}
