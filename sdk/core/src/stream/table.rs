//! A table of a service that other apps can follow.
//!
//! In: puts, removals, calls of apps that follow it. Out: the entries, and parts of answers for its readers. It decides nothing about who may follow: the
//! service checks that before it calls [`Table::follow`].

use super::item::{ITEM_BYTES_MAX, item_bytes};
use super::source::{Page, Source};
use crate::calls::Calls;
use crate::commands::Commands;
use abi::event::Query;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A table of a service that other apps can follow. It is not bounded: the service decides how much it keeps.
///
/// ```
/// use burnet_sdk::{App, Commands, Interests, Query, Settings, Ticket, stream::Table};
///
/// struct Hosts {
///     hosts: Table,
/// }
///
/// impl App for Hosts {
///     fn new(_: &Settings) -> Result<Self, String> {
///         Ok(Hosts { hosts: Table::new() })
///     }
///     fn interests(&self) -> Interests {
///         Interests::none().ticks()
///     }
///     fn on_query(&mut self, query: &Query, out: &mut Commands) {
///         self.hosts.follow(query, out);
///     }
///     fn on_credit(&mut self, _: Ticket, out: &mut Commands) {
///         self.hosts.send(out);
///     }
///     fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
///         self.hosts.put(b"last tick", &now_ms.to_le_bytes());
///         self.hosts.send(out);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Table {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    source: Source,
}

impl Table {
    /// An empty table.
    pub fn new() -> Table {
        Table::default()
    }

    /// An empty table that keeps at most so many bytes of changes for readers that wait for credit. The default is
    /// [`super::LOG_BYTES_MAX`].
    pub fn with_log_bytes(log_bytes_max: usize) -> Table {
        Table { source: Source::new(log_bytes_max), ..Table::default() }
    }

    /// Sets the value of a key. Readers receive it with the next [`Table::send`]. Key and value together have at most
    /// `ITEM_BYTES_MAX - 16` bytes: a longer entry is not taken, and gives `false`.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        if item_bytes(key, value) > ITEM_BYTES_MAX {
            return false;
        }
        if self.get(key) != Some(value) {
            self.source.change(key, Some(value));
            self.entries.insert(key.to_vec(), value.to_vec());
        }
        true
    }

    /// Removes a key, and says whether it was there. Readers receive it with the next [`Table::send`].
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let was_there = self.entries.remove(key).is_some();
        if was_there {
            self.source.change(key, None);
        }
        was_there
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(Vec::as_slice)
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// The number of the last change. The first has 1. A new table, after a restart of its service, counts from 1
    /// again.
    pub fn number(&self) -> u64 {
        self.source.number()
    }

    /// How many streams are open. Those that ended are counted until the next [`Table::send`].
    pub fn readers(&self) -> usize {
        self.source.readers()
    }

    /// A call follows this table from now on. It gets the snapshot at once, as far as its credit goes.
    pub fn follow(&mut self, query: &Query<'_>, out: &mut Commands) {
        self.follow_by(&mut out.calls, &mut out.frames, query);
    }

    /// Sends each reader what its credit allows. To be called after changes, and in [`crate::App::on_credit`]. A service in a process zone can also call it
    /// in [`crate::App::on_caught_up`] alone: then changes that came together go out together.
    pub fn send(&mut self, out: &mut Commands) {
        self.send_by(&mut out.calls, &mut out.frames);
    }

    /// As [`Table::follow`], for the SDK of another language.
    #[doc(hidden)]
    pub fn follow_by(&mut self, calls: &mut Calls, frames: &mut Vec<u8>, query: &Query<'_>) {
        self.source.open(calls, frames, query);
        self.send_by(calls, frames);
    }

    /// As [`Table::send`], for the SDK of another language.
    #[doc(hidden)]
    pub fn send_by(&mut self, calls: &mut Calls, frames: &mut Vec<u8>) {
        let Table { entries, source } = self;
        source.send_by(calls, frames, |after, page| fill(entries, after, page));
    }
}

fn fill(entries: &BTreeMap<Vec<u8>, Vec<u8>>, after: Option<&[u8]>, page: &mut Page<'_>) {
    let behind = entries.range::<[u8], _>((after.map_or(Unbounded, Excluded), Unbounded));
    for (key, value) in behind {
        if !page.entry(key, value) {
            return;
        }
    }
}
