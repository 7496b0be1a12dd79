//! Rules, groups and meters that an earlier run of the slice left in the physical switch.
//!
//! The process of a slice can end, and its rules go on to forward. The next process does not know them. It asks the physical switch for
//! rules whose numbers are lower than its own. When the tenant deletes all rules, it deletes these too; otherwise old rules would hide what
//! the tenant adds. A group or meter of that time is deleted when its number is used again, and the switch says that it exists.
//!
//! In: the physical switch's rules. Out: those of earlier runs. The file `cleaning` deletes them.

use crate::floor::FLOOR_COOKIE;
use crate::rule_table::{Key, key_of};
use abi::zone_id::COOKIE_MASK;
use flow::Match;
use openflow::message::{FlowRemoved, FlowStats};
use std::collections::{BTreeMap, BTreeSet};

/// The most rules that are remembered. Further ones stay in the switch until they time out.
const LEFTOVERS_MAX: usize = 16_384;

/// What is known of an earlier run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leftovers {
    /// The first number of this run. 0: there was no earlier one.
    first_number: u64,
    known: Known,
    /// The rules by their places, with their priorities and matches.
    rules: BTreeMap<Key, (u16, Match)>,
    /// The tenant has deleted all rules since this run began, and the answer was not there yet.
    is_unwanted: bool,
    /// Numbers of groups and meters that this run has, or has made room for.
    groups: BTreeSet<u32>,
    meters: BTreeSet<u32>,
}

/// Whether the physical switch has said which rules there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    No,
    Asked,
    Yes,
}

impl Leftovers {
    /// Rules below this number are those of earlier runs.
    pub(crate) fn number_from(&mut self, first: u64) {
        self.first_number = first;
    }

    /// An earlier run had rules with numbers up to this one.
    pub(crate) fn have_been(&mut self, highest: u64) {
        self.first_number = self.first_number.max(highest.saturating_add(1));
    }

    /// Whether the physical switch is to be asked. It is asked once.
    pub(crate) fn ask(&mut self) -> bool {
        let is_due = self.first_number > 0 && self.known == Known::No;
        if is_due {
            self.known = Known::Asked;
        }
        is_due
    }

    /// Whether all is known that the physical switch says, or there was no earlier run.
    pub(crate) fn are_known(&self) -> bool {
        self.first_number == 0 || self.known == Known::Yes
    }

    /// All is known that the physical switch says. Returns whether the tenant has deleted all rules since.
    pub(crate) fn know(&mut self) -> bool {
        self.known = Known::Yes;
        self.is_unwanted
    }

    /// The tenant deletes all rules. Returns those that are known.
    pub(crate) fn take(&mut self) -> BTreeMap<Key, (u16, Match)> {
        self.is_unwanted = self.known != Known::Yes;
        std::mem::take(&mut self.rules)
    }

    /// The session with the physical switch ended: an answer that was on its way does not come.
    pub(crate) fn on_switch_down(&mut self) {
        if self.known == Known::Asked {
            self.known = Known::No;
        }
    }

    /// Whether a group of this number may be an earlier run's. It is asked once for each number.
    pub(crate) fn may_have_group(&mut self, group: u32) -> bool {
        self.first_number > 0 && self.groups.insert(group)
    }

    /// The same for meters.
    pub(crate) fn may_have_meter(&mut self, meter: u32) -> bool {
        self.first_number > 0 && self.meters.insert(meter)
    }

    pub(crate) fn hear(&mut self, entry: &FlowStats) {
        let number = entry.cookie & COOKIE_MASK;
        let is_old = number != FLOOR_COOKIE && number < self.first_number;
        // Each piece of a slice says at least its port or its packets. Without a match, the entry could not be read.
        if is_old && !entry.matching.is_any() && self.rules.len() < LEFTOVERS_MAX {
            let place = key_of(entry.priority, &entry.matching);
            self.rules.insert(place, (entry.priority, entry.matching.clone()));
        }
    }

    /// A rule of an earlier run has ended.
    pub(crate) fn on_removed(&mut self, removed: &FlowRemoved) {
        if removed.cookie < self.first_number {
            self.rules.remove(&key_of(removed.priority, &removed.matching));
        }
    }
}
