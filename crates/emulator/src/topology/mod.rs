//! The shape of a network: which switches and hosts there are, and what is wired to what.
//!
//! ```text
//!   "fattree,4" ──> words ──> fabric, shapes, random ──┐
//!   FILE.graphml, FILE.json ──> graphml, node_link ──> graph ──┼──> Plan ──> Topology
//!   FILE.py and a name in it ──> custom (runs python3) ────────┘
//! ```
//!
//! Read from Mininet's words (`single,4`, `linear,3`, `tree,2,3`), and numbered as Mininet numbers: `s1` has datapath id 1,
//! `h1` has 10.0.0.1 and 00:00:00:00:00:01 (as with `mn --mac`), and a switch's ports count up from 1 in the order in which its
//! links are made. Never makes anything run but the python3 that reads the operator's own file.

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

pub use custom::{CUSTOM_PATIENCE, CustomTopology};
pub use file::{FILE_MAX_BYTES, FromFile, NotATopologyFile};
pub use spanning_tree::spanning_tree;
pub use words::NotATopology;

use flow::{DatapathId, MacAddr, PortNo};
use std::net::Ipv4Addr;

use crate::link::LinkQuality;

/// The largest network that is made: what is beyond it is refused by name. A switch and its host take
/// about 12 KiB before there are rules.
pub const SWITCHES_MAX: usize = 4096;
/// The most hosts in a network.
pub const HOSTS_MAX: usize = 16_384;
/// The most links in a network: more than the largest fat tree has that these hosts fill.
pub const LINKS_MAX: usize = 65_536;

/// A network to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Its switches; an index into this is how a link names one.
    pub switches: Vec<SwitchPlan>,
    /// Its hosts; an index into this is how a link names one.
    pub hosts: Vec<HostPlan>,
    /// What is wired to what.
    pub links: Vec<Link>,
}

/// A switch to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// `s1`, `s2` …
    pub name: String,
    /// What the file that it is from calls it; empty if nothing does.
    pub label: String,
    /// Its number.
    pub datapath_id: DatapathId,
}

/// A host to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// `h1`, `h2` …, or `h1s2` where a switch of a line has several.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
}

/// A cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub one: Endpoint,
    /// The other end.
    pub two: Endpoint,
    /// What it does to frames.
    pub quality: LinkQuality,
}

/// Where a cable is plugged in.
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
    /// The index of a switch, by its name, its datapath id as text, or its label if it is the only one that is called so.
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

    /// The name of what an end of a link belongs to.
    pub fn owner(&self, end: Endpoint) -> &str {
        let name = match end {
            Endpoint::Switch { index, .. } => self.switches.get(index).map(|switch| &switch.name),
            Endpoint::Host { index } => self.hosts.get(index).map(|host| &host.name),
        };
        name.map(String::as_str).unwrap_or_default()
    }

    /// The numbers of the links between two nodes that are named by name or label, in whichever direction.
    pub fn links_between(&self, one: &str, two: &str) -> Vec<usize> {
        // Once, and not for each link: looking a name up is a walk through all switches and hosts.
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

    /// In how many parts it is: hosts and switches of different parts cannot reach each other whatever the controller does.
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
