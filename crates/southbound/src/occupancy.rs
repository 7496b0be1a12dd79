//! Counts the open connections, in total and by address.
//!
//! In: connections that open, finish their handshake and close. Out: whether there is room for one more. Pure: it
//! holds no connection.

use crate::origin::Origin;
use std::collections::HashMap;
use std::fmt;

/// The maximum numbers of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCaps {
    /// For all workers together.
    pub all: usize,
    /// For one address.
    pub per_address: usize,
    /// For one address, before the handshake is finished.
    pub half_open_per_address: usize,
}

/// The part of `max_connections` that one address leaves for all others, whatever its own limit is: a quarter.
const LEFT_FOR_OTHERS: usize = 4;

/// Why a connection is closed as soon as it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The maximum number of connections is open, which is this.
    Connections(usize),
    /// This address has its maximum number of connections, which is this.
    OfOneAddress(Origin, usize),
    /// This address has the largest part of all connections that one address may have, which is this.
    Share(Origin, usize),
    /// This address has its maximum number of unfinished handshakes, which is this.
    HalfOpen(Origin, usize),
}

/// The connections of one address.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    connections: usize,
    half_open: usize,
}

/// The counts of all connections.
#[derive(Debug)]
pub struct Occupancy {
    caps: ConnectionCaps,
    connections: usize,
    /// It has at most `connections` entries.
    of: HashMap<Origin, Held>,
}

impl Occupancy {
    /// Starts without connections.
    pub fn new(caps: ConnectionCaps) -> Self {
        Occupancy { caps, connections: 0, of: HashMap::new() }
    }

    /// Sets other limits for new connections. Existing connections stay, even above the limits.
    pub fn limit(&mut self, caps: ConnectionCaps) {
        self.caps = caps;
    }

    /// Counts an accepted connection, as one with an unfinished handshake.
    ///
    /// # Errors
    /// There is no room for it. It is not counted.
    pub fn connect(&mut self, origin: Origin) -> Result<(), NoRoom> {
        if self.connections >= self.caps.all {
            return Err(NoRoom::Connections(self.caps.all));
        }
        let held = self.of.get(&origin).copied().unwrap_or_default();
        self.room_for(origin, held)?;
        self.of.insert(origin, Held { connections: held.connections + 1, half_open: held.half_open + 1 });
        self.connections += 1;
        Ok(())
    }

    /// Test beds have all their switches on this machine. So a loopback address may have all connections that it need
    /// not leave for others.
    fn room_for(&self, origin: Origin, held: Held) -> Result<(), NoRoom> {
        let ConnectionCaps { all, per_address, half_open_per_address } = self.caps;
        let share = all - all / LEFT_FOR_OTHERS;
        if held.connections >= share {
            return Err(NoRoom::Share(origin, share));
        }
        if held.connections >= per_address && !origin.is_loopback() {
            return Err(NoRoom::OfOneAddress(origin, per_address));
        }
        if held.half_open >= half_open_per_address {
            return Err(NoRoom::HalfOpen(origin, half_open_per_address));
        }
        Ok(())
    }

    /// The handshake of a connection is finished, with or without success.
    pub fn finish_handshake(&mut self, origin: Origin) {
        if let Some(held) = self.of.get_mut(&origin) {
            held.half_open = held.half_open.saturating_sub(1);
        }
    }

    /// A connection closed whose handshake was finished.
    pub fn disconnect(&mut self, origin: Origin) {
        let Some(held) = self.of.get_mut(&origin) else { return };
        self.connections = self.connections.saturating_sub(1);
        held.connections = held.connections.saturating_sub(1);
        if held.connections == 0 {
            self.of.remove(&origin);
        }
    }

    /// Open connections, including those of switches that are not up yet.
    pub fn connections(&self) -> usize {
        self.connections
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Connections(cap) => {
                write!(f, "{cap} connections are open, which is southbound.max_connections")
            }
            NoRoom::OfOneAddress(origin, cap) => write!(
                f,
                "{cap} connections from {origin} are open, which is southbound.max_connections_per_address; set it higher \
                 if there are more switches"
            ),
            NoRoom::Share(origin, cap) => write!(
                f,
                "{cap} connections from {origin} are open, which is three quarters of southbound.max_connections and the most \
                 that one address may have; set it higher if there are more switches"
            ),
            NoRoom::HalfOpen(origin, cap) => write!(
                f,
                "{cap} connections from {origin} have not finished their handshake, which is \
                 southbound.max_half_open_per_address"
            ),
        }
    }
}

