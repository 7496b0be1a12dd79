//! OpenFlow messages as text: JSON, and the syntax of `ovs-ofctl`.
//!
//! ```text
//!   Message ──> json::to_json, text::to_text ──> people and programs
//!   Message <── json::from_json, text::parse <── people and programs
//! ```
//!
//! In: messages, or untrusted text; an error names the key or word and its place. Out: the other form. It keeps no
//! state and does no I/O.

pub mod json;
pub mod text;
