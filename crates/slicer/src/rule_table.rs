//! The rules of a tenant in one virtual switch, as the tenant wrote them, with the pieces in the physical switch.
//!
//! Each rule has a number, which is the cookie of all its pieces. So 64-bit cookies of tenants need no room in the switch.
//!
//! In: rules, selections, packets. Out: rules. It sends nothing, and decides nothing about a flowspace. The caller bounds how many there
//! are.

use crate::marks::Marks;
use flow::canonical::{match_len, write_match};
use flow::frame::FrameFields;
use flow::relation::{covers, overlaps};
use flow::{Action, Instruction, Match, MatchEntry, PortNo};
use foldhash::fast::RandomState;
use openflow::Version;
use openflow::message::{Bucket, FLOW_MOD_SEND_FLOW_REMOVED, GROUP_ANY, MeterBand};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How far the priorities of a tenant are raised. Below them are the kernel's rule, which sends misses to the controller with priority
/// 0, and the floor of the slice with priority 1.
pub(crate) const RAISED_BY: u16 = 2;

/// The highest priority of a slice's rules in the physical switch. Above it are the node's own rules, as those that bring probes for links up.
pub const PRIORITY_MAX: u16 = 65_000;

/// From this priority on, two priorities of a tenant are one in the physical switch: 64,461 and 64,462, and so on. 65,535 is alone.
const SHARED_FROM: u16 = 64_461;

/// The priority in the physical switch.
pub(crate) fn physical_priority(priority: u16) -> u16 {
    match priority.checked_sub(SHARED_FROM) {
        None => priority + RAISED_BY,
        Some(above) => SHARED_FROM + RAISED_BY + above / 2,
    }
}

/// The other priority of a tenant that is the same one in the physical switch.
pub(crate) fn twin_of(priority: u16) -> Option<u16> {
    SHARED_FROM.checked_add(priority.checked_sub(SHARED_FROM)? ^ 1)
}

/// A group of the tenant.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its number in the physical switch.
    pub(crate) physical: u32,
    pub(crate) group_type: u8,
    /// Its buckets, as the tenant wrote them.
    pub(crate) buckets: Vec<Bucket>,
    /// How many buckets each of them is in the physical switch.
    pub(crate) spread: Vec<usize>,
    /// How often it was modified.
    pub(crate) modified: u32,
}

/// A meter of the tenant.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Its number in the physical switch.
    pub(crate) physical: u32,
    pub(crate) flags: u16,
    pub(crate) bands: Vec<MeterBand>,
    /// How often it was modified.
    pub(crate) modified: u32,
}

/// A part of a rule in the physical switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RulePiece {
    /// Its match.
    pub(crate) matching: Match,
    /// Its place in the physical switch: the priority there, and the match.
    pub(crate) place: Place,
    /// Its instructions.
    pub(crate) instructions: Vec<Instruction>,
    /// Since when the switch has it. After an idle time-out it is put back while other pieces of the rule are used.
    pub(crate) idle: Idle,
}

impl RulePiece {
    /// Whether it has this match, in one form.
    pub(crate) fn has_match(&self, key: &[u8]) -> bool {
        self.place.get(PRIORITY_LEN..) == Some(key)
    }
}

/// What is known of a piece's last packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// It may have had packets.
    Unknown,
    /// It had none for an idle time-out, and was put back then.
    PutBack {
        /// The time.
        at_ms: u64,
    },
    /// It was put back, and is deleted to learn whether it had packets since.
    Asked,
    /// It is no longer in the switch.
    Gone,
    /// The tenant has closed its port, so it is not in the switch. It counts, because the port can be opened again.
    Closed,
}

impl Idle {
    /// Whether the piece is in the switch, or is being deleted there.
    pub(crate) fn is_in_switch(self) -> bool {
        !matches!(self, Idle::Gone | Idle::Closed)
    }
}

/// A rule of the tenant.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Its number.
    pub(crate) number: u64,
    /// Its priority. An exact match of 1.0 has the highest one.
    pub(crate) priority: u16,
    pub(crate) matching: Match,
    pub(crate) cookie: u64,
    pub(crate) idle_timeout_s: u16,
    pub(crate) hard_timeout_s: u16,
    pub(crate) flags: u16,
    pub(crate) instructions: Vec<Instruction>,
    /// The version in which the tenant wrote the instructions.
    pub(crate) by: Version,
    pub(crate) pieces: Vec<RulePiece>,
    /// When it was added.
    pub(crate) at_ms: u64,
    /// Packets and bytes of pieces that are gone.
    pub(crate) gone: (u64, u64),
    /// How often it was modified.
    pub(crate) modified: u32,
}

