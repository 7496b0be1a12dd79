//! Flows come, move, fall silent and go; the sums are always those of the flows that count now.

mod random;

use graph::LinkNo;
use hose::{Bandwidth, Flows, IDLE_MS, Pair, Path, Refusal, SliceNo, Step, VnicNo, coarse};
use random::{Random, shares};
use std::collections::BTreeMap;

const RED: SliceNo = SliceNo(0);
const BLUE: SliceNo = SliceNo(1);

fn gbps(number: u64) -> Bandwidth {
    Bandwidth::from_kbps(number * 1_000_000)
}

fn pair(slice: SliceNo, source: u32, destination: u32) -> Pair {
    Pair { slice, source: VnicNo(source), destination: VnicNo(destination) }
}

fn path(links: &[u32]) -> Path {
    let links: Vec<_> = links.iter().copied().map(LinkNo).collect();
    Path::new(&links).expect("it is known")
}

/// Two links of 10 Gbit/s: 0 is s3-s1, 1 is s3-s2. Red has A and B with 8; blue has E and F with 10, C and D with 2.
fn paper() -> Flows {
    let mut flows = Flows::default();
    for link in 0..2 {
        flows.labels_mut().set_capacity(LinkNo(link), gbps(10)).expect("it is known");
    }
    for (slice, rates) in [(RED, &[8, 8][..]), (BLUE, &[10, 10, 2, 2])] {
        for (vnic, rate) in (0..).zip(rates) {
            flows.put_vnic(slice, VnicNo(vnic), gbps(*rate)).expect("it is known");
        }
    }
    flows
}

fn labels(flows: &Flows, slice: SliceNo) -> [u64; 2] {
    [0, 1].map(|link| flows.labels().label(slice, LinkNo(link)).expect("it is known").kbps() / 1_000_000)
}

#[test]
fn the_papers_labels_at_its_three_times() {
    let mut flows = paper();
    assert_eq!((labels(&flows, RED), labels(&flows, BLUE)), ([10, 10], [10, 10]));
    flows.on_path(pair(RED, 0, 1), path(&[0]), 2).expect("it is known");
    assert_eq!((labels(&flows, RED), labels(&flows, BLUE)), ([10, 10], [2, 10]), "A to B");
    flows.on_path(pair(BLUE, 0, 1), path(&[1]), 2).expect("it is known");
    assert_eq!((labels(&flows, RED), labels(&flows, BLUE)), ([10, 0], [2, 10]), "E to F");
    flows.on_path(pair(BLUE, 2, 3), path(&[0]), 2).expect("it is known");
    assert_eq!((labels(&flows, RED), labels(&flows, BLUE)), ([8, 0], [2, 10]), "C to D");
    let rates = [pair(RED, 0, 1), pair(BLUE, 0, 1), pair(BLUE, 2, 3)]
        .map(|pair| flows.flow(pair).expect("it is known").rate);
    assert_eq!(rates, [gbps(8), gbps(10), gbps(2)]);
    assert!(!flows.labels().is_overbooked(LinkNo(0)) && !flows.labels().is_overbooked(LinkNo(1)));
}

#[test]
fn an_overbooked_link_has_a_label_of_nothing() {
    let mut flows = paper();
    flows.on_path(pair(RED, 0, 1), path(&[0]), 1).expect("it is known");
    flows.on_path(pair(BLUE, 0, 1), path(&[0]), 1).expect("it is known");
    assert!(flows.labels().is_overbooked(LinkNo(0)));
    assert_eq!((labels(&flows, RED), labels(&flows, BLUE)), ([0, 10], [2, 10]));
    assert_eq!(labels(&flows, SliceNo(9)), [0, 10], "a slice without flows sees all others");
    assert_eq!(flows.newest_first(LinkNo(0)), [BLUE, RED]);
}

#[test]
fn a_flow_with_a_meter_counts_from_its_report_on_and_until_it_is_idle() {
    let mut flows = paper();
    flows.set_metered(RED, VnicNo(1), true, 0).expect("it is known");
    let ab = pair(RED, 0, 1);
    assert!(!flows.on_traffic(ab, 5), "no path is known");
    flows.on_path(ab, path(&[0]), 1).expect("it is known");
    assert!(!flows.flow(ab).expect("it is known").counts, "a rule alone");
    assert!(flows.on_traffic(ab, 10));
    assert_eq!(labels(&flows, BLUE), [2, 10]);
    assert!(flows.on_traffic(ab, 1_500));
    flows.on_time(1_500 + IDLE_MS - 1);
    assert!(flows.flow(ab).expect("it is known").counts, "seen 2 s ago");
    let next_ms = flows.next_ms().expect("it is known");
    assert!((1_500 + IDLE_MS..1_500 + IDLE_MS + 100).contains(&next_ms), "{next_ms}");
    flows.on_time(next_ms);
    assert!(!flows.flow(ab).expect("it is known").counts);
    assert_eq!((labels(&flows, BLUE), flows.next_ms()), ([10, 10], None));
    assert!(flows.on_traffic(ab, 9_000), "it can begin again");
    assert_eq!(labels(&flows, BLUE), [2, 10]);
}

