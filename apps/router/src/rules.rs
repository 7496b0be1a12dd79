//! The rules of the router: which packets come to the app, and how packets to a known next hop are changed and sent on.
//!
//! ```text
//!   hop                   to the router's MAC, to this destination ──> one hop less, addresses of the next hop, out
//!   transit to a host     from the router's MAC, to the host's MAC, by this link ──> out
//! ```
//!
//! In: settings, the network view, a host. Out: items of rule sets. Only the switch where a packet enters changes it. The others follow its new
//! addresses. Their rules match the link by which it comes, so it cannot go in circles. It keeps no state.

use crate::answer::MAC;
use crate::frame::{IPV4, IPV6, TAG};
use crate::prefix::Prefix;
use crate::settings::{InOpenFlow10, RouterSettings};
use burnet_sdk::flow::canonical::ActionWriter;
use burnet_sdk::view::{Host, Snapshot, Switch};
use burnet_sdk::{DatapathId, Field, InstructionWriter, MacAddr, MatchWriter, PortNo};
use burnet_sdk_rules::tree::Tree;
use burnet_sdk_rules::{Items, Rule};
use std::net::IpAddr;

/// Each longer prefix is two above: one of the two is for packets that leave by the port of their arrival.
const SHORTEST_PREFIX: u16 = 24_002;
/// Packets that another switch has changed.
const TRANSIT: u16 = 24_600;
/// The bit of a VLAN field that marks a tag (OpenFlow 1.3.5, 7.2.3.7).
const PRESENT: u16 = 0x1000;

/// A switch that can have rules, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) switch: DatapathId,
    table: u8,
    is_v10: bool,
    /// It changes packets. The others pass on what was changed.
    routes: bool,
}

impl Place {
    /// The place of a switch. If it is not connected, its rules wait in the service.
    pub(crate) fn of(switch: &Switch, settings: &RouterSettings) -> Place {
        let is_v10 = switch.openflow == "1.0";
        let table = if is_v10 { 0 } else { settings.table };
        let routes = !is_v10 || settings.ttl_in_openflow_10 == InOpenFlow10::Keep;
        Place { switch: switch.id, table, is_v10, routes }
    }

    /// Whether packets of this version of IP are routed here. A match of OpenFlow 1.0 has no addresses of IPv6.
    fn routes_to(self, address: IpAddr) -> bool {
        self.routes && (address.is_ipv4() || !self.is_v10)
    }

    fn rule(
        self,
        items: &mut Items<'_>,
        priority: u16,
        matching: impl FnOnce(&mut MatchWriter<'_>),
        actions: impl FnOnce(&mut ActionWriter<'_>),
    ) {
        let (mut bytes, mut instructions) = (Vec::new(), Vec::new());
        matching(&mut MatchWriter::new(&mut bytes));
        InstructionWriter::new(&mut instructions).apply_actions(actions);
        items.rule(&Rule {
            switch: self.switch,
            table_id: self.table,
            stage: 0,
            priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            matching: &bytes,
            instructions: &instructions,
        });
    }
}

fn vid(vlan: Option<u16>) -> u16 {
    vlan.map_or(0, |vlan| vlan | PRESENT)
}

fn priority_of(prefix: Prefix) -> u16 {
    SHORTEST_PREFIX + 2 * u16::from(prefix.bits)
}

/// Matches packets to the router for these destinations.
fn routed(m: &mut MatchWriter<'_>, in_port: Option<PortNo>, vlan: Option<u16>, is_ipv4: bool, to: Prefix) {
    if let Some(port) = in_port {
        m.field(Field::InPort, port);
    }
    m.field(Field::EthDst, MAC).field(Field::VlanVid, vid(vlan));
    m.field(Field::EthType, if is_ipv4 { IPV4 } else { IPV6 });
    if to.bits == 0 {
        return;
    }
    let is_one = to == Prefix::of_one(to.address);
    match to.address {
        IpAddr::V4(address) if is_one => m.field(Field::Ipv4Dst, address),
        // The lower 32 bits.
        IpAddr::V4(address) => {
            m.masked(Field::Ipv4Dst, address, std::net::Ipv4Addr::from_bits(to.mask() as u32))
        }
        IpAddr::V6(address) if is_one => m.field(Field::Ipv6Dst, address),
        IpAddr::V6(address) => m.masked(Field::Ipv6Dst, address, std::net::Ipv6Addr::from_bits(to.mask())),
    };
}

/// The rules of a switch for packets to this part of the destinations of a route. Their next hop is this host. The whole route decides the priority.
pub(crate) fn hop(
    place: Place,
    settings: &RouterSettings,
    (route, to): (Prefix, Prefix),
    host: &Host,
    tree: &Tree,
    items: &mut Items<'_>,
) {
    if !place.routes_to(to.address) {
        return;
    }
    let is_here = place.switch == host.at.switch;
    let Some(out_port) =
        tree.get(&place.switch).map(|link| link.from.port).or(is_here.then_some(host.at.port))
    else {
        // No path leads there.
        return;
    };
    let is_ipv4 = to.address.is_ipv4();
    for vlan in settings.vlans(is_ipv4) {
        let change = |actions: &mut ActionWriter<'_>| change(place, vlan, host.id.mac, host.id.vlan, actions);
        let matching = |m: &mut MatchWriter<'_>| routed(m, None, vlan, is_ipv4, to);
        place.rule(items, priority_of(route), matching, |actions| {
            change(actions);
            actions.output(out_port, 0);
        });
        if is_here {
            // A switch sends a packet back to where it came from only by this name.
            let matching = |m: &mut MatchWriter<'_>| routed(m, Some(out_port), vlan, is_ipv4, to);
            place.rule(items, priority_of(route) + 1, matching, |actions| {
                change(actions);
                actions.output(PortNo::IN_PORT, 0);
            });
        }
    }
}

/// One hop less, the addresses of the next hop, and its tag. The decrement comes first: a switch that reports a packet whose time-to-live has
/// ended reports it as it came.
fn change(place: Place, from: Option<u16>, mac: MacAddr, to: Option<u16>, actions: &mut ActionWriter<'_>) {
    if !place.is_v10 {
        actions.dec_nw_ttl();
    }
    actions.set_field(Field::EthSrc, MAC).set_field(Field::EthDst, mac);
    match (from, to) {
        (Some(_), None) => {
            actions.pop_vlan();
        }
        (None, Some(vlan)) => {
            actions.push_vlan(TAG).set_field(Field::VlanVid, vlan | PRESENT);
        }
        (Some(from), Some(to)) if from != to => {
            actions.set_field(Field::VlanVid, to | PRESENT);
        }
        _ => {}
    }
}

/// The rules for packets on their way to a host, in the switches behind the first.
pub(crate) fn transit(
    host: &Host,
    tree: &Tree,
    view: &Snapshot,
    settings: &RouterSettings,
    items: &mut Items<'_>,
) {
    for link in tree.values() {
        let Some(place) = view.switch(link.to.switch).map(|switch| Place::of(switch, settings)) else {
            continue;
        };
        let next = tree.get(&place.switch).map_or(host.at.port, |next| next.from.port);
        let matching = |m: &mut MatchWriter<'_>| {
            m.field(Field::InPort, link.to.port).field(Field::EthDst, host.id.mac);
            m.field(Field::EthSrc, MAC).field(Field::VlanVid, vid(host.id.vlan));
        };
        place.rule(items, TRANSIT, matching, |actions| {
            actions.output(next, 0);
        });
    }
}
