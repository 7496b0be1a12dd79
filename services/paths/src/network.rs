//! What the compiler knows of the network: the graph, the hosts, and facts about switches.
//!
//! In: objects of the view. Out: which links changed, and answers to the compiler. It knows no intents.

use flow::DatapathId;
use graph::{Change, Graph, LinkNo, SwitchNo};
use std::collections::{BTreeSet, HashMap};
use view::{ConnectPoint, Host, HostId, Link, LinkId, Switch, SwitchState};

/// How long a switch whose table was full gets no further rules, if there is another way.
pub const FULL_MS: u64 = 30_000;

/// What is known of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchFacts {
    /// A node has a session with it.
    pub is_up: bool,
    /// It has fast-failover groups.
    pub has_groups: bool,
    /// Until when its table counts as full.
    pub full_until_ms: u64,
}

/// The network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Switches and links.
    pub graph: Graph,
    hosts: HashMap<HostId, ConnectPoint>,
    /// By the number of the switch. `None`: it is not known, or not any more.
    switches: Vec<Option<SwitchFacts>>,
    /// The latest time until which a table counts as full.
    full_until_ms: u64,
    left_out: LeftOut,
    /// The links whose reservation changed since they were taken.
    reserved: BTreeSet<LinkNo>,
}

/// What the graph has no room for. It is in no path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How often a switch was left out.
    pub switches: u64,
    /// How often a link was left out, because of itself or of its switches.
    pub links: u64,
}

impl Network {
    /// A switch is known, or changed. Says whether its session began or ended.
    pub fn put_switch(&mut self, switch: &Switch) -> bool {
        // Beyond the bound, the switch is in no path, and intents that name it say that it is not known.
        let Ok(number) = self.graph.topology_mut().put_switch(switch.id) else {
            self.left_out.switches += 1;
            return false;
        };
        if self.switches.len() <= number.index() {
            self.switches.resize(number.index() + 1, None);
        }
        let facts = self.switches[number.index()].get_or_insert_default();
        facts.has_groups = switch.openflow != "1.0";
        let is_up = switch.state == SwitchState::Up;
        std::mem::replace(&mut facts.is_up, is_up) != is_up
    }

    /// A switch is gone.
    pub fn remove_switch(&mut self, id: DatapathId) {
        let number = self.graph.topology().switch(id);
        if let Some(facts) = number.and_then(|number| self.switches.get_mut(number.index())) {
            *facts = None;
        }
    }

    /// What is known of a switch. `None`: it is not known.
    pub fn switch(&self, id: DatapathId) -> Option<(SwitchNo, SwitchFacts)> {
        let number = self.graph.topology().switch(id)?;
        Some((number, (*self.switches.get(number.index())?)?))
    }

    /// A link is known, or changed. `None`: nothing that matters, or one link too many.
    pub fn put_link(&mut self, link: &Link) -> Option<Change> {
        let change = self.graph.put_link(link).ok();
        self.left_out.links += u64::from(change.is_none());
        change
    }

    /// What the graph had no room for.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// An intent reserves so much on a link.
    pub fn reserve(&mut self, link: LinkNo, kbps: u64) {
        self.graph.topology_mut().reserve(link, kbps);
        self.reserved.insert(link);
    }

    /// An intent gives back what it has reserved.
    pub fn release(&mut self, link: LinkNo, kbps: u64) {
        self.graph.topology_mut().release(link, kbps);
        self.reserved.insert(link);
    }

    /// Takes the links whose reservation changed since the last call. They are as many as the graph has links at most.
    pub fn take_reserved(&mut self) -> BTreeSet<LinkNo> {
        std::mem::take(&mut self.reserved)
    }

    /// A link is gone.
    pub fn remove_link(&mut self, id: LinkId) -> Option<Change> {
        self.graph.remove_link(id)
    }

    /// A host is known, or changed. Says whether it is at another place.
    pub fn put_host(&mut self, host: &Host) -> bool {
        self.hosts.insert(host.id, host.at) != Some(host.at)
    }

    /// A host was here before a restart. What is known since then counts more.
    pub fn remember_host(&mut self, id: HostId, at: ConnectPoint) {
        self.hosts.entry(id).or_insert(at);
    }

    /// A host is gone.
    pub fn remove_host(&mut self, id: HostId) {
        self.hosts.remove(&id);
    }

    /// Where a host is.
    pub fn host(&self, id: HostId) -> Option<ConnectPoint> {
        self.hosts.get(&id).copied()
    }

    /// The table of a switch is full.
    pub fn mark_full(&mut self, id: DatapathId, now_ms: u64) {
        let number = self.graph.topology().switch(id);
        let facts = number.and_then(|number| self.switches.get_mut(number.index())?.as_mut());
        if let Some(facts) = facts {
            facts.full_until_ms = now_ms + FULL_MS;
            self.full_until_ms = now_ms + FULL_MS;
        }
    }

    /// Whether the table of this switch counts as full.
    pub fn is_full(&self, id: DatapathId, now_ms: u64) -> bool {
        now_ms < self.full_until_ms && self.switch(id).is_some_and(|(_, facts)| now_ms < facts.full_until_ms)
    }

    /// Whether any table counts as full.
    pub fn has_full(&self, now_ms: u64) -> bool {
        now_ms < self.full_until_ms
    }

    /// The time after which no table counts as full.
    pub fn full_until_ms(&self) -> u64 {
        self.full_until_ms
    }

    /// The other direction of a link, if it is known.
    pub fn reverse(&self, link: LinkNo) -> Option<LinkNo> {
        let topology = self.graph.topology();
        topology.link(topology.slot(link).id.reversed())
    }

    /// The other direction of a path, if all of it is known.
    pub fn reversed(&self, links: &[LinkNo]) -> Option<Vec<LinkNo>> {
        links.iter().rev().map(|link| self.reverse(*link)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_graph_has_no_room_for_is_counted() {
        let mut network = Network::default();
        let bound = graph::SWITCHES_MAX as u64;
        for id in 1..=bound + 1 {
            network.put_switch(&Switch {
                id: DatapathId(id),
                state: SwitchState::Up,
                openflow: "1.3".to_owned(),
                n_tables: 1,
                n_buffers: 0,
                description: Default::default(),
                since_ms: 0,
                annotations: Default::default(),
            });
        }
        assert_eq!(network.left_out(), LeftOut { switches: 1, links: 0 });
        let id: LinkId = format!("1/1-{}/1", bound + 1).parse().expect("a link");
        let change = network.put_link(&Link {
            id,
            found: view::LinkKind::Direct,
            state: view::LinkState::Up,
            capacity_kbps: 0,
            latency_us: None,
            since_ms: 0,
            annotations: Default::default(),
        });
        assert_eq!((change, network.left_out()), (None, LeftOut { switches: 1, links: 1 }));
    }
}
