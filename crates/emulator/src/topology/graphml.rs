//! GraphML (Brandes et al., 2002) as the Internet Topology Zoo uses it.
//!
//! ```text
//!   text ──roxmltree──> elements ──> nodes with label, Latitude and Longitude, edges with LinkSpeedRaw ──> Graph
//! ```
//!
//! A label is the node's data with the key named `label`, or the text that yEd draws beside the node. Other data are
//! ignored. Errors in the data that it reads are reported with the line.

use std::collections::HashMap;

use roxmltree::{Document, Node, ParsingOptions};

use super::geography::Place;
use super::graph::{BadText, Graph, GraphEdge, GraphNode};
use super::{LINKS_MAX, SWITCHES_MAX};

/// The most XML nodes: elements, attributes and texts. A file of the largest network with fifty entries for each node
/// and edge has fewer.
const XML_NODES_MAX: u32 = 16_000_000;

/// Reads the first graph in a file.
pub(super) fn parse(text: &str) -> Result<Graph, BadText> {
    // A document type is refused. None of these files has one, and entities could make a small file large.
    let options = ParsingOptions { nodes_limit: XML_NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| BadText::at(error.pos().row, format!("it is no XML: {error}")))?;
    Reader { document: &document }.graph()
}

struct Reader<'a> {
    document: &'a Document<'a>,
}

/// The file's `key` elements by their meaning.
#[derive(Default)]
struct Keys<'a> {
    label: Option<&'a str>,
    latitude: Option<&'a str>,
    longitude: Option<&'a str>,
    speed: Option<&'a str>,
}

impl<'a> Keys<'a> {
    fn of(root: Node<'a, 'a>) -> Keys<'a> {
        let mut keys = Keys::default();
        for key in root.children().filter(|child| child.has_tag_name_of("key")) {
            let slot = match (key.attribute("for"), key.attribute("attr.name")) {
                (Some("node" | "all"), Some("label")) => &mut keys.label,
                (Some("node" | "all"), Some("Latitude")) => &mut keys.latitude,
                (Some("node" | "all"), Some("Longitude")) => &mut keys.longitude,
                (Some("edge" | "all"), Some("LinkSpeedRaw")) => &mut keys.speed,
                _ => continue,
            };
            *slot = key.attribute("id");
        }
        keys
    }
}

/// Element names without their namespace, because some files omit it.
trait Tag {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl Tag for Node<'_, '_> {
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

impl<'a> Reader<'a> {
    fn line(&self, node: Node<'a, 'a>) -> u32 {
        self.document.text_pos_at(node.range().start).row
    }

    fn bad(&self, node: Node<'a, 'a>, why: impl Into<String>) -> BadText {
        BadText::at(self.line(node), why)
    }

    fn graph(&self) -> Result<Graph, BadText> {
        let root = self.document.root_element();
        if !root.has_tag_name_of("graphml") {
            let found = root.tag_name().name();
            return Err(self.bad(root, format!("expected <graphml>, found <{found}>")));
        }
        let keys = Keys::of(root);
        let graph = root.children().find(|child| child.has_tag_name_of("graph"));
        let graph = graph.ok_or_else(|| self.bad(root, "expected a <graph> within <graphml>, found none"))?;
        let mut drawn = Graph::default();
        let mut ids = HashMap::new();
        // A group of nodes has a graph inside a node. Nodes count at any depth.
        for node in graph.descendants().filter(|node| node.has_tag_name_of("node")) {
            if node.children().any(|child| child.has_tag_name_of("graph")) {
                continue;
            }
            let id = self.attribute(node, "id")?;
            if ids.insert(id, drawn.nodes.len()).is_some() {
                return Err(self.bad(node, format!("a second node has the id '{id}'")));
            }
            if drawn.nodes.len() == SWITCHES_MAX {
                return Err(self.bad(node, format!("it has more than {SWITCHES_MAX} nodes, the limit")));
            }
            drawn.nodes.push(self.node(node, &keys)?);
        }
        for edge in graph.descendants().filter(|node| node.has_tag_name_of("edge")) {
            if drawn.edges.len() == LINKS_MAX {
                return Err(self.bad(edge, format!("it has more than {LINKS_MAX} edges, the limit")));
            }
            drawn.edges.push(self.edge(edge, &keys, &ids)?);
        }
        Ok(drawn)
    }

    fn attribute(&self, node: Node<'a, 'a>, name: &str) -> Result<&'a str, BadText> {
        let tag = node.tag_name().name();
        let missing = || self.bad(node, format!("expected <{tag} … {name}=\"…\">, found no {name}"));
        node.attribute(name).ok_or_else(missing)
    }

    fn node(&self, node: Node<'a, 'a>, keys: &Keys<'a>) -> Result<GraphNode, BadText> {
        let label = data(node, keys.label).and_then(|data| data.text()).or_else(|| {
            node.descendants().find(|below| below.has_tag_name_of("NodeLabel")).and_then(|below| below.text())
        });
        let latitude = self.number(node, keys.latitude, "Latitude")?;
        let longitude = self.number(node, keys.longitude, "Longitude")?;
        let place = match latitude.zip(longitude) {
            None => None,
            Some((latitude, longitude)) => Some(Place::new(latitude, longitude).ok_or_else(|| {
                self.bad(node, format!("there is no place at Latitude {latitude}, Longitude {longitude}"))
            })?),
        };
        Ok(GraphNode { label: label.unwrap_or_default().trim().to_owned(), place })
    }

