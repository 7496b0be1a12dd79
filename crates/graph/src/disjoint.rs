//! Paths that share no link, or no switch, with the least cost in total.
//!
//! ```text
//!   each round: the cheapest way to have one path more, which may take back links of the paths before (successive shortest paths)
//! ```
//!
//! In: costs, which links may be used. Out: as many disjoint paths as there are, up to a number. Two of them never use the two directions of
//! one cable: without both they would be cheaper.

use crate::search::Usable;
use crate::topology::{LinkNo, SwitchNo, Topology};
use crate::trees::{NONE, cost_of};
use std::collections::VecDeque;

/// What paths must not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disjoint {
    /// Links.
    Links,
    /// Switches, except the first and the last.
    Switches,
}

/// An edge of the flow network. Its reverse has the number with the last bit flipped.
struct Edge {
    to: usize,
    cost: i64,
    /// How many more paths can use it.
    room: u32,
    link: Option<LinkNo>,
}

#[derive(Default)]
struct FlowNetwork {
    edges: Vec<Edge>,
    /// By node: its edges.
    of: Vec<Vec<usize>>,
}

/// A switch is two nodes, so that the edge between them can be used once only.
const fn entry(place: usize) -> usize {
    2 * place
}

const fn exit(place: usize) -> usize {
    2 * place + 1
}

impl FlowNetwork {
    /// The places of switches follow from their ids, so that the result does not depend on their numbers.
    fn new(
        topology: &Topology,
        cost: &[u32],
        usable: &Usable<'_>,
        inner_room: u32,
    ) -> (FlowNetwork, Vec<usize>) {
        let mut order: Vec<SwitchNo> = (0..).map(SwitchNo).take(topology.switches()).collect();
        order.sort_unstable_by_key(|switch| topology.switch_id(*switch));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, switch)| place[switch.index()] = at);
        let mut network = FlowNetwork::default();
        network.of.resize_with(2 * order.len(), Vec::new);
        for switch in order {
            let at = place[switch.index()];
            network.join(entry(at), exit(at), 0, inner_room, None);
            for arc in topology.out(switch) {
                let own = cost_of(cost, arc.link);
                if own != NONE && usable(arc.link, topology.slot(arc.link)) {
                    network.join(exit(at), entry(place[arc.peer.index()]), i64::from(own), 1, Some(arc.link));
                }
            }
        }
        (network, place)
    }

    fn join(&mut self, from: usize, to: usize, cost: i64, room: u32, link: Option<LinkNo>) {
        let number = self.edges.len();
        self.edges.push(Edge { to, cost, room, link });
        self.edges.push(Edge { to: from, cost: -cost, room: 0, link: None });
        self.of[from].push(number);
        self.of[to].push(number + 1);
    }

    /// Sends one path more from a node to another. `false`: no more is possible.
    fn augment(&mut self, from: usize, to: usize) -> bool {
        let mut distance = vec![i64::MAX; self.of.len()];
        let mut by = vec![usize::MAX; self.of.len()];
        let mut is_queued = vec![false; self.of.len()];
        distance[from] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            is_queued[node] = false;
            for number in &self.of[node] {
                let edge = &self.edges[*number];
                let through = distance[node] + edge.cost;
                if edge.room > 0 && through < distance[edge.to] {
                    (distance[edge.to], by[edge.to]) = (through, *number);
                    if !std::mem::replace(&mut is_queued[edge.to], true) {
                        queue.push_back(edge.to);
                    }
                }
            }
        }
        if distance[to] == i64::MAX {
            return false;
        }
        let mut node = to;
        while node != from {
            let number = by[node];
            self.edges[number].room -= 1;
            self.edges[number ^ 1].room += 1;
            node = self.edges[number ^ 1].to;
        }
        true
    }

    /// Takes one path out of the flow.
    fn take_path(&mut self, from: usize, to: usize) -> Vec<LinkNo> {
        let (mut node, mut links) = (from, Vec::new());
        while node != to {
            // An edge is used if its reverse has room. Reverse edges have odd numbers.
            let is_used = |number: &&usize| (**number).is_multiple_of(2) && self.edges[**number ^ 1].room > 0;
            let Some(number) = self.of[node].iter().find(is_used).copied() else { break };
            self.edges[number ^ 1].room -= 1;
            links.extend(self.edges[number].link);
            node = self.edges[number].to;
        }
        links
    }
}

/// As many disjoint paths as there are, at most `count`. The cheapest first.
pub(crate) fn paths(
    topology: &Topology,
    cost: &[u32],
    (from, to): (SwitchNo, SwitchNo),
    count: u32,
    what: Disjoint,
    usable: &Usable<'_>,
) -> Vec<Vec<LinkNo>> {
    let inner_room = if what == Disjoint::Switches { 1 } else { count };
    let (mut network, place) = FlowNetwork::new(topology, cost, usable, inner_room);
    let (first, last) = (exit(place[from.index()]), entry(place[to.index()]));
    let found = (0..count).take_while(|_| network.augment(first, last)).count();
    let mut paths: Vec<_> = (0..found).map(|_| network.take_path(first, last)).collect();
    let order = |path: &Vec<LinkNo>| {
        let costs = path.iter().map(|link| u64::from(cost_of(cost, *link)));
        let ids: Vec<_> = path.iter().map(|link| topology.slot(*link).id).collect();
        (costs.sum::<u64>(), ids)
    };
    paths.sort_by_cached_key(order);
    paths
}
