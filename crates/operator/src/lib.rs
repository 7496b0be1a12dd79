//! The operator's side of a node: what can be asked of it over its Unix socket, and the client that asks.
//!
//! ```text
//!   command line, programs ──Question──▶ client ──one JSON object a line──▶ the node's socket
//!                          ◀──Answer───         ◀──
//! ```
//!
//! In: questions. Out: answers, or a sentence that says why there is none. It starts no node, decides nothing and keeps nothing.

pub mod client;
pub mod contract;
pub mod place;
pub mod visible;
