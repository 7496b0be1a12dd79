//! The zone of a slice: the process around the virtual switches of one tenant.
//!
//! ```text
//!   events of the kernel ────────────────> ┌─────────────────┐ ──> commands for the kernel
//!   sockets of the tenant's controllers ─> │ slicer::Slicer  │ ──> bytes for those sockets
//!   states of ports at virtual links ────> └─────────────────┘ ──> log lines
//!            when to dial again: Dialing      questions of the operator ──> State
//!   labels of the service `labels` ──> Labels <── flows of the slice
//! ```
//!
//! In: events of the node, and bytes of controllers. Out: commands, and bytes for controllers. What a message means is decided in the
//! crate `slicer`. This crate dials, cuts bytes into messages, and ends connections that stall, flood or send rubbish.
//!
//! It never listens for a tenant, never waits for a socket, and writes no file but its journals: what the tenant has made, for the next process.

mod connection;
pub mod dialing;
pub mod explain;
mod inbox;
mod journals;
mod labels;
mod links;
pub mod loss;
mod network;
mod outbox;
mod published;
mod service;
pub mod settings;
mod standalone;
pub mod state;
mod summary;
pub mod tls;
pub mod vnics;

pub use journals::place_of as journal_file;
pub use labels::{entry_of, link_id};
pub use service::Slice;
pub use settings::SliceSettings;

use std::process::ExitCode;

/// The name of the code in the binary: all slices run it.
pub const CODE: &str = "slice";

/// Runs a slice until its zone ends. It is in this crate so that it is compiled with the options of the crate.
pub fn run() -> ExitCode {
    burnet_sdk::run_with_sockets::<Slice>()
}