/// What a modify changed, to be restored if the switch refuses it.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) by: Version,
    pub(crate) cookie: u64,
}

impl Rule {
    /// All its actions, as the tenant wrote them.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        actions_of(&self.instructions)
    }

    fn sends_to(&self, port: PortNo) -> bool {
        let sends = |action: &Action| match action {
            Action::Output { port: to, .. } | Action::Enqueue { port: to, .. } => *to == port,
            _ => false,
        };
        port == PortNo::ANY || self.actions().any(sends)
    }

    /// Whether it sends packets to a group.
    pub(crate) fn refers_to(&self, group: u32) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }

    /// Whether it sends packets through a meter.
    pub(crate) fn uses_meter(&self, meter: u32) -> bool {
        self.instructions.contains(&Instruction::Meter(meter))
    }

    /// Whether the tenant asked for a flow removed.
    pub(crate) fn tells_its_end(&self) -> bool {
        self.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0
    }

    /// Whether it is a table-miss rule of 1.3 (1.3.5, 5.4).
    pub(crate) fn is_table_miss(&self) -> bool {
        self.by != Version::V1_0 && self.priority == 0 && self.matching.is_any()
    }
}

/// How much of the limit for rules a rule with these pieces takes.
pub(crate) fn weight(pieces: &[RulePiece]) -> usize {
    pieces.len().max(1)
}

/// All actions in instructions.
pub(crate) fn actions_of(instructions: &[Instruction]) -> impl Iterator<Item = &Action> {
    instructions.iter().flat_map(|instruction| match instruction {
        Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => actions.as_slice(),
        _ => &[],
    })
}

/// Which rules a modify, a delete or a statistics request means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) matching: &'a Match,
    /// `Some`: only the rule of exactly this priority and match.
    pub(crate) strict: Option<u16>,
    pub(crate) cookie: u64,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: PortNo,
    pub(crate) out_group: u32,
}

impl Selection<'_> {
    /// Whether it means all rules, whatever their cookies and actions.
    pub(crate) fn means_all(&self) -> bool {
        self.matching.is_any()
            && self.strict.is_none()
            && self.cookie_mask == 0
            && self.out_port == PortNo::ANY
            && self.out_group == GROUP_ANY
    }

    fn means(&self, rule: &Rule) -> bool {
        (rule.cookie ^ self.cookie) & self.cookie_mask == 0
            && rule.sends_to(self.out_port)
            && (self.out_group == GROUP_ANY || rule.refers_to(self.out_group))
    }
}

/// A priority, and a match in one form, as bytes: what no two rules of a table share.
pub(crate) type Key = Box<[u8]>;

/// The same for a piece in the physical switch.
pub(crate) type Place = Arc<[u8]>;

/// The bytes of the priority in a [`Key`].
const PRIORITY_LEN: usize = size_of::<u16>();

/// The rules of a virtual switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleTable {
    /// By number. Boxed, because a flow mod that comes again gives its rule another number.
    rules: BTreeMap<u64, Box<Rule>>,
    /// Tenants choose the keys, so the hash has a seed.
    numbers: HashMap<Key, u64, RandomState>,
    /// The numbers of all rules by priority.
    order: BTreeSet<(u16, u64)>,
    /// The rules by the places of their pieces in the physical switch, also of closed ports.
    places: HashMap<Place, u64, RandomState>,
    /// Rules without a piece: those for packets that the slice never has.
    bare: BTreeSet<u64>,
    /// Rules that may have changed since they were last taken: at most those that one event changes, each perhaps several times.
    touched: Vec<u64>,
    /// Rules that are not in the journal as they are.
    pub(crate) unsaved: Marks<u64>,
    last_number: u64,
}

impl RuleTable {
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    /// All pieces of all rules, also those of closed ports.
    pub(crate) fn pieces(&self) -> usize {
        self.places.len()
    }

    /// How much of the limit for rules they take: the pieces, and one for each rule without any.
    pub(crate) fn taken(&self) -> usize {
        self.places.len() + self.bare.len()
    }

