//! How long a change takes: one flow of six hops, among a thousand flows and among a million.
//!
//! ```text
//!   changes                          criterion's report
//!   changes --count KIND FLOWS N     N changes and no report, to be run under callgrind
//! ```
//!
//! In: a number of flows in slices of a thousand, and 10,000 links, from a seed. Out: times, or nothing. There are three kinds of change:
//!
//! * `label`: a flow whose rate is known gets another one, and the one before.
//! * `pairs`: a flow ends, or starts again. Its VNICs have no other flow.
//! * `mesh`: the same, in a slice of 100 VNICs whose flows are all connected.

use criterion::{Criterion, criterion_group};
use graph::LinkNo;
use hose::{Bandwidth, Flows, Pair, Path, SliceNo, VnicNo};
use std::hint::black_box;

/// Flows of a slice: a thousand are one slice, and a million are a thousand slices of the same kind.
const EACH: u32 = 1_000;
const LINKS: u32 = 10_000;
const CAPACITY: Bandwidth = Bandwidth::from_kbps(10_000_000);

/// VNICs of a slice in which all flows are connected.
const MESH: u32 = 100;

/// A generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % u64::from(bound);
        u32::try_from(number).expect("it is below")
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Label,
    Pairs,
    Mesh,
}

/// The flows of all slices, and one list of what changes.
struct Bench {
    flows: Flows,
    kind: Kind,
    known: Vec<(Pair, Path)>,
    /// The flow that has ended last, until it starts again: so the others are always all but one.
    ended: Option<usize>,
    random: Random,
    changed: Vec<LinkNo>,
}

impl Bench {
    fn new(kind: Kind, count: u32) -> Bench {
        let mut flows = Flows::default();
        for link in (0..LINKS).map(LinkNo) {
            flows.labels_mut().set_capacity(link, CAPACITY).expect("it is known");
        }
        let random = Random(0x9e37_79b9_7f4a_7c15);
        let mut bench = Bench { flows, kind, known: Vec::new(), ended: None, random, changed: Vec::new() };
        for slice in (0..count / EACH).map(SliceNo) {
            bench.fill(slice);
        }
        bench
    }

    fn fill(&mut self, slice: SliceNo) {
        let vnics = if self.kind == Kind::Mesh { MESH } else { 2 * EACH };
        for vnic in (0..vnics).map(VnicNo) {
            let rate = Bandwidth::from_kbps(u64::from(1_000 + self.random.below(9_000)));
            self.flows.put_vnic(slice, vnic, rate).expect("it is known");
        }
        for flow in 0..EACH {
            let (source, destination) = match self.kind {
                Kind::Mesh => (flow % MESH, (flow % MESH + 1 + flow / MESH * 7) % MESH),
                _ => (2 * flow, 2 * flow + 1),
            };
            let pair = Pair { slice, source: VnicNo(source), destination: VnicNo(destination) };
            let path = self.path(slice);
            self.flows.on_path(pair, path.clone(), 2).expect("it is known");
            self.known.push((pair, path));
        }
    }

    /// Six links of the tenth of the network in which the slice is.
    fn path(&mut self, slice: SliceNo) -> Path {
        let first = slice.0 % 10 * (LINKS / 10);
        let links = [0; 6].map(|_: u32| LinkNo(first + self.random.below(LINKS / 10)));
        Path::new(&links).expect("it is short")
    }

    /// One change of one flow.
    fn change(&mut self) {
        let count = u32::try_from(self.known.len()).expect("it is below");
        let ended = self.ended.take();
        let number = ended.unwrap_or_else(|| self.random.below(count) as usize);
        let (pair, path) = &self.known[number];
        if self.kind == Kind::Label {
            let (before, labels) = (self.flows.flow(*pair), self.flows.labels());
            black_box(before.map(|flow| labels.label(SliceNo(0), flow.links[0])));
            // One more kbit/s, and away again: two changes of a rate.
            for (from, to) in [(0, 1_000), (1_000, 0)] {
                self.flows.labels_mut().shift(pair.slice, path.links(), from, to).expect("it is known");
            }
        } else if ended.is_none() {
            self.flows.on_no_path(*pair);
            self.ended = Some(number);
        } else {
            self.flows.on_path(*pair, path.clone(), 2).expect("it is known");
        }
        self.flows.labels_mut().take_changed(&mut self.changed);
        self.changed.clear();
    }
}

fn changes(criterion: &mut Criterion) {
    for (name, kind) in [("label", Kind::Label), ("pairs", Kind::Pairs), ("mesh", Kind::Mesh)] {
        for count in [1_000, 1_000_000] {
            let mut bench = Bench::new(kind, count);
            criterion.bench_function(&format!("{name}, {count} flows"), |bencher| {
                bencher.iter(|| bench.change());
            });
        }
    }
}

criterion_group!(benches, changes);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, kind, flows, rounds] = arguments.as_slice() else {
        benches();
        return Criterion::default().configure_from_args().final_summary();
    };
    assert_eq!(count, "--count", "changes --count KIND FLOWS N");
    let kind = match kind.as_str() {
        "label" => Kind::Label,
        "pairs" => Kind::Pairs,
        _ => Kind::Mesh,
    };
    let mut bench = Bench::new(kind, flows.parse().expect("a number of flows"));
    for _ in 0..rounds.parse().expect("a number of changes") {
        bench.change();
    }
}