#[test]
fn a_meter_that_says_that_a_flow_is_silent_ends_it_at_once() {
    let mut flows = paper();
    let ab = pair(RED, 0, 1);
    flows.set_metered(RED, VnicNo(1), true, 0).expect("it is known");
    flows.on_path(ab, path(&[0]), 1).expect("it is known");
    // It lasts until the meter says something else.
    assert!(flows.on_traffic(ab, u64::MAX));
    flows.on_time(1_000_000);
    assert_eq!(labels(&flows, BLUE), [2, 10]);
    flows.on_silence(ab);
    assert_eq!(labels(&flows, BLUE), [10, 10]);
    assert!(flows.on_traffic(ab, 1_000_100));
    flows.on_time(1_000_100 + 3 * IDLE_MS);
    assert_eq!(labels(&flows, BLUE), [10, 10], "what was said before the silence is forgotten");
    flows.set_metered(RED, VnicNo(1), false, 2_000_000).expect("it is known");
    flows.on_silence(ab);
    assert_eq!(labels(&flows, BLUE), [2, 10], "nobody meters");
}

#[test]
fn a_flow_without_a_meter_counts_while_it_has_a_path() {
    let mut flows = paper();
    let ab = pair(RED, 0, 1);
    flows.on_path(ab, path(&[0]), 1).expect("it is known");
    flows.on_time(1_000_000);
    assert!(flows.flow(ab).expect("it is known").counts);
    assert!(!flows.on_traffic(ab, 0), "a report for a VNIC without a meter changes nothing");
    flows.on_no_path(ab);
    assert!(flows.flow(ab).is_none() && labels(&flows, BLUE) == [10, 10]);
}

#[test]
fn a_meter_that_comes_later_ends_flows_that_are_idle() {
    let mut flows = paper();
    let ab = pair(RED, 0, 1);
    flows.on_path(ab, path(&[0]), 1).expect("it is known");
    flows.set_metered(RED, VnicNo(1), true, 10_000).expect("it is known");
    assert!(flows.flow(ab).expect("it is known").counts);
    flows.on_time(12_100);
    assert!(!flows.flow(ab).expect("it is known").counts);
    flows.set_metered(RED, VnicNo(1), false, 13_000).expect("it is known");
    assert!(flows.flow(ab).expect("it is known").counts, "without a meter its path is enough");
    flows.on_time(20_000);
    assert!(flows.flow(ab).expect("it is known").counts);
}

#[test]
fn a_retrace_moves_the_sums() {
    let mut flows = paper();
    flows.on_path(pair(RED, 0, 1), path(&[0]), 1).expect("it is known");
    flows.on_path(pair(RED, 0, 1), path(&[1]), 3).expect("it is known");
    assert_eq!(labels(&flows, BLUE), [10, 2]);
    assert_eq!(flows.flow(pair(RED, 0, 1)).expect("it is known").rules, 3);
    let mut changed = Vec::new();
    flows.labels_mut().take_changed(&mut changed);
    assert_eq!(changed, [LinkNo(0), LinkNo(1)]);
}

#[test]
fn what_is_not_known_is_refused_and_changes_nothing() {
    let mut flows = paper();
    let check = |flows: &mut Flows, pair, links: &[u32], expected| {
        assert_eq!(flows.on_path(pair, path(links), 1), Err(expected));
        assert_eq!(flows.count(), 0);
    };
    check(&mut flows, pair(RED, 0, 7), &[0], Refusal::UnknownVnic(VnicNo(7)));
    check(&mut flows, pair(RED, 7, 0), &[0], Refusal::UnknownVnic(VnicNo(7)));
    check(&mut flows, pair(SliceNo(8), 0, 1), &[0], Refusal::UnknownVnic(VnicNo(0)));
    check(&mut flows, pair(RED, 1, 1), &[0], Refusal::OneVnic(VnicNo(1)));
    check(&mut flows, pair(RED, 0, 1), &[0, 2], Refusal::UnknownLink(LinkNo(2)));
    assert_eq!(labels(&flows, BLUE), [10, 10]);
    let too_great = Bandwidth::from_bps(u64::MAX);
    assert_eq!(flows.put_vnic(RED, VnicNo(0), too_great), Err(Refusal::TooMuch));
    assert_eq!(flows.put_vnic(SliceNo(4_096), VnicNo(0), gbps(1)), Err(Refusal::SliceNumber(SliceNo(4_096))));
    assert_eq!(flows.put_vnic(RED, VnicNo(4_096), gbps(1)), Err(Refusal::VnicNumber(VnicNo(4_096))));
    assert_eq!(flows.labels_mut().set_capacity(LinkNo(0), too_great), Err(Refusal::TooMuch));
}

