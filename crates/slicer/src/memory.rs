//! What a virtual switch keeps over a restart of its process: the tenant's rules, groups, meters, closed ports, and the generation id.
//!
//! ```text
//!   changes of the tenant ──> marks ──> write_journal ──> frames of the journal          (a file, which the caller writes)
//!   the journal ──> recall ──> rules without pieces ──> `recalling`, when the switch connects
//! ```
//!
//! In: the state of a virtual switch, or a journal. Out: the other of the two. It sends nothing, and opens no file.

use crate::journal::{self, FrameWriter, KeptNumbers, KeptRule, Record};
use crate::output::ADD;
use crate::recall::Recall;
use crate::rule_table::{Group, Meter, Rule, key_of};
use crate::virtual_switch::VirtualSwitch;
use abi::zone_id::COOKIE_MASK;
use flow::PortNo;
use openflow::message::{GroupMod, MeterMod};
use std::collections::{BTreeMap, BTreeSet};

/// What a journal says in the end.
#[derive(Default)]
struct Kept {
    rules: BTreeMap<u64, KeptRule>,
    groups: BTreeMap<u32, (u32, GroupMod)>,
    meters: BTreeMap<u32, (u32, MeterMod)>,
    ports: BTreeMap<u32, u32>,
    generation: Option<u64>,
    checksum: Option<u32>,
}

impl Kept {
    fn take(&mut self, record: Record) {
        match record {
            Record::Rule(it) => drop(self.rules.insert(it.numbers.number, *it)),
            Record::NoRule(number) => drop(self.rules.remove(&number)),
            Record::Group(physical, it) => drop(self.groups.insert(it.group_id, (physical, it))),
            Record::NoGroup(id) => drop(self.groups.remove(&id)),
            Record::Meter(physical, it) => drop(self.meters.insert(it.meter_id, (physical, it))),
            Record::NoMeter(id) => drop(self.meters.remove(&id)),
            Record::Port(shown, config) => drop(self.ports.insert(shown, config)),
            Record::Generation(id) => self.generation = Some(id),
            Record::Ports(checksum) => self.checksum = Some(checksum),
        }
    }
}

impl VirtualSwitch {
    /// From now on, changes are noted for a journal.
    pub(crate) fn keep_journal(&mut self) {
        self.rules.unsaved.keep();
        self.unsaved.keep();
    }

    /// Whether something is not in the journal.
    pub(crate) fn has_unsaved(&self) -> bool {
        !self.rules.unsaved.is_empty() || !self.unsaved.is_empty()
    }

    /// Appends a frame with what changed since the last call, or the content of a whole file. Returns whether it is a whole file.
    pub(crate) fn write_journal(&mut self, wants_all: bool, out: &mut Vec<u8>) -> bool {
        let is_whole = wants_all || self.rules.unsaved.are_too_many() || self.unsaved.are_too_many();
        let (mut rules, mut groups) = (self.rules.unsaved.take(), self.unsaved.groups.take());
        let (mut meters, mut ports) = (self.unsaved.meters.take(), self.unsaved.ports.take());
        let mut has_generation = !self.unsaved.generation.take().is_empty();
        if is_whole {
            rules = self.rules.iter().map(|rule| rule.number).collect();
            groups = self.groups.keys().copied().collect();
            meters = self.meters.keys().copied().collect();
            let closed = self.space.ports().filter(|port| port.config() != 0);
            ports = closed.map(|port| port.plan.shown_as.0).collect();
            has_generation = true;
        }
        let mut frame = FrameWriter::new(out, is_whole);
        if is_whole {
            frame.ports(self.space.checksum());
        }
        rules.into_iter().for_each(|number| self.write_rule(number, &mut frame));
        groups.into_iter().for_each(|id| self.write_group(id, &mut frame));
        meters.into_iter().for_each(|id| self.write_meter(id, &mut frame));
        for shown in ports {
            let config = self.space.port(PortNo(shown)).map_or(0, |port| port.config());
            frame.port(shown, config);
        }
        if let Some(id) = self.generation_id.filter(|_| has_generation) {
            frame.generation(id);
        }
        frame.end();
        is_whole
    }

