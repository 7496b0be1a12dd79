//! Rates that are repaired flow by flow are the rates that the definition gives for the flows that count now.

mod random;

use hose::{Change, Filling, FlowNo, Rates, VnicNo};
use random::{Random, shares};
use std::collections::BTreeMap;

/// Rates, and what a model knows of them.
#[derive(Default)]
struct Both {
    rates: Rates,
    filling: Filling,
    capacities: BTreeMap<u32, u64>,
    /// By number: the ends of the flows that count.
    flows: BTreeMap<u32, (u32, u32)>,
    /// What the changes have told.
    told: BTreeMap<u32, u64>,
}

impl Both {
    fn vnic(&mut self, vnic: u32, bps: u64) {
        let mut out = Vec::new();
        self.rates.set_vnic(VnicNo(vnic), bps, &mut self.filling, &mut out);
        self.capacities.insert(vnic, bps);
        self.check(&out);
    }

    fn add(&mut self, flow: u32, source: u32, destination: u32) {
        let mut out = Vec::new();
        let ends = (VnicNo(source), VnicNo(destination));
        self.rates.add(FlowNo(flow), ends, &mut self.filling, &mut out);
        self.flows.insert(flow, (source, destination));
        self.check(&out);
    }

    fn remove(&mut self, flow: u32) {
        let mut out = Vec::new();
        self.rates.remove(FlowNo(flow), &mut self.filling, &mut out);
        self.flows.remove(&flow);
        self.check(&out);
    }

    fn rate(&self, flow: u32) -> u64 {
        self.rates.rate_bps(FlowNo(flow))
    }

    fn check(&mut self, changes: &[Change]) {
        for Change { flow, before_bps, now_bps } in changes {
            let before = self.told.insert(flow.0, *now_bps).unwrap_or(0);
            assert_eq!((before, before == *now_bps), (*before_bps, false), "{flow:?}");
        }
        let pairs: Vec<_> = self.flows.values().copied().collect();
        let expected = shares(&self.capacities, &pairs);
        for (flow, ends) in &self.flows {
            assert_eq!(self.rate(*flow), expected[ends], "flow {flow} {ends:?} of {:?}", self.flows);
            assert_eq!(
                self.told.get(flow).copied().unwrap_or(0),
                expected[ends],
                "what changes told of {flow}"
            );
        }
        let counting = self.told.iter().filter(|(_, told)| **told > 0);
        assert!(counting.into_iter().all(|(flow, _)| self.flows.contains_key(flow)));
    }
}

fn with_vnics<const N: usize>(capacities: [u64; N]) -> Both {
    let mut both = Both::default();
    for (vnic, bps) in (0..).zip(capacities) {
        both.vnic(vnic, bps);
    }
    both
}

#[test]
fn the_papers_flows_get_8_10_and_2() {
    // Red has A and B with 8 Gbit/s; blue has E and F with 10, C and D with 2.
    let (mut red, mut blue) = (with_vnics([8, 8]), with_vnics([10, 10, 2, 2]));
    red.add(0, 0, 1);
    blue.add(0, 0, 1);
    blue.add(1, 2, 3);
    assert_eq!((red.rate(0), blue.rate(0), blue.rate(1)), (8, 10, 2));
}

#[test]
fn a_flow_gets_the_lesser_of_both_rates() {
    let mut both = with_vnics([10, 4]);
    both.add(0, 0, 1);
    both.add(1, 1, 0);
    assert_eq!((both.rate(0), both.rate(1)), (4, 4));
}

#[test]
fn what_a_slow_receiver_leaves_goes_to_the_senders_other_flows() {
    let mut both = with_vnics([90, 10, 100, 100]);
    for destination in 1..4 {
        both.add(destination, 0, destination);
    }
    assert_eq!((both.rate(1), both.rate(2), both.rate(3)), (10, 40, 40));
    both.remove(2);
    assert_eq!((both.rate(1), both.rate(2), both.rate(3)), (10, 0, 80));
}

#[test]
fn senders_that_meet_at_a_receiver_share_it_evenly() {
    let mut both = with_vnics([100, 100, 100, 10]);
    for source in 0..3 {
        both.add(source, source, 3);
    }
    assert_eq!((both.rate(0), both.rate(1), both.rate(2)), (3, 3, 3));
}

#[test]
fn a_vnic_without_bandwidth_gives_its_flows_none() {
    let mut both = with_vnics([0, 10]);
    both.add(0, 0, 1);
    assert_eq!(both.rate(0), 0);
    both.vnic(0, 5);
    assert_eq!(both.rate(0), 5);
    both.vnic(0, 0);
    both.remove(0);
}

/// A random life of a slice: flows come and go, VNICs get other rates.
fn live(seed: u64, vnics: u32, greatest_bps: u64, changes: usize) {
    let mut random = Random::new(seed);
    let mut both = Both::default();
    for vnic in 0..vnics {
        both.vnic(vnic, random.below(greatest_bps + 1));
    }
    for _ in 0..changes {
        let (source, destination) = (random.number(vnics), random.number(vnics));
        let flow = source * vnics + destination;
        match random.below(20) {
            0 => both.vnic(source, random.below(greatest_bps + 1)),
            _ if both.flows.contains_key(&flow) => both.remove(flow),
            _ if source != destination => both.add(flow, source, destination),
            _ => {}
        }
    }
}

#[test]
fn repaired_rates_are_those_from_scratch() {
    for seed in 0..40 {
        live(seed, 6, 40, 80);
        live(seed, 4, 3, 60);
        live(seed, 8, 10_000_000_000, 80);
    }
}

#[test]
fn repaired_rates_of_many_flows_are_those_from_scratch() {
    live(1, 20, 1_000_000, 250);
}

#[test]
fn each_flow_has_a_side_that_is_full_and_where_none_has_more() {
    let mut random = Random::new(7);
    let mut both = Both::default();
    for vnic in 0..12 {
        both.vnic(vnic, random.below(1_000_000));
    }
    for _ in 0..80 {
        let (source, destination) = (random.number(12), random.number(12));
        let flow = source * 12 + destination;
        if source != destination && !both.flows.contains_key(&flow) {
            both.add(flow, source, destination);
        }
    }
    for (flow, (source, destination)) in &both.flows {
        let limits = |at: &dyn Fn(&(u32, u32)) -> bool, vnic: u32| {
            let on: Vec<_> =
                both.flows.iter().filter(|(_, ends)| at(ends)).map(|(it, _)| both.rate(*it)).collect();
            let left = both.capacities[&vnic] - on.iter().sum::<u64>();
            // Of an even division, less than one bit/s for each flow is left.
            left < on.len() as u64 && on.iter().all(|rate| *rate <= both.rate(*flow))
        };
        let is_limited = limits(&|ends| ends.0 == *source, *source)
            || limits(&|ends| ends.1 == *destination, *destination);
        assert!(is_limited, "flow {flow}");
    }
}