#[test]
fn a_coarse_label_is_a_whole_number_of_steps() {
    let check = |label: u64, capacity: u64, step: &str, expected: u64| {
        let bps = Bandwidth::from_bps;
        assert_eq!(coarse(bps(label), bps(capacity), step.parse().expect("it is known")), bps(expected));
    };
    check(99, 100, "10%", 90);
    check(100, 100, "10%", 100);
    check(9, 100, "10%", 0);
    check(99, 100, "30%", 90);
    check(100, 100, "100%", 100);
    check(99, 100, "100%", 0);
    check(3, 5, "10%", 3);
    check(10_000_000_000_000, 10_000_000_000_000, "1%", 10_000_000_000_000);
    let mut flows = paper();
    flows
        .labels_mut()
        .set_step(BLUE, Some("25%".parse::<Step>().expect("it is known")))
        .expect("it is known");
    flows.on_path(pair(RED, 0, 1), path(&[0]), 1).expect("it is known");
    assert_eq!(labels(&flows, BLUE), [0, 10], "2 of 10 are less than a step");
    assert_eq!(flows.labels().exact(BLUE, LinkNo(0)), Some(gbps(2)));
}

#[test]
fn reservations_of_intents_count_as_a_slice() {
    let (mut flows, intents) = (paper(), SliceNo(5));
    flows.labels_mut().shift(intents, &[LinkNo(0), LinkNo(1)], 0, gbps(3).bps()).expect("it is known");
    assert_eq!((labels(&flows, RED), labels(&flows, intents)), ([7, 7], [10, 10]));
    flows.labels_mut().shift(intents, &[LinkNo(0)], gbps(3).bps(), 0).expect("it is known");
    assert_eq!(labels(&flows, RED), [10, 7]);
}

/// A slice, and the VNICs that send and receive.
type Key = (u32, u32, u32);

/// The path of a flow, and when it was seen last if it counts.
type Known = (Vec<u32>, Option<u64>);

/// The same events for the crate and for a model that computes everything from scratch.
struct Both {
    flows: Flows,
    /// By slice and VNIC.
    vnics: BTreeMap<(u32, u32), (u64, bool)>,
    known: BTreeMap<Key, Known>,
    now_ms: u64,
}

const SLICES: u32 = 3;
const VNICS: u32 = 5;
const LINKS: u32 = 130;

impl Both {
    fn new(random: &mut Random) -> Both {
        let mut both =
            Both { flows: Flows::default(), vnics: BTreeMap::new(), known: BTreeMap::new(), now_ms: 0 };
        for link in 0..LINKS {
            both.flows.labels_mut().set_capacity(LinkNo(link), Bandwidth::from_bps(90)).expect("it is known");
        }
        for slice in 0..SLICES {
            both.new_slice(slice, random);
        }
        both
    }

    fn new_slice(&mut self, slice: u32, random: &mut Random) {
        for vnic in 0..VNICS {
            let (bps, is_metered) = (random.below(100), random.below(2) == 0);
            self.flows.put_vnic(SliceNo(slice), VnicNo(vnic), Bandwidth::from_bps(bps)).expect("it is known");
            self.flows
                .set_metered(SliceNo(slice), VnicNo(vnic), is_metered, self.now_ms)
                .expect("it is known");
            self.vnics.insert((slice, vnic), (bps, is_metered));
        }
    }

    fn is_metered(&self, key: Key) -> bool {
        self.vnics[&(key.0, key.2)].1
    }

