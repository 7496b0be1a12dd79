//! Real sockets on 127.0.0.1: a worker's loop on one side, scripted switches on the other, in one thread and with a clock that the test
//! sets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod claims;
mod log;
mod node;
mod sessions;
mod switch;
mod tls;
mod unfriendly;
