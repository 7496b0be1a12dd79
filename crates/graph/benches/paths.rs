//! How long paths and repairs take on a network of 206 switches and 416 cables.
//!
//! In: a network from a seed. Out: criterion's report.

use criterion::{Criterion, criterion_group, criterion_main};
use flow::{DatapathId, PortNo};
use graph::{Disjoint, Graph, SwitchNo};
use std::hint::black_box;
use view::{ConnectPoint, Link, LinkId, LinkKind, LinkState, Weight};

const SWITCHES: u64 = 206;
const CABLES: u64 = 416;

fn link(from: u64, to: u64) -> Link {
    let point = |switch: u64, peer: u64| ConnectPoint {
        switch: DatapathId(switch + 1),
        port: PortNo(u32::try_from(peer + 1).expect("it is there")),
    };
    Link {
        id: LinkId { from: point(from, to), to: point(to, from) },
        found: LinkKind::Direct,
        state: LinkState::Up,
        capacity_kbps: 10_000_000,
        latency_us: Some(100),
        since_ms: 0,
        annotations: Default::default(),
    }
}

/// A ring, so that all are connected, and chords.
fn network() -> (Graph, Vec<Link>) {
    let mut graph = Graph::new();
    let ring = (0..SWITCHES).map(|one| (one, (one + 1) % SWITCHES));
    let chords = (0..CABLES - SWITCHES).map(|one| (one % SWITCHES, (one * 37 + 11) % SWITCHES));
    let cables: Vec<_> = ring.chain(chords.filter(|(one, two)| one != two)).collect();
    let mut links = Vec::new();
    for (one, two) in cables {
        for link in [link(one, two), link(two, one)] {
            graph.put_link(&link).expect("it is there");
            links.push(link);
        }
    }
    (graph, links)
}

fn paths(criterion: &mut Criterion) {
    let (mut graph, links) = network();
    let hops = graph.metric(&Weight::Hops).expect("it is there");
    for to in 0..SWITCHES {
        graph.distance(hops, SwitchNo(0), SwitchNo(u32::try_from(to).expect("it is there")));
    }
    let six: Vec<_> = (0..206u32 * 206)
        .map(|pair| (SwitchNo(pair / 206), SwitchNo(pair % 206)))
        .filter(|(from, to)| graph.distance(hops, *from, *to) == 5)
        .collect();
    let (mut path, mut next) = (Vec::with_capacity(64), 0);
    criterion.bench_function("a path of six switches", |bencher| {
        bencher.iter(|| {
            next += 1;
            let (from, to) = six[next % six.len()];
            path.clear();
            black_box(graph.path(hops, from, to, next as u64, &mut path))
        });
    });
    let mut number = 0;
    criterion.bench_function("a link fails and heals, 206 trees", |bencher| {
        bencher.iter(|| {
            number += 1;
            let mut link = links[number % links.len()].clone();
            graph.remove_link(link.id);
            link.state = LinkState::Up;
            graph.put_link(&link).expect("it is there");
        });
    });
    criterion.bench_function("two paths without a common switch", |bencher| {
        bencher.iter(|| {
            next += 1;
            black_box(graph.disjoint(hops, six[next % six.len()], 2, Disjoint::Switches, |_, _| true))
        });
    });
}

criterion_group!(benches, paths);
criterion_main!(benches);
