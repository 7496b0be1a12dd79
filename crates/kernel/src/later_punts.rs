//! The kernel's table-miss rules of the tables behind table 0 at one switch.
//!
//! ```text
//!   packets reach a table ──add──> rule ──no app passes packets on to it, twice──> the rule goes
//!                           ^        └──an app that may change the rules of others takes it away──┐
//!                           └────────────────────── the next look ────────────────────────────────┘
//! ```
//!
//! In: tables that packets reach. Out: which rules there are, which of them have no meter, and which are to be deleted. It
//! decides nothing about apps' rules, and sends nothing.

use std::collections::{BTreeMap, BTreeSet};

/// A rule goes when so many looks in a row found that no app passes packets on to its table. An app that replaces its rule
/// deletes it for a moment.
const LOOKS: u8 = 2;

/// One table's rule.
#[derive(Clone, Copy, Debug, Default)]
struct Punt {
    /// The switch refused it with the meter.
    is_unmetered: bool,
    /// For how many looks no app has passed packets on to the table.
    unused: u8,
}

/// The rules of a switch: at most one for each of its tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaterPunts {
    by_table: BTreeMap<u8, Punt>,
    /// The last table of which the switch was asked whether it still has an app's own rule.
    pub sought: u8,
}

impl LaterPunts {
    /// A table is to have the rule. Returns whether it is new.
    pub fn add(&mut self, table_id: u8) -> bool {
        let is_new = !self.has(table_id);
        self.by_table.entry(table_id).or_default().unused = 0;
        is_new
    }

    /// The rule of this table is gone or changed, but not by the kernel.
    pub fn forget(&mut self, table_id: u8) {
        self.by_table.remove(&table_id);
    }

    /// Whether a table has the rule.
    pub fn has(&self, table_id: u8) -> bool {
        self.by_table.contains_key(&table_id)
    }

    /// The tables that have it.
    pub fn tables(&self) -> impl Iterator<Item = u8> + '_ {
        self.by_table.keys().copied()
    }

    /// Whether the rule of this table may have the meter.
    pub fn may_have_meter(&self, table_id: u8) -> bool {
        self.by_table.get(&table_id).is_some_and(|it| !it.is_unmetered)
    }

    /// The switch refused the rule with the meter. Returns whether the rule is still wanted.
    pub fn on_meter_refused(&mut self, table_id: u8) -> bool {
        match self.by_table.get_mut(&table_id) {
            Some(it) => !std::mem::replace(&mut it.is_unmetered, true),
            None => false,
        }
    }

    /// A look, from time to time: apps pass packets on to these tables. Returns the tables whose rules go.
    pub fn on_look(&mut self, passed_to: &BTreeSet<u8>) -> Vec<u8> {
        for (table_id, it) in &mut self.by_table {
            it.unused = if passed_to.contains(table_id) { 0 } else { it.unused + 1 };
        }
        let gone: Vec<u8> =
            self.by_table.iter().filter(|(_, it)| it.unused >= LOOKS).map(|(table, _)| *table).collect();
        self.by_table.retain(|_, it| it.unused < LOOKS);
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_goes_when_nobody_passes_packets_on_to_its_table_for_two_looks() {
        let mut punts = LaterPunts::default();
        assert!(punts.add(1) && punts.add(3) && !punts.add(1));
        let used: BTreeSet<u8> = [1].into();
        assert!(punts.on_look(&used).is_empty());
        assert!(punts.on_look(&[1, 3].into()).is_empty(), "it was replaced");
        assert!(punts.on_look(&used).is_empty());
        assert_eq!(punts.on_look(&used), [3]);
        assert_eq!(punts.tables().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_rule_that_was_refused_with_the_meter_goes_without_once() {
        let mut punts = LaterPunts::default();
        assert!(!punts.on_meter_refused(1) && punts.add(1) && punts.may_have_meter(1));
        assert!(punts.on_meter_refused(1) && !punts.on_meter_refused(1) && !punts.may_have_meter(1));
    }
}
