//! Progress of a run while it lasts, and a way to end it early.
//!
//! The generator's threads write the counters and others read them. No result is computed from them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between the threads of a load and the code that shows its progress. The values are not exact, because they
/// change while they are read.
#[derive(Debug, Default)]
pub struct Progress {
    known: AtomicU64,
    answered: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// How many switches the controller knows.
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// How many answers have arrived since the load began.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends the present measurement at once. It reports what it has so far.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Progress::stop`] was called.
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
