//! What the operator sets: subnets with their gateway addresses, and static routes.
//!
//! ```text
//!   interfaces, routes ──> Settings::read ──> Table: the next hop of an address, by the longest prefix
//! ```
//!
//! In: JSON. Out: checked values, or a sentence that names the setting. It knows no host and no switch.

use crate::prefix::Prefix;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The most interfaces. With more the app refuses to start: each is some rules in each switch.
pub const INTERFACES_MAX: usize = 256;

/// The most static routes. With more the app refuses to start, for the same reason.
pub const ROUTES_MAX: usize = 1_000;

/// What happens in a switch that speaks OpenFlow 1.0, which cannot decrement a time-to-live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InOpenFlow10 {
    /// It does not route, and the operator is told.
    #[default]
    Refuse,
    /// It routes, and packets keep their time-to-live.
    Keep,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    interfaces: Vec<WrittenInterface>,
    #[serde(default)]
    routes: Vec<WrittenRoute>,
    #[serde(default)]
    table: u8,
    #[serde(default)]
    ttl_in_openflow_10: InOpenFlow10,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenInterface {
    network: String,
    gateway: IpAddr,
    vlan: Option<u16>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRoute {
    to: String,
    via: IpAddr,
}

/// A subnet, and the router's address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The subnet.
    pub network: Prefix,
    /// The router's address.
    pub gateway: IpAddr,
    /// The VLAN of its hosts. `None`: their frames are untagged.
    pub vlan: Option<u16>,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub to: Prefix,
    /// The destinations without the subnets of interfaces. A packet to an unknown host of a subnet must reach the app, and not the neighbour.
    pub parts: Vec<Prefix>,
    /// The neighbour that takes them.
    pub via: IpAddr,
    /// Where the neighbour is: the number of the interface.
    pub interface: usize,
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The number of the interface.
    pub interface: usize,
    /// The neighbour: the destination itself, or the one of a route.
    pub neighbour: IpAddr,
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct RouterSettings {
    /// The subnets.
    pub interfaces: Vec<Interface>,
    /// The routes.
    pub routes: Vec<Route>,
    /// The table of its rules in switches that have several.
    pub table: u8,
    /// What happens in switches without a decrement.
    pub ttl_in_openflow_10: InOpenFlow10,
}

impl RouterSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn read(settings: &burnet_sdk::Settings) -> Result<RouterSettings, String> {
        let Written { interfaces, routes, table, ttl_in_openflow_10 } = settings.read()?;
        if interfaces.is_empty() || interfaces.len() > INTERFACES_MAX {
            return Err(format!("interfaces: there are {}; write 1 to {INTERFACES_MAX}", interfaces.len()));
        }
        if routes.len() > ROUTES_MAX {
            return Err(format!("routes: there are {}; at most {ROUTES_MAX} can be", routes.len()));
        }
        if table > 254 {
            return Err(format!("table = {table}: write 0 to 254"));
        }
        let mut checked: Vec<Interface> = Vec::new();
        for written in interfaces {
            let interface = check_interface(&written)?;
            if let Some(other) = checked.iter().find(|other| other.network.overlaps(interface.network)) {
                return Err(format!(
                    "interfaces.network: {} and {} have addresses in common: a packet would have two ways",
                    other.network, interface.network
                ));
            }
            checked.push(interface);
        }
        let routes = check_routes(routes, &checked)?;
        Ok(RouterSettings { interfaces: checked, routes, table, ttl_in_openflow_10 })
    }

    /// Where a packet to this address goes next, by the longest prefix. `None`: there is no route.
    pub fn next_hop(&self, to: IpAddr) -> Option<NextHop> {
        let connected = self.interfaces.iter().enumerate();
        let connected = connected.map(|(interface, it)| (it.network, NextHop { interface, neighbour: to }));
        let routed = self.routes.iter();
        let routed = routed.map(|it| (it.to, NextHop { interface: it.interface, neighbour: it.via }));
        let fits = connected.chain(routed).filter(|(prefix, _)| prefix.contains(to));
        fits.max_by_key(|(prefix, _)| prefix.bits).map(|(_, next)| next)
    }

    /// The interface that has this gateway address.
    pub fn with_gateway(&self, address: IpAddr) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.gateway == address)
    }

    /// The VLANs of the interfaces, each once.
    pub fn vlans(&self, is_ipv4: bool) -> BTreeSet<Option<u16>> {
        let of_version = self.interfaces.iter().filter(|it| it.gateway.is_ipv4() == is_ipv4);
        of_version.map(|interface| interface.vlan).collect()
    }
}