impl std::error::Error for NoRoom {}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(all: usize, per_address: usize, half_open_per_address: usize) -> ConnectionCaps {
        ConnectionCaps { all, per_address, half_open_per_address }
    }

    fn origin(address: &str) -> Origin {
        Origin::of(address.parse().unwrap())
    }

    /// Connects until there is no room. Returns how many connected, and why no more could.
    fn fill(occupancy: &mut Occupancy, address: &str) -> (usize, NoRoom) {
        let before = occupancy.connections();
        loop {
            if let Err(no_room) = occupancy.connect(origin(address)) {
                return (occupancy.connections() - before, no_room);
            }
        }
    }

    #[test]
    fn one_address_cannot_take_all_the_room() {
        let mut occupancy = Occupancy::new(caps(100, 40, 1_000));
        let (one, other) = (origin("10.0.0.1"), origin("10.0.0.2"));
        assert_eq!(fill(&mut occupancy, "10.0.0.1"), (40, NoRoom::OfOneAddress(one, 40)));
        assert_eq!(fill(&mut occupancy, "10.0.0.2"), (40, NoRoom::OfOneAddress(other, 40)));
        assert_eq!(fill(&mut occupancy, "10.0.0.3"), (20, NoRoom::Connections(100)));
        occupancy.finish_handshake(one);
        occupancy.disconnect(one);
        assert_eq!(occupancy.connect(one), Ok(()));
    }

    #[test]
    fn whatever_is_set_a_quarter_is_left_for_others_also_by_this_machine() {
        for address in ["10.0.0.1", "127.0.0.1", "::1"] {
            let mut occupancy = Occupancy::new(caps(100, 1_000, 1_000));
            assert_eq!(fill(&mut occupancy, address), (75, NoRoom::Share(origin(address), 75)));
        }
        let mut small = Occupancy::new(caps(1, 1, 1));
        assert_eq!(fill(&mut small, "10.0.0.1").0, 1);
    }

    #[test]
    fn a_test_bed_on_this_machine_may_be_larger_than_what_another_address_may_have() {
        let mut occupancy = Occupancy::new(caps(4_096, 1_024, 10_000));
        assert_eq!(fill(&mut occupancy, "127.0.0.1").0, 3_072);
        let mut occupancy = Occupancy::new(caps(4_096, 1_024, 10_000));
        assert_eq!(fill(&mut occupancy, "192.0.2.1").0, 1_024);
    }

    #[test]
    fn the_addresses_of_one_64_are_one() {
        let mut occupancy = Occupancy::new(caps(100, 10, 100));
        for number in 1..=10 {
            assert_eq!(occupancy.connect(origin(&format!("2001:db8::{number}"))), Ok(()));
        }
        assert!(matches!(occupancy.connect(origin("2001:db8::ffff:1")), Err(NoRoom::OfOneAddress(_, 10))));
        assert_eq!(occupancy.connect(origin("2001:db8:0:1::1")), Ok(()));
    }

    #[test]
    fn half_open_connections_of_one_address_are_capped_and_an_ended_handshake_makes_room() {
        let mut occupancy = Occupancy::new(caps(10, 10, 1));
        let (one, other) = (origin("10.0.0.1"), origin("10.0.0.2"));
        assert_eq!(occupancy.connect(one), Ok(()));
        assert_eq!(occupancy.connect(one), Err(NoRoom::HalfOpen(one, 1)));
        assert_eq!(occupancy.connect(other), Ok(()));
        occupancy.finish_handshake(one);
        assert_eq!(occupancy.connect(one), Ok(()));
    }

    #[test]
    fn nothing_is_kept_of_addresses_that_are_gone() {
        let mut occupancy = Occupancy::new(caps(100, 10, 10));
        for number in 0..1_000_u32 {
            let origin = Origin::of(number.to_be_bytes().into());
            assert_eq!(occupancy.connect(origin), Ok(()));
            occupancy.finish_handshake(origin);
            occupancy.disconnect(origin);
        }
        assert_eq!((occupancy.connections(), occupancy.of.len()), (0, 0));
    }
}
