//! The connected switches of one worker, by datapath id.
//!
//! In: switches that connect and disconnect. Out: the record of one switch. The switch of the last lookup is found
//! without a search, because several commands in a row usually go to one switch. It never looks into a record.

use crate::datapath::Datapath;
use flow::DatapathId;
use std::collections::BTreeMap;

/// The connected switches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datapaths {
    places: BTreeMap<DatapathId, usize>,
    there: Vec<(DatapathId, Datapath)>,
    /// The place of the last change.
    last: usize,
}

impl Datapaths {
    /// Whether the switch is connected.
    pub fn contains_key(&self, id: &DatapathId) -> bool {
        self.places.contains_key(id)
    }

    /// How many switches are connected.
    pub fn len(&self) -> usize {
        self.there.len()
    }

    /// The record of a switch.
    #[inline]
    pub fn get(&self, id: &DatapathId) -> Option<&Datapath> {
        match self.there.get(self.last) {
            Some((last, datapath)) if last == id => Some(datapath),
            _ => self.there.get(*self.places.get(id)?).map(|(_, datapath)| datapath),
        }
    }

    /// The record of a switch, mutable.
    #[inline]
    pub fn get_mut(&mut self, id: &DatapathId) -> Option<&mut Datapath> {
        if self.there.get(self.last).is_none_or(|(last, _)| last != id) {
            self.last = *self.places.get(id)?;
        }
        self.there.get_mut(self.last).map(|(_, datapath)| datapath)
    }

    /// The switch has connected, for the first time or again.
    pub fn insert(&mut self, id: DatapathId, datapath: Datapath) {
        if let Some(there) = self.get_mut(&id) {
            *there = datapath;
            return;
        }
        self.places.insert(id, self.there.len());
        self.there.push((id, datapath));
    }

    /// The switch has disconnected.
    pub fn remove(&mut self, id: &DatapathId) {
        let Some(place) = self.places.remove(id) else { return };
        self.there.swap_remove(place);
        if let Some((moved, _)) = self.there.get(place) {
            self.places.insert(*moved, place);
        }
    }

    /// All of them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&DatapathId, &Datapath)> {
        let at = |place: &usize| self.there.get(*place).map(|(_, datapath)| datapath);
        self.places.iter().filter_map(move |(id, place)| Some((id, at(place)?)))
    }

    /// Their records, mutable, in any order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Datapath> {
        self.there.iter_mut().map(|(_, datapath)| datapath)
    }

    /// Their ids, in order.
    pub fn keys(&self) -> impl Iterator<Item = &DatapathId> {
        self.places.keys()
    }
}
