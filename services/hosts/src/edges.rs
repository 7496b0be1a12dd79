//! Which ports are edges of the network, from the tables of the service `discovery`.
//!
//! ```text
//!   discovery's stream ──> put, removed, begin, complete ──> which ports have a link, are down, or are new
//! ```
//!
//! In: records of switches, ports and links. Out: whether a port can have hosts, and which ports can no longer. It knows no host.
//! Its maps are as large as discovery's tables. Ports and switches that vanish while discovery is away stay in them.

use crate::bounds::{LINK_GRACE_MS, PORT_SETTLES_MS};
use burnet_sdk::{DatapathId, PortNo};
use std::collections::{HashMap, HashSet};
use view::{ConnectPoint, Key, LinkId, Object, SwitchState};

/// What is known of the network's ports.
#[derive(Debug, Default)]
pub struct Edges {
    ports: HashMap<ConnectPoint, PortFacts>,
    down: HashSet<DatapathId>,
    /// The links, and when a link is forgotten that the last snapshot did not have.
    links: HashMap<LinkId, Option<u64>>,
    /// How many ends of links each port is.
    ends: HashMap<ConnectPoint, u32>,
    /// When the first link is forgotten.
    forget_ms: Option<u64>,
    /// The links of the snapshot that is being read.
    fresh: Option<HashSet<LinkId>>,
}

#[derive(Clone, Copy, Debug)]
struct PortFacts {
    live: bool,
    since_ms: u64,
}

/// Ports that can have no hosts any more.
pub type Lost = Vec<ConnectPoint>;

impl Edges {
    /// Whether a host can be at this port, as far as is known. A port that discovery has not told of yet is one.
    pub fn is_edge(&self, at: ConnectPoint) -> bool {
        let is_live = self.ports.get(&at).is_none_or(|port| port.live);
        at.port <= PortNo::MAX && is_live && !self.has_link(at)
    }

    /// Whether a link ends at this port.
    pub fn has_link(&self, at: ConnectPoint) -> bool {
        self.ends.contains_key(&at)
    }

    /// Whether the switch is known to have no session, so that no host at it can be asked.
    pub fn is_down(&self, switch: DatapathId) -> bool {
        self.down.contains(&switch)
    }

    /// When a link at this port would have been found.
    pub fn settled_at(&self, at: ConnectPoint) -> u64 {
        self.ports.get(&at).map_or(0, |port| port.since_ms + PORT_SETTLES_MS)
    }

    /// A snapshot begins.
    pub fn begin(&mut self) {
        self.fresh = Some(HashSet::new());
    }

    /// The snapshot is complete. Links that are not in it are forgotten later: discovery may have started again, and finds them soon.
    pub fn complete(&mut self, now_ms: u64) {
        let Some(fresh) = self.fresh.take() else { return };
        for (link, forget_at) in &mut self.links {
            if !fresh.contains(link) {
                forget_at.get_or_insert(now_ms + LINK_GRACE_MS);
            }
        }
        self.forget_ms = self.links.values().flatten().min().copied();
    }

    /// An object is new or has changed. Returns the ports that lose their hosts by it.
    pub fn put(&mut self, object: &Object, now_ms: u64) -> Lost {
        match object {
            Object::Switch(switch) => {
                match switch.state {
                    SwitchState::Up => self.down.remove(&switch.id),
                    SwitchState::Down => self.down.insert(switch.id),
                };
                Lost::new()
            }
            Object::Port(port) => self.put_port(port.id, port.live, now_ms),
            Object::Link(link) => self.put_link(link.id),
            _ => Lost::new(),
        }
    }

    fn put_port(&mut self, at: ConnectPoint, live: bool, now_ms: u64) -> Lost {
        let was_live = self.ports.get(&at).map(|port| port.live);
        if was_live != Some(live) {
            self.ports.insert(at, PortFacts { live, since_ms: now_ms });
        }
        if live { Lost::new() } else { vec![at] }
    }

    fn put_link(&mut self, link: LinkId) -> Lost {
        self.fresh.iter_mut().for_each(|fresh| fresh.extend([link]));
        if self.links.insert(link, None).is_some() {
            return Lost::new();
        }
        let ends = [link.from, link.to];
        ends.into_iter().filter(|end| self.add_end(*end)).collect()
    }

    /// Whether it is the first link at this port.
    fn add_end(&mut self, at: ConnectPoint) -> bool {
        let count = self.ends.entry(at).or_default();
        *count += 1;
        *count == 1
    }

