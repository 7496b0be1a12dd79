//! The streams of the service: the tables by kinds, and the states of each owner's sets.
//!
//! ```text
//!   engine: changed entries, changed sets ──> [ sources ] ──snapshot, then changes──> readers
//! ```
//!
//! In: what has changed. Out: parts of streams. A record is made only while somebody follows, and is not kept.

use crate::engine::Engine;
use crate::listing::{Sorted, kind, object, position, view_key};
use crate::wanted::Scratch;
use burnet_sdk::stream::{Page, Source};
use burnet_sdk::{Commands, Query};
use flows_contract::Phase;
use std::collections::{BTreeMap, BTreeSet};
use view::{Kind, Record, Stamp};

/// The readers of one choice of kinds.
#[derive(Debug, Default)]
struct Table {
    source: Source,
    sorted: Sorted,
}

/// All streams.
#[derive(Debug, Default)]
pub struct Streams {
    /// By the kinds that they have, sorted: at most seven choices.
    tables: BTreeMap<Vec<Kind>, Table>,
    /// By the number of the owner.
    states: BTreeMap<u32, Source>,
    /// Sets that are on their way. Their progress is told with the next tick, if they still are. So a reader is told of most changes once, when
    /// they are done, and not with each receipt.
    on_their_way: BTreeSet<u32>,
    stamp: Stamp,
}

impl Streams {
    /// No readers. The term of every stamp is this run's.
    pub fn new(term: u64) -> Streams {
        Streams { stamp: Stamp { term, ..Stamp::default() }, ..Streams::default() }
    }

    /// The stamp of the last change.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// A call follows objects of these kinds.
    pub fn follow_table(&mut self, mut kinds: Vec<Kind>, query: &Query<'_>, out: &mut Commands) {
        kinds.sort_unstable();
        kinds.dedup();
        self.tables.entry(kinds).or_default().source.follow(query, out);
    }

    /// A call follows the states of an owner's sets.
    pub fn follow_states(&mut self, owner: u32, query: &Query<'_>, out: &mut Commands) {
        self.states.entry(owner).or_default().follow(query, out);
    }

    /// Tells the readers what has changed in the engine since the last call, as far as their credit goes.
    pub fn send(&mut self, engine: &mut Engine, out: &mut Commands) {
        self.note_entries(engine);
        self.note_sets(engine);
        self.send_more(engine, out);
        engine.notes.is_followed = !self.tables.is_empty();
    }

    /// Sends what the readers have credit for.
    pub fn send_more(&mut self, engine: &Engine, out: &mut Commands) {
        let stamp = self.stamp;
        for (kinds, table) in &mut self.tables {
            let Table { source, sorted } = table;
            source.send(out, |after, page| entries(engine, sorted, kinds, after, stamp, page));
        }
        for (owner, source) in &mut self.states {
            source.send(out, |after, page| states(engine, *owner, after, page));
        }
        self.tables.retain(|_, table| table.source.readers() > 0);
        self.states.retain(|_, source| source.readers() > 0);
    }

    fn note_entries(&mut self, engine: &mut Engine) {
        let changed = std::mem::take(&mut engine.notes.changed);
        if self.tables.is_empty() {
            return;
        }
        let mut scratch = Scratch::default();
        for (datapath, key) in changed {
            self.stamp.sequence += 1;
            let stamp = self.stamp;
            let record = engine
                .switch(datapath)
                .and_then(|switch| object(engine, switch, key, &mut scratch))
                .map(|object| Record { stamp, object }.to_bytes());
            let name = view_key(datapath, key).to_string();
            for (_, table) in self.tables.iter_mut().filter(|(kinds, _)| kinds.contains(&kind(key))) {
                table.source.change(name.as_bytes(), record.as_deref());
            }
        }
    }

    fn note_sets(&mut self, engine: &mut Engine) {
        for (owner, name) in std::mem::take(&mut engine.sets.deleted) {
            // A set with this name may have been put again.
            if engine.sets.number(owner, &name).is_none()
                && let Some(source) = self.states.get_mut(&owner)
            {
                source.change(name.as_bytes(), None);
            }
        }
        for number in engine.sets.take_dirty() {
            let Some(set) = engine.sets.get(number) else { continue };
            let Some(source) = self.states.get_mut(&set.owner) else { continue };
            let Some(state) = engine.state(number) else { continue };
            match state.phase {
                Phase::Pending | Phase::Removing => drop(self.on_their_way.insert(number)),
                _ => drop(source.change(set.name.as_bytes(), Some(&state.to_bytes()))),
            }
        }
    }

    /// About once a second: readers hear how far the changes are that go on.
    pub fn on_tick(&mut self, engine: &Engine) {
        for number in std::mem::take(&mut self.on_their_way) {
            let Some(set) = engine.sets.get(number) else { continue };
            let (Some(state), Some(source)) = (engine.state(number), self.states.get_mut(&set.owner)) else {
                continue;
            };
            if matches!(state.phase, Phase::Pending | Phase::Removing) {
                source.change(set.name.as_bytes(), Some(&state.to_bytes()));
            }
        }
    }
}

fn entries(
    engine: &Engine,
    sorted: &mut Sorted,
    kinds: &[Kind],
    after: Option<&[u8]>,
    stamp: Stamp,
    page: &mut Page<'_>,
) {
    let after = after.and_then(|key| std::str::from_utf8(key).ok()?.parse().ok()).and_then(position);
    let mut scratch = Scratch::default();
    sorted.walk(
        engine,
        after,
        |kind| kinds.contains(&kind),
        |switch, key| {
            let Some(object) = object(engine, switch, key, &mut scratch) else { return true };
            let name = object.key().to_string();
            page.entry(name.as_bytes(), &Record { stamp, object }.to_bytes())
        },
    );
}

fn states(engine: &Engine, owner: u32, after: Option<&[u8]>, page: &mut Page<'_>) {
    let after = after.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
    for (number, set) in engine.sets().of(owner, after) {
        let Some(state) = engine.state(number) else { continue };
        if !page.entry(set.name.as_bytes(), &state.to_bytes()) {
            return;
        }
    }
}
