//! The proxy in virtual time, before the software switch.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "../conversation/mod.rs"]
mod conversation;
mod delays;
mod errors;
mod meters;
mod order;
mod slow_motion;
mod stale;
mod streams;
mod tables;
mod waits;
mod world;
