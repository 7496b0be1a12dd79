//! The tables of switches, ports and links, under the rules that keep them whole.
//!
//! ```text
//!   put, remove ──> [ Tables ] ──> a stamped record for each object that has changed
//! ```
//!
//! In: objects. Out: records. A link is taken only if both ports are there, and goes with them. An object that is put as it was makes
//! no record. It decides nothing about time.

use std::collections::{BTreeMap, BTreeSet};
use view::{Annotations, ConnectPoint, Key, Link, LinkId, Object, Port, Record, Stamp, Switch};

use flow::{DatapathId, PortNo};

/// Switches in the table: ten times the largest networks that one node controls. One more is not taken.
pub const SWITCHES_MAX: usize = 10_000;

/// Ports in the table. One more is not taken.
pub const PORTS_MAX: usize = 500_000;

/// Links in the table, each direction for itself. One more is not taken.
pub const LINKS_MAX: usize = 500_000;

/// Notes of objects that are kept, whether the object is there or not. The notes of one more are in the store, and not in the table.
pub const NOTED_MAX: usize = 100_000;

/// An object that has changed, or `None` if it is gone.
pub type Changed = (Key, Option<Record>);

/// The tables.
#[derive(Debug)]
pub struct Tables {
    stamp: Stamp,
    switches: BTreeMap<DatapathId, Switch>,
    ports: BTreeMap<ConnectPoint, Port>,
    links: BTreeMap<LinkId, Link>,
    /// The links by their end, which comes first here.
    into: BTreeSet<(ConnectPoint, ConnectPoint)>,
    /// What the switches say of the links that begin at their ports. At most one entry for each port in the table.
    labels: BTreeMap<ConnectPoint, u64>,
    /// The switches that say that their labels are stale.
    stale: BTreeSet<DatapathId>,
    notes: BTreeMap<Key, Annotations>,
    changed: Vec<Changed>,
    no_room: u64,
}

impl Tables {
    /// Empty tables. Their stamps have this term.
    pub fn new(term: u64) -> Tables {
        Tables {
            stamp: Stamp { term, ..Stamp::default() },
            switches: BTreeMap::new(),
            ports: BTreeMap::new(),
            links: BTreeMap::new(),
            into: BTreeSet::new(),
            labels: BTreeMap::new(),
            stale: BTreeSet::new(),
            notes: BTreeMap::new(),
            changed: Vec::new(),
            no_room: 0,
        }
    }

    /// What has changed since the last call, in order.
    pub fn take_changed(&mut self) -> Vec<Changed> {
        std::mem::take(&mut self.changed)
    }

    /// The number of switches, ports, links, and of objects that were not taken.
    pub fn sizes(&self) -> [u64; 4] {
        let sizes = [self.switches.len(), self.ports.len(), self.links.len()];
        let [switches, ports, links] = sizes.map(|size| size as u64);
        [switches, ports, links, self.no_room]
    }

    /// A switch.
    pub fn switch(&self, id: DatapathId) -> Option<&Switch> {
        self.switches.get(&id)
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        self.switches.values()
    }

    /// A port.
    pub fn port(&self, id: ConnectPoint) -> Option<&Port> {
        self.ports.get(&id)
    }

    /// The ports of a switch.
    pub fn ports_of(&self, switch: DatapathId) -> impl Iterator<Item = &Port> {
        let first = ConnectPoint { switch, port: PortNo(0) };
        let last = ConnectPoint { switch, port: PortNo(u32::MAX) };
        self.ports.range(first..=last).map(|(_, port)| port)
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(&id)
    }

