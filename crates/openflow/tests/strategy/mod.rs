//! Any message, for property tests: each type, in each version that has it, as reading gives it back.
//!
//! Fields that a version leaves out have the value that reading returns. For example, the table of a 1.0 packet-in is
//! 0. So a message that is written and read again is the same. A test file takes this in with `mod strategy;`.

#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    reason = "no test file uses all of it; and a test may"
)]

mod body;
mod language;
mod statistics;

pub use body::body;
pub use language::{instructions, match_of_v10, port};

use openflow::{Body, Message, Version};
use proptest::prelude::*;

/// One of the two versions.
pub fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V1_0), Just(Version::V1_3)]
}

/// Any message of a version. A message in one that adds it to a bundle has the same transaction id.
pub fn message(version: Version) -> impl Strategy<Value = Message> {
    (any::<u32>(), body(version)).prop_map(move |(xid, mut body): (u32, Body)| {
        if let Body::BundleAdd(add) = &mut body {
            add.message.xid = xid;
        }
        Message { version, xid, body }
    })
}

/// A flow mod. Of all messages too few are flow mods to pick them out.
pub fn flow_mod(version: Version) -> impl Strategy<Value = Message> {
    (any::<u32>(), body::flow_mod(version)).prop_map(move |(xid, it)| Message {
        version,
        xid,
        body: Body::FlowMod(it),
    })
}

/// Any message.
pub fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![message(Version::V1_0), message(Version::V1_3)]
}
