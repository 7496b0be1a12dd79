//! Compares the rules, groups and meters of an earlier process with the physical switch, when that connects.
//!
//! ```text
//!   recalled rules ──> laid out, nothing sent ──> the switch's rules by their cookies ──> all pieces there: nothing
//!   recalled groups and meters ──> modified to what they are                             some: the others are put back
//!                                                                                        none: the rule has ended
//! ```
//!
//! Messages of controllers wait until that is done. A rule that ended while no process ran is gone without a flow removed: no controller
//! was connected.
//!
//! In: the recalled state, and the physical switch's answers. Out: commands. It never adds a rule of which the switch has nothing, unless the
//! switch does not say which rules it has.

use crate::answers::error_of;
use crate::event::Outcome;
use crate::groups::REMOVED_BY_GROUP;
use crate::output::{Command, DELETE, MODIFY};
use crate::pending::Asked;
use crate::recall::Recall;
use crate::rule_table::{Idle, Rule, RulePiece, match_key};
use crate::rules::{REMOVED_BY_DELETE, piece_mod};
use crate::statistics::all_flows;
use crate::virtual_switch::{Turn, VirtualSwitch};
use abi::zone_id::COOKIE_MASK;
use flow::{Action, Field, PortNo};
use openflow::message::{
    FLOW_DELETE_STRICT, FLOW_MODIFY_STRICT, FlowMod, FlowModFields, FlowStats, GroupMod, MeterMod,
};

impl VirtualSwitch {
    /// The physical switch connected. The recalled rules get their pieces, and the switch is asked which of them it has.
    pub(crate) fn compare(&mut self, turn: &mut Turn<'_>) {
        self.recall = Recall::Asked;
        self.claim_meters_again(turn);
        self.claim_groups_again(turn);
        let numbers: Vec<u64> = self.rules.iter().map(|rule| rule.number).collect();
        for number in numbers {
            let Some(rule) = self.rules.get(number) else { continue };
            match self.lay_again(rule) {
                Ok(pieces) => self.rules.lay(number, pieces.into_iter().map(not_there).collect()),
                // The slice has other ports or packets now. What the switch has of the rule is a leftover.
                Err(_) => drop(self.rules.remove(number)),
            }
        }
        self.leftovers.ask();
        self.order(Command::Statistics(all_flows()), Some(Asked::Leftovers), turn);
    }

    /// The kernel judges a group again when its owner modifies it. A group that the switch has lost gets an error.
    fn claim_groups_again(&mut self, turn: &mut Turn<'_>) {
        for (id, group_mod) in self.lay_groups(MODIFY) {
            self.claims += 1;
            self.order(Command::GroupMod(group_mod), Some(Asked::GroupAgain(id)), turn);
        }
    }

    fn claim_meters_again(&mut self, turn: &mut Turn<'_>) {
        for (id, meter_mod) in self.lay_meters(MODIFY) {
            self.claims += 1;
            self.order(Command::MeterMod(meter_mod), Some(Asked::MeterAgain(id)), turn);
        }
    }

    /// A recalled group is confirmed, or the physical switch does not have it. Then its rules are gone too.
    pub(crate) fn on_group_again(&mut self, id: u32, outcome: Outcome, turn: &mut Turn<'_>) {
        if let Some(group) = self.groups.get(&id).filter(|_| error_of(outcome).is_some()) {
            let (group_type, group_id) = (group.group_type, group.physical);
            self.groups.remove(&id);
            self.unsaved.groups.note(id);
            self.take_out_if(|rule| rule.refers_to(id), REMOVED_BY_GROUP, turn);
            // For the kernel, its number is free again. If the kernel refused, the number is not the slice's.
            let group_mod = GroupMod { command: DELETE, group_type, group_id, buckets: Vec::new() };
            if matches!(outcome, Outcome::Failed(_)) {
                self.order(Command::GroupMod(group_mod), None, turn);
            }
        }
        self.end_one_claim(turn);
    }

    /// The same for a meter.
    pub(crate) fn on_meter_again(&mut self, id: u32, outcome: Outcome, turn: &mut Turn<'_>) {
        if let Some(meter) = self.meters.get(&id).filter(|_| error_of(outcome).is_some()) {
            let (flags, meter_id) = (meter.flags, meter.physical);
            self.meters.remove(&id);
            self.unsaved.meters.note(id);
            self.take_out_if(|rule| rule.uses_meter(id), REMOVED_BY_DELETE, turn);
            let meter_mod = MeterMod { command: DELETE, flags, meter_id, bands: Vec::new() };
            if matches!(outcome, Outcome::Failed(_)) {
                self.order(Command::MeterMod(meter_mod), None, turn);
            }
        }
        self.end_one_claim(turn);
    }

