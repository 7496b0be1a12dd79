//! The virtual switch from outside: a tenant on one side, a software switch on the other.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod addresses;
mod damage;
mod forwarding;
mod groups;
mod handshake;
mod journal_corpus;
mod labels;
mod leftovers;
mod memory;
mod packets;
mod reports;
mod rules;
mod shaping;
mod withdrawing;
mod world;
