//! The clock of a loop: CLOCK_MONOTONIC, counted from the loop's beginning.
//!
//! In: nothing but the clock. Out: times since the beginning, and the same times as a timer or a kernel time stamp
//! needs them. Its only input is the operating system's clock, and it never sleeps.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// A clock that began at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonotonicClock {
    /// The reading of CLOCK_MONOTONIC at the beginning.
    began: Duration,
}

impl MonotonicClock {
    /// A clock that begins now.
    pub fn begin() -> Self {
        MonotonicClock { began: reading() }
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> Duration {
        reading().saturating_sub(self.began)
    }

    /// The reading of CLOCK_MONOTONIC at a time since the beginning.
    pub fn reading_at(&self, time: Duration) -> Duration {
        self.began.saturating_add(time)
    }

    /// The time since the beginning at a reading of CLOCK_MONOTONIC. Zero if the reading is older.
    pub fn time_of(&self, reading: Duration) -> Duration {
        reading.saturating_sub(self.began)
    }
}

fn reading() -> Duration {
    since_zero(clock_gettime(ClockId::Monotonic))
}

/// A time of the kernel as a duration. A time before zero, which no such clock has, is zero.
pub(super) fn since_zero(time: Timespec) -> Duration {
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_its_reading_are_translated_both_ways() {
        let clock = MonotonicClock::begin();
        let time = Duration::from_millis(1500);
        assert_eq!(clock.time_of(clock.reading_at(time)), time);
        assert_eq!(clock.time_of(Duration::ZERO), Duration::ZERO, "before the beginning");
        assert!(clock.elapsed() <= clock.elapsed());
    }
}
