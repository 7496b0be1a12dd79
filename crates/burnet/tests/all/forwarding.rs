//! A whole node with an emulated ring: the app `forwarding` connects all hosts without a broadcast storm, and goes on when a link fails.
//!
//! Only links are known here, and no hosts: each packet goes to all ports at the edge, which is the harder case for a ring.

use emulator::{SwitchOptions, Topology};
use std::time::Duration;
use test_bed::Bed;

/// How long one ping waits. The first ones can be lost, while no port is known.
const PING: Duration = Duration::from_secs(2);

const CONFIG: &str = "[network]\nservices = ['discovery']\n[app.forwarding]\n";

/// Far more than the pings of four hosts need, and far less than a storm makes in a moment.
const PACKET_INS_MAX: u64 = 20_000;

#[test]
fn a_ring_is_connected_without_a_storm_and_stays_so_when_a_link_fails() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let node = bed.node().config(CONFIG).log("info").start_ready();
    let network = node.network("ring,4,1", &SwitchOptions::default());
    node.wait("all hosts reach each other", |_| network.ping_all(PING).is_complete());
    let link = Topology::ring(4, 1).unwrap().links_between("s1", "s2")[0];
    network.set_link(link, false);
    node.wait("all hosts reach each other by the other way", |_| network.ping_all(PING).is_complete());
    network.set_link(link, true);
    node.wait("the ring is whole again", |_| network.ping_all(PING).is_complete());
    let seen = network.counters().packet_ins;
    assert!(seen < PACKET_INS_MAX, "{seen} packet-ins: {}", node.log());
}
