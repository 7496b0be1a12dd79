//! What crosses the boundary between the kernel and an app: the same bytes in every kind of zone.
//!
//! ```text
//!            events: switch up, packet-in, port status, receipt …
//!   kernel ────────────────────────────────────────────────────────> app
//!   kernel <──────────────────────────────────────────────────────── app
//!            commands: flow mod, packet-out, subscribe, publish …
//! ```
//!
//! A frame is a little-endian header of 24 bytes and a body that is read where it lies. Matches, actions and instructions inside are
//! `flow`'s canonical bytes (OpenFlow 1.3's TLVs, big-endian as there). The format is append-only: a kind keeps its number and
//! its layout for good; what is new gets a new kind or a longer body. A golden file per kind keeps it so.
//!
//! This crate never allocates to read, never does I/O, and knows neither OpenFlow messages nor what is done with a frame. Frames are
//! untrusted on both sides until read here: what is malformed is refused with the offset and the reason.

pub mod command;
pub mod event;
pub mod frame;
pub mod header;
pub mod prepared;
mod query_status;
pub mod receipt;
pub mod service;
pub mod table;
pub mod zone_id;

pub use command::Command;
pub use event::{Event, OpenFlowVersion};
pub use frame::{Frame, Malformed};
pub use receipt::{Outcome, Receipt};
pub use zone_id::ZoneId;
