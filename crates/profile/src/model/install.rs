//! The install buffer: rules that wait for the hardware, and the times at which some of them go on.
//!
//! In: changes of the hardware table, and the time. Out: a batch of changes at each period. It does not know rules.

use super::draw::nanoseconds;
use super::random::Random;
use super::writes::Change;
use crate::install::{BufferFull, Install};
use std::collections::VecDeque;

/// An install buffer. Its periods begin at a random phase, since a switch does not know when a controller begins.
#[derive(Clone, Debug)]
pub(super) struct InstallBuffer {
    waiting: VecDeque<Change>,
    size: usize,
    batch: u32,
    period_ns: u64,
    phase_ns: u64,
    when_full: BufferFull,
    due_ns: Option<u64>,
    /// The last period at which changes went on.
    last_ns: Option<u64>,
}

impl InstallBuffer {
    pub(super) fn new(install: &Install, random: &mut Random) -> Self {
        let period_ns = nanoseconds(install.period_us()).max(1);
        InstallBuffer {
            waiting: VecDeque::new(),
            size: usize::try_from(install.size_rules).unwrap_or(usize::MAX),
            batch: install.batch_rules.max(1),
            period_ns,
            phase_ns: random.below(period_ns),
            when_full: install.when_full,
            due_ns: None,
            last_ns: None,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.size
    }

    /// Whether it holds more than it has room for, so that the CPU waits.
    pub(super) fn is_overfull(&self) -> bool {
        self.waiting.len() > self.size
    }

    pub(super) fn when_full(&self) -> BufferFull {
        self.when_full
    }

    pub(super) fn push(&mut self, change: Change, now_ns: u64) {
        self.waiting.push_back(change);
        if self.due_ns.is_none() {
            let next = next_tick(now_ns, self.phase_ns, self.period_ns);
            // Changes that come in the moment of a batch wait for the next.
            let next = if self.last_ns == Some(next) { next + self.period_ns } else { next };
            self.due_ns = Some(next);
        }
    }

    /// Takes a rule's change out. Returns whether it was there.
    pub(super) fn remove(&mut self, wanted: impl Fn(&Change) -> bool) -> Option<Change> {
        let index = self.waiting.iter().position(wanted)?;
        let removed = self.waiting.remove(index);
        if self.waiting.is_empty() {
            self.due_ns = None;
        }
        removed
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// A period has begun: a batch goes on.
    pub(super) fn on_due(&mut self, mut goes_on: impl FnMut(Change)) {
        let Some(due) = self.due_ns else { return };
        let batch = self.waiting.len().min(usize::try_from(self.batch).unwrap_or(usize::MAX));
        self.waiting.drain(..batch).for_each(&mut goes_on);
        self.last_ns = Some(due);
        self.due_ns = (!self.waiting.is_empty()).then(|| due + self.period_ns);
    }
}

/// The first time at or after `now` that is a whole number of periods after the phase. A period of 0 is always.
pub(super) fn next_tick(now_ns: u64, phase_ns: u64, period_ns: u64) -> u64 {
    if period_ns == 0 {
        return now_ns;
    }
    let since = now_ns.saturating_sub(phase_ns);
    phase_ns.saturating_add(since.div_ceil(period_ns).saturating_mul(period_ns)).max(now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_whole_periods_after_the_phase() {
        let tick = |now| next_tick(now, 3, 10);
        assert_eq!([0, 3, 4, 13, 14, 23].map(tick), [3, 3, 13, 13, 23, 23]);
        assert_eq!(next_tick(7, 3, 0), 7);
    }
}