    fn edge(
        &self,
        edge: Node<'a, 'a>,
        keys: &Keys<'a>,
        ids: &HashMap<&'a str, usize>,
    ) -> Result<GraphEdge, BadText> {
        let end = |name| {
            let id = self.attribute(edge, name)?;
            let unknown = || self.bad(edge, format!("{name} is '{id}', and there is no node of this id"));
            ids.get(id).copied().ok_or_else(unknown)
        };
        let speed = self.number(edge, keys.speed, "LinkSpeedRaw")?;
        // A speed of zero means that the speed is unknown.
        let speed = speed.filter(|speed| *speed >= 1.0);
        Ok(GraphEdge {
            ends: (end("source")?, end("target")?),
            // A float that is out of range becomes the nearest integer.
            rate_bits_per_s: speed.map(|speed| speed as u64),
            distance_km: None,
        })
    }

    /// The number in the data with this key, if there is one.
    fn number(&self, of: Node<'a, 'a>, key: Option<&str>, name: &str) -> Result<Option<f64>, BadText> {
        let Some(data) = data(of, key) else { return Ok(None) };
        let text = data.text().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| self.bad(data, format!("expected a number as {name}, found '{text}'")))
    }
}

/// The text in the data of a node or an edge with this key.
fn data<'a>(of: Node<'a, 'a>, key: Option<&str>) -> Option<Node<'a, 'a>> {
    let key = key?;
    of.children().find(|child| child.has_tag_name_of("data") && child.attribute("key") == Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1"/>
  <key attr.name="Latitude" attr.type="double" for="node" id="d2"/>
  <key attr.name="Longitude" attr.type="double" for="node" id="d3"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">Wien</data><data key="d2">48.2</data><data key="d3">16.4</data></node>
    <node id="1"><data key="d1">Graz</data></node>
    <edge source="0" target="1"><data key="d4">1000000000.0</data></edge>
  </graph>
</graphml>"#;

    fn check_refused(from: &str, to: &str, line: u32, why: &str) {
        assert!(SMALL.contains(from), "{from}");
        let bad = parse(&SMALL.replacen(from, to, 1)).unwrap_err();
        assert_eq!(bad.line, Some(line), "{}", bad.why);
        assert!(bad.why.contains(why), "{}", bad.why);
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_line_and_what_was_expected() {
        check_refused("</node>", "", 11, "it is no XML");
        check_refused("<graphml xmlns", "<svg xmlns", 12, "it is no XML");
        check_refused("<graph edge", "<grape edge", 11, "it is no XML");
        check_refused("<node id=\"1\">", "<node>", 9, "expected <node … id=\"…\">, found no id");
        check_refused("<node id=\"1\">", "<node id=\"0\">", 9, "a second node has the id '0'");
        check_refused("48.2", "north", 8, "expected a number as Latitude, found 'north'");
        check_refused("48.2", "148.2", 8, "there is no place at Latitude 148.2");
        check_refused("1000000000.0", "NaN", 10, "expected a number as LinkSpeedRaw, found 'NaN'");
        check_refused("target=\"1\"", "target=\"7\"", 10, "target is '7', and there is no node of this id");
        check_refused(" target=\"1\"", "", 10, "found no target");
        let bad = parse("<svg/>").unwrap_err();
        assert_eq!(bad, BadText::at(1, "expected <graphml>, found <svg>"));
        let bad = parse("<graphml>\n</graphml>").unwrap_err();
        assert!(bad.why.contains("expected a <graph>"), "{}", bad.why);
    }

    #[test]
    fn entities_are_not_read() {
        let bomb = format!("<!DOCTYPE graphml [<!ENTITY a \"b\">]>\n{SMALL}");
        assert!(parse(&bomb).is_err());
    }

    #[test]
    fn labels_places_and_speeds_are_read() {
        let graph = parse(SMALL).unwrap();
        assert_eq!(graph.nodes[0].label, "Wien");
        assert_eq!((graph.nodes[0].place, graph.nodes[1].place), (Place::new(48.2, 16.4), None));
        assert_eq!(graph.edges[0].ends, (0, 1));
        assert_eq!(graph.edges[0].rate_bits_per_s, Some(1_000_000_000));
    }

    #[test]
    fn what_yed_draws_beside_a_node_is_its_label() {
        let drawn = "<graphml><graph><node id='n0'><data key='d9'><y:ShapeNode xmlns:y='y'>\
                     <y:NodeLabel> Linz\n</y:NodeLabel></y:ShapeNode></data></node></graph></graphml>";
        assert_eq!(parse(drawn).unwrap().nodes[0].label, "Linz");
    }

    proptest::proptest! {
        #[test]
        fn no_damage_does_harm(at in 0usize..700, with in proptest::collection::vec(0u8..128, 0..4)) {
            let mut bytes = SMALL.as_bytes().to_vec();
            let at = at.min(bytes.len());
            bytes.splice(at..(at + 2).min(SMALL.len()), with);
            if let Ok(text) = String::from_utf8(bytes) {
                // It gives a graph, or an error with a line.
                proptest::prop_assert!(parse(&text).map_or_else(|bad| bad.line.is_some(), |_| true));
            }
        }
    }
}
