//! A switch that plays the null profile does everything that a switch without a profile does, at the same time: the tests of
//! both are the same. Bundles are the exception, which such a switch does not have.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use profile::Profile;
use software_switch::{Profiles, Switch, SwitchOptions};

#[path = "../switch/dsl.rs"]
mod dsl;

#[path = "../conformance/configuration.rs"]
mod configuration;
#[path = "../conformance/controllers.rs"]
mod controllers;
#[path = "../conformance/exact_matches.rs"]
mod exact_matches;
#[path = "../conformance/flow_mod_refusals.rs"]
mod flow_mod_refusals;
#[path = "../conformance/flow_mods.rs"]
mod flow_mods;
#[path = "../switch/forwarding.rs"]
mod forwarding_of_switch;
#[path = "../conformance/groups.rs"]
mod groups;
#[path = "../conformance/handshake.rs"]
mod handshake;
#[path = "../conformance/meters.rs"]
mod meters;
#[path = "../conformance/packet_ins.rs"]
mod packet_ins;
#[path = "../conformance/packet_outs.rs"]
mod packet_outs;
#[path = "../conformance/ports.rs"]
mod ports;
#[path = "../switch/protocol.rs"]
mod protocol_of_switch;
#[path = "../switch/remembering.rs"]
mod remembering_of_switch;
#[path = "../switch/rules.rs"]
mod rules_of_switch;
#[path = "../conformance/standing_alone.rs"]
mod standing_alone;
#[path = "../conformance/statistics.rs"]
mod statistics;
#[path = "../conformance/table_features.rs"]
mod table_features;

/// The same options, with the null profile.
fn options_of(options: SwitchOptions) -> SwitchOptions {
    SwitchOptions { profiles: Profiles::for_all(Profile::null()), ..options }
}

/// It has all of this.
fn has(_: dsl::Part) -> bool {
    true
}
