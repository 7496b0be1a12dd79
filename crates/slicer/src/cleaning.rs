//! Deletes rules, groups and meters that an earlier run of the slice left in the physical switch.
//!
//! In: the physical switch's rules, deletes of the tenant, new groups and meters. Out: the question for rules, and deletes. It never deletes a rule of this
//! run, and shows the tenant none of an earlier one.

use crate::output::{Command, DELETE};
use crate::pending::Asked;
use crate::statistics::all_flows;
use crate::virtual_switch::{Turn, VirtualSwitch};
use openflow::message::{FLOW_DELETE_STRICT, FlowModFields, GROUP_TYPE_ALL, GroupMod, MeterMod, ReplyBody};

impl VirtualSwitch {
    /// Asks the physical switch for rules of an earlier run, once.
    pub(crate) fn ask_for_leftovers(&mut self, turn: &mut Turn<'_>) {
        if !self.is_read_only && self.leftovers.ask() {
            self.order(Command::Statistics(all_flows()), Some(Asked::Leftovers), turn);
        }
    }

    /// A part of the answer.
    pub(crate) fn on_leftovers(&mut self, ticket: u64, more: bool, body: &ReplyBody, turn: &mut Turn<'_>) {
        if let ReplyBody::Flow(entries) = body {
            for entry in entries {
                if !self.recall.is_open() || !self.hear_piece(entry, turn) {
                    self.leftovers.hear(entry);
                }
            }
        }
        if !more {
            self.pending.take(ticket);
            self.know_leftovers(true, turn);
        }
    }

    /// All is known that the physical switch says. If it gives no answer, rules of an earlier run stay in it.
    pub(crate) fn know_leftovers(&mut self, is_whole: bool, turn: &mut Turn<'_>) {
        if self.leftovers.know() {
            self.delete_leftovers(turn);
        }
        if self.recall.is_open() {
            self.on_compared(is_whole, turn);
        }
    }

    /// The tenant deletes all rules.
    pub(crate) fn delete_leftovers(&mut self, turn: &mut Turn<'_>) {
        for (place, matching) in self.leftovers.take() {
            // A rule of this run has taken the place since.
            if self.rules.at(&(place.0, place.1.as_slice().into())).is_none() {
                let fields = FlowModFields {
                    command: FLOW_DELETE_STRICT,
                    priority: place.0,
                    ..FlowModFields::default()
                };
                self.order(Command::FlowMod(fields.with(matching, Vec::new())), None, turn);
            }
        }
    }

    /// Deletes what an earlier run may have left under the number of a new group.
    pub(crate) fn clear_group(&mut self, physical: u32, turn: &mut Turn<'_>) {
        if self.leftovers.may_have_group(physical) {
            let (command, group_type) = (DELETE, GROUP_TYPE_ALL);
            let group_mod = GroupMod { command, group_type, group_id: physical, buckets: Vec::new() };
            self.order(Command::GroupMod(group_mod), None, turn);
        }
    }

    /// Deletes what an earlier run may have left under the number of a new meter.
    pub(crate) fn clear_meter(&mut self, physical: u32, turn: &mut Turn<'_>) {
        if self.leftovers.may_have_meter(physical) {
            let meter_mod = MeterMod { command: DELETE, flags: 0, meter_id: physical, bands: Vec::new() };
            self.order(Command::MeterMod(meter_mod), None, turn);
        }
    }
}
