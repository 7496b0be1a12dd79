//! Network files: what an operator wants of the network, in one file, and what it would change.
//!
//! ```text
//!   network.toml ──read──> Document ─┐
//!   REST: hosts, intents, flows     ─┼─> plan ──> Plan: steps, rules for each switch, who is affected, or why it is refused
//!   the version applied last        ─┘
//! ```
//!
//! In: texts and objects of the node. Out: values and text. It asks no node and changes nothing: `commands::network` does.

pub mod current;
pub mod document;
mod effect;
pub mod plan;
mod protected;
pub mod shown;
pub mod source;
