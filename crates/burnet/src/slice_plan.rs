//! Slices on a network: what each gets, or why not.
//!
//! ```text
//!   network description, or the view of a node ──> Substrate ─┐
//!   slices file ──────────────────────────────> Vec<Slice> ───┴─ judge ──> Judged: links, switches, what is left; or what is lacking and what would fit
//! ```
//!
//! In: texts and objects of the view. Out: values, text and JSON. It asks no node, opens no file and books nothing beyond one call.

pub mod described;
pub mod judge;
pub mod packets;
pub mod places;
pub mod rehearse;
pub mod shown;
pub mod substrate;
