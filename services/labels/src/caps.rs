//! Caps: what each flow may send over links that are overbooked, in proportion to the nominal rates.
//!
//! ```text
//!   links that changed, time ──> Caps ──> flows with their caps, and flows that have none any more
//! ```
//!
//! An agent forgets a cap that is not repeated while the service speaks of caps at all. So nothing is lost for good with a connection. A service that has
//! just begun says nothing of caps until [`Rebuilding`] is over: caps of the earlier process hold meanwhile.
//!
//! In: the flows that count, capacities, the time. Out: caps. It knows no agent and sends nothing. A flow over no overbooked link never has a cap.

use edge::shares::{Claim, Crossing, UNLIMITED_BPS, on_links};
use hose::{Flows, LinkNo, Pair, SliceNo};
use std::collections::{BTreeMap, BTreeSet};

/// The most flows that get caps. Further ones keep what the feedback of their receivers allows: to divide a link costs time for each flow.
pub const CAPPED_MAX: usize = 4_096;

/// The least time between two divisions. A flow that begins or ends waits for it.
const DIVIDE_EVERY_MS: u64 = 20;

/// How often each cap is repeated. Agents forget one after three of these.
const REPEAT_EVERY_MS: u64 = 1_000;

/// How long a service that has begun says nothing of caps at most. Five seconds after its start, a slice says that it has reported all
/// flows. An agent dials each second. The service does not wait longer for those that are missing.
pub const REBUILDING_MS: u64 = 10_000;

/// How long it waits after all have reported. A flow whose shaper confirms nothing counts 200 ms after its meter's word.
const SETTLES_MS: u64 = 1_000;

/// The time after the begin of the service in which it does not know all flows.
#[derive(Clone, Copy, Debug)]
pub struct Rebuilding {
    until_ms: u64,
    are_all_there: bool,
}

impl Rebuilding {
    /// It begins now.
    pub fn new(now_ms: u64) -> Rebuilding {
        Rebuilding { until_ms: now_ms.saturating_add(REBUILDING_MS), are_all_there: false }
    }

    /// All slices and agents have reported, or not.
    pub fn on_reported(&mut self, are_all_there: bool, now_ms: u64) {
        if are_all_there && !self.are_all_there {
            self.are_all_there = true;
            self.until_ms = self.until_ms.min(now_ms.saturating_add(SETTLES_MS));
        }
    }

    /// When it is over.
    pub fn until_ms(&self) -> u64 {
        self.until_ms
    }
}

/// The caps that agents were told.
#[derive(Clone, Debug, Default)]
pub struct Caps {
    overbooked: BTreeSet<LinkNo>,
    told: BTreeMap<Pair, u64>,
    /// Something changed since the last division.
    is_dirty: bool,
    divided_ms: Option<u64>,
    repeated_ms: u64,
}

impl Caps {
    /// These links have other sums or capacities.
    pub fn on_changed(&mut self, links: &[LinkNo], flows: &Flows) {
        for link in links {
            let is_now = flows.labels().is_overbooked(*link);
            let was = if is_now { !self.overbooked.insert(*link) } else { self.overbooked.remove(link) };
            self.is_dirty |= was || is_now;
        }
    }

    /// The cap of a flow, as it was told last.
    pub fn of(&self, pair: Pair) -> Option<u64> {
        self.told.get(&pair).copied()
    }

    /// When [`Caps::take`] has something next. `has_agents`: somebody is to hear that there are none, too.
    pub fn next_ms(&self, has_agents: bool) -> Option<u64> {
        let divide = self.is_dirty.then(|| self.divided_ms.map_or(0, |at| at + DIVIDE_EVERY_MS));
        let repeat = (has_agents || !self.told.is_empty()).then_some(self.repeated_ms + REPEAT_EVERY_MS);
        [divide, repeat].into_iter().flatten().min()
    }

    /// Whether all caps are repeated now: an agent that gets none then has none.
    pub fn is_repeating(&self, now_ms: u64) -> bool {
        now_ms >= self.repeated_ms + REPEAT_EVERY_MS
    }

