//! One flow table: its entries, their time-outs and their counters.
//!
//! In: a packet's key, or changes to the entries. Out: the entry that matches the packet, and the removed entries. It
//! never carries an entry out, and never reports a removal: the switch does that.
//!
//! Finding, adding and deleting one entry, and a clock tick, take the same time for any number of entries. A
//! non-strict modify, delete or request visits every entry.

use flow::relation::{covers, overlaps};
use flow::{Action, Instruction, Match, PortNo};
use openflow::Version;
use openflow::message::{
    FLOW_DELETE_STRICT, FLOW_MOD_RESET_COUNTS, FLOW_MOD_SEND_FLOW_REMOVED, FLOW_MODIFY_STRICT, FlowMod,
    FlowStatsRequest, GROUP_ANY,
};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use super::classifier::Classifier;
use super::flow_key::{FlowKey, MaskedKey};
use super::instructions::Instructions;

/// One flow entry.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    pub(crate) priority: u16,
    pub(crate) matching: Match,
    pub(crate) cookie: u64,
    pub(crate) flags: u16,
    pub(crate) idle_timeout_s: u16,
    pub(crate) hard_timeout_s: u16,
    pub(crate) instructions: Instructions,
    pub(crate) added_at: Duration,
    pub(crate) used_at: Duration,
    pub(crate) packet_count: u64,
    pub(crate) byte_count: u64,
    /// Which counters these are. After a reset they are others.
    pub(crate) counters: u64,
    /// Whether packets meet it in software. Only in the data plane of a switch that plays a profile.
    pub(crate) in_software: bool,
}

/// Why an entry was removed (OFPRR_).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    IdleTimeout = 0,
    HardTimeout = 1,
    Delete = 2,
    GroupDelete = 3,
}

impl FlowEntry {
    /// The entry that a flow mod adds.
    pub(crate) fn new(wanted: &FlowMod, instructions: Instructions, now: Duration) -> Self {
        FlowEntry {
            priority: wanted.priority,
            matching: wanted.matching.clone(),
            cookie: wanted.cookie,
            flags: wanted.flags,
            idle_timeout_s: wanted.idle_timeout_s,
            hard_timeout_s: wanted.hard_timeout_s,
            instructions,
            added_at: now,
            used_at: now,
            packet_count: 0,
            byte_count: 0,
            counters: 0,
            in_software: false,
        }
    }

    /// Counts from zero again.
    pub(crate) fn reset_counters(&mut self) {
        (self.packet_count, self.byte_count) = (0, 0);
        self.counters += 1;
    }

    /// Takes over the counters of another entry.
    pub(crate) fn take_counters_of(&mut self, other: &FlowEntry) {
        (self.packet_count, self.byte_count) = (other.packet_count, other.byte_count);
        self.used_at = other.used_at;
    }

    /// A copy with the counters of another entry.
    pub(crate) fn with_counters_of(&self, other: &FlowEntry) -> FlowEntry {
        let mut counted = self.clone();
        counted.take_counters_of(other);
        counted
    }

    /// Whether it is 1.3's table-miss entry: it has priority 0 and matches every packet (1.3.5, 5.4).
    pub(crate) fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.matching.is_any()
    }

    /// Whether the controller wants a flow removed for it.
    pub(crate) fn tells_when_removed(&self) -> bool {
        self.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0
    }

    /// All actions in its instructions.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.instructions.iter().flat_map(|instruction| match instruction {
            Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => actions.as_slice(),
            _ => &[],
        })
    }

    fn sends_to(&self, port: PortNo) -> bool {
        port == PortNo::ANY
            || self.actions().any(|action| match action {
                Action::Output { port: to, .. } | Action::Enqueue { port: to, .. } => *to == port,
                _ => false,
            })
    }

    /// Whether it sends packets to a group.
    pub(crate) fn refers_to_group(&self, group: u32) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }

    /// Whether it sends packets through a meter.
    pub(crate) fn refers_to_meter(&self, meter: u32) -> bool {
        self.instructions.contains(&Instruction::Meter(meter))
    }

    /// When it expires without a further packet, and why. `None` if it has no time-out.
    fn deadline(&self) -> Option<(Duration, Reason)> {
        let after = |start: Duration, seconds: u16, reason| {
            (seconds > 0).then(|| (start + Duration::from_secs(seconds.into()), reason))
        };
        let hard = after(self.added_at, self.hard_timeout_s, Reason::HardTimeout);
        let idle = after(self.used_at, self.idle_timeout_s, Reason::IdleTimeout);
        match (hard, idle) {
            (Some(hard), Some(idle)) => Some(if idle.0 < hard.0 { idle } else { hard }),
            (hard, idle) => hard.or(idle),
        }
    }
}

