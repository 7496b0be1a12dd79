//! How many commands are under way to all switches together, and which switches wait because of it.
//!
//! ```text
//!   a switch has something to send ──> Window: room? send; else wait in the queue ──a receipt──> the next of the queue sends some
//! ```
//!
//! The receipts of all commands under way may arrive at once. The node keeps a bounded number of bytes for an app that does not
//! read fast enough. If more bytes wait, the node ends the app. So the bound holds for all switches together. While switches wait,
//! they take turns: a switch with many entries takes no place from one with few.
//!
//! In: what is sent and confirmed. Out: whether there is room, and whose turn is next. It sends nothing.

use flow::DatapathId;
use std::collections::VecDeque;

/// The most commands without a receipt at all switches together. A receipt takes some 60 bytes, so they are half a megabyte,
/// a quarter of what the node keeps. Beyond it, switches wait for the receipts of others.
pub const OPEN_MAX: usize = 8_192;

/// How many commands a switch that waited sends before the next one has its turn.
pub const TURN: usize = 16;

/// The commands under way, and the switches that wait.
#[derive(Debug, Default)]
pub struct Window {
    open: usize,
    /// Each switch is there at most once.
    waiting: VecDeque<DatapathId>,
}

impl Window {
    /// Whether no further command may be sent.
    pub fn is_full(&self) -> bool {
        self.open >= OPEN_MAX
    }

    /// Whether switches wait, so that each must wait for its turn.
    pub fn is_contended(&self) -> bool {
        !self.waiting.is_empty() || self.is_full()
    }

    /// How many commands are under way.
    pub fn open(&self) -> usize {
        self.open
    }

    /// A command was sent.
    pub fn on_sent(&mut self) {
        self.open += 1;
    }

    /// So many commands have their receipts, or get none any more.
    pub fn on_over(&mut self, count: usize) {
        self.open = self.open.saturating_sub(count);
    }

    /// A switch waits for its turn.
    pub fn wait(&mut self, switch: DatapathId) {
        self.waiting.push_back(switch);
    }

    /// The switch whose turn it is, if there is room.
    pub fn next_turn(&mut self) -> Option<DatapathId> {
        if self.is_full() { None } else { self.waiting.pop_front() }
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
    use crate::reading_line::READINGS_MAX;
    use burnet_sdk::Outcome;
    use flow::ErrorCode;
    use flows_contract::{Items, SetOptions};
    use std::collections::BTreeSet;

    /// What the engine has sent and no switch has answered yet: tickets, and whether each is a reading.
    #[derive(Default)]
    struct Wire {
        sent: VecDeque<(DatapathId, u64, bool)>,
        tickets: u64,
    }

    impl Wire {
        fn send(&mut self, switch: DatapathId, send: &Send<'_>) -> u64 {
            self.tickets += 1;
            self.sent.push_back((switch, self.tickets, matches!(send, Send::Read(_))));
            self.tickets
        }

        /// The oldest command or question is answered: the tables are empty.
        fn answer(&mut self, engine: &mut Engine) -> Option<(DatapathId, bool)> {
            let (switch, ticket, is_reading) = self.sent.pop_front()?;
            if is_reading {
                engine
                    .on_report(switch, (ticket, false), &[], 0, &mut |switch, send| self.send(switch, send));
            } else {
                let error = ErrorCode { kind: 0, code: 0 };
                let outcome = (ticket, Outcome::Programmed, error);
                engine.on_receipt(switch, outcome, "", 0, &mut |switch, send| self.send(switch, send));
            }
            Some((switch, is_reading))
        }
    }

    /// So many switches have connected, and their tables are read. Returns the most readings at once.
    fn connect(engine: &mut Engine, wire: &mut Wire, switches: u64) -> usize {
        for switch in 1..=switches {
            engine.on_up(DatapathId(switch), false, 0, &mut |switch, send| wire.send(switch, send));
        }
        let mut most = 0;
        loop {
            let read: BTreeSet<DatapathId> = wire.sent.iter().map(|(switch, ..)| *switch).collect();
            most = most.max(read.len());
            if wire.answer(engine).is_none() {
                break;
            }
        }
        assert!(engine.switches().all(|switch| switch.is_ready()));
        most
    }

    #[test]
    fn a_few_switches_are_read_at_once_however_many_connect() {
        let (mut engine, mut wire) = (Engine::new(&Settings::default(), 0).unwrap(), Wire::default());
        let most = connect(&mut engine, &mut wire, 1_000);
        assert!((2..=READINGS_MAX).contains(&most), "{most}");
        assert_eq!(engine.room_for_callers(), READINGS_MAX - 2, "two are kept for switches that connect");
        engine.on_callers_readings(READINGS_MAX);
        let up = &mut |switch, send: &Send<'_>| wire.send(switch, send);
        engine.on_up(DatapathId(2_000), false, 0, up);
        assert!(wire.sent.is_empty(), "callers have all of them");
        engine.on_callers_readings(0);
        engine.begin_readings(0, &mut |switch, send| wire.send(switch, send));
        assert_eq!(wire.sent.len(), 3);
    }

    #[test]
    fn all_switches_together_have_a_window_and_each_gets_its_turn() {
        const SWITCHES: u64 = 100;
        const RULES: u16 = 400;
        let (mut engine, mut wire) = (Engine::new(&Settings::default(), 0).unwrap(), Wire::default());
        connect(&mut engine, &mut wire, SWITCHES);
        let owner = engine.owner("app");
        let mut items = Vec::new();
        for (switch, priority) in (1..=SWITCHES).flat_map(|switch| (1..=RULES).map(move |it| (switch, it))) {
            Items::new(&mut items).rule(&plain_rule(switch, priority));
        }
        let put = Put { owner, name: "s", version: 1, options: SetOptions::default(), items: &items };
        engine.put(&put, 0, &mut |switch, send| wire.send(switch, send)).unwrap();
        let (mut answered, mut last) = (0_u64, BTreeSet::new());
        while let Some((switch, _)) = wire.answer(&mut engine) {
            assert!(engine.open() <= OPEN_MAX && wire.sent.len() == engine.open());
            answered += 1;
            if answered <= 2 * OPEN_MAX as u64 {
                last.insert(switch);
            }
            assert!(
                engine.resume(0, &mut |switch, send| wire.send(switch, send)).is_none(),
                "nobody is paused"
            );
        }
        assert_eq!(answered, SWITCHES * u64::from(RULES));
        assert_eq!((last.len() as u64, engine.open()), (SWITCHES, 0), "nobody waits until others have all");
    }

    #[test]
    fn a_session_that_ends_leaves_its_part_of_the_window_to_others() {
        let mut window = Window::default();
        (0..OPEN_MAX).for_each(|_| window.on_sent());
        window.wait(DatapathId(1));
        assert!(window.is_full() && window.next_turn().is_none());
        window.on_over(300);
        assert_eq!(
            (window.next_turn(), window.next_turn(), window.open()),
            (Some(DatapathId(1)), None, OPEN_MAX - 300)
        );
    }
}