    /// All links.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.values()
    }

    /// The links that begin at this port.
    pub fn links_from(&self, from: ConnectPoint) -> impl Iterator<Item = &Link> {
        let lowest = ConnectPoint { switch: DatapathId(0), port: PortNo(0) };
        let behind = self.links.range(LinkId { from, to: lowest }..).map(|(_, link)| link);
        behind.take_while(move |link| link.id.from == from)
    }

    /// The links that end at this port.
    pub fn links_into(&self, to: ConnectPoint) -> impl Iterator<Item = &Link> {
        let lowest = ConnectPoint { switch: DatapathId(0), port: PortNo(0) };
        let behind = self.into.range((to, lowest)..).take_while(move |(end, _)| *end == to);
        behind.filter_map(move |(_, from)| self.links.get(&LinkId { from: *from, to }))
    }

    /// The links that begin or end at this port.
    pub fn links_at(&self, port: ConnectPoint) -> Vec<LinkId> {
        self.links_from(port).chain(self.links_into(port)).map(|link| link.id).collect()
    }

    /// Takes a switch. Says whether there was room.
    pub fn put_switch(&mut self, mut switch: Switch) -> bool {
        if !self.switches.contains_key(&switch.id) && self.switches.len() >= SWITCHES_MAX {
            self.no_room += 1;
            return false;
        }
        switch.annotations = self.notes_of(Key::Switch(switch.id));
        if self.switches.get(&switch.id) != Some(&switch) {
            self.note_change(switch.clone().into());
            self.switches.insert(switch.id, switch);
        }
        true
    }

    /// Takes a port. Says whether its switch is there and there was room.
    pub fn put_port(&mut self, mut port: Port) -> bool {
        let is_new = !self.ports.contains_key(&port.id);
        if !self.switches.contains_key(&port.id.switch) || is_new && self.ports.len() >= PORTS_MAX {
            self.no_room += 1;
            return false;
        }
        port.annotations = self.notes_of(Key::Port(port.id));
        if self.ports.get(&port.id) != Some(&port) {
            self.note_change(port.clone().into());
            self.ports.insert(port.id, port);
        }
        true
    }

    /// Takes a link. Its capacity follows from its ports and the label of the first. Says whether both ports are there and there was room.
    pub fn put_link(&mut self, mut link: Link) -> bool {
        let is_new = !self.links.contains_key(&link.id);
        let (Some(from), Some(to)) = (self.ports.get(&link.id.from), self.ports.get(&link.id.to)) else {
            return false;
        };
        if is_new && self.links.len() >= LINKS_MAX {
            self.no_room += 1;
            return false;
        }
        // A capacity of 0 is an unknown one, so a label of 0 is the least that can be said.
        let label = self.labels.get(&link.id.from).map_or(0, |label| (*label).max(1));
        link.capacity_kbps = lower_speed(lower_speed(from.speed_kbps, to.speed_kbps), label);
        link.annotations = self.notes_of(Key::Link(link.id));
        if self.labels.contains_key(&link.id.from) && self.stale.contains(&link.id.from.switch) {
            let (name, value) = Link::CAPACITY_NOTE;
            link.annotations.insert(name.to_owned(), value.to_owned());
        }
        if self.links.get(&link.id) != Some(&link) {
            self.note_change(link.clone().into());
            self.into.insert((link.id.to, link.id.from));
            self.links.insert(link.id, link);
        }
        true
    }

    /// The switch says how much of the links that begin at this port can be used, in kbit/s, or says it no more. Returns whether that is new. Links
    /// get it when they are put the next time.
    pub fn set_label(&mut self, port: ConnectPoint, kbps: Option<u64>) -> bool {
        let before = match kbps.filter(|_| self.ports.contains_key(&port)) {
            Some(kbps) => self.labels.insert(port, kbps),
            None => self.labels.remove(&port),
        };
        before != self.labels.get(&port).copied()
    }

    /// The switch says whether its labels may be too high. Returns whether that is new. Links get it when they are put the next time.
    pub fn set_stale(&mut self, id: DatapathId, is_stale: bool) -> bool {
        if is_stale && self.switches.contains_key(&id) {
            self.stale.insert(id)
        } else {
            self.stale.remove(&id)
        }
    }

    /// The switch has said nothing of its links yet.
    pub fn forget_labels(&mut self, id: DatapathId) {
        self.stale.remove(&id);
        self.labels.retain(|port, _| port.switch != id);
    }

    /// Removes a link.
    pub fn remove_link(&mut self, id: LinkId) {
        if self.links.remove(&id).is_some() {
            self.into.remove(&(id.to, id.from));
            self.stamp.sequence += 1;
            self.changed.push((Key::Link(id), None));
        }
    }

    /// Removes a port, and its links before it.
    pub fn remove_port(&mut self, id: ConnectPoint) {
        self.links_at(id).into_iter().for_each(|link| self.remove_link(link));
        self.labels.remove(&id);
        if self.ports.remove(&id).is_some() {
            self.stamp.sequence += 1;
            self.changed.push((Key::Port(id), None));
        }
    }

    /// Removes a switch, and its ports and links before it.
    pub fn remove_switch(&mut self, id: DatapathId) {
        let ports: Vec<ConnectPoint> = self.ports_of(id).map(|port| port.id).collect();
        ports.into_iter().for_each(|port| self.remove_port(port));
        self.stale.remove(&id);
        if self.switches.remove(&id).is_some() {
            self.stamp.sequence += 1;
            self.changed.push((Key::Switch(id), None));
        }
    }

    /// The notes of an object, which may be gone.
    pub fn notes_of(&self, key: Key) -> Annotations {
        self.notes.get(&key).cloned().unwrap_or_default()
    }

    /// Whether there is such an object.
    pub fn has(&self, key: Key) -> bool {
        match key {
            Key::Switch(id) => self.switches.contains_key(&id),
            Key::Port(id) => self.ports.contains_key(&id),
            Key::Link(id) => self.links.contains_key(&id),
            _ => false,
        }
    }

    /// Sets the notes of an object. If it is not there, it gets them when it is found.
    pub fn annotate(&mut self, key: Key, notes: Annotations) {
        if notes.is_empty() {
            self.notes.remove(&key);
        } else if self.notes.len() < NOTED_MAX || self.notes.contains_key(&key) {
            self.notes.insert(key, notes);
        } else {
            self.no_room += 1;
        }
        // An object that is put again gets its notes.
        match key {
            Key::Switch(id) => self.switches.get(&id).cloned().map(|it| self.put_switch(it)),
            Key::Port(id) => self.ports.get(&id).cloned().map(|it| self.put_port(it)),
            Key::Link(id) => self.links.get(&id).cloned().map(|it| self.put_link(it)),
            _ => None,
        };
    }

    fn note_change(&mut self, object: Object) {
        self.stamp.sequence += 1;
        self.changed.push((object.key(), Some(Record { stamp: self.stamp, object })));
    }
}

