//! An immutable state of the tables, which a reader holds as long as it likes.
//!
//! ```text
//!   keys in order: switches, ports, links, hosts          and, for what that order does not give:
//!     ports of a switch, links from a port ── ranges        links to a port, hosts at a port, hosts by address
//! ```
//!
//! In: nothing after it was taken. Out: visible objects by key, by kind and by what they belong to. A copy costs four counts, and
//! shares all that did not change. It never shows an object without what it needs.

use crate::change::Record;
use crate::id::{ConnectPoint, HostId, IntentId, LinkId};
use crate::intent::{Intent, Path};
use crate::kinds::{Key, Kind, Object};
use crate::object::{Host, Link, Port, Switch};
use crate::tree::{Shared, Tree};
use flow::{DatapathId, MacAddr, PortNo};
use std::net::IpAddr;
use std::sync::Arc;

/// A known object, visible or not.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) record: Arc<Record>,
    pub(crate) is_visible: bool,
}

impl Shared for Slot {
    fn copies(&self) -> usize {
        Arc::strong_count(&self.record)
    }
}

/// A state of the tables.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    version: u64,
    slots: Tree<Key, Slot>,
    /// By their ends: the port that a link leads to, then the one that it comes from.
    links_to: Tree<(ConnectPoint, ConnectPoint), ()>,
    hosts_at: Tree<(ConnectPoint, HostId), ()>,
    hosts_by_address: Tree<(IpAddr, HostId), ()>,
    /// How many objects of each kind are visible, in the order of [`Kind::ALL`].
    visible: [usize; Kind::ALL.len()],
}

/// Two snapshots are equal if they show the same.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.visible == other.visible && self.records_after(None).eq(other.records_after(None))
    }
}

/// The objects of one kind, as references.
macro_rules! of_kind {
    ($records:expr, $kind:ident) => {
        $records.filter_map(|record| match &record.object {
            Object::$kind(object) => Some::<&$kind>(object),
            _ => None,
        })
    };
}

const FIRST_PORT: PortNo = PortNo(0);

fn first_of(switch: DatapathId) -> ConnectPoint {
    ConnectPoint { switch, port: FIRST_PORT }
}

const FIRST_POINT: ConnectPoint = ConnectPoint { switch: DatapathId(0), port: FIRST_PORT };

const FIRST_HOST: HostId = HostId { mac: MacAddr([0; 6]), vlan: None };

impl Snapshot {
    /// How many updates had been seen when it was taken. Each update that readers can see has one more.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A visible object with its stamp.
    pub fn get(&self, key: Key) -> Option<&Arc<Record>> {
        self.slots.get(&key).filter(|slot| slot.is_visible).map(|slot| &slot.record)
    }

    /// How many objects of this kind are visible.
    pub fn count(&self, kind: Kind) -> usize {
        self.visible[kind as usize]
    }

    /// The visible objects behind a key, with their stamps, in the order of their keys: kind after kind. `None` starts at the
    /// first. A page starts behind the last key of the page before.
    pub fn records_after(&self, last: Option<Key>) -> impl Iterator<Item = &Arc<Record>> {
        let behind = self.slots.behind(move |key| Some(*key) <= last);
        behind.filter(|(_, slot)| slot.is_visible).map(|(_, slot)| &slot.record)
    }

    /// All visible objects of a kind, with their stamps.
    pub fn records(&self, kind: Kind) -> impl Iterator<Item = &Arc<Record>> {
        let of_kind = self.slots.behind(move |key| key.kind() < kind);
        let of_kind = of_kind.take_while(move |(key, _)| key.kind() == kind);
        of_kind.filter(|(_, slot)| slot.is_visible).map(|(_, slot)| &slot.record)
    }

    /// A switch.
    pub fn switch(&self, id: DatapathId) -> Option<&Switch> {
        of_kind!(self.get(Key::Switch(id)).into_iter(), Switch).next()
    }

    /// A port.
    pub fn port(&self, id: ConnectPoint) -> Option<&Port> {
        of_kind!(self.get(Key::Port(id)).into_iter(), Port).next()
    }

