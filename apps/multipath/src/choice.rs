//! Which path a flow takes, and when it moves.
//!
//! In: flows, paths, labels. Out: indices of paths. A label is what the flows of all *other* tenants leave of a link. The own flows
//! are known here, so what is free for one of them is the label minus the load of the others.

use std::collections::BTreeMap;

/// The least gain for which a flow moves, in percent of what it gets on its path. A move costs packets out of order and a change of labels.
const GAIN_PERCENT: u64 = 20;

/// A flow that has moved stays for this time at least, and up to twice as long by its number. Until then, all labels that the move has changed are
/// told: their increases are spread over a second. Flows that moved together then decide one after the other.
pub const STAY_MS: u64 = 1_000;

/// The most flows that are balanced. A further one still gets a path, but is not counted and never moves.
pub(crate) const FLOWS_MAX: usize = 65_536;

/// How a path is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The path with the most label minus own load. Flows move.
    Label,
    /// The path that the caller's number names: a random number for `random`, a hash of the flow for `hash` (ECMP). Flows never move.
    Number,
}

/// A flow that has a path.
#[derive(Clone, Debug)]
struct Placed<L> {
    rate_bps: u64,
    links: Vec<L>,
    /// It may move from then on.
    free_ms: u64,
}

/// The flows of one tenant, and what they put on each link. `F` names a flow, `L` a direction of a link.
#[derive(Clone, Debug)]
pub struct Balancer<F, L> {
    choose: Choose,
    stay_ms: u64,
    flows: BTreeMap<F, Placed<L>>,
    loads: BTreeMap<L, u64>,
}

/// What a path has left in bit/s: the least of label minus own load over its links. Without a link there is no limit.
fn room<'l, L: 'l>(
    links: impl IntoIterator<Item = &'l L>,
    label: impl Fn(&L) -> u64,
    load: impl Fn(&L) -> u64,
) -> u64 {
    links.into_iter().map(|link| label(link).saturating_sub(load(link))).min().unwrap_or(u64::MAX)
}

/// What a flow gets of this room in bit/s.
fn gets(rate_bps: u64, room_bps: u64) -> u64 {
    rate_bps.min(room_bps)
}

impl<F: Ord + Clone, L: Ord + Clone> Balancer<F, L> {
    /// A tenant without flows.
    pub fn new(choose: Choose) -> Self {
        Balancer { choose, stay_ms: STAY_MS, flows: BTreeMap::new(), loads: BTreeMap::new() }
    }

    /// The same with another time than [`STAY_MS`]. 0: flows may move at any time.
    #[must_use]
    pub fn staying(self, stay_ms: u64) -> Self {
        Balancer { stay_ms, ..self }
    }

    /// How long a flow with this number stays where it has moved.
    pub fn stays_ms(&self, number: u64) -> u64 {
        self.stay_ms.saturating_add(number.checked_rem(self.stay_ms).unwrap_or(0))
    }

    /// A flow begins, or must have another path because its own is gone. Returns the index of its path; `None` if there is none.
    ///
    /// `number` decides among paths that are equally good, so that tenants do not all choose the first.
    pub fn place(
        &mut self,
        flow: F,
        rate_bps: u64,
        paths: &[Vec<L>],
        number: u64,
        label: impl Fn(&L) -> u64,
    ) -> Option<usize> {
        self.remove(&flow);
        let chosen = match self.choose {
            Choose::Number => nth(paths.len(), number)?,
            Choose::Label => self.best(paths, number, &label, |_| 0)?.0,
        };
        if self.flows.len() < FLOWS_MAX {
            self.add(flow, Placed { rate_bps, links: paths[chosen].clone(), free_ms: 0 });
        }
        Some(chosen)
    }