    /// The rules without a piece. No switch ends them.
    pub(crate) fn bare(&self) -> impl Iterator<Item = &Rule> {
        self.bare.iter().filter_map(|number| self.get(*number))
    }

    /// The number of the rule that has a piece at this place.
    pub(crate) fn at(&self, place: &[u8]) -> Option<u64> {
        self.places.get(place).copied()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Rule> {
        self.rules.get(&number).map(Box::as_ref)
    }

    /// Changes a rule. Its priority, its match and those of its pieces stay.
    pub(crate) fn change<T>(&mut self, number: u64, change: impl FnOnce(&mut Rule) -> T) -> Option<T> {
        self.unsaved.note(number);
        self.change_pieces(number, change)
    }

    /// The same for what is known of its pieces, which no journal has.
    pub(crate) fn change_pieces<T>(&mut self, number: u64, change: impl FnOnce(&mut Rule) -> T) -> Option<T> {
        self.touched.push(number);
        self.rules.get_mut(&number).map(|rule| change(rule))
    }

    /// The numbers of the rules that may have changed, or are gone, since the last call: each once, in order.
    pub(crate) fn take_touched(&mut self) -> Vec<u64> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Nobody wants to know which rules changed.
    pub(crate) fn forget_touched(&mut self) {
        self.touched.clear();
    }

    /// Rules that send to a group do something else now.
    pub(crate) fn touch_group(&mut self, group: u32) {
        let rules = self.rules.values().filter(|rule| rule.refers_to(group));
        self.touched.extend(rules.map(|rule| rule.number));
    }

    /// Gives a rule other pieces. Their places are free, or its own.
    pub(crate) fn lay(&mut self, number: u64, pieces: Vec<RulePiece>) {
        let Some(rule) = self.rules.get_mut(&number) else { return };
        self.touched.push(number);
        for piece in std::mem::replace(&mut rule.pieces, pieces) {
            self.places.remove(&piece.place);
        }
        for piece in &rule.pieces {
            self.places.insert(piece.place.clone(), number);
        }
        if rule.pieces.is_empty() {
            self.bare.insert(number)
        } else {
            self.bare.remove(&number)
        };
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values().map(Box::as_ref)
    }

    /// The next rule has this number, or the next ones if it was given already.
    pub(crate) fn number_from(&mut self, first: u64) {
        self.last_number = self.last_number.max(first.saturating_sub(1));
    }

    /// The number of the next rule. 0 is none.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The rule of this priority and match.
    pub(crate) fn find(&self, priority: u16, matching: &Match) -> Option<&Rule> {
        self.find_key(&key_of(priority, matching))
    }

    /// The rule of this key.
    pub(crate) fn find_key(&self, key: &[u8]) -> Option<&Rule> {
        self.get(*self.numbers.get(key)?)
    }

    /// Adds a rule under its key. Returns the one that it replaces. The places of its pieces are free, or those of the replaced rule.
    pub(crate) fn insert(&mut self, key: Key, rule: Rule) -> Option<Box<Rule>> {
        let replaced = self.numbers.insert(key, rule.number).and_then(|number| self.take(number));
        for piece in &rule.pieces {
            self.places.insert(piece.place.clone(), rule.number);
        }
        if rule.pieces.is_empty() {
            self.bare.insert(rule.number);
        }
        self.note(rule.number);
        self.order.insert((rule.priority, rule.number));
        self.rules.insert(rule.number, Box::new(rule));
        replaced
    }

    /// Gives the rule of this key another number, as if it were replaced by one with the same pieces. Its number is the cookie of its
    /// pieces, so what the switch still says about the earlier ones is not taken for news of these.
    pub(crate) fn renumber(&mut self, key: &[u8], number: u64) -> Option<&mut Rule> {
        let before = std::mem::replace(self.numbers.get_mut(key)?, number);
        let mut rule = self.rules.remove(&before)?;
        rule.number = number;
        for piece in &rule.pieces {
            if let Some(owner) = self.places.get_mut(&piece.place) {
                *owner = number;
            }
        }
        if rule.pieces.is_empty() {
            self.bare.remove(&before);
            self.bare.insert(number);
        }
        self.order.remove(&(rule.priority, before));
        self.order.insert((rule.priority, number));
        self.note(before);
        self.note(number);
        Some(self.rules.entry(number).or_insert(rule))
    }

    fn note(&mut self, number: u64) {
        self.touched.push(number);
        self.unsaved.note(number);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<Rule>> {
        let rule = self.take(number)?;
        self.numbers.remove(&key_of(rule.priority, &rule.matching));
        Some(rule)
    }

    /// Takes a rule out, but for its number by match.
    fn take(&mut self, number: u64) -> Option<Box<Rule>> {
        let rule = self.rules.remove(&number)?;
        self.bare.remove(&number);
        self.order.remove(&(rule.priority, number));
        self.note(number);
        for piece in &rule.pieces {
            self.places.remove(&piece.place);
        }
        Some(rule)
    }

    /// The numbers of the rules that a selection means.
    pub(crate) fn select(&self, wanted: &Selection<'_>) -> Vec<u64> {
        match wanted.strict {
            Some(priority) => {
                let found = self.find(priority, wanted.matching).filter(|rule| wanted.means(rule));
                found.map(|rule| rule.number).into_iter().collect()
            }
            None => {
                let within = |rule: &&Rule| wanted.means(rule) && covers(wanted.matching, &rule.matching);
                self.iter().filter(within).map(|rule| rule.number).collect()
            }
        }
    }

    /// Another rule of this priority that matches a packet which this match does.
    pub(crate) fn overlapping(&self, priority: u16, matching: &Match) -> Option<&Rule> {
        let same = self.order.range((priority, 0)..=(priority, u64::MAX));
        let mut others = same.filter_map(|(_, number)| self.get(*number));
        let own = match_key(matching);
        others.find(|rule| overlaps(&rule.matching, matching) && match_key(&rule.matching) != own)
    }

    /// The rule that a packet hits, by its fields as the tenant sees them.
    pub(crate) fn hit(&self, fields: &FrameFields) -> Option<&Rule> {
        let mut by_priority = self.order.iter().rev().filter_map(|(_, number)| self.get(*number));
        by_priority.find(|rule| rule.matching.matches(fields))
    }
}

/// The key of a rule, and of a piece with its priority in the physical switch.
pub(crate) fn key_of(priority: u16, matching: &Match) -> Key {
    let mut bytes = Vec::with_capacity(PRIORITY_LEN + match_len(matching));
    bytes.extend_from_slice(&priority.to_be_bytes());
    write_key(matching, &mut bytes);
    bytes.into()
}

/// A match in one form: sorted, without masks of all ones or zeros.
pub(crate) fn match_key(matching: &Match) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_key(matching, &mut bytes);
    bytes
}

fn write_key(matching: &Match, bytes: &mut Vec<u8>) {
    if is_plain(matching) {
        // Most are, and so is each piece.
        return write_match(matching, bytes);
    }
    let mut plain = Match::any();
    for entry in matching.entries() {
        match entry {
            MatchEntry::Field { mask: Some(0), .. } => {}
            MatchEntry::Field { field, value, mask: Some(mask) } if *mask == field.full_mask() => {
                plain.set(*field, *value);
            }
            other => plain.put(other.clone()),
        }
    }
    write_match(&plain.sorted(), bytes);
}

/// Whether a match is in that form already.
fn is_plain(matching: &Match) -> bool {
    let mut last = None;
    matching.entries().iter().all(|entry| match entry {
        MatchEntry::Field { field, mask, .. } => {
            let is_next = last.replace(field.number()).is_none_or(|before| before < field.number());
            is_next && mask.is_none_or(|mask| mask != 0 && mask != field.full_mask())
        }
        MatchEntry::Unknown { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(priority: u16, expected: u16, twin: Option<u16>) {
        assert_eq!((physical_priority(priority), twin_of(priority)), (expected, twin), "{priority}");
    }

    #[test]
    fn only_two_of_the_highest_priorities_share_one() {
        check(0, 2, None);
        check(SHARED_FROM - 1, 64_462, None);
        check(SHARED_FROM, 64_463, Some(64_462));
        check(64_462, 64_463, Some(SHARED_FROM));
        check(65_000, 64_732, Some(64_999));
        check(65_533, 64_999, Some(65_534));
        check(65_534, 64_999, Some(65_533));
        check(65_535, PRIORITY_MAX, None);
    }

    #[test]
    fn the_order_of_priorities_stays() {
        for priority in 1..=u16::MAX {
            let (below, here) = (physical_priority(priority - 1), physical_priority(priority));
            let is_twin = twin_of(priority) == Some(priority - 1);
            assert!(below < here && !is_twin || below == here && is_twin, "{priority}");
        }
    }
}
