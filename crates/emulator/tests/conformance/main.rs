//! Does the switch do what the specification says? One file for each area, one sentence for each case, both versions where
//! both have it.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[path = "../switch/dsl.rs"]
mod dsl;

mod controllers;
mod meters;
mod standing_alone;
