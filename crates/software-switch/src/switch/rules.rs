//! Changes of rules: flow mods, group mods, meter mods, and their consequences.
//!
//! In: a message that changes rules. Out: changed tables, flow removeds, and the buffered packet that waited for the
//! rule.

use flow::{Instruction, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::time::Duration;

use super::packet_in::Origin;
use super::validate::ActionContext;
use super::{COPIES_MAX, Effects, Switch};
use crate::buffer::Buffered;
use crate::group::{self, GroupChange};
use crate::instructions::Instructions;
use crate::packet::Packet;
use crate::profiled::{Changed, rule_id};
use crate::refusal::Refusal;
use crate::table::{FlowEntry, Reason, Selection};

impl Switch {
    /// Carries out a flow mod (1.3.5, 6.4; 1.0, 4.6).
    pub(super) fn flow_mod(
        &mut self,
        wanted: &FlowMod,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.counters.flow_mods += 1;
        check_flags(wanted, version)?;
        match wanted.command {
            FLOW_ADD => self.add(wanted, version, now, effects),
            FLOW_MODIFY | FLOW_MODIFY_STRICT => self.modify(wanted, version, now, effects),
            FLOW_DELETE | FLOW_DELETE_STRICT => self.delete(wanted, now, effects),
            _ => Err(Refusal::FlowModCommand),
        }
    }

    fn one_table(&self, table_id: u8) -> Result<usize, Refusal> {
        let index = usize::from(table_id);
        if self.pipeline.has(table_id) { Ok(index) } else { Err(Refusal::FlowModTableId) }
    }

    fn add(
        &mut self,
        wanted: &FlowMod,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let index = self.one_table(wanted.table_id)?;
        self.check_match(&wanted.matching)?;
        let instructions = self.check_instructions(wanted.table_id, wanted, version)?;
        let max_entries = self.bound_of_table(wanted.table_id);
        let table = &self.tables[index];
        if wanted.flags & FLOW_MOD_CHECK_OVERLAP != 0 && table.has_overlap(wanted.priority, &wanted.matching)
        {
            return Err(Refusal::Overlap);
        }
        if table.len() >= max_entries && !table.holds(wanted.priority, &wanted.matching) {
            return Err(Refusal::TableFull);
        }
        if self.profiled.is_some() && !self.takes_place(wanted, now)? {
            return Ok(());
        }
        self.tables.change(index).add(FlowEntry::new(wanted, instructions.clone(), now), version);
        if self.profiled.is_some() {
            self.act_on_placed(now, effects);
        }
        self.release(wanted, instructions, version, now, effects)
    }

    /// How many entries a table may hold. In a switch with a profile that has a table size, the model decides about each rule, unless the
    /// controller made the table smaller.
    fn bound_of_table(&self, table_id: u8) -> usize {
        let is_models = self.profiled.as_ref().is_some_and(|profiled| profiled.bounds_tables);
        if is_models && !self.pipeline.is_cut(table_id) {
            return usize::MAX;
        }
        self.pipeline.max_entries(table_id) as usize
    }

    fn modify(
        &mut self,
        wanted: &FlowMod,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let index = self.one_table(wanted.table_id)?;
        self.check_match(&wanted.matching)?;
        let instructions = self.check_instructions(wanted.table_id, wanted, version)?;
        // A modify ignores the output port (1.3.5, 6.4).
        let anywhere =
            Selection { out_port: PortNo::ANY, out_group: GROUP_ANY, ..Selection::of_flow_mod(wanted) };
        self.note_modified(index, &anywhere);
        let v10 = version == Version::V1_0;
        let resets = !v10 && wanted.flags & FLOW_MOD_RESET_COUNTS != 0;
        let changed = self.tables.change(index).modify(&anywhere, |entry| {
            entry.instructions = instructions.clone();
            if v10 {
                entry.cookie = wanted.cookie;
            }
            if resets {
                entry.reset_counters();
            }
        });
        // If a modify finds no rule, 1.0 adds it (1.0, 4.6) and 1.3 does nothing.
        if changed == 0 && v10 {
            return self.add(wanted, version, now, effects);
        }
        self.release(wanted, instructions, version, now, effects)
    }

    /// A switch that plays a profile tells the model which rules a modify changes.
    fn note_modified(&mut self, index: usize, selection: &Selection<'_>) {
        if self.profiled.is_none() {
            return;
        }
        let selected = self.tables[index].select(selection);
        let rules: Vec<_> =
            selected.filter_map(|entry| rule_id(index as u8, entry.priority, &entry.matching)).collect();
        rules.into_iter().for_each(|rule| self.note(Changed::Modified(rule)));
    }

    fn delete(&mut self, wanted: &FlowMod, now: Duration, effects: &mut Effects) -> Result<(), Refusal> {
        let tables = match wanted.table_id {
            TABLE_ALL => 0..self.tables.len(),
            table_id => self.one_table(table_id).map(|index| index..index + 1)?,
        };
        self.check_match(&wanted.matching)?;
        for table_id in tables {
            for entry in self.tables.change(table_id).delete(&Selection::of_flow_mod(wanted)) {
                self.tell_removed(table_id, &entry, Reason::Delete, now, effects);
            }
        }
        Ok(())
    }

    /// Releases the packet that waited for this rule. 1.3 sends it through the tables (1.3.5, 7.3.4.1); 1.0 applies
    /// the rule's own actions (1.0, 5.3.3).
    pub(super) fn release(
        &mut self,
        wanted: &FlowMod,
        instructions: Instructions,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if wanted.buffer_id == NO_BUFFER {
            return Ok(());
        }
        let Buffered { frame, in_port } = self.buffers.take(wanted.buffer_id, now)?;
        self.send_released(Packet::new(frame, in_port), &instructions, version, now, effects);
        Ok(())
    }

    /// Sends a packet that waited for a rule with these instructions.
    pub(super) fn send_released(
        &mut self,
        mut packet: Packet,
        instructions: &Instructions,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) {
        self.copies_left = COPIES_MAX;
        if version != Version::V1_0 {
            return self.forward(packet, now, effects);
        }
        for instruction in instructions.iter() {
            if let Instruction::ApplyActions(actions) = instruction {
                let _ = self.carry_out(actions, &mut packet, Origin::NO_RULE, now, effects);
            }
        }
    }

    /// Sends a flow removed to the controllers, if the flow mod that added the rule asked for it.
    pub(super) fn tell_removed(
        &mut self,
        table_id: usize,
        entry: &FlowEntry,
        reason: Reason,
        now: Duration,
        effects: &mut Effects,
    ) {
        if self.profiled.is_some()
            && let Some(rule) = rule_id(table_id as u8, entry.priority, &entry.matching)
        {
            self.note(Changed::Deleted(rule));
        }
        if !entry.tells_when_removed() {
            return;
        }
        let counted = self.counted(table_id, entry);
        let entry = counted.as_ref().unwrap_or(entry);
        self.tell(effects, |session, version| {
            if !session.hears_flow_removed(reason as u8) {
                return None;
            }
            let body = Body::FlowRemoved(describe_removed(table_id, entry, reason, version, now));
            self.can_be_said(version, || body.clone()).then_some(body)
        });
    }

    /// Whether a rule can be expressed in a version. Checked only if controllers of both versions have been
    /// connected: a controller's own rule can always be expressed in its version.
    pub(super) fn can_be_said(&self, version: Version, body: impl FnOnce() -> Body) -> bool {
        let mixed = self.versions_spoken.count_ones() > 1;
        !mixed || Message { version, xid: 0, body: body() }.encode(&mut Vec::new()).is_ok()
    }

    /// Carries out a meter mod. Also deletes the rules of a deleted meter (1.3.5, 6.6).
    pub(super) fn meter_mod(
        &mut self,
        wanted: &MeterMod,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        for meter in self.meters.modify(wanted, now)? {
            for table_id in 0..self.tables.len() {
                for entry in self.tables.change(table_id).delete_for_meter(meter) {
                    self.tell_removed(table_id, &entry, Reason::Delete, now, effects);
                }
            }
        }
        Ok(())
    }

    /// Carries out a group mod. Also deletes the rules of a deleted group (1.3.5, 6.5).
    pub(super) fn group_mod(
        &mut self,
        wanted: &GroupMod,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        group::check_weights(wanted)?;
        for bucket in &wanted.buckets {
            self.check_actions(&bucket.actions, ActionContext::Bucket)?;
        }
        let GroupChange::Gone(groups) = self.groups.modify(wanted, now)? else { return Ok(()) };
        for table_id in 0..self.tables.len() {
            for group in &groups {
                for entry in self.tables.change(table_id).delete_for_group(*group) {
                    self.tell_removed(table_id, &entry, Reason::GroupDelete, now, effects);
                }
            }
        }
        Ok(())
    }
}

fn describe_removed(
    table_id: usize,
    entry: &FlowEntry,
    reason: Reason,
    version: Version,
    now: Duration,
) -> FlowRemoved {
    let age = now.saturating_sub(entry.added_at);
    let v10 = version == Version::V1_0;
    FlowRemoved {
        matching: entry.matching.clone(),
        cookie: entry.cookie,
        priority: entry.priority,
        // 1.0 has no reason for a deleted group.
        reason: if v10 && reason == Reason::GroupDelete { Reason::Delete as u8 } else { reason as u8 },
        table_id: if v10 { 0 } else { table_id as u8 },
        duration_s: crate::whole_seconds(age),
        duration_ns: age.subsec_nanos(),
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: if v10 { 0 } else { entry.hard_timeout_s },
        packet_count: entry.packet_count,
        byte_count: entry.byte_count,
    }
}

/// Whether the switch supports all flags. It does not support 1.0's OFPFF_EMERG: there is no emergency table, so, as
/// in Open vSwitch, the error is "all tables full". An emergency rule with a time-out has an error of its own (1.0,
/// 5.4.4).
fn check_flags(wanted: &FlowMod, version: Version) -> Result<(), Refusal> {
    /// From OFPFF_SEND_FLOW_REM to OFPFF_NO_BYT_COUNTS.
    const ALL_FLAGS: u16 = 0b1_1111;
    /// The same bit as [`FLOW_MOD_RESET_COUNTS`], which is 1.3's.
    const EMERGENCY_V10: u16 = 1 << 2;
    let ends = wanted.idle_timeout_s != 0 || wanted.hard_timeout_s != 0;
    match version {
        Version::V1_0 if wanted.flags & EMERGENCY_V10 != 0 && ends => Err(Refusal::EmergencyTimeout),
        Version::V1_0 if wanted.flags & EMERGENCY_V10 != 0 => Err(Refusal::TableFull),
        _ if wanted.flags & !ALL_FLAGS != 0 => Err(Refusal::FlowModFlags),
        _ => Ok(()),
    }
}
