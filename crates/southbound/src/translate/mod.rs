//! Between OpenFlow's messages and the frames of the `abi`, in both directions and both versions.
//!
//! ```text
//!   packet-in, flow removed, port status, error, statistics ──> event frames
//!   OpenFlow 1.0 or 1.3 messages <── commands
//! ```
//!
//! Never keeps anything, and never decides what is sent.

pub(crate) mod command;
pub(crate) mod error;
pub(crate) mod packet_in;
pub(crate) mod port;
pub(crate) mod removed;
pub(crate) mod statistics;
