//! The address table of one switch: the port where each address was last seen.
//!
//! ```text
//!   address ──hash──> two lines of the cache, of four addresses each: it is in one of them, or not known
//! ```
//!
//! Never grows beyond its bound: when it is full, a new address takes the place of one that has not been seen for longest among a few
//! that are looked at. It does not know what its answers are used for.

use burnet_sdk::{MacAddr, PortNo, prefetch};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Where an address was seen, and when: 16 bytes, so that four share a line of the processor's cache. With a hundred thousand addresses of many
/// switches, what a look-up costs is the line that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// The address as a number, and [`IS_THERE`]; 0: nothing is here.
    address: u64,
    port: PortNo,
    /// Whole seconds of the monotonic clock. 32 bits last for 136 years.
    at_s: u32,
}

/// A free place.
const NOTHING: Seen = Seen { address: 0, port: PortNo(0), at_s: 0 };

/// Above the 48 bits of an address.
const IS_THERE: u64 = 1 << 48;

/// How many addresses a line holds.
const LINE: usize = 4;

/// A line of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([Seen; LINE]);

impl Line {
    fn place_of(&self, address: u64) -> Option<usize> {
        self.0.iter().position(|seen| seen.address == address)
    }

    #[inline(always)]
    fn find(&self, address: u64) -> Option<&Seen> {
        self.0.iter().find(|seen| seen.address == address)
    }

    #[inline(always)]
    fn find_mut(&mut self, address: u64) -> Option<&mut Seen> {
        self.0.iter_mut().find(|seen| seen.address == address)
    }
}

/// The known addresses of one switch.
#[derive(Debug)]
pub struct AddressTable {
    /// A power of two of them, or none while nothing is known.
    lines: Vec<Line>,
    count: usize,
    capacity: usize,
    /// Drawn by chance, so that nobody can forge addresses that fall together.
    secrets: [u64; 2],
}

/// Lines of the smallest table.
const LINES_MIN: usize = 4;

/// How many lines are looked at for the oldest address when the table is full. Looking at all would make a flood of forged addresses
/// costly; the oldest of a few is old enough.
const EVICTION_LINES: usize = 2;

/// Milliseconds of the clock as an address table keeps them.
pub fn seconds(now_ms: u64) -> u32 {
    u32::try_from(now_ms / 1000).unwrap_or(u32::MAX)
}

impl AddressTable {
    /// An empty table for at most `capacity` addresses.
    pub fn new(capacity: usize) -> Self {
        let random = RandomState::default();
        // An odd factor loses nothing.
        let secrets = [random.hash_one(0), random.hash_one(1) | 1];
        AddressTable { lines: Vec::new(), count: 0, capacity: capacity.max(1), secrets }
    }

    /// The two lines in which an address may be. There must be lines.
    #[inline(always)]
    fn lines_of(&self, address: u64) -> [usize; 2] {
        let product = u128::from(address ^ self.secrets[0]) * u128::from(self.secrets[1]);
        let hash = product as u64 ^ (product >> 64) as u64;
        let last = self.lines.len() - 1;
        [hash as usize & last, (hash >> 32) as usize & last]
    }

    #[inline(always)]
    fn find(&self, address: u64) -> Option<&Seen> {
        if self.lines.is_empty() {
            return None;
        }
        let [first, second] = self.lines_of(address);
        self.lines[first].find(address).or_else(|| self.lines[second].find(address))
    }

    #[inline(always)]
    fn find_mut(&mut self, address: u64) -> Option<&mut Seen> {
        if self.lines.is_empty() {
            return None;
        }
        let [mut line, second] = self.lines_of(address);
        if self.lines[line].find(address).is_none() {
            line = second;
        }
        self.lines[line].find_mut(address)
    }

    /// Learns that an address is behind a port.
    #[inline]
    pub fn learn(&mut self, address: MacAddr, port: PortNo, now_s: u32) {
        let now = Seen { address: address.to_u64() | IS_THERE, port, at_s: now_s };
        match self.find(now.address) {
            // Most packets say within a second what the last one said. A line that was not written need not go back to memory.
            Some(seen) if *seen == now => {}
            _ => self.change(now),
        }
    }

    #[inline(never)]
    fn change(&mut self, now: Seen) {
        match self.find_mut(now.address) {
            Some(seen) => *seen = now,
            None => self.add(now),
        }
    }

    /// Behind which port an address was last seen.
    #[inline]
    pub fn port_of(&self, address: MacAddr) -> Option<PortNo> {
        self.find(address.to_u64() | IS_THERE).map(|seen| seen.port)
    }

    /// How many addresses it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Fetches the line in which an address most likely is into the processor's cache, without waiting for it.
    #[inline]
    pub fn fetch(&self, address: MacAddr) {
        if !self.lines.is_empty() {
            let [first, _] = self.lines_of(address.to_u64() | IS_THERE);
            prefetch(&self.lines[first].0[0].address);
        }
    }

    /// Forgets all addresses behind a port that was removed.
    pub fn forget_port(&mut self, port: PortNo) {
        self.retain(|seen| seen.port != port);
    }

    /// Forgets everything.
    pub fn forget_all(&mut self) {
        self.retain(|_| false);
    }

    /// Forgets what was not seen since `since_s`.
    pub fn forget_unseen(&mut self, since_s: u32) {
        self.retain(|seen| seen.at_s >= since_s);
    }

