//! When which zones are measured: all of them once in an interval, and not all in the same moment.
//!
//! ```text
//!   the time, how many zones there are ──> Turns ──> Turn: the zones whose turn it is
//! ```
//!
//! Reading a zone of three processes takes about half a millisecond. With 100 zones in one go, other processes wait for the processor for
//! 50 ms. Pure: it reads nothing.

use crate::resources::SAMPLE_INTERVAL_MS;

/// How many zones are read in one go, on average.
const ZONES_AT_ONCE: usize = 8;
/// Turns of an interval at most: the monitor is not woken more often than each 31 ms.
const TURNS_MAX: usize = 16;

/// Of one monitor.
#[derive(Debug)]
pub(crate) struct Turns {
    /// When the interval began.
    began_ms: u64,
    next_ms: u64,
    turn: Turn,
}

/// One of the turns of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    number: usize,
    of: usize,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { began_ms: 0, next_ms: 0, turn: Turn { number: 0, of: 1 } }
    }
}

impl Turns {
    /// When the next turn is due.
    pub(crate) fn next_ms(&self) -> u64 {
        self.next_ms
    }

    /// The turn that is due, if there is one. An interval has as many turns as the zones at its beginning need.
    pub(crate) fn due(&mut self, now_ms: u64, zones: usize) -> Option<Turn> {
        if now_ms < self.next_ms {
            return None;
        }
        if self.turn.number == 0 {
            self.began_ms = now_ms;
            self.turn.of = zones.div_ceil(ZONES_AT_ONCE).clamp(1, TURNS_MAX);
        }
        let turn = self.turn;
        self.turn.number = (turn.number + 1) % turn.of;
        // At most TURNS_MAX turns. One that is late does not move the later ones.
        self.next_ms = self.began_ms + SAMPLE_INTERVAL_MS * (turn.number as u64 + 1) / turn.of as u64;
        Some(turn)
    }
}

impl Turn {
    /// Whether it is the turn of this zone.
    pub(crate) fn is_of(self, zone: u16) -> bool {
        usize::from(zone) % self.of == self.number
    }

    /// Whether the interval is over with this turn.
    pub(crate) fn is_last(self) -> bool {
        self.number + 1 == self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of so many zones has its turn within two intervals, and the most that have it at once.
    fn looks(zones: u16) -> (Vec<usize>, usize) {
        let (mut turns, mut looks, mut most, mut ends) = (Turns::default(), vec![0; zones.into()], 0, 0);
        for now_ms in 0..2 * SAMPLE_INTERVAL_MS {
            let Some(turn) = turns.due(now_ms, zones.into()) else { continue };
            let now: Vec<u16> = (0..zones).filter(|zone| turn.is_of(*zone)).collect();
            now.iter().for_each(|zone| looks[usize::from(*zone)] += 1);
            most = most.max(now.len());
            ends += usize::from(turn.is_last());
        }
        assert_eq!(ends, 2, "{zones} zones");
        (looks, most)
    }

    #[test]
    fn each_zone_has_its_turn_once_in_an_interval() {
        for (zones, at_once) in [(0, 0), (1, 1), (8, 8), (9, 5), (100, 8), (128, 8), (1_000, 63)] {
            assert_eq!(looks(zones), (vec![2; zones.into()], at_once), "{zones} zones");
        }
    }

    #[test]
    fn zones_that_come_and_go_are_looked_at_in_the_next_interval_at_the_latest() {
        let mut turns = Turns::default();
        assert_eq!(turns.due(0, 100), Some(Turn { number: 0, of: 13 }));
        assert_eq!(turns.due(0, 100), None);
        assert_eq!(turns.due(40, 1), Some(Turn { number: 1, of: 13 }), "the interval goes on");
        assert_eq!(turns.next_ms(), 2 * SAMPLE_INTERVAL_MS / 13);
    }
}