    fn write_rule(&self, number: u64, frame: &mut FrameWriter<'_>) {
        let Some(rule) = self.rules.get(number) else { return frame.no_rule(number) };
        let numbers = KeptNumbers {
            number,
            at_ms: rule.at_ms,
            cookie: rule.cookie,
            gone: rule.gone,
            priority: rule.priority,
            idle_timeout_s: rule.idle_timeout_s,
            hard_timeout_s: rule.hard_timeout_s,
            flags: rule.flags,
        };
        frame.rule(&numbers, rule.by, &rule.matching, &rule.instructions);
    }

    fn write_group(&self, id: u32, frame: &mut FrameWriter<'_>) {
        let Some(group) = self.groups.get(&id) else { return frame.no_group(id) };
        let (group_type, buckets) = (group.group_type, group.buckets.clone());
        frame.group(group.physical, GroupMod { command: ADD, group_type, group_id: id, buckets });
    }

    fn write_meter(&self, id: u32, frame: &mut FrameWriter<'_>) {
        let Some(meter) = self.meters.get(&id) else { return frame.no_meter(id) };
        let (flags, bands) = (meter.flags, meter.bands.clone());
        frame.meter(meter.physical, MeterMod { command: ADD, flags, meter_id: id, bands });
    }

    /// Takes the state that a journal says. It is compared with the physical switch when that connects. It must come before anything else
    /// happens to this virtual switch.
    ///
    /// # Errors
    /// A phrase: the journal is damaged. Nothing has changed.
    pub(crate) fn recall(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let mut kept = Kept::default();
        journal::read(bytes, |record| kept.take(record))?;
        if kept.rules.keys().any(|number| *number == 0 || *number > COOKIE_MASK) {
            return Err("a rule in it has no number of a rule");
        }
        let highest = kept.rules.keys().next_back().copied().unwrap_or_default();
        self.recall_groups(kept.groups);
        self.recall_meters(kept.meters);
        for rule in kept.rules.into_values() {
            let rule = rule_of(rule);
            self.rules.insert(key_of(rule.priority, &rule.matching), rule);
        }
        for (shown, config) in kept.ports {
            if let Some(port) = self.space.port_mut(PortNo(shown)) {
                port.recall(config);
            }
        }
        self.generation_id = kept.generation;
        self.rules.number_from(highest.saturating_add(1));
        self.leftovers.have_been(highest);
        // Without a checksum, an older version has written it.
        self.has_other_ports = kept.checksum != Some(self.space.checksum());
        self.recall = Recall::Waiting;
        Ok(())
    }

    /// Groups whose numbers in the physical switch are not the slice's any more are not recalled, so their rules cannot be laid.
    fn recall_groups(&mut self, groups: BTreeMap<u32, (u32, GroupMod)>) {
        let mut taken = BTreeSet::new();
        for (id, (physical, it)) in groups {
            if !self.numbers.groups.contains(&physical) || !taken.insert(physical) {
                continue;
            }
            // It is this run's from now on.
            self.leftovers.may_have_group(physical);
            let GroupMod { group_type, buckets, .. } = it;
            self.groups.insert(id, Group { physical, group_type, buckets, spread: Vec::new(), modified: 0 });
        }
    }

    fn recall_meters(&mut self, meters: BTreeMap<u32, (u32, MeterMod)>) {
        let mut taken = BTreeSet::new();
        for (id, (physical, it)) in meters {
            if !self.numbers.meters.contains(&physical) || !taken.insert(physical) {
                continue;
            }
            self.leftovers.may_have_meter(physical);
            self.meters.insert(id, Meter { physical, flags: it.flags, bands: it.bands, modified: 0 });
        }
    }
}

fn rule_of(KeptRule { numbers, by, matching, instructions }: KeptRule) -> Rule {
    Rule {
        number: numbers.number,
        priority: numbers.priority,
        matching,
        cookie: numbers.cookie,
        idle_timeout_s: numbers.idle_timeout_s,
        hard_timeout_s: numbers.hard_timeout_s,
        flags: numbers.flags,
        instructions,
        by,
        pieces: Vec::new(),
        at_ms: numbers.at_ms,
        gone: numbers.gone,
        modified: 0,
    }
}
