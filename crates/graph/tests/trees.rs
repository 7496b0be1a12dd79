//! Trees that are repaired change by change are the trees that a search from scratch finds.

mod random;

use flow::DatapathId;
use graph::{Graph, LinkNo, NONE, SwitchNo};
use random::{Random, link, network};
use std::collections::BTreeMap;
use view::{Link, LinkId, LinkState, Weight};

const SWITCHES: u64 = 14;

/// The distances to a switch by Bellman and Ford, with the costs that the graph names.
fn from_scratch(graph: &Graph, cost: impl Fn(LinkNo) -> u32, to: SwitchNo) -> Vec<u32> {
    let mut distance = vec![NONE; graph.topology().switches()];
    distance[to.index()] = 0;
    for _ in 0..graph.topology().switches() {
        for (number, slot) in graph.topology().all_links() {
            let (own, behind) = (cost(number), distance[slot.to.index()]);
            if own != NONE && behind != NONE {
                distance[slot.from.index()] = distance[slot.from.index()].min(own + behind);
            }
        }
    }
    distance
}

/// The cost as the documentation of `Weight` has it.
fn cost_of(link: &Link, weight: &Weight) -> u32 {
    let cost = match weight {
        Weight::Hops => 1,
        Weight::Latency => link.latency_us.unwrap_or(1_000),
        Weight::Capacity if link.capacity_kbps == 0 => 1_000,
        Weight::Capacity => 1_000_000_000 / link.capacity_kbps,
        Weight::Annotation(name) => match link.annotations.get(name) {
            Some(text) => text.parse().expect("it is there"),
            None => return NONE,
        },
    };
    if link.state == LinkState::Up { u32::try_from(cost).expect("it is there") } else { NONE }
}

fn change(random: &mut Random, links: &mut BTreeMap<LinkId, Link>, graph: &mut Graph) {
    let number = random.below(links.len() as u64) as usize;
    let Some(link) = links.values_mut().nth(number) else { return };
    match random.below(5) {
        0 => link.state = LinkState::Down,
        1 => link.latency_us = Some(random.below(20) + 1),
        2 => drop(link.annotations.insert("cost".to_owned(), (random.below(6) + 1).to_string())),
        3 => drop(link.annotations.remove("cost")),
        _ => link.state = LinkState::Up,
    }
    if link.state == LinkState::Down && random.below(2) == 0 {
        graph.remove_link(link.id).expect("it is there");
    } else {
        graph.put_link(link).expect("it is there");
    }
}

#[test]
fn a_repaired_tree_is_the_one_computed_from_scratch() {
    let weights = [Weight::Hops, Weight::Latency, Weight::Capacity, Weight::Annotation("cost".to_owned())];
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut graph = Graph::new();
        let mut links: BTreeMap<_, _> =
            network(&mut random, SWITCHES, 24).into_iter().map(|link| (link.id, link)).collect();
        let metrics = weights.clone().map(|weight| graph.metric(&weight).expect("it is there"));
        for (number, link) in links.values().enumerate() {
            graph.put_link(link).expect("it is there");
            // Some trees exist before all switches are known.
            if number == 3 {
                metrics.iter().for_each(|metric| drop(graph.next_hops(*metric, SwitchNo(0), SwitchNo(1))));
            }
        }
        for step in 0..40 {
            change(&mut random, &mut links, &mut graph);
            for (metric, weight) in metrics.iter().zip(&weights) {
                for (number, slot) in graph.topology().all_links() {
                    let expected = cost_of(&links[&slot.id], weight);
                    assert_eq!(graph.cost(*metric, number), expected, "seed {seed}, step {step}");
                }
                let to = SwitchNo(
                    u32::try_from(random.below(graph.topology().switches() as u64)).expect("it is there"),
                );
                let expected = from_scratch(&graph, |link| graph.cost(*metric, link), to);
                for (from, expected) in (0..).map(SwitchNo).zip(expected) {
                    let distance = graph.distance(*metric, from, to);
                    assert_eq!(distance, expected, "seed {seed}, step {step}, {from:?} to {to:?}");
                }
            }
        }
    }
}

