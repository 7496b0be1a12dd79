//! The network below all slices, with numbers for the admission.
//!
//! In: links, NICs and ports. Out: a graph, an admission without bookings, and what is at each port. It chooses nothing.

use burnet_sdk::view::{ConnectPoint, IntentId, Link, LinkId, LinkKind, LinkState, Path, Port, Weight};
use config::slices::port_name;
use flow::{DatapathId, PortNo};
use graph::{Graph, LinkNo, MetricNo, SwitchNo};
use hose::{Admission, Bandwidth, NicNo};
use std::collections::{BTreeMap, BTreeSet};

/// The NIC of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// What it carries in each direction. `None`: not known.
    pub rate: Option<Bandwidth>,
    /// The ports behind which its server is, all at one switch.
    pub ports: Vec<ConnectPoint>,
}

/// What is known of a network.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Its links, each direction by itself.
    pub links: Vec<Link>,
    /// What is reserved on links, in kbit/s.
    pub reserved: Vec<(LinkId, u64)>,
    /// Its NICs.
    pub nics: Vec<Nic>,
}

/// A link between two ports, in one direction.
pub fn plain_link(id: LinkId, rate: Bandwidth) -> Link {
    Link {
        id,
        found: LinkKind::Static,
        state: LinkState::Up,
        capacity_kbps: rate.kbps(),
        latency_us: None,
        since_ms: 0,
        annotations: BTreeMap::new(),
    }
}

impl Description {
    /// The network of a node: each port without a link is a NIC of its own.
    pub fn of_view(links: Vec<Link>, ports: &[Port], paths: &[Path]) -> Description {
        let ends: BTreeSet<ConnectPoint> = links.iter().flat_map(|link| [link.id.from, link.id.to]).collect();
        let is_nic = |port: &&Port| port.id.port <= PortNo::MAX && !ends.contains(&port.id);
        let nics = ports.iter().filter(is_nic).map(|port| Nic {
            name: port_name(port.id),
            rate: (port.speed_kbps > 0).then(|| Bandwidth::from_kbps(port.speed_kbps)),
            ports: vec![port.id],
        });
        // An intent reserves once on a link, however many of its paths cross it.
        let mut reserved: BTreeMap<(IntentId, LinkId), u64> = BTreeMap::new();
        for path in paths {
            for link in &path.links {
                let kbps = reserved.entry((path.intent, *link)).or_default();
                *kbps = path.bandwidth_kbps.max(*kbps);
            }
        }
        let reserved = reserved.into_iter().map(|((_, link), kbps)| (link, kbps));
        Description { reserved: reserved.collect(), nics: nics.collect(), links }
    }
}

/// What is at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A link to another switch.
    Link,
    /// A server.
    Nic(NicNo),
}

/// The network with numbers.
#[derive(Debug)]
pub struct Substrate {
    /// Its switches and links.
    pub graph: Graph,
    /// The weight by which paths are short: the number of links.
    pub hops: MetricNo,
    /// NICs, and what is booked.
    pub admission: Admission,
    nics: Vec<Nic>,
    ports: BTreeMap<ConnectPoint, Behind>,
    links: BTreeMap<LinkId, Link>,
}

impl Substrate {
    /// Gives everything its number.
    ///
    /// # Errors
    /// There are more switches or links than can be computed with.
    pub fn new(description: Description) -> Result<Substrate, String> {
        let mut graph = Graph::new();
        let hops = graph.metric(&Weight::Hops).ok_or("the graph has no room for a weight")?;
        let Description { links, reserved, nics } = description;
        let too_many = |refusal| match refusal {
            graph::Refusal::TooManySwitches => {
                format!("the network has more than {} switches", graph::SWITCHES_MAX)
            }
            graph::Refusal::TooManyLinks => {
                format!("the network has more than {} links in both directions", graph::LINKS_MAX)
            }
        };
        let mut ports = BTreeMap::new();
        for link in &links {
            graph.put_link(link).map_err(too_many)?;
            ports.extend([link.id.from, link.id.to].map(|end| (end, Behind::Link)));
        }
        for (id, kbps) in reserved {
            if let Some(link) = graph.topology().link(id) {
                graph.topology_mut().reserve(link, kbps);
            }
        }
        let mut admission = Admission::default();
        for (number, nic) in (0..).map(NicNo).zip(&nics) {
            for at in &nic.ports {
                let switch = graph.topology_mut().put_switch(at.switch).map_err(too_many)?;
                ports.insert(*at, Behind::Nic(number));
                let capacity = nic.rate.unwrap_or_default();
                admission.put_nic(number, hose::Nic { name: nic.name.clone(), capacity, switch });
            }
        }
        let links = links.into_iter().map(|link| (link.id, link)).collect();
        Ok(Substrate { graph, hops, admission, nics, ports, links })
    }

    /// The number of a switch. `None`: there is none with this id.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchNo> {
        self.graph.topology().switch(id)
    }

    /// What is at a port. `None`: it is not known.
    pub fn behind(&self, at: ConnectPoint) -> Option<Behind> {
        self.ports.get(&at).copied()
    }

    /// A NIC.
    pub fn nic(&self, number: NicNo) -> Option<&Nic> {
        self.nics.get(number.0 as usize)
    }

    /// The known ports of a switch, for messages.
    pub fn ports_of(&self, switch: DatapathId) -> Vec<ConnectPoint> {
        let from = ConnectPoint { switch, port: PortNo(0) };
        self.ports.range(from..).map(|(at, _)| *at).take_while(|at| at.switch == switch).collect()
    }

    /// The number of a link. `None`: no cable joins its ports.
    pub fn link(&self, id: LinkId) -> Option<LinkNo> {
        self.graph.topology().link(id)
    }

    /// Takes all links away that may not be used, does something, and gives them back.
    pub fn with_only<T>(
        &mut self,
        usable: impl Fn(LinkId) -> bool,
        then: impl FnOnce(&mut Substrate) -> T,
    ) -> T {
        let away: Vec<Link> = self
            .links
            .values()
            .filter(|link| link.state == LinkState::Up && !usable(link.id))
            .cloned()
            .collect();
        for link in &away {
            self.put(Link { state: LinkState::Down, ..link.clone() });
        }
        let result = then(self);
        away.into_iter().for_each(|link| self.put(link));
        result
    }

    fn put(&mut self, link: Link) {
        // It has its number already, so nothing can be too much.
        let _ = self.graph.put_link(&link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::view::PathId;

    #[test]
    fn an_intent_reserves_once_on_a_link() {
        let point = |port: u32| ConnectPoint { switch: DatapathId(1), port: PortNo(port) };
        let link = |port: u32| LinkId { from: point(port), to: point(port + 1) };
        let path = |intent: u64, leg: u16, backup: bool, links: &[u32]| Path {
            id: PathId { intent: IntentId(intent), leg, backup },
            intent: IntentId(intent),
            from: point(1),
            to: point(9),
            links: links.iter().map(|port| link(*port)).collect(),
            bandwidth_kbps: 4_000,
            latency_us: None,
        };
        let paths = [
            path(7, 0, false, &[1, 2]),
            path(7, 1, false, &[1]),
            path(7, 0, true, &[1, 3]),
            path(8, 0, false, &[1]),
        ];
        let Description { reserved, .. } = Description::of_view(Vec::new(), &[], &paths);
        let sum = |port: u32| {
            reserved.iter().filter(|(id, _)| *id == link(port)).map(|(_, kbps)| kbps).sum::<u64>()
        };
        assert_eq!([1, 2, 3].map(sum), [8_000, 4_000, 4_000]);
    }
}
