//! The network as a graph: the topology, and trees for each weight that somebody uses.
//!
//! ```text
//!   view::Link ──put_link──> Topology ──costs by weight──> Trees ──> path, equal_paths, constrained, disjoint
//! ```
//!
//! In: changes of links, questions. Out: paths. It decides which search answers a question, and no more.

use crate::bounded::Bounded;
use crate::disjoint::{self, Disjoint};
use crate::search::{Search, walk};
use crate::topology::{Change, LinkNo, LinkSlot, Refusal, SwitchNo, Topology};
use crate::trees::{COST_MAX, NONE, Trees, cost_of, is_tight};
use view::{Link, LinkId, Weight};

/// The maximum number of weights in use: the three that are built in, and annotations. One more is refused.
pub const METRICS_MAX: usize = 16;

/// The latency of a link that was not measured, for paths that are short by latency.
const LATENCY_UNKNOWN_US: u64 = 1_000;

/// The capacity of a link whose ports do not say their speed, for paths that are short by capacity: 1 Gbit/s.
const CAPACITY_UNKNOWN_KBPS: u64 = 1_000_000;

/// The capacity whose cost is 1: 1 Tbit/s.
const CAPACITY_REFERENCE_KBPS: u64 = 1_000_000_000;

/// The number of a weight in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetricNo(usize);

/// The result of a search with constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The path was appended.
    Path,
    /// No path leads there over the links that may be used.
    None,
    /// Paths lead there, and the fastest has this latency, which is beyond the bound.
    TooSlow(u64),
}

/// The graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    topology: Topology,
    metrics: Vec<(Weight, Trees)>,
    search: Search,
}

