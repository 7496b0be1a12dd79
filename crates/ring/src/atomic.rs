//! The atomics of the ring: the standard library's, or loom's when the orderings are being explored.
//!
//! Nothing else of the crate names either of them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
