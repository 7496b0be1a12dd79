//! The atomics of the ring: the standard library's, or loom's for tests that explore the orderings.
//!
//! No other file of the crate names either of them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
