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
mod lanes;
#[cfg(loom)]
mod region_interleavings;
#[cfg(not(loom))]
mod regions;
#[cfg(not(loom))]
mod streaming;

use std::sync::Arc;

use crate::lanes::Lanes;
use crate::layout::{HEADER_WORDS, INDEX_WORDS, Place};
use crate::memory::Memory;
use crate::reader::Reader;
use crate::ring::Ring;
use crate::writer::Writer;

/// A ring of `words` on an ordinary allocation, and both of its ends.
fn allocated(words: usize) -> (Ring, Writer, Reader) {
    const { assert!(INDEX_WORDS <= HEADER_WORDS) };
    let memory = Arc::new(Memory::allocated(HEADER_WORDS + words));
    let ring = Ring::new(memory, Place { indices: 0, data: HEADER_WORDS, words });
    (ring.clone(), Writer::new(ring.clone()), Reader::new(ring))
}

/// Both rings to an app, each of `words`, and all of their ends: packet-ins first.
fn two_lanes(words: usize) -> (Writer, Writer, Lanes) {
    let ((_, packets, packets_reader), (_, control, control_reader)) = (allocated(words), allocated(words));
    (packets, control, Lanes::new(packets_reader, control_reader))
}
