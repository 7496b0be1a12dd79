//! Graphs in networkx's JSON form (`node_link_data`), in which topohub has the Topology Zoo, SNDlib and CAIDA's data.
//!
//! ```text
//!   {"nodes": [{"id": 0, "name": "Wien", "pos": [16.4, 48.2]}, …],      pos is [longitude, latitude], or on a plane
//!    "edges": [{"source": 0, "target": 1, "dist": 145.2}, …]}           dist is in kilometres; "links" is "edges" too
//! ```
//!
//! Other data are ignored.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;

use super::geography::{Place, propagation};
use super::graph::{BadText, Graph, GraphEdge, GraphNode};

#[derive(Deserialize)]
struct Drawn {
    nodes: Vec<DrawnNode>,
    #[serde(alias = "links")]
    edges: Vec<DrawnEdge>,
}

#[derive(Deserialize)]
struct DrawnNode {
    id: Id,
    #[serde(default, alias = "label")]
    name: Option<String>,
    #[serde(default)]
    pos: Option<[f64; 2]>,
}

#[derive(Deserialize)]
struct DrawnEdge {
    source: Id,
    target: Id,
    #[serde(default)]
    dist: Option<f64>,
}

/// A number in some files, a text in others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => number.fmt(f),
            Id::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// Reads the graph in a file.
pub(super) fn parse(text: &str) -> Result<Graph, BadText> {
    let drawn: Drawn = serde_json::from_str(text).map_err(|error| BadText {
        line: u32::try_from(error.line()).ok(),
        why: format!("expected nodes and edges as networkx writes them: {error}"),
    })?;
    let bad = |why: String| BadText { line: None, why };
    let mut graph = Graph::default();
    let mut ids = HashMap::new();
    for (number, node) in drawn.nodes.into_iter().enumerate() {
        // Graphs on a plane have positions that are not places. Their edges have lengths.
        let place = node.pos.and_then(|[longitude, latitude]| Place::new(latitude, longitude));
        graph.nodes.push(GraphNode { label: node.name.unwrap_or_default(), place });
        if let Some(before) = ids.insert(node.id.clone(), number) {
            return Err(bad(format!("nodes {before} and {number} have the same id {}", node.id)));
        }
    }
    for (number, edge) in drawn.edges.into_iter().enumerate() {
        let end = |what: &str, id: &Id| {
            let unknown = || bad(format!("edge {number}: {what} is {id}, and there is no node of this id"));
            ids.get(id).copied().ok_or_else(unknown)
        };
        let ends = (end("source", &edge.source)?, end("target", &edge.target)?);
        if let Some(dist) = edge.dist.filter(|dist| propagation(*dist).is_none()) {
            return Err(bad(format!(
                "edge {number}: dist is {dist}, which is no distance in kilometres on earth"
            )));
        }
        graph.edges.push(GraphEdge { ends, rate_bits_per_s: None, distance_km: edge.dist });
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{"directed": false, "graph": {"name": "x"},
"nodes": [
  {"id": 0, "name": "Wien", "pos": [16.4, 48.2]},
  {"id": "b"}],
"edges": [{"source": 0, "target": "b", "dist": 145.2, "ecmp_fwd": {}}]}"#;

    fn check_refused(from: &str, to: &str, line: Option<u32>, why: &str) {
        assert!(SMALL.contains(from), "{from}");
        let bad = parse(&SMALL.replacen(from, to, 1)).unwrap_err();
        assert_eq!(bad.line, line, "{}", bad.why);
        assert!(bad.why.contains(why), "{}", bad.why);
    }

    #[test]
    fn a_wrong_file_is_refused_with_what_was_expected() {
        check_refused("[16.4, 48.2]", "[16.4, 48.2", Some(3), "expected nodes and edges");
        check_refused("[16.4, 48.2]", "16.4", Some(3), "expected nodes and edges");
        check_refused("\"id\": \"b\"", "\"idea\": 1", Some(4), "missing field `id`");
        check_refused("\"id\": \"b\"", "\"id\": 0", None, "nodes 0 and 1 have the same id 0");
        check_refused(
            "\"target\": \"b\"",
            "\"target\": 9",
            None,
            "edge 0: target is 9, and there is no node",
        );
        check_refused("145.2", "-1", None, "edge 0: dist is -1");
    }

    #[test]
    fn names_places_and_distances_are_read() {
        let graph = parse(SMALL).unwrap();
        assert_eq!((graph.nodes[0].label.as_str(), graph.nodes[1].label.as_str()), ("Wien", ""));
        assert_eq!(graph.nodes[0].place, Place::new(48.2, 16.4));
        assert_eq!((graph.edges[0].ends, graph.edges[0].distance_km), ((0, 1), Some(145.2)));
        assert_eq!(parse(&SMALL.replace("48.2", "148.2")).unwrap().nodes[0].place, None, "on a plane");
        assert_eq!(parse(&SMALL.replace("edges", "links")).unwrap().edges.len(), 1);
    }
}
