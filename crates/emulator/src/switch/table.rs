//! One flow table: its entries in the order in which they are asked, and what they count.
//!
//! In: a packet's fields, or changes to the entries. Out: the entry that speaks of the packet, and the entries that went.
//! Never carries an entry out, and never says that it went: that is the switch's.

use flow::frame::FrameFields;
use flow::relation::{covers, overlaps};
use flow::{Action, Instruction, Match, MatchEntry, PortNo};
use openflow::Version;
use openflow::message::{FLOW_MOD_RESET_COUNTS, FLOW_MOD_SEND_FLOW_REMOVED, FlowMod, GROUP_ANY};
use std::sync::Arc;
use std::time::Duration;

/// One flow entry.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    pub(crate) priority: u16,
    pub(crate) matching: Match,
    pub(crate) cookie: u64,
    pub(crate) flags: u16,
    pub(crate) idle_timeout_s: u16,
    pub(crate) hard_timeout_s: u16,
    /// In the order in which they are carried out.
    pub(crate) instructions: Arc<[Instruction]>,
    pub(crate) added_at: Duration,
    pub(crate) used_at: Duration,
    pub(crate) packet_count: u64,
    pub(crate) byte_count: u64,
}

/// Why an entry went (OFPRR_).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    IdleTimeout = 0,
    HardTimeout = 1,
    Delete = 2,
    GroupDelete = 3,
}

impl FlowEntry {
    /// The entry that a flow mod asks for.
    pub(crate) fn new(wanted: &FlowMod, instructions: Arc<[Instruction]>, now: Duration) -> Self {
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
        }
    }

    /// Whether it is 1.3's table-miss entry: it speaks of every packet, and only if no other does (1.3.5, 5.4).
    pub(crate) fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.matching.is_any()
    }

    /// Whether the controller wants to know when it goes.
    pub(crate) fn tells_when_removed(&self) -> bool {
        self.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0
    }

    /// Every action that it names, in the instructions that carry actions.
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

    /// Whether it hands packets to a group.
    pub(crate) fn refers_to_group(&self, group: u32) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }

    /// When it is to go if no packet comes, if it is.
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

/// Which entries a modify, delete or statistics request means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) matching: &'a Match,
    /// `Some`: only the very entry of this priority and match.
    pub(crate) strict_priority: Option<u16>,
    pub(crate) cookie: u64,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: PortNo,
    pub(crate) out_group: u32,
}

impl Selection<'_> {
    fn means(&self, entry: &FlowEntry) -> bool {
        let by_match = match self.strict_priority {
            Some(priority) => entry.priority == priority && same(self.matching, &entry.matching),
            None => covers(self.matching, &entry.matching),
        };
        by_match
            && (entry.cookie ^ self.cookie) & self.cookie_mask == 0
            && entry.sends_to(self.out_port)
            && (self.out_group == GROUP_ANY || entry.refers_to_group(self.out_group))
    }
}

/// A flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTable {
    /// The highest priority first.
    entries: Vec<FlowEntry>,
    /// No entry goes by time before this, so that a tick without anything to do costs nothing.
    nothing_due_before: Option<Duration>,
    pub(crate) lookup_count: u64,
    pub(crate) matched_count: u64,
}

impl FlowTable {
    pub(crate) fn entries(&self) -> &[FlowEntry] {
        &self.entries
    }

    /// The entry that speaks of a packet with these fields, counted.
    pub(crate) fn hit(&mut self, fields: &FrameFields, bytes: usize, now: Duration) -> Option<&FlowEntry> {
        self.lookup_count += 1;
        let entry = self.entries.iter_mut().find(|entry| entry.matching.matches(fields))?;
        self.matched_count += 1;
        entry.packet_count += 1;
        entry.byte_count += bytes as u64;
        entry.used_at = now;
        Some(entry)
    }

