//! The experiments of papers, repeated: one command for each figure, with the paper's figures beside Burnet's.
//!
//! ```text
//!   burnet run, burnet bench ──operator's socket, JSON──┐
//!   emulated switches and hosts ────────────────────────┼──> an experiment ──> Outcome (JSON) and Figure (SVG, PNG)
//!   /proc of the node's processes ──────────────────────┘         ▲
//!   the paper's numbers (rosemary/paper.json) ────────────────────┘
//! ```
//!
//! It uses Burnet from outside, as an operator does: the binary, its socket, the processes. It depends on none of the
//! node's crates, and never touches a node that it did not start.

pub mod lab;
pub mod machine;
pub mod node;
pub mod outcome;
pub mod pings;
pub mod plot;
pub mod png;
pub mod processes;
pub mod rosemary;
