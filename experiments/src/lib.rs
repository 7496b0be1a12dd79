//! The experiments of papers, repeated: one command for each figure, with the paper's figures beside Burnet's.
//!
//! ```text
//!   burnet run, burnet bench ──operator's socket, JSON──┐
//!   emulated switches and hosts ────────────────────────┼──> an experiment ──> Report (JSON) and Figure (SVG, PNG)
//!   /proc of the node's processes ──────────────────────┘         ▲
//!   the paper's numbers (PAPER/paper.json) ───────────────────────┘
//! ```
//!
//! It uses Burnet from outside, as an operator does: the binary, its socket, the processes. Nodes, processes and the
//! machine are those of the laboratory. Some experiments have an app of their own in the node, and some run the engine
//! of a service in this process. It never touches a node that it did not start.
//!
//! Another paper is a module with a [`paper::Paper`] in [`PAPERS`], and a folder with its page and its numbers. Starting,
//! waiting, sampling, plotting and the pages of results are shared.

pub mod lab;
pub mod labels;
pub mod machine;
pub mod models;
pub mod network;
pub mod node;
pub mod onos;
pub mod paper;
pub mod pings;
pub mod plot;
pub mod png;
pub mod report;
pub mod rosemary;
pub mod spread;

/// All papers.
pub const PAPERS: [paper::Paper; 4] = [labels::PAPER, models::PAPER, onos::PAPER, rosemary::PAPER];
