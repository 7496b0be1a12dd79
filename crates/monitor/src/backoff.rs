//! Decides when an ended process is restarted, and when it is given up.
//!
//! In: the times of starts and ends. Out: a delay, or the decision to give up. It stores at most `restarts_max` times and
//! reads no clock.

use std::collections::VecDeque;

/// The limits of restarts. All times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The delay of the second restart in a row. The first has no delay, because most crashes happen once.
    pub first_delay_ms: u64,
    /// Each delay is twice the one before, up to this.
    pub longest_delay_ms: u64,
    /// The largest number of restarts within `window_ms`; with 0, nothing is restarted.
    pub restarts_max: usize,
    /// The window in which restarts are counted.
    pub window_ms: u64,
    /// An app that ran this long is stable: its next restart has no delay.
    pub stable_ms: u64,
}

impl RestartPolicy {
    /// For an app: ten restarts a minute, enough for a crash loop of about 50 seconds.
    pub const APP: RestartPolicy = RestartPolicy {
        first_delay_ms: 100,
        longest_delay_ms: 30_000,
        restarts_max: 10,
        window_ms: 60_000,
        stable_ms: 30_000,
    };

    /// For a service of the node: each of the first few restarts takes at most 300 ms, and a service that crashes every
    /// few seconds always restarts. The monitor gives it up after twenty restarts in a minute. A service that never
    /// starts successfully reaches that in about half a minute.
    pub const SERVICE: RestartPolicy = RestartPolicy {
        first_delay_ms: 50,
        longest_delay_ms: 2_000,
        restarts_max: 20,
        window_ms: 60_000,
        stable_ms: 5_000,
    };

    /// For the kernel: five a minute. Every restart ends all switch sessions, so a node that needs more is better
    /// taken over by another.
    pub const KERNEL: RestartPolicy = RestartPolicy { restarts_max: 5, ..RestartPolicy::APP };
}

/// What to do after a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartDecision {
    /// Start it again after this many milliseconds.
    RestartAfter(u64),
    /// It ended too often within the window.
    Exhausted,
}

/// The restart history of one process.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    policy: RestartPolicy,
    /// Restarts since it was last stable.
    in_a_row: u32,
    /// The times of its failures, oldest first; at most `restarts_max`.
    failures_ms: VecDeque<u64>,
    started_ms: Option<u64>,
}

impl Backoff {
    pub(crate) fn new(policy: RestartPolicy) -> Backoff {
        Backoff { policy, in_a_row: 0, failures_ms: VecDeque::new(), started_ms: None }
    }

    pub(crate) fn started(&mut self, now_ms: u64) {
        self.started_ms = Some(now_ms);
    }

    pub(crate) fn failed(&mut self, now_ms: u64) -> RestartDecision {
        let ran_ms = self.started_ms.take().map_or(0, |started| now_ms.saturating_sub(started));
        if ran_ms >= self.policy.stable_ms {
            self.in_a_row = 0;
        }
        let window = self.policy.window_ms;
        self.failures_ms.retain(|failed| now_ms.saturating_sub(*failed) < window);
        if self.failures_ms.len() >= self.policy.restarts_max {
            return RestartDecision::Exhausted;
        }
        self.failures_ms.push_back(now_ms);
        let delay = self.delay_ms();
        self.in_a_row = self.in_a_row.saturating_add(1);
        RestartDecision::RestartAfter(delay)
    }

    /// Forgets the failures, because the operator requested a start.
    pub(crate) fn forget(&mut self) {
        *self = Backoff::new(self.policy.clone());
    }

    fn delay_ms(&self) -> u64 {
        let Some(doublings) = self.in_a_row.checked_sub(1) else { return 0 };
        // Beyond 2^32 times the first delay, any longest delay has been reached.
        let factor = 1u64 << doublings.min(32);
        self.policy.first_delay_ms.saturating_mul(factor).min(self.policy.longest_delay_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RestartDecision::{Exhausted, RestartAfter};

    /// Each pair is (how long it ran after its restart, the verdict on its end).
    fn check(policy: RestartPolicy, lives: &[(u64, RestartDecision)]) {
        let (mut backoff, mut now) = (Backoff::new(policy), 1_000);
        for (number, (ran_ms, expected)) in lives.iter().enumerate() {
            backoff.started(now);
            now += ran_ms;
            let verdict = backoff.failed(now);
            assert_eq!(verdict, *expected, "life {number}");
            if let RestartAfter(delay) = verdict {
                now += delay;
            }
        }
    }

    #[test]
    fn a_crash_loop_is_slowed_down_and_then_stopped() {
        let delays = [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600];
        let mut lives: Vec<_> = delays.map(|delay| (1, RestartAfter(delay))).into();
        lives.push((1, Exhausted));
        check(RestartPolicy::APP, &lives);
    }

    #[test]
    fn a_service_that_crashes_now_and_then_is_back_at_once_and_one_that_never_gets_up_is_given_up() {
        check(RestartPolicy::SERVICE, &[(5_000, RestartAfter(0)), (5_000, RestartAfter(0))]);
        let delays = [0, 50, 100, 200, 400, 800, 1_600].into_iter().chain([2_000; 13]);
        let mut lives: Vec<_> = delays.map(|delay| (1, RestartAfter(delay))).collect();
        lives.push((1, Exhausted));
        check(RestartPolicy::SERVICE, &lives);
    }

    #[test]
    fn the_delay_stays_at_its_longest() {
        let policy = RestartPolicy { restarts_max: 100, window_ms: 1, ..RestartPolicy::APP };
        let mut lives: Vec<_> = vec![(1, RestartAfter(0))];
        lives.extend(
            [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]
                .map(|d| (1, RestartAfter(d))),
        );
        check(policy, &lives);
    }

    #[test]
    fn a_stable_life_makes_the_next_restart_immediate() {
        check(
            RestartPolicy::APP,
            &[
                (1, RestartAfter(0)),
                (1, RestartAfter(100)),
                (30_000, RestartAfter(0)),
                (29_999, RestartAfter(100)),
            ],
        );
    }

    #[test]
    fn a_long_life_does_not_empty_the_window() {
        let policy =
            RestartPolicy { restarts_max: 1, stable_ms: 10, window_ms: 60_000, ..RestartPolicy::APP };
        check(policy.clone(), &[(1, RestartAfter(0)), (59_999, Exhausted)]);
        check(policy, &[(1, RestartAfter(0)), (60_000, RestartAfter(0))]);
    }
}
