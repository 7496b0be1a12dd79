//! Ends of rules: pieces that the physical switch removed, and flow removeds for the tenant.
//!
//! The tenant receives one flow removed for a rule, after its last piece, with the sums of the counters. A piece that expires because it
//! had no packets is put back while other pieces of its rule are used. When all pieces had an idle time-out within the time of one, the virtual switch asks
//! whether the pieces that were put back had packets since. It deletes them, and reads their counters.
//!
//! In: flow removeds of the physical switch. Out: commands, and flow removeds for controllers.

use crate::floor::FLOOR_COOKIE;
use crate::leaving::Leaver;
use crate::output::Command;
use crate::pending::Asked;
use crate::rule_table::{Idle, Rule, RulePiece, match_key};
use crate::rules::{lived, piece_mod};
use crate::virtual_switch::{Turn, VirtualSwitch};
use openflow::message::{FLOW_ADD, FLOW_DELETE_STRICT, FlowRemoved};
use openflow::{Body, Message, Version};

/// OFPRR_IDLE_TIMEOUT.
const IDLE_TIMEOUT: u8 = 0;
/// OFPRR_HARD_TIMEOUT.
const HARD_TIMEOUT: u8 = 1;
/// OFPRR_DELETE.
const DELETE: u8 = 2;
/// OFPRR_GROUP_DELETE, which 1.0 does not have.
const GROUP_DELETE: u8 = 3;

impl VirtualSwitch {
    /// The physical switch removed a piece.
    pub(crate) fn on_flow_removed(&mut self, removed: &FlowRemoved, turn: &mut Turn<'_>) {
        let number = removed.cookie;
        if number == FLOOR_COOKIE {
            return;
        }
        self.leftovers.on_removed(removed);
        let counted = (removed.packet_count, removed.byte_count);
        match self.leaving.on_piece(number, counted, (removed.duration_s, removed.duration_ns)) {
            Ok(Some(leaver)) => self.tell_removed(&leaver, turn),
            Ok(None) => {}
            Err(()) => self.on_piece_removed(number, removed, turn),
        }
    }

    /// A piece of a rule that stands.
    fn on_piece_removed(&mut self, number: u64, removed: &FlowRemoved, turn: &mut Turn<'_>) {
        let key = match_key(&removed.matching);
        let found = self.rules.change(number, |rule| {
            rule.gone.0 = rule.gone.0.saturating_add(removed.packet_count);
            rule.gone.1 = rule.gone.1.saturating_add(removed.byte_count);
            let is_meant = |piece: &RulePiece| piece.idle != Idle::Closed && piece.has_match(&key);
            let place = rule.pieces.iter().position(is_meant)?;
            let before = std::mem::replace(&mut rule.pieces[place].idle, Idle::Gone);
            Some((place, before))
        });
        // Without a place, it was a piece of an earlier layout, or of a port that the tenant has closed.
        let Some((place, before)) = found.flatten() else { return };
        if self.recall.is_open() {
            // The rule is judged when all of its pieces are known.
            return;
        }
        let had_packets = removed.packet_count > 0;
        match before {
            Idle::Asked => self.on_idle_answer(number, place, had_packets, turn),
            _ if removed.reason == IDLE_TIMEOUT => self.on_idle_piece(number, place, turn),
            _ => self.end_if_empty(number, removed.reason, turn),
        }
    }

    /// A piece had no packets for an idle time-out.
    fn on_idle_piece(&mut self, number: u64, place: usize, turn: &mut Turn<'_>) {
        let Some(rule) = self.rules.get(number) else { return };
        let timeout_ms = u64::from(rule.idle_timeout_s) * 1_000;
        let is_quiet = |idle: Idle| match idle {
            Idle::PutBack { at_ms } => turn.now_ms.saturating_sub(at_ms) < timeout_ms,
            Idle::Gone | Idle::Closed => true,
            Idle::Unknown | Idle::Asked => false,
        };
        let others = || rule.pieces.iter().enumerate().filter(|(other, _)| *other != place);
        if others().all(|(_, piece)| is_quiet(piece.idle)) {
            let asked: Vec<usize> =
                others().filter(|(_, piece)| piece.idle.is_in_switch()).map(|(other, _)| other).collect();
            return self.ask_about(number, &asked, turn);
        }
        self.put_back(number, place, turn);
    }

    /// Deletes pieces to learn whether they had packets since they were put back.
    fn ask_about(&mut self, number: u64, places: &[usize], turn: &mut Turn<'_>) {
        if places.is_empty() {
            return self.end_if_empty(number, IDLE_TIMEOUT, turn);
        }
        let mods = self.rules.change_pieces(number, |rule| {
            places.iter().for_each(|place| rule.pieces[*place].idle = Idle::Asked);
            let delete =
                |place: &usize| piece_mod(rule, &rule.pieces[*place], FLOW_DELETE_STRICT, turn.now_ms);
            places.iter().map(delete).collect::<Vec<_>>()
        });
        for flow_mod in mods.unwrap_or_default() {
            self.order(Command::FlowMod(flow_mod), None, turn);
        }
    }

