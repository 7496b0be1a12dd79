//! A virtual switch deletes what its slice loses from the physical switch, before the slice's plan changes.
//!
//! ```text
//!   barrier ──> what the controllers ordered before is done, and there is room
//!   all ──> a strict delete for each piece ──1.3──> one delete of all rules of the slice ─┐
//!   ports ──> rules without the ports, floor, groups ─────────────────────────────────────┴──> groups and meters ──> barrier ──> done
//! ```
//!
//! 1.0 has no delete for the rules of one owner, so each rule is deleted by itself. In 1.3, the one delete reaches rules that the process does not know. It names
//! no rule, so the kernel would not know which places are free. Another slice with the same ports could not have rules of the same match and priority until the
//! switch was asked about each. So the rules that the process knows are deleted by name before.
//!
//! Commands go in batches, each behind the receipt of a barrier. So a large table fills no queue. Before them, a flood of a controller may have filled
//! it: what has no room is ordered again.
//!
//! In: what is lost, and answers. Out: commands, and how it ended. A switch that lost everything stays without rules.

use crate::floor::{Floor, floor_mod};
use crate::output::{Command, DELETE, MODIFY};
use crate::pending::Asked;
use crate::rules::REMOVED_BY_DELETE;
use crate::virtual_switch::{Turn, VirtualSwitch};
use crate::withdrawal::{Going, Withdrawing};
use flow::{ErrorCode, Match, PortNo};
use openflow::Version;
use openflow::message::{
    FLOW_DELETE, FLOW_DELETE_STRICT, FlowMod, FlowModFields, GroupMod, MeterMod, TABLE_ALL,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The commands of a batch, and at most those of one rule more.
const BATCH: usize = 128;

/// How long it waits for room in the queue of the switch. The operator waits for 30 s in all.
const AGAIN_MS: u64 = 100;

impl VirtualSwitch {
    /// Begins to delete what the slice loses here. Without a loss, there is nothing to do.
    pub(crate) fn withdraw(&mut self, going: Going, turn: &mut Turn<'_>) {
        let is_away = self.physical.is_none();
        if matches!(going, Going::All) {
            self.is_withdrawn = true;
            let controllers = self.controllers.len();
            (0..controllers).for_each(|it| self.end(it, "the slice loses the switch", turn));
        }
        let end = is_away.then(|| Err("it is not connected".to_owned()));
        self.withdrawing = Some(Withdrawing { end, ..Withdrawing::of(going) });
        self.go_on_withdrawing(turn);
    }

    /// How it ended. `None`: it has not ended, or nothing was to be deleted.
    pub(crate) fn withdrawal_end(&self) -> Option<&Result<(), String>> {
        self.withdrawing.as_ref()?.end.as_ref()
    }

    /// The physical switch is gone.
    pub(crate) fn break_off_withdrawing(&mut self) {
        if let Some(it) = self.withdrawing.as_mut().filter(|it| it.end.is_none()) {
            it.end = Some(Err("it disconnected before all was deleted".to_owned()));
        }
    }

    /// Orders the next batch, unless answers are missing.
    pub(crate) fn go_on_withdrawing(&mut self, turn: &mut Turn<'_>) {
        let is_due = |it: &mut Withdrawing| {
            it.end.is_none() && it.awaited == 0 && it.again_ms.is_none_or(|at_ms| at_ms <= turn.now_ms)
        };
        let Some(mut it) = self.withdrawing.take_if(is_due) else { return };
        it.again_ms = None;
        if self.must_wait(&it) {
            self.withdrawing = Some(it);
            return;
        }
        if !it.has_room {
            self.order(Command::Barrier, Some(Asked::Withdrawal), turn);
            it.awaited += 1;
            self.withdrawing = Some(it);
            return;
        }
        let before = turn.out.len();
        if !std::mem::replace(&mut it.has_begun, true) {
            self.begin_withdrawing(&mut it, turn);
        }
        while turn.out.len() - before < BATCH && self.withdraw_next(&mut it, turn) {}
        if turn.out.len() > before {
            self.order(Command::Barrier, Some(Asked::Withdrawal), turn);
            it.awaited += 1;
        } else {
            it.end = Some(Ok(()));
        }
        self.withdrawing = Some(it);
    }

    /// When there is something to do again, because there was no room. `None`: when an answer comes.
    pub(crate) fn withdrawal_due_ms(&self) -> Option<u64> {
        self.withdrawing.as_ref().filter(|it| it.end.is_none()).and_then(|it| it.again_ms)
    }

    /// A barrier, or the delete of all rules, was answered. `lacks_room`: it was not sent, and can be sent later.
    pub(crate) fn on_withdrawal_answer(
        &mut self,
        error: Option<ErrorCode>,
        lacks_room: bool,
        turn: &mut Turn<'_>,
    ) {
        let is_v10 = self.physical == Some(Version::V1_0);
        let Some(it) = self.withdrawing.as_mut().filter(|it| it.end.is_none()) else { return };
        it.awaited = it.awaited.saturating_sub(1);
        if lacks_room {
            // The delete of all rules can be repeated. Deletes of single rules are behind a barrier, so there is room for them.
            it.has_begun &= is_v10 || !matches!(it.going, Going::All);
            it.again_ms = Some(turn.now_ms.saturating_add(AGAIN_MS));
        } else if error.is_none() {
            it.has_room = true;
        }
        if let Some(error) = error.filter(|_| !lacks_room) {
            it.end = Some(Err(format!("the delete was refused with error {}/{}", error.kind, error.code)));
        }
        self.go_on_withdrawing(turn);
    }

    /// Without the answers to open questions, the pieces in the switch are not known. A delete of all rules needs no knowledge.
    fn must_wait(&self, it: &Withdrawing) -> bool {
        let is_v10 = self.on() == Version::V1_0;
        match it.going {
            Going::All => is_v10 && (self.recall.is_open() || !self.leftovers.are_known()),
            Going::Parts { .. } => self.recall.is_open() || self.claims > 0,
        }
    }

    fn begin_withdrawing(&mut self, it: &mut Withdrawing, turn: &mut Turn<'_>) {
        let numbers = self.rules.iter().map(|rule| rule.number);
        it.rules = numbers.collect();
        match it.going.clone() {
            // An observer has no rules.
            Going::All if self.is_read_only => it.rules.clear(),
            Going::All if self.on() == Version::V1_0 => self.withdraw_each_rule(it),
            Going::All => self.withdraw_all_rules(it),
            Going::Parts { ports, hosts } => self.withdraw_parts(&ports, &hosts, it, turn),
        }
    }

    fn withdraw_each_rule(&mut self, it: &mut Withdrawing) {
        let entries = self.space.entries().iter().map(|entry| entry.matching.clone());
        it.rest.extend(self.floor_deletes(entries.collect()));
        let strict = |(priority, matching): (u16, Match)| {
            let fields = FlowModFields { command: FLOW_DELETE_STRICT, priority, ..FlowModFields::default() };
            Command::FlowMod(fields.with(matching, Vec::new()))
        };
        it.rest.extend(self.leftovers.take().into_values().map(strict));
    }

    /// The kernel limits the delete to the rules of the slice. So it reaches those of earlier runs too.
    fn withdraw_all_rules(&mut self, it: &mut Withdrawing) {
        let entries = self.space.entries().iter().map(|entry| entry.matching.clone());
        it.rest.extend(self.floor_deletes(entries.collect()));
        let fields = FlowModFields {
            command: FLOW_DELETE,
            table_id: TABLE_ALL,
            priority: 1,
            ..FlowModFields::default()
        };
        let delete: FlowMod = fields.with(Match::any(), Vec::new());
        it.rest.push_back(Command::FlowMod(delete));
        let groups: Vec<u32> = self.groups.keys().copied().collect();
        it.rest.extend(groups.into_iter().filter_map(|id| self.group_delete(id)));
        for (id, meter_mod) in self.lay_meters(DELETE) {
            self.meters.remove(&id);
            self.unsaved.meters.note(id);
            it.rest.push_back(Command::MeterMod(MeterMod { bands: Vec::new(), ..meter_mod }));
        }
        let ports: Vec<PortNo> = self.shapers.keys().copied().collect();
        it.rest.extend(ports.into_iter().filter_map(|port| self.shaper_delete(port)));
    }

    fn withdraw_parts(
        &mut self,
        ports: &BTreeSet<PortNo>,
        hosts: &BTreeSet<Ipv4Addr>,
        it: &mut Withdrawing,
        turn: &mut Turn<'_>,
    ) {
        let before: BTreeMap<u32, GroupMod> = self.lay_groups(MODIFY).into_iter().collect();
        let shown: Vec<PortNo> = ports.iter().filter_map(|port| self.space.shown(*port)).collect();
        let gone = self.space.give_up(ports, hosts);
        let after: BTreeMap<u32, GroupMod> = self.lay_groups(MODIFY).into_iter().collect();
        for (id, group_mod) in before {
            match after.get(&id) {
                Some(after) if *after == group_mod => {}
                Some(after) => self.order(Command::GroupMod(after.clone()), None, turn),
                None => it.rest.extend(self.group_delete(id)),
            }
        }
        it.rest.extend(self.floor_deletes(gone));
        it.rest.extend(shown.into_iter().filter_map(|port| self.shaper_delete(port)));
    }

    /// Carries out one step. Returns whether there was one.
    fn withdraw_next(&mut self, it: &mut Withdrawing, turn: &mut Turn<'_>) -> bool {
        if let Some(number) = it.rules.pop_front() {
            let laid = match it.going {
                Going::All => None,
                Going::Parts { .. } => self.rules.get(number).and_then(|rule| self.lay_again(rule).ok()),
            };
            match laid {
                Some(pieces) => _ = self.relay(number, pieces, None, false, turn),
                None => self.take_out(number, REMOVED_BY_DELETE, None, turn),
            }
            return true;
        }
        let Some(command) = it.rest.pop_front() else { return false };
        // If the delete of all is refused, rules may stay.
        let is_of_all = matches!(&command, Command::FlowMod(it) if it.command == FLOW_DELETE);
        it.awaited += usize::from(is_of_all);
        self.order(command, is_of_all.then_some(Asked::Withdrawal), turn);
        true
    }

    /// The rules of the floor for these packets, if there are any.
    fn floor_deletes(&self, matches: Vec<Match>) -> Vec<Command> {
        let delete = |matching| Command::FlowMod(floor_mod(Floor::None, matching));
        let there = matches.into_iter().filter(|_| self.floor != Floor::None);
        there.map(delete).collect()
    }

    /// Forgets a group. Returns what deletes it.
    fn group_delete(&mut self, id: u32) -> Option<Command> {
        let group = self.groups.remove(&id)?;
        self.unsaved.groups.note(id);
        let (group_type, group_id) = (group.group_type, group.physical);
        Some(Command::GroupMod(GroupMod { command: DELETE, group_type, group_id, buckets: Vec::new() }))
    }

    /// Forgets the meter at a port. Returns what deletes it, if the switch may have it.
    fn shaper_delete(&mut self, port: PortNo) -> Option<Command> {
        let shaper = self.shapers.remove(&port)?;
        shaper.may_be_there().then(|| Command::MeterMod(shaper.meter_mod(DELETE)))
    }
}
