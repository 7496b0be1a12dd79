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
//! Many switches may answer one app at once. For [`TOGETHER_MS`], they are read slowly in turns: up to
//! [`TOGETHER_MAX`] switches together send no more than one. Beyond that, each sends an eighth of it. An app that gets no processor for so long is not ended for it. After that, each is read by itself: an app
//! that asks many switches and reads nothing holds none of them back for longer.
//!
//! In: answers that an app has not read, which apps are behind, the time. Out: how much to read now. It is pure. Memory: an
//! entry for each connected switch whose answers wait, and one for each app that is behind.

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

/// For how long all switches that answer an app are read at that rate together, in milliseconds from the first answer that
/// waited.
const TOGETHER_MS: u64 = 800;

/// At most so many switches share the rate of one. Other apps use them too: each is still read at 200 kB a second.
const TOGETHER_MAX: u64 = 8;

/// The switches whose answers wait for an app.
#[derive(Debug, Default)]
pub(super) struct UnreadAnswers {
    switches: BTreeMap<DatapathId, OfSwitch>,
    apps: BTreeMap<ZoneId, OfApp>,
}

#[derive(Debug)]
struct OfSwitch {
    /// The apps for which its answers wait.
    zones: ZoneSet,
    /// When it was last read.
    read_ms: u64,
}

#[derive(Debug)]
struct OfApp {
    /// Since when it has been behind without a break.
    since_ms: u64,
    /// How many switches have answers for it.
    switches: u64,
}

impl UnreadAnswers {
    /// Whether no answer waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// An answer of this switch waits for an app. `was_behind`: an earlier one waited already.
    pub fn on_answer(&mut self, datapath: DatapathId, zone: ZoneId, was_behind: bool, now_ms: u64) {
        if !was_behind {
            // It had caught up, but not all switches have been read since.
            self.on_caught_up(zone);
        }
        let new = || OfSwitch { zones: ZoneSet::EMPTY, read_ms: now_ms };
        let it = self.switches.entry(datapath).or_insert_with(new);
        if !it.zones.contains(zone) {
            it.zones.insert(zone);
            self.apps.entry(zone).or_insert(OfApp { since_ms: now_ms, switches: 0 }).switches += 1;
        }
    }

    /// How much of this switch is read now: `bytes` at most. `None`: nothing yet.
    pub fn decide(
        &mut self,
        datapath: DatapathId,
        mut is_behind: impl FnMut(ZoneId) -> bool,
        bytes: usize,
        now_ms: u64,
    ) -> Option<usize> {
        let Some(it) = self.switches.get(&datapath) else { return Some(bytes) };
        let caught_up: Vec<ZoneId> = it.zones.iter().filter(|zone| !is_behind(*zone)).collect();
        caught_up.into_iter().for_each(|zone| self.on_caught_up(zone));
        let Some(it) = self.switches.get(&datapath) else { return Some(bytes) };
        // If several apps are behind, the one that has been for longest decides: no chain of them stops a switch.
        let apps = it.zones.iter().filter_map(|zone| self.apps.get(&zone));
        let first = apps.min_by_key(|app| app.since_ms)?;
        let behind_ms = now_ms.saturating_sub(first.since_ms);
        let together = if behind_ms < TOGETHER_MS { first.switches.clamp(1, TOGETHER_MAX) } else { 1 };
        let is_due = now_ms >= it.read_ms.saturating_add(SLOW_INTERVAL_MS * together);
        (behind_ms >= PATIENCE_MS && is_due).then_some(bytes.min(SLOW_BYTES))
    }

    /// An app has taken all answers.
    fn on_caught_up(&mut self, zone: ZoneId) {
        if self.apps.remove(&zone).is_some() {
            self.switches.values_mut().for_each(|it| it.zones.remove(zone));
            self.switches.retain(|_, it| !it.zones.is_empty());
        }
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
        let Some(it) = self.switches.remove(&datapath) else { return };
        for zone in &it.zones {
            if let Some(app) = self.apps.get_mut(&zone) {
                app.switches -= 1;
            }
        }
        self.apps.retain(|_, app| app.switches > 0);
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
        unread.on_answer(SWITCH, APP, false, 0);
        assert_eq!(decide(&mut unread, OTHER, true, 1), Some(READ));
        assert_eq!(decide(&mut unread, SWITCH, true, 1), None);
        assert_eq!(decide(&mut unread, SWITCH, false, 2), Some(READ));
        assert!(unread.is_empty());
    }

    #[test]
    fn after_a_tenth_of_a_second_a_switch_is_read_slowly_for_an_app_that_reads_nothing() {
        let mut unread = UnreadAnswers::default();
        unread.on_answer(SWITCH, APP, false, 0);
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
        unread.on_answer(SWITCH, APP, false, 0);
        unread.on_answer(OTHER, APP, true, 90);
        assert_eq!(decide(&mut unread, OTHER, true, 99), None);
        assert_eq!(decide(&mut unread, OTHER, true, 109), None);
        assert_eq!(decide(&mut unread, OTHER, true, 110), Some(SLOW_BYTES));
        unread.forget(SWITCH);
        unread.forget(OTHER);
        unread.on_answer(OTHER, APP, false, 200);
        assert_eq!(decide(&mut unread, OTHER, true, 299), None, "it had caught up");
    }

    #[test]
    fn a_mark_of_a_switch_that_is_silent_takes_no_patience_from_a_later_answer() {
        let mut unread = UnreadAnswers::default();
        unread.on_answer(SWITCH, APP, false, 0);
        // The app catches up, and nobody reads the first switch any more.
        unread.on_answer(OTHER, APP, false, 500);
        assert_eq!(decide(&mut unread, OTHER, true, 599), None);
        assert_eq!(decide(&mut unread, OTHER, true, 600), Some(SLOW_BYTES));
        assert_eq!(decide(&mut unread, SWITCH, true, 501), Some(READ), "no answer of it waits");
    }

    #[test]
    fn so_many_switches_as_a_service_asks_at_once_do_not_end_an_app_that_gets_no_processor_for_a_while() {
        /// The data beside a ring at which a zone is ended.
        const ENDED_BYTES: usize = 2 << 20;
        let waiting_after = |switches: u64, behind_ms: u64| {
            let mut unread = UnreadAnswers::default();
            let mut waiting = 0;
            for now_ms in 0..behind_ms {
                for switch in (0..switches).map(DatapathId) {
                    let bytes = unread.decide(switch, |_| true, READ, now_ms);
                    let Some(bytes) = bytes else { continue };
                    unread.on_read(switch, now_ms);
                    unread.on_answer(switch, APP, waiting > 0, now_ms);
                    waiting += bytes;
                }
            }
            waiting
        };
        assert!(waiting_after(1, 1_000) < ENDED_BYTES);
        assert!(waiting_after(8, TOGETHER_MS) < ENDED_BYTES, "{}", waiting_after(8, TOGETHER_MS));
        assert!(
            waiting_after(8, TOGETHER_MS + 100) > ENDED_BYTES,
            "then it holds the switches back no longer"
        );
    }

    #[test]
    fn a_switch_that_goes_is_not_counted_any_more() {
        let mut unread = UnreadAnswers::default();
        for switch in 0..8 {
            unread.on_answer(DatapathId(switch), APP, switch > 0, 0);
        }
        (1..8).for_each(|switch| unread.forget(DatapathId(switch)));
        assert_eq!(decide(&mut unread, DatapathId(0), true, 100), Some(SLOW_BYTES));
        unread.forget(DatapathId(0));
        assert!(unread.is_empty() && unread.apps.is_empty());
    }
}
