//! The flow tables of a switch, and the cache of paths through them.
//!
//! In: a packet's key. Out: the entry that matches it in a table, or the whole cached path of such packets. It never
//! carries an entry out. Entries are changed only through [`FlowTables::change`], which invalidates all cached paths.

use std::ops::Index;
use std::time::Duration;

use super::flow_key::{FlowKey, Mask};
use super::path_cache::{Path, PathCache, Step};
use super::table::{FlowEntry, FlowTable};

/// The tables in order.
#[derive(Clone, Debug)]
pub(crate) struct FlowTables {
    tables: Vec<FlowTable>,
    paths: PathCache,
}

impl FlowTables {
    /// Makes `count` empty tables.
    pub(crate) fn new(count: usize) -> Self {
        FlowTables { tables: vec![FlowTable::default(); count], paths: PathCache::default() }
    }

    /// How many tables there are.
    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// The tables in their order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, FlowTable> {
        self.tables.iter()
    }

    /// A table, if it exists.
    pub(crate) fn table(&self, table_id: u8) -> Option<&FlowTable> {
        self.tables.get(usize::from(table_id))
    }

    /// The entry that matched in a table.
    pub(crate) fn entry(&self, step: Step) -> Option<&FlowEntry> {
        self.table(step.table_id)?.entry(step.slot)
    }

    /// A table to change. Invalidates all cached paths.
    pub(crate) fn change(&mut self, index: usize) -> &mut FlowTable {
        self.paths.forget();
        &mut self.tables[index]
    }

    /// A table whose counters change, but not its entries. All cached paths stay valid.
    pub(crate) fn recount(&mut self, index: usize) -> Option<&mut FlowTable> {
        self.tables.get_mut(index)
    }

    /// The path of packets with this key, if it is cached.
    pub(crate) fn known_path(&mut self, key: &FlowKey) -> Option<Path> {
        if self.paths.awaits_mask() {
            let masks = self.tables.iter().map(|table| table.classifier().looked_at());
            self.paths.set_mask(masks.fold(Mask::default(), |all, mask| all.or(mask)));
            return None;
        }
        self.paths.find(key)
    }

    /// Caches the path of packets with this key. No table may have changed since the call of
    /// [`FlowTables::known_path`].
    pub(crate) fn keep_path(&mut self, key: &FlowKey, path: Path) {
        self.paths.keep(key, path);
    }

    /// The entry of a table that matches a packet. Counts nothing.
    pub(crate) fn find(&self, table_id: u8, key: &FlowKey) -> Option<Step> {
        let slot = self.tables.get(usize::from(table_id))?.find(key)?;
        Some(Step { table_id, slot })
    }

    /// Counts a packet that matched an entry, and returns the entry.
    pub(crate) fn hit(&mut self, step: Step, bytes: usize, now: Duration) -> Option<&FlowEntry> {
        self.tables.get_mut(usize::from(step.table_id))?.hit(step.slot, bytes, now)
    }

    /// Counts a packet that matched no entry of a table.
    pub(crate) fn miss(&mut self, table_id: u8) {
        if let Some(table) = self.tables.get_mut(usize::from(table_id)) {
            table.lookup_count += 1;
        }
    }
}

impl Index<usize> for FlowTables {
    type Output = FlowTable;

    fn index(&self, index: usize) -> &FlowTable {
        &self.tables[index]
    }
}