    /// The caps that agents are told now. `None`: the flow has no cap any more.
    pub fn take(
        &mut self,
        flows: &Flows,
        slices: impl IntoIterator<Item = SliceNo>,
        now_ms: u64,
    ) -> Vec<(Pair, Option<u64>)> {
        let is_due = |at: Option<u64>, every_ms| at.is_none_or(|at| now_ms >= at + every_ms);
        let mut changes: Vec<(Pair, Option<u64>)> = Vec::new();
        if self.is_dirty && is_due(self.divided_ms, DIVIDE_EVERY_MS) {
            let wanted = caps_of(&self.overbooked, flows, slices);
            let is_new = |(pair, rate): &(&Pair, &u64)| self.told.get(*pair) != Some(*rate);
            changes.extend(wanted.iter().filter(is_new).map(|(pair, rate)| (*pair, Some(*rate))));
            let free = self.told.keys().filter(|pair| !wanted.contains_key(pair));
            changes.extend(free.map(|pair| (*pair, None)));
            self.told = wanted;
            (self.is_dirty, self.divided_ms) = (false, Some(now_ms));
        }
        if self.is_repeating(now_ms) {
            self.repeated_ms = now_ms;
            changes.retain(|(_, rate)| rate.is_none());
            changes.extend(self.told.iter().map(|(pair, rate)| (*pair, Some(*rate))));
        }
        changes
    }
}

