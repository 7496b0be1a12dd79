//! Shares of capacity: a guarantee is kept, spare capacity is lent, and an overbooked link is shared in proportion to guarantees.
//!
//! In: capacities, and what flows are guaranteed and want. Out: a rate for each flow (weighted max-min fairness, with the guarantee as
//! weight). It knows no VNIC and keeps no state.
//!
//! With a capacity that carries all guarantees, each flow gets at least what it wants up to its guarantee. With less capacity, flows that want
//! more share it as their guarantees are to each other (*The Price of Virtualization*, section II).

/// As much as it gets: the demand of a flow whose limit is its share.
pub const UNLIMITED_BPS: u64 = u64::MAX;

/// What one flow claims of a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The guarantee, which is its weight. 0 counts as 1.
    pub guarantee_bps: u64,
    /// What it wants. For a strict VNIC, the caller limits it to the guarantee.
    pub demand_bps: u64,
}

/// A flow that crosses several links.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// What it claims of each of them.
    pub claim: Claim,
    /// The links, as indices of capacities. The same index twice counts once.
    pub links: &'a [usize],
}

/// Divides one capacity. The rates are in the order of the claims.
pub fn divide(capacity_bps: u64, claims: &[Claim]) -> Vec<u64> {
    let flows: Vec<Crossing<'_>> =
        claims.iter().map(|claim| Crossing { claim: *claim, links: &[0] }).collect();
    on_links(&[capacity_bps], &flows)
}

/// The rates of flows that cross links with these capacities. They are in the order of the flows. A link that is not in the list has no
/// limit.
///
/// All rates grow together, in proportion to the guarantees. A flow stops if it has what it wants or if a link of it is full.
pub fn on_links(capacities_bps: &[u64], flows: &[Crossing<'_>]) -> Vec<u64> {
    let mut filling = Filling::new(capacities_bps, flows);
    while filling.step() {}
    filling.rates
}

/// The level of equal shares: what each of those that want more than it gets, if nobody gets more than it wants. Without such a
/// demand the level is the capacity.
pub fn level(capacity_bps: u64, demands_bps: &[u64]) -> u64 {
    let mut demands = demands_bps.to_vec();
    demands.sort_unstable();
    let mut left = capacity_bps;
    for (index, demand) in demands.iter().enumerate() {
        let sharers = (demands.len() - index) as u64;
        let share = left / sharers;
        if *demand > share {
            return share;
        }
        left -= demand;
    }
    capacity_bps
}

/// The state of progressive filling.
struct Filling<'a> {
    flows: &'a [Crossing<'a>],
    rates: Vec<u64>,
    is_open: Vec<bool>,
    /// What each link has left for flows that are open.
    left: Vec<f64>,
    /// The sum of the weights of its open flows.
    weights: Vec<f64>,
}

fn weight(flow: &Crossing<'_>) -> f64 {
    flow.claim.guarantee_bps.max(1) as f64
}

/// The links of a flow that have a limit, each once.
fn limits<'a>(flow: &Crossing<'a>, count: usize) -> impl Iterator<Item = usize> + use<'a> {
    let links = flow.links;
    links
        .iter()
        .enumerate()
        .filter(move |(index, link)| **link < count && !links[..*index].contains(link))
        .map(|(_, link)| *link)
}