    fn take_out_if(&mut self, is_meant: impl Fn(&Rule) -> bool, reason: u8, turn: &mut Turn<'_>) {
        let rules: Vec<u64> =
            self.rules.iter().filter(|rule| is_meant(rule)).map(|rule| rule.number).collect();
        rules.into_iter().for_each(|rule| self.take_out(rule, reason, None, turn));
    }

    /// An entry of the physical switch. Returns whether it is one of a recalled rule. One of an earlier layout of the rule is deleted.
    pub(crate) fn hear_piece(&mut self, entry: &FlowStats, turn: &mut Turn<'_>) -> bool {
        let key = match_key(&entry.matching);
        let found = self.rules.change_pieces(entry.cookie & COOKIE_MASK, |rule| {
            let piece = rule.pieces.iter_mut().find(|piece| piece.has_match(&key))?;
            if piece.idle == Idle::Closed {
                return None;
            }
            piece.idle = Idle::Unknown;
            Some(())
        });
        let Some(piece) = found else { return false };
        // Without a match, the entry could not be read.
        if piece.is_none() && !entry.matching.is_any() {
            let fields = FlowModFields {
                command: FLOW_DELETE_STRICT,
                priority: entry.priority,
                ..FlowModFields::default()
            };
            self.order(Command::FlowMod(fields.with(entry.matching.clone(), Vec::new())), None, turn);
        }
        true
    }

    /// The physical switch has said its rules, or will not.
    pub(crate) fn on_compared(&mut self, is_whole: bool, turn: &mut Turn<'_>) {
        self.recall = Recall::Heard { is_whole };
        self.end_recall(turn);
    }

    /// Ends the comparison once all groups and meters are confirmed. Then the messages that waited are carried out.
    pub(crate) fn end_recall(&mut self, turn: &mut Turn<'_>) {
        let Recall::Heard { is_whole } = self.recall else { return };
        if self.claims > 0 {
            return;
        }
        self.recall = Recall::Done;
        if is_whole {
            self.settle_rules(turn);
        } else {
            self.relay_rules(turn);
        }
        self.relay_shapers(turn);
        self.carry_out_held(turn);
    }

    /// Pieces at ports of VNICs may have a meter of the earlier process, which is not in its journal. They are modified to what they are without it.
    fn without_meters(&self, rule: &Rule, now_ms: u64) -> Vec<FlowMod> {
        let is_shaped = |piece: &&RulePiece| {
            let port = piece.matching.get(Field::InPort).and_then(|(port, _)| u32::try_from(port).ok());
            let shown = port.and_then(|port| self.space.shown(PortNo(port)));
            piece.idle.is_in_switch() && shown.is_some_and(|shown| self.shapers.contains_key(&shown))
        };
        let pieces = rule.pieces.iter().filter(is_shaped);
        pieces.map(|piece| piece_mod(rule, piece, FLOW_MODIFY_STRICT, now_ms)).collect()
    }

    /// Pieces of which the switch may have other instructions: those of rules that flood, if the slice had other ports, and all if it had other hosts.
    /// They are modified to what they are now.
    fn with_other_ports(&self, rule: &Rule, now_ms: u64) -> Vec<FlowMod> {
        let floods = |action: &Action| match action {
            Action::Output { port, .. } => matches!(*port, PortNo::FLOOD | PortNo::ALL),
            _ => false,
        };
        let is_meant = self.has_other_ports && (self.space.addresses.is_some() || rule.actions().any(floods));
        let pieces = rule.pieces.iter().filter(|piece| is_meant && piece.idle.is_in_switch());
        pieces.map(|piece| piece_mod(rule, piece, FLOW_MODIFY_STRICT, now_ms)).collect()
    }

    fn settle_rules(&mut self, turn: &mut Turn<'_>) {
        let numbers: Vec<u64> = self.rules.iter().map(|rule| rule.number).collect();
        for number in numbers {
            let Some(rule) = self.rules.get(number) else { continue };
            let is_closed = rule.pieces.iter().all(|piece| piece.idle == Idle::Closed);
            let is_there = rule.pieces.iter().any(|piece| piece.idle.is_in_switch());
            if !is_there && !is_closed {
                self.rules.remove(number);
                continue;
            }
            let gone = |(place, piece): (usize, &RulePiece)| (piece.idle == Idle::Gone).then_some(place);
            let gone: Vec<usize> = rule.pieces.iter().enumerate().filter_map(gone).collect();
            let mut stale = self.with_other_ports(rule, turn.now_ms);
            if stale.is_empty() {
                stale = self.without_meters(rule, turn.now_ms);
            }
            stale.into_iter().for_each(|flow_mod| self.order(Command::FlowMod(flow_mod), None, turn));
            gone.into_iter().for_each(|place| self.put_back(number, place, turn));
        }
        self.has_other_ports = false;
    }
}

/// A piece of which nothing is known yet.
fn not_there(piece: RulePiece) -> RulePiece {
    let idle = if piece.idle == Idle::Closed { Idle::Closed } else { Idle::Gone };
    RulePiece { idle, ..piece }
}
