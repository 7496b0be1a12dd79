//! How long an app waits before it follows a stream again.
//!
//! In: failures and successes, the time. Out: when to try again. It sends nothing, and reads no clock.

/// The pauses between attempts: each is twice as long as the one before, up to a longest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Failures in a row.
    failures: u32,
}

impl Pauses {
    /// The first pause, in milliseconds.
    pub const FIRST_MS: u64 = 250;

    /// The longest pause, in milliseconds.
    pub const LONGEST_MS: u64 = 8_000;

    /// An attempt has failed, or a stream has ended. Returns when to try again.
    pub fn after_failure(&mut self, now_ms: u64) -> u64 {
        // After five failures, the pause is the longest one.
        let pause_ms = (Pauses::FIRST_MS << self.failures.min(8)).min(Pauses::LONGEST_MS);
        self.failures = self.failures.saturating_add(1);
        now_ms.saturating_add(pause_ms)
    }

    /// The service has answered: the next pause is the first one.
    pub fn on_answer(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_one_until_there_is_an_answer() {
        let mut pauses = Pauses::default();
        let seen: Vec<u64> = (0..7).map(|_| pauses.after_failure(1_000) - 1_000).collect();
        assert_eq!(seen, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        (0..100).for_each(|_| assert_eq!(pauses.after_failure(0), Pauses::LONGEST_MS));
        pauses.on_answer();
        assert_eq!(pauses.after_failure(0), Pauses::FIRST_MS);
    }
}
