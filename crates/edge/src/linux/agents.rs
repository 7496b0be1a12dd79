//! How the datagrams of agents are known among other frames.
//!
//! In: what `ip` says about the interface, the address of the agent's socket, and those of its peers. Out: [`Agents`], from which filters and
//! rules are made. It runs nothing.
//!
//! The port alone says nothing: a tenant can send to any port. So the frames must have the interface's own address too, which no VNIC behind it
//! has, and arriving ones the IP address of a peer. An interface without an Ethernet address has no frames of agents: their datagrams are
//! counted and shaped as all others.

use flow::MacAddr;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The most ports of peers for which there are filters. Datagrams to further ones are shaped as other frames.
const PORTS_MAX: usize = 8;

/// What distinguishes datagrams of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agents {
    /// The address of the interface.
    pub(super) mac: Option<MacAddr>,
    /// Where this agent listens. The IP address may be that of all interfaces.
    pub(super) own: SocketAddr,
    /// The IP addresses of peers.
    pub(super) peers: BTreeSet<IpAddr>,
    /// The ports of peers.
    pub(super) ports: BTreeSet<u16>,
}

impl Agents {
    pub(super) fn new(mac: Option<MacAddr>, own: SocketAddr, peers: &[SocketAddr]) -> Self {
        // A socket for both versions shows addresses of IPv4 in those of IPv6.
        let own = SocketAddr::new(own.ip().to_canonical(), own.port());
        let ports: BTreeSet<u16> = peers.iter().map(SocketAddr::port).collect();
        Agents {
            mac,
            own,
            peers: peers.iter().map(|peer| peer.ip().to_canonical()).collect(),
            ports: ports.into_iter().take(PORTS_MAX).collect(),
        }
    }

    /// The own IP address, if the socket has one of this version.
    pub(super) fn own_ip(&self, is_v6: bool) -> Option<IpAddr> {
        Some(self.own.ip()).filter(|ip| !ip.is_unspecified() && ip.is_ipv6() == is_v6)
    }

    /// Whether datagrams of this version of IP can come to the socket at all.
    pub(super) fn has_version(&self, is_v6: bool) -> bool {
        // A socket for all addresses of IPv6 takes those of IPv4 too.
        self.own.is_ipv6() == is_v6 || self.own.ip().is_unspecified() && self.own.is_ipv6()
    }
}

/// The Ethernet address in the output of `ip -o link show dev DEVICE`.
pub(super) fn mac_of(shown: &str) -> Option<MacAddr> {
    let mut words = shown.split_whitespace().skip_while(|word| *word != "link/ether");
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_an_ethernet_address_or_none() {
        let shown = "2: eth0@if3: <BROADCAST,UP> mtu 1500 qdisc noqueue\\    link/ether 02:00:00:00:00:03 brd ff:ff:ff:ff:ff:ff";
        assert_eq!(mac_of(shown), Some(MacAddr([2, 0, 0, 0, 0, 3])));
        assert_eq!(mac_of("5: tun0: <UP> mtu 1500\\    link/none "), None);
        assert_eq!(mac_of("link/ether"), None);
    }

    #[test]
    fn a_socket_for_all_addresses_has_no_own_one() {
        let check = |own: &str, expected: [Option<&str>; 2], versions: [bool; 2]| {
            let agents = Agents::new(None, own.parse().unwrap(), &[]);
            let own_ip = [false, true].map(|is_v6| agents.own_ip(is_v6).map(|ip| ip.to_string()));
            assert_eq!(own_ip, expected.map(|ip| ip.map(str::to_owned)), "{own}");
            assert_eq!([false, true].map(|is_v6| agents.has_version(is_v6)), versions, "{own}");
        };
        check("0.0.0.0:6655", [None, None], [true, false]);
        check("10.9.0.1:6655", [Some("10.9.0.1"), None], [true, false]);
        check("[::]:6655", [None, None], [true, true]);
        check("[::ffff:10.9.0.1]:6655", [Some("10.9.0.1"), None], [true, false]);
        check("[fd00::1]:6655", [None, Some("fd00::1")], [false, true]);
    }
}
