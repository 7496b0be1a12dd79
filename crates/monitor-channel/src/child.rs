//! Connects a child process to its parent: it ends when the monitor ends.
//!
//! It starts and watches nothing.

use std::io;

use rustix::process::Signal;

/// The calling process is killed when its parent ends, however that ends. For the kernel process and the zone
/// launcher, as the first thing they do.
///
/// A parent that ended before this call is noticed by the closed `Channel` instead.
///
/// # Errors
/// Linux refuses this to nobody; another system might.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}