    /// One direction of a link.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        of_kind!(self.get(Key::Link(id)).into_iter(), Link).next()
    }

    /// A host.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        of_kind!(self.get(Key::Host(id)).into_iter(), Host).next()
    }

    /// All switches.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        of_kind!(self.records(Kind::Switch), Switch)
    }

    /// All ports.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        of_kind!(self.records(Kind::Port), Port)
    }

    /// All links, each direction by itself.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        of_kind!(self.records(Kind::Link), Link)
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        of_kind!(self.records(Kind::Host), Host)
    }

    /// An intent.
    pub fn intent(&self, id: IntentId) -> Option<&Intent> {
        of_kind!(self.get(Key::Intent(id)).into_iter(), Intent).next()
    }

    /// All intents.
    pub fn intents(&self) -> impl Iterator<Item = &Intent> {
        of_kind!(self.records(Kind::Intent), Intent)
    }

    /// The paths of all intents, in the order of the intents.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        of_kind!(self.records(Kind::Path), Path)
    }

    /// The ports of a switch.
    pub fn ports_of(&self, switch: DatapathId) -> impl Iterator<Item = &Port> {
        self.known_ports_of(switch).filter_map(|id| self.port(id))
    }

    /// The links whose frames leave this port.
    pub fn links_from(&self, at: ConnectPoint) -> impl Iterator<Item = &Link> {
        self.known_links_from(at).filter_map(|id| self.link(id))
    }

    /// The links whose frames arrive at this port.
    pub fn links_to(&self, at: ConnectPoint) -> impl Iterator<Item = &Link> {
        self.known_links_to(at).filter_map(|id| self.link(id))
    }

    /// The links whose frames leave this switch.
    pub fn links_from_switch(&self, switch: DatapathId) -> impl Iterator<Item = &Link> {
        let links = self.known_links_after(first_of(switch));
        links.take_while(move |link| link.from.switch == switch).filter_map(|id| self.link(id))
    }

    /// The links whose frames arrive at this switch.
    pub fn links_to_switch(&self, switch: DatapathId) -> impl Iterator<Item = &Link> {
        let links = self.known_links_ending_after(first_of(switch));
        links.take_while(move |link| link.to.switch == switch).filter_map(|id| self.link(id))
    }

    /// The hosts at a port.
    pub fn hosts_at(&self, at: ConnectPoint) -> impl Iterator<Item = &Host> {
        self.known_hosts_at(at).filter_map(|id| self.host(id))
    }

    /// The hosts at the ports of a switch.
    pub fn hosts_of(&self, switch: DatapathId) -> impl Iterator<Item = &Host> {
        let hosts = self.hosts_at.from(&(first_of(switch), FIRST_HOST));
        let hosts = hosts.take_while(move |((at, _), ())| at.switch == switch);
        hosts.filter_map(|((_, id), ())| self.host(*id))
    }

    /// The hosts with this IP address.
    pub fn hosts_with_address(&self, address: IpAddr) -> impl Iterator<Item = &Host> {
        let hosts = self.hosts_by_address.from(&(address, FIRST_HOST));
        let hosts = hosts.take_while(move |((known, _), ())| *known == address);
        hosts.filter_map(|((_, id), ())| self.host(*id))
    }

    /// The hosts with this Ethernet address, at most one for each VLAN.
    pub fn hosts_with_mac(&self, mac: MacAddr) -> impl Iterator<Item = &Host> {
        let hosts = self.slots.from(&Key::Host(HostId { mac, vlan: None }));
        let hosts = hosts.take_while(move |(key, _)| matches!(key, Key::Host(id) if id.mac == mac));
        of_kind!(hosts.filter(|(_, slot)| slot.is_visible).map(|(_, slot)| &slot.record), Host)
    }

    /// Whether a link leaves or reaches this port. Other ports are at the edge of the network.
    pub fn has_link(&self, at: ConnectPoint) -> bool {
        self.links_from(at).next().is_some() || self.links_to(at).next().is_some()
    }
}

/// What the tables know, visible or not.
impl Snapshot {
    pub(crate) fn slot(&self, key: Key) -> Option<&Slot> {
        self.slots.get(&key)
    }

