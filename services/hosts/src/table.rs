//! The table of hosts, with its indices.
//!
//! ```text
//!   id ──> Entry { place, addresses, when last seen }      by place, by address, by the time of the next look
//! ```
//!
//! In: hosts, places, addresses. Out: the same, found by any of them. Each change touches only the entries that it is about,
//! whatever the size of the table. It decides nothing and knows no time but those that it is given.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use view::{Annotations, ConnectPoint, HostId};

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: HostId,
    /// Where it is.
    pub at: ConnectPoint,
    /// When it was first seen there, or with its newest address.
    pub since_ms: u64,
    /// When it was last seen there.
    pub seen_ms: u64,
    /// Its addresses, sorted.
    pub addresses: Vec<Address>,
    /// Whether the operator configured it.
    pub configured: bool,
    /// Whether its addresses are the configured ones, to which none is added.
    pub has_fixed_addresses: bool,
    /// Notes.
    pub annotations: Annotations,
    /// When it is looked at next. `None`: never. Only [`Table::set_due`] sets it.
    pub due_ms: Option<u64>,
}

/// An address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// When the host was last seen with it.
    pub seen_ms: u64,
    /// How many probes were sent since then.
    pub unanswered: u8,
}

impl Address {
    /// An address that was just seen.
    pub fn seen(address: IpAddr, now_ms: u64) -> Address {
        Address { address, seen_ms: now_ms, unanswered: 0 }
    }
}

impl Entry {
    /// A host that was just seen here.
    pub fn seen(id: HostId, at: ConnectPoint, now_ms: u64) -> Entry {
        Entry {
            id,
            at,
            since_ms: now_ms,
            seen_ms: now_ms,
            addresses: Vec::new(),
            configured: false,
            has_fixed_addresses: false,
            annotations: Annotations::new(),
            due_ms: None,
        }
    }

    /// The address, if the host has it.
    pub fn address_mut(&mut self, address: IpAddr) -> Option<&mut Address> {
        self.addresses.iter_mut().find(|it| it.address == address)
    }
}

/// The hosts.
#[derive(Debug, Default)]
pub struct Table {
    entries: HashMap<HostId, Entry>,
    /// For lists in the order of the ids.
    ids: BTreeSet<HostId>,
    by_place: HashMap<ConnectPoint, BTreeSet<HostId>>,
    by_address: BTreeMap<(IpAddr, Option<u16>), HostId>,
    due: BTreeSet<(u64, HostId)>,
}

impl Table {
    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many hosts are at this port.
    pub fn len_at(&self, at: ConnectPoint) -> usize {
        self.by_place.get(&at).map_or(0, BTreeSet::len)
    }

    /// A host.
    pub fn get(&self, id: HostId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// A host, to change what no index has: not its place, its addresses or its deadline.
    pub fn get_mut(&mut self, id: HostId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    /// The host that holds an address within a VLAN.
    pub fn holder(&self, address: IpAddr, vlan: Option<u16>) -> Option<HostId> {
        self.by_address.get(&(address, vlan)).copied()
    }

    /// The hosts with this address, one in each VLAN at most.
    pub fn with_address(&self, address: IpAddr) -> impl Iterator<Item = HostId> {
        self.by_address.range((address, None)..=(address, Some(u16::MAX))).map(|(_, id)| *id)
    }

    /// The hosts at a port, in the order of their ids.
    pub fn at(&self, at: ConnectPoint) -> impl Iterator<Item = HostId> {
        self.by_place.get(&at).into_iter().flatten().copied()
    }

    /// The hosts behind this id, in the order of their ids.
    pub fn behind(&self, after: Option<HostId>) -> impl Iterator<Item = HostId> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.ids.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()
    }

    /// Adds a host without addresses, in place of one with the same id.
    pub fn insert(&mut self, entry: Entry) {
        self.remove(entry.id);
        self.ids.insert(entry.id);
        self.by_place.entry(entry.at).or_default().insert(entry.id);
        self.entries.insert(entry.id, Entry { addresses: Vec::new(), due_ms: None, ..entry });
    }

    /// Removes a host.
    pub fn remove(&mut self, id: HostId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.ids.remove(&id);
        self.leave(entry.at, id);
        for address in &entry.addresses {
            self.by_address.remove(&(address.address, id.vlan));
        }
        if let Some(due_ms) = entry.due_ms {
            self.due.remove(&(due_ms, id));
        }
        Some(entry)
    }

    fn leave(&mut self, at: ConnectPoint, id: HostId) {
        if let Some(there) = self.by_place.get_mut(&at) {
            there.remove(&id);
            if there.is_empty() {
                self.by_place.remove(&at);
            }
        }
    }

    /// Puts a host elsewhere.
    pub fn place(&mut self, id: HostId, at: ConnectPoint) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = std::mem::replace(&mut entry.at, at);
        self.leave(before, id);
        self.by_place.entry(at).or_default().insert(id);
    }

    /// Gives a host an address that nobody in its VLAN holds.
    pub fn add_address(&mut self, id: HostId, address: Address) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Err(place) = entry.addresses.binary_search_by_key(&address.address, |it| it.address) {
            entry.addresses.insert(place, address);
            self.by_address.insert((address.address, id.vlan), id);
        }
    }

    /// Takes an address away from a host.
    pub fn remove_address(&mut self, id: HostId, address: IpAddr) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.addresses.retain(|it| it.address != address);
        self.by_address.remove(&(address, id.vlan));
    }

    /// Sets when a host is looked at next.
    pub fn set_due(&mut self, id: HostId, due_ms: Option<u64>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut entry.due_ms, due_ms) {
            self.due.remove(&(before, id));
        }
        self.due.extend(due_ms.map(|due_ms| (due_ms, id)));
    }

    /// The host whose time is first, and that time.
    pub fn first_due(&self) -> Option<(u64, HostId)> {
        self.due.first().copied()
    }

    /// Whether the indices are those that the entries give; for tests.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        let ids: BTreeSet<_> = self.entries.keys().copied().collect();
        let mut by_place: HashMap<_, BTreeSet<_>> = HashMap::new();
        let mut by_address = BTreeMap::new();
        let mut due = BTreeSet::new();
        for (id, entry) in &self.entries {
            by_place.entry(entry.at).or_default().insert(*id);
            by_address.extend(entry.addresses.iter().map(|it| ((it.address, id.vlan), *id)));
            due.extend(entry.due_ms.map(|due_ms| (due_ms, *id)));
        }
        let addresses: usize = self.entries.values().map(|entry| entry.addresses.len()).sum();
        ids == self.ids
            && by_place == self.by_place
            && by_address == self.by_address
            && addresses == by_address.len()
            && due == self.due
    }
}