/// Which entries a modify, delete or statistics request selects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) matching: &'a Match,
    /// `Some`: only the entry of exactly this priority and match.
    pub(crate) strict_priority: Option<u16>,
    pub(crate) cookie: u64,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: PortNo,
    pub(crate) out_group: u32,
}

impl<'a> Selection<'a> {
    /// The rules that a request for statistics selects.
    pub(crate) fn of_request(wanted: &'a FlowStatsRequest) -> Self {
        Selection {
            matching: &wanted.matching,
            strict_priority: None,
            cookie: wanted.cookie,
            cookie_mask: wanted.cookie_mask,
            out_port: wanted.out_port,
            out_group: wanted.out_group,
        }
    }

    /// The rules to which a modify or delete applies.
    pub(crate) fn of_flow_mod(wanted: &'a FlowMod) -> Self {
        let strict = matches!(wanted.command, FLOW_MODIFY_STRICT | FLOW_DELETE_STRICT);
        Selection {
            matching: &wanted.matching,
            strict_priority: strict.then_some(wanted.priority),
            cookie: wanted.cookie,
            cookie_mask: wanted.cookie_mask,
            out_port: wanted.out_port,
            out_group: wanted.out_group,
        }
    }

    /// Whether it selects an entry whose match is within the request's.
    fn allows(&self, entry: &FlowEntry) -> bool {
        (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && entry.sends_to(self.out_port)
            && (self.out_group == GROUP_ANY || entry.refers_to_group(self.out_group))
    }
}

/// An entry in its slot.
#[derive(Clone, Debug)]
struct Filed {
    entry: FlowEntry,
    /// Increases from entry to entry of a table.
    number: u64,
    /// When its time-outs are checked next, as in [`FlowTable::due`].
    due: Option<Duration>,
}

/// A flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTable {
    slots: Vec<Option<Filed>>,
    /// Slots without an entry.
    free: Vec<u32>,
    classifier: Classifier,
    /// No entry expires before its time here. If it was used in the meantime, it gets a later time.
    due: BTreeSet<(Duration, u32)>,
    added: u64,
    pub(crate) lookup_count: u64,
    pub(crate) matched_count: u64,
}

impl FlowTable {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The entries, in no particular order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &FlowEntry> {
        self.slots.iter().flatten().map(|filed| &filed.entry)
    }

    /// The classifier of the entries' matches.
    pub(crate) fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// The entry in this slot.
    pub(crate) fn entry(&self, slot: u32) -> Option<&FlowEntry> {
        Some(&self.slots.get(slot as usize)?.as_ref()?.entry)
    }

