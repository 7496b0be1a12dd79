//! Whether the figures of a run in real time can be believed: the meter.
//!
//! ```text
//!   releases: when they were meant, and when they were ──┐
//!   frames that the machine lost ────────────────────────┼──> Meter ──> Verdict: valid, doubtful or invalid; why and when
//!   readings of the machine, each second ────────────────┘
//! ```
//!
//! An emulation in real time is right only if the machine keeps up with it. A machine that does not keep up delays
//! packets in ways that no switch does, and nobody sees that in the results. The meter sees it.
//!
//! Everything here is pure. Time and readings come in as arguments. The memory of a meter is fixed.

mod delays;
mod meter;
mod second;
pub mod thresholds;
mod verdict;

pub use delays::{DelayPair, Delays};
pub use meter::{MachineReading, Meter, Release};
pub use verdict::{Cause, Finding, Span, Validity, Verdict};