/// The lower of two speeds, of which 0 is unknown.
fn lower_speed(one: u64, two: u64) -> u64 {
    match (one, two) {
        (0, known) | (known, 0) => known,
        (one, two) => one.min(two),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::MacAddr;
    use view::{LinkKind, LinkState, SwitchState};

    fn at(switch: u64) -> ConnectPoint {
        ConnectPoint { switch: DatapathId(switch), port: PortNo(1) }
    }

    /// Two switches, each with one port of this speed.
    fn tables(speeds: [u64; 2]) -> Tables {
        let mut tables = Tables::new(1);
        for (number, speed_kbps) in (1..).zip(speeds) {
            let switch = Switch {
                id: DatapathId(number),
                state: SwitchState::Up,
                openflow: "1.3".to_owned(),
                n_tables: 1,
                n_buffers: 0,
                description: BTreeMap::new(),
                since_ms: 0,
                annotations: Annotations::new(),
            };
            let port = Port {
                id: at(number),
                name: String::new(),
                mac: MacAddr([2, 0, 0, 0, 0, 1]),
                live: true,
                enabled: true,
                speed_kbps,
                annotations: Annotations::new(),
            };
            assert!(tables.put_switch(switch) && tables.put_port(port));
        }
        tables
    }

    /// The capacities of both directions of the link.
    fn capacities(tables: &mut Tables) -> [u64; 2] {
        [(1, 2), (2, 1)].map(|(from, to)| {
            let id = LinkId { from: at(from), to: at(to) };
            let link = Link {
                id,
                found: LinkKind::Direct,
                state: LinkState::Up,
                capacity_kbps: 0,
                latency_us: None,
                since_ms: 0,
                annotations: Annotations::new(),
            };
            assert!(tables.put_link(link));
            tables.link(id).unwrap().capacity_kbps
        })
    }

    #[test]
    fn a_link_has_no_more_than_its_ports_and_the_label_of_the_one_where_it_begins() {
        let check = |speeds: [u64; 2], labels: [Option<u64>; 2], expected: [u64; 2]| {
            let mut tables = tables(speeds);
            (1..).zip(labels).for_each(|(number, label)| _ = tables.set_label(at(number), label));
            assert_eq!(capacities(&mut tables), expected, "{speeds:?} {labels:?}");
        };
        check([100, 80], [None, None], [80, 80]);
        check([100, 80], [Some(30), None], [30, 80]);
        check([100, 80], [Some(90), Some(70)], [80, 70]);
        check([0, 0], [Some(30), None], [30, 0]);
        check([100, 100], [Some(0), Some(0)], [1, 1]);
    }

    #[test]
    fn a_link_whose_label_is_stale_says_so() {
        let mut tables = tables([100, 100]);
        let stale = |tables: &mut Tables| {
            capacities(tables);
            [(1, 2), (2, 1)].map(|(from, to)| {
                tables.link(LinkId { from: at(from), to: at(to) }).unwrap().has_stale_capacity()
            })
        };
        tables.set_label(at(1), Some(5));
        assert_eq!(stale(&mut tables), [false, false]);
        assert!(tables.set_stale(DatapathId(1), true) && !tables.set_stale(DatapathId(1), true));
        assert!(!tables.set_stale(DatapathId(9), true), "there is no such switch");
        assert_eq!(stale(&mut tables), [true, false], "the other direction has no label");
        assert!(tables.set_stale(DatapathId(1), false) && !tables.set_stale(DatapathId(1), false));
        assert_eq!(stale(&mut tables), [false, false]);
        tables.set_stale(DatapathId(1), true);
        tables.forget_labels(DatapathId(1));
        tables.set_label(at(1), Some(5));
        assert_eq!(stale(&mut tables), [false, false], "the switch has connected again");
    }

    #[test]
    fn labels_are_those_of_ports_that_are_there_and_go_with_them() {
        let mut tables = tables([100, 100]);
        assert!(!tables.set_label(at(3), Some(5)), "there is no such port");
        assert!(tables.set_label(at(1), Some(5)) && !tables.set_label(at(1), Some(5)));
        assert_eq!(capacities(&mut tables), [5, 100]);
        assert!(tables.set_label(at(1), None) && !tables.set_label(at(1), None));
        assert!(tables.set_label(at(1), Some(5)) && tables.set_label(at(2), Some(6)));
        tables.forget_labels(DatapathId(1));
        assert_eq!(capacities(&mut tables), [100, 6]);
        tables.remove_port(at(2));
        assert!(!tables.set_label(at(2), None));
    }
}
