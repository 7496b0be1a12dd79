//! Finds the rules in a switch's table that match packets of one another, for apps that share priorities.
//!
//! ```text
//!   rules that were sent, rules that a switch says it has ──> Overlaps::note
//!   a rule that is to be sent ──> Overlaps::find ──> the rules of others that match some of its packets
//! ```
//!
//! Rules are kept by their shape: the fields and masks of their matches. If a new rule fixes all bits of a shape, at
//! most one entry of a hash table can overlap it. Otherwise, all rules of that shape are compared
//! ([`flow::relation::overlaps`]). So a learning switch's
//! rules cost a look-up each, and only wide rules cost more.
//!
//! In: rules with their owners. Out: those that overlap. It never decides what to do, and never learns that a rule was
//! removed: the caller says which of the rules still exist. Bounds: [`COMPARED_MAX`] rules of all switches together. It
//! does not keep further ones, and tells the caller.

use crate::rule_key::RuleKey;
use abi::ZoneId;
use flow::relation::overlaps;
use flow::{DatapathId, Field, Match, MatchEntry};
use std::collections::{BTreeMap, HashMap};

/// How many rules are kept for comparison. Each has a copy of its match, so memory must be bounded. If apps that share
/// priorities need more, the operator gives them priorities of their own.
pub const COMPARED_MAX: usize = 1 << 18;

/// An app may have at most so many times as many of them as it leaves free. So one app alone gets seven eighths, and the next
/// one always finds room.
const SHARE: usize = 7;

/// A visit of so many shapes costs about as much as one comparison.
const SHAPES_AS_ONE: u64 = 8;

/// A table of a switch.
pub(crate) type Table = (DatapathId, u8);

/// A rule, in the form for comparison.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub key: RuleKey,
    pub owner: ZoneId,
    pub priority: u16,
    pub matching: Match,
    /// The state of the order of apps in which it was compared with the others.
    pub order: u32,
}

/// The fields and masks of a match, in the order of the fields' numbers.
type Fields = Vec<(Field, u128)>;

/// All rules of one table whose matches have the same fields and masks, by the values of those fields.
type Shape = HashMap<Box<[u128]>, Vec<Placed>>;

/// The rules of all tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlaps {
    /// In order, so that the same rule is always found first.
    tables: HashMap<Table, BTreeMap<Fields, Shape>>,
    count: usize,
    /// How many of them each app has.
    of_apps: HashMap<ZoneId, usize>,
}

impl Overlaps {
    /// Keeps a rule, and replaces the one with its key. Returns whether there was space.
    pub fn note(&mut self, table: Table, rule: Placed) -> bool {
        let (fields, values) = split(&rule.matching);
        let shape = self.tables.entry(table).or_default().entry(fields).or_default();
        let rules = shape.entry(values).or_default();
        if let Some(there) = rules.iter_mut().find(|there| there.key == rule.key) {
            *self.of_apps.entry(rule.owner).or_default() += 1;
            let before = std::mem::replace(there, rule);
            drop_one(&mut self.of_apps, before.owner);
            return true;
        }
        if self.count >= COMPARED_MAX {
            return false;
        }
        *self.of_apps.entry(rule.owner).or_default() += 1;
        rules.push(rule);
        self.count += 1;
        true
    }

    /// The rule with the same key and owner.
    pub fn known(&self, table: Table, rule: &Placed) -> Option<&Placed> {
        let (fields, values) = split(&rule.matching);
        let rules = self.tables.get(&table)?.get(&fields)?.get(&values)?;
        rules.iter().find(|it| it.key == rule.key && it.owner == rule.owner)
    }

    /// Drops a rule.
    pub fn forget(&mut self, table: Table, key: RuleKey, matching: &Match) {
        let (fields, values) = split(matching);
        let shape = self.tables.get_mut(&table).and_then(|shapes| shapes.get_mut(&fields));
        let gone = shape.and_then(|shape| {
            let rules = shape.get_mut(&values)?;
            let place = rules.iter().position(|it| it.key == key)?;
            Some(rules.swap_remove(place))
        });
        if let Some(gone) = gone {
            self.count -= 1;
            drop_one(&mut self.of_apps, gone.owner);
        }
    }

