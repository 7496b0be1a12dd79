//! The operator's interface of a node: the questions that a node answers over its Unix socket, and the client that
//! asks.
//!
//! ```text
//!   command line, programs ──Question──▶ client ──one JSON object a line──▶ the node's socket
//!                          ◀──Answer───         ◀──
//! ```
//!
//! In: questions. Out: answers, or a sentence that says why there is none. It does not start a node, decides nothing
//! and stores nothing.

pub mod client;
pub mod contract;
pub mod place;
pub mod visible;
