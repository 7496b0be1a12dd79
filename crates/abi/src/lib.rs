//! The binary protocol between the kernel and an app. It is the same in every type of zone.
//!
//! ```text
//!            events: switch up, packet-in, port status, receipt …
//!   kernel ────────────────────────────────────────────────────────> app
//!   kernel <──────────────────────────────────────────────────────── app
//!            commands: flow mod, packet-out, subscribe, publish …
//! ```
//!
//! A frame is a little-endian header of 24 bytes and a body that is read in place. Matches, actions and instructions are the
//! canonical bytes of `flow` (the TLVs of OpenFlow 1.3, big-endian). The format only grows: a type keeps its number and its
//! layout. An extension is a new type or a longer body. A golden file for each type checks this.
//!
//! This crate never allocates to read and never does I/O. It does not know OpenFlow messages. Frames are untrusted on both
//! sides until they are read here. A malformed frame gives an error with the offset and the reason.

mod bundle;
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
pub use receipt::{NO_ROOM, Outcome, Receipt};
pub use zone_id::ZoneId;
