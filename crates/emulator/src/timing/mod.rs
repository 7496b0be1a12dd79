//! When a loop acts: a clock, and waits that end closer to their time than a poll's time-outs do.
//!
//! ```text
//!   the next due time ──> SpinBudget ──> "sleep until", "spin until" ──> Alarm: timerfd, poll
//! ```
//!
//! A poll counts its time-outs in whole milliseconds, so an event is up to a millisecond late. An [`Alarm`] sleeps by a
//! timer with an absolute time, and spins for the last [`SPIN`]. A [`SpinBudget`] decides this; it is pure.
//! [`KernelStamps`] puts the kernel's time stamps of packets on the same clock.

mod alarm;
mod clock;
mod spin;
mod stamps;

pub use alarm::Alarm;
pub use clock::MonotonicClock;
pub use spin::{SPIN, SPIN_SHARE_PERCENT, SpinBudget, Wait};
pub use stamps::KernelStamps;
