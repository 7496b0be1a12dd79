//! A fixed rate, shared among switches in turn: when each packet-in is due, and which ones are due now.
//!
//! Latency is measured from when a packet-in was due, not from when it was sent. So a controller that stalls cannot
//! stop the measurement (coordinated omission). Pure: the time is an argument.

use std::time::Duration;

const NS_PER_S: f64 = 1e9;

/// A rate, shared by a number of switches, from a moment on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    per_s: f64,
    switches: u64,
    begin: Duration,
}

impl Pace {
    /// All switches together send `per_s` packet-ins a second from `begin` on.
    pub(crate) fn new(per_s: f64, switches: u64, begin: Duration) -> Self {
        Pace { per_s, switches: switches.max(1), begin }
    }

    /// How many packet-ins the switch at this place (from 0) must have sent by now.
    pub(crate) fn due(&self, place: u64, now: Duration) -> u64 {
        let elapsed_s = now.saturating_sub(self.begin).as_secs_f64();
        // The first packet-in is due at once, so one more is due than intervals have passed.
        let of_all = (elapsed_s * self.per_s) as u64 + 1;
        of_all.saturating_sub(place).div_ceil(self.switches)
    }

    /// When this switch's packet-in with this number (from 0) is due.
    pub(crate) fn due_at(&self, place: u64, number: u64) -> Duration {
        let of_all = number.saturating_mul(self.switches).saturating_add(place) as f64;
        self.begin + Duration::from_nanos((of_all / self.per_s * NS_PER_S) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN: Duration = Duration::from_secs(5);

    #[test]
    fn switches_take_turns() {
        let pace = Pace::new(1000.0, 3, BEGIN);
        let due =
            |ms: u64| [0, 1, 2].map(|place| pace.due(place, BEGIN + Duration::from_micros(ms * 1000 + 1)));
        assert_eq!(due(0), [1, 0, 0]);
        assert_eq!(due(1), [1, 1, 0]);
        assert_eq!(due(2), [1, 1, 1]);
        assert_eq!(due(3), [2, 1, 1]);
        assert_eq!(pace.due_at(1, 2), BEGIN + Duration::from_millis(7));
        assert_eq!(pace.due(0, Duration::ZERO), 1, "before it begins the first waits already");
    }

    proptest! {
        #[test]
        fn what_is_due_is_due_and_the_next_is_not(
            per_s in 1.0f64..1e7,
            switches in 1u64..2000,
            place in 0u64..2000,
            elapsed_ns in 0u64..100_000_000_000,
        ) {
            let (place, now) = (place % switches, BEGIN + Duration::from_nanos(elapsed_ns));
            let pace = Pace::new(per_s, switches, BEGIN);
            let due = pace.due(place, now);
            // The rounding error of floating-point sums after a hundred seconds is below half a microsecond.
            let slack = Duration::from_nanos(500);
            if due > 0 {
                prop_assert!(pace.due_at(place, due - 1) <= now + slack);
            }
            prop_assert!(pace.due_at(place, due) + slack > now);
        }
    }
}