fn check_interface(written: &WrittenInterface) -> Result<Interface, String> {
    let WrittenInterface { network, gateway, vlan } = written;
    let prefix = Prefix::read(network).map_err(|why| format!("interfaces.network: {why}"))?;
    let host_bits = Prefix::of_one(prefix.address).bits - prefix.bits;
    if host_bits < 2 || prefix.bits < 8 {
        return Err(format!(
            "interfaces.network: {network} has no room for a gateway and hosts, or is too large: write /8 to /30, or to /126 in IPv6"
        ));
    }
    if !prefix.is_of_host(*gateway) {
        return Err(format!("interfaces.gateway: {gateway} is no address of a host in {network}"));
    }
    match vlan {
        Some(vlan) if !(1..=4094).contains(vlan) => {
            Err(format!("interfaces.vlan: {vlan} is no VLAN: write 1 to 4094, or leave it out"))
        }
        _ => Ok(Interface { network: prefix, gateway: *gateway, vlan: *vlan }),
    }
}

fn check_routes(written: Vec<WrittenRoute>, interfaces: &[Interface]) -> Result<Vec<Route>, String> {
    let mut routes: Vec<Route> = Vec::new();
    for WrittenRoute { to: text, via } in written {
        let to = Prefix::read(&text).map_err(|why| format!("routes.to: {why}"))?;
        if to.address.is_ipv4() != via.is_ipv4() {
            return Err(format!("routes.via: {via} is of another version of IP than {text}"));
        }
        let place = interfaces.iter().position(|interface| interface.network.is_of_host(via));
        let Some(interface) = place else {
            return Err(format!(
                "routes.via: {via} is in the network of no interface, so nobody can reach it"
            ));
        };
        if interfaces[interface].gateway == via {
            return Err(format!("routes.via: {via} is the router's own address: name the next router"));
        }
        if routes.iter().any(|other| other.to == to) || interfaces.iter().any(|other| other.network == to) {
            return Err(format!("routes.to: {text} is there twice, or is the network of an interface"));
        }
        if interfaces.iter().any(|other| Prefix::of_one(other.gateway) == to) {
            return Err(format!("routes.to: {text} is the router's own address"));
        }
        let is_inside = |it: &Prefix| to.contains(it.address) && it.bits > to.bits;
        let subnets: Vec<Prefix> = interfaces.iter().map(|it| it.network).filter(is_inside).collect();
        routes.push(Route { to, parts: to.without(&subnets), via, interface });
    }
    Ok(routes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings(json: &str) -> Result<RouterSettings, String> {
        RouterSettings::read(&burnet_sdk::Settings::from_json(json.as_bytes()).unwrap())
    }

    fn check_refused(interfaces: &str, rest: &str, part: &str) {
        let why = settings(&format!("{{\"interfaces\": [{interfaces}]{rest}}}")).unwrap_err();
        assert!(why.contains(part), "{interfaces} {rest}: {why}");
    }

    const ONE: &str = r#"{"network": "10.0.1.0/24", "gateway": "10.0.1.1"}"#;

    #[test]
    fn a_wrong_interface_is_refused_with_the_name_of_its_setting() {
        let interface = |network: &str, gateway: &str| {
            format!("{{\"network\": \"{network}\", \"gateway\": \"{gateway}\"}}")
        };
        check_refused("", "", "interfaces: there are 0");
        check_refused(
            &interface("10.0.1.0", "10.0.1.1"),
            "",
            "interfaces.network: \"10.0.1.0\" is no network",
        );
        check_refused(&interface("10.0.1.5/24", "10.0.1.1"), "", "behind /24 must be 0");
        check_refused(&interface("10.0.1.0/31", "10.0.1.1"), "", "no room for a gateway and hosts");
        check_refused(
            &interface("0.0.0.0/0", "10.0.1.1"),
            "",
            "no room for a gateway and hosts, or is too large",
        );
        check_refused(
            &interface("10.0.1.0/24", "10.0.2.1"),
            "",
            "interfaces.gateway: 10.0.2.1 is no address of a host",
        );
        check_refused(&interface("10.0.1.0/24", "10.0.1.255"), "", "interfaces.gateway: 10.0.1.255");
        check_refused(&interface("10.0.1.0/24", "fd00::1"), "", "interfaces.gateway: fd00::1");
        check_refused(
            r#"{"network": "10.0.1.0/24", "gateway": "10.0.1.1", "vlan": 0}"#,
            "",
            "interfaces.vlan: 0",
        );
        check_refused(r#"{"network": "10.0.1.0/24"}"#, "", "missing field `gateway`");
        check_refused(
            &format!("{ONE}, {}", interface("10.0.0.0/16", "10.0.2.1")),
            "",
            "have addresses in common",
        );
        check_refused(ONE, r#", "table": 255"#, "table = 255");
        check_refused(ONE, r#", "ttl_in_openflow_10": "drop""#, "unknown variant `drop`");
    }

    #[test]
    fn a_wrong_route_is_refused_with_the_name_of_its_setting() {
        let check = |to: &str, via: &str, part: &str| {
            let routes = format!(", \"routes\": [{{\"to\": \"{to}\", \"via\": \"{via}\"}}]");
            check_refused(ONE, &routes, part);
        };
        check("10.9.0.1/16", "10.0.1.2", "routes.to:");
        check("10.9.0.0/16", "10.0.2.2", "routes.via: 10.0.2.2 is in the network of no interface");
        check("10.9.0.0/16", "fd00::2", "routes.via: fd00::2 is of another version");
        check("10.9.0.0/16", "10.0.1.1", "routes.via: 10.0.1.1 is the router's own address");
        check("10.0.1.0/24", "10.0.1.2", "routes.to: 10.0.1.0/24 is there twice, or is the network");
        check("10.0.1.1/32", "10.0.1.2", "routes.to: 10.0.1.1/32 is the router's own address");
        let twice =
            r#", "routes": [{"to": "0.0.0.0/0", "via": "10.0.1.2"}, {"to": "0.0.0.0/0", "via": "10.0.1.3"}]"#;
        check_refused(ONE, twice, "routes.to: 0.0.0.0/0 is there twice");
    }

    #[test]
    fn the_longest_prefix_decides() {
        let settings = settings(
            r#"{"interfaces": [{"network": "10.0.1.0/24", "gateway": "10.0.1.1"},
                    {"network": "10.0.2.0/24", "gateway": "10.0.2.1", "vlan": 2}],
                "routes": [{"to": "0.0.0.0/0", "via": "10.0.1.9"}, {"to": "10.0.0.0/8", "via": "10.0.2.9"},
                    {"to": "10.0.1.128/25", "via": "10.0.2.8"}]}"#,
        );
        let settings = settings.unwrap();
        let check = |to: &str, expected: Option<(usize, &str)>| {
            let next = settings.next_hop(to.parse().unwrap());
            let expected = expected
                .map(|(interface, neighbour)| NextHop { interface, neighbour: neighbour.parse().unwrap() });
            assert_eq!(next, expected, "{to}");
        };
        check("203.0.113.1", Some((0, "10.0.1.9")));
        check("10.7.0.1", Some((1, "10.0.2.9")));
        check("10.0.1.7", Some((0, "10.0.1.7")));
        check("10.0.1.200", Some((1, "10.0.2.8")));
        check("10.0.2.7", Some((1, "10.0.2.7")));
        check("fd00::1", None);
    }
}
