//! The service `paths`: it computes paths, and keeps intents true.
//!
//! ```text
//!   apps ──questions──────────────────────> [ engine ] ──streams of intents and paths──> apps
//!   discovery, hosts ──the view───────────>   │    ^
//!   store <──what is wanted──> [ storage ]    v    └──states of sets── flows
//!                                     sets of rules ──────────────────> flows
//!   settings: links of slices ──> [ virtual_links ] ──their states──> slices, labels
//! ```
//!
//! In: the network view, questions with their grants, states of rules, links of slices. Out: answers, sets of wanted rules, tables as streams.
//! It sends nothing to a switch itself.

mod changes;
pub mod compile;
mod doubts;
pub mod engine;
pub mod network;
mod pending;
pub mod plan;
mod publish;
mod questions;
mod rule_sets;
pub mod rules;
mod service;
pub mod slice_traffic;
mod storage;
pub mod usage;
pub mod virtual_links;
mod waiting;
mod writing;

pub use service::{Paths, PathsSettings};

use std::process::ExitCode;

/// What the service needs of its node: tables of a manifest.
pub const NEEDS: &str = include_str!("../needs.toml");

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Paths>()
}
