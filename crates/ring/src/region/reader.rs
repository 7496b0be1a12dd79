//! The reading end of a region.
//!
//! In: keys, and memory that could hold anything. Out: copies of records, or the reason why there is none. It writes nothing,
//! and never waits for the writer.

use std::fmt;
use std::hint::spin_loop;
#[cfg(not(loom))]
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::{
    ATTEMPTS_MAX, CELL_DATA_WORDS, COUNT_WORD, FIRST_CELL, FREE, HASH, KEY_BYTES_MAX, LEFT_OUT_WORD, LENGTHS,
    NEVER_USED, RECORD_BYTES_MAX, RegionFault, Shape, VERSION_WORD, WORD_BYTES, cells_of,
};
use crate::atomic::{Ordering, fence};
use crate::memory::Memory;
#[cfg(not(loom))]
use crate::memory::mapping;

/// Why a record could not be read. The stream of the service has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The writer is changing it, or ended in the middle of a change. A later try may succeed.
    Changing,
    /// The memory contradicts itself. It is the writer's fault.
    Damaged,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unread::Changing => "the service is changing the record: try again later",
            Unread::Damaged => "the shared memory of the service is damaged: follow its stream",
        })
    }
}

impl std::error::Error for Unread {}

/// A copy of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied<'b> {
    /// Its key.
    pub key: &'b [u8],
    /// Its value.
    pub value: &'b [u8],
    /// How often its place was changed: another number means another record, or another value.
    pub change: u64,
}

/// Where a copy is in its buffer.
#[derive(Clone, Copy)]
struct Found {
    key_bytes: usize,
    change: u64,
}

/// The reading end of a region. Any number of threads can use it.
pub struct RegionReader {
    pub(super) memory: Arc<Memory>,
    pub(super) shape: Shape,
}

impl fmt::Debug for RegionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegionReader").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl RegionReader {
    /// Maps a region, to read it.
    ///
    /// # Errors
    /// [`RegionFault`]: it is no region, or its writer has not attached.
    #[cfg(not(loom))]
    pub fn attach(fd: &OwnedFd) -> Result<RegionReader, RegionFault> {
        let mapping = mapping::open_for_reading(fd.as_fd())?.ok_or(RegionFault::NotSealed)?;
        RegionReader::of(Arc::new(Memory::Mapped(mapping)))
    }

    /// An end of this memory.
    pub(crate) fn of(memory: Arc<Memory>) -> Result<RegionReader, RegionFault> {
        let mut opening = [0; super::OPENING_WORDS];
        for (value, word) in opening.iter_mut().zip(memory.words()) {
            *value = word.load(Ordering::Relaxed);
        }
        let shape = Shape::parse(opening, memory.words().len())?;
        Ok(RegionReader { memory, shape })
    }

    /// A word. Only a relaxed load is certain to work on memory that this process cannot write, so orders come from fences.
    pub(super) fn word(&self, index: usize) -> u64 {
        // The indices follow from the shape, which was checked. A wrong one would read an unused place.
        self.memory.words().get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The version of all records: odd while the writer makes changes that belong together. What is read between two equal
    /// even versions belongs together.
    #[must_use]
    pub fn version(&self) -> u64 {
        // Behind all that was read before, and in front of all that is read after.
        fence(Ordering::Acquire);
        let version = self.word(VERSION_WORD);
        fence(Ordering::Acquire);
        version
    }

    /// Whether a record is left out because there was no room for it. The stream has all of them.
    #[must_use]
    pub fn is_full(&self) -> bool {
        // After a record was missed: the writer says that it leaves one out before it takes its earlier value away.
        fence(Ordering::Acquire);
        self.word(LEFT_OUT_WORD) != 0
    }

    /// How many records the writer says there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.word(COUNT_WORD)
    }

    /// How many places there are, for [`RegionReader::at`].
    #[must_use]
    pub fn places(&self) -> usize {
        self.shape.places
    }

    /// The record with this key. The buffer's contents are replaced.
    ///
    /// # Errors
    /// [`Unread`]: it could not be read.
    pub fn get<'b>(&self, key: &[u8], buffer: &'b mut Vec<u8>) -> Result<Option<Copied<'b>>, Unread> {
        let found = self.find(key, buffer)?;
        Ok(found.map(|found| copied(found, buffer)))
    }

    /// The record in a place, if there is one. The buffer's contents are replaced.
    ///
    /// # Errors
    /// [`Unread`]: it could not be read.
    pub fn at<'b>(&self, place: usize, buffer: &'b mut Vec<u8>) -> Result<Option<Copied<'b>>, Unread> {
        if place >= self.shape.places || self.word(Shape::place_word(place) + HASH) <= FREE {
            return Ok(None);
        }
        let found = self.copy(place, buffer)?;
        Ok(found.map(|found| copied(found, buffer)))
    }

    fn find(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Found>, Unread> {
        let hash = self.shape.hash(key);
        for place in self.shape.probes(hash) {
            let there = self.word(Shape::place_word(place) + HASH);
            if there == NEVER_USED {
                return Ok(None);
            }
            if there == hash
                && let Some(found) = self.copy(place, buffer)?
                && buffer.get(..found.key_bytes) == Some(key)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Copies the record of a place as it was at one moment.
    fn copy(&self, place: usize, buffer: &mut Vec<u8>) -> Result<Option<Found>, Unread> {
        let first = Shape::place_word(place);
        for _ in 0..ATTEMPTS_MAX {
            let sequence = self.word(first);
            // What follows is read after the sequence.
            fence(Ordering::Acquire);
            if sequence.is_multiple_of(2) {
                let copied = self.copy_once(first, sequence, buffer);
                // What precedes was read before the sequence is read again.
                fence(Ordering::Acquire);
                if self.word(first) == sequence {
                    return copied;
                }
            }
            spin_loop();
        }
        Err(Unread::Changing)
    }

    /// Copies what is there, which may change meanwhile.
    fn copy_once(&self, first: usize, sequence: u64, buffer: &mut Vec<u8>) -> Result<Option<Found>, Unread> {
        buffer.clear();
        if self.word(first + HASH) <= FREE {
            return Ok(None);
        }
        let lengths = self.word(first + LENGTHS);
        let length = |half: u64| usize::try_from(half).map_err(|_| Unread::Damaged);
        let (key_bytes, value_bytes) = (length(lengths >> 32)?, length(lengths & u64::from(u32::MAX))?);
        let bytes = key_bytes.saturating_add(value_bytes);
        if key_bytes > KEY_BYTES_MAX || bytes > RECORD_BYTES_MAX {
            return Err(Unread::Damaged);
        }
        let (mut left, mut cell) = (bytes, self.word(first + FIRST_CELL));
        // No further than the length says, so a chain that is a circle ends too.
        for _ in 0..cells_of(bytes) {
            let number = usize::try_from(cell).ok().filter(|number| *number < self.shape.cells);
            let start = self.shape.cell_word(number.ok_or(Unread::Damaged)?);
            for word in start..start + CELL_DATA_WORDS.min(left.div_ceil(WORD_BYTES)) {
                let taken = left.min(WORD_BYTES);
                buffer.extend_from_slice(&self.word(word).to_le_bytes()[..taken]);
                left -= taken;
            }
            cell = self.word(start + CELL_DATA_WORDS).wrapping_sub(1);
        }
        Ok(Some(Found { key_bytes, change: sequence / 2 }))
    }
}

fn copied(found: Found, buffer: &[u8]) -> Copied<'_> {
    let (key, value) = buffer.split_at(found.key_bytes.min(buffer.len()));
    Copied { key, value, change: found.change }
}
