//! The rules of a switch as its flow mods leave them, for an owner who has no packets: a proxy before a real switch.
//!
//! ```text
//!   flow mod ──> RuleBook ──> the numbers of the rules that it adds, changes or removes
//!   number ────────────────> the rule
//! ```
//!
//! In: flow mods. Out: rules and their numbers. A number follows from table, priority and match. So it is known before the rule is there,
//! and it stays the same if the rule is deleted and added again. Which rules a flow mod means is decided as in the switch of this crate.
//!
//! It never counts packets, never ends a rule by time, and refuses nothing: its owner does.

use flow::{Instruction, Match, PortNo};
use openflow::Version;
use openflow::message::*;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::flow_key::{FlowKey, WordHash, WordHasher};
use crate::instructions::Instructions;
use crate::table::{FlowEntry, FlowTable, Selection};

/// The number of the rule with this table, priority and match. `None` if the match names a field of another class, which this book
/// cannot compare.
///
/// Two rules have the same number with a probability of 2⁻⁶⁴.
pub fn rule_number(table_id: u8, priority: u16, matching: &Match) -> Option<u64> {
    let key = FlowKey::of_match(matching)?;
    let mut words = vec![u64::from(table_id) << 16 | u64::from(priority)];
    words.extend(key.mask.words());
    words.extend(&key.value);
    Some(WordHasher::of(&words))
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookedRule {
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Its match.
    pub matching: Match,
    /// Its cookie.
    pub cookie: u64,
    /// Bits `FLOW_MOD_…`.
    pub flags: u16,
    /// Its idle time-out; 0: none.
    pub idle_timeout_s: u16,
    /// Its hard time-out; 0: none.
    pub hard_timeout_s: u16,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// What a flow mod has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BookChange {
    /// It added the rule with this number, or replaced it.
    Added(u64),
    /// It changed these rules. In OpenFlow 1.0, a modify that changes none adds its rule: that is [`BookChange::Added`].
    Modified(Vec<u64>),
    /// It removed these rules.
    Deleted(Vec<(u64, BookedRule)>),
    /// The book cannot say what it means: its match names a field of another class, or the command is unknown.
    Unknown,
}

/// The rules of a switch.
#[derive(Clone, Debug, Default)]
pub struct RuleBook {
    tables: BTreeMap<u8, FlowTable>,
    places: HashMap<u64, (u8, u32), WordHash>,
}

fn booked(table_id: u8, entry: &FlowEntry) -> BookedRule {
    BookedRule {
        table_id,
        priority: entry.priority,
        matching: entry.matching.clone(),
        cookie: entry.cookie,
        flags: entry.flags,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        instructions: entry.instructions.to_vec(),
    }
}

impl RuleBook {
    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many rules a table has.
    pub fn len_of_table(&self, table_id: u8) -> usize {
        self.tables.get(&table_id).map_or(0, FlowTable::len)
    }

    /// The rule with this number.
    pub fn get(&self, number: u64) -> Option<BookedRule> {
        let (table_id, slot) = self.places.get(&number)?;
        Some(booked(*table_id, self.tables.get(table_id)?.entry(*slot)?))
    }

    /// Whether the rule is there.
    pub fn contains(&self, number: u64) -> bool {
        self.places.contains_key(&number)
    }

    /// Carries a flow mod out (1.3.5, 6.4; 1.0, 4.6). The caller has given an exact match of 1.0 its priority.
    pub fn carry_out(&mut self, wanted: &FlowMod, version: Version) -> BookChange {
        match wanted.command {
            FLOW_ADD => self.add(wanted, version),
            FLOW_MODIFY | FLOW_MODIFY_STRICT => self.modify(wanted, version),
            FLOW_DELETE | FLOW_DELETE_STRICT => self.delete(wanted),
            _ => BookChange::Unknown,
        }
    }

    fn add(&mut self, wanted: &FlowMod, version: Version) -> BookChange {
        let number = rule_number(wanted.table_id, wanted.priority, &wanted.matching);
        let Some(number) = number else { return BookChange::Unknown };
        let instructions = Instructions::new(wanted.instructions.clone());
        let table = self.tables.entry(wanted.table_id).or_default();
        table.add(FlowEntry::new(wanted, instructions, Duration::ZERO), version);
        if let Some(slot) = table.exactly(wanted.priority, &wanted.matching) {
            self.places.insert(number, (wanted.table_id, slot));
        }
        BookChange::Added(number)
    }

    fn modify(&mut self, wanted: &FlowMod, version: Version) -> BookChange {
        if FlowKey::of_match(&wanted.matching).is_none() {
            return BookChange::Unknown;
        }
        let instructions = Instructions::new(wanted.instructions.clone());
        // A modify ignores the output port (1.3.5, 6.4).
        let anywhere =
            Selection { out_port: PortNo::ANY, out_group: GROUP_ANY, ..Selection::of_flow_mod(wanted) };
        let Some(table) = self.tables.get_mut(&wanted.table_id) else {
            return self.modify_of_none(wanted, version);
        };
        let numbers: Vec<u64> = table
            .select(&anywhere)
            .filter_map(|entry| rule_number(wanted.table_id, entry.priority, &entry.matching))
            .collect();
        table.modify(&anywhere, |entry| {
            entry.instructions = instructions.clone();
            if version == Version::V1_0 {
                entry.cookie = wanted.cookie;
            }
        });
        if numbers.is_empty() { self.modify_of_none(wanted, version) } else { BookChange::Modified(numbers) }
    }

    /// If a modify finds no rule, 1.0 adds it (1.0, 4.6) and 1.3 does nothing.
    fn modify_of_none(&mut self, wanted: &FlowMod, version: Version) -> BookChange {
        if version == Version::V1_0 { self.add(wanted, version) } else { BookChange::Modified(Vec::new()) }
    }

    fn delete(&mut self, wanted: &FlowMod) -> BookChange {
        if FlowKey::of_match(&wanted.matching).is_none() {
            return BookChange::Unknown;
        }
        let selection = Selection::of_flow_mod(wanted);
        let mut deleted = Vec::new();
        for (table_id, table) in &mut self.tables {
            if wanted.table_id != TABLE_ALL && wanted.table_id != *table_id {
                continue;
            }
            for entry in table.delete(&selection) {
                let Some(number) = rule_number(*table_id, entry.priority, &entry.matching) else { continue };
                self.places.remove(&number);
                deleted.push((number, booked(*table_id, &entry)));
            }
        }
        BookChange::Deleted(deleted)
    }

    /// Removes one rule.
    pub fn remove(&mut self, number: u64) -> Option<BookedRule> {
        let (table_id, slot) = self.places.remove(&number)?;
        let entry = self.tables.get_mut(&table_id)?.take(slot)?;
        Some(booked(table_id, &entry))
    }

    /// How many rules a request for flow statistics selects.
    pub fn count(&self, request: &FlowStatsRequest) -> usize {
        let selection = Selection::of_request(request);
        let all = request.matching.is_any()
            && request.cookie_mask == 0
            && request.out_port == PortNo::ANY
            && request.out_group == GROUP_ANY;
        let wanted = self.tables.iter().filter(|(id, _)| [TABLE_ALL, **id].contains(&request.table_id));
        wanted.map(|(_, table)| if all { table.len() } else { table.select(&selection).count() }).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Action, Field};

    fn matching(port: u32) -> Match {
        Match::any().with(Field::InPort, port)
    }

    fn flow_mod(command: u8, priority: u16, matching: Match, output: u32) -> FlowMod {
        let instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(output))])];
        FlowModFields { command, priority, ..FlowModFields::default() }.with(matching, instructions)
    }

    fn number(priority: u16, matching: &Match) -> u64 {
        rule_number(0, priority, matching).unwrap()
    }

    #[test]
    fn the_number_of_a_rule_is_that_of_its_table_priority_and_match() {
        let first = matching(1).with(Field::EthDst, 5u64);
        let swapped = Match::any().with(Field::EthDst, 5u64).with(Field::InPort, 1u32);
        assert_eq!(number(1, &first), number(1, &swapped));
        assert_ne!(number(1, &first), number(2, &first));
        assert_ne!(number(1, &first), number(1, &matching(1)));
        assert_ne!(rule_number(0, 1, &first), rule_number(1, 1, &first));
    }

    #[test]
    fn a_modify_of_no_rule_adds_it_in_1_0_only() {
        let wanted = flow_mod(FLOW_MODIFY, 1, matching(1), 2);
        let mut book = RuleBook::default();
        assert_eq!(book.carry_out(&wanted, Version::V1_3), BookChange::Modified(Vec::new()));
        assert_eq!(
            book.carry_out(&wanted, Version::V1_0),
            BookChange::Added(number(1, &matching(1))),
            "1.0, 4.6"
        );
        assert_eq!(
            book.carry_out(&wanted, Version::V1_0),
            BookChange::Modified(vec![number(1, &matching(1))])
        );
    }

    #[test]
    fn a_delete_names_the_rules_that_went() {
        let mut book = RuleBook::default();
        for port in 1..=3 {
            book.carry_out(&flow_mod(FLOW_ADD, 1, matching(port), port % 2), Version::V1_3);
        }
        let selected = FlowStatsRequest {
            table_id: TABLE_ALL,
            out_port: PortNo(1),
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::any(),
        };
        assert_eq!(book.count(&selected), 2);
        let wanted = FlowMod { out_port: PortNo(1), ..flow_mod(FLOW_DELETE, 0, Match::any(), 0) };
        let BookChange::Deleted(gone) = book.carry_out(&wanted, Version::V1_3) else { panic!("a delete") };
        let mut ports: Vec<u64> = gone.iter().map(|(number, _)| *number).collect();
        ports.sort_unstable();
        let mut expected = vec![number(1, &matching(1)), number(1, &matching(3))];
        expected.sort_unstable();
        assert_eq!((ports, book.len()), (expected, 1));
        let rule = book.remove(number(1, &matching(2))).unwrap();
        assert_eq!((rule.priority, book.is_empty()), (1, true));
        assert_eq!(book.remove(number(1, &matching(2))), None);
    }
}
