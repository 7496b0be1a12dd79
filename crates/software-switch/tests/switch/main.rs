//! Tests of the switch from outside: messages and frames in, messages and frames out.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod dsl;
mod forwarding;
mod groups;
mod protocol;
mod remembering;
mod rules;

use software_switch::Switch;

/// The options of a bench's switch, which plays no profile.
fn options_of(options: software_switch::SwitchOptions) -> software_switch::SwitchOptions {
    options
}

/// It has all of this.
fn has(_: dsl::Part) -> bool {
    true
}
