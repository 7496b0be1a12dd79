//! Networks of the Internet Topology Zoo (Knight et al., 2011) that come with the emulator.
//!
//! ```text
//!   "zoo,AttMpls" ──> zoo.txt: places, labels, links ──> Graph ──> Topology: one switch and one host for each node
//! ```
//!
//! In: the name of a network, in any case. Out: the network. It reads no file of the machine. The places and links are those of
//! topohub's edition of the Zoo: nodes without a known place are left out there, and parallel links are one.

use super::Topology;
use super::geography::Place;
use super::graph::{Graph, GraphEdge, GraphNode};

/// For each network: a line `graph NAME`, a line `LATITUDE LONGITUDE LABEL` for each node, a line `links A-B …` with the
/// numbers of the nodes, from 0.
const NETWORKS: &str = include_str!("zoo.txt");

/// The first words of the lines that are no nodes.
const GRAPH: &str = "graph ";
const LINKS: &str = "links ";

/// The names of all networks, as the Zoo writes them.
pub fn zoo_names() -> impl Iterator<Item = &'static str> {
    NETWORKS.lines().filter_map(|line| line.strip_prefix(GRAPH))
}

impl Topology {
    /// The network of this name, in any case; with `with_delay`, links have the delay of the distance between their ends.
    pub fn zoo(name: &str, with_delay: bool) -> Option<Topology> {
        let graph = graph(name)?;
        Some(graph.into_topology(with_delay).0)
    }
}

fn graph(name: &str) -> Option<Graph> {
    let is_it = |line: &&str| line.strip_prefix(GRAPH).is_some_and(|known| known.eq_ignore_ascii_case(name));
    let mut lines = NETWORKS.lines().skip_while(|line| !is_it(line));
    lines.next()?;
    let mut graph = Graph::default();
    for line in lines {
        if let Some(links) = line.strip_prefix(LINKS) {
            graph.edges = links.split(' ').filter_map(edge).collect();
            return Some(graph);
        }
        graph.nodes.push(node(line)?);
    }
    None
}

fn node(line: &str) -> Option<GraphNode> {
    let mut words = line.splitn(3, ' ');
    let place = Place::new(words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(GraphNode { label: words.next()?.to_owned(), place })
}

fn edge(word: &str) -> Option<GraphEdge> {
    let (one, two) = word.split_once('-')?;
    Some(GraphEdge { ends: (one.parse().ok()?, two.parse().ok()?), rate_bits_per_s: None, distance_km: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_is_whole_and_connected() {
        assert_eq!(zoo_names().count(), 32);
        for name in zoo_names() {
            let graph = graph(name).unwrap_or_else(|| panic!("{name} is damaged"));
            let (nodes, edges) = (graph.nodes.len(), graph.edges.len());
            assert!(graph.nodes.iter().all(|node| node.place.is_some()), "{name}");
            assert!(
                graph.edges.iter().all(|edge| edge.ends.0 < edge.ends.1 && edge.ends.1 < nodes),
                "{name}"
            );
            assert!(edges >= nodes, "{name} has no loop");
            let (topology, notes) = graph.into_topology(true);
            assert_eq!((notes, topology.links.len()), (Vec::new(), nodes + edges), "{name}");
        }
    }

    #[test]
    fn a_network_is_found_in_any_case_and_knows_its_places() {
        let att = Topology::zoo("attmpls", true).unwrap();
        assert_eq!((att.switches.len(), att.hosts.len()), (25, 25));
        assert_eq!(att.switches[2].label, "CHCG");
        let place = att.switches[2].place.unwrap();
        assert_eq!((place.latitude(), place.longitude()), (41.85, -87.65));
        assert_eq!(Topology::zoo("Nowhere", false), None);
    }
}
