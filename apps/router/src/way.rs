//! The rule sets of the router: kept as the network view says.
//!
//! ```text
//!   switches, links ──> all sets;     a host, an address ──> the sets of this host
//! ```
//!
//! In: changes of the view. Out: wanted sets, and which switches cannot route. What did not change is not sent. It sends no packet.

use crate::host_of;
use crate::prefix::Prefix;
use crate::rules::{self, Place};
use crate::settings::{InOpenFlow10, NextHop, RouterSettings};
use burnet_sdk::view::{Batch, Host, HostId, Kind, Port, Snapshot, SwitchState};
use burnet_sdk::{Commands, DatapathId, PortNo};
use burnet_sdk_rules::RuleSets;
use burnet_sdk_rules::tree::{self, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// How many switches share one set of a host at most. A change of one switch sends the rules of all of them again.
const SWITCHES_PER_SET: usize = 64;

/// The most rules of such a set: each has at most 175 bytes, so the set is smaller than [`burnet_sdk_rules::SET_BYTES_MAX`].
const RULES_PER_SET: usize = 512;

/// The rule sets, and what was told.
#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) sets: RuleSets,
    /// Switches of which the operator was told that they cannot route.
    told: BTreeSet<DatapathId>,
    refused: Vec<String>,
}

/// The trees that were needed since the view changed.
type Trees = BTreeMap<DatapathId, Tree>;

impl Ways {
    pub(crate) fn new(started_ms: u64) -> Ways {
        Ways { sets: RuleSets::new(started_ms), told: BTreeSet::new(), refused: Vec::new() }
    }

