//! Builds a topology: numbers the nodes and counts the ports as they are added.

use flow::{DatapathId, MacAddr, PortNo};
use std::net::Ipv4Addr;

use super::geography::Place;
use super::{Endpoint, HostPlan, Link, SwitchPlan, Topology};
use crate::link::LinkQuality;

/// Hosts have addresses in 10.0.0.0/8.
const FIRST_ADDRESS: u32 = 0x0a00_0000;

/// The nodes and links so far.
#[derive(Default)]
pub(super) struct Plan {
    switches: Vec<SwitchPlan>,
    ports_used: Vec<u32>,
    hosts: Vec<HostPlan>,
    links: Vec<Link>,
}

/// A switch or a host, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Switch(usize),
    Host(usize),
}

impl Plan {
    /// Adds the next switch: `s1` with datapath id 1, and so on.
    pub(super) fn switch(&mut self) -> Node {
        let number = self.switches.len() + 1;
        self.switch_as(format!("s{number}"), DatapathId(number as u64))
    }

    /// Adds a switch with a given name and datapath id.
    pub(super) fn switch_as(&mut self, name: String, datapath_id: DatapathId) -> Node {
        self.switches.push(SwitchPlan { name, label: String::new(), datapath_id, place: None });
        self.ports_used.push(0);
        Node::Switch(self.switches.len() - 1)
    }

    /// Adds the next host, with the next addresses.
    pub(super) fn host(&mut self, name: String) -> Node {
        // HOSTS_MAX is far below what fits.
        let number = self.hosts.len() as u32 + 1;
        self.host_at(name, MacAddr::from_u64(u64::from(number)), Ipv4Addr::from(FIRST_ADDRESS + number))
    }

    /// Adds a host with given addresses.
    pub(super) fn host_at(&mut self, name: String, mac: MacAddr, address: Ipv4Addr) -> Node {
        self.hosts.push(HostPlan { name, mac, address });
        Node::Host(self.hosts.len() - 1)
    }

    /// Sets where a switch is on the globe.
    pub(super) fn place(&mut self, node: Node, place: Option<Place>) {
        if let Node::Switch(index) = node {
            self.switches[index].place = place;
        }
    }

    /// Sets a switch's label.
    pub(super) fn label(&mut self, node: Node, label: &str) {
        if let Node::Switch(index) = node {
            label.clone_into(&mut self.switches[index].label);
        }
    }

    /// Adds an ideal link at the next port of each end.
    pub(super) fn link(&mut self, one: Node, two: Node) {
        self.link_with(one, two, LinkQuality::default());
    }

    /// Adds a link at the next port of each end.
    pub(super) fn link_with(&mut self, one: Node, two: Node, quality: LinkQuality) {
        let link = Link { one: self.plug(one), two: self.plug(two), quality };
        self.links.push(link);
    }

    /// Adds a link at given ports. A host's port is ignored, because a host has one.
    pub(super) fn link_at(&mut self, one: (Node, PortNo), two: (Node, PortNo), quality: LinkQuality) {
        let end = |(node, port): (Node, PortNo)| match node {
            Node::Host(index) => Endpoint::Host { index },
            Node::Switch(index) => Endpoint::Switch { index, port },
        };
        self.links.push(Link { one: end(one), two: end(two), quality });
    }

    fn plug(&mut self, node: Node) -> Endpoint {
        match node {
            Node::Host(index) => Endpoint::Host { index },
            Node::Switch(index) => {
                self.ports_used[index] += 1;
                Endpoint::Switch { index, port: PortNo(self.ports_used[index]) }
            }
        }
    }

    /// The number of hosts so far.
    pub(super) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The finished topology.
    pub(super) fn finish(self) -> Topology {
        Topology { switches: self.switches, hosts: self.hosts, links: self.links }
    }
}
