//! The tables of rules, groups and meters as others see them: records, pages, filters, counters.
//!
//! In: the engine's entries. Out: objects of the view, made when they are asked for. Nothing of them is kept.

use crate::engine::Engine;
use crate::key::{EntryKey, EntryKind};
use crate::slot::{Slot, State};
use crate::switch::Switch;
use crate::wanted::{Scratch, What};
use flow::DatapathId;
use flow::canonical::{read_instructions, read_match};
use flows_contract::{EntryPage, Filter, PAGE_DEFAULT, PAGE_MAX, SwitchSummary};
use std::fmt::Write;
use view::{EntryState, GroupId, Key, Kind, MeterId, Object, Record, RuleId, Stamp};

/// The place of an entry in every list: by kind, switch and number.
pub type Position = (Kind, DatapathId, EntryKey);

/// The kinds of this service, in the order of lists.
pub const KINDS: [Kind; 3] = [Kind::Rule, Kind::Group, Kind::Meter];

/// The position of a key of the view. `None`: it is another service's.
pub fn position(key: Key) -> Option<Position> {
    Some(match key {
        Key::Rule(id) => (Kind::Rule, id.switch, EntryKey::of_rule_number(id.number)),
        Key::Group(id) => (Kind::Group, id.switch, EntryKey::group(id.number)),
        Key::Meter(id) => (Kind::Meter, id.switch, EntryKey::meter(id.number)),
        _ => return None,
    })
}

/// The kind of an entry.
pub fn kind(key: EntryKey) -> Kind {
    match key.kind() {
        EntryKind::Rule(_) => Kind::Rule,
        EntryKind::Group(_) => Kind::Group,
        EntryKind::Meter(_) => Kind::Meter,
    }
}

/// The key of the view.
pub fn view_key(switch: DatapathId, key: EntryKey) -> Key {
    match key.kind() {
        EntryKind::Rule(number) => Key::Rule(RuleId { switch, number }),
        EntryKind::Group(number) => Key::Group(GroupId { switch, number }),
        EntryKind::Meter(number) => Key::Meter(MeterId { switch, number }),
    }
}

fn state(slot: &Slot, is_ready: bool) -> EntryState {
    match slot.state {
        State::Installed => EntryState::Installed,
        State::Failed => EntryState::Failed,
        State::Removing | State::RemoveSent | State::Orphan => EntryState::Removing,
        _ if !is_ready => EntryState::Waiting,
        State::Held | State::Due | State::Sent => EntryState::Pending,
    }
}

/// The object of an entry. `None` if no set wants it.
pub fn object(engine: &Engine, switch: &Switch, key: EntryKey, scratch: &mut Scratch) -> Option<Object> {
    let slot = switch.slots.get(&key)?;
    let body = slot.body.as_ref()?;
    let set = engine.sets().get(body.set)?;
    let (owner, name) = (engine.owner_name(set.owner).to_owned(), set.name.to_string());
    let state = state(slot, switch.is_ready());
    let wanted = body.wanted(slot.place(), scratch)?;
    Some(match (wanted.what, view_key(switch.datapath, key)) {
        (
            What::Rule { table_id, priority, idle_timeout_s, hard_timeout_s, matching, instructions },
            Key::Rule(id),
        ) => Object::Rule(view::Rule {
            id,
            owner,
            set: name,
            table_id,
            priority,
            matching: read_match(matching).unwrap_or_default(),
            instructions: read_instructions(instructions).unwrap_or_default(),
            cookie: wanted.content,
            idle_timeout_s,
            hard_timeout_s,
            state,
        }),
        (What::Group { group_type, buckets }, Key::Group(id)) => {
            let group_type = group_word(group_type);
            Object::Group(view::Group { id, owner, set: name, group_type, buckets: hex(buckets), state })
        }
        (What::Meter { flags, bands }, Key::Meter(id)) => {
            Object::Meter(view::Meter { id, owner, set: name, flags, bands: hex(bands), state })
        }
        _ => return None,
    })
}

