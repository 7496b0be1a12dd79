//! A region: the table of one service in shared memory. The service writes it, and many apps read it.
//!
//! ```text
//!             one memfd, sealed against new writable mappings
//!            ┌──────────────────────────────────────────────┐
//!  service   │ header: magic, format, sizes, hash key       │
//!  RegionWriter  version, whether a record is left out      │   RegionReader  app
//!  put ──────┼─▶ places: sequence, hash, first cell, length ├──▶ get, at      app
//!  remove    │   cells:  120 bytes of key and value, next   │                 app
//!            └──────────────────────────────────────────────┘
//!
//!  in:   keys and values (any bytes), a descriptor from the maker of the region
//!  out:  whole values, each as it was at one moment, and one version of all of them; or an Unread that says why not
//! ```
//!
//! A place is found by the hash of the key, among the [`PROBES_MAX`] places after the one that the hash names. Its key and
//! value are in a chain of cells, so free memory is never in pieces of the wrong size.
//!
//! Each place has a sequence lock: its sequence is odd while the writer changes it. A reader copies the record, and keeps the
//! copy if the sequence was even and is the same afterwards. The version is the same lock for a group of changes: if it is
//! even and the same before and after, everything read in between belongs together.
//!
//! A reader maps the memory read-only. The seal makes that certain: Linux gives nobody a second writable mapping, whatever a
//! reader does with its descriptor. In the other direction, a reader trusts nothing that it reads. It checks each index and
//! length against sizes that it copied and checked when it attached. It follows a chain only as far as the length says, and
//! it tries [`ATTEMPTS_MAX`] times. So a writer that is malicious, or was killed in the middle of a change, costs a reader
//! an error. The memory cannot shrink, so no access raises SIGBUS for that reason.
//!
//! Never here: the meaning of keys and values, waiting, a system call for a read, a reference into the shared memory.

mod hash;
mod reader;
#[cfg(test)]
pub(crate) mod testing;
mod writer;

pub use reader::{Copied, RegionReader, Unread};
pub use writer::RegionWriter;

#[cfg(not(loom))]
use std::io;
#[cfg(not(loom))]
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(not(loom))]
use rustix::fs::{Mode, OFlags};

use std::fmt;

#[cfg(not(loom))]
use crate::atomic::Ordering;
#[cfg(not(loom))]
use crate::memory::mapping::{self, Mapping};

/// The longest key in bytes.
pub const KEY_BYTES_MAX: usize = 1_024;

/// The longest key and value together, in bytes. A longer record is left out.
pub const RECORD_BYTES_MAX: usize = 32 << 10;

/// How many places after the hash's own a record can be in. If all are taken, the record is left out.
pub const PROBES_MAX: usize = 64;

/// How often a reader tries to copy a record that the writer changes. A change takes less than a microsecond, so a reader
/// uses them up only if the writer was stopped in the middle of one.
#[cfg(not(loom))]
pub const ATTEMPTS_MAX: usize = 1_000;
#[cfg(loom)]
pub const ATTEMPTS_MAX: usize = 2;

/// The sizes that a region can have, in bytes.
pub const REGION_BYTES_MIN: usize = 64 << 10;
/// The largest size. A zone has address space for more than one of them.
pub const REGION_BYTES_MAX: usize = 256 << 20;

const WORD_BYTES: usize = size_of::<u64>();

/// A page, so that the places begin on one.
const HEADER_WORDS: usize = 512;

/// The header's words that stay as the maker wrote them.
const OPENING_WORDS: usize = 6;

/// The version of all records, on a cache line of its own with the two words behind it.
const VERSION_WORD: usize = 64;
const LEFT_OUT_WORD: usize = 65;
const COUNT_WORD: usize = 66;

/// The words of a place: its sequence, the hash of its key, its first cell, and the lengths of key and value.
const PLACE_WORDS: usize = 4;
const HASH: usize = 1;
const FIRST_CELL: usize = 2;
const LENGTHS: usize = 3;

/// In place of a hash: the place was never used, so no probe goes beyond it.
const NEVER_USED: u64 = 0;
/// In place of a hash: the place is free again.
const FREE: u64 = 1;

/// Two cache lines. The last word is the number of the next cell plus one, or 0 in the last cell.
const CELL_WORDS: usize = 16;
const CELL_DATA_WORDS: usize = CELL_WORDS - 1;
const CELL_DATA_BYTES: usize = CELL_DATA_WORDS * WORD_BYTES;

/// Of each so many bytes of a region, places have one.
const BYTES_PER_BYTE_OF_PLACES: usize = 8;

const MAGIC: u64 = u64::from_le_bytes(*b"burnview");
const FORMAT: u64 = 1;

/// The header as the maker wrote it: magic, format, places, cells, and the key of the hash.
type Opening = [u64; OPENING_WORDS];

/// The checked sizes of a region. Every end has its own copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// A power of two.
    places: usize,
    cells: usize,
    /// Secret from those who choose keys, such as the addresses of hosts: they could choose keys for the same places.
    hash_key: [u64; 2],
}

