//! The tables of intents and paths, as other apps follow them.
//!
//! In: which intents and reservations changed. Out: entries of streams. A table exists from its first reader on. It decides nothing.

use crate::engine::{Engine, Entry};
use burnet_sdk::stream::Table;
use burnet_sdk::{Commands, Query};
use graph::LinkNo;
use paths_contract::{Follow, RESERVED_STATE_KEY, Reserved, ReservedState};
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
    /// What intents reserve on links.
    reserved: Option<Table>,
    /// The links whose reservation changed since it was published.
    reserved_on: BTreeSet<LinkNo>,
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
            reserved: None,
            reserved_on: BTreeSet::new(),
            published: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// An intent, or its paths, changed, or it is gone.
    pub fn change(&mut self, id: u64) {
        self.changed.insert(id);
    }

    /// Intents reserve more or less on these links.
    pub fn change_reserved(&mut self, links: BTreeSet<LinkNo>) {
        self.reserved_on.extend(links);
    }

    /// The stamp of an intent.
    pub fn stamp(&self, id: u64) -> Stamp {
        self.published.get(&id).map(|(stamp, _)| *stamp).unwrap_or_default()
    }

    /// A reader follows the tables.
    pub fn follow(&mut self, follow: &Follow, query: &Query<'_>, engine: &Engine, out: &mut Commands) {
        if follow.reserved {
            return self.follow_reserved(query, engine, out);
        }
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

    fn follow_reserved(&mut self, query: &Query<'_>, engine: &Engine, out: &mut Commands) {
        if self.reserved.is_none() {
            self.reserved = Some(Table::new());
            let slots = engine.network().graph.topology().all_links();
            self.reserved_on =
                slots.filter(|(_, slot)| slot.reserved_kbps > 0).map(|(link, _)| link).collect();
        }
        self.publish_reserved(engine);
        if let Some(table) = &mut self.reserved {
            table.follow(query, out);
        }
    }

    /// Brings the reservations that changed into their table. What the service has not said before comes with it: that it is complete.
    fn publish_reserved(&mut self, engine: &Engine) {
        let changed = std::mem::take(&mut self.reserved_on);
        let Some(table) = &mut self.reserved else { return };
        for link in changed {
            let slot = engine.network().graph.topology().slot(link);
            let key = slot.id.to_string();
            // They fit: a key has some 60 bytes.
            match slot.reserved_kbps {
                0 => drop(table.remove(key.as_bytes())),
                kbps => drop(table.put(key.as_bytes(), &json(&Reserved { kbps }))),
            }
        }
        let state = ReservedState { complete: engine.is_complete() };
        table.put(RESERVED_STATE_KEY.as_bytes(), &json(&state));
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
        self.publish_reserved(engine);
        for table in self.tables.iter_mut().chain([&mut self.reserved]).flatten() {
            table.send(out);
        }
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // Plain data can always be written as JSON.
    serde_json::to_vec(value).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Effect, Event, Kept};
    use burnet_sdk::{Caller, Form};
    use view::{Constraints, Ends, Link, LinkId, LinkKind, LinkState, Switch, SwitchState, Wanted};

    /// Three switches in a ring, intents from the first to the second, and a reader of reservations.
    struct World {
        engine: Engine,
        tables: Tables,
        effects: Vec<Effect>,
        out: Commands,
        now_ms: u64,
    }

    impl World {
        fn new() -> World {
            let out = Commands::default();
            let mut world = World {
                engine: Engine::new(1, 500, 0),
                tables: Tables::new(1),
                effects: Vec::new(),
                out,
                now_ms: 0,
            };
            for id in 1..=3 {
                let (description, annotations) = Default::default();
                let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
                let id = flow::DatapathId(id);
                world.tell(Event::Switch(&Switch {
                    id,
                    state,
                    openflow,
                    n_tables: 1,
                    n_buffers: 0,
                    description,
                    since_ms: 0,
                    annotations,
                }));
            }
            for (one, two) in [("1/1", "2/1"), ("2/2", "3/2"), ("3/3", "1/3")] {
                world.link(&format!("{one}-{two}"), LinkState::Up);
                world.link(&format!("{two}-{one}"), LinkState::Up);
            }
            world
        }

        fn tell(&mut self, event: Event<'_>) {
            self.engine.on_event(event, self.now_ms, &mut self.effects);
        }

        fn link(&mut self, id: &str, state: LinkState) {
            let (latency_us, annotations) = Default::default();
            self.tell(Event::Link(&Link {
                id: id.parse().unwrap(),
                found: LinkKind::Direct,
                state,
                capacity_kbps: 10_000,
                latency_us,
                since_ms: 0,
                annotations,
            }));
        }

        fn intent(&mut self, id: u64, from: &[&str], kbps: u64) {
            let from = from.iter().map(|point| point.parse().unwrap()).collect();
            let ends = Ends::MultiToSingle { from, to: format!("2/{}", 100 + id).parse().unwrap() };
            let (selector, treatment, protection) = Default::default();
            let constraints = Constraints { bandwidth_kbps: kbps, ..Constraints::default() };
            let priority = u16::try_from(id).unwrap();
            let wanted = Wanted { ends, selector, treatment, constraints, priority, protection };
            let (name, annotations) = Default::default();
            let (id, owner, wanted) = (IntentId(id), "web".to_owned(), Box::new(wanted));
            self.tell(Event::Stored(Kept { id, owner, name, wanted, annotations, places: None }));
        }

        fn pass(&mut self) {
            self.now_ms += 1_000;
            self.tell(Event::ViewComplete(true));
            self.now_ms += 1_000;
            self.tell(Event::Time);
        }

        /// What a reader has: links with kbit/s, and whether it is all.
        fn told(&mut self) -> (Vec<(String, u64)>, bool) {
            self.tables.change_reserved(self.engine.network_mut().take_reserved());
            self.tables.send(&self.engine, &mut self.out);
            let table = self.tables.reserved.as_ref().unwrap();
            let state = table.get(RESERVED_STATE_KEY.as_bytes()).unwrap();
            let is_complete = serde_json::from_slice::<ReservedState>(state).unwrap().complete;
            let links = table.iter().filter(|(key, _)| *key != RESERVED_STATE_KEY.as_bytes());
            let read = |(key, value): (&[u8], &[u8])| {
                let link: LinkId = std::str::from_utf8(key).unwrap().parse().unwrap();
                let (from, to) = (link.from.switch.0, link.to.switch.0);
                (format!("{from}-{to}"), serde_json::from_slice::<Reserved>(value).unwrap().kbps)
            };
            (links.map(read).collect(), is_complete)
        }

        fn follow(&mut self) {
            let caller = Caller { number: 3, name: "labels", grant: b"" };
            let (ticket, form, payload) = (10, Form::Stream, &b""[..]);
            let service = paths_contract::SERVICE;
            let query =
                Query { ticket, caller, service, form, deadline_ms: 0, credit_bytes: 60 << 10, payload };
            let follow = Follow { reserved: true, ..Follow::default() };
            self.tables.follow(&follow, &query, &self.engine, &mut self.out);
        }
    }

    fn links(of: &[(&str, u64)]) -> Vec<(String, u64)> {
        of.iter().map(|(link, kbps)| ((*link).to_owned(), *kbps)).collect()
    }

    #[test]
    fn a_reader_has_the_reservations_of_each_link_once_all_intents_of_the_store_have_their_paths() {
        let mut world = World::new();
        world.follow();
        // Two ends that share a link reserve once there.
        world.intent(1, &["1/101", "3/101"], 3_000);
        world.intent(2, &["1/102"], 2_000);
        world.pass();
        assert_eq!(world.told(), (vec![], false), "nothing is compiled yet");
        world.now_ms = 20_000;
        world.pass();
        let links_of_both = links(&[("1-2", 5_000), ("3-2", 3_000)]);
        assert_eq!(world.told(), (links_of_both, false), "the store has not said that these are all");
        world.tell(Event::Loaded);
        world.pass();
        assert_eq!(world.told(), (links(&[("1-2", 5_000), ("3-2", 3_000)]), true));
        // A reroute, and back to what is left of it.
        world.link("1/1-2/1", LinkState::Down);
        world.pass();
        assert_eq!(world.told(), (links(&[("1-3", 5_000), ("3-2", 5_000)]), true));
        world.tell(Event::Withdrawn(IntentId(1)));
        assert_eq!(world.told(), (links(&[("1-3", 2_000), ("3-2", 2_000)]), true));
        world.tell(Event::Withdrawn(IntentId(2)));
        assert_eq!(world.told(), (vec![], true));
    }

    #[test]
    fn a_reader_that_comes_late_has_what_was_reserved_before() {
        let mut world = World::new();
        world.intent(1, &["1/101"], 3_000);
        world.tell(Event::Loaded);
        world.pass();
        world.tables.change_reserved(world.engine.network_mut().take_reserved());
        world.follow();
        assert_eq!(world.told(), (links(&[("1-2", 3_000)]), true));
    }

    #[test]
    fn what_is_reserved_is_not_complete_while_intents_of_the_store_wait_for_their_turn() {
        let mut world = World::new();
        world.follow();
        let all = 20;
        (1..=all).for_each(|id| world.intent(id, &["1/101"], 1));
        world.tell(Event::Loaded);
        let mut turns = 0;
        while !world.told().1 {
            let (reserved, _) = world.told();
            assert!(reserved.iter().all(|(_, kbps)| *kbps < all), "{reserved:?}");
            turns += 1;
            world.pass();
        }
        assert_eq!((world.told().0, turns > 1), (links(&[("1-2", all)]), true), "{turns} turns");
    }
}
