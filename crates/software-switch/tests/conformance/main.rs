//! Conformance to the specification. One file for each area, one test for each statement, in both versions if both
//! have it.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[path = "../switch/dsl.rs"]
mod dsl;

mod bundles;
mod configuration;
mod controllers;
mod exact_matches;
mod flow_mod_refusals;
mod flow_mods;
mod groups;
mod handshake;
mod meters;
mod packet_ins;
mod packet_outs;
mod ports;
mod standing_alone;
mod statistics;
mod table_features;

use software_switch::Switch;

/// The options of a bench's switch, which plays no profile.
fn options_of(options: software_switch::SwitchOptions) -> software_switch::SwitchOptions {
    options
}

/// It has all of this.
fn has(_: dsl::Part) -> bool {
    true
}
