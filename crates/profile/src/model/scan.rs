//! When a switch notices that a rule's time-out has ended.
//!
//! In: when a rule was added or last used. Out: when it ends. Plain arithmetic, without a list of rules: a switch that has its own list
//! uses this alone.
//!
//! ```text
//!   last use ──> next refresh of counters ──> + idle time-out ──> next scan
//!   added ─────────────────────────────────> + hard time-out ──> next scan
//! ```

use super::draw::nanoseconds;
use super::install::next_tick;
use super::random::{Random, Stream};
use crate::timeouts::Timeouts;

const SECOND_NS: u64 = 1_000_000_000;

/// The times at which a switch looks at its rules and at its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanTimes {
    scan_ns: u64,
    scan_phase_ns: u64,
    refresh_ns: u64,
    refresh_phase_ns: u64,
}

impl ScanTimes {
    /// The times of a profile. The seed gives the phases, since a switch started at some time before.
    pub fn new(timeouts: &Timeouts, seed: u64) -> Self {
        let mut random = Random::new(seed, Stream::Phase);
        let (scan_ns, refresh_ns) =
            (nanoseconds(timeouts.scan_period_us), nanoseconds(timeouts.counter_period_us));
        ScanTimes {
            scan_ns,
            scan_phase_ns: random.below(scan_ns),
            refresh_ns,
            refresh_phase_ns: random.below(refresh_ns),
        }
    }

    /// When the switch knows of a use of the rule then.
    pub fn seen_ns(&self, used_ns: u64) -> u64 {
        next_tick(used_ns, self.refresh_phase_ns, self.refresh_ns)
    }

    /// When a rule that was last used then ends.
    pub fn idle_end_ns(&self, used_ns: u64, idle_timeout_s: u16) -> u64 {
        self.next_scan_ns(after(self.seen_ns(used_ns), idle_timeout_s))
    }

    /// When a rule that was added then ends.
    pub fn hard_end_ns(&self, added_ns: u64, hard_timeout_s: u16) -> u64 {
        self.next_scan_ns(after(added_ns, hard_timeout_s))
    }

    fn next_scan_ns(&self, from_ns: u64) -> u64 {
        next_tick(from_ns, self.scan_phase_ns, self.scan_ns)
    }
}

fn after(start_ns: u64, timeout_s: u16) -> u64 {
    start_ns.saturating_add(u64::from(timeout_s) * SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_ends_at_the_scan_after_its_time_out() {
        let times = ScanTimes { scan_ns: 5 * SECOND_NS, ..ScanTimes::default() };
        assert_eq!(times.hard_end_ns(SECOND_NS, 10), 15 * SECOND_NS);
        assert_eq!(times.idle_end_ns(0, 10), 10 * SECOND_NS);
        let at_once = ScanTimes::default();
        assert_eq!(at_once.hard_end_ns(7, 1), SECOND_NS + 7);
    }

    #[test]
    fn a_use_counts_from_the_refresh_after_it() {
        let times = ScanTimes { refresh_ns: 4 * SECOND_NS, ..ScanTimes::default() };
        assert_eq!(times.idle_end_ns(SECOND_NS, 10), 14 * SECOND_NS);
    }

    #[test]
    fn phases_come_from_the_seed() {
        let timeouts = Timeouts { scan_period_us: 5e6, counter_period_us: 1e6 };
        assert_eq!(ScanTimes::new(&timeouts, 1), ScanTimes::new(&timeouts, 1));
        assert_ne!(ScanTimes::new(&timeouts, 1), ScanTimes::new(&timeouts, 2));
    }
}
