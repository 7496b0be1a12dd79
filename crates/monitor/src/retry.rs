//! When a service that runs without one of its addresses tries to have it again. Pure.
//!
//! In: the time. Out: when to try. Each pause is twice the one before, up to [`LONGEST_MS`]. It opens nothing and never gives up: the operator may free the
//! address at any time.

/// The first pause, in milliseconds.
const FIRST_MS: u64 = 1_000;

/// The longest pause, in milliseconds: the operator waits at most this long after the address is free.
const LONGEST_MS: u64 = 30_000;

/// The next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) at_ms: u64,
    pause_ms: u64,
}

impl Retry {
    /// The first try.
    pub(crate) fn begin(now_ms: u64) -> Retry {
        Retry { at_ms: now_ms.saturating_add(FIRST_MS), pause_ms: FIRST_MS }
    }

    /// It is being tried, so nothing is due until that has an answer.
    pub(crate) fn asked(self) -> Retry {
        Retry { at_ms: u64::MAX, ..self }
    }

    /// The one after a try that has failed.
    pub(crate) fn next(self, now_ms: u64) -> Retry {
        let pause_ms = self.pause_ms.saturating_mul(2).min(LONGEST_MS);
        Retry { at_ms: now_ms.saturating_add(pause_ms), pause_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_become_longer_up_to_a_bound() {
        let mut retry = Retry::begin(0);
        let mut pauses = vec![retry.at_ms];
        for _ in 0..6 {
            let now_ms = retry.at_ms;
            retry = retry.next(now_ms);
            pauses.push(retry.at_ms - now_ms);
        }
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    }
}
