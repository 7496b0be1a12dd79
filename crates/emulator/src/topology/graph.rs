//! A graph from a file, and the topology that is made of it: a switch for each node, with one host each.

use std::collections::BTreeMap;

use super::Topology;
use super::bounds::Size;
use super::geography::{Place, propagation};
use super::plan::{Node, Plan};
use crate::link::LinkQuality;

/// What is wrong with the text of a file, and the line if it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadText {
    pub(super) line: Option<u32>,
    pub(super) why: String,
}

impl BadText {
    pub(super) fn at(line: u32, why: impl Into<String>) -> BadText {
        BadText { line: Some(line), why: why.into() }
    }
}

/// A graph from a file.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<GraphNode>,
    pub(super) edges: Vec<GraphEdge>,
}

/// A node of a graph.
#[derive(Debug, Default)]
pub(super) struct GraphNode {
    /// Its label; empty if the file has none.
    pub(super) label: String,
    pub(super) place: Option<Place>,
}

/// An edge between two existing nodes, given by their indices.
#[derive(Debug)]
pub(super) struct GraphEdge {
    pub(super) ends: (usize, usize),
    pub(super) rate_bits_per_s: Option<u64>,
    /// The length in the file. Without it, the places of the nodes may give one.
    pub(super) distance_km: Option<f64>,
}

/// Parallel edges together.
#[derive(Debug, Default)]
struct Trunk {
    rate_bits_per_s: Option<u64>,
    distance_km: Option<f64>,
    merged: usize,
}

impl Graph {
    /// Why it gives no network, if it does not.
    pub(super) fn why_not(&self) -> Option<String> {
        let nodes = Some(self.nodes.len());
        let links = self.nodes.len().checked_add(self.edges.len());
        Size { switches: nodes, hosts: nodes, links }.why_not()
    }

    /// The network, and notes for the reader of the file. An edge from a node to itself is omitted. Parallel edges
    /// become one link with the sum of their rates. With `propagation`, the length of a link gives its delay.
    pub(super) fn into_topology(self, with_delay: bool) -> (Topology, Vec<String>) {
        let mut plan = Plan::default();
        for (index, node) in self.nodes.iter().enumerate() {
            let switch = plan.switch();
            plan.label(switch, &node.label);
            plan.place(switch, node.place);
            let host = plan.host(format!("h{}", index + 1));
            plan.link(host, switch);
        }
        let trunks = self.trunks();
        let mut without_length = 0;
        for ((one, two), trunk) in &trunks {
            let mut quality =
                LinkQuality { rate_bits_per_s: trunk.rate_bits_per_s, ..LinkQuality::default() };
            if with_delay {
                match self.length_km((*one, *two), trunk).and_then(propagation) {
                    Some(delay) => quality.delay = delay,
                    None => without_length += 1,
                }
            }
            plan.link_with(Node::Switch(*one), Node::Switch(*two), quality);
        }
        let topology = plan.finish();
        let loops = self.edges.iter().filter(|edge| edge.ends.0 == edge.ends.1).count();
        let parallel: usize = trunks.values().map(|trunk| trunk.merged - 1).sum();
        let parts = topology.parts();
        let notes = [
            (loops, "edges from a node to itself are left out".to_owned()),
            (parallel, "parallel edges are one link with those beside them".to_owned()),
            (
                without_length,
                "links have no delay because the file does not say where their ends are".to_owned(),
            ),
            (parts.saturating_sub(1), format!("parts cannot be reached from the first: it is in {parts}")),
        ];
        let notes = notes.into_iter().filter(|(count, _)| *count > 0);
        (topology, notes.map(|(count, what)| format!("{count} {what}")).collect())
    }

    /// One trunk for each pair of joined nodes, in the order of the nodes, so that a file always gives the same
    /// network.
    fn trunks(&self) -> BTreeMap<(usize, usize), Trunk> {
        let mut trunks: BTreeMap<(usize, usize), Trunk> = BTreeMap::new();
        for edge in &self.edges {
            let (one, two) = edge.ends;
            if one == two {
                continue;
            }
            let trunk = trunks.entry((one.min(two), one.max(two))).or_default();
            trunk.merged += 1;
            trunk.rate_bits_per_s = match (trunk.rate_bits_per_s, edge.rate_bits_per_s) {
                (Some(one), Some(two)) => Some(one.saturating_add(two)),
                (one, two) => one.or(two),
            };
            trunk.distance_km = trunk.distance_km.or(edge.distance_km);
        }
        trunks
    }

    fn length_km(&self, (one, two): (usize, usize), trunk: &Trunk) -> Option<f64> {
        let between_places = || Some(self.nodes[one].place?.distance_km(self.nodes[two].place?));
        trunk.distance_km.or_else(between_places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn edge(one: usize, two: usize, rate_bits_per_s: Option<u64>) -> GraphEdge {
        GraphEdge { ends: (one, two), rate_bits_per_s, distance_km: None }
    }

    fn node(label: &str, place: Option<Place>) -> GraphNode {
        GraphNode { label: label.into(), place }
    }

    #[test]
    fn loops_are_left_out_and_parallel_edges_are_one_link() {
        let graph = Graph {
            nodes: vec![node("Graz", None), node("Wien", None), node("", None)],
            edges: vec![edge(1, 0, Some(10)), edge(0, 0, None), edge(0, 1, Some(5)), edge(1, 0, None)],
        };
        let (topology, notes) = graph.into_topology(false);
        let trunks = topology.links_between("Graz", "Wien");
        assert_eq!(trunks.len(), 1);
        assert_eq!(topology.links[trunks[0]].quality.rate_bits_per_s, Some(15));
        assert_eq!((topology.switches.len(), topology.hosts.len(), topology.links.len()), (3, 3, 4));
        assert_eq!(
            notes,
            [
                "1 edges from a node to itself are left out",
                "2 parallel edges are one link with those beside them",
                "1 parts cannot be reached from the first: it is in 2",
            ]
        );
    }

    #[test]
    fn a_link_takes_as_long_as_it_is_if_that_is_asked_for() {
        let graph = || Graph {
            nodes: vec![node("a", Place::new(0.0, 0.0)), node("b", Place::new(0.0, 90.0)), node("c", None)],
            edges: vec![
                edge(0, 1, None),
                edge(0, 2, None),
                GraphEdge { ends: (1, 2), rate_bits_per_s: None, distance_km: Some(200.0) },
            ],
        };
        let (topology, notes) = graph().into_topology(true);
        let delays: Vec<Duration> = topology.links[3..].iter().map(|link| link.quality.delay).collect();
        assert_eq!(delays, [Duration::from_micros(50_038), Duration::ZERO, Duration::from_millis(1)]);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("1 links have no delay"), "{notes:?}");
        let (topology, _) = graph().into_topology(false);
        assert!(topology.links.iter().all(|link| link.quality.is_ideal()));
    }
}