    /// Passes each rule of this table that matches packets of `matching` to `each`, except those of `asker`. Returns
    /// how many were compared. It drops the rules that `is_there` reports as gone.
    pub fn find(
        &mut self,
        table: Table,
        asker: ZoneId,
        matching: &Match,
        is_there: impl Fn(&Placed) -> bool,
        mut each: impl FnMut(&Placed),
    ) -> u64 {
        let Some(shapes) = self.tables.get_mut(&table) else { return 0 };
        let (mut compared, mut dropped) = (0, 0);
        let of_apps = &mut self.of_apps;
        // Drops what is gone, and passes on what overlaps. Returns whether something is left. A rule of the asker costs a
        // look-up too, so it counts.
        let mut look = |rules: &mut Vec<Placed>| {
            compared += rules.len() as u64;
            rules.retain(|rule| {
                let stays = is_there(rule);
                if !stays {
                    dropped += 1;
                    drop_one(of_apps, rule.owner);
                }
                stays
            });
            for rule in rules.iter().filter(|rule| rule.owner != asker) {
                if overlaps(&rule.matching, matching) {
                    each(rule);
                }
            }
            !rules.is_empty()
        };
        let shapes_visited = shapes.len() as u64;
        // A shape whose rules are all gone goes too: an app can make a new shape with each rule.
        shapes.retain(|fields, shape| {
            match values_within(fields, matching) {
                // One entry at most, so the others of the shape are not looked at.
                Some(values) => {
                    if shape.get_mut(&values).is_some_and(|rules| !look(rules)) {
                        shape.remove(&values);
                    }
                }
                None => shape.retain(|_, rules| look(rules)),
            }
            !shape.is_empty()
        });
        self.count -= dropped;
        compared + shapes_visited / SHAPES_AS_ONE
    }

    /// Drops the rules of every table that are gone.
    pub fn sweep(&mut self, is_there: impl Fn(Table, &Placed) -> bool) {
        for (table, shapes) in &mut self.tables {
            for shape in shapes.values_mut() {
                shape.values_mut().for_each(|rules| rules.retain(|rule| is_there(*table, rule)));
                shape.retain(|_, rules| !rules.is_empty());
            }
            shapes.retain(|_, shape| !shape.is_empty());
        }
        self.tables.retain(|_, shapes| !shapes.is_empty());
        let all = self.tables.values().flat_map(BTreeMap::values).flat_map(HashMap::values).flatten();
        (self.count, self.of_apps) = (0, HashMap::new());
        for rule in all {
            self.count += 1;
            *self.of_apps.entry(rule.owner).or_default() += 1;
        }
    }

    /// Whether the bound is reached for this app.
    pub fn is_full_for(&self, owner: ZoneId) -> bool {
        let left = COMPARED_MAX.saturating_sub(self.count);
        self.of_apps.get(&owner).copied().unwrap_or_default() >= SHARE * left
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }
}

/// An app has one rule less.
fn drop_one(of_apps: &mut HashMap<ZoneId, usize>, owner: ZoneId) {
    if let Some(count) = of_apps.get_mut(&owner) {
        *count -= 1;
        if *count == 0 {
            of_apps.remove(&owner);
        }
    }
}

/// Splits a match into its shape and its values. It skips fields with a zero mask and fields of vendors; the comparison
/// itself handles them.
fn split(matching: &Match) -> (Fields, Box<[u128]>) {
    let mut said: Vec<(Field, u128, u128)> = matching.entries().iter().filter_map(said_by).collect();
    said.sort_by_key(|(field, ..)| field.number());
    (said.iter().map(|it| (it.0, it.1)).collect(), said.iter().map(|it| it.2).collect())
}

/// Field, mask and value.
fn said_by(entry: &MatchEntry) -> Option<(Field, u128, u128)> {
    match entry {
        MatchEntry::Field { mask: Some(0), .. } | MatchEntry::Unknown { .. } => None,
        MatchEntry::Field { field, value, mask } => Some((*field, mask.unwrap_or(field.full_mask()), *value)),
    }
}