    /// An object is gone. Returns the ports that lose their hosts by it.
    pub fn removed(&mut self, key: Key) -> Lost {
        match key {
            Key::Switch(switch) => {
                self.down.remove(&switch);
                Lost::new()
            }
            Key::Port(at) => {
                self.ports.remove(&at);
                vec![at]
            }
            Key::Link(link) => {
                self.forget_link(link);
                Lost::new()
            }
            _ => Lost::new(),
        }
    }

    /// When [`Edges::on_time`] has something to do.
    pub fn next_due(&self) -> Option<u64> {
        self.forget_ms
    }

    /// Forgets links whose time is over.
    pub fn on_time(&mut self, now_ms: u64) {
        if self.forget_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return;
        }
        let over = self.links.iter().filter(|(_, at)| at.is_some_and(|at| at <= now_ms));
        let over: Vec<LinkId> = over.map(|(link, _)| *link).collect();
        over.into_iter().for_each(|link| self.forget_link(link));
        self.forget_ms = self.links.values().flatten().min().copied();
    }

    fn forget_link(&mut self, link: LinkId) {
        if self.links.remove(&link).is_none() {
            return;
        }
        for end in [link.from, link.to] {
            if let Some(count) = self.ends.get_mut(&end) {
                *count -= 1;
                if *count == 0 {
                    self.ends.remove(&end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::MacAddr;
    use view::{Annotations, Link, LinkKind, LinkState, Port};

    fn at(text: &str) -> ConnectPoint {
        text.parse().unwrap()
    }

    fn link(text: &str) -> Object {
        Object::Link(Link {
            id: text.parse().unwrap(),
            found: LinkKind::Direct,
            state: LinkState::Down,
            capacity_kbps: 0,
            latency_us: None,
            since_ms: 0,
            annotations: Annotations::new(),
        })
    }

    fn port(text: &str, live: bool) -> Object {
        Object::Port(Port {
            id: at(text),
            name: String::new(),
            mac: MacAddr::default(),
            live,
            enabled: true,
            speed_kbps: 0,
            annotations: Annotations::new(),
        })
    }

    #[test]
    fn a_port_that_is_down_reserved_or_has_a_link_is_no_edge() {
        let mut edges = Edges::default();
        assert!(edges.is_edge(at("1/1")), "discovery may be late");
        assert!(!edges.is_edge(ConnectPoint { port: PortNo(0xffff_fffe), ..at("1/1") }), "the switch itself");
        assert_eq!(edges.put(&port("1/2", false), 5), [at("1/2")]);
        assert!(!edges.is_edge(at("1/2")));
        assert!(edges.put(&port("1/2", true), 7).is_empty() && edges.is_edge(at("1/2")));
        assert_eq!((edges.settled_at(at("1/2")), edges.settled_at(at("1/1"))), (7 + PORT_SETTLES_MS, 0));
        assert_eq!(edges.put(&link("1/1-2/1"), 9), [at("1/1"), at("2/1")]);
        assert!(!edges.is_edge(at("1/1")) && !edges.is_edge(at("2/1")));
    }

    #[test]
    fn a_port_is_an_edge_again_when_both_directions_of_its_link_are_gone() {
        let mut edges = Edges::default();
        edges.put(&link("1/1-2/1"), 0);
        assert!(edges.put(&link("2/1-1/1"), 0).is_empty(), "nobody is there any more");
        edges.removed(Key::Link("1/1-2/1".parse().unwrap()));
        edges.removed(Key::Link("1/1-2/1".parse().unwrap()));
        assert!(!edges.is_edge(at("1/1")));
        edges.removed(Key::Link("2/1-1/1".parse().unwrap()));
        assert!(edges.is_edge(at("1/1")));
    }

    #[test]
    fn after_a_restart_of_discovery_links_are_remembered_until_it_can_have_found_them() {
        let mut edges = Edges::default();
        edges.put(&link("1/1-2/1"), 0);
        edges.put(&link("1/2-2/2"), 0);
        edges.begin();
        edges.put(&link("1/2-2/2"), 100);
        edges.complete(100);
        assert_eq!(edges.next_due(), Some(100 + LINK_GRACE_MS));
        edges.on_time(99 + LINK_GRACE_MS);
        assert!(!edges.is_edge(at("1/1")));
        edges.on_time(100 + LINK_GRACE_MS);
        assert!(edges.is_edge(at("1/1")) && !edges.is_edge(at("1/2")));
        assert_eq!(edges.next_due(), None);
        edges.begin();
        edges.complete(200);
        edges.put(&link("1/2-2/2"), 300);
        edges.on_time(u64::MAX);
        assert!(!edges.is_edge(at("1/2")), "it was found again");
    }
}
