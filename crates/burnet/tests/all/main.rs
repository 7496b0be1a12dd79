//! All tests of the program by its public interface, but those of resource limits, in one program: one link of a whole node instead of twelve.
//!
//! Tests of resource limits are apart: they look at what the whole process uses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod apps;
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
mod new_app;
mod node;
mod northbound;
mod owners_before;
mod packages;
mod reference;
mod reload;
mod rules_before;
mod shared_view;
mod slices;
mod store;
mod trouble;
