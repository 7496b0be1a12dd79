//! The ways that packets took through the tables, so that the next packet of a flow is not classified again.
//!
//! ```text
//!   packet's key ──> PathCache ──> Path: the entry that hit in each table, or the table in which none did
//! ```
//!
//! It is asked by the bits of the key that any rule of any table looks at, so flows that no rule tells apart share a path.
//! A path names entries, which are carried out and counted as if they had been looked up: groups, ports and meters
//! are asked anew for each packet. Any change of a flow table makes all paths void.
//!
//! Never holds more than [`SLOTS_MAX`] paths. A path whose place is taken takes it over; the older one is found by
//! classification again.

use super::flow_key::{FlowKey, Mask, WORDS, WordHasher};

/// How many tables a path may pass that is kept; longer ones are classified each time.
pub(crate) const STEPS_MAX: usize = 8;
/// Slots of a cache when it is first used: 16 KiB, so that thousands of switches with a few flows each need little.
const SLOTS_FIRST: usize = 64;
/// The most slots: 2 MiB. Open vSwitch's cache of exact matches has as many per thread.
const SLOTS_MAX: usize = 8192;
/// In how many neighbouring slots a path may be.
const WAYS: usize = 2;

/// The entry of a table that hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) table_id: u8,
    pub(crate) slot: u32,
}

/// A way through the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    steps: [Step; STEPS_MAX],
    count: u8,
    /// The table that was the last because none of its entries hit.
    pub(crate) missed_in: Option<u8>,
}

impl Path {
    /// Appends an entry. Says whether there was room.
    pub(crate) fn push(&mut self, step: Step) -> bool {
        let Some(free) = self.steps.get_mut(usize::from(self.count)) else { return false };
        *free = step;
        self.count += 1;
        true
    }

    /// The entries that hit, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps[..usize::from(self.count)]
    }
}

#[derive(Clone, Debug)]
struct Slot {
    /// The path counts if this is the cache's; zero is never.
    generation: u64,
    words: [u64; WORDS],
    path: Path,
}

/// The cache of a switch. An unused one takes no memory beyond its own few words.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCache {
    slots: Vec<Slot>,
    /// Counts the changes of tables before which a path was used.
    generation: u64,
    /// The bits that any rule looks at; `None` after a change, until the next packet.
    looked_at: Option<Mask>,
    /// Paths of this size of the cache that were put where another one still counted.
    displaced: usize,
}

impl PathCache {
    /// The tables have changed: no path is true any more.
    pub(crate) fn forget(&mut self) {
        self.looked_at = None;
    }

    /// Whether the bits that rules look at have to be said before a packet is asked for.
    pub(crate) fn awaits_mask(&self) -> bool {
        self.looked_at.is_none()
    }

    /// Says which bits any rule looks at.
    pub(crate) fn set_mask(&mut self, mask: Mask) {
        self.looked_at = Some(mask);
        self.generation += 1;
    }

    /// The path of the packets with this key.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<Path> {
        let masked = self.looked_at.as_ref()?.applied_to(key);
        let words = masked.as_ref();
        let first = self.place(words)?;
        let ways = &self.slots[first..first + WAYS];
        ways.iter().find(|slot| slot.holds(self.generation, words)).map(|slot| slot.path)
    }

    /// Keeps the path of the packets with this key.
    pub(crate) fn keep(&mut self, key: &FlowKey, path: Path) {
        let Some(mask) = &self.looked_at else { return };
        let masked = mask.applied_to(key);
        if self.slots.is_empty() || self.displaced > self.slots.len() && self.slots.len() < SLOTS_MAX {
            self.grow();
        }
        let Some(first) = self.place(masked.as_ref()) else { return };
        let generation = self.generation;
        let ways = &mut self.slots[first..first + WAYS];
        let free = ways.iter().position(|slot| slot.generation != generation);
        self.displaced += usize::from(free.is_none());
        // The one in front is the newer one, so the one behind goes.
        ways.swap(0, free.unwrap_or(WAYS - 1));
        let slot = &mut ways[0];
        slot.generation = generation;
        slot.words[..masked.as_ref().len()].copy_from_slice(masked.as_ref());
        slot.path = path;
    }

    /// The first of the slots that words may be in.
    fn place(&self, words: &[u64]) -> Option<usize> {
        let sets = (self.slots.len() / WAYS) as u64;
        (WordHasher::of(words) >> 32).checked_rem(sets).map(|set| set as usize * WAYS)
    }

    fn grow(&mut self) {
        let count = (2 * self.slots.len()).clamp(SLOTS_FIRST, SLOTS_MAX);
        let empty = Slot { generation: 0, words: [0; WORDS], path: Path::default() };
        self.slots = vec![empty; count];
        self.displaced = 0;
    }
}

impl Slot {
    fn holds(&self, generation: u64, words: &[u64]) -> bool {
        self.generation == generation && self.words[..words.len()] == *words
    }
}