    /// Whether an entry of this priority speaks of a packet that this match speaks of too.
    pub(crate) fn has_overlap(&self, priority: u16, matching: &Match) -> bool {
        self.entries.iter().any(|entry| entry.priority == priority && overlaps(&entry.matching, matching))
    }

    /// The entry of exactly this priority and match.
    pub(crate) fn position(&self, priority: u16, matching: &Match) -> Option<usize> {
        let first = self.entries.partition_point(|entry| entry.priority > priority);
        self.entries[first..]
            .iter()
            .take_while(|entry| entry.priority == priority)
            .position(|entry| same(&entry.matching, matching))
            .map(|offset| first + offset)
    }

    /// Adds an entry, or puts it where the same one was. 1.3 lets it go on counting from there unless it says otherwise
    /// (1.3.5, 6.4).
    pub(crate) fn add(&mut self, mut entry: FlowEntry, version: Version) {
        if let Some((deadline, _)) = entry.deadline() {
            self.look_at(deadline);
        }
        if let Some(position) = self.position(entry.priority, &entry.matching) {
            let there = &mut self.entries[position];
            if version != Version::V1_0 && entry.flags & FLOW_MOD_RESET_COUNTS == 0 {
                (entry.packet_count, entry.byte_count) = (there.packet_count, there.byte_count);
            }
            *there = entry;
            return;
        }
        let position = self.entries.partition_point(|there| there.priority >= entry.priority);
        self.entries.insert(position, entry);
    }

    fn look_at(&mut self, deadline: Duration) {
        self.nothing_due_before =
            Some(self.nothing_due_before.map_or(deadline, |before| before.min(deadline)));
    }

    /// Hands the entries that are meant to `change`, and says how many there were.
    pub(crate) fn modify(
        &mut self,
        selection: &Selection<'_>,
        mut change: impl FnMut(&mut FlowEntry),
    ) -> usize {
        self.entries.iter_mut().filter(|entry| selection.means(entry)).map(&mut change).count()
    }

    /// The entries that are meant.
    pub(crate) fn select<'a>(&'a self, selection: &'a Selection<'_>) -> impl Iterator<Item = &'a FlowEntry> {
        self.entries.iter().filter(|entry| selection.means(entry))
    }

    /// Takes out the entries that are meant.
    pub(crate) fn delete(&mut self, selection: &Selection<'_>) -> Vec<FlowEntry> {
        self.entries.extract_if(.., |entry| selection.means(entry)).collect()
    }

    /// Takes out the entries that hand packets to a group.
    pub(crate) fn delete_for_group(&mut self, group: u32) -> Vec<FlowEntry> {
        self.entries.extract_if(.., |entry| entry.refers_to_group(group)).collect()
    }

    /// Takes out the entries whose time is over.
    pub(crate) fn expire(&mut self, now: Duration) -> Vec<(FlowEntry, Reason)> {
        if self.nothing_due_before.is_none_or(|before| now < before) {
            return Vec::new();
        }
        let is_due = |entry: &FlowEntry| entry.deadline().filter(|(deadline, _)| *deadline <= now);
        let due = self.entries.extract_if(.., |entry| is_due(entry).is_some());
        let expired = due.filter_map(|entry| is_due(&entry).map(|(_, reason)| (entry, reason))).collect();
        self.nothing_due_before = self.entries.iter().filter_map(|entry| Some(entry.deadline()?.0)).min();
        expired
    }
}

/// Whether two matches are one and the same to a strict modify or delete: the same fields with the same values, in whatever
/// order and however a mask of all ones is written (1.3.5, 6.4).
fn same(one: &Match, two: &Match) -> bool {
    let has = |entry: &MatchEntry| match entry {
        MatchEntry::Field { field, .. } => one.get(*field) == two.get(*field),
        MatchEntry::Unknown { .. } => two.entries().contains(entry),
    };
    one.entries().len() == two.entries().len() && one.entries().iter().all(has)
}