/// What flows get of overbooked links: weighted max-min, with nominal rates as weights. Other links carry the nominal rates of all their flows, so
/// they limit none to less. The rehearsal of slices has its caps from here too.
pub fn caps_of(
    overbooked: &BTreeSet<LinkNo>,
    flows: &Flows,
    slices: impl IntoIterator<Item = SliceNo>,
) -> BTreeMap<Pair, u64> {
    if overbooked.is_empty() {
        return BTreeMap::new();
    }
    let links: Vec<LinkNo> = overbooked.iter().copied().collect();
    let place = |link: &LinkNo| links.binary_search(link).ok();
    let counting = slices.into_iter().flat_map(|slice| flows.flows(slice)).filter(|flow| flow.counts);
    let sharing: Vec<(Pair, u64, Vec<usize>)> = counting
        .map(|flow| (flow.pair, flow.rate.bps(), flow.links.iter().filter_map(place).collect()))
        .filter(|(_, _, places): &(_, _, Vec<usize>)| !places.is_empty())
        .take(CAPPED_MAX)
        .collect();
    // What is not divided here, as the reservations of intents, is not given away.
    let mut left: Vec<u64> = links.iter().map(|link| flows.labels().total(*link).bps()).collect();
    for (_, rate_bps, places) in &sharing {
        places.iter().for_each(|place| left[*place] = left[*place].saturating_sub(*rate_bps));
    }
    let capacity = |link: &LinkNo| flows.labels().capacity(*link).unwrap_or_default().bps();
    let capacities: Vec<u64> =
        links.iter().zip(&left).map(|(link, others)| capacity(link).saturating_sub(*others)).collect();
    let crossings: Vec<Crossing<'_>> = sharing
        .iter()
        .map(|(_, rate_bps, links)| Crossing {
            claim: Claim { guarantee_bps: *rate_bps, demand_bps: UNLIMITED_BPS },
            links,
        })
        .collect();
    let rates = on_links(&capacities, &crossings);
    sharing.iter().map(|(pair, ..)| *pair).zip(rates).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hose::{Bandwidth, Path, VnicNo};

    const G: u64 = 1_000_000_000;
    const BLUE: SliceNo = SliceNo(0);
    const RED: SliceNo = SliceNo(1);

    fn pair(slice: SliceNo) -> Pair {
        Pair { slice, source: VnicNo(0), destination: VnicNo(1) }
    }

    /// Links of 10 Gbit/s. Blue may send 8 from one VNIC to the other, and red 10.
    struct Scene {
        flows: Flows,
        caps: Caps,
    }

    impl Scene {
        fn new() -> Scene {
            let mut flows = Flows::default();
            for link in 0..3 {
                flows.labels_mut().set_capacity(LinkNo(link), Bandwidth::from_bps(10 * G)).unwrap();
            }
            for (slice, rate) in [(BLUE, 8), (RED, 10)] {
                for vnic in [VnicNo(0), VnicNo(1)] {
                    flows.put_vnic(slice, vnic, Bandwidth::from_bps(rate * G)).unwrap();
                }
            }
            Scene { flows, caps: Caps::default() }
        }

        fn path(&mut self, slice: SliceNo, links: &[u32]) {
            let links: Vec<LinkNo> = links.iter().copied().map(LinkNo).collect();
            self.flows.on_path(pair(slice), Path::new(&links).unwrap(), 1).unwrap();
        }

        fn take(&mut self, now_ms: u64) -> Vec<(Pair, Option<u64>)> {
            let mut changed = Vec::new();
            self.flows.labels_mut().take_changed(&mut changed);
            self.caps.on_changed(&changed, &self.flows);
            self.caps.take(&self.flows, [BLUE, RED], now_ms)
        }
    }

    #[test]
    fn flows_on_an_overbooked_link_share_it_in_proportion() {
        let mut scene = Scene::new();
        scene.path(BLUE, &[0, 1]);
        assert_eq!(scene.take(2_000), [], "the link carries all");
        scene.path(RED, &[1, 2]);
        // Section II of the paper: 4.4 and 5.6.
        let both = [(pair(BLUE), Some(4_444_444_444)), (pair(RED), Some(5_555_555_556))];
        assert_eq!(scene.take(2_000 + DIVIDE_EVERY_MS), both);
        assert_eq!(scene.take(2_100), []);
    }

    #[test]
    fn a_cap_is_repeated_and_then_taken_back() {
        let mut scene = Scene::new();
        scene.path(BLUE, &[1]);
        scene.path(RED, &[1]);
        assert_eq!(scene.take(5_000).len(), 2);
        assert_eq!(scene.caps.next_ms(false), Some(5_000 + REPEAT_EVERY_MS));
        assert_eq!(scene.take(5_999), []);
        assert_eq!(scene.take(6_000).len(), 2);
        scene.path(RED, &[2]);
        assert_eq!(scene.take(6_100), [(pair(BLUE), None), (pair(RED), None)]);
        assert_eq!((scene.take(9_000), scene.caps.next_ms(false)), (Vec::new(), None));
    }

    #[test]
    fn two_changes_in_a_row_are_one_division() {
        let mut scene = Scene::new();
        scene.path(BLUE, &[1]);
        scene.path(RED, &[1]);
        scene.take(5_000);
        scene.flows.labels_mut().set_capacity(LinkNo(1), Bandwidth::from_bps(9 * G)).unwrap();
        assert_eq!(scene.take(5_001), []);
        assert_eq!(scene.caps.next_ms(false), Some(5_000 + DIVIDE_EVERY_MS));
        let halves = [(pair(BLUE), Some(4 * G)), (pair(RED), Some(5 * G))];
        assert_eq!(scene.take(5_000 + DIVIDE_EVERY_MS), halves);
    }

    #[test]
    fn a_link_that_is_down_or_reserved_gives_no_more_than_it_has() {
        let mut scene = Scene::new();
        scene.path(BLUE, &[1]);
        scene.path(RED, &[1]);
        scene.flows.labels_mut().shift(SliceNo(2), &[LinkNo(1)], 0, G).unwrap();
        assert_eq!(scene.take(5_000), [(pair(BLUE), Some(4 * G)), (pair(RED), Some(5 * G))]);
        scene.flows.labels_mut().set_capacity(LinkNo(1), Bandwidth::ZERO).unwrap();
        assert_eq!(scene.take(5_100), [(pair(BLUE), None), (pair(RED), None)], "nobody knows what it has");
    }
}
