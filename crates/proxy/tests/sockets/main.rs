//! The proxy between two sockets of this machine.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod between;
mod sessions;
mod taps;
