//! What the one binary is made of.
//!
//! ```text
//!   command line ──> cli ──────> commands ──> operator's text, or JSON
//!   burnet.toml  ──> config ──┐      │
//!                             └──> monitor ──> kernel process: node       app processes: apps
//! ```
//!
//! It decides nothing about switches or packets: it puts the parts of a node together, and says to people how they fare.

pub mod apps;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod doctor;
pub mod interpreter;
pub mod laboratory;
pub mod new_app;
pub mod ofp;
pub mod services;
mod zone_numbers;
