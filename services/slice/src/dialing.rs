//! When to dial which controller: one connection for each switch that is up and each controller, with a pause that grows with each failure.
//!
//! In: switches up and down, connections that stand or ended, and the time. Out: which connections to dial now, and when to ask again. It
//! holds no socket, and reads no clock.

use flow::DatapathId;
use slicer::Connection;
use std::collections::BTreeMap;

/// The pause after the first failure, in milliseconds. It doubles with each further one.
const PAUSE_FIRST_MS: u64 = 100;
/// The longest pause, in milliseconds. Open vSwitch waits as long.
const PAUSE_MAX_MS: u64 = 8_000;
/// A connection that stood so long did not fail: the next pause is the first again.
const STABLE_MS: u64 = 10_000;
/// How many connections may be under way at once. The others wait for one of them to stand or fail.
pub const UNDER_WAY_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waits { until_ms: u64 },
    UnderWay,
    Stands { since_ms: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Place {
    phase: Phase,
    pause_ms: u64,
}

/// All connections of a slice that are wanted now. There are as many as switches and controllers.
#[derive(Clone, Debug, Default)]
pub struct Dialing {
    controllers: usize,
    places: BTreeMap<Connection, Place>,
    under_way: usize,
}

impl Dialing {
    /// Nothing is wanted until a switch is up.
    pub fn new(controllers: usize) -> Dialing {
        Dialing { controllers, ..Dialing::default() }
    }

    /// A switch is up: its controllers are dialled at once.
    pub fn on_switch_up(&mut self, datapath: DatapathId, now_ms: u64) {
        self.on_switch_down(datapath);
        let place = Place { phase: Phase::Waits { until_ms: now_ms }, pause_ms: PAUSE_FIRST_MS };
        let all = (0..self.controllers).map(|controller| (Connection { datapath, controller }, place));
        self.places.extend(all);
    }

    /// A switch is gone: it has no connections.
    pub fn on_switch_down(&mut self, datapath: DatapathId) {
        let places = &mut self.places;
        for controller in 0..self.controllers {
            let gone = places.remove(&Connection { datapath, controller });
            self.under_way -= usize::from(gone.is_some_and(|it| it.phase == Phase::UnderWay));
        }
    }

    /// Whether a connection is wanted.
    pub fn is_wanted(&self, connection: Connection) -> bool {
        self.places.contains_key(&connection)
    }

    /// The connections to dial now. They are under way until told otherwise.
    pub fn take_due(&mut self, now_ms: u64) -> Vec<Connection> {
        let is_due = |place: &Place| matches!(place.phase, Phase::Waits { until_ms } if until_ms <= now_ms);
        let room = UNDER_WAY_MAX.saturating_sub(self.under_way);
        let due = self.places.iter_mut().filter(|(_, place)| is_due(place)).take(room);
        let due: Vec<Connection> = due
            .map(|(connection, place)| {
                place.phase = Phase::UnderWay;
                *connection
            })
            .collect();
        self.under_way += due.len();
        due
    }

    /// When the next connection is due, if one waits and may begin.
    pub fn next_ms(&self) -> Option<u64> {
        let waits = self.places.values().filter_map(|place| match place.phase {
            Phase::Waits { until_ms } => Some(until_ms),
            _ => None,
        });
        waits.min().filter(|_| self.under_way < UNDER_WAY_MAX)
    }

    /// A connection stands.
    pub fn on_connected(&mut self, connection: Connection, now_ms: u64) {
        self.change(connection, |place| place.phase = Phase::Stands { since_ms: now_ms });
    }

    /// A connection ended or could not be made. It is dialled again after a pause.
    pub fn on_ended(&mut self, connection: Connection, now_ms: u64) {
        self.change(connection, |place| {
            let stood_ms = match place.phase {
                Phase::Stands { since_ms } => now_ms.saturating_sub(since_ms),
                _ => 0,
            };
            if stood_ms >= STABLE_MS {
                place.pause_ms = PAUSE_FIRST_MS;
            }
            place.phase = Phase::Waits { until_ms: now_ms + place.pause_ms };
            place.pause_ms = (place.pause_ms * 2).min(PAUSE_MAX_MS);
        });
    }

    fn change(&mut self, connection: Connection, change: impl FnOnce(&mut Place)) {
        let Some(place) = self.places.get_mut(&connection) else { return };
        self.under_way -= usize::from(place.phase == Phase::UnderWay);
        change(place);
    }

    /// Since when a connection has stood, if it does.
    pub fn stands_since_ms(&self, connection: Connection) -> Option<u64> {
        match self.places.get(&connection)?.phase {
            Phase::Stands { since_ms } => Some(since_ms),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: DatapathId = DatapathId(1);

    fn of(datapath: DatapathId, controller: usize) -> Connection {
        Connection { datapath, controller }
    }

    /// The time of each attempt while none succeeds.
    fn attempts(dialing: &mut Dialing, count: usize) -> Vec<u64> {
        let mut times = Vec::new();
        while times.len() < count {
            let now_ms = dialing.next_ms().unwrap();
            assert_eq!(dialing.take_due(now_ms), [of(ONE, 0)]);
            assert_eq!(dialing.next_ms(), None, "it is under way");
            dialing.on_ended(of(ONE, 0), now_ms);
            times.push(now_ms);
        }
        times
    }

    #[test]
    fn nobody_is_dialled_for_a_switch_that_is_not_up() {
        let mut dialing = Dialing::new(2);
        assert_eq!((dialing.take_due(u64::MAX), dialing.next_ms()), (vec![], None));
        dialing.on_switch_up(ONE, 5);
        assert_eq!(dialing.take_due(5), [of(ONE, 0), of(ONE, 1)]);
        dialing.on_switch_down(ONE);
        dialing.on_ended(of(ONE, 0), 6);
        assert_eq!((dialing.take_due(u64::MAX), dialing.next_ms()), (vec![], None));
    }

    #[test]
    fn the_pause_doubles_up_to_eight_seconds() {
        let mut dialing = Dialing::new(1);
        dialing.on_switch_up(ONE, 0);
        let times = attempts(&mut dialing, 10);
        assert_eq!(times, [0, 100, 300, 700, 1_500, 3_100, 6_300, 12_700, 20_700, 28_700]);
    }

    #[test]
    fn a_connection_that_stood_long_is_dialled_again_soon_and_one_that_ended_at_once_is_not() {
        let again = |stood_ms: u64| {
            let mut dialing = Dialing::new(1);
            dialing.on_switch_up(ONE, 0);
            attempts(&mut dialing, 5);
            let now_ms = dialing.next_ms().unwrap();
            dialing.take_due(now_ms);
            dialing.on_connected(of(ONE, 0), now_ms);
            assert_eq!((dialing.next_ms(), dialing.stands_since_ms(of(ONE, 0))), (None, Some(now_ms)));
            dialing.on_ended(of(ONE, 0), now_ms + stood_ms);
            dialing.next_ms().unwrap() - now_ms - stood_ms
        };
        assert_eq!((again(STABLE_MS), again(STABLE_MS - 1)), (100, 3_200));
    }

    #[test]
    fn no_more_are_under_way_at_once_than_the_bound() {
        let mut dialing = Dialing::new(1);
        (0..100).for_each(|datapath| dialing.on_switch_up(DatapathId(datapath), 0));
        let first = dialing.take_due(0);
        assert_eq!((first.len(), dialing.take_due(0).len(), dialing.next_ms()), (UNDER_WAY_MAX, 0, None));
        dialing.on_connected(first[0], 1);
        dialing.on_switch_down(first[1].datapath);
        dialing.on_ended(first[2], 1);
        assert_eq!(dialing.next_ms(), Some(0));
        assert_eq!(dialing.take_due(1).len(), 3);
    }
}
