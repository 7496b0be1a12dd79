//! The way of a virtual link: links of the network, from its first port to its last one.
//!
//! In: the network, the two ends, and what may not be used. Out: links, or the reason why there are none. The packets of both directions
//! take the same cables. It reserves nothing.

use crate::network::Network;
use flow::DatapathId;
use flows_contract::Hop;
use graph::{LinkNo, LinkSlot, Topology};
use view::{LinkId, Weight};

/// Whether a link and its other direction carry frames, between switches that are connected.
fn is_up(network: &Network, slot: &LinkSlot) -> bool {
    let topology = network.graph.topology();
    let back = topology.link(slot.id.reversed());
    let has_session = |id: DatapathId| network.switch(id).is_some_and(|(_, facts)| facts.is_up);
    slot.is_up
        && back.is_some_and(|back| topology.slot(back).is_up)
        && has_session(slot.id.from.switch)
        && has_session(slot.id.to.switch)
}

/// Whether a switch between the ends has a full table.
fn is_full(network: &Network, slot: &LinkSlot, wanted: LinkId, now_ms: u64) -> bool {
    let ends = [slot.id.from.switch, slot.id.to.switch];
    network.has_full(now_ms)
        && ends
            .iter()
            .any(|id| ![wanted.from.switch, wanted.to.switch].contains(id) && network.is_full(*id, now_ms))
}

/// Whether a way still serves.
pub(super) fn serves(network: &Network, way: &[LinkNo]) -> bool {
    way.iter().all(|link| is_up(network, network.graph.topology().slot(*link)))
}

/// Whether a switch of the way has a full table, so that another way would be better.
pub(super) fn has_full(network: &Network, way: &[LinkNo], wanted: LinkId, now_ms: u64) -> bool {
    way.iter().any(|link| is_full(network, network.graph.topology().slot(*link), wanted, now_ms))
}

/// The cable between the ports of a link, if there is one and it is up.
pub(super) fn cable(network: &Network, wanted: LinkId) -> Option<LinkNo> {
    let topology = network.graph.topology();
    topology.link(wanted).filter(|cable| is_up(network, topology.slot(*cable)))
}

/// The shortest way of several hops between the ports of a link. `may`: whether a link of the network may be used.
///
/// # Errors
/// A sentence: why there is none now.
pub(super) fn find(
    network: &mut Network,
    wanted: LinkId,
    may: impl Fn(&Topology, &LinkSlot) -> bool,
    now_ms: u64,
) -> Result<Vec<LinkNo>, String> {
    let first = end(network, |id| id.from == wanted.from)
        .ok_or_else(|| format!("no link that is up begins at port {}", wanted.from))?;
    let last = end(network, |id| id.to == wanted.to)
        .ok_or_else(|| format!("no link that is up ends at port {}", wanted.to))?;
    // Through the port at an end, the way would come back to the slice.
    let turns_back = |slot: &LinkSlot| slot.id.to == wanted.from || slot.id.from == wanted.to;
    let usable = |network: &Network, slot: &LinkSlot, only_free: bool| {
        is_up(network, slot)
            && !turns_back(slot)
            && (!only_free || may(network.graph.topology(), slot) && !is_full(network, slot, wanted, now_ms))
    };
    match between(network, first, last, |network, slot| usable(network, slot, true)) {
        Some(way) => Ok(way),
        None if between(network, first, last, |network, slot| usable(network, slot, false)).is_some() => {
            Err(format!(
                "each path from port {} to port {} uses a port or a virtual link of a slice with the same packets, a port in own_ports, or a full table",
                wanted.from, wanted.to
            ))
        }
        None => Err(format!("no path leads from port {} to port {}", wanted.from, wanted.to)),
    }
}

/// The link at an end.
fn end(network: &Network, is_it: impl Fn(LinkId) -> bool) -> Option<LinkNo> {
    let mut all = network.graph.topology().all_links();
    all.find(|(_, slot)| is_it(slot.id) && is_up(network, slot)).map(|(link, _)| link)
}

fn between(
    network: &mut Network,
    first: LinkNo,
    last: LinkNo,
    usable: impl Fn(&Network, &LinkSlot) -> bool,
) -> Option<Vec<LinkNo>> {
    let topology = network.graph.topology();
    let ends = (topology.slot(first).to, topology.slot(last).from);
    if ![first, last].iter().all(|link| usable(network, topology.slot(*link))) {
        return None;
    }
    let allowed: Vec<bool> = topology.all_links().map(|(_, slot)| usable(network, slot)).collect();
    let metric = network.graph.metric(&Weight::Hops)?;
    let mut way = vec![first];
    let is_usable = |link: LinkNo, _: &LinkSlot| allowed[link.index()] && link != first && link != last;
    let is_found = network.graph.constrained(metric, ends, 0, is_usable, &mut way);
    way.push(last);
    is_found.then_some(way)
}

/// The switches between the ends, with their ports.
pub(super) fn hops(topology: &Topology, way: &[LinkNo]) -> Vec<Hop> {
    let hop = |pair: &[LinkNo]| {
        let [into, out] = [pair[0], pair[1]].map(|link| topology.slot(link).id);
        Hop { switch: into.to.switch, in_port: into.to.port, out_port: out.from.port }
    };
    way.windows(2).map(hop).collect()
}