fn cost_by(weight: &Weight, link: &LinkSlot) -> u32 {
    if !link.is_up {
        return NONE;
    }
    let cost = match weight {
        Weight::Hops => 1,
        Weight::Latency => link.latency_us.unwrap_or(LATENCY_UNKNOWN_US),
        Weight::Capacity => {
            let known = Some(link.capacity_kbps).filter(|kbps| *kbps > 0).unwrap_or(CAPACITY_UNKNOWN_KBPS);
            CAPACITY_REFERENCE_KBPS / known
        }
        Weight::Annotation(name) => match link.annotations.get(name).and_then(|text| text.parse().ok()) {
            Some(cost) => cost,
            None => return NONE,
        },
    };
    u32::try_from(cost).unwrap_or(COST_MAX).clamp(1, COST_MAX)
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// The switches and links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The switches and links, to reserve on them.
    pub fn topology_mut(&mut self) -> &mut Topology {
        &mut self.topology
    }

    /// A link is known, or changed. The trees are repaired.
    ///
    /// # Errors
    /// There are too many switches or links.
    pub fn put_link(&mut self, link: &Link) -> Result<Change, Refusal> {
        let change = self.topology.put_link(link)?;
        self.update_costs(change.link);
        Ok(change)
    }

    /// A link is gone. `None` if it was never known.
    pub fn remove_link(&mut self, id: LinkId) -> Option<Change> {
        let change = self.topology.remove_link(id)?;
        self.update_costs(change.link);
        Some(change)
    }

    fn update_costs(&mut self, link: LinkNo) {
        let Graph { topology, metrics, .. } = self;
        for (weight, trees) in metrics {
            trees.set_cost(topology, link, cost_by(weight, topology.slot(link)));
        }
    }

    /// The number of a weight. `None`: [`METRICS_MAX`] others are in use.
    pub fn metric(&mut self, weight: &Weight) -> Option<MetricNo> {
        if let Some(known) = self.metrics.iter().position(|(known, _)| known == weight) {
            return Some(MetricNo(known));
        }
        if self.metrics.len() >= METRICS_MAX {
            return None;
        }
        let mut trees = Trees::default();
        for (link, slot) in self.topology.all_links() {
            trees.set_cost(&self.topology, link, cost_by(weight, slot));
        }
        self.metrics.push((weight.clone(), trees));
        Some(MetricNo(self.metrics.len() - 1))
    }

    /// The cost of a link.
    pub fn cost(&self, metric: MetricNo, link: LinkNo) -> u32 {
        cost_of(self.metrics[metric.0].1.costs(), link)
    }

    /// The distance between two switches; [`NONE`] if there is no path.
    pub fn distance(&mut self, metric: MetricNo, from: SwitchNo, to: SwitchNo) -> u32 {
        self.metrics[metric.0].1.to(&self.topology, to)[from.index()]
    }

    /// Appends a shortest path, chosen by a flow hash. `false`: there is none. It allocates nothing if the tree is known and
    /// the buffer has room.
    pub fn path(
        &mut self,
        metric: MetricNo,
        from: SwitchNo,
        to: SwitchNo,
        flow_hash: u64,
        out: &mut Vec<LinkNo>,
    ) -> bool {
        let Graph { topology, metrics, .. } = self;
        let trees = &mut metrics[metric.0].1;
        trees.to(topology, to);
        let (costs, distance) = trees.tree(to);
        walk(topology, costs, distance, from, flow_hash, out)
    }

    /// The links by which shortest paths to a switch begin.
    pub fn next_hops(&mut self, metric: MetricNo, from: SwitchNo, to: SwitchNo) -> Vec<LinkNo> {
        let Graph { topology, metrics, .. } = self;
        let trees = &mut metrics[metric.0].1;
        trees.to(topology, to);
        let (costs, distance) = trees.tree(to);
        let own = distance[from.index()];
        let arcs = topology
            .out(from)
            .iter()
            .filter(|arc| own != NONE && own > 0 && is_tight(costs, distance, own, **arc));
        arcs.map(|arc| arc.link).collect()
    }

    /// Shortest paths, in the order of their links' ids, at most `count`.
    pub fn equal_paths(
        &mut self,
        metric: MetricNo,
        from: SwitchNo,
        to: SwitchNo,
        count: usize,
    ) -> Vec<Vec<LinkNo>> {
        let (mut found, mut path) = (Vec::new(), Vec::new());
        if self.distance(metric, from, to) != NONE {
            self.extend_equal(metric, from, to, count, &mut path, &mut found);
        }
        found
    }

    fn extend_equal(
        &mut self,
        metric: MetricNo,
        at: SwitchNo,
        to: SwitchNo,
        count: usize,
        path: &mut Vec<LinkNo>,
        found: &mut Vec<Vec<LinkNo>>,
    ) {
        if found.len() >= count {
            return;
        }
        if at == to {
            found.push(path.clone());
            return;
        }
        for link in self.next_hops(metric, at, to) {
            path.push(link);
            self.extend_equal(metric, self.topology.slot(link).to, to, count, path, found);
            path.pop();
        }
    }

    /// Appends a shortest path over the links that may be used.
    pub fn constrained(
        &mut self,
        metric: MetricNo,
        (from, to): (SwitchNo, SwitchNo),
        flow_hash: u64,
        usable: impl Fn(LinkNo, &LinkSlot) -> bool,
        out: &mut Vec<LinkNo>,
    ) -> bool {
        let Graph { topology, metrics, search } = self;
        search.measure(topology, metrics[metric.0].1.costs(), to, &usable);
        search.walk(topology, from, flow_hash, out)
    }

    /// Appends the shortest path over the links that may be used, within a latency. A link of unknown latency is not used.
    pub fn within_latency(
        &mut self,
        metric: MetricNo,
        (from, to): (SwitchNo, SwitchNo),
        max_us: u64,
        flow_hash: u64,
        usable: impl Fn(LinkNo, &LinkSlot) -> bool,
        out: &mut Vec<LinkNo>,
    ) -> Found {
        let start = out.len();
        if self.constrained(metric, (from, to), flow_hash, &usable, out)
            && self.latency_us(&out[start..]).is_some_and(|latency_us| latency_us <= max_us)
        {
            return Found::Path;
        }
        out.truncate(start);
        let Graph { topology, metrics, .. } = self;
        let least_us = Bounded::least_latencies(topology, &usable, to);
        match least_us[from.index()] {
            u64::MAX => return Found::None,
            least_us if least_us > max_us => return Found::TooSlow(least_us),
            _ => {}
        }
        let cost = metrics[metric.0].1.costs();
        let mut bounded = Bounded { topology, cost, usable: &usable, least_us: &least_us, max_us };
        match bounded.path(from, to, out) {
            Some(true) => return Found::Path,
            Some(false) => return Found::None,
            None => bounded.max_us = least_us[from.index()],
        }
        match bounded.path(from, to, out) {
            Some(true) => Found::Path,
            _ => Found::None,
        }
    }

    /// Paths that share no link or no switch, with the least cost in total, the shortest first: at most `count`.
    pub fn disjoint(
        &self,
        metric: MetricNo,
        ends: (SwitchNo, SwitchNo),
        count: u32,
        what: Disjoint,
        usable: impl Fn(LinkNo, &LinkSlot) -> bool,
    ) -> Vec<Vec<LinkNo>> {
        disjoint::paths(&self.topology, self.metrics[metric.0].1.costs(), ends, count, what, &usable)
    }

    /// Measures the distances to a switch over the links that may be used, for several calls of [`Graph::measured`].
    pub fn measure(&mut self, metric: MetricNo, to: SwitchNo, usable: impl Fn(LinkNo, &LinkSlot) -> bool) {
        let Graph { topology, metrics, search } = self;
        search.measure(topology, metrics[metric.0].1.costs(), to, &usable);
    }

    /// Appends a path as measured last. Paths with the same hash to the same switch join and never part.
    pub fn measured(&self, from: SwitchNo, flow_hash: u64, out: &mut Vec<LinkNo>) -> bool {
        self.search.distance(from) != NONE && self.search.walk(&self.topology, from, flow_hash, out)
    }

    /// The distance to the switch that was measured last; [`NONE`] if no path leads there.
    pub fn measured_distance(&self, from: SwitchNo) -> u32 {
        self.search.distance(from)
    }

    /// The links by which shortest paths begin, as measured last, in the order of their ids.
    pub fn measured_next_hops(&self, from: SwitchNo) -> impl Iterator<Item = LinkNo> {
        self.search.next_hops(&self.topology, from)
    }

    /// The latency of these links, if all are known.
    pub fn latency_us(&self, links: &[LinkNo]) -> Option<u64> {
        links.iter().map(|link| self.topology.slot(*link).latency_us).sum()
    }
}
