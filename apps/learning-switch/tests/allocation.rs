//! From a packet-in's bytes to the flow mod's nothing is allocated once the buffers have grown: session, kernel, the C table, a trusted
//! learning switch and back. A counting allocator says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../benches/path/mod.rs"]
mod path;

use openflow::Version;
use path::{Stage, Worker, batch};

fn check(version: Version) {
    let (mut worker, messages) = (Worker::new(version), batch(version));
    let grown = allocation_counter::measure(|| worker.round(Stage::Path, &messages));
    let counted = allocation_counter::measure(|| (0..20).for_each(|_| worker.round(Stage::Path, &messages)));
    assert_eq!(counted.count_total, 0, "OpenFlow {version}; while buffers grew: {}", grown.count_total);
    assert!(worker.said() > 72 * messages.len(), "each packet-in is answered with a flow mod");
}

#[test]
fn a_packet_in_and_its_flow_mod_allocate_nothing_in_1_0() {
    check(Version::V1_0);
}

#[test]
fn a_packet_in_and_its_flow_mod_allocate_nothing_in_1_3() {
    check(Version::V1_3);
}
