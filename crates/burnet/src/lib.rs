//! What the one binary is made of.
//!
//! ```text
//!   command line ──> cli ──┐
//!   burnet.toml  ──> config ──> Config ──> a node
//!   this machine ──> doctor ──> findings
//!   a name       ──> new_app ──> a crate
//! ```
//!
//! It decides nothing about switches or packets: what the commands say to the parts of a node is here, not what the parts do.

pub mod cli;
pub mod config;
