//! Constrained and disjoint paths are those that an exhaustive search finds.

mod random;

use flow::DatapathId;
use graph::{Disjoint, Found, Graph, LinkNo, SwitchNo};
use random::{Random, link, network, simple_paths};
use std::collections::BTreeSet;
use view::{Link, Weight};

const SWITCHES: u64 = 7;

struct Trial {
    graph: Graph,
    links: Vec<Link>,
    from: SwitchNo,
    to: SwitchNo,
    /// Every simple path, by the ids of its links.
    all: Vec<Vec<usize>>,
    random: Random,
}

fn trial(seed: u64, cables: u64) -> Option<Trial> {
    let mut random = Random::new(seed);
    let links = network(&mut random, SWITCHES, cables);
    let mut graph = Graph::new();
    links.iter().for_each(|link| assert!(graph.put_link(link).is_ok()));
    let number = |id| graph.topology().switch(DatapathId(id));
    let (from, to) = (number(0)?, number(1)?);
    let all = simple_paths(&links, 0, 1);
    Some(Trial { graph, links, from, to, all, random })
}

impl Trial {
    fn latency(&self, path: &[usize]) -> u64 {
        path.iter().map(|number| self.links[*number].latency_us.expect("it is there")).sum()
    }

    fn cost(&self, path: &[usize]) -> u64 {
        path.iter()
            .map(|number| self.links[*number].annotations["cost"].parse::<u64>().expect("it is there"))
            .sum()
    }

    fn numbers(&self, path: &[LinkNo]) -> Vec<usize> {
        let of = |link: &LinkNo| {
            self.links
                .iter()
                .position(|known| known.id == self.graph.topology().slot(*link).id)
                .expect("it is there")
        };
        path.iter().map(of).collect()
    }
}

fn weight() -> Weight {
    Weight::Annotation("cost".to_owned())
}

#[test]
fn the_path_within_a_latency_is_the_cheapest_of_all() {
    for seed in 0..300 {
        let Some(mut it) = trial(seed, 13) else { continue };
        let metric = it.graph.metric(&weight()).expect("it is there");
        let max_us = it.random.below(25) + 1;
        let avoided = it.random.below(it.links.len() as u64) as usize;
        let avoided_id = it.links[avoided].id;
        let allowed = || it.all.iter().filter(|path| !path.contains(&avoided));
        let expected = allowed().filter(|path| it.latency(path) <= max_us).map(|path| it.cost(path)).min();
        let fastest = allowed().map(|path| it.latency(path)).min();
        let mut path = Vec::new();
        let usable = |_, slot: &graph::LinkSlot| slot.id != avoided_id;
        let found = it.graph.within_latency(metric, (it.from, it.to), max_us, seed, usable, &mut path);
        let expected_found = match (expected, fastest) {
            (Some(_), _) => Found::Path,
            (None, Some(fastest)) => Found::TooSlow(fastest),
            (None, None) => Found::None,
        };
        assert_eq!(found, expected_found, "seed {seed}");
        let path = it.numbers(&path);
        if let Some(cost) = expected {
            assert!(it.all.contains(&path), "seed {seed}: {path:?}");
            assert_eq!(it.cost(&path), cost, "seed {seed}");
            assert!(it.latency(&path) <= max_us && !path.contains(&avoided), "seed {seed}");
        } else {
            assert!(path.is_empty());
        }
    }
}

/// The greatest number of disjoint paths up to a count, and their least cost in total, by trying all.
fn best(
    it: &Trial,
    chosen: &[&Vec<usize>],
    left: u32,
    shares: &impl Fn(&[usize], &[usize]) -> bool,
) -> (u32, u64) {
    let mut most = (0, 0);
    if left == 0 {
        return most;
    }
    let start = chosen
        .last()
        .map_or(0, |last| it.all.iter().position(|path| path == *last).expect("it is there") + 1);
    for path in &it.all[start..] {
        if chosen.iter().all(|other| !shares(other, path)) {
            let more: Vec<_> = chosen.iter().copied().chain([path]).collect();
            let (count, cost) = best(it, &more, left - 1, shares);
            let this = (count + 1, cost + it.cost(path));
            if this.0 > most.0 || this.0 == most.0 && this.1 < most.1 {
                most = this;
            }
        }
    }
    most
}

#[test]
fn disjoint_paths_are_as_many_and_as_cheap_as_can_be() {
    for seed in 0..120 {
        let Some(mut it) = trial(seed, 10) else { continue };
        let metric = it.graph.metric(&weight()).expect("it is there");
        let inner = |path: &[usize]| -> BTreeSet<_> {
            path.iter().skip(1).map(|number| it.links[*number].id.from.switch).collect()
        };
        let shares_link = |one: &[usize], two: &[usize]| one.iter().any(|number| two.contains(number));
        // Two paths over parallel cables share no switch between the ends.
        let shares_switch =
            |one: &[usize], two: &[usize]| shares_link(one, two) || !inner(one).is_disjoint(&inner(two));
        for count in 1..=3 {
            for what in [Disjoint::Links, Disjoint::Switches] {
                let found = it.graph.disjoint(metric, (it.from, it.to), count, what, |_, _| true);
                let found: Vec<_> = found.iter().map(|path| it.numbers(path)).collect();
                let expected = match what {
                    Disjoint::Links => best(&it, &[], count, &shares_link),
                    Disjoint::Switches => best(&it, &[], count, &shares_switch),
                };
                let cost = found.iter().map(|path| it.cost(path)).sum::<u64>();
                assert_eq!((found.len() as u32, cost), expected, "seed {seed}, {count} {what:?}: {found:?}");
                let clashes = |one: usize, two: usize| match what {
                    Disjoint::Links => {
                        let is_back = |first: &usize, second: &usize| {
                            it.links[*first].id.reversed() == it.links[*second].id
                        };
                        let has_back = |first| found[two].iter().any(|second| is_back(first, second));
                        shares_link(&found[one], &found[two]) || found[one].iter().any(has_back)
                    }
                    Disjoint::Switches => shares_switch(&found[one], &found[two]),
                };
                for two in 0..found.len() {
                    assert!((0..two).all(|one| !clashes(one, two)), "seed {seed}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn a_full_link_is_not_used_until_something_is_given_back() {
    let mut graph = Graph::new();
    for (one, two) in [(0, 1), (0, 2), (2, 1)] {
        graph.put_link(&link(one, two, 0)).expect("it is there");
    }
    let hops = graph.metric(&Weight::Hops).expect("it is there");
    let number = |graph: &Graph, id| graph.topology().switch(DatapathId(id)).expect("it is there");
    let ends = (number(&graph, 0), number(&graph, 1));
    let hops_with = |graph: &mut Graph, kbps: u64| {
        let mut path = Vec::new();
        let usable = |_, slot: &graph::LinkSlot| slot.free_kbps().is_some_and(|free| free >= kbps);
        graph.constrained(hops, ends, 0, usable, &mut path).then_some(path)
    };
    let direct = hops_with(&mut graph, 600_000).expect("it is there");
    assert_eq!(direct.len(), 1);
    graph.topology_mut().reserve(direct[0], 600_000);
    assert_eq!(hops_with(&mut graph, 400_000).expect("it is there").len(), 1);
    assert_eq!(hops_with(&mut graph, 400_001).expect("it is there").len(), 2);
    graph.topology_mut().release(direct[0], 600_000);
    assert_eq!(hops_with(&mut graph, 1_000_000).expect("it is there").len(), 1);
    assert_eq!(hops_with(&mut graph, 1_000_001), None);
}