impl<'a> Filling<'a> {
    fn new(capacities_bps: &[u64], flows: &'a [Crossing<'a>]) -> Self {
        let left: Vec<f64> = capacities_bps.iter().map(|capacity| *capacity as f64).collect();
        let mut weights = vec![0.0; left.len()];
        for flow in flows {
            limits(flow, left.len()).for_each(|link| weights[link] += weight(flow));
        }
        Filling { flows, rates: vec![0; flows.len()], is_open: vec![true; flows.len()], left, weights }
    }

    /// Closes the flows that stop first. Returns whether any flow was open.
    fn step(&mut self) -> bool {
        let count = self.left.len();
        let fill = |link: usize| self.left[link].max(0.0) / self.weights[link];
        // The fill is a rate for each unit of weight. A link decides by what it has left for open flows, a flow by what it wants.
        let stops = |index: usize| {
            let flow = &self.flows[index];
            let wanted = flow.claim.demand_bps as f64 / weight(flow);
            limits(flow, count).map(fill).fold(wanted, f64::min)
        };
        let open: Vec<usize> = (0..self.flows.len()).filter(|index| self.is_open[*index]).collect();
        let Some(lowest) = open.iter().map(|index| stops(*index)).reduce(f64::min) else { return false };
        // Flows that stop at the same fill stop together. Floating point gives nearly equal values for them.
        let closing: Vec<usize> =
            open.into_iter().filter(|index| stops(*index) <= lowest * (1.0 + 1e-12)).collect();
        for index in closing {
            self.close(index, lowest);
        }
        true
    }

    fn close(&mut self, index: usize, fill: f64) {
        let flow = &self.flows[index];
        let exact = (fill * weight(flow)).min(flow.claim.demand_bps as f64);
        // Rounded to the nearest: 3 x 1/3 of a capacity must not lose a bit a second each time.
        self.rates[index] = (exact.round() as u64).min(flow.claim.demand_bps);
        self.is_open[index] = false;
        for link in limits(flow, self.left.len()) {
            self.left[link] -= exact;
            self.weights[link] -= weight(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const G: u64 = 1_000_000_000;

    fn claim(guarantee: u64, demand: u64) -> Claim {
        Claim { guarantee_bps: guarantee, demand_bps: demand }
    }

    fn wants_all(guarantee: u64) -> Claim {
        claim(guarantee, UNLIMITED_BPS)
    }

    #[test]
    fn one_capacity_is_divided() {
        let check = |claims: &[Claim], expected: &[u64]| {
            assert_eq!(divide(10 * G, claims), expected, "{claims:?}");
        };
        check(&[], &[]);
        // Figure 2a: a VNIC of 8 gets 10 when it is alone, and a strict one gets 8.
        check(&[wants_all(8 * G)], &[10 * G]);
        check(&[claim(8 * G, 8 * G)], &[8 * G]);
        // Figure 2c.
        check(&[wants_all(8 * G), wants_all(2 * G)], &[8 * G, 2 * G]);
        // What one does not want is lent, and the guarantee of the other is untouched.
        check(&[wants_all(8 * G), claim(2 * G, G)], &[9 * G, G]);
        check(&[claim(8 * G, G), wants_all(2 * G)], &[G, 9 * G]);
        // Overbooked: in proportion.
        check(&[wants_all(8 * G), wants_all(10 * G)], &[4_444_444_444, 5_555_555_556]);
        check(&[wants_all(0), wants_all(0)], &[5 * G, 5 * G]);
    }

    #[test]
    fn section_two_is_4_4_and_5_6_and_5_6() {
        // Links: the NIC of A and C, that of E, s3 to s1, and the NIC of B and D. A to B and E to F meet between the switches.
        let capacities = [10 * G; 4];
        let flows = [
            Crossing { claim: wants_all(8 * G), links: &[0, 2, 3] },
            Crossing { claim: wants_all(10 * G), links: &[1, 2] },
            Crossing { claim: wants_all(2 * G), links: &[0, 3] },
        ];
        let rates = on_links(&capacities, &flows);
        assert_eq!(rates, [4_444_444_444, 5_555_555_556, 5_555_555_556]);
    }

    #[test]
    fn the_level_is_what_the_greedy_get() {
        let check = |demands: &[u64], expected: u64| assert_eq!(level(100, demands), expected, "{demands:?}");
        check(&[], 100);
        check(&[30], 100);
        check(&[UNLIMITED_BPS], 100);
        check(&[UNLIMITED_BPS, UNLIMITED_BPS], 50);
        check(&[30, UNLIMITED_BPS], 70);
        check(&[10, 80, 90], 45);
        check(&[60, 60], 50);
    }

    proptest! {
        /// The certificate of weighted max-min fairness: no link carries too much, and each flow has what it wants or crosses a full link
        /// on which no flow has more for its weight.
        #[test]
        fn rates_are_weighted_max_min(
            capacities in prop::collection::vec(1..100_000_000u64, 1..6),
            drawn in prop::collection::vec(
                (1..10_000_000u64, prop_oneof![Just(UNLIMITED_BPS), 0..50_000_000u64], prop::collection::vec(0..6usize, 1..4)),
                1..12,
            ),
        ) {
            let flows: Vec<Crossing<'_>> =
                drawn.iter().map(|(weight, demand, links)| Crossing { claim: claim(*weight, *demand), links }).collect();
            let rates = on_links(&capacities, &flows);
            let carried = |link: usize| -> f64 {
                flows.iter().zip(&rates).filter(|(flow, _)| flow.links.contains(&link)).map(|(_, rate)| *rate as f64).sum()
            };
            let slack = 2.0 * flows.len() as f64;
            for (link, capacity) in capacities.iter().enumerate() {
                prop_assert!(carried(link) <= *capacity as f64 + slack, "link {link} of {capacity} carries {}", carried(link));
            }
            let fill = |index: usize| rates[index] as f64 / flows[index].claim.guarantee_bps as f64;
            for (index, flow) in flows.iter().enumerate() {
                let is_content = rates[index] == flow.claim.demand_bps;
                let is_stopped = flow.links.iter().filter(|link| **link < capacities.len()).any(|link| {
                    let is_full = carried(*link) + slack >= capacities[*link] as f64;
                    let others = (0..flows.len()).filter(|other| flows[*other].links.contains(link));
                    let step = slack / flow.claim.guarantee_bps as f64;
                    is_full && others.into_iter().all(|other| {
                        fill(other) <= fill(index) + step + slack / flows[other].claim.guarantee_bps as f64
                    })
                });
                let is_free = flow.links.iter().all(|link| *link >= capacities.len());
                prop_assert!(is_content || is_stopped || is_free, "flow {index} of {flows:?} has {}", rates[index]);
            }
        }

        #[test]
        fn a_guarantee_is_kept_if_the_capacity_carries_all(
            drawn in prop::collection::vec((1..10_000_000u64, prop_oneof![Just(UNLIMITED_BPS), 0..50_000_000u64]), 1..12),
            spare in 0..50_000_000u64,
        ) {
            let claims: Vec<Claim> = drawn.iter().map(|(weight, demand)| claim(*weight, *demand)).collect();
            let sum: u64 = claims.iter().map(|claim| claim.guarantee_bps).sum();
            for (claim, rate) in claims.iter().zip(divide(sum + spare, &claims)) {
                prop_assert!(rate + 1 >= claim.guarantee_bps.min(claim.demand_bps));
            }
        }
    }
}
