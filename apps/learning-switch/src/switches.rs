//! The tables of all switches, found by datapath id.
//!
//! The one that was last asked for is found without a search, since packets come in runs of one switch. Never knows an address.

use crate::table::AddressTable;
use burnet_sdk::DatapathId;
use foldhash::HashMap;

/// The switches that are up: as many as the kernel says.
#[derive(Debug, Default)]
pub struct Switches {
    places: HashMap<DatapathId, usize>,
    tables: Vec<(DatapathId, AddressTable)>,
    /// The place that was last changed.
    last: usize,
}

impl Switches {
    /// A switch has connected. No address is known there yet.
    pub fn insert(&mut self, datapath: DatapathId, table: AddressTable) {
        if let Some(there) = self.get_mut(datapath) {
            *there = table;
            return;
        }
        self.places.insert(datapath, self.tables.len());
        self.tables.push((datapath, table));
    }

    /// It is down.
    pub fn remove(&mut self, datapath: DatapathId) {
        let Some(place) = self.places.remove(&datapath) else { return };
        self.tables.swap_remove(place);
        if let Some((moved, _)) = self.tables.get(place) {
            self.places.insert(*moved, place);
        }
    }

    /// The table of a switch.
    #[inline]
    pub fn get(&self, datapath: DatapathId) -> Option<&AddressTable> {
        match self.tables.get(self.last) {
            Some((last, table)) if *last == datapath => Some(table),
            _ => self.tables.get(*self.places.get(&datapath)?).map(|(_, table)| table),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, datapath: DatapathId) -> Option<&mut AddressTable> {
        if self.tables.get(self.last).is_none_or(|(last, _)| *last != datapath) {
            self.last = *self.places.get(&datapath)?;
        }
        self.tables.get_mut(self.last).map(|(_, table)| table)
    }

    /// All of them, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (DatapathId, &mut AddressTable)> {
        self.tables.iter_mut().map(|(datapath, table)| (*datapath, table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::{MacAddr, PortNo};

    #[test]
    fn each_switch_keeps_its_own_table_when_others_come_and_go() {
        let (mut switches, address) = (Switches::default(), MacAddr::from_u64(1));
        let port = |switches: &Switches, id| switches.get(DatapathId(id)).map(|table| table.port_of(address));
        for id in 0..10 {
            let mut table = AddressTable::new(10);
            table.learn(address, PortNo(id as u32), 0);
            switches.insert(DatapathId(id), table);
        }
        switches.remove(DatapathId(3));
        switches.remove(DatapathId(9));
        switches.remove(DatapathId(77));
        for id in 0..10 {
            let expected = (id != 3 && id != 9).then_some(Some(PortNo(id as u32)));
            assert_eq!(port(&switches, id), expected, "{id}");
            assert_eq!(switches.get_mut(DatapathId(id)).is_some(), expected.is_some());
        }
        switches.insert(DatapathId(4), AddressTable::new(10));
        assert_eq!(port(&switches, 4), Some(None), "nothing is known of one that comes up again");
        assert_eq!(switches.iter_mut().count(), 8);
    }
}
