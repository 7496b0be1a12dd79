//! The worst traffic that a slice can put on each of its links.
//!
//! ```text
//!   links of a slice, switches with VNICs ──> parts: which pairs use a link, over the shortest paths that the tenant sees
//!   parts, rates of VNICs ──────────────────> loads: bit/s for each direction of each link
//! ```
//!
//! A link of several hops is one link for the tenant, so its controller counts it as one. The hops below it carry what the link carries.
//!
//! In: links and rates. Out: parts and loads. It knows no capacity, and no way of a link.

use flow::DatapathId;
use graph::Graph;
use hose::{NoPath, PLACES_MAX, Part, Routing, worst};
use std::collections::BTreeMap;
use view::{Link, LinkId, LinkKind, LinkState, Weight};

/// Why the traffic of a slice is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// Two switches with VNICs that no links of the slice connect.
    NoPath {
        /// One of them.
        from: DatapathId,
        /// The other.
        to: DatapathId,
    },
    /// It has VNICs at more than [`PLACES_MAX`] switches.
    TooManyPlaces(usize),
    /// It has more switches or links than a graph can have.
    TooLarge,
}

/// Which part of the traffic of each pair of places uses each direction of the links.
///
/// # Errors
/// Two places are not connected, or there are too many of them.
pub fn parts(links: &[LinkId], places: &[DatapathId]) -> Result<BTreeMap<LinkId, Vec<Part>>, NotKnown> {
    if places.len() > PLACES_MAX {
        return Err(NotKnown::TooManyPlaces(places.len()));
    }
    let mut graph = Graph::new();
    let metric = graph.metric(&Weight::Hops).ok_or(NotKnown::TooLarge)?;
    for id in links.iter().flat_map(|link| [*link, link.reversed()]) {
        graph.put_link(&plain(id)).map_err(|_| NotKnown::TooLarge)?;
    }
    let mut numbers = Vec::new();
    for place in places {
        numbers.push(graph.topology_mut().put_switch(*place).map_err(|_| NotKnown::TooLarge)?);
    }
    let routing = Routing::equal_cost(&mut graph, metric, &numbers, |_, _| true);
    let topology = graph.topology();
    let routing = routing.map_err(|NoPath { from, to }| NotKnown::NoPath {
        from: topology.switch_id(from),
        to: topology.switch_id(to),
    })?;
    Ok(routing.parts.into_iter().map(|(link, parts)| (topology.slot(link).id, parts)).collect())
}

/// The worst traffic on each direction of the links, in bit/s. `rates_bps`: what the VNICs at each switch may send and receive together.
///
/// # Errors
/// As those of [`parts`].
pub fn loads(
    links: &[LinkId],
    rates_bps: &BTreeMap<DatapathId, u64>,
) -> Result<BTreeMap<LinkId, u64>, NotKnown> {
    let places: Vec<DatapathId> = rates_bps.keys().copied().collect();
    let rates: Vec<u64> = rates_bps.values().copied().collect();
    let parts = parts(links, &places)?;
    Ok(parts.into_iter().map(|(link, parts)| (link, worst(&parts, &rates).load_bps)).collect())
}

fn plain(id: LinkId) -> Link {
    Link {
        id,
        found: LinkKind::Static,
        state: LinkState::Up,
        capacity_kbps: 0,
        latency_us: None,
        since_ms: 0,
        annotations: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> LinkId {
        text.parse().unwrap()
    }

    fn check(links: &[&str], rates: &[(u64, u64)], on: &str, expected: Result<u64, NotKnown>) {
        let links: Vec<LinkId> = links.iter().map(|text| link(text)).collect();
        let rates = rates.iter().map(|(switch, mbps)| (DatapathId(*switch), *mbps)).collect();
        let loads = loads(&links, &rates);
        assert_eq!(
            loads.map(|loads| loads.get(&link(on)).copied().unwrap_or(0)),
            expected,
            "{on} of {links:?}"
        );
    }

    #[test]
    fn a_link_carries_what_both_of_its_sides_may_send_and_receive() {
        check(&["1/3-2/3"], &[(1, 4), (2, 6)], "1/3-2/3", Ok(4));
        check(&["1/3-2/3"], &[(1, 4), (2, 6)], "2/3-1/3", Ok(4));
        // A line: the middle sends to both.
        check(&["1/3-2/3", "2/4-3/3"], &[(1, 4), (2, 1), (3, 9)], "2/4-3/3", Ok(5));
        // Two links between the same switches carry half each.
        check(&["1/3-2/3", "1/4-2/4"], &[(1, 4), (2, 4)], "1/4-2/4", Ok(2));
        // A ring of three: one hop is shorter than two.
        check(&["1/3-2/3", "2/4-3/3", "3/4-1/4"], &[(1, 4), (2, 4)], "2/4-3/3", Ok(0));
        check(&["1/3-2/3"], &[(1, 4)], "1/3-2/3", Ok(0));
        check(&["1/3-2/3"], &[], "1/3-2/3", Ok(0));
    }

    #[test]
    fn switches_that_are_not_connected_are_named_and_too_many_are_not_judged() {
        let no_path = |from, to| Err(NotKnown::NoPath { from: DatapathId(from), to: DatapathId(to) });
        check(&["1/3-2/3"], &[(1, 4), (3, 4)], "1/3-2/3", no_path(3, 1));
        check(&["1/3-2/3", "3/3-4/3"], &[(1, 4), (3, 4)], "1/3-2/3", no_path(3, 1));
        let many: Vec<(u64, u64)> = (1..=PLACES_MAX as u64 + 1).map(|switch| (switch, 1)).collect();
        check(&["1/3-2/3"], &many, "1/3-2/3", Err(NotKnown::TooManyPlaces(PLACES_MAX + 1)));
    }
}
