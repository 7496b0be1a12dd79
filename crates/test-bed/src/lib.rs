//! A whole node for tests: started in a folder of its own, asked over the operator's socket, and ended with the test.
//!
//! ```text
//!   test ──Bed::new──▶ folder ──Bed::node──▶ Launch ──start──▶ Node ──ask, wait, network──▶ what the test looks at
//! ```
//!
//! In: the path of the program `burnet`, its configuration and its arguments. Out: a running node. Everything that the node writes is in the
//! bed's folder, which is removed with the last owner. A node never outlives its test: it ends when it is dropped, and with the test's process.
//!
//! This crate is for tests: whatever goes wrong here ends the test with a panic that says what was waited for, and shows the node's log.

#![allow(
    clippy::unwrap_used,
    reason = "it is part of tests, which end where something is not as it should be"
)]

mod folder;
mod launch;
mod node;

pub use folder::Bed;
pub use launch::Launch;
pub use node::{Node, kill, signal};

use std::time::Duration;

/// How long anything may take that a test waits for. It is only to end a hang: no test passes by waiting.
pub const PATIENCE: Duration = Duration::from_secs(60);
