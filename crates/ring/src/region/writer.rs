//! The writing end of a region.
//!
//! In: records. Out: the same in shared memory, each change in one step for readers. It decides by its own tables, and reads of
//! the memory only what it wrote itself. It never waits for a reader.

use std::collections::{HashMap, HashSet};
use std::fmt;
#[cfg(not(loom))]
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::{
    CELL_DATA_WORDS, CELL_WORDS, COUNT_WORD, FIRST_CELL, FREE, HASH, KEY_BYTES_MAX, LEFT_OUT_WORD, LENGTHS,
    RECORD_BYTES_MAX, RegionFault, Shape, VERSION_WORD, cells_of,
};
use crate::atomic::{Ordering, fence};
use crate::memory::Memory;
#[cfg(not(loom))]
use crate::memory::mapping;

/// Where a record is.
struct Held {
    place: usize,
    cells: Vec<u32>,
}

/// The writing end of a region. There is one in the life of a region.
pub struct RegionWriter {
    memory: Arc<Memory>,
    shape: Shape,
    held: HashMap<Box<[u8]>, Held>,
    /// The keys of records that had no room. Each is in the service's own table, which has its own bound.
    left_out: HashSet<Box<[u8]>>,
    /// Cells that were used and are free.
    free: Vec<u32>,
    /// Cells from here on were never used.
    fresh: usize,
    version: u64,
    /// A record in the form of cells.
    bytes: Vec<u8>,
}

impl fmt::Debug for RegionWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.held.len();
        f.debug_struct("RegionWriter").field("records", &records).finish_non_exhaustive()
    }
}

impl RegionWriter {
    /// Maps a new region, and seals it: from now on, nobody can map it writable.
    ///
    /// # Errors
    /// [`RegionFault`]: it is no region, or it had a writer already.
    #[cfg(not(loom))]
    pub fn attach(fd: &OwnedFd) -> Result<RegionWriter, RegionFault> {
        let mapping = mapping::open_for_writing(fd.as_fd())?.ok_or(RegionFault::NotSealed)?;
        RegionWriter::of(Arc::new(Memory::Mapped(mapping)))
    }

    /// An end of this memory, which has a header and no record.
    pub(crate) fn of(memory: Arc<Memory>) -> Result<RegionWriter, RegionFault> {
        let mut opening = [0; super::OPENING_WORDS];
        for (value, word) in opening.iter_mut().zip(memory.words()) {
            *value = word.load(Ordering::Relaxed);
        }
        let shape = Shape::parse(opening, memory.words().len())?;
        Ok(RegionWriter {
            memory,
            shape,
            held: HashMap::new(),
            left_out: HashSet::new(),
            free: Vec::new(),
            fresh: 0,
            version: 0,
            bytes: Vec::new(),
        })
    }

    fn word(&self, index: usize) -> u64 {
        self.memory.words().get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(&self, index: usize, value: u64, order: Ordering) {
        // The indices follow from the shape, which was checked.
        if let Some(word) = self.memory.words().get(index) {
            word.store(value, order);
        }
    }

    /// Sets the value of a key. Readers see it at once, and know with the next [`RegionWriter::settle`] what belongs together.
    /// Returns whether there was room. A record without room is not in the region, not even with its earlier value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.unsettle();
        let bytes = key.len().saturating_add(value.len());
        let hash = self.shape.hash(key);
        let known = self.held.get(key);
        let place = known.map(|held| held.place).or_else(|| self.free_place(hash));
        let own_cells = known.map_or(0, |held| held.cells.len());
        let fits = key.len() <= KEY_BYTES_MAX
            && bytes <= RECORD_BYTES_MAX
            && cells_of(bytes) <= self.free_cells() + own_cells;
        let Some(place) = place.filter(|_| fits) else {
            self.leave_out(key);
            return false;
        };
        self.open(place);
        let before = self.held.remove(key);
        self.free.extend(before.into_iter().flat_map(|held| held.cells));
        let cells = self.take_cells(cells_of(bytes));
        self.fill(&cells, key, value);
        let first = Shape::place_word(place);
        let first_cell = cells.first().map_or(0, |cell| u64::from(*cell));
        self.store(first + FIRST_CELL, first_cell, Ordering::Relaxed);
        // Both lengths were checked above.
        self.store(first + LENGTHS, (key.len() as u64) << 32 | value.len() as u64, Ordering::Relaxed);
        self.store(first + HASH, hash, Ordering::Relaxed);
        self.close(place);
        self.held.insert(key.into(), Held { place, cells });
        self.left_out.remove(key);
        true
    }

