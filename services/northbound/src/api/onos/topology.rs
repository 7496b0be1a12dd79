//! The topology in the interface of ONOS: its size, and its clusters, which are the parts of the network that links join.
//!
//! ```text
//!   switches and links that are up ──clusters──> parts, each with a tree of links ──> JSON
//! ```
//!
//! In: the view. Out: JSON with the names of ONOS. It computes the clusters for each request, and keeps nothing.

use super::ready;
use super::shapes::link;
use crate::api::context::{Answered, Context};
use crate::http::Problem;
use burnet_sdk::DatapathId;
use burnet_sdk::view::{ConnectPoint, Link, LinkState, Snapshot, SwitchState};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// A part of the network.
struct Cluster<'v> {
    /// Its switches. The first one has the lowest id.
    devices: Vec<DatapathId>,
    links: Vec<&'v Link>,
    /// The ends of the links over which a broadcast reaches each switch once.
    tree: BTreeSet<ConnectPoint>,
}

/// All parts, in the order of their first switches.
fn clusters(view: &Snapshot) -> Vec<Cluster<'_>> {
    let up: Vec<DatapathId> =
        view.switches().filter(|it| it.state == SwitchState::Up).map(|it| it.id).collect();
    let (known, mut seen): (BTreeSet<_>, BTreeSet<_>) = (up.iter().copied().collect(), BTreeSet::new());
    let mut clusters = Vec::new();
    for root in up {
        if seen.insert(root) {
            clusters.push(cluster(view, root, &known, &mut seen));
        }
    }
    clusters
}

fn cluster<'v>(
    view: &'v Snapshot,
    root: DatapathId,
    known: &BTreeSet<DatapathId>,
    seen: &mut BTreeSet<DatapathId>,
) -> Cluster<'v> {
    let mut found = Cluster { devices: vec![root], links: Vec::new(), tree: BTreeSet::new() };
    let mut next = VecDeque::from([root]);
    while let Some(switch) = next.pop_front() {
        let is_up = |link: &&Link| link.state == LinkState::Up;
        let out = view.links_from_switch(switch).filter(is_up);
        found.links.extend(out.filter(|link| known.contains(&link.id.to.switch)));
        let both = view.links_from_switch(switch).chain(view.links_to_switch(switch)).filter(is_up);
        for link in both {
            let (from, to) = (link.id.from, link.id.to);
            let other = if from.switch == switch { to.switch } else { from.switch };
            if known.contains(&other) && seen.insert(other) {
                found.devices.push(other);
                found.tree.extend([from, to]);
                next.push_back(other);
            }
        }
    }
    found.devices.sort_unstable();
    found
}

/// `GET /onos/v1/topology`
pub fn size(context: &Context<'_>) -> Answered {
    let view = &context.state.view;
    let up = |link: &&Link| link.state == LinkState::Up;
    ready(&json!({
        "time": view.version(),
        "devices": view.switches().filter(|it| it.state == SwitchState::Up).count(),
        "links": view.links().filter(up).count(),
        "clusters": clusters(view).len(),
    }))
}

fn shown(id: usize, cluster: &Cluster<'_>) -> Value {
    json!({
        "id": id,
        "deviceCount": cluster.devices.len(),
        "linkCount": cluster.links.len(),
        "root": cluster.devices.first().map(ToString::to_string),
    })
}

/// `GET /onos/v1/topology/clusters`
pub fn all_clusters(context: &Context<'_>) -> Answered {
    let clusters = clusters(&context.state.view);
    let shown: Vec<Value> = clusters.iter().enumerate().map(|(id, cluster)| shown(id, cluster)).collect();
    ready(&json!({ "clusters": shown }))
}

/// `GET /onos/v1/topology/clusters/{id}`, also with `devices` or `links` behind it.
pub fn one_cluster(context: &Context<'_>) -> Answered {
    let (number, what) = context.id.split_once('/').map_or((context.id, None), |(one, two)| (one, Some(two)));
    let clusters = clusters(&context.state.view);
    let missing = || Problem::not_found(&format!("the network has no cluster {number:?}"));
    let id: usize = number.parse().map_err(|_| missing())?;
    let cluster = clusters.get(id).ok_or_else(missing)?;
    match what {
        None => ready(&shown(id, cluster)),
        Some("devices") => {
            let devices: Vec<String> = cluster.devices.iter().map(ToString::to_string).collect();
            ready(&json!({ "devices": devices }))
        }
        Some("links") => {
            let links: Vec<Value> = cluster.links.iter().map(|it| link(it)).collect();
            ready(&json!({ "links": links }))
        }
        Some(_) => Err(Problem::not_found("write devices or links behind the cluster")),
    }
}

/// The port in the path: the device, a colon or a slash, and the number.
fn port(context: &Context<'_>) -> Result<ConnectPoint, Problem> {
    let parts = context.id.rsplit_once([':', '/']);
    let at = parts.and_then(|(device, port)| {
        Some(ConnectPoint { switch: device.parse().ok()?, port: port.parse().ok()? })
    });
    let missing =
        || Problem::not_found(&format!("the network has no port {:?}: write DEVICE:PORT", context.id));
    at.filter(|at| context.state.view.port(*at).is_some()).ok_or_else(missing)
}

fn is_infrastructure(view: &Snapshot, at: ConnectPoint) -> bool {
    view.links_from(at).chain(view.links_to(at)).any(|link| link.state == LinkState::Up)
}

/// `GET /onos/v1/topology/infrastructure/{id}`: whether a link is at this port.
pub fn infrastructure(context: &Context<'_>) -> Answered {
    let at = port(context)?;
    ready(&json!({ "infrastructure": is_infrastructure(&context.state.view, at) }))
}

/// `GET /onos/v1/topology/broadcast/{id}`: whether a broadcast that is sent by this port reaches no switch a second time.
pub fn broadcast(context: &Context<'_>) -> Answered {
    let (at, view) = (port(context)?, &context.state.view);
    let is_free =
        !is_infrastructure(view, at) || clusters(view).iter().any(|cluster| cluster.tree.contains(&at));
    ready(&json!({ "broadcast": is_free }))
}