    fn step(&mut self, random: &mut Random) {
        let key = (random.number(SLICES), random.number(VNICS), random.number(VNICS));
        if key.1 == key.2 {
            return;
        }
        let pair = pair(SliceNo(key.0), key.1, key.2);
        match random.below(40) {
            0..15 => {
                let links: Vec<_> = (0..random.below(9)).map(|_| random.number(LINKS)).collect();
                self.flows.on_path(pair, path(&links), 1).expect("it is known");
                let counts = (!self.is_metered(key)).then_some(0);
                let seen = self.known.get(&key).map_or(counts, |(_, seen)| *seen);
                self.known.insert(key, (links, seen));
            }
            15..20 => {
                self.flows.on_no_path(pair);
                self.known.remove(&key);
            }
            20..32 => {
                let is_known = self.flows.on_traffic(pair, self.now_ms);
                let is_metered = self.is_metered(key);
                let known = self.known.get_mut(&key).filter(|_| is_metered);
                assert_eq!(is_known, known.is_some());
                if let Some((_, seen)) = known {
                    *seen = Some(self.now_ms);
                }
            }
            32..37 => self.pass_time(random),
            37 => {
                let (bps, is_metered) = (random.below(100), self.is_metered(key));
                self.flows
                    .put_vnic(pair.slice, pair.destination, Bandwidth::from_bps(bps))
                    .expect("it is known");
                self.vnics.insert((key.0, key.2), (bps, is_metered));
            }
            38 => self.turn_meter(key),
            _ if random.below(8) == 0 => {
                self.flows.remove_slice(pair.slice);
                self.known.retain(|other, _| other.0 != key.0);
                self.new_slice(key.0, random);
            }
            _ => {
                self.flows.remove_vnic(pair.slice, pair.source);
                self.known.retain(|other, _| other.0 != key.0 || other.1 != key.1 && other.2 != key.1);
                self.flows.put_vnic(pair.slice, pair.source, Bandwidth::from_bps(50)).expect("it is known");
                self.vnics.insert((key.0, key.1), (50, false));
            }
        }
    }

    /// The engine sees the end of a flow up to 100 ms late, so the model looks at whole tenths of a second.
    fn pass_time(&mut self, random: &mut Random) {
        self.now_ms += random.below(12) * 100;
        self.flows.on_time(self.now_ms);
        let (vnics, now_ms) = (&self.vnics, self.now_ms);
        for (key, (_, seen)) in &mut self.known {
            if vnics[&(key.0, key.2)].1 && seen.is_some_and(|seen| seen + IDLE_MS <= now_ms) {
                *seen = None;
            }
        }
    }

    fn turn_meter(&mut self, key: Key) {
        let (bps, was_metered) = self.vnics[&(key.0, key.2)];
        self.flows
            .set_metered(SliceNo(key.0), VnicNo(key.2), !was_metered, self.now_ms)
            .expect("it is known");
        self.vnics.insert((key.0, key.2), (bps, !was_metered));
        for (_, (_, seen)) in self.known.iter_mut().filter(|(other, _)| (other.0, other.2) == (key.0, key.2))
        {
            if was_metered || seen.is_some() {
                *seen = Some(self.now_ms);
            }
        }
    }

    fn check(&self) {
        let mut sums = BTreeMap::new();
        for slice in 0..SLICES {
            let of = |key: &Key| key.0 == slice;
            let capacities = self.vnics.iter().filter(|(key, _)| key.0 == slice);
            let capacities = capacities.map(|(key, (bps, _))| (key.1, *bps)).collect();
            let counting: Vec<_> =
                self.known.iter().filter(|(key, (_, seen))| of(key) && seen.is_some()).collect();
            let ends: Vec<_> = counting.iter().map(|(key, _)| (key.1, key.2)).collect();
            let rates = shares(&capacities, &ends);
            for (key, (links, _)) in counting {
                let rate = rates[&(key.1, key.2)];
                let flow = self.flows.flow(pair(SliceNo(slice), key.1, key.2)).expect("it is known");
                assert_eq!((flow.counts, flow.rate.bps()), (true, rate), "{key:?}");
                links.iter().for_each(|link| *sums.entry((*link, slice)).or_insert(0) += rate);
            }
        }
        assert_eq!(self.flows.count(), self.known.len());
        for link in 0..LINKS {
            let total: u64 = (0..SLICES).filter_map(|slice| sums.get(&(link, slice))).sum();
            for slice in 0..SLICES {
                let own = sums.get(&(link, slice)).copied().unwrap_or(0);
                let label =
                    self.flows.labels().label(SliceNo(slice), LinkNo(link)).expect("it is known").bps();
                assert_eq!(label, 90_u64.saturating_sub(total - own), "link {link}, slice {slice}");
            }
        }
    }
}

#[test]
fn sums_that_follow_changes_are_the_sums_from_scratch() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut both = Both::new(&mut random);
        for _ in 0..150 {
            both.step(&mut random);
            both.check();
        }
    }
}

#[test]
fn when_all_flows_are_gone_nothing_is_left_in_the_sums() {
    let mut random = Random::new(3);
    let mut both = Both::new(&mut random);
    (0..2_000).for_each(|_| both.step(&mut random));
    let pairs: Vec<_> = both.known.keys().map(|key| pair(SliceNo(key.0), key.1, key.2)).collect();
    pairs.into_iter().for_each(|pair| both.flows.on_no_path(pair));
    assert_eq!(both.flows.count(), 0);
    for link in (0..LINKS).map(LinkNo) {
        assert_eq!(both.flows.labels().total(link), Bandwidth::ZERO);
    }
}