    /// The slot of the entry that matches a packet. Counts nothing.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<u32> {
        self.classifier.find(key)
    }

    /// Counts a packet for the entry in this slot, and returns the entry.
    pub(crate) fn hit(&mut self, slot: u32, bytes: usize, now: Duration) -> Option<&FlowEntry> {
        let entry = &mut self.slots.get_mut(slot as usize)?.as_mut()?.entry;
        self.lookup_count += 1;
        self.matched_count += 1;
        entry.packet_count += 1;
        entry.byte_count += bytes as u64;
        entry.used_at = now;
        Some(entry)
    }

    /// Whether an entry of this priority overlaps with this match.
    pub(crate) fn has_overlap(&self, priority: u16, matching: &Match) -> bool {
        let Some(key) = FlowKey::of_match(matching) else { return false };
        let mut near = self.classifier.near(&key, priority).filter_map(|slot| self.entry(slot));
        near.any(|entry| overlaps(&entry.matching, matching))
    }

    /// Whether there is an entry of exactly this priority and match.
    pub(crate) fn holds(&self, priority: u16, matching: &Match) -> bool {
        self.exactly(priority, matching).is_some()
    }

    /// Two matches are the same if they name the same bits of the same fields. The order of fields and the form of a
    /// mask do not matter (1.3.5, 6.4).
    pub(crate) fn exactly(&self, priority: u16, matching: &Match) -> Option<u32> {
        self.classifier.exactly(&FlowKey::of_match(matching)?, priority)
    }

    /// The entry of exactly this priority and match.
    pub(crate) fn entry_of(&self, priority: u16, matching: &Match) -> Option<&FlowEntry> {
        self.entry(self.exactly(priority, matching)?)
    }

    /// The same, to change its counters.
    pub(crate) fn entry_of_mut(&mut self, priority: u16, matching: &Match) -> Option<&mut FlowEntry> {
        let slot = self.exactly(priority, matching)?;
        Some(&mut self.slots.get_mut(slot as usize)?.as_mut()?.entry)
    }

    /// Removes and returns the entry of exactly this priority and match.
    pub(crate) fn remove(&mut self, priority: u16, matching: &Match) -> Option<FlowEntry> {
        self.take(self.exactly(priority, matching)?)
    }

    /// Stores an entry as it is, with its counters. It replaces the one with the same identity.
    pub(crate) fn put(&mut self, entry: FlowEntry) {
        let Some(key) = FlowKey::of_match(&entry.matching) else { return };
        match self.entry_of_mut(entry.priority, &entry.matching) {
            Some(there) => *there = entry,
            None => self.file(entry, key),
        }
    }

    /// Adds an entry, or replaces the one with the same identity. In 1.3 the counters of the old one go on, unless
    /// the flow mod resets them (1.3.5, 6.4). An entry that no packet can match is not stored.
    pub(crate) fn add(&mut self, mut entry: FlowEntry, version: Version) {
        let Some(key) = FlowKey::of_match(&entry.matching) else { return };
        if let Some(slot) = self.classifier.exactly(&key, entry.priority)
            && let Some(there) = self.slots.get_mut(slot as usize).and_then(Option::as_mut)
        {
            if version != Version::V1_0 && entry.flags & FLOW_MOD_RESET_COUNTS == 0 {
                (entry.packet_count, entry.byte_count) = (there.entry.packet_count, there.entry.byte_count);
                entry.counters = there.entry.counters;
            } else {
                entry.counters = there.entry.counters + 1;
            }
            there.entry = entry;
            self.look_again(slot);
            return;
        }
        // Each entry has room for so many resets.
        entry.counters = self.added << 20;
        self.file(entry, key);
    }

    fn file(&mut self, entry: FlowEntry, key: MaskedKey) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // The bound of a table has 32 bits.
            (self.slots.len() - 1) as u32
        });
        self.classifier.insert(key, entry.priority, slot);
        self.added += 1;
        self.slots[slot as usize] = Some(Filed { entry, number: self.added, due: None });
        self.look_again(slot);
    }

    /// Sets when the time-outs of the entry in this slot are checked next.
    fn look_again(&mut self, slot: u32) {
        let Some(filed) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        let due = filed.entry.deadline().map(|(deadline, _)| deadline);
        if let Some(before) = std::mem::replace(&mut filed.due, due) {
            self.due.remove(&(before, slot));
        }
        self.due.extend(due.map(|due| (due, slot)));
    }

    /// Removes and returns the entry in this slot.
    pub(crate) fn take(&mut self, slot: u32) -> Option<FlowEntry> {
        let Filed { entry, due, .. } = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        if let Some(due) = due {
            self.due.remove(&(due, slot));
        }
        if let Some(key) = FlowKey::of_match(&entry.matching) {
            self.classifier.remove(&key, entry.priority);
        }
        if self.len() == 0 {
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
        Some(entry)
    }

    /// The slots of the selected entries: the highest priority first, and the oldest first within a priority.
    fn slots_of(&self, selection: &Selection<'_>) -> Vec<u32> {
        if let Some(priority) = selection.strict_priority {
            let slot = self.exactly(priority, selection.matching);
            let meant = |slot: &u32| self.entry(*slot).is_some_and(|entry| selection.allows(entry));
            return slot.filter(meant).into_iter().collect();
        }
        self.slots_where(|entry| covers(selection.matching, &entry.matching) && selection.allows(entry))
    }

    fn slots_where(&self, wanted: impl Fn(&FlowEntry) -> bool) -> Vec<u32> {
        let filed = (0..).zip(&self.slots).filter_map(|(slot, filed)| Some((slot, filed.as_ref()?)));
        let mut found: Vec<(Reverse<u16>, u64, u32)> = filed
            .filter(|(_, filed)| wanted(&filed.entry))
            .map(|(slot, filed)| (Reverse(filed.entry.priority), filed.number, slot))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, slot)| slot).collect()
    }

    /// Calls `change` for the selected entries, and returns their number.
    pub(crate) fn modify(&mut self, selection: &Selection<'_>, change: impl Fn(&mut FlowEntry)) -> usize {
        let meant = self.slots_of(selection);
        for slot in &meant {
            if let Some(filed) = &mut self.slots[*slot as usize] {
                change(&mut filed.entry);
            }
        }
        meant.len()
    }

    /// The selected entries, the highest priority first.
    pub(crate) fn select(&self, selection: &Selection<'_>) -> impl Iterator<Item = &FlowEntry> {
        self.slots_of(selection).into_iter().filter_map(|slot| self.entry(slot))
    }

    /// Removes and returns the selected entries.
    pub(crate) fn delete(&mut self, selection: &Selection<'_>) -> Vec<FlowEntry> {
        self.slots_of(selection).into_iter().filter_map(|slot| self.take(slot)).collect()
    }

    /// Removes and returns the entries that send packets to a group.
    pub(crate) fn delete_for_group(&mut self, group: u32) -> Vec<FlowEntry> {
        let meant = self.slots_where(|entry| entry.refers_to_group(group));
        meant.into_iter().filter_map(|slot| self.take(slot)).collect()
    }

    /// Removes and returns the entries that send packets through a meter.
    pub(crate) fn delete_for_meter(&mut self, meter: u32) -> Vec<FlowEntry> {
        let meant = self.slots_where(|entry| entry.refers_to_meter(meter));
        meant.into_iter().filter_map(|slot| self.take(slot)).collect()
    }

    /// The earliest time at which an entry may expire, if any can.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Whether any entry may have expired.
    pub(crate) fn has_due(&self, now: Duration) -> bool {
        self.due.first().is_some_and(|(due, _)| *due <= now)
    }

    /// Removes and returns the expired entries, with the reason.
    pub(crate) fn expire(&mut self, now: Duration) -> Vec<(FlowEntry, Reason)> {
        let mut expired = Vec::new();
        while let Some((due, slot)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            let over =
                self.entry(slot).and_then(FlowEntry::deadline).filter(|(deadline, _)| *deadline <= now);
            match over {
                Some((_, reason)) => expired.extend(self.take(slot).map(|entry| (entry, reason))),
                // A packet has used it in the meantime.
                None => self.look_again(slot),
            }
            self.due.remove(&(due, slot));
        }
        expired
    }
}
