//! The service `labels`: it tells each slice what the flows of all other slices leave of its links.
//!
//! ```text
//!   slices ──reports: paths, links shown──> [ engine ] ──a stream of labels for each slice──> slices
//!   discovery ──links, capacities─────────>     │
//!   paths ──what intents reserve────────────>    │
//!   agents, by TCP: a flow lives, is silent ─>   └──flows, standings──> operator
//!   settings, operator: what slices are promised ^
//! ```
//!
//! In: promises, reports with their grants, the view's links, reservations of intents, datagrams of agents. Out: labels, each to its slice only, and caps for agents. The arithmetic and the damping are those of the
//! crate `hose`. It changes nothing in the network, and keeps nothing over a restart: the slices report again, and until then labels are
//! marked as stale. What slices got lately is kept for a day, in memory.

pub mod agents;
mod caps;
pub mod engine;
mod flow_sums;
mod history;
mod lines;
mod links;
mod measured;
mod names;
mod reported;
mod reservations;
mod service;
mod slice_links;
mod slices;
mod words;

pub use caps::caps_of;
pub use engine::{Effect, Engine, Refused};
pub use lines::LINES_MAX;
pub use service::{Labels, LabelsSettings};
pub use words::Word;

use std::process::ExitCode;

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run_with_sockets::<Labels>()
}
