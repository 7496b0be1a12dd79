//! How a loop waits for a due time: it sleeps until shortly before, and spins for the rest.
//!
//! In: the time, the due time, and how long the loop has spun. Out: what to do next. It reads no clock and never waits.
//!
//! A sleeping thread runs again some tens of microseconds after its timer. A thread that spins runs already. Spinning
//! costs processor time that others on the machine need, so its share is bounded.

use std::time::Duration;

/// For how long before a due time the loop spins. A thread of an idle machine wakes within about this.
pub const SPIN: Duration = Duration::from_micros(50);
/// The share of one core that spinning may use, in percent of any window. The loop sleeps until the due time itself
/// if this is used up.
pub const SPIN_SHARE_PERCENT: u32 = 5;
/// The window of the account. In any such window, the loop spins for at most the share.
const WINDOW: Duration = Duration::from_secs(1);
/// How many slots a window has. The slot that is partly over counts in full, which costs a twentieth of the share.
const SLOTS: u128 = 20;
/// One slot more than a window has, because a window begins and ends inside a slot.
const SLOTS_KEPT: usize = SLOTS as usize + 1;
const SLOT: Duration = Duration::from_millis(WINDOW.as_millis() as u64 / SLOTS as u64);

/// What to do until the next look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It is time.
    Over,
    /// Sleep until this time, if nothing else happens.
    Sleep {
        /// The due time, or the moment at which to begin to spin.
        until: Duration,
    },
    /// Watch the clock until this time.
    Spin {
        /// The due time.
        until: Duration,
    },
}

/// The account of the time that a loop has spun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpinBudget {
    /// How long it spun in each of the last slots, by the slot's number.
    spun: [Duration; SLOTS_KEPT],
    /// The number of the newest slot since time zero.
    newest: u128,
}

impl SpinBudget {
    /// What to do until a due time.
    pub fn next_wait(&mut self, now: Duration, due: Duration) -> Wait {
        let Some(left) = due.checked_sub(now).filter(|left| !left.is_zero()) else { return Wait::Over };
        if self.left(now) < left.min(SPIN) {
            return Wait::Sleep { until: due };
        }
        if left <= SPIN { Wait::Spin { until: due } } else { Wait::Sleep { until: due - SPIN } }
    }

    /// The loop has spun from one time to another. Times that are older than those before count at the newest one.
    pub fn spent(&mut self, from: Duration, to: Duration) {
        self.forget(to);
        let slot = (self.newest % SLOTS_KEPT as u128) as usize;
        self.spun[slot] += to.saturating_sub(from);
    }

    /// How long it may still spin now.
    fn left(&mut self, now: Duration) -> Duration {
        self.forget(now);
        let allowed = WINDOW * SPIN_SHARE_PERCENT / 100;
        allowed.saturating_sub(self.spun.iter().sum())
    }

    /// Empties the slots that are older than a window.
    fn forget(&mut self, now: Duration) {
        let newest = (now.as_nanos() / SLOT.as_nanos()).max(self.newest);
        let passed = (newest - self.newest).min(SLOTS_KEPT as u128);
        for slot in (newest + 1 - passed)..=newest {
            self.spun[(slot % SLOTS_KEPT as u128) as usize] = Duration::ZERO;
        }
        self.newest = newest;
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
    fn it_sleeps_until_shortly_before_and_spins_for_the_rest() {
        let mut budget = SpinBudget::default();
        let mut check = |now, due, expected| assert_eq!(budget.next_wait(us(now), us(due)), expected);
        check(1000, 999, Wait::Over);
        check(1000, 1000, Wait::Over);
        check(1000, 1001, Wait::Spin { until: us(1001) });
        check(1000, 1050, Wait::Spin { until: us(1050) });
        check(1000, 1051, Wait::Sleep { until: us(1001) });
        check(0, 9_000_000, Wait::Sleep { until: us(8_999_950) });
    }

    #[test]
    fn it_sleeps_until_the_due_time_if_it_has_spun_too_much() {
        let mut budget = SpinBudget::default();
        budget.spent(us(0), us(49_990));
        assert_eq!(budget.next_wait(us(50_000), us(50_020)), Wait::Sleep { until: us(50_020) });
        assert_eq!(budget.next_wait(us(50_000), us(60_000)), Wait::Sleep { until: us(60_000) });
        assert_eq!(
            budget.next_wait(us(50_000), us(50_010)),
            Wait::Spin { until: us(50_010) },
            "so much is left"
        );
        let later = 1_050_000;
        assert_eq!(budget.next_wait(us(later), us(later + 50)), Wait::Spin { until: us(later + 50) });
    }

    /// Lets a loop wait for these due times, each so long after the last, and wakes it late by so much. Returns when it
    /// spun.
    fn spins(waits: &[(u64, u64)]) -> Vec<(Duration, Duration)> {
        let (mut budget, mut now, mut spins) = (SpinBudget::default(), Duration::ZERO, Vec::new());
        for (after_us, late_us) in waits {
            let due = now + us(*after_us);
            loop {
                match budget.next_wait(now, due) {
                    Wait::Over => break,
                    Wait::Sleep { until } => now = until + us(*late_us),
                    Wait::Spin { until } => {
                        budget.spent(now, until);
                        spins.push((now, until));
                        now = until;
                    }
                }
            }
        }
        spins
    }

    proptest! {
        #[test]
        fn no_window_has_more_than_its_share(waits in proptest::collection::vec((1..3000u64, 0..60u64), 1..4000)) {
            let spins = spins(&waits);
            let within = |(from, to): &(Duration, Duration), begin: Duration| {
                (*to).min(begin + WINDOW).saturating_sub((*from).max(begin))
            };
            for (begin, _) in spins.iter().step_by(37) {
                let sum: Duration = spins.iter().map(|spin| within(spin, *begin)).sum();
                prop_assert!(sum <= WINDOW * SPIN_SHARE_PERCENT / 100, "{sum:?} from {begin:?}");
            }
        }
    }

    #[test]
    fn a_thousand_waits_a_second_can_all_spin() {
        let waits: Vec<(u64, u64)> = (0..5000).map(|_| (1000, 4)).collect();
        assert_eq!(spins(&waits).len(), 5000);
        let waits: Vec<(u64, u64)> = (0..50_000).map(|_| (100, 0)).collect();
        let spun = spins(&waits).len();
        assert!((4500..=5100).contains(&spun), "of five seconds, it spun for {spun} times 50 µs");
    }
}