    /// How many objects are known.
    pub(crate) fn known(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn known_keys(&self) -> impl Iterator<Item = Key> {
        self.slots.iter().map(|(key, _)| *key)
    }

    pub(crate) fn known_ports_of(&self, switch: DatapathId) -> impl Iterator<Item = ConnectPoint> {
        let ports = self.slots.from(&Key::Port(first_of(switch)));
        ports.map_while(move |(key, _)| match key {
            Key::Port(at) if at.switch == switch => Some(*at),
            _ => None,
        })
    }

    pub(crate) fn known_links_from(&self, at: ConnectPoint) -> impl Iterator<Item = LinkId> {
        self.known_links_after(at).take_while(move |link| link.from == at)
    }

    pub(crate) fn known_links_to(&self, at: ConnectPoint) -> impl Iterator<Item = LinkId> {
        self.known_links_ending_after(at).take_while(move |link| link.to == at)
    }

    pub(crate) fn known_hosts_at(&self, at: ConnectPoint) -> impl Iterator<Item = HostId> {
        let hosts = self.hosts_at.from(&(at, FIRST_HOST));
        hosts.map_while(move |((known, id), ())| (*known == at).then_some(*id))
    }

    fn known_links_after(&self, from: ConnectPoint) -> impl Iterator<Item = LinkId> {
        let links = self.slots.from(&Key::Link(LinkId { from, to: FIRST_POINT }));
        links.map_while(|(key, _)| match key {
            Key::Link(link) => Some(*link),
            _ => None,
        })
    }

    fn known_links_ending_after(&self, to: ConnectPoint) -> impl Iterator<Item = LinkId> {
        let links = self.links_to.from(&(to, FIRST_POINT));
        links.map(|((to, from), ())| LinkId { from: *from, to: *to })
    }

    /// Sets an object. It is invisible until [`Snapshot::show`].
    pub(crate) fn put(&mut self, key: Key, record: Arc<Record>) {
        let before = self.slots.get(&key).cloned();
        let is_visible = before.as_ref().is_some_and(|slot| slot.is_visible);
        self.index(before.as_ref().map(|slot| &slot.record.object), Some(&record.object));
        self.slots.insert(key, Slot { record, is_visible });
    }

    pub(crate) fn remove(&mut self, key: Key) {
        self.show(key, false);
        if let Some(slot) = self.slots.remove(&key) {
            self.index(Some(&slot.record.object), None);
        }
    }

    /// Changes the indices where they differ for an object as it was and as it is.
    fn index(&mut self, before: Option<&Object>, now: Option<&Object>) {
        match (before, now) {
            (None, Some(Object::Link(link))) => drop(self.links_to.insert((link.id.to, link.id.from), ())),
            (Some(Object::Link(link)), None) => drop(self.links_to.remove(&(link.id.to, link.id.from))),
            (Some(Object::Host(before)), Some(Object::Host(now))) => self.index_host(Some(before), Some(now)),
            (None, Some(Object::Host(now))) => self.index_host(None, Some(now)),
            (Some(Object::Host(before)), None) => self.index_host(Some(before), None),
            _ => {}
        }
    }

    fn index_host(&mut self, before: Option<&Host>, now: Option<&Host>) {
        let addresses = |host: Option<&Host>| host.map_or_else(Vec::new, |host| host.addresses.clone());
        let (addresses_before, addresses_now) = (addresses(before), addresses(now));
        let Some(id) = before.or(now).map(|host| host.id) else { return };
        for address in addresses_before.iter().filter(|address| !addresses_now.contains(address)) {
            self.hosts_by_address.remove(&(*address, id));
        }
        for address in addresses_now.iter().filter(|address| !addresses_before.contains(address)) {
            self.hosts_by_address.insert((*address, id), ());
        }
        let (at_before, at_now) = (before.map(|host| host.at), now.map(|host| host.at));
        if at_before == at_now {
            return;
        }
        if let Some(at) = at_before {
            self.hosts_at.remove(&(at, id));
        }
        if let Some(at) = at_now {
            self.hosts_at.insert((at, id), ());
        }
    }

    /// Makes a known object visible or invisible.
    pub(crate) fn show(&mut self, key: Key, is_visible: bool) {
        let Some(slot) = self.slots.get(&key).filter(|slot| slot.is_visible != is_visible) else { return };
        let slot = Slot { record: Arc::clone(&slot.record), is_visible };
        self.slots.insert(key, slot);
        let count = &mut self.visible[key.kind() as usize];
        *count = if is_visible { *count + 1 } else { *count - 1 };
    }

    pub(crate) fn count_update(&mut self) {
        self.version += 1;
    }
}
