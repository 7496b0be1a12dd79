//! The supervisor on a pretended machine: what it does about what (`reactions`), and what holds whatever happens
//! (`promises`).

// The lint's exception for tests does not reach the functions that tests share.
#![allow(clippy::unwrap_used)]

mod promises;
mod reactions;
mod world;
