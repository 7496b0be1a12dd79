//! Regions on ordinary memory, and memory that holds anything; for tests.
//!
//! In: sizes. Out: both ends of a region. It maps nothing, so it runs under loom and Miri too.

use std::sync::Arc;

use super::{CELL_DATA_WORDS, HASH, HEADER_WORDS, RegionReader, RegionWriter, Shape};
use crate::atomic::Ordering;
use crate::memory::Memory;

const HASH_KEY: [u64; 2] = [7, 9];

fn memory_of(shape: Shape) -> Arc<Memory> {
    let memory = Memory::allocated(shape.words().unwrap_or(HEADER_WORDS));
    for (word, value) in memory.words().iter().zip(shape.opening()) {
        word.store(value, Ordering::Relaxed);
    }
    Arc::new(memory)
}

/// Both ends of a region of these sizes.
pub(crate) fn allocated(places: usize, cells: usize) -> (RegionWriter, RegionReader) {
    let memory = memory_of(Shape { places, cells, hash_key: HASH_KEY });
    (RegionWriter::of(memory.clone()).unwrap(), RegionReader::of(memory).unwrap())
}

/// The hash of a key in a region of [`allocated`].
#[cfg(not(loom))]
pub(crate) fn hash_of(reader: &RegionReader, key: &[u8]) -> u64 {
    reader.shape.hash(key)
}

/// A region whose words are random, many of them such as a region could have.
#[cfg(not(loom))]
pub(crate) fn plausible_words(seed: u64, places: usize, cells: usize) -> (Arc<Memory>, RegionReader) {
    let shape = Shape { places, cells, hash_key: HASH_KEY };
    let memory = memory_of(shape);
    let mut state = seed;
    let mut random = || {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for (index, word) in memory.words().iter().enumerate().skip(64) {
        let value = match random() % 8 {
            0 => random(),
            1 => shape.hash([&b""[..], b"k", b"a longer key than the others"][index % 3]),
            2 => ((random() % 40) << 32) | (random() % 600),
            3 => u64::MAX,
            4 => u64::from_le_bytes(*b"kkkkkkkk"),
            _ => random() % (cells as u64 + 2),
        };
        word.store(value, Ordering::Relaxed);
    }
    (memory.clone(), RegionReader::of(memory).unwrap())
}

#[cfg(not(loom))]
impl RegionReader {
    /// Damages the region: each cell leads to the cell before this number.
    pub(crate) fn set_cell_links(&self, next: u64) {
        for cell in 0..self.shape.cells {
            let link = self.shape.cell_word(cell) + CELL_DATA_WORDS;
            self.memory.words()[link].store(next, Ordering::Relaxed);
        }
    }

    /// Leaves the place with this hash as a writer does that ends in the middle of a change.
    pub(crate) fn stop_in_a_change(&self, hash: u64) {
        let holds = |place: &usize| self.word(Shape::place_word(*place) + HASH) == hash;
        let place = (0..self.shape.places).find(holds).unwrap();
        self.memory.words()[Shape::place_word(place)].fetch_add(1, Ordering::Relaxed);
    }
}