    /// The host that is this next hop. If several claim the address, the first.
    pub(crate) fn host<'v>(
        &self,
        next: NextHop,
        settings: &RouterSettings,
        view: &'v Snapshot,
    ) -> Option<&'v Host> {
        let vlan = settings.interfaces.get(next.interface)?.vlan;
        let hosts = view.hosts_with_address(next.neighbour).filter(|host| host.id.vlan == vlan);
        hosts.min_by_key(|host| host.id)
    }

    /// The view has changed.
    pub(crate) fn on_view(
        &mut self,
        changes: &Batch,
        view: &Snapshot,
        settings: &RouterSettings,
        out: &mut Commands,
    ) {
        let mut trees = Trees::new();
        let is_topology = changes.iter().any(|notice| matches!(notice.kind(), Kind::Switch | Kind::Link));
        let mut hosts: BTreeSet<HostId> = BTreeSet::new();
        let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
        if is_topology {
            self.note_limits(view, settings);
            hosts.extend(view.hosts().map(|host| host.id));
            addresses.extend(view.hosts().flat_map(|host| host.addresses.iter().copied()));
        }
        for notice in changes.of(Kind::Host) {
            for host in [host_of(notice.before()), host_of(notice.now())].into_iter().flatten() {
                hosts.insert(host.id);
                addresses.extend(host.addresses.iter().copied());
            }
        }
        addresses.into_iter().for_each(|address| self.renew_hop(address, view, settings, &mut trees));
        hosts.into_iter().for_each(|host| self.renew_transit(host, view, settings, &mut trees));
        self.sets.send(out);
    }

    /// Notes for the operator which switches cannot route.
    fn note_limits(&mut self, view: &Snapshot, settings: &RouterSettings) {
        for switch in view.switches() {
            if switch.openflow == "1.0" && self.told.insert(switch.id) {
                self.refused.extend(limits_of_v10(switch.id, settings));
            }
        }
    }

    /// The rules for packets to one destination and, if it is the next hop of routes, to theirs.
    fn renew_hop(&mut self, address: IpAddr, view: &Snapshot, settings: &RouterSettings, trees: &mut Trees) {
        let own = settings.next_hop(address).filter(|next| next.neighbour == address);
        let one = Prefix::of_one(address);
        let own = own.map(|next| (one, vec![one], next));
        let routed = settings.routes.iter().filter(|route| route.via == address);
        let routed = routed
            .map(|it| (it.to, it.parts.clone(), NextHop { interface: it.interface, neighbour: it.via }));
        for (to, parts, next) in own.into_iter().chain(routed) {
            if settings.with_gateway(address).is_some() {
                // A host that pretends to be the router gets nothing.
                continue;
            }
            let name = format!("{to}/");
            match self.host(next, settings, view) {
                Some(host) => {
                    let tree = trees.entry(host.at.switch).or_insert_with(|| tree::to(view, host.at.switch));
                    for part in parts {
                        let name = if part == to { name.clone() } else { format!("{name}{part}/") };
                        self.want_hop(&name, (to, part), host, view, settings, tree);
                    }
                }
                None => self.unwant(&name),
            }
        }
    }

    fn want_hop(
        &mut self,
        name: &str,
        (route, part): (Prefix, Prefix),
        host: &Host,
        view: &Snapshot,
        settings: &RouterSettings,
        tree: &Tree,
    ) {
        let places: Vec<Place> = view.switches().map(|switch| Place::of(switch, settings)).collect();
        // One rule for each VLAN in each switch, and one more for each in the host's own switch.
        let of_switch = settings.vlans(part.address.is_ipv4()).len().max(1);
        let per_set = (RULES_PER_SET / of_switch).saturating_sub(1).clamp(1, SWITCHES_PER_SET);
        for (number, places) in places.chunks(per_set).enumerate() {
            self.sets.want(&format!("{name}{number}"), |items| {
                places.iter().for_each(|place| {
                    rules::hop(*place, settings, (route, part), host, tree, items);
                });
            });
        }
        // There may be fewer switches than before.
        let count = places.len().div_ceil(per_set);
        let is_left = |set: &&str| {
            let number = set.strip_prefix(name).and_then(|number| number.parse::<usize>().ok());
            number.is_some_and(|number| number >= count)
        };
        let left: Vec<String> = self.sets.names(name).filter(is_left).map(str::to_owned).collect();
        left.iter().for_each(|set| self.sets.unwant(set));
    }

    fn unwant(&mut self, prefix: &str) {
        let names: Vec<String> = self.sets.names(prefix).map(str::to_owned).collect();
        names.iter().for_each(|name| self.sets.unwant(name));
    }

    /// The rules for packets that were changed for a host. A host that is no next hop needs none.
    fn renew_transit(&mut self, id: HostId, view: &Snapshot, settings: &RouterSettings, trees: &mut Trees) {
        let name = format!("host/{id}");
        let is_next_hop = |host: &&Host| {
            let is_one = |address: &IpAddr| {
                settings.interfaces.iter().any(|it| it.vlan == id.vlan && it.network.contains(*address))
            };
            host.addresses.iter().any(is_one)
        };
        match view.host(id).filter(is_next_hop) {
            Some(host) => {
                let tree = trees.entry(host.at.switch).or_insert_with(|| tree::to(view, host.at.switch));
                self.sets.want(&name, |items| rules::transit(host, tree, view, settings, items));
            }
            None => self.sets.unwant(&name),
        }
    }

    /// What the operator was not told yet about switches that cannot route.
    pub(crate) fn take_refused(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refused)
    }
}

/// What a switch with OpenFlow 1.0 cannot do.
fn limits_of_v10(switch: DatapathId, settings: &RouterSettings) -> Vec<String> {
    let mut limits = Vec::new();
    if settings.ttl_in_openflow_10 == InOpenFlow10::Refuse {
        limits.push(format!(
            "{switch} does not route: OpenFlow 1.0 cannot decrement a time-to-live. Use OpenFlow 1.3 there, or set \
             ttl_in_openflow_10 = \"keep\""
        ));
    } else if !settings.vlans(false).is_empty() {
        limits.push(format!("{switch} does not route IPv6: OpenFlow 1.0 has no matches for its addresses"));
    }
    limits
}

/// The ports of the connected switches that are live and have no link.
pub(crate) type Edge = BTreeMap<DatapathId, Vec<PortNo>>;

/// The edge of the network.
pub(crate) fn edge(view: &Snapshot) -> Edge {
    let is_edge = |port: &&Port| port.live && port.id.port < PortNo::MAX && !view.has_link(port.id);
    let is_up =
        |switch: DatapathId| matches!(view.switch(switch), Some(switch) if switch.state == SwitchState::Up);
    let mut edge = Edge::new();
    for port in view.ports().filter(is_edge).filter(|port| is_up(port.id.switch)) {
        edge.entry(port.id.switch).or_default().push(port.id.port);
    }
    edge
}
