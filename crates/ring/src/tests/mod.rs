//! Tests of the ring, by what must hold.

#[cfg(not(loom))]
mod attaching;
#[cfg(not(loom))]
mod frames;
#[cfg(not(loom))]
mod hostile;
#[cfg(loom)]
mod interleavings;
#[cfg(not(loom))]
mod streaming;

use std::sync::Arc;

use crate::layout::{CONTROL_WORDS, HEADER_WORDS, Place};
use crate::memory::Memory;
use crate::reader::Reader;
use crate::ring::Ring;
use crate::writer::Writer;

/// A ring of `words` on an ordinary allocation, and both of its ends.
fn allocated(words: usize) -> (Ring, Writer, Reader) {
    const { assert!(CONTROL_WORDS <= HEADER_WORDS) };
    let memory = Arc::new(Memory::allocated(HEADER_WORDS + words));
    let ring = Ring::new(memory, Place { control: 0, data: HEADER_WORDS, words });
    (ring.clone(), Writer::new(ring.clone()), Reader::new(ring))
}