impl Shape {
    /// The sizes for a memory of so many bytes.
    fn of(bytes: usize, hash_key: [u64; 2]) -> Shape {
        let place_bytes = PLACE_WORDS * WORD_BYTES;
        let most = bytes / BYTES_PER_BYTE_OF_PLACES / place_bytes;
        let places = 1_usize << most.max(1).ilog2();
        let cells = bytes.saturating_sub(HEADER_WORDS * WORD_BYTES + places * place_bytes)
            / (CELL_WORDS * WORD_BYTES);
        Shape { places, cells, hash_key }
    }

    fn opening(&self) -> Opening {
        let [first, second] = self.hash_key;
        [MAGIC, FORMAT, self.places as u64, self.cells as u64, first, second]
    }

    /// Checks a header that could be anything, of a memory of so many words.
    fn parse(opening: Opening, memory_words: usize) -> Result<Shape, RegionFault> {
        let [magic, format, places, cells, first, second] = opening;
        if magic != MAGIC {
            return Err(RegionFault::NotARegion);
        }
        if format != FORMAT {
            return Err(RegionFault::OtherFormat { found: format, known: FORMAT });
        }
        let size = |size: u64| usize::try_from(size).map_err(|_| RegionFault::NotARegion);
        let shape = Shape { places: size(places)?, cells: size(cells)?, hash_key: [first, second] };
        let needed = shape.words().filter(|_| shape.places.is_power_of_two());
        match needed.is_some_and(|needed| needed <= memory_words) {
            true => Ok(shape),
            false => Err(RegionFault::NotARegion),
        }
    }

    /// All words. `None` if no memory has so many.
    fn words(&self) -> Option<usize> {
        let places = self.places.checked_mul(PLACE_WORDS)?;
        self.cells.checked_mul(CELL_WORDS)?.checked_add(places)?.checked_add(HEADER_WORDS)
    }

    /// The hash of a key. It is never one of the two that mean no key.
    fn hash(&self, key: &[u8]) -> u64 {
        hash::of(self.hash_key, key).max(FREE + 1)
    }

    /// The places where a key with this hash can be, in their order.
    fn probes(self, hash: u64) -> impl Iterator<Item = usize> {
        let mask = self.places - 1;
        // The upper half, of which 32-bit machines keep all.
        let home = (hash >> 32) as usize & mask;
        (0..PROBES_MAX.min(self.places)).map(move |step| (home + step) & mask)
    }

    /// The first word of a place.
    fn place_word(place: usize) -> usize {
        HEADER_WORDS + place * PLACE_WORDS
    }

    /// The first word of a cell.
    fn cell_word(&self, cell: usize) -> usize {
        HEADER_WORDS + self.places * PLACE_WORDS + cell * CELL_WORDS
    }
}

/// The cells that a record of so many bytes takes.
fn cells_of(bytes: usize) -> usize {
    bytes.div_ceil(CELL_DATA_BYTES).max(1)
}

/// Why a descriptor is not the end of a region. Nothing stays mapped.
#[derive(Debug)]
pub enum RegionFault {
    /// It is not sealed as it must be: it could shrink, or it could be mapped writable.
    NotSealed,
    /// It is another memory, or its header is damaged.
    NotARegion,
    /// The region was made by another version of Burnet.
    OtherFormat {
        /// Its format.
        found: u64,
        /// The format that this version reads.
        known: u64,
    },
    /// The system refused.
    Io(std::io::Error),
}

impl fmt::Display for RegionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionFault::NotSealed => {
                f.write_str("the region is not sealed, so that it could shrink or be written")
            }
            RegionFault::NotARegion => f.write_str("the memory is no region, or its header is damaged"),
            RegionFault::OtherFormat { found, known } => {
                write!(f, "the region has the format {found}, but this version reads format {known}")
            }
            RegionFault::Io(why) => write!(f, "the region cannot be mapped: {why}"),
        }
    }
}

impl std::error::Error for RegionFault {}

impl From<std::io::Error> for RegionFault {
    fn from(why: std::io::Error) -> RegionFault {
        RegionFault::Io(why)
    }
}

/// Makes a region of about so many bytes, without records. The descriptor is for its writer, which seals it when it attaches.
/// Pages take memory when they are first used.
///
/// # Errors
/// The system has no memory or descriptors left.
#[cfg(not(loom))]
pub fn create_region(bytes: usize) -> io::Result<OwnedFd> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bytes = bytes.clamp(REGION_BYTES_MIN, REGION_BYTES_MAX) / WORD_BYTES * WORD_BYTES;
    let fd = mapping::unshrinkable(c"burnet-region", bytes)?;
    // Rust's own source of random keys.
    let random = || RandomState::new().build_hasher().finish();
    let shape = Shape::of(bytes, [random(), random()]);
    let mapping = Mapping::new(fd.as_fd(), bytes)?;
    for (word, value) in mapping.words().iter().zip(shape.opening()) {
        word.store(value, Ordering::Relaxed);
    }
    Ok(fd)
}

/// Whether the writer has attached: only then is the region safe to hand to readers.
#[cfg(not(loom))]
pub fn is_sealed_region(fd: &OwnedFd) -> bool {
    mapping::is_sealed_for_readers(fd.as_fd())
}

/// The same region, opened so that it can only be read.
///
/// # Errors
/// The system has no descriptors left, or `/proc` is not there.
#[cfg(not(loom))]
pub fn reading_end(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
