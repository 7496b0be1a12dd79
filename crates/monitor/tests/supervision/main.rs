//! The supervisor on a pretended machine: what it does about what (`reactions`, `safe_mode`), what it finds out
//! (`incidents`), and what holds whatever happens (`promises`).

// The lint's exception for tests does not reach the functions that tests share.
#![allow(clippy::unwrap_used)]

mod incidents;
mod listening;
mod packages;
mod promises;
mod reactions;
mod reloading;
mod safe_mode;
mod world;
