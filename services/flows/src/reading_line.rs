//! Which switch is read next: each reading takes room, and there is room for a few.
//!
//! ```text
//!   session ──> first ──┐
//!   audit ────> later ──┼──room?──> reading ──> its end
//!   too long ─> slow ───┘              └──others wait, and it takes too long──> slow
//! ```
//!
//! A switch that answers slowly or never must not keep others without rules. So a reading has a turn. If others wait at its end, the
//! switch goes to the end of the line, and its next turn is twice as long. Such switches have a part of the room only.
//!
//! In: switches that wait, and whether each is being read. Out: the next one. It reads nothing.

use crate::switch::Switch;
use flow::DatapathId;
use std::collections::VecDeque;

/// The most switches that are read at once, for any reason. An answer can be far larger than what the node keeps for an app
/// that does not read fast enough. The node slows a switch down while answers wait. But what it has read of each switch by
/// then waits too: up to 64 KiB. The rest of an interrupted answer comes on top of it and is ignored.
pub const READINGS_MAX: usize = 8;

/// So many of them are left for questions of callers. Sessions and audits wait.
const FOR_CALLERS: usize = 2;

/// So many readings are kept for switches that connect. Otherwise callers who always ask could keep a new switch without rules.
const FOR_SESSIONS: usize = 2;

/// The most readings at once of switches whose turn was too short before.
const SLOW_MAX: usize = 3;

/// The switches that wait, each once, and how many are being read.
#[derive(Debug, Default)]
pub struct ReadingLine {
    first: VecDeque<DatapathId>,
    later: VecDeque<DatapathId>,
    slow: VecDeque<DatapathId>,
    under_way: usize,
    slow_under_way: usize,
    for_callers: usize,
}

impl ReadingLine {
    /// A switch waits for its reading.
    pub fn wait(&mut self, switch: &mut Switch) {
        if std::mem::replace(&mut switch.reading.is_queued, true) {
            return;
        }
        let line = match (switch.reading.is_slow(), switch.is_ready()) {
            (true, _) => &mut self.slow,
            (false, true) => &mut self.later,
            (false, false) => &mut self.first,
        };
        line.push_back(switch.datapath);
    }

    /// Whether others wait that could be read in place of this switch.
    pub fn is_wanted_by_others(&self, switch: &Switch) -> bool {
        let (room, slow_room) = (self.room(), SLOW_MAX.saturating_sub(self.slow_under_way));
        let in_its_place = if slow_room == 0 { switch.reading.is_slow() } else { room == 0 };
        self.first.len() + self.later.len() > room || !self.slow.is_empty() && in_its_place
    }

    /// The next switch, if there is room.
    pub fn next(&mut self) -> Option<DatapathId> {
        if self.room() == 0 {
            return None;
        }
        let next = self.first.pop_front().or_else(|| self.later.pop_front());
        next.or_else(|| if self.slow_under_way < SLOW_MAX { self.slow.pop_front() } else { None })
    }

    /// Something may happen to the reading of a switch. [`ReadingLine::count`] follows.
    pub fn uncount(&mut self, switch: &Switch) {
        self.under_way -= usize::from(switch.reading.is_under_way());
        self.slow_under_way -= usize::from(switch.reading.is_under_way() && switch.reading.is_slow());
    }

    /// Counts the reading of a switch, if it is under way.
    pub fn count(&mut self, switch: &Switch) {
        self.under_way += usize::from(switch.reading.is_under_way());
        self.slow_under_way += usize::from(switch.reading.is_under_way() && switch.reading.is_slow());
    }

    /// So many switches are being read for callers.
    pub fn on_callers(&mut self, count: usize) {
        self.for_callers = count;
    }

    /// How many switches may be read for callers now, more than are.
    pub fn room_for_callers(&self) -> usize {
        READINGS_MAX.saturating_sub(self.under_way.max(FOR_SESSIONS) + self.for_callers)
    }