    /// Removes a record, and says whether there was one.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let was_left_out = self.left_out.contains(key);
        if !was_left_out && !self.held.contains_key(key) {
            return false;
        }
        self.unsettle();
        self.left_out.remove(key);
        self.take_away(key);
        true
    }

    /// Everything since the last call belongs together, and is complete.
    pub fn settle(&mut self) {
        if self.version.is_multiple_of(2) {
            return;
        }
        self.store(LEFT_OUT_WORD, u64::from(!self.left_out.is_empty()), Ordering::Relaxed);
        self.store(COUNT_WORD, self.held.len() as u64, Ordering::Relaxed);
        self.version = self.version.wrapping_add(1);
        self.store(VERSION_WORD, self.version, Ordering::Release);
    }

    /// Whether a record is left out.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// From now on, what readers see is in between.
    fn unsettle(&mut self) {
        if self.version.is_multiple_of(2) {
            self.version = self.version.wrapping_add(1);
            self.store(VERSION_WORD, self.version, Ordering::Relaxed);
            // A reader that sees a later store sees the odd version too.
            fence(Ordering::Release);
        }
    }

    /// A record that has no room must not be there with an earlier value. A reader that misses it sees that one is left out.
    fn leave_out(&mut self, key: &[u8]) {
        self.left_out.insert(key.into());
        self.store(LEFT_OUT_WORD, 1, Ordering::Relaxed);
        self.take_away(key);
    }

    fn take_away(&mut self, key: &[u8]) {
        if let Some(Held { place, cells }) = self.held.remove(key) {
            self.open(place);
            self.store(Shape::place_word(place) + HASH, FREE, Ordering::Relaxed);
            self.close(place);
            self.free.extend(cells);
        }
    }

    /// The place is being changed.
    fn open(&self, place: usize) {
        let first = Shape::place_word(place);
        self.store(first, self.word(first).wrapping_add(1), Ordering::Relaxed);
        // A reader that sees a later store, in this place or in a cell that it had, sees the odd sequence too.
        fence(Ordering::Release);
    }

    /// The place is as it will stay.
    fn close(&self, place: usize) {
        let first = Shape::place_word(place);
        self.store(first, self.word(first).wrapping_add(1), Ordering::Release);
    }

    fn free_place(&self, hash: u64) -> Option<usize> {
        self.shape.probes(hash).find(|place| self.word(Shape::place_word(*place) + HASH) <= FREE)
    }

    fn free_cells(&self) -> usize {
        self.free.len() + (self.shape.cells - self.fresh)
    }

    /// Takes so many cells, of which there are enough.
    fn take_cells(&mut self, count: usize) -> Vec<u32> {
        let again = self.free.split_off(self.free.len().saturating_sub(count));
        let more = count - again.len();
        // A region has at most 2^21 cells.
        let fresh = (self.fresh..self.fresh + more).filter_map(|cell| u32::try_from(cell).ok());
        let cells = again.into_iter().chain(fresh).collect();
        self.fresh += more;
        cells
    }

    fn fill(&mut self, cells: &[u32], key: &[u8], value: &[u8]) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(size_of::<u64>()), 0);
        let (words, _) = bytes.as_chunks::<8>();
        let next = cells.iter().skip(1).map(|cell| u64::from(*cell) + 1).chain([0]);
        let mut data = words.chunks(CELL_DATA_WORDS);
        for (cell, next) in cells.iter().zip(next) {
            let start = self.shape.cell_word(*cell as usize);
            for (offset, word) in data.next().unwrap_or_default().iter().enumerate() {
                self.store(start + offset, u64::from_le_bytes(*word), Ordering::Relaxed);
            }
            self.store(start + CELL_WORDS - 1, next, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}
