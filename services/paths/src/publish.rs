//! The tables of intents and paths, as other apps follow them.
//!
//! In: which intents changed. Out: entries of streams. A table exists from its first reader on. It decides nothing.

use crate::engine::{Engine, Entry};
use burnet_sdk::stream::Table;
use burnet_sdk::{Commands, Query};
use paths_contract::Follow;
use std::collections::{BTreeMap, BTreeSet};
use view::{IntentId, Key, Kind, Object, PathId, Record, Stamp};

/// Which kinds a table has: intents, paths, or both.
const TABLES: [&[Kind]; 3] = [&[Kind::Path, Kind::Intent], &[Kind::Intent], &[Kind::Path]];

/// The tables.
#[derive(Debug)]
pub struct Tables {
    /// The number of this run: later runs have later stamps.
    term: u64,
    sequence: u64,
    tables: [Option<Table>; 3],
    /// The stamps of intents, and the paths that each had when it was published.
    published: BTreeMap<u64, (Stamp, Vec<PathId>)>,
    changed: BTreeSet<u64>,
}

impl Tables {
    /// No table is followed yet.
    pub fn new(term: u64) -> Tables {
        Tables {
            term,
            sequence: 0,
            tables: [None, None, None],
            published: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// An intent, or its paths, changed, or it is gone.
    pub fn change(&mut self, id: u64) {
        self.changed.insert(id);
    }

    /// The stamp of an intent.
    pub fn stamp(&self, id: u64) -> Stamp {
        self.published.get(&id).map(|(stamp, _)| *stamp).unwrap_or_default()
    }

    /// A reader follows the tables.
    pub fn follow(&mut self, follow: &Follow, query: &Query<'_>, engine: &Engine, out: &mut Commands) {
        self.publish(engine);
        let number = match (follow.wants(Kind::Intent), follow.wants(Kind::Path)) {
            (true, false) => 1,
            (false, true) => 2,
            _ => 0,
        };
        let Tables { published, tables, .. } = self;
        let table = tables[number].get_or_insert_with(|| {
            let mut table = Table::new();
            for (id, (stamp, _)) in published.iter() {
                put(&mut table, TABLES[number], *id, *stamp, engine);
            }
            table
        });
        table.follow(query, out);
    }

    /// Brings all that changed into the tables.
    fn publish(&mut self, engine: &Engine) {
        for id in std::mem::take(&mut self.changed) {
            self.sequence += 1;
            let stamp = Stamp { term: self.term, sequence: self.sequence, origin: 0 };
            let entry = engine.entry(IntentId(id));
            let paths = || entry.into_iter().flat_map(Entry::path_ids);
            let (known, before) = self.published.entry(id).or_default();
            *known = stamp;
            let mut gone = Vec::new();
            if !before.iter().copied().eq(paths()) {
                gone = std::mem::replace(before, paths().collect());
                gone.retain(|path| !before.contains(path));
            }
            if entry.is_none() {
                self.published.remove(&id);
            }
            for (table, kinds) in self.tables.iter_mut().zip(TABLES) {
                let Some(table) = table else { continue };
                for path in &gone {
                    table.remove(Key::Path(*path).to_string().as_bytes());
                }
                match entry.is_some() {
                    true => put(table, kinds, id, stamp, engine),
                    false => drop(table.remove(Key::Intent(IntentId(id)).to_string().as_bytes())),
                }
            }
        }
    }

    /// Publishes what changed, and sends it to readers as far as their credit goes.
    pub fn send(&mut self, engine: &Engine, out: &mut Commands) {
        self.publish(engine);
        for table in self.tables.iter_mut().flatten() {
            table.send(out);
        }
    }
}

fn put(table: &mut Table, kinds: &[Kind], id: u64, stamp: Stamp, engine: &Engine) {
    let mut put = |object: Object| {
        // It fits: the contract bounds ends, links and notes.
        table.put(object.key().to_string().as_bytes(), &Record { stamp, object }.to_bytes());
    };
    if kinds.contains(&Kind::Path) {
        engine.paths(id).into_iter().for_each(|path| put(path.into()));
    }
    if let Some(entry) = engine.entry(IntentId(id)).filter(|_| kinds.contains(&Kind::Intent)) {
        put(entry.to_intent().into());
    }
}
