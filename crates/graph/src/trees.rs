//! The distances from all switches to one, for each switch that was asked for, repaired when a link changes.
//!
//! ```text
//!   cost of a link rises: switches that have lost their last shortest way ──> their new distances
//!   cost of a link falls: switches that are nearer now
//! ```
//!
//! In: costs of links. Out: distances, and by them the shortest paths: a link is on one if its cost and the distance behind it are the
//! distance before it. A change touches only the switches whose distance changes, and their neighbours.

use crate::heap::Heap;
use crate::topology::{Arc, LinkNo, SwitchNo, Topology};

/// The distance of a switch that cannot be reached, and the cost of a link that cannot be used.
pub const NONE: u32 = u32::MAX;

/// The greatest cost of a link. A greater one is cut to it. With it, the sum along any path fits into 32 bits.
pub const COST_MAX: u32 = 1 << 20;

/// The sum of two costs, if both can be used.
pub(crate) const fn sum(cost: u32, distance: u32) -> Option<u32> {
    if cost == NONE || distance == NONE { None } else { Some(cost + distance) }
}

/// The trees of one kind of cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    /// By link.
    cost: Vec<u32>,
    /// By destination, then by switch. Empty: nobody has asked for it.
    distances: Vec<Vec<u32>>,
    repair: Repair,
}

/// What a repair needs, kept for the next one.
#[derive(Clone, Debug, Default)]
struct Repair {
    heap: Heap,
    affected: Vec<SwitchNo>,
    /// By switch: the number of the repair in which it was affected last.
    marks: Vec<u32>,
    mark: u32,
}

impl Trees {
    pub(crate) fn costs(&self) -> &[u32] {
        &self.cost
    }

    /// The distances to a switch, computed if nobody has asked for them before.
    pub(crate) fn to(&mut self, topology: &Topology, to: SwitchNo) -> &[u32] {
        if self.distances.len() <= to.index() {
            self.distances.resize_with(topology.switches(), Vec::new);
        }
        let Trees { cost, distances, repair } = self;
        let distance = &mut distances[to.index()];
        let is_new = distance.is_empty();
        if distance.len() < topology.switches() {
            distance.resize(topology.switches(), NONE);
        }
        if is_new {
            distance[to.index()] = 0;
            repair.heap.clear();
            repair.heap.push(0, to);
            spread(topology, cost, distance, &mut repair.heap);
        }
        distance
    }

    /// The costs, and the distances to a switch, which somebody has asked for before.
    pub(crate) fn tree(&self, to: SwitchNo) -> (&[u32], &[u32]) {
        (&self.cost, &self.distances[to.index()])
    }

    /// The cost of a link is another one: repairs all trees.
    pub(crate) fn set_cost(&mut self, topology: &Topology, link: LinkNo, now: u32) {
        if self.cost.len() <= link.index() {
            self.cost.resize(topology.links(), NONE);
        }
        let before = std::mem::replace(&mut self.cost[link.index()], now);
        if before == now {
            return;
        }
        let Trees { cost, distances, repair } = self;
        let ends = topology.slot(link);
        for distance in distances.iter_mut().filter(|distance| !distance.is_empty()) {
            if distance.len() < topology.switches() {
                distance.resize(topology.switches(), NONE);
            }
            if now > before {
                let over_it = sum(before, distance[ends.to.index()]);
                repair.risen(topology, cost, distance, ends.from, over_it);
            } else if let Some(nearer) = sum(now, distance[ends.to.index()])
                && nearer < distance[ends.from.index()]
            {
                distance[ends.from.index()] = nearer;
                repair.heap.clear();
                repair.heap.push(nearer, ends.from);
                spread(topology, cost, distance, &mut repair.heap);
            }
        }
    }
}

/// Shortens the distances of the switches before those in the queue.
pub(crate) fn spread(topology: &Topology, cost: &[u32], distance: &mut [u32], heap: &mut Heap) {
    while let Some((near, switch)) = heap.pop() {
        if near > distance[switch.index()] {
            continue;
        }
        for arc in topology.into(switch) {
            if let Some(through) = sum(cost_of(cost, arc.link), near)
                && through < distance[arc.peer.index()]
            {
                distance[arc.peer.index()] = through;
                heap.push(through, arc.peer);
            }
        }
    }
}

pub(crate) fn cost_of(cost: &[u32], link: LinkNo) -> u32 {
    cost.get(link.index()).copied().unwrap_or(NONE)
}

/// Whether this link is the beginning of a shortest path from a switch with this distance.
pub(crate) fn is_tight(cost: &[u32], distance: &[u32], own: u32, arc: Arc) -> bool {
    sum(cost_of(cost, arc.link), distance[arc.peer.index()]) == Some(own)
}

impl Repair {
    /// The cost of a link from this switch rose. `before` is the length of the shortest path over it with its earlier cost.
    fn risen(
        &mut self,
        topology: &Topology,
        cost: &[u32],
        distance: &mut [u32],
        from: SwitchNo,
        before: Option<u32>,
    ) {
        if before != Some(distance[from.index()]) {
            return;
        }
        self.marks.resize(topology.switches(), 0);
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.marks.fill(0);
            self.mark = 1;
        }
        self.find_affected(topology, cost, distance, from);
        self.heap.clear();
        for switch in &self.affected {
            let others = topology.out(*switch).iter().filter(|arc| self.marks[arc.peer.index()] != self.mark);
            let through =
                others.filter_map(|arc| sum(cost_of(cost, arc.link), distance[arc.peer.index()])).min();
            distance[switch.index()] = through.unwrap_or(NONE);
            if let Some(through) = through {
                self.heap.push(through, *switch);
            }
        }
        spread(topology, cost, distance, &mut self.heap);
    }

    /// The switches that have no shortest path any more which avoids all of these switches.
    fn find_affected(&mut self, topology: &Topology, cost: &[u32], distance: &[u32], first: SwitchNo) {
        self.affected.clear();
        self.consider(topology, cost, distance, first);
        let mut next = 0;
        while let Some(switch) = self.affected.get(next).copied() {
            next += 1;
            for arc in topology.into(switch) {
                let through = sum(cost_of(cost, arc.link), distance[switch.index()]);
                if through == Some(distance[arc.peer.index()]) {
                    self.consider(topology, cost, distance, arc.peer);
                }
            }
        }
    }

    fn consider(&mut self, topology: &Topology, cost: &[u32], distance: &[u32], switch: SwitchNo) {
        let own = distance[switch.index()];
        let is_known = self.marks[switch.index()] == self.mark;
        let holds =
            |arc: &Arc| self.marks[arc.peer.index()] != self.mark && is_tight(cost, distance, own, *arc);
        if own != 0 && !is_known && !topology.out(switch).iter().any(holds) {
            self.marks[switch.index()] = self.mark;
            self.affected.push(switch);
        }
    }
}
