//! A search that keeps its memory: distances to one switch over the links that may be used, and walks along them.
//!
//! In: costs, which links may be used, a flow hash. Out: a path, as numbers of links. Of several shortest paths, the hash chooses one; the
//! choice depends on the ids of links and switches, not on their numbers.

use crate::heap::Heap;
use crate::topology::{LinkNo, LinkSlot, SwitchNo, Topology};
use crate::trees::{NONE, cost_of, is_tight};

/// Whether a link may be used.
pub(crate) type Usable<'u> = dyn Fn(LinkNo, &LinkSlot) -> bool + 'u;

/// The memory of searches.
#[derive(Clone, Debug, Default)]
pub struct Search {
    distance: Vec<u32>,
    cost: Vec<u32>,
    heap: Heap,
}

impl Search {
    /// Computes the distances of all switches to one, over the links that may be used.
    pub(crate) fn measure(&mut self, topology: &Topology, cost: &[u32], to: SwitchNo, usable: &Usable<'_>) {
        self.cost.clear();
        self.cost.extend(topology.all_links().map(|(link, slot)| match cost_of(cost, link) {
            NONE => NONE,
            cost if usable(link, slot) => cost,
            _ => NONE,
        }));
        self.distance.clear();
        self.distance.resize(topology.switches(), NONE);
        self.distance[to.index()] = 0;
        self.heap.clear();
        self.heap.push(0, to);
        crate::trees::spread(topology, &self.cost, &mut self.distance, &mut self.heap);
    }

    /// The distance of a switch, as measured last.
    pub(crate) fn distance(&self, from: SwitchNo) -> u32 {
        self.distance[from.index()]
    }

    /// The links by which shortest paths begin, as measured last.
    pub(crate) fn next_hops(&self, topology: &Topology, from: SwitchNo) -> impl Iterator<Item = LinkNo> {
        let own = self.distance(from);
        let may_begin = own != NONE && own > 0;
        let arcs = topology.out(from).iter();
        arcs.filter(move |arc| may_begin && is_tight(&self.cost, &self.distance, own, **arc))
            .map(|arc| arc.link)
    }

    /// A shortest path, as measured last. It is appended. `false`: there is none.
    pub(crate) fn walk(
        &self,
        topology: &Topology,
        from: SwitchNo,
        flow_hash: u64,
        out: &mut Vec<LinkNo>,
    ) -> bool {
        walk(topology, &self.cost, &self.distance, from, flow_hash, out)
    }
}

/// Mixes the hash of a flow with the id of a switch, so that a flow does not make the same choice everywhere.
const fn mix(flow_hash: u64, switch: u64) -> u64 {
    let mixed = (flow_hash ^ switch.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

/// How many of the links that begin a shortest path a step remembers. If the chosen link is not among them, a second pass finds it.
const REMEMBERED: usize = 4;

/// Appends a shortest path along these distances.
pub(crate) fn walk(
    topology: &Topology,
    cost: &[u32],
    distance: &[u32],
    from: SwitchNo,
    flow_hash: u64,
    out: &mut Vec<LinkNo>,
) -> bool {
    let mut at = from;
    loop {
        let own = distance[at.index()];
        if own == NONE || own == 0 {
            return own == 0;
        }
        let tight = topology.out(at).iter().filter(|arc| is_tight(cost, distance, own, **arc));
        let (mut first, mut count) = ([None; REMEMBERED], 0usize);
        for arc in tight.clone() {
            if let Some(place) = first.get_mut(count) {
                *place = Some(*arc);
            }
            count += 1;
        }
        let chosen = match count {
            0 | 1 => 0,
            // Fewer than the ports of a switch.
            _ => (mix(flow_hash, topology.switch_id(at).0) % count as u64) as usize,
        };
        let remembered = first.get(chosen).copied();
        let arc = remembered.unwrap_or_else(|| tight.clone().nth(chosen).copied());
        // There is one as long as the distances fit the costs.
        let Some(arc) = arc else { return false };
        out.push(arc.link);
        at = arc.peer;
    }
}