/// The word for an `ofp_group_type` (OpenFlow 1.3.5, 7.3.4.2).
fn group_word(group_type: u8) -> String {
    let words = ["all", "select", "indirect", "fast_failover"];
    words.get(usize::from(group_type)).map_or_else(|| group_type.to_string(), |word| (*word).to_owned())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The entries of a switch of one kind, sorted. A page after the other uses the same list.
#[derive(Debug, Default)]
pub struct Sorted {
    of: Option<(Kind, DatapathId)>,
    keys: Vec<EntryKey>,
}

impl Sorted {
    /// Calls `take` with each entry behind a position, until it is false. `is_listed` chooses the kinds.
    pub fn walk(
        &mut self,
        engine: &Engine,
        after: Option<Position>,
        is_listed: impl Fn(Kind) -> bool,
        mut take: impl FnMut(&Switch, EntryKey) -> bool,
    ) {
        let mut switches: Vec<&Switch> = engine.switches().collect();
        switches.sort_unstable_by_key(|switch| switch.datapath);
        for kind in KINDS.into_iter().filter(|kind| is_listed(*kind)) {
            for switch in &switches {
                let here = (kind, switch.datapath);
                if after.is_some_and(|(kind, switch, _)| here < (kind, switch)) {
                    continue;
                }
                // The first page of a switch reads its keys again.
                let is_first = after.is_none_or(|(kind, switch, _)| here != (kind, switch));
                if is_first || self.of != Some(here) {
                    self.collect(switch, kind);
                }
                let first = match after.filter(|_| !is_first) {
                    Some((_, _, key)) => self.keys.partition_point(|one| *one <= key),
                    None => 0,
                };
                if !self.keys.iter().skip(first).all(|key| take(switch, *key)) {
                    return;
                }
            }
        }
    }

    fn collect(&mut self, switch: &Switch, of: Kind) {
        self.of = Some((of, switch.datapath));
        self.keys.clear();
        self.keys.extend(switch.slots.keys().filter(|key| kind(**key) == of));
        self.keys.sort_unstable();
    }
}

/// A page of a list.
pub fn page(
    engine: &Engine,
    of: Kind,
    filter: &Filter,
    after: Option<Key>,
    limit: Option<usize>,
    stamp: Stamp,
) -> EntryPage {
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut page = EntryPage::default();
    let mut scratch = Scratch::default();
    Sorted::default().walk(
        engine,
        after.and_then(position),
        |kind| kind == of,
        |switch, key| {
            if filter.switch.is_some_and(|only| only != switch.datapath) {
                return true;
            }
            let Some(object) =
                object(engine, switch, key, &mut scratch).filter(|object| fits(filter, object))
            else {
                return true;
            };
            if page.entries.len() == limit {
                page.next = page.entries.last().map(|record| record.object.key());
                return false;
            }
            page.entries.push(Record { stamp, object });
            true
        },
    );
    page
}

fn fits(filter: &Filter, object: &Object) -> bool {
    let (owner, set, state, table_id) = match object {
        Object::Rule(it) => (&it.owner, &it.set, it.state, Some(it.table_id)),
        Object::Group(it) => (&it.owner, &it.set, it.state, None),
        Object::Meter(it) => (&it.owner, &it.set, it.state, None),
        _ => return false,
    };
    filter.owner.as_ref().is_none_or(|only| only == owner)
        && filter.set.as_ref().is_none_or(|only| only == set)
        && filter.state.is_none_or(|only| only == state)
        && (filter.table_id.is_none() || filter.table_id == table_id)
}

/// What is known of a switch.
pub fn summary(switch: &Switch) -> SwitchSummary {
    let mut summary = SwitchSummary {
        switch: switch.datapath,
        tables: switch.tables,
        wanted: 0,
        installed: 0,
        pending: switch.pending() as u64,
        foreign: switch.reading.foreign[0],
        orphans: 0,
        audits: switch.reading.count,
        repaired: switch.reading.repaired,
    };
    for slot in switch.slots.values() {
        match slot.state {
            State::Orphan => summary.orphans += 1,
            State::Removing | State::RemoveSent => {}
            state => {
                summary.wanted += 1;
                summary.installed += u64::from(state == State::Installed);
            }
        }
    }
    summary
}
