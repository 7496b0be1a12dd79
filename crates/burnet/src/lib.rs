//! The parts of the binary `burnet`.
//!
//! ```text
//!   command line ──> cli ──────> commands ──> operator's text, or JSON
//!   burnet.toml  ──> config ──┐      │
//!                             └──> monitor ──> kernel process: node       app processes: apps
//! ```
//!
//! It decides nothing about switches or packets. It starts the parts of a node, and shows their state to people.

pub mod apps;
pub mod backup;
pub mod cli;
pub mod commands;
pub mod completion;
pub mod doctor;
pub mod edge_file;
pub mod edge_keys;
pub mod interpreter;
pub mod laboratory;
pub mod network_file;
pub mod new_app;
pub mod ofp;
pub mod port_speeds;
pub mod services;
pub mod slice_admission;
pub mod slice_choices;
pub mod slice_links;
pub mod slice_memory;
pub mod slice_pauses;
pub mod slice_plan;
pub mod slices;
mod zone_numbers;
