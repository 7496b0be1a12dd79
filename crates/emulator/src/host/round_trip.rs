//! The retransmission time-out of a connection (RFC 6298).
//!
//! In: measured round trips, and time-outs. Out: the time to wait. It measures nothing.

use std::time::Duration;

/// The time-out before any measurement (RFC 6298, 2.1).
const FIRST: Duration = Duration::from_secs(1);
/// The shortest and the longest time-out, as in Linux.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(120);

/// The measured round trips of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    pub(super) smoothed: Option<Duration>,
    pub(super) shortest: Option<Duration>,
    variation: Duration,
    /// Each consecutive time-out doubles the wait.
    doublings: u32,
}

impl RoundTrip {
    /// Takes the round trip of a segment that was sent once.
    pub(super) fn measured(&mut self, sample: Duration) {
        self.doublings = 0;
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(sample), sample / 2),
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }

    /// The retransmission timer has run out.
    pub(super) fn timed_out(&mut self) {
        self.doublings += 1;
    }

    /// How long to wait for an answer.
    pub(super) fn patience(&self) -> Duration {
        let once = self.smoothed.map_or(FIRST, |smoothed| (smoothed + self.variation * 4).max(SHORTEST));
        once.saturating_mul(1 << self.doublings.min(16)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_follows_the_round_trips_and_doubles_with_each_time_out() {
        let ms = Duration::from_millis;
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.patience(), FIRST);
        round_trip.measured(ms(100));
        assert_eq!(round_trip.patience(), ms(300));
        (0..100).for_each(|_| round_trip.measured(ms(100)));
        assert_eq!(round_trip.patience(), SHORTEST);
        (0..3).for_each(|_| round_trip.timed_out());
        assert_eq!(round_trip.patience(), SHORTEST * 8);
        (0..40).for_each(|_| round_trip.timed_out());
        assert_eq!(round_trip.patience(), LONGEST);
        round_trip.measured(ms(90));
        assert!(round_trip.patience() < SHORTEST * 2);
        assert_eq!(
            (round_trip.shortest, round_trip.smoothed),
            (Some(ms(90)), Some(Duration::from_micros(98_750)))
        );
    }
}