    /// Labels have changed, or a flow may move again: does it move? Returns the index of its new path; `None` if it stays.
    pub fn reconsider(
        &mut self,
        flow: &F,
        paths: &[Vec<L>],
        number: u64,
        now_ms: u64,
        label: impl Fn(&L) -> u64,
    ) -> Option<usize> {
        let may_move = |placed: &&Placed<L>| self.choose == Choose::Label && now_ms >= placed.free_ms;
        let placed = self.flows.get(flow).filter(may_move)?;
        let rate_bps = placed.rate_bps;
        let own = |link: &L| if placed.links.contains(link) { rate_bps } else { 0 };
        let load = |link: &L| self.load(link).saturating_sub(own(link));
        let now_bps = gets(rate_bps, room(&placed.links, &label, load));
        if now_bps >= rate_bps {
            return None;
        }
        let (chosen, room_bps) = self.best(paths, number, &label, own)?;
        let then_bps = gets(rate_bps, room_bps);
        let needed = u128::from(now_bps) * u128::from(100 + GAIN_PERCENT);
        let is_gain = then_bps > now_bps && u128::from(then_bps) * 100 >= needed;
        if !is_gain || paths[chosen] == placed.links {
            return None;
        }
        let flow = flow.clone();
        self.remove(&flow);
        let free_ms = now_ms.saturating_add(self.stays_ms(number));
        self.add(flow, Placed { rate_bps, links: paths[chosen].clone(), free_ms });
        Some(chosen)
    }

    /// The rate of a flow is another, because its VNICs have more flows or fewer.
    pub fn set_rate(&mut self, flow: &F, rate_bps: u64) {
        if let Some(placed) = self.remove(flow) {
            self.add(flow.clone(), Placed { rate_bps, ..placed });
        }
    }

    /// A flow has ended.
    pub fn end(&mut self, flow: &F) {
        self.remove(flow);
    }

    /// The flows that get less than their rate: those that may move.
    pub fn short(&self, label: impl Fn(&L) -> u64) -> Vec<F> {
        let is_short = |placed: &Placed<L>| {
            let others = |link: &L| self.load(link).saturating_sub(placed.rate_bps);
            room(&placed.links, &label, others) < placed.rate_bps
        };
        self.flows.iter().filter(|(_, placed)| is_short(placed)).map(|(flow, _)| flow.clone()).collect()
    }

    /// What the own flows put on a link in bit/s.
    pub fn load(&self, link: &L) -> u64 {
        self.loads.get(link).copied().unwrap_or(0)
    }

    /// The best path, and its room. `own` is what the flow itself puts on a link now.
    fn best(
        &self,
        paths: &[Vec<L>],
        number: u64,
        label: &impl Fn(&L) -> u64,
        own: impl Fn(&L) -> u64,
    ) -> Option<(usize, u64)> {
        let load = |link: &L| self.load(link).saturating_sub(own(link));
        let rooms: Vec<u64> = paths.iter().map(|path| room(path, label, load)).collect();
        let most = *rooms.iter().max()?;
        let best: Vec<usize> = (0..rooms.len()).filter(|index| rooms[*index] == most).collect();
        Some((best[nth(best.len(), number)?], most))
    }

    fn add(&mut self, flow: F, placed: Placed<L>) {
        for link in &placed.links {
            let load = self.loads.entry(link.clone()).or_insert(0);
            *load = load.saturating_add(placed.rate_bps);
        }
        self.flows.insert(flow, placed);
    }

    fn remove(&mut self, flow: &F) -> Option<Placed<L>> {
        let placed = self.flows.remove(flow)?;
        for link in &placed.links {
            if let Some(load) = self.loads.get_mut(link) {
                *load = load.saturating_sub(placed.rate_bps);
                if *load == 0 {
                    self.loads.remove(link);
                }
            }
        }
        Some(placed)
    }
}

