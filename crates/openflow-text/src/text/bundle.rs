//! Prints the messages of bundles, without the bundled message.

use std::fmt::{self, Write};

use super::bit_names;
use openflow::message::*;

/// The types of a bundle control message by number.
pub(super) const CONTROL_TYPES: [(u16, &str); 8] = [
    (BUNDLE_OPEN_REQUEST, "OPEN_REQUEST"),
    (BUNDLE_OPEN_REPLY, "OPEN_REPLY"),
    (BUNDLE_CLOSE_REQUEST, "CLOSE_REQUEST"),
    (BUNDLE_CLOSE_REPLY, "CLOSE_REPLY"),
    (BUNDLE_COMMIT_REQUEST, "COMMIT_REQUEST"),
    (BUNDLE_COMMIT_REPLY, "COMMIT_REPLY"),
    (BUNDLE_DISCARD_REQUEST, "DISCARD_REQUEST"),
    (BUNDLE_DISCARD_REPLY, "DISCARD_REPLY"),
];

/// The flags of a bundle.
pub(super) const FLAGS: &[(u32, &str)] =
    &[(BUNDLE_ATOMIC as u32, "atomic"), (BUNDLE_ORDERED as u32, "ordered")];

pub(super) fn control(out: &mut String, control: &BundleControl) -> fmt::Result {
    let name = CONTROL_TYPES.iter().find(|(number, _)| *number == control.control);
    // Open vSwitch prints nothing for a number that it does not know.
    let name = name.map_or("", |(_, name)| name);
    bundle_id(out, control.bundle_id)?;
    write!(out, " type={name} flags=")?;
    bit_names(out, control.flags.into(), FLAGS)
}

/// The lines above the bundled message.
pub(super) fn add(out: &mut String, add: &BundleAdd) -> fmt::Result {
    bundle_id(out, add.bundle_id)?;
    out.write_str(" flags=")?;
    bit_names(out, add.flags.into(), FLAGS)?;
    out.write_char('\n')
}

/// In C, the hexadecimal form of zero has no prefix.
fn bundle_id(out: &mut String, id: u32) -> fmt::Result {
    let prefix = if id == 0 { "" } else { "0x" };
    write!(out, "\n bundle_id={prefix}{id:x}")
}
