//! The packet-ins that may be sent now on a link of a certain capacity.
//!
//! In: the time. Out: a number. Unused capacity is kept for a few milliseconds, like the queue of a network card.
//! Pure: the time is an argument.

use std::time::Duration;

/// How many seconds of capacity are kept. The generator sleeps whole milliseconds, and must have enough to send when
/// it wakes.
const KEPT_S: f64 = 0.004;

/// How many packet-ins may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    per_s: f64,
    left: f64,
    at: Duration,
}

impl Allowance {
    /// Allows `per_s` packet-ins a second from `now` on.
    pub(crate) fn new(per_s: f64, now: Duration) -> Self {
        Allowance { per_s, left: 0.0, at: now }
    }

    /// Adds the capacity since the last call. Returns how many packet-ins may be sent now.
    pub(crate) fn at(&mut self, now: Duration) -> usize {
        let passed_s = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        // At least one. Otherwise a rate of a few a second would never allow any.
        self.left = (self.left + passed_s * self.per_s).min((self.per_s * KEPT_S).max(1.0));
        self.left as usize
    }

    /// Whether one more may be sent now.
    pub(crate) fn is_left(&self) -> bool {
        self.left >= 1.0
    }

    /// Subtracts packet-ins that were sent.
    pub(crate) fn take(&mut self, sent: u64) {
        self.left = (self.left - sent as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_used_is_not_kept_for_long() {
        let mut link = Allowance::new(1000.0, Duration::ZERO);
        assert_eq!(link.at(Duration::ZERO), 0);
        assert_eq!(link.at(Duration::from_secs(60)), 4, "four milliseconds of it");
        link.take(4);
        assert_eq!(link.at(Duration::from_secs(60)), 0);
        assert_eq!(link.at(Duration::from_secs(59)), 0, "time that goes back brings nothing");
    }

    #[test]
    fn a_slow_link_lets_through_one_at_a_time() {
        let mut link = Allowance::new(2.0, Duration::ZERO);
        assert_eq!(link.at(Duration::from_millis(400)), 0);
        assert_eq!(link.at(Duration::from_millis(500)), 1);
    }

    proptest! {
        #[test]
        fn nobody_sends_more_than_the_link_carries(
            per_s in 1.0f64..1e7,
            pauses_us in proptest::collection::vec(0u64..5_000, 1..200),
        ) {
            let mut link = Allowance::new(per_s, Duration::ZERO);
            let (mut now, mut sent) = (Duration::ZERO, 0u64);
            for pause_us in pauses_us {
                now += Duration::from_micros(pause_us);
                let count = link.at(now) as u64;
                link.take(count);
                sent += count;
            }
            prop_assert!(sent as f64 <= per_s * now.as_secs_f64() + 1.0, "{sent} in {now:?}");
        }
    }
}
