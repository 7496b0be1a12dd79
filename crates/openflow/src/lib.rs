//! OpenFlow 1.0 (wire 0x01) and 1.3 (wire 0x04): bytes ⇄ types.
//!
//! ```text
//!   a stream ──> frame_len ──> one message ──> Message::decode ──> Message { version, xid, body } ──> Message::encode
//!                                   │
//!                                   └──> views, read in place
//!   canonical bytes ──> write::packet_out, write::flow_mod … ──> one message, with no value between
//! ```
//!
//! One set of types, that of 1.3, serves both versions. Messages of 1.0 are translated to it when they are read, and
//! from it when they are written, if possible. Bytes are untrusted. For any bytes, reading returns a [`Message`] or a
//! [`flow::BadInput`] with the offset, the field and the OpenFlow error to send back. It allocates at most a small
//! multiple of the input.
//!
//! Text and JSON forms of messages are in the crate `openflow-text`. This crate never does I/O, keeps no state between
//! messages and knows no session.

mod connection;
mod counts;
mod decode;
mod description;
mod encode;
mod envelope;
pub mod error;
mod header;
pub mod hex;
pub mod labels;
pub mod message;
pub mod names;
mod port_counters;
pub mod prepared;
mod queue_property;
pub mod statistics;
pub mod stream;
pub mod v10;
mod v13;
pub mod version;
pub mod view;
mod wire;
pub mod write;

pub use envelope::MAX_MESSAGE_LEN;
pub use error::Unwritable;
pub use header::{HEADER_LEN, Header, frame_len};
pub use message::{Body, Message};
pub use version::Version;

/// The README's example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
