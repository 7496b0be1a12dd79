//! Decides when a worker yields its core to apps that are too slow.
//!
//! ```text
//!   packet-ins were dropped in this turn, the time ──> YieldPolicy ──> whether the worker yields the core
//! ```
//!
//! If there are fewer cores than threads, a worker that continues to read while its app waits for a core only drops
//! packet-ins. With two workers and two threads of an app on two cores, it dropped more than half of them. Pure. If the
//! app sleeps, yielding has no effect and takes a microsecond.

/// From one offer to the next. With each offer, a busy app that loses packet-ins gets a time slice of Linux, about 3
/// ms. So the worker has at least two fifths of the core. An app with a limit of processor time takes no more than its
/// limit. Offers in every turn gave no more answers.
const INTERVAL_MS: u64 = 2;

/// Of one worker.
#[derive(Debug, Default)]
pub struct YieldPolicy {
    not_before_ms: u64,
}

impl YieldPolicy {
    /// A turn is over in which packet-ins were dropped, or not.
    pub fn on_turn(&mut self, has_dropped: bool, now_ms: u64) -> bool {
        let gives_way = has_dropped && now_ms >= self.not_before_ms;
        if gives_way {
            self.not_before_ms = now_ms.saturating_add(INTERVAL_MS);
        }
        gives_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_loses_nothing_is_not_waited_for() {
        let mut way = YieldPolicy::default();
        assert!(!way.on_turn(false, 0) && !way.on_turn(false, u64::MAX));
    }

    #[test]
    fn way_is_given_at_intervals() {
        let mut way = YieldPolicy::default();
        let given = [0, 0, 1, 2, 3, 9, 10, 11, u64::MAX, u64::MAX].map(|now_ms| way.on_turn(true, now_ms));
        assert_eq!(given, [true, false, false, true, false, true, false, true, true, true]);
    }
}