/// An index below a count.
fn nth(count: usize, number: u64) -> Option<usize> {
    // Below the count, which is an index.
    number.checked_rem(count as u64).map(|index| index as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 1_000_000_000;

    /// Two paths: over link 1 and over link 2.
    fn paths() -> [Vec<u32>; 2] {
        [vec![0, 1], vec![0, 2]]
    }

    fn labels(one: u64, two: u64) -> impl Fn(&u32) -> u64 + Copy {
        move |link| [10 * G, one, two][*link as usize]
    }

    #[test]
    fn figure_two_is_what_the_blue_tenant_does() {
        // A to B of the red tenant is on link 1 with 8 Gb/s.
        let labels = labels(2 * G, 10 * G);
        let mut blue = Balancer::new(Choose::Label);
        assert_eq!(blue.place("E-F", 10 * G, &paths(), 0, labels), Some(1));
        // C has another NIC than E.
        let paths = [vec![1], vec![2]];
        assert_eq!(blue.place("C-D", 2 * G, &paths, 0, labels), Some(0));
        assert_eq!((blue.load(&1), blue.load(&2)), (2 * G, 10 * G));
    }

    #[test]
    fn a_flow_moves_only_if_it_gets_a_fifth_more() {
        let check = |now: u64, then: u64, moves: Option<usize>| {
            let mut tenant = Balancer::new(Choose::Label);
            assert_eq!(tenant.place(1, 5 * G, &paths(), 0, labels(10 * G, 0)), Some(0));
            assert_eq!(tenant.reconsider(&1, &paths(), 0, 0, labels(now, then)), moves, "{now} and {then}");
        };
        check(0, 0, None);
        check(0, 1, Some(1));
        check(4 * G, 5 * G, Some(1));
        check(4 * G, 48 * G / 10 - 1, None);
        check(4 * G, 48 * G / 10, Some(1));
        // It has all that it needs, however much is free elsewhere.
        check(5 * G, 10 * G, None);
        // What counts is what it gets, not what is free.
        check(45 * G / 10, 10 * G, None);
    }

    #[test]
    fn a_flow_that_moved_stays_for_a_second_and_more_by_its_number() {
        for number in [0, 250, 1_250] {
            let mut tenant = Balancer::new(Choose::Label);
            tenant.place(1, 5 * G, &paths(), 0, labels(10 * G, 0));
            let mut at = |now_ms, one, two| tenant.reconsider(&1, &paths(), number, now_ms, labels(one, two));
            assert_eq!(at(100, 0, 10 * G), Some(1));
            let free_ms = 100 + STAY_MS + number % STAY_MS;
            assert_eq!((at(free_ms - 1, 10 * G, 0), at(free_ms, 10 * G, 0)), (None, Some(0)));
        }
    }

    #[test]
    fn of_equal_paths_the_number_decides_and_without_a_path_nothing_is_placed() {
        let mut tenant = Balancer::new(Choose::Label);
        for (number, chosen) in [(0, 0), (1, 1), (2, 0), (u64::MAX, 1)] {
            assert_eq!(tenant.place(1, G, &paths(), number, labels(G, G)), Some(chosen));
        }
        assert_eq!(tenant.place(1, G, &[], 0, labels(G, G)), None);
        assert_eq!((tenant.load(&0), tenant.short(labels(0, 0))), (0, vec![]));
    }

    #[test]
    fn random_and_hash_know_no_label_and_never_move() {
        let mut tenant = Balancer::new(Choose::Number);
        assert_eq!(tenant.place(1, G, &paths(), 7, labels(0, 10 * G)), Some(1));
        assert_eq!(tenant.place(2, G, &paths(), 8, labels(0, 10 * G)), Some(0));
        assert_eq!(tenant.reconsider(&2, &paths(), 0, 0, labels(0, 10 * G)), None);
        assert_eq!((tenant.load(&1), tenant.load(&2)), (G, G));
    }

    /// What the balancer keeps equals what follows from its flows, and each choice is the best one by a search of all paths.
    #[test]
    fn loads_are_sums_and_choices_are_best() {
        let mut state = 11u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..200 {
            let mut tenant = Balancer::new(Choose::Label);
            let mut model: BTreeMap<u64, (u64, Vec<u64>)> = BTreeMap::new();
            for _ in 0..30 {
                let labels: Vec<u64> = (0..8).map(|_| below(12)).collect();
                let label = |link: &u64| labels[*link as usize];
                let paths: Vec<Vec<u64>> =
                    (0..1 + below(4)).map(|_| (0..1 + below(3)).map(|_| below(8)).collect()).collect();
                let paths: Vec<Vec<u64>> = paths
                    .into_iter()
                    .map(|mut path| {
                        path.sort_unstable();
                        path.dedup();
                        path
                    })
                    .collect();
                let (flow, rate) = (below(6), 1 + below(5));
                model.remove(&flow);
                let load =
                    |link: &u64| model.values().filter(|it| it.1.contains(link)).map(|it| it.0).sum::<u64>();
                let rooms: Vec<u64> = paths
                    .iter()
                    .map(|path| path.iter().map(|link| label(link).saturating_sub(load(link))).min().unwrap())
                    .collect();
                let chosen = tenant.place(flow, rate, &paths, below(9), label).unwrap();
                assert_eq!(rooms[chosen], *rooms.iter().max().unwrap());
                model.insert(flow, (rate, paths[chosen].clone()));
                for link in 0..8 {
                    let sum: u64 = model.values().filter(|it| it.1.contains(&link)).map(|it| it.0).sum();
                    assert_eq!(tenant.load(&link), sum);
                }
            }
        }
    }
}
