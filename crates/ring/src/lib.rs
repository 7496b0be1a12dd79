//! The port of a process zone: three byte rings in shared memory, whose other end is hostile. Also the [regions](region), in
//! which many apps read the table of a service.
//!
//! ```text
//!                       one sealed memfd                      two eventfds
//!            ┌──────────────────────────────────────┐
//!  kernel    │ header: magic, version, sizes        │    kernel ──wake_app───→ app
//!  Producer ─┤ packets   ▒▒▒▒▒ packet-ins ▒▒▒▒▒▒▒ ──┼┐                        app
//!  Producer ─┤ control   ▒▒▒▒▒ other events ▒▒▒▒▒ ──┼┴ pop_into: control first
//!  Consumer ─┼─ from_app ▒▒▒▒▒ command frames ▒▒▒ ──┤ Producer
//!            └──────────────────────────────────────┘    kernel ←─wake_kernel─ app
//!
//!  in:   frames (any bytes, at most MAX_FRAME_BYTES), file descriptors from whoever made the port
//!  out:  the same frames, each ring's in the same order, wake-ups, or a PeerFault that says what the peer did
//! ```
//!
//! Events use two rings, so that rare control events do not wait behind the packet-ins of a flood. [`AppEnd::pop_into`]
//! defines their order.
//!
//! A ring has one producer and one consumer. Pushed frames are invisible until one [`Producer::publish`] makes them
//! visible together. It wakes the peer only if the peer has announced that it sleeps. So many frames cost one store and
//! at most one system call.
//!
//! The peer has the same memory mapped writable and may write anything into it at any time. Therefore an end trusts
//! only private copies of its own indices and of the sizes. It checks each index of the peer against them. It reads a
//! frame's length once, and copies a frame before use. Its work is bounded by the current frame. After a violation by
//! the peer, the end returns the same [`PeerFault`] from then on.
//!
//! A frame is copied in aligned 64-bit relaxed atomic words. A plain copy would be a data race, which a compiler may
//! turn into reading a length twice. Atomic words are defined behaviour whatever the peer does. So only the mapping
//! itself is `unsafe`, and the same code runs on an ordinary allocation under Miri and on loom's atomics. The copy is
//! split at the end of the ring anyway, so the data is mapped once, not twice in sequence.
//!
//! Never here: the meaning of a frame (see `abi`), blocking in the kernel's end, allocation per frame, a system call
//! that the peer could make block.
//!
//! # Checking it
//!
//! ```text
//! cargo test -p ring@0.1.0
//! RUSTFLAGS="--cfg loom" cargo test -p ring@0.1.0 --lib --release      every interleaving of src/tests/interleavings.rs
//! cargo +nightly miri test -p ring@0.1.0 --lib                        what needs no mmap
//! ```

#![cfg_attr(loom, allow(dead_code, reason = "without descriptors part of the algorithm has no caller"))]

mod atomic;
#[cfg(not(loom))]
mod board;
mod fault;
mod lanes;
mod layout;
#[allow(unsafe_code, reason = "a mapping of shared memory can only be made and read through raw pointers")]
mod memory;
#[cfg(not(loom))]
mod port;
mod reader;
pub mod region;
mod ring;
#[cfg(not(loom))]
mod wake;
mod writer;

#[cfg(test)]
mod tests;

#[cfg(not(loom))]
pub use board::{BOARD_SLOTS, Board};
pub use fault::{Full, PeerFault, PortFault};
pub use layout::{MAX_FRAME_BYTES, Sizes};
#[cfg(not(loom))]
pub use port::{AppEnd, Consumer, KernelEnd, Port, PortFds, Producer};
pub use ring::frame_bytes;
