//! The shape of a network: its switches, hosts and links.
//!
//! ```text
//!   "fattree,4" ──> words ──> fabric, shapes, random ──┐
//!   FILE.graphml, FILE.json ──> graphml, node_link ──> graph ──┼──> Plan ──> Topology
//!   FILE.py and a name in it ──> custom (runs python3) ────────┘
//! ```
//!
//! It reads Mininet's forms (`single,4`, `linear,3`, `tree,2,3`) and numbers nodes as Mininet does. `s1` has datapath
//! id 1. `h1` has 10.0.0.1 and 00:00:00:00:00:01 (as with `mn --mac`). A switch's ports count up from 1 in the order
//! in which its links are made.
//!
//! It starts no process except the python3 that runs the operator's own file.

mod bounds;
mod custom;
mod fabric;
mod file;
mod geography;
mod graph;
mod graphml;
mod node_link;
mod plan;
mod random;
mod shapes;
mod spanning_tree;
mod words;
mod zoo;

pub use bounds::NotATopology;
pub use custom::{CUSTOM_PATIENCE, CustomTopology};
pub use file::{FILE_MAX_BYTES, FromFile, NotATopologyFile};
pub use geography::Place;
pub use spanning_tree::spanning_tree;

pub use zoo::zoo_names;

use flow::{DatapathId, MacAddr, PortNo};
use std::net::Ipv4Addr;

use crate::link::LinkQuality;

/// The most switches of a network. The error for a larger one names the limit. A switch and its host take about 12
/// KiB without rules.
pub const SWITCHES_MAX: usize = 4096;
/// The most hosts in a network.
pub const HOSTS_MAX: usize = 16_384;
/// The most links in a network: more than the largest fat tree that these hosts fill.
pub const LINKS_MAX: usize = 65_536;

/// The plan of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its switches. A link names one by its index here.
    pub switches: Vec<SwitchPlan>,
    /// Its hosts. A link names one by its index here.
    pub hosts: Vec<HostPlan>,
    /// The links between switches and hosts.
    pub links: Vec<Link>,
}

/// The plan of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// `s1`, `s2` …
    pub name: String,
    /// Its name in the file; empty if there is none.
    pub label: String,
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// Where it is on the globe, if the source of the topology says so.
    pub place: Option<Place>,
}

/// The plan of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// `h1`, `h2` …, or `h1s2` if each switch of a line has several.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub one: Endpoint,
    /// The other end.
    pub two: Endpoint,
    /// How it treats frames.
    pub quality: LinkQuality,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// A port of a switch.
    Switch {
        /// Index of the switch.
        index: usize,
        /// Its port.
        port: PortNo,
    },
    /// The one port of a host.
    Host {
        /// Index of the host.
        index: usize,
    },
}

impl Topology {
    /// The index of a switch, by its name, its datapath id as text, or its label if that is unique.
    pub fn switch_named(&self, name: &str) -> Option<usize> {
        let by_name = self.switches.iter().position(|switch| switch.name == name);
        let by_id = || {
            let id: DatapathId = name.strip_prefix("of:").map(|_| name)?.parse().ok()?;
            self.switches.iter().position(|switch| switch.datapath_id == id)
        };
        by_name.or_else(by_id).or_else(|| {
            let is_called = |switch: &SwitchPlan| !name.is_empty() && switch.label == name;
            let mut labelled = self.switches.iter().enumerate().filter(|(_, switch)| is_called(switch));
            let (index, _) = labelled.next()?;
            labelled.next().is_none().then_some(index)
        })
    }

    /// The index of a host, by its name or its address.
    pub fn host_named(&self, name: &str) -> Option<usize> {
        let address = name.parse().ok();
        self.hosts.iter().position(|host| host.name == name || address == Some(host.address))
    }

    /// The name of the switch or host at an end of a link.
    pub fn owner(&self, end: Endpoint) -> &str {
        let name = match end {
            Endpoint::Switch { index, .. } => self.switches.get(index).map(|switch| &switch.name),
            Endpoint::Host { index } => self.hosts.get(index).map(|host| &host.name),
        };
        name.map(String::as_str).unwrap_or_default()
    }

    /// The indices of the links between two nodes, in either direction. Nodes are given by name or label.
    pub fn links_between(&self, one: &str, two: &str) -> Vec<usize> {
        // Once, and not for each link, because a look-up searches all switches and hosts.
        let named = |name| (self.switch_named(name), self.host_named(name));
        let (one, two) = (named(one), named(two));
        let is = |end: Endpoint, (switch, host): (Option<usize>, Option<usize>)| match end {
            Endpoint::Switch { index, .. } => switch == Some(index),
            Endpoint::Host { index } => host == Some(index),
        };
        let joins =
            |link: &Link| is(link.one, one) && is(link.two, two) || is(link.one, two) && is(link.two, one);
        (0..self.links.len()).filter(|number| joins(&self.links[*number])).collect()
    }

    /// The number of connected components. Nodes in different components can never reach each other.
    pub fn parts(&self) -> usize {
        let number = |end| match end {
            Endpoint::Switch { index, .. } => index,
            Endpoint::Host { index } => self.switches.len() + index,
        };
        let mut forest = spanning_tree::Forest::new(self.switches.len() + self.hosts.len());
        for link in &self.links {
            forest.join(number(link.one), number(link.two));
        }
        forest.trees()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_found() {
        let mut topology: Topology = "linear,3".parse().unwrap();
        topology.switches[1].label = "Wien".into();
        for name in ["s2", "of:0000000000000002", "Wien"] {
            assert_eq!(topology.switch_named(name), Some(1), "{name}");
        }
        assert_eq!(topology.switch_named(""), None, "nothing is called nothing");
        assert_eq!((topology.host_named("h3"), topology.host_named("10.0.0.3")), (Some(2), Some(2)));
        assert_eq!(topology.links_between("s1", "Wien"), topology.links_between("s2", "s1"));
        assert_eq!(topology.links_between("h1", "s1"), [0]);
        assert!(topology.links_between("s1", "s3").is_empty());
        topology.switches[0].label = "Wien".into();
        assert_eq!(topology.switch_named("Wien"), None, "two are called so");
    }

    #[test]
    fn parts_are_counted() {
        let mut topology: Topology = "linear,3".parse().unwrap();
        assert_eq!(topology.parts(), 1);
        topology.links.pop();
        assert_eq!(topology.parts(), 2);
        topology.links.clear();
        assert_eq!(topology.parts(), 6);
    }
}
