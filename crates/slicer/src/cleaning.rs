//! Deletes rules, groups and meters that an earlier run of the slice left in the physical switch.
//!
//! In: the physical switch's rules, deletes of the tenant, groups and meters that exist already. Out: the question for rules, and deletes. It never deletes a rule of this
//! run, and shows the tenant none of an earlier one.

use crate::output::{ADD, Command, DELETE};
use crate::pending::{Asked, Sender};
use crate::statistics::all_flows;
use crate::virtual_switch::{Turn, VirtualSwitch};
use openflow::message::{FLOW_DELETE_STRICT, FlowModFields, GroupMod, MeterMod, ReplyBody};

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
        self.go_on_withdrawing(turn);
    }

    /// The tenant deletes all rules.
    pub(crate) fn delete_leftovers(&mut self, turn: &mut Turn<'_>) {
        for (place, (priority, matching)) in self.leftovers.take() {
            // A rule of this run has taken the place since.
            if self.rules.at(&place).is_none() {
                let fields =
                    FlowModFields { command: FLOW_DELETE_STRICT, priority, ..FlowModFields::default() };
                self.order(Command::FlowMod(fields.with(matching, Vec::new())), None, turn);
            }
        }
    }

    /// The physical switch has a group with the number of a new one. If an earlier run may have left it, it makes room. Returns whether it
    /// does. It is the slice's then: the kernel gives a number to one owner only.
    pub(crate) fn replace_group(&mut self, id: u32, sender: &Sender, turn: &mut Turn<'_>) -> bool {
        let physical = self.groups.get(&id).map(|group| group.physical);
        if !physical.is_some_and(|physical| self.leftovers.may_have_group(physical)) {
            return false;
        }
        let again = self.lay_groups(ADD).into_iter().find(|(it, _)| *it == id);
        let Some((_, group_mod)) = again else { return false };
        let delete = GroupMod { command: DELETE, buckets: Vec::new(), ..group_mod };
        self.order(Command::GroupMod(delete), None, turn);
        self.order(Command::GroupMod(group_mod), Some(Asked::Group { sender: sender.clone(), id }), turn);
        true
    }

    /// The same for a meter.
    pub(crate) fn replace_meter(&mut self, id: u32, sender: &Sender, turn: &mut Turn<'_>) -> bool {
        let physical = self.meters.get(&id).map(|meter| meter.physical);
        if !physical.is_some_and(|physical| self.leftovers.may_have_meter(physical)) {
            return false;
        }
        let again = self.lay_meters(ADD).into_iter().find(|(it, _)| *it == id);
        let Some((_, meter_mod)) = again else { return false };
        let delete = MeterMod { command: DELETE, bands: Vec::new(), ..meter_mod };
        self.order(Command::MeterMod(delete), None, turn);
        self.order(Command::MeterMod(meter_mod), Some(Asked::Meter { sender: sender.clone(), id }), turn);
        true
    }
}