    fn retain(&mut self, is_kept: impl Fn(&Seen) -> bool) {
        let mut count = 0;
        for seen in self.lines.iter_mut().flat_map(|line| &mut line.0) {
            if seen.address != 0 && is_kept(seen) {
                count += 1;
            } else {
                *seen = NOTHING;
            }
        }
        self.count = count;
    }

    /// Three fifths of the places are used at most, so that nearly every address is in its first line.
    #[cold]
    fn add(&mut self, new: Seen) {
        if self.count >= self.capacity {
            self.evict(new.address);
        }
        if (self.count + 1) * 5 > self.lines.len() * LINE * 3 && self.lines.len() < self.capacity {
            self.grow();
        }
        while !self.put(new) {
            // With twice as many lines the addresses of the two lines spread. Where they would not, a line has more addresses than there are.
            if self.lines.len() >= self.capacity {
                return self.replace(new);
            }
            self.grow();
        }
        self.count += 1;
    }

    /// Puts an address into a free place of its lines, the first if there is one in it. Where there is none, an address of these lines moves to its other
    /// line. `false`: none can.
    fn put(&mut self, new: Seen) -> bool {
        if self.lines.is_empty() {
            return false;
        }
        let both = self.lines_of(new.address);
        let free = both.into_iter().find_map(|line| self.free_in(line));
        let freed = free.or_else(|| both.into_iter().find_map(|line| self.free_by_moving(line)));
        freed.map(|(line, place)| self.lines[line].0[place] = new).is_some()
    }

    fn free_in(&self, line: usize) -> Option<(usize, usize)> {
        self.lines[line].place_of(0).map(|place| (line, place))
    }

    /// The place of an address that has moved to its other line.
    fn free_by_moving(&mut self, line: usize) -> Option<(usize, usize)> {
        (0..LINE).find_map(|place| {
            let seen = self.lines[line].0[place];
            let [first, second] = self.lines_of(seen.address);
            let (other, free) = self.free_in(if first == line { second } else { first })?;
            self.lines[other].0[free] = seen;
            Some((line, place))
        })
    }

    fn grow(&mut self) {
        let lines = (self.lines.len() * 2).max(LINES_MIN);
        let before = std::mem::replace(&mut self.lines, vec![Line([NOTHING; LINE]); lines]);
        self.count = 0;
        for seen in before.into_iter().flat_map(|line| line.0).filter(|seen| seen.address != 0) {
            // What does not find a place among twice as many is learned again.
            self.count += usize::from(self.put(seen));
        }
    }

    /// In the place of the oldest address of its lines, which are full.
    fn replace(&mut self, new: Seen) {
        let [first, second] = self.lines_of(new.address);
        let places = [first, second].into_iter().flat_map(|line| (0..LINE).map(move |place| (line, place)));
        let oldest = places.min_by_key(|(line, place)| self.lines[*line].0[*place].at_s);
        if let Some((line, place)) = oldest {
            self.lines[line].0[place] = new;
        }
    }

    /// Forgets the oldest address of the first lines that hold one, from those of a new address on.
    fn evict(&mut self, new: u64) {
        if self.lines.is_empty() {
            return;
        }
        let [first, _] = self.lines_of(new);
        let lines = (0..self.lines.len()).map(|step| (first + step) & (self.lines.len() - 1));
        let is_used = |line: &usize| self.lines[*line].0.iter().any(|seen| seen.address != 0);
        let places = lines.filter(is_used).take(EVICTION_LINES);
        let places = places.flat_map(|line| (0..LINE).map(move |place| (line, place)));
        let used = places.filter(|(line, place)| self.lines[*line].0[*place].address != 0);
        if let Some((line, place)) = used.min_by_key(|(line, place)| self.lines[*line].0[*place].at_s) {
            self.lines[line].0[place] = NOTHING;
            self.count -= 1;
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
        (0..1000).for_each(|number| table.learn(address(number), PortNo(1), number as u32));
        assert_eq!(table.count, 10);
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
        table.learn(address(1), PortNo(1), 1);
        table.learn(address(2), PortNo(1), 3);
        table.forget_unseen(2);
        assert_eq!((table.port_of(address(1)), table.port_of(address(2))), (None, Some(PortNo(1))));
    }

    /// All that is known is what was learned, in a table that grows, and in one that is full what was learned last is there.
    #[test]
    fn what_was_learned_is_known() {
        let mut table = AddressTable::new(100_000);
        let port = |number: u64| PortNo(number as u32 % 48);
        (0..50_000).for_each(|number| table.learn(address(number * 0x1_0001), port(number), 1));
        let known =
            (0..50_000).filter(|number| table.port_of(address(number * 0x1_0001)) == Some(port(*number)));
        assert_eq!((known.count(), table.count), (50_000, 50_000));
        assert_eq!(table.port_of(address(7)), None);
        assert!(table.lines.len() * LINE <= 4 * 50_000, "{} lines", table.lines.len());
        for number in 50_000..300_000 {
            table.learn(address(number * 0x1_0001), port(number), 2);
            assert_eq!(table.port_of(address(number * 0x1_0001)), Some(port(number)));
        }
        assert!(table.count <= 100_000 && table.count > 99_000, "{}", table.count);
        table.forget_unseen(3);
        assert_eq!((table.count, table.port_of(address(299_999 * 0x1_0001))), (0, None));
    }

    #[test]
    fn the_address_of_zeros_is_one_as_any() {
        let mut table = AddressTable::new(10);
        assert_eq!(table.port_of(address(0)), None);
        table.learn(address(0), PortNo(3), 0);
        assert_eq!(table.port_of(address(0)), Some(PortNo(3)));
    }
}