/// The links of a path by their ids, if the path is one.
fn ids(graph: &Graph, from: SwitchNo, to: SwitchNo, path: &[LinkNo]) -> Vec<LinkId> {
    let mut at = from;
    for link in path {
        assert_eq!(graph.topology().slot(*link).from, at);
        at = graph.topology().slot(*link).to;
    }
    assert_eq!(at, to);
    path.iter().map(|link| graph.topology().slot(*link).id).collect()
}

#[test]
fn a_path_is_a_shortest_one_and_does_not_depend_on_the_order_of_discovery() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let links = network(&mut random, SWITCHES, 24);
        let (mut forward, mut backward) = (Graph::new(), Graph::new());
        let hops = forward.metric(&Weight::Hops).expect("it is there");
        links.iter().for_each(|link| assert!(forward.put_link(link).is_ok()));
        links.iter().rev().for_each(|link| assert!(backward.put_link(link).is_ok()));
        assert_eq!(backward.metric(&Weight::Hops), Some(hops));
        for _ in 0..200 {
            let ends = [DatapathId(random.below(SWITCHES)), DatapathId(random.below(SWITCHES))];
            let hash = random.below(u64::MAX);
            let answers = [&mut forward, &mut backward].map(|graph| {
                let [from, to] = ends.map(|id| graph.topology().switch(id));
                let (from, to) = (from?, to?);
                let mut path = Vec::new();
                let is_there = graph.path(hops, from, to, hash, &mut path);
                let distance = graph.distance(hops, from, to);
                assert_eq!(is_there, distance != NONE);
                assert!(!is_there || path.len() == distance as usize);
                is_there.then(|| ids(graph, from, to, &path))
            });
            assert_eq!(answers[0], answers[1], "seed {seed}");
        }
    }
}

#[test]
fn hashes_spread_over_all_equal_paths() {
    let mut graph = Graph::new();
    // Three ways of two hops, one of three.
    for (one, two) in [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (0, 5), (5, 6), (6, 4)] {
        graph.put_link(&link(one, two, 0)).expect("it is there");
    }
    let hops = graph.metric(&Weight::Hops).expect("it is there");
    let number = |graph: &Graph, id| graph.topology().switch(DatapathId(id)).expect("it is there");
    let (from, to) = (number(&graph, 0), number(&graph, 4));
    let all = graph.equal_paths(hops, from, to, 16);
    assert_eq!((all.len(), graph.next_hops(hops, from, to).len()), (3, 3));
    assert_eq!(graph.equal_paths(hops, from, to, 2), all[..2]);
    let mut used = [0; 3];
    for hash in 0..3_000 {
        let mut path = Vec::new();
        assert!(graph.path(hops, from, to, hash, &mut path));
        used[all.iter().position(|one| *one == path).expect("it is there")] += 1;
    }
    assert!(used.iter().all(|count| (800..1_200).contains(count)), "{used:?}");
}

#[test]
fn a_path_of_a_known_tree_allocates_nothing() {
    let mut random = Random::new(1);
    let mut graph = Graph::new();
    network(&mut random, SWITCHES, 40).iter().for_each(|link| assert!(graph.put_link(link).is_ok()));
    let hops = graph.metric(&Weight::Hops).expect("it is there");
    let mut path = Vec::with_capacity(64);
    graph.path(hops, SwitchNo(0), SwitchNo(1), 0, &mut path);
    let info = allocation_counter::measure(|| {
        for hash in 0..1_000 {
            path.clear();
            graph.path(hops, SwitchNo(0), SwitchNo(1), hash, &mut path);
        }
    });
    assert_eq!(info.count_total, 0);
}
