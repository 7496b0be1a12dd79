//! The match and action language of Burnet, and computations on it.
//!
//! ```text
//!   canonical bytes ─┐                    ┌─> canonical bytes      (OpenFlow 1.3's TLVs)
//!   text             ├─> Match, Action,  ─┼─> text                 (the syntax of ovs-ofctl)
//!   JSON             ─┘   Instruction     └─> JSON
//!   a frame's bytes ───> its fields ───────> "does this match it?", "is this within that?", "where may it go?"
//! ```
//!
//! The language is OpenFlow 1.3's: OXM fields, actions and instructions, and also the actions of 1.0. Kernel, slicer,
//! emulator and `explain` use the same code.
//!
//! This crate never does I/O, knows no OpenFlow message, no switch session and no app, and keeps no state.

pub mod action;
#[cfg(test)]
mod arbitrary;
pub mod canonical;
pub mod datapath;
pub mod error;
mod exact;
pub mod field;
pub mod frame;
pub mod instruction;
pub mod json;
pub mod mac;
pub mod matching;
pub mod port;
pub mod reach;
pub mod relation;
pub mod rewrite;
pub mod text;
mod value;
pub mod vendor;

pub use action::Action;
pub use datapath::DatapathId;
pub use error::{BadInput, ErrorCode};
pub use exact::{EXACT_PRIORITY_V10, is_exact_in_v10};
pub use field::Field;
pub use instruction::Instruction;
pub use mac::MacAddr;
pub use matching::{Match, MatchEntry};
pub use port::PortNo;

/// The README's example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
