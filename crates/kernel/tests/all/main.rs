//! All tests of the kernel by its public interface, but those that count allocations, in one program: one link instead of sixteen.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod bounds;
mod bundles;
mod closed_groups;
mod decisions;
mod deputies;
mod effects;
mod emulated;
mod entries;
mod flowspace;
mod found;
mod identity;
mod later_tables;
mod many_zones;
mod metering;
mod ordered;
mod owners;
mod precedence;
mod prepared;
mod regrant;
mod vendor;
mod wide_rules;
mod withdrawals;
