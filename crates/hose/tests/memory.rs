//! How much memory a flow takes, with all that is kept for it.

use graph::LinkNo;
use hose::{Bandwidth, Flows, Pair, Path, SliceNo, VnicNo};

const SLICES: u32 = 50;
/// One more than a power of two, so that lists which double have the most to spare.
const FLOWS_PER_SLICE: u32 = 1_025;
const VNICS: u32 = 100;
const LINKS: u32 = 10_000;

/// What a flow may take, with its part of the sums.
const BYTES_PER_FLOW_MAX: i64 = 300;

#[test]
fn a_flow_of_six_hops_takes_at_most_300_bytes() {
    let mut flows = None;
    let taken = allocation_counter::measure(|| flows = Some(many()));
    let count = flows.map(|flows| flows.count()).expect("it is known");
    assert_eq!(count, (SLICES * FLOWS_PER_SLICE) as usize);
    let each = taken.bytes_current / i64::try_from(count).expect("it is known");
    println!("{each} bytes for each of {count} flows");
    assert!(each <= BYTES_PER_FLOW_MAX, "{each} bytes");
}

/// Each flow over six links anywhere in the network, which is the worst for the pages of sums. All are metered.
fn many() -> Flows {
    let mut flows = Flows::default();
    for link in (0..LINKS).map(LinkNo) {
        flows.labels_mut().set_capacity(link, Bandwidth::from_kbps(10_000_000)).expect("it is known");
    }
    for slice in (0..SLICES).map(SliceNo) {
        for vnic in (0..VNICS).map(VnicNo) {
            flows.put_vnic(slice, vnic, Bandwidth::from_kbps(1_000_000)).expect("it is known");
            flows.set_metered(slice, vnic, true, 0).expect("it is known");
        }
        for flow in 0..FLOWS_PER_SLICE {
            let (source, away) = (flow % VNICS, 1 + flow / VNICS);
            let pair = Pair { slice, source: VnicNo(source), destination: VnicNo((source + away) % VNICS) };
            let hop = |hop: u32| LinkNo((slice.0 * 7_919 + flow * 6_007 + hop * 1_637) % LINKS);
            flows
                .on_path(pair, Path::new(&[0, 1, 2, 3, 4, 5].map(hop)).expect("it is known"), 2)
                .expect("it is known");
            assert!(flows.on_traffic(pair, u64::from(flow)));
        }
    }
    flows
}
