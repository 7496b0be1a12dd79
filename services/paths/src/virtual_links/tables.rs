//! The states of links, as slices and the service of labels follow them.
//!
//! In: states. Out: entries of streams. A table exists from its first reader on: one for each slice, and one for all. It decides nothing.

use burnet_sdk::stream::Table;
use burnet_sdk::{Commands, Query};
use paths_contract::{ALL_SLICES, LinkState, link_key};
use std::collections::BTreeMap;
use view::LinkId;

/// The tables: at most one more than there are slices.
#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: BTreeMap<String, Table>,
    /// What was told last, by slice and link.
    told: BTreeMap<(String, LinkId), LinkState>,
}

impl Tables {
    /// The state of one direction of a link.
    pub(super) fn put(&mut self, slice: &str, link: LinkId, state: LinkState) {
        let key = (slice.to_owned(), link);
        if self.told.get(&key) == Some(&state) {
            return;
        }
        for of in [slice, ALL_SLICES] {
            if let Some(table) = self.tables.get_mut(of) {
                put(table, &key, &state);
            }
        }
        self.told.insert(key, state);
    }

    /// What was told last of one direction of a link.
    #[cfg(test)]
    pub(super) fn told(&self, slice: &str, link: LinkId) -> Option<LinkState> {
        self.told.get(&(slice.to_owned(), link)).cloned()
    }

    /// A reader follows a table.
    pub(super) fn follow(&mut self, links_of: &str, query: &Query<'_>, out: &mut Commands) {
        let Tables { tables, told } = self;
        let table = tables.entry(links_of.to_owned()).or_insert_with(|| {
            let mut table = Table::new();
            let is_its = |(slice, _): &(String, LinkId)| links_of == ALL_SLICES || links_of == slice;
            told.iter().filter(|(key, _)| is_its(key)).for_each(|(key, state)| put(&mut table, key, state));
            table
        });
        table.follow(query, out);
    }

    /// Sends what changed, as far as the credit of readers goes.
    pub(super) fn send(&mut self, out: &mut Commands) {
        self.tables.values_mut().for_each(|table| table.send(out));
    }
}

fn put(table: &mut Table, (slice, link): &(String, LinkId), state: &LinkState) {
    // A way of a thousand hops does not fit into an entry.
    if !table.put(&link_key(slice, *link), &state.to_bytes()) {
        let why = Some("it has too many hops to be told".to_owned());
        let down = LinkState { why, ..LinkState::default() };
        table.put(&link_key(slice, *link), &down.to_bytes());
    }
}
