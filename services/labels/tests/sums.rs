//! Labels against the sums from scratch, while slices change, messages are lost and doubled, and the service crashes.
//!
//! Three slices report through a network that loses queries and answers, and intents reserve bandwidth. A model knows what the rules of each slice make. In
//! the end, all has arrived, and each label is what a computation from nothing gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use hose::{Bandwidth, Flows, LinkNo, Pair, Path, SliceNo, VnicNo};
use labels::{Effect, Engine};
use labels_contract::{Entry, Heard, Hose, Label, Next, Report, Reporter, State, Vnic};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use view::LinkId;

const SLICES: [&str; 3] = ["blue", "green", "red"];
const VNICS: u64 = 4;
const LINKS: u64 = 5;

/// Splitmix.
struct Luck(u64);

impl Luck {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn link(number: u64) -> LinkId {
    format!("1/{}-2/{}", number + 1, number + 1).parse().unwrap()
}

fn vnic(number: u64) -> String {
    format!("v{number}")
}

/// A slice as it is.
struct Slice {
    reporter: Reporter,
    session: u64,
    rates: [u64; VNICS as usize],
    paths: BTreeMap<(u64, u64), Vec<u64>>,
    shown: BTreeSet<u64>,
    /// What it was told by its stream.
    told: BTreeMap<LinkId, Label>,
    state: State,
}

impl Slice {
    fn all(&self) -> Vec<Entry> {
        let links = self.shown.iter().map(|number| Entry::Link { link: link(*number) });
        let paths = self.paths.iter().map(|((from, to), links)| path(*from, *to, links));
        links.chain(paths).collect()
    }

    fn hose(&self) -> Hose {
        let vnics = (0..VNICS).zip(self.rates);
        let vnics =
            vnics.map(|(number, rate_bps)| (vnic(number), Vnic { rate_bps, number: None, agent: None }));
        Hose { vnics: vnics.collect(), ..Hose::default() }
    }
}

fn path(from: u64, to: u64, links: &[u64]) -> Entry {
    let links = links.iter().copied().map(link).collect();
    Entry::Path { from: vnic(from), to: vnic(to), links, rules: 1 }
}

struct World {
    luck: Luck,
    engine: Engine,
    slices: Vec<Slice>,
    /// In bit/s; 0: not in the view.
    capacities: [u64; LINKS as usize],
    /// What intents reserve, in bit/s.
    reserved: [u64; LINKS as usize],
    now_ms: u64,
    is_lossy: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut luck = Luck(seed);
        let slices = SLICES.map(|name| Slice {
            reporter: Reporter::new(name, 1),
            session: 1,
            rates: std::array::from_fn(|_| 1 + luck.below(100)),
            paths: BTreeMap::new(),
            shown: BTreeSet::new(),
            told: BTreeMap::new(),
            state: State::default(),
        });
        let capacities = std::array::from_fn(|_| 100_000 * (1 + luck.below(5)));
        let mut world = World {
            luck,
            engine: Engine::default(),
            slices: slices.into(),
            capacities,
            reserved: [0; LINKS as usize],
            now_ms: 0,
            is_lossy: true,
        };
        world.start();
        world
    }

