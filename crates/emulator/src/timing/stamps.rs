//! Time stamps of the kernel on a loop's clock.
//!
//! In: a stamp of a packet, which is a reading of CLOCK_REALTIME. Out: the same moment on a [`MonotonicClock`].
//!
//! The kernel stamps packets by CLOCK_REALTIME, and a loop counts by CLOCK_MONOTONIC. Both run at the same rate: NTP
//! adjusts the rate of both alike. So they differ by an offset that changes only when the time of day is set. The offset
//! is found by reading one clock between two readings of the other, and is exact to half of the time between these. It is
//! measured again from time to time, and whenever a stamp makes no sense with it.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

use super::clock::{MonotonicClock, since_zero};

/// How many times both clocks are read for a measurement. The closest readings count, since a thread may be suspended
/// between them.
const READINGS: usize = 5;
/// After this time the offset is measured again.
const MEASURE_AGAIN: Duration = Duration::from_secs(1);
/// A packet is read at most this long after its stamp. An older stamp means that the time of day was set in between.
const OLDEST: Duration = Duration::from_secs(10);
/// How far a stamp may seem to be in the future because the offset is not exact.
const INEXACT: Duration = Duration::from_millis(1);

/// A reading of CLOCK_REALTIME between two of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    before: Duration,
    real: Duration,
    after: Duration,
}

/// The difference of both clocks. The time of day can be before what CLOCK_MONOTONIC says, since anybody may set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offset {
    ahead: Duration,
    behind: Duration,
}

/// Translates stamps to the times of a clock.
#[derive(Clone, Debug)]
pub struct KernelStamps {
    clock: MonotonicClock,
    offset: Offset,
    measured_at: Duration,
}

impl Offset {
    /// The offset by the readings that are closest together.
    fn of(readings: &[Reading]) -> Offset {
        let closest = readings.iter().min_by_key(|reading| reading.after.saturating_sub(reading.before));
        closest.map_or(Offset::default(), |Reading { before, real, after }| {
            let middle = *before + after.saturating_sub(*before) / 2;
            Offset { ahead: real.saturating_sub(middle), behind: middle.saturating_sub(*real) }
        })
    }

    /// The reading of CLOCK_MONOTONIC at a time of day. `None`: before the machine started.
    fn monotonic(&self, real: Duration) -> Option<Duration> {
        (real + self.behind).checked_sub(self.ahead)
    }
}

impl KernelStamps {
    /// Measures the offset of both clocks.
    pub fn new(clock: MonotonicClock) -> Self {
        let mut stamps = KernelStamps { clock, offset: Offset::default(), measured_at: Duration::ZERO };
        stamps.measure(clock.elapsed());
        stamps
    }

    /// The time of a stamp. `None` if the stamp is from before the clock began, or if the time of day was set between
    /// stamp and reading, so that nobody knows.
    pub fn time_of(&mut self, stamp: Duration) -> Option<Duration> {
        let now = self.clock.elapsed();
        let is_fresh = now < self.measured_at + MEASURE_AGAIN;
        let known = self.believed(stamp, now).filter(|_| is_fresh);
        if known.is_some() {
            return known;
        }
        self.measure(now);
        self.believed(stamp, now)
    }

    /// The time of a stamp, if it is neither in the future nor too old.
    fn believed(&self, stamp: Duration, now: Duration) -> Option<Duration> {
        let reading = self.offset.monotonic(stamp)?;
        let (least, most) = (self.clock.reading_at(Duration::ZERO), self.clock.reading_at(now));
        let is_sound = reading <= most + INEXACT && reading + OLDEST >= most && reading >= least;
        is_sound.then(|| self.clock.time_of(reading.min(most)))
    }

    fn measure(&mut self, now: Duration) {
        let reading = || Reading {
            before: since_zero(clock_gettime(ClockId::Monotonic)),
            real: since_zero(clock_gettime(ClockId::Realtime)),
            after: since_zero(clock_gettime(ClockId::Monotonic)),
        };
        self.offset = Offset::of(&[(); READINGS].map(|()| reading()));
        self.measured_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn the_closest_readings_decide() {
        let reading = |before, real, after| Reading { before: us(before), real: us(real), after: us(after) };
        let offset =
            Offset::of(&[reading(0, 9000, 500), reading(1000, 8002, 1004), reading(2000, 9300, 2700)]);
        assert_eq!(offset, Offset { ahead: us(7000), behind: us(0) });
        assert_eq!(Offset::of(&[reading(1000, 400, 1000)]), Offset { ahead: us(0), behind: us(600) });
    }

    #[test]
    fn a_stamp_of_now_is_now() {
        let clock = MonotonicClock::begin();
        let mut stamps = KernelStamps::new(clock);
        let before = clock.elapsed();
        let stamp = since_zero(clock_gettime(ClockId::Realtime));
        let found = stamps.time_of(stamp).unwrap();
        assert!(before <= found + INEXACT && found <= clock.elapsed(), "{before:?} {found:?}");
    }

    #[test]
    fn a_stamp_that_makes_no_sense_has_no_time() {
        let mut stamps = KernelStamps::new(MonotonicClock::begin());
        let now = since_zero(clock_gettime(ClockId::Realtime));
        for stamp in [Duration::ZERO, now + Duration::from_secs(60), now - Duration::from_secs(60)] {
            assert_eq!(stamps.time_of(stamp), None, "{stamp:?}");
        }
    }

    #[test]
    fn the_offset_is_measured_again_if_the_time_of_day_was_set() {
        let mut stamps = KernelStamps::new(MonotonicClock::begin());
        // As if the time of day had been an hour ahead when it was measured.
        stamps.offset.ahead += Duration::from_secs(3600);
        assert!(stamps.time_of(since_zero(clock_gettime(ClockId::Realtime))).is_some());
    }

    proptest! {
        #[test]
        fn the_offset_is_exact_to_half_of_the_time_between_the_readings(
            before in 0..1_000_000u64, within in 0..1000u64, share in 0..=1000u64, ahead in 0..2_000_000u64, later in 0..1_000_000u64,
        ) {
            // The time of day differs by this from CLOCK_MONOTONIC, either way.
            let real_at = |monotonic: u64| us(monotonic + ahead).saturating_sub(us(1_000_000));
            let read_at = before + within * share / 1000;
            prop_assume!(read_at + ahead >= 1_000_000);
            let offset = Offset::of(&[Reading { before: us(before), real: real_at(read_at), after: us(before + within) }]);
            let found = offset.monotonic(real_at(before + within + later)).unwrap();
            let error = found.abs_diff(us(before + within + later));
            prop_assert!(error <= us(within / 2 + 1), "{error:?}");
        }
    }
}