/// The values of a rule of this shape that overlaps a match which fixes each bit of the shape; `None` if the match
/// leaves some bits open.
fn values_within(fields: &Fields, matching: &Match) -> Option<Box<[u128]>> {
    let fixed = |(field, wanted): &(Field, u128)| {
        let (value, mask) = matching.get(*field)?;
        (wanted & !mask == 0).then_some(value & wanted)
    };
    fields.iter().map(fixed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::parse_match;
    use proptest::prelude::*;

    const TABLE: Table = (DatapathId(1), 0);
    const STRANGER: ZoneId = ZoneId(9);

    fn placed(number: u64, text: &str) -> Placed {
        let matching = parse_match(text).unwrap();
        Placed { key: RuleKey(number), owner: ZoneId(1), priority: 5, matching, order: 0 }
    }

    fn found(overlaps: &mut Overlaps, text: &str) -> Vec<u64> {
        let mut keys = Vec::new();
        overlaps.find(TABLE, STRANGER, &parse_match(text).unwrap(), |_| true, |rule| keys.push(rule.key.0));
        keys.sort_unstable();
        keys
    }

    #[test]
    fn rules_that_match_a_packet_of_both_are_found() {
        let mut overlaps = Overlaps::default();
        for (number, text) in ["ip,nw_dst=10.0.0.0/8", "arp", "in_port=1", ""].iter().enumerate() {
            assert!(overlaps.note(TABLE, placed(number as u64, text)));
        }
        let mut check =
            |text: &str, expected: &[u64]| assert_eq!(found(&mut overlaps, text), expected, "{text}");
        check("ip,nw_dst=10.1.2.3", &[0, 2, 3]);
        check("ip,nw_dst=11.0.0.0/8", &[2, 3]);
        check("ip,nw_dst=0.0.0.0/1", &[0, 2, 3]);
        check("arp,in_port=2", &[1, 3]);
        check("", &[0, 1, 2, 3]);
    }

    #[test]
    fn tables_and_switches_are_kept_apart() {
        let mut overlaps = Overlaps::default();
        overlaps.note((DatapathId(1), 1), placed(1, ""));
        overlaps.note((DatapathId(2), 0), placed(2, ""));
        assert!(found(&mut overlaps, "").is_empty());
        overlaps.sweep(|table, _| table == (DatapathId(2), 0));
        assert_eq!(overlaps.count, 1);
    }

    #[test]
    fn what_is_gone_is_dropped_when_it_is_met() {
        let mut overlaps = Overlaps::default();
        (0..10).for_each(|number| assert!(overlaps.note(TABLE, placed(number, "in_port=1"))));
        let any = Match::any();
        overlaps.find(TABLE, STRANGER, &any, |rule| rule.key.0 % 2 == 0, |_| {});
        assert_eq!((overlaps.count, found(&mut overlaps, "in_port=1")), (5, vec![0, 2, 4, 6, 8]));
        overlaps.sweep(|_, rule| rule.key.0 == 4);
        assert_eq!((overlaps.count, found(&mut overlaps, "")), (1, vec![4]));
    }

    #[test]
    fn a_rule_takes_the_place_of_the_one_with_its_key() {
        let mut overlaps = Overlaps::default();
        overlaps.note(TABLE, placed(1, "in_port=1"));
        overlaps.note(TABLE, Placed { owner: ZoneId(9), ..placed(1, "in_port=1") });
        assert_eq!(overlaps.count, 1);
    }

    #[test]
    fn beyond_its_bound_nothing_is_kept() {
        let mut overlaps = Overlaps { count: COMPARED_MAX, ..Overlaps::default() };
        assert!(overlaps.is_full_for(STRANGER));
        assert!(!overlaps.note(TABLE, placed(1, "arp")));
    }

    fn few_values() -> impl Strategy<Value = Match> {
        let address = (0u32..4, prop::sample::select(vec![0u32, 1, 2, 3, u32::MAX]));
        (prop::option::of(0u32..3), prop::option::of(address), prop::option::of(0u8..3)).prop_map(
            |(port, address, proto)| {
                let mut rule = Match::any();
                if let Some(port) = port {
                    rule.set(Field::InPort, port.into());
                }
                if address.is_some() || proto.is_some() {
                    rule.set(Field::EthType, 0x0800);
                }
                if let Some((value, mask)) = address {
                    rule.set_masked(Field::Ipv4Dst, value.into(), mask.into());
                }
                if let Some(proto) = proto {
                    rule.set(Field::IpProto, proto.into());
                }
                rule
            },
        )
    }

    proptest! {
        #[test]
        fn it_finds_what_comparing_all_finds(
            rules in prop::collection::vec(few_values(), 0..20), wanted in few_values()
        ) {
            let mut index = Overlaps::default();
            for (number, matching) in rules.iter().enumerate() {
                index.note(TABLE, Placed { matching: matching.clone(), ..placed(number as u64, "") });
            }
            let mut keys = Vec::new();
            index.find(TABLE, STRANGER, &wanted, |_| true, |rule| keys.push(rule.key.0));
            keys.sort_unstable();
            let all: Vec<u64> =
                (0..rules.len()).filter(|it| overlaps(&rules[*it], &wanted)).map(|it| it as u64).collect();
            prop_assert_eq!(keys, all);
        }
    }
}
