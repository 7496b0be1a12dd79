//! What a whole node does, one subject for each file. They are one program, because each program of tests has a whole node in it.
//!
//! Tests of resource limits are apart: they look at what the whole process uses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod audit;
mod backup;
mod claims;
mod commands;
mod discovery;
mod explain;
mod flow_rules;
mod forwarding;
mod hosts;
mod intents;
mod many_zones;
mod network_file;
mod owners_before;
mod reload;
mod rules_before;
mod shared_view;
mod store;
mod trouble;
