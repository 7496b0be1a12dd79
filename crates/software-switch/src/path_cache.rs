//! A cache of the paths that packets took through the tables, so that the next packet of a flow is not classified
//! again.
//!
//! ```text
//!   packet's key ──> PathCache ──> Path: the entry that hit in each table, or the table in which none did
//! ```
//!
//! The key of the cache is the bits that any rule of any table tests. So flows that no rule distinguishes share a
//! path.
//!
//! A path names entries, which are carried out and counted as after a look-up. The state of groups, ports and meters
//! is read again for each packet. Any change of a flow table invalidates all paths.
//!
//! It never holds more than [`SLOTS_MAX`] paths. A new path may replace an older one, whose next packet is classified
//! again.

use super::flow_key::{FlowKey, Mask, WORDS, WordHasher};

/// The longest cached path, in tables. Packets with longer paths are classified each time.
pub(crate) const STEPS_MAX: usize = 8;
/// Slots at first use: 16 KiB, so that thousands of switches with a few flows each need little memory.
const SLOTS_FIRST: usize = 64;
/// The most slots: 2 MiB. Open vSwitch's exact-match cache has as many for each thread.
const SLOTS_MAX: usize = 8192;
/// In how many neighbouring slots a path may be.
const WAYS: usize = 2;

/// The entry that matched in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) table_id: u8,
    pub(crate) slot: u32,
}

/// A path through the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    steps: [Step; STEPS_MAX],
    count: u8,
    /// The last table, if no entry of it matched.
    pub(crate) missed_in: Option<u8>,
}

impl Path {
    /// Appends an entry. Returns whether there was room.
    pub(crate) fn push(&mut self, step: Step) -> bool {
        let Some(free) = self.steps.get_mut(usize::from(self.count)) else { return false };
        *free = step;
        self.count += 1;
        true
    }

    /// The entries that matched, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps[..usize::from(self.count)]
    }
}

#[derive(Clone, Debug)]
struct Slot {
    /// The path is valid if this equals the cache's generation. It is never zero for a path.
    generation: u64,
    words: [u64; WORDS],
    path: Path,
}

/// The cache of a switch. Until it is used, it allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCache {
    slots: Vec<Slot>,
    /// Counts the table changes between uses of the cache.
    generation: u64,
    /// The bits that any rule tests. `None` after a change, until the next packet.
    looked_at: Option<Mask>,
    /// How many paths have replaced a valid path at the present size of the cache.
    displaced: usize,
}

impl PathCache {
    /// Invalidates all paths, because the tables have changed.
    pub(crate) fn forget(&mut self) {
        self.looked_at = None;
    }

    /// Whether the mask must be set before the next search.
    pub(crate) fn awaits_mask(&self) -> bool {
        self.looked_at.is_none()
    }

    /// Sets the bits that any rule tests.
    pub(crate) fn set_mask(&mut self, mask: Mask) {
        self.looked_at = Some(mask);
        self.generation += 1;
    }

    /// The path of packets with this key, if it is cached.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<Path> {
        let masked = self.looked_at.as_ref()?.applied_to(key);
        let words = masked.as_ref();
        let first = self.place(words)?;
        let ways = &self.slots[first..first + WAYS];
        ways.iter().find(|slot| slot.holds(self.generation, words)).map(|slot| slot.path)
    }

    /// Caches the path of packets with this key.
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
        // The first slot has the newer path, so the second one is replaced.
        ways.swap(0, free.unwrap_or(WAYS - 1));
        let slot = &mut ways[0];
        slot.generation = generation;
        slot.words[..masked.as_ref().len()].copy_from_slice(masked.as_ref());
        slot.path = path;
    }

    /// The first of the slots in which the path of these words may be.
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
