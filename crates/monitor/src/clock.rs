//! The monitor's two clocks: a monotonic clock and the wall clock.
//!
//! In: nothing. Out: milliseconds. It never waits.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::Timespec;

/// The time of the monotonic clock.
pub(crate) fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000_000)
}

/// Read each time, because the wall clock may be set while the node runs.
pub(crate) fn unix_ms_at_zero() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(unix).unwrap_or(u64::MAX).saturating_sub(now_ms())
}

pub(crate) fn timespec(ms: u64) -> Timespec {
    // The supervisor asks for half a second at most.
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timespec { tv_sec: ms / 1_000, tv_nsec: (ms % 1_000) * 1_000_000 }
}
