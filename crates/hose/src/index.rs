//! Where in a list an element is, by the hash of its key.
//!
//! ```text
//!   hash of a key ──> line: [ 8 hashes, 8 numbers ] ──> the element with that number: is it this key?
//! ```
//!
//! A map from keys to numbers is read in three steps that wait for each other: its tags, its entry, and then the element. Here the key is only in the
//! element, so there are two. Among a million flows, each step is a miss in the processor's cache. A line is a line of that cache, and all of its hashes
//! are compared at once. In a search that tries one after the other, the processor often guesses wrongly, and then waits for memory.
//!
//! In: hashes and numbers. Out: numbers. It knows no key: the caller compares. It has at most four places for each element that it had at the same time.

use std::hint::black_box;

/// How many elements a line has.
const WIDTH: usize = 8;

/// The number of a place that is free. No list has so many elements.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line {
    hashes: [u32; WIDTH],
    numbers: [u32; WIDTH],
}

const EMPTY: Line = Line { hashes: [0; WIDTH], numbers: [FREE; WIDTH] };

impl Line {
    /// The places with this hash, as bits. It has no branch, so that the processor has nothing to guess.
    fn with_hash(&self, hash: u32) -> u32 {
        let bits = self.hashes.iter().enumerate().map(|(at, it)| u32::from(*it == hash) << at);
        bits.fold(0, |all, bit| all | bit)
    }

    fn is_full(&self) -> bool {
        !self.numbers.contains(&FREE)
    }
}

/// Numbers of elements, by the hash of their keys. Each element is in it once.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// A power of two, or none. An element is in the line of its hash. If that was full, it is in the next one that was not.
    lines: Vec<Line>,
    count: usize,
}

/// Half of the bits of a hash: both halves count.
const fn short(hash: u64) -> u32 {
    (hash >> 32 ^ hash) as u32
}

impl Index {
    /// The number of the element with this hash that is the right one.
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (hash, mask) = (short(hash), self.lines.len().checked_sub(1)?);
        let mut at = hash as usize & mask;
        loop {
            let line = self.lines.get(at)?;
            let mut hits = line.with_hash(hash);
            while hits != 0 {
                let number = line.numbers[hits.trailing_zeros() as usize % WIDTH];
                if number != FREE && is_it(number) {
                    return Some(number);
                }
                hits &= hits - 1;
            }
            // There always is a line that is not full.
            if !line.is_full() {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// An element with this hash is searched for soon: brings its line into the processor's cache.
    pub(crate) fn expect(&self, hash: u64) {
        let mask = self.lines.len().wrapping_sub(1);
        black_box(self.lines.get(short(hash) as usize & mask).map(|line| line.hashes[0]));
    }

    /// Adds an element that is not there.
    pub fn insert(&mut self, hash: u64, number: u32) {
        if (self.count + 1) * 2 > self.lines.len() * WIDTH {
            let more = (self.lines.len() * 2).max(1);
            let before = std::mem::replace(&mut self.lines, vec![EMPTY; more]);
            for line in before {
                let used = line.hashes.into_iter().zip(line.numbers).filter(|(_, number)| *number != FREE);
                used.for_each(|(hash, number)| self.put(hash, number));
            }
        }
        self.count += 1;
        self.put(short(hash), number);
    }

    fn put(&mut self, hash: u32, number: u32) {
        let mask = self.lines.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let line = &mut self.lines[at];
            if let Some(free) = line.numbers.iter().position(|number| *number == FREE) {
                (line.hashes[free], line.numbers[free]) = (hash, number);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Removes an element. One that is not there changes nothing.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let (hash, Some(mask)) = (short(hash), self.lines.len().checked_sub(1)) else { return };
        let mut at = hash as usize & mask;
        let (mut free, mut was_full) = loop {
            let line = &self.lines[at];
            let found = line.numbers.iter().position(|it| *it == number);
            match found {
                Some(place) if line.hashes[place] == hash => break ((at, place), line.is_full()),
                _ if !line.is_full() => return,
                _ => at = (at + 1) & mask,
            }
        };
        // Elements of lines behind it move forward, if that brings them no further than to their own line.
        while was_full {
            at = (at + 1) & mask;
            let line = self.lines[at];
            let wide = at.wrapping_sub(free.0) & mask;
            let moves =
                |(hash, number): (u32, u32)| number != FREE && at.wrapping_sub(hash as usize) & mask >= wide;
            let moved = line.hashes.into_iter().zip(line.numbers).position(moves);
            was_full = line.is_full() && wide < mask;
            if let Some(place) = moved {
                self.set(free, (line.hashes[place], line.numbers[place]));
                free = (at, place);
            }
        }
        self.set(free, (0, FREE));
        self.count -= 1;
    }

    fn set(&mut self, (line, place): (usize, usize), (hash, number): (u32, u32)) {
        self.lines[line].hashes[place] = hash;
        self.lines[line].numbers[place] = number;
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A generator of numbers (xorshift64).
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 33) % bound
    }

    /// Keys are numbers, and as many as `hashes` of them differ in their hash. The lines of hashes near 2^32 are the last ones.
    fn check(seed: u64, keys: u64, hashes: u64) {
        let hash = |key: u64| u64::from(u32::MAX) + 3 - key % hashes;
        let (mut state, mut index, mut expected) = (seed, Index::default(), BTreeMap::new());
        let (mut list, mut free): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
        for _ in 0..600 {
            let key = below(&mut state, keys);
            match expected.remove(&key) {
                Some(number) => {
                    index.remove(hash(key), number);
                    index.remove(hash(key), number);
                    free.push(number);
                }
                None => {
                    let number = free.pop().unwrap_or_else(|| {
                        list.push(0);
                        u32::try_from(list.len() - 1).unwrap()
                    });
                    list[number as usize] = key;
                    index.insert(hash(key), number);
                    expected.insert(key, number);
                }
            }
            assert!(index.len() == expected.len() && index.is_empty() == expected.is_empty());
            for key in 0..keys {
                let found = index.find(hash(key), |number| list[number as usize] == key);
                assert_eq!(found, expected.get(&key).copied(), "seed {seed}, key {key} of {keys}");
            }
        }
    }

    #[test]
    fn an_element_is_found_until_it_is_removed_whatever_its_hash() {
        for (seed, keys, hashes) in
            [(1, 3, 1), (2, 40, 40), (3, 40, 7), (4, 100, 3), (5, 60, 5), (6, 130, 13), (7, 300, 300)]
        {
            check(seed, keys, hashes);
        }
    }
}