    /// How many switches may be read now for sessions and audits, more than are.
    fn room(&self) -> usize {
        READINGS_MAX.saturating_sub(self.under_way + self.for_callers.max(FOR_CALLERS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Put;
    use crate::engine::Engine;
    use crate::outgoing::Send;
    use crate::plain_rule::plain_rule;
    use crate::policy::Settings;
    use flows_contract::{Items, SetOptions, Tables};

    /// Switches, of which some never finish an answer.
    struct Bed {
        engine: Engine,
        now_ms: u64,
        asked: VecDeque<(DatapathId, u64)>,
        tickets: u64,
    }

    impl Bed {
        fn new() -> Bed {
            let engine = Engine::new(&Settings::default(), 0).unwrap();
            Bed { engine, now_ms: 0, asked: VecDeque::new(), tickets: 0 }
        }

        fn act(&mut self, act: impl FnOnce(&mut Engine, u64, &mut crate::outgoing::Sender<'_>)) {
            let Bed { engine, now_ms, asked, tickets } = self;
            act(engine, *now_ms, &mut |switch, send| {
                *tickets += 1;
                if matches!(send, Send::Read(_)) {
                    asked.push_back((switch, *tickets));
                }
                *tickets
            });
        }

        fn up(&mut self, switches: impl Iterator<Item = u64>) {
            for switch in switches {
                self.act(|engine, now_ms, send| engine.on_up(DatapathId(switch), false, now_ms, send));
            }
        }

        /// All requests are answered, by `never` with a part that is not the last.
        fn answer(&mut self, never: impl Fn(u64) -> bool) {
            let mut later = VecDeque::new();
            while let Some((switch, ticket)) = self.asked.pop_front() {
                let more = never(switch.0);
                self.act(|engine, now_ms, send| {
                    engine.on_report(switch, (ticket, more), &[], now_ms, send);
                });
                later.extend(more.then_some((switch, ticket)));
            }
            self.asked = later;
        }

        fn seconds(&mut self, count: u64, never: impl Fn(u64) -> bool) {
            for _ in 0..count {
                self.now_ms += 1_000;
                self.act(|engine, now_ms, send| engine.on_tick(now_ms, send));
                self.answer(&never);
            }
        }

        fn is_known(&self, switch: u64) -> bool {
            self.engine.switch(DatapathId(switch)).is_some_and(|it| it.tables == Tables::Known)
        }
    }

    #[test]
    fn switches_that_never_finish_an_answer_keep_no_other_one_waiting() {
        let is_endless = |switch: u64| switch <= 50;
        let mut bed = Bed::new();
        bed.up(1..=50);
        bed.answer(is_endless);
        bed.up(51..=60);
        // The endless ones are before it in the line, and each has a turn.
        bed.seconds(120, is_endless);
        assert!((51..=60).all(|switch| bed.is_known(switch)));
        // Each of them had its turns by now. A new one waits for nobody.
        bed.up(61..=70);
        bed.answer(is_endless);
        assert!((61..=70).all(|switch| bed.is_known(switch)));
        assert!((1..=50).all(|switch| !bed.is_known(switch)));
    }

    #[test]
    fn a_switch_that_needs_longer_than_a_turn_is_read_in_the_end() {
        let mut bed = Bed::new();
        bed.up(1..=20);
        for _ in 0..800 {
            let now_ms = bed.now_ms;
            let switches = bed.engine.switches();
            let read =
                switches.filter(|it| it.reading.is_under_way() && now_ms >= it.reading.began_ms + 35_000);
            let read: Vec<u64> = read.map(|it| it.datapath.0).collect();
            bed.seconds(1, |switch| !read.contains(&switch));
        }
        assert!((1..=20).all(|switch| bed.is_known(switch)));
    }

    #[test]
    fn a_reading_that_was_given_up_hides_no_missing_rule() {
        let mut bed = Bed::new();
        let owner = bed.engine.owner("app");
        let mut items = Vec::new();
        Items::new(&mut items).rule(&plain_rule(1, 7));
        bed.up(1..=1);
        bed.answer(|_| false);
        bed.act(|engine, now_ms, send| {
            let put = Put { owner, name: "s", version: 1, options: SetOptions::default(), items: &items };
            engine.put(&put, now_ms, send).unwrap();
        });
        let ticket = bed.tickets;
        let none = flow::ErrorCode { kind: 0, code: 0 };
        bed.act(|engine, now_ms, send| {
            engine.on_receipt(
                DatapathId(1),
                (ticket, burnet_sdk::Outcome::Programmed, none),
                "",
                now_ms,
                send,
            );
        });
        // An audit begins, and never ends. Others wait.
        assert!(bed.engine.audit(DatapathId(1)));
        bed.seconds(1, |_| true);
        bed.up(2..=40);
        bed.seconds(30, |_| true);
        assert!(bed.engine.switch(DatapathId(1)).is_some_and(|it| it.reading.is_slow()), "it was given up");
        // The next one ends, and the switch has no rule.
        bed.seconds(60, |_| false);
        assert_eq!(bed.engine.switch(DatapathId(1)).map(|it| it.reading.repaired), Some(1));
    }
}
