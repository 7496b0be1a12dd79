//! The tracer against the software switch: on random rules, groups and packets both must say the same.
//!
//! In: seeds. Out: nothing, or the seed with both answers. A rule that the switch refuses is in neither.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod frames;
mod network;
mod rules;
mod seed;
mod switch;
