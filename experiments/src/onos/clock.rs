//! The clock that all processes of this machine share, for times that one process takes and another compares.
//!
//! In: nothing. Out: nanoseconds since the machine started. It sets nothing.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative, and the sum lasts for 584 years.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// The time between two readings in milliseconds; 0 if the second is the earlier one.
pub fn between_ms(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_never_backwards() {
        assert!(now_ns() > 0);
        assert_eq!(between_ms(2_000_000, 5_500_000), 3.5);
        assert_eq!(between_ms(5, 2), 0.0);
    }
}
