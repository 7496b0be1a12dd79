//! Burnet with real switches, a real Mininet and other people's controllers.
//!
//! Each scenario has a sandbox of its own, so they run beside each other. Those that work run two at a time, and those that mostly wait
//! run meanwhile (`system_tests::scenario`). It decides nothing: each module says what it asks.

mod bundles;
mod edge;
mod emulated_switches;
mod failover;
mod foreign_rules;
mod hostile;
mod learning_switch;
mod probed;
mod proxied;
mod punt_meter;
mod slices;
mod stand_in;
mod tenants;
