//! Streams: a service sends a snapshot, then each change, to every app that follows it.
//!
//! ```text
//!   service: Table (or Source) ──parts within the caller's credit──> app: Follower ──updates──> App::on_stream, Replica
//! ```
//!
//! In: entries and changes of a service, credit of its readers. Out: parts of answers, and updates for the reader. The memory that a service
//! uses for its readers has a bound that does not depend on how slow they are.

mod follower;
mod item;
mod pauses;
mod replica;
mod source;
mod table;

pub use follower::{Broken, Follower, TICKET_OF_STREAM};
pub use item::{ITEM_BYTES_MAX, Update};
pub use pauses::Pauses;
pub use replica::Replica;
pub use source::{LOG_BYTES_MAX, Page, STREAMS_PER_CALLER_MAX, Source};
pub use table::Table;

#[cfg(test)]
mod tests;