    /// The counters of a piece that was deleted to learn them.
    fn on_idle_answer(&mut self, number: u64, place: usize, had_packets: bool, turn: &mut Turn<'_>) {
        let Some(rule) = self.rules.get(number) else { return };
        let is_back = |idle: Idle| matches!(idle, Idle::PutBack { .. } | Idle::Unknown);
        if !had_packets && !rule.pieces.iter().any(|piece| is_back(piece.idle)) {
            return self.end_if_empty(number, IDLE_TIMEOUT, turn);
        }
        // The rule is used: all of its pieces come back.
        let gone: Vec<usize> = (0..rule.pieces.len())
            .filter(|other| *other == place || rule.pieces[*other].idle == Idle::Gone)
            .collect();
        gone.into_iter().for_each(|place| self.put_back(number, place, turn));
    }

    pub(crate) fn put_back(&mut self, number: u64, place: usize, turn: &mut Turn<'_>) {
        let flow_mod = self.rules.change_pieces(number, |rule| {
            rule.pieces[place].idle = Idle::PutBack { at_ms: turn.now_ms };
            piece_mod(rule, &rule.pieces[place], FLOW_ADD, turn.now_ms)
        });
        let Some(flow_mod) = flow_mod else { return };
        self.order(Command::FlowMod(flow_mod), Some(Asked::Add { sender: None, rule: number }), turn);
    }

    /// Ends a rule that has no piece any more.
    fn end_if_empty(&mut self, number: u64, reason: u8, turn: &mut Turn<'_>) {
        let is_empty = |rule: &Rule| rule.pieces.iter().all(|piece| !piece.idle.is_in_switch());
        if !self.rules.get(number).is_some_and(is_empty) {
            return;
        }
        let Some(rule) = self.rules.remove(number) else { return };
        let lived = lived(turn.now_ms.saturating_sub(rule.at_ms));
        self.part(Leaver { rule: *rule, reason, pieces_left: 0, lived }, turn);
    }

    /// Ends the rules without a piece whose time is over. No switch does, and none of their packets can prolong them.
    pub(crate) fn end_bare_rules(&mut self, turn: &mut Turn<'_>) {
        // Before the comparison with the switch, no rule has pieces.
        if self.recall.is_open() {
            return;
        }
        let ended = |rule: &Rule| {
            let passed_s = turn.now_ms.saturating_sub(rule.at_ms) / 1_000;
            let is_over = |timeout_s: u16| timeout_s != 0 && passed_s >= u64::from(timeout_s);
            // If both are over, the earlier one counts, and the hard one of two equal ones.
            let is_first = rule.hard_timeout_s <= rule.idle_timeout_s;
            match (is_over(rule.hard_timeout_s), is_over(rule.idle_timeout_s)) {
                (false, false) => None,
                (true, is_idle) if is_first || !is_idle => Some((rule.number, HARD_TIMEOUT)),
                _ => Some((rule.number, IDLE_TIMEOUT)),
            }
        };
        let ended: Vec<(u64, u8)> = self.rules.bare().filter_map(ended).collect();
        ended.into_iter().for_each(|(number, reason)| self.end_if_empty(number, reason, turn));
    }

    /// Tells the controllers that a rule is gone.
    pub(crate) fn tell_removed(&self, leaver: &Leaver, turn: &mut Turn<'_>) {
        for (controller, it, version) in self.open() {
            let is_v10 = version == Version::V1_0;
            // 1.0 has no reason for a deleted group.
            let reason = if is_v10 && leaver.reason == GROUP_DELETE { DELETE } else { leaver.reason };
            if it.hears_flow_removed(reason) {
                let body = Body::FlowRemoved(describe(leaver, reason));
                self.tell(controller, &Message { version, xid: 0, body }, turn);
            }
        }
    }
}

fn describe(leaver: &Leaver, reason: u8) -> FlowRemoved {
    let rule = &leaver.rule;
    FlowRemoved {
        matching: rule.matching.clone(),
        cookie: rule.cookie,
        priority: rule.priority,
        reason,
        table_id: 0,
        duration_s: leaver.lived.0,
        duration_ns: leaver.lived.1,
        idle_timeout_s: rule.idle_timeout_s,
        hard_timeout_s: rule.hard_timeout_s,
        packet_count: rule.gone.0,
        byte_count: rule.gone.1,
    }
}