    /// The service begins, and knows nothing of flows.
    fn start(&mut self) {
        self.engine = Engine::default();
        for slice in &mut self.slices {
            (slice.told, slice.state) = (BTreeMap::new(), State::default());
        }
        let mut out = Vec::new();
        // What intents reserve can be known before links are.
        (0..LINKS).filter(|number| number % 2 == 0).for_each(|number| self.tell_reserved(number, &mut out));
        for (name, slice) in SLICES.iter().zip(&self.slices) {
            self.engine.put(name, &slice.hose(), self.now_ms, &mut out).unwrap();
        }
        for (number, capacity) in (0..).zip(self.capacities).filter(|(_, capacity)| *capacity > 0) {
            self.engine.on_link(link(number), Some(Bandwidth::from_bps(capacity)), self.now_ms, &mut out);
        }
        (0..LINKS).filter(|number| number % 2 == 1).for_each(|number| self.tell_reserved(number, &mut out));
        self.take(out);
        for slice in &self.slices {
            assert!(slice.state.stale && slice.state.rebuild, "nobody has reported yet");
        }
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let named = |name: &str| SLICES.iter().position(|slice| *slice == name).unwrap();
            match effect {
                Effect::Told { slice, link, label: Some(label) } => {
                    assert_eq!(label.link, link);
                    self.slices[named(&slice)].told.insert(link, label);
                }
                Effect::Told { slice, link, label: None } => {
                    self.slices[named(&slice)].told.remove(&link);
                }
                Effect::State { slice, state } => self.slices[named(&slice)].state = state,
                Effect::Gone { slice } => panic!("{slice} is gone"),
                Effect::Cap { .. } | Effect::NoCaps { .. } => panic!("there is no agent"),
            }
        }
    }

    fn step(&mut self) {
        let which = self.luck.below(3) as usize;
        match self.luck.below(24) {
            0..8 => self.change_path(which),
            8..10 => self.change_shown(which),
            10..16 => self.deliver(which),
            16..18 => self.pass(self.now_ms + 1),
            18 => self.change_link(),
            19 => self.change_rate(which),
            22 => self.change_reserved(),
            20 if self.luck.below(4) == 0 => self.start(),
            21 if self.luck.below(3) == 0 => self.restart_slice(which),
            _ => {
                let by = self.luck.below(300);
                self.pass(self.now_ms + by);
            }
        }
    }

    fn change_path(&mut self, which: usize) {
        let (from, to) = (self.luck.below(VNICS), self.luck.below(VNICS));
        if from == to {
            return;
        }
        let mut links: Vec<u64> = (0..LINKS).filter(|_| self.luck.below(2) == 0).collect();
        links.truncate(3);
        let removes = self.luck.below(4) == 0;
        let slice = &mut self.slices[which];
        match removes {
            true => {
                slice.paths.remove(&(from, to));
                slice.reporter.say(Entry::NoPath { from: vnic(from), to: vnic(to) });
            }
            false => {
                slice.reporter.say(path(from, to, &links));
                slice.paths.insert((from, to), links);
            }
        }
    }

    fn change_shown(&mut self, which: usize) {
        let number = self.luck.below(LINKS);
        let slice = &mut self.slices[which];
        if slice.shown.insert(number) {
            slice.reporter.say(Entry::Link { link: link(number) });
        } else {
            slice.shown.remove(&number);
            slice.reporter.say(Entry::NoLink { link: link(number) });
        }
    }

    fn change_link(&mut self) {
        let number = self.luck.below(LINKS);
        let capacity = 100_000 * self.luck.below(4);
        self.capacities[number as usize] = capacity;
        let mut out = Vec::new();
        let capacity = (capacity > 0).then_some(Bandwidth::from_bps(capacity));
        self.engine.on_link(link(number), capacity, self.now_ms, &mut out);
        self.take(out);
    }

    fn change_reserved(&mut self) {
        let number = self.luck.below(LINKS);
        self.reserved[number as usize] = 50_000 * self.luck.below(5);
        let mut out = Vec::new();
        self.tell_reserved(number, &mut out);
        self.take(out);
    }

    fn tell_reserved(&mut self, number: u64, out: &mut Vec<Effect>) {
        let reserved = Bandwidth::from_bps(self.reserved[number as usize]);
        self.engine.on_reserved(&[(link(number), reserved)], false, self.now_ms, out);
    }

    fn change_rate(&mut self, which: usize) {
        let number = self.luck.below(VNICS) as usize;
        self.slices[which].rates[number] = 1 + self.luck.below(100);
        let mut out = Vec::new();
        self.engine.put(SLICES[which], &self.slices[which].hose(), self.now_ms, &mut out).unwrap();
        self.take(out);
    }

    /// A process of a slice that was killed begins with the rules that are there.
    fn restart_slice(&mut self, which: usize) {
        let slice = &mut self.slices[which];
        slice.session += 1;
        slice.reporter = Reporter::new(SLICES[which], slice.session);
        let all = slice.all();
        slice.reporter.rebuild(all);
    }

    /// A report goes to the service, unless it is lost, and the answer comes back, unless that is.
    fn deliver(&mut self, which: usize) {
        let reporter = &mut self.slices[which].reporter;
        let Some(report) =
            reporter.again().cloned().or_else(|| reporter.next_report()).or_else(|| reporter.ask())
        else {
            return;
        };
        let fate = if self.is_lossy { self.luck.below(8) } else { 7 };
        if fate == 0 {
            return;
        }
        let mut heard = self.hear(&report);
        if fate == 1 {
            heard = self.hear(&report);
        }
        if fate == 2 {
            return;
        }
        assert_eq!(heard.refused, []);
        let slice = &mut self.slices[which];
        if slice.reporter.on_heard(&heard) == Next::Rebuild {
            let all = slice.all();
            slice.reporter.rebuild(all);
        }
    }

    fn hear(&mut self, report: &Report) -> Heard {
        let mut out = Vec::new();
        let heard = self.engine.on_report(report, self.now_ms, &mut out).unwrap();
        self.take(out);
        heard
    }

    /// The service is asked at the times that it wants.
    fn pass(&mut self, until_ms: u64) {
        while self.now_ms < until_ms {
            let due_ms = self.engine.next_due_ms().unwrap_or(until_ms);
            self.now_ms = due_ms.clamp(self.now_ms + 1, until_ms);
            let mut out = Vec::new();
            self.engine.on_time(self.now_ms, &mut out);
            self.take(out);
        }
    }

    /// What the service has of a slice.
    fn known(&self, which: usize) -> BTreeMap<(u64, u64), Vec<u64>> {
        let number = |name: &str| name[1..].parse().unwrap();
        let links = |ids: &[LinkId]| {
            ids.iter().map(|id| (0..LINKS).find(|number| link(*number) == *id).unwrap()).collect()
        };
        let flows = self.engine.flows(SLICES[which]).unwrap();
        flows.iter().map(|flow| ((number(&flow.from), number(&flow.to)), links(&flow.links))).collect()
    }

    /// Each label is what flows and reservations make of nothing.
    fn check(&self, paths: &[BTreeMap<(u64, u64), Vec<u64>>]) {
        let mut loads = BTreeMap::new();
        for (which, paths) in paths.iter().enumerate() {
            for (links, rate) in rates(&self.slices[which].rates, paths) {
                links.iter().for_each(|link| *loads.entry((which, *link)).or_insert(0) += rate);
            }
        }
        for (which, name) in SLICES.iter().enumerate() {
            for label in self.engine.labels(name).unwrap() {
                let number = (0..LINKS).find(|number| link(*number) == label.link).unwrap();
                let others = (0..SLICES.len()).filter(|other| *other != which);
                let flows: u64 = others.filter_map(|other| loads.get(&(other, number))).sum();
                let sum = flows + self.reserved[number as usize];
                let capacity = self.capacities[number as usize];
                assert_eq!(label.capacity_kbps, capacity / 1000);
                assert_eq!(label.label_kbps, capacity.saturating_sub(sum) / 1000, "{name} {number}");
            }
        }
    }

    /// All is delivered, and time passes.
    fn settle(&mut self) {
        self.is_lossy = false;
        for _ in 0..20 {
            (0..SLICES.len()).for_each(|which| self.deliver(which));
        }
        self.pass(self.now_ms + 5_000);
    }
}

