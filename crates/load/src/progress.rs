//! What others may see of a run while it lasts, and how they end it early.
//!
//! Counters that the generator's threads write and others read; they are never what a result is made of.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between the threads of a load and whoever shows how it goes. Not exact: it is looked at while it changes.
#[derive(Debug, Default)]
pub struct Progress {
    known: AtomicU64,
    answered: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Switches that the controller knows.
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// Answers since the load began.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends what lasts: whatever is measured now ends at once with what it has.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was ended.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.known.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self) {
        self.known.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn more_answers(&self, count: u64) {
        self.answered.fetch_add(count, Ordering::Relaxed);
    }
}
