//! A slice that owns all of a switch of 1.3 is a switch: the tests of the software switch, with a slice before it.
//!
//! What a slice does otherwise is in `dsl::Part`, and in `docs/reference/slices.md`. A test that needs such a part asks [`has`].

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]
#![allow(dead_code, reason = "tests that a slice has no part in use less of a module")]

mod sliced;

#[path = "../../../software-switch/tests/switch/dsl.rs"]
mod dsl;

#[path = "../../../software-switch/tests/conformance/configuration.rs"]
mod configuration;
#[path = "../../../software-switch/tests/conformance/controllers.rs"]
mod controllers;
#[path = "../../../software-switch/tests/conformance/exact_matches.rs"]
mod exact_matches;
#[path = "../../../software-switch/tests/conformance/flow_mod_refusals.rs"]
mod flow_mod_refusals;
#[path = "../../../software-switch/tests/conformance/flow_mods.rs"]
mod flow_mods;
#[path = "../../../software-switch/tests/conformance/groups.rs"]
mod groups;
#[path = "../../../software-switch/tests/conformance/handshake.rs"]
mod handshake;
#[path = "../../../software-switch/tests/conformance/meters.rs"]
mod meters;
#[path = "../../../software-switch/tests/conformance/packet_ins.rs"]
mod packet_ins;
#[path = "../../../software-switch/tests/conformance/packet_outs.rs"]
mod packet_outs;
#[path = "../../../software-switch/tests/conformance/ports.rs"]
mod ports;
#[path = "../../../software-switch/tests/conformance/statistics.rs"]
mod statistics;
#[path = "../../../software-switch/tests/conformance/table_features.rs"]
mod table_features;

#[path = "../../../software-switch/tests/switch/forwarding.rs"]
mod forwarding_of_switch;
#[path = "../../../software-switch/tests/switch/groups.rs"]
mod groups_of_switch;

#[path = "../../../software-switch/tests/switch/rules.rs"]
mod rules_of_switch;

use sliced::Switch;

/// The version of the physical switch.
const ON: openflow::Version = openflow::Version::V1_3;

/// The options of a bench's switch.
fn options_of(options: software_switch::SwitchOptions) -> software_switch::SwitchOptions {
    options
}

/// A slice has none of these but what is in the protocol.
fn has(part: dsl::Part) -> bool {
    part == dsl::Part::Version13
}