/// The rates of the paths of a slice, computed from nothing.
fn rates(vnics: &[u64], paths: &BTreeMap<(u64, u64), Vec<u64>>) -> Vec<(Vec<u64>, u64)> {
    let mut flows = Flows::default();
    for (number, rate) in (0..).map(VnicNo).zip(vnics) {
        flows.put_vnic(SliceNo(0), number, Bandwidth::from_bps(*rate)).unwrap();
    }
    let pair = |(from, to): (u64, u64)| Pair {
        slice: SliceNo(0),
        source: VnicNo(from as u32),
        destination: VnicNo(to as u32),
    };
    (0..LINKS as u32)
        .for_each(|link| flows.labels_mut().set_capacity(LinkNo(link), Bandwidth::ZERO).unwrap());
    paths.keys().for_each(|ends| flows.on_path(pair(*ends), Path::new(&[]).unwrap(), 1).unwrap());
    paths.iter().map(|(ends, links)| (links.clone(), flows.flow(pair(*ends)).unwrap().rate.bps())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn labels_are_always_the_sums_from_scratch(seed in any::<u64>()) {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.step();
            let known: Vec<_> = (0..SLICES.len()).map(|which| world.known(which)).collect();
            world.check(&known);
        }
        world.settle();
        let real: Vec<_> = world.slices.iter().map(|slice| slice.paths.clone()).collect();
        let known: Vec<_> = (0..SLICES.len()).map(|which| world.known(which)).collect();
        prop_assert_eq!(&known, &real, "all was reported");
        world.check(&real);
        for (which, slice) in world.slices.iter().enumerate() {
            prop_assert!(!slice.state.stale && !slice.state.rebuild);
            // Each slice was told of the links that it shows, and of no others, to 5 % of the capacity.
            let labels = world.engine.labels(SLICES[which]).unwrap();
            let in_view = slice.shown.iter().filter(|number| world.capacities[**number as usize] > 0);
            prop_assert_eq!(labels.len(), in_view.count());
            let told: Vec<LinkId> = slice.told.keys().copied().collect();
            let mut shown: Vec<LinkId> = labels.iter().map(|label| label.link).collect();
            shown.sort_unstable();
            prop_assert_eq!(told, shown);
            for label in labels {
                let told = slice.told[&label.link].label_kbps;
                let near = label.capacity_kbps / 20 + 1;
                prop_assert!(told.abs_diff(label.label_kbps) <= near, "{} was told {}: {:?}", SLICES[which], told, label);
            }
        }
    }
}
