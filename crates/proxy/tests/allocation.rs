//! Packet-ins pass without an allocation, once the proxy has seen as many as it holds at once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod packet_ins;

use openflow::Version;
use packet_ins::{Passes, cases};

/// More than the ring of frames holds.
const BEFORE: usize = 40_000;
const COUNTED: usize = 10_000;

#[test]
fn a_packet_in_allocates_nothing() {
    for (name, profile, method) in cases() {
        for version in [Version::V1_0, Version::V1_3] {
            let mut passes = Passes::new(profile.clone(), method, version);
            let mut bytes = 0;
            (0..BEFORE).for_each(|_| bytes += passes.pass());
            let allocated = allocation_counter::measure(|| (0..COUNTED).for_each(|_| bytes += passes.pass()));
            assert_eq!(allocated.count_total, 0, "{name} {version}");
            assert!(bytes > (BEFORE + COUNTED) * 50, "{name} {version}: {bytes} bytes have left");
            assert_eq!((passes.counters().packet_ins_lost(), passes.counters().packet_ins_unseen), (0, 0));
        }
    }
}
