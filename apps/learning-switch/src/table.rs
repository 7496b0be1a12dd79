//! The address table of one switch: the port where each address was last seen.
//!
//! It never exceeds its bound. When it is full, a new address replaces the oldest of a few sampled entries. It does
//! not decide how the answers are used.

use burnet_sdk::{MacAddr, PortNo};
use foldhash::{HashMap, HashMapExt};

/// The port where an address was seen, and when. With the address this takes 16 bytes, so four entries share a cache
/// line. With a hundred thousand addresses of many switches, a look-up costs the cache line that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    port: PortNo,
    /// Whole seconds of the monotonic clock. 32 bits last for 136 years.
    at_s: u32,
}

/// Converts milliseconds of the clock to the seconds that [`Seen`] keeps.
fn seconds(now_ms: u64) -> u32 {
    u32::try_from(now_ms / 1000).unwrap_or(u32::MAX)
}

/// The known addresses of one switch.
#[derive(Debug)]
pub struct AddressTable {
    /// Keyed by the address as a number. The hash has a random seed, so that a host cannot forge addresses that
    /// collide.
    seen: HashMap<u64, Seen>,
    capacity: usize,
}

/// A table with more addresses than this, of 16 bytes each, does not stay in a core's own cache beside everything
/// else.
const LARGE: usize = 8_192;

/// How many entries are sampled for the oldest one when the table is full. Scanning all of them would make a flood of
/// forged addresses costly. The oldest of a few is old enough.
const EVICTION_SAMPLE: usize = 8;

impl AddressTable {
    /// An empty table for at most `capacity` addresses.
    pub fn new(capacity: usize) -> Self {
        AddressTable { seen: HashMap::new(), capacity: capacity.max(1) }
    }

    /// Learns that an address is behind a port. If the table is full, it replaces an old entry.
    pub fn learn(&mut self, address: MacAddr, port: PortNo, now_ms: u64) {
        if let Some(seen) = self.seen.get_mut(&address.to_u64()) {
            let now = Seen { port, at_s: seconds(now_ms) };
            // Most packets repeat within a second what the last one said. A cache line that was not written need not
            // go back to memory.
            if *seen != now {
                *seen = now;
            }
            return;
        }
        if self.seen.len() >= self.capacity {
            self.evict();
        }
        self.seen.insert(address.to_u64(), Seen { port, at_s: seconds(now_ms) });
    }

    /// The port where an address was last seen.
    pub fn port_of(&self, address: MacAddr) -> Option<PortNo> {
        self.seen.get(&address.to_u64()).map(|seen| seen.port)
    }

    /// Whether the table is so large that look-ups wait for memory.
    pub fn is_large(&self) -> bool {
        self.seen.len() > LARGE
    }

    /// Reads the entry of an address only to bring it into the cache.
    pub fn look_at(&self, address: MacAddr) {
        std::hint::black_box(self.seen.get(&address.to_u64()));
    }

    /// Forgets all addresses behind a port that was removed.
    pub fn forget_port(&mut self, port: PortNo) {
        self.seen.retain(|_, seen| seen.port != port);
    }

    /// Forgets everything.
    pub fn forget_all(&mut self) {
        self.seen.clear();
    }

    /// Forgets every address that was not seen since `since_ms`.
    pub fn forget_unseen(&mut self, since_ms: u64) {
        let since_s = seconds(since_ms);
        self.seen.retain(|_, seen| seen.at_s >= since_s);
    }

    fn evict(&mut self) {
        let oldest = self.seen.iter().take(EVICTION_SAMPLE).min_by_key(|(_, seen)| seen.at_s);
        if let Some(address) = oldest.map(|(address, _)| *address) {
            self.seen.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u64) -> MacAddr {
        MacAddr::from_u64(number)
    }

    #[test]
    fn it_never_grows_beyond_its_bound() {
        let mut table = AddressTable::new(10);
        (0..1000).for_each(|number| table.learn(address(number), PortNo(1), 1000 * number));
        assert_eq!(table.seen.len(), 10);
        assert_eq!(table.port_of(address(999)), Some(PortNo(1)));
    }

    #[test]
    fn the_last_port_counts() {
        let mut table = AddressTable::new(10);
        table.learn(address(1), PortNo(1), 0);
        table.learn(address(1), PortNo(2), 1);
        assert_eq!(table.port_of(address(1)), Some(PortNo(2)));
    }

    #[test]
    fn what_was_behind_a_port_that_is_gone_is_forgotten() {
        let mut table = AddressTable::new(10);
        table.learn(address(1), PortNo(1), 0);
        table.learn(address(2), PortNo(2), 0);
        table.forget_port(PortNo(1));
        assert_eq!((table.port_of(address(1)), table.port_of(address(2))), (None, Some(PortNo(2))));
    }

    #[test]
    fn what_was_not_seen_for_long_is_forgotten() {
        let mut table = AddressTable::new(10);
        table.learn(address(1), PortNo(1), 1000);
        table.learn(address(2), PortNo(1), 3000);
        table.forget_unseen(2000);
        assert_eq!((table.port_of(address(1)), table.port_of(address(2))), (None, Some(PortNo(1))));
    }
}
