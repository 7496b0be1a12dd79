//! Whether the attacks are to end before they are done, because a signal came.
//!
//! A trial that is told to stop ends as one that is over: its node, switches and folders go.

use std::sync::atomic::{AtomicBool, Ordering};

/// One process tries attacks once.
static CAME: AtomicBool = AtomicBool::new(false);

/// All trials are to end.
pub fn tell() {
    CAME.store(true, Ordering::Relaxed);
}

/// Whether they are.
pub fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}
