//! Which ports are edges of the network, from the tables of the service `discovery`.
//!
//! ```text
//!   discovery's stream ──> put, removed, begin, complete ──> which ports have a link, are down, or are new
//! ```
//!
//! In: records of switches, ports and links. Out: whether a port can have hosts, and which ports can no longer. It knows no host.
//! Its maps are as large as discovery's tables. What vanished while discovery was away is forgotten after a time of grace.

use crate::bounds::{PORT_SETTLES_MS, VANISHED_GRACE_MS};
use burnet_sdk::{DatapathId, PortNo};
use std::collections::{HashMap, HashSet};
use view::{ConnectPoint, Key, LinkId, Object, SwitchState};

/// What is known of the network's ports.
#[derive(Debug, Default)]
pub struct Edges {
    ports: HashMap<ConnectPoint, PortFacts>,
    down: HashSet<DatapathId>,
    links: HashSet<LinkId>,
    /// How many ends of links each port is.
    ends: HashMap<ConnectPoint, u32>,
    /// What the last snapshot did not have, and when it is forgotten.
    vanished: HashMap<Key, u64>,
    /// When the first of them is forgotten.
    forget_ms: Option<u64>,
    /// The objects of the snapshot that is being read.
    fresh: Option<HashSet<Key>>,
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

    /// The snapshot is complete. What is not in it is forgotten later: discovery may have started again, and finds it soon.
    pub fn complete(&mut self, now_ms: u64) {
        let Some(fresh) = self.fresh.take() else { return };
        let known = self.links.iter().map(|link| Key::Link(*link));
        let known = known.chain(self.ports.keys().map(|port| Key::Port(*port)));
        let known = known.chain(self.down.iter().map(|switch| Key::Switch(*switch)));
        for key in known.filter(|key| !fresh.contains(key)) {
            self.vanished.entry(key).or_insert(now_ms + VANISHED_GRACE_MS);
        }
        self.forget_ms = self.vanished.values().min().copied();
    }

    /// An object is new or has changed. Returns the ports that lose their hosts by it.
    pub fn put(&mut self, object: &Object, now_ms: u64) -> Lost {
        self.vanished.remove(&object.key());
        self.fresh.iter_mut().for_each(|fresh| fresh.extend([object.key()]));
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
        if !self.links.insert(link) {
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
        self.vanished.remove(&key);
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

    /// Forgets what vanished and whose time is over. Returns the ports that lose their hosts by it.
    pub fn on_time(&mut self, now_ms: u64) -> Lost {
        if self.forget_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return Lost::new();
        }
        let over = self.vanished.iter().filter(|(_, at_ms)| **at_ms <= now_ms);
        let over: Vec<Key> = over.map(|(key, _)| *key).collect();
        let lost = over.into_iter().flat_map(|key| self.removed(key)).collect();
        self.forget_ms = self.vanished.values().min().copied();
        lost
    }

    fn forget_link(&mut self, link: LinkId) {
        if !self.links.remove(&link) {
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

    fn switch(id: u64, state: SwitchState) -> Object {
        Object::Switch(view::Switch {
            id: DatapathId(id),
            state,
            openflow: "1.3".to_owned(),
            n_tables: 1,
            n_buffers: 0,
            description: Default::default(),
            since_ms: 0,
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
        assert_eq!(edges.next_due(), Some(100 + VANISHED_GRACE_MS));
        edges.on_time(99 + VANISHED_GRACE_MS);
        assert!(!edges.is_edge(at("1/1")));
        edges.on_time(100 + VANISHED_GRACE_MS);
        assert!(edges.is_edge(at("1/1")) && !edges.is_edge(at("1/2")));
        assert_eq!(edges.next_due(), None);
        edges.begin();
        edges.complete(200);
        edges.put(&link("1/2-2/2"), 300);
        edges.on_time(u64::MAX);
        assert!(!edges.is_edge(at("1/2")), "it was found again");
    }

    #[test]
    fn ports_and_switches_that_vanished_while_discovery_was_away_are_forgotten() {
        let mut edges = Edges::default();
        edges.put(&port("1/1", true), 0);
        edges.put(&port("1/2", false), 0);
        edges.put(&port("2/1", true), 0);
        edges.put(&switch(1, SwitchState::Down), 0);
        assert!(edges.is_down(DatapathId(1)) && !edges.is_edge(at("1/2")));
        edges.begin();
        edges.put(&port("2/1", true), 100);
        edges.complete(100);
        let mut lost = edges.on_time(100 + VANISHED_GRACE_MS);
        lost.sort_unstable();
        assert_eq!(lost, [at("1/1"), at("1/2")], "their hosts are gone, and not those at 2/1");
        assert!(!edges.is_down(DatapathId(1)) && edges.is_edge(at("1/2")), "nothing is known of them");
        assert_eq!(edges.next_due(), None);
        // What comes back in time stays.
        edges.begin();
        edges.complete(200);
        edges.put(&port("2/1", true), 300);
        assert!(edges.on_time(u64::MAX).is_empty());
        assert_eq!((edges.settled_at(at("2/1")), edges.next_due()), (PORT_SETTLES_MS, None));
    }
}
