//! Decides how fast a switch is read while an app has not read the switch's earlier answers.
//!
//! ```text
//!   an answer waits beside the app's ring ──> UnreadAnswers::on_answer
//!   the switch has sent something ──> UnreadAnswers::decide ──> not yet, for at most PATIENCE_MS: it waits in the socket
//!                                                   └─> then a little each SLOW_INTERVAL_MS, until the app has caught up
//! ```
//!
//! An answer may be far larger than the ring of the app that asked: 100,000 rules are some nine megabytes. It may not be
//! lost, and an app that lets too much of it wait is ended. So the switch sends no faster than the app reads. But other apps
//! use the same switch, and one slow app must not hold it back from them for long. Therefore the switch waits only for a
//! short time. After that it is read slowly. An app that is slower still gets further behind, until its zone is ended.
//!
//! In: answers that an app has not read, which apps are behind, the time. Out: how much to read now. It is pure. Memory: an
//! entry for each connected switch whose answers wait.

use abi::ZoneId;
use flow::DatapathId;
use kernel::ZoneSet;
use std::collections::BTreeMap;

/// How long switches wait for an app that is behind, in milliseconds. It counts from the first answer that waited, at any
/// switch. An app that is alive reads a ring in a fraction of it.
pub(super) const PATIENCE_MS: u64 = 100;

/// After that, a switch is read at this interval.
const SLOW_INTERVAL_MS: u64 = 10;

/// How much is read then: 1.6 MB a second. At this rate, an app that reads nothing is ended after more than a second.
const SLOW_BYTES: usize = 16 << 10;

/// The switches whose answers wait for an app.
#[derive(Debug, Default)]
pub(super) struct UnreadAnswers {
    switches: BTreeMap<DatapathId, OfSwitch>,
}

#[derive(Debug)]
struct OfSwitch {
    /// The apps for which its answers wait.
    zones: ZoneSet,
    /// Since when the first of them has been behind.
    since_ms: u64,
    /// When it was last read.
    read_ms: u64,
}

impl UnreadAnswers {
    /// Whether no answer waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// An answer of this switch waits for an app.
    pub fn on_answer(&mut self, datapath: DatapathId, zone: ZoneId, now_ms: u64) {
        if self.switches.get(&datapath).is_some_and(|it| it.zones.contains(zone)) {
            return;
        }
        let of_zone = self.switches.values().filter(|it| it.zones.contains(zone));
        let since_ms = of_zone.map(|it| it.since_ms).min().unwrap_or(now_ms);
        let new = || OfSwitch { zones: ZoneSet::EMPTY, since_ms, read_ms: now_ms };
        let it = self.switches.entry(datapath).or_insert_with(new);
        it.zones.insert(zone);
        it.since_ms = it.since_ms.min(since_ms);
    }

    /// How much of this switch is read now: `bytes` at most. `None`: nothing yet.
    pub fn decide(
        &mut self,
        datapath: DatapathId,
        mut is_behind: impl FnMut(ZoneId) -> bool,
        bytes: usize,
        now_ms: u64,
    ) -> Option<usize> {
        let Some(it) = self.switches.get_mut(&datapath) else { return Some(bytes) };
        it.zones = it.zones.iter().filter(|zone| is_behind(*zone)).collect();
        if it.zones.is_empty() {
            self.switches.remove(&datapath);
            return Some(bytes);
        }
        let is_slow = now_ms >= it.since_ms.saturating_add(PATIENCE_MS);
        let is_due = now_ms >= it.read_ms.saturating_add(SLOW_INTERVAL_MS);
        (is_slow && is_due).then_some(bytes.min(SLOW_BYTES))
    }

    /// A switch was read.
    #[inline]
    pub fn on_read(&mut self, datapath: DatapathId, now_ms: u64) {
        if !self.is_empty()
            && let Some(it) = self.switches.get_mut(&datapath)
        {
            it.read_ms = now_ms;
        }
    }

    /// A switch has disconnected.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.switches.remove(&datapath);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: DatapathId = DatapathId(1);
    const OTHER: DatapathId = DatapathId(2);
    const APP: ZoneId = ZoneId(5);
    const READ: usize = 64 << 10;

    fn decide(
        unread: &mut UnreadAnswers,
        datapath: DatapathId,
        is_behind: bool,
        now_ms: u64,
    ) -> Option<usize> {
        unread.decide(datapath, |_| is_behind, READ, now_ms)
    }

    #[test]
    fn only_a_switch_whose_answers_wait_is_held_back_and_only_until_the_app_has_caught_up() {
        let mut unread = UnreadAnswers::default();
        assert_eq!(decide(&mut unread, SWITCH, true, 0), Some(READ));
        unread.on_answer(SWITCH, APP, 0);
        assert_eq!(decide(&mut unread, OTHER, true, 1), Some(READ));
        assert_eq!(decide(&mut unread, SWITCH, true, 1), None);
        assert_eq!(decide(&mut unread, SWITCH, false, 2), Some(READ));
        assert!(unread.is_empty());
    }

    #[test]
    fn after_a_tenth_of_a_second_a_switch_is_read_slowly_for_an_app_that_reads_nothing() {
        let mut unread = UnreadAnswers::default();
        unread.on_answer(SWITCH, APP, 0);
        let mut read = Vec::new();
        for now_ms in 0..150 {
            if decide(&mut unread, SWITCH, true, now_ms).is_some() {
                // Asking does not count: only reading does.
                assert_eq!(decide(&mut unread, SWITCH, true, now_ms), Some(SLOW_BYTES));
                unread.on_read(SWITCH, now_ms);
                read.push(now_ms);
            }
        }
        assert_eq!(read, [100, 110, 120, 130, 140]);
    }

    #[test]
    fn the_patience_with_an_app_is_one_for_all_switches() {
        let mut unread = UnreadAnswers::default();
        unread.on_answer(SWITCH, APP, 0);
        unread.on_answer(OTHER, APP, 90);
        assert_eq!(decide(&mut unread, OTHER, true, 99), None);
        assert_eq!(decide(&mut unread, OTHER, true, 100), Some(SLOW_BYTES));
        unread.forget(SWITCH);
        unread.forget(OTHER);
        unread.on_answer(OTHER, APP, 200);
        assert_eq!(decide(&mut unread, OTHER, true, 299), None, "it had caught up");
    }
}
