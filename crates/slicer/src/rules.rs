//! Flow mods of a tenant: its rules, and the flow mods that they become in the physical switch.
//!
//! ```text
//!   flow mod of the tenant ──> its table of rules ──> pieces ──> flow mods of the physical switch, one for each change of a piece
//! ```
//!
//! Deletes and modifies are resolved in the tenant's own table. Only strict changes of single pieces reach the physical switch. Each piece lies
//! within the flowspace, and no two rules have the same one. So a change cannot reach another rule.
//!
//! In: a flow mod. Out: commands, or the refusal. A refused flow mod changed nothing.

use crate::controller::Asker;
use crate::leaving::Leaver;
use crate::output::Command;
use crate::pending::{Asked, Sender};
use crate::refusal::*;
use crate::rule_table::{Before, Idle, Key, Rule, RulePiece, Selection, key_of, physical_priority, weight};
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use openflow::Version;
use openflow::message::*;
use std::sync::Arc;

/// Every flag of 1.3.
const ALL_FLAGS: u16 = 0x1f;
/// 1.0's OFPFF_EMERG, the same bit as 1.3's OFPFF_RESET_COUNTS.
const EMERGENCY_V10: u16 = FLOW_MOD_RESET_COUNTS;
/// OFPRR_DELETE.
pub(crate) const REMOVED_BY_DELETE: u8 = 2;

/// A flow mod with its sender.
pub(crate) struct Wish<'a> {
    pub(crate) asker: Asker,
    /// The message's bytes.
    pub(crate) bytes: &'a [u8],
    pub(crate) flow_mod: FlowMod,
}

impl Wish<'_> {
    fn sender(&self) -> Sender {
        Sender::new(self.asker, self.bytes)
    }

    /// The rules that it means. A modify ignores ports and groups (1.3.5, 6.4).
    fn selection(&self) -> Selection<'_> {
        let it = &self.flow_mod;
        let is_delete = matches!(it.command, FLOW_DELETE | FLOW_DELETE_STRICT);
        let is_strict = matches!(it.command, FLOW_MODIFY_STRICT | FLOW_DELETE_STRICT);
        Selection {
            matching: &it.matching,
            strict: is_strict.then_some(self.flow_mod.priority),
            cookie: it.cookie,
            cookie_mask: if self.asker.version == Version::V1_0 { 0 } else { it.cookie_mask },
            out_port: if is_delete { it.out_port } else { flow::PortNo::ANY },
            out_group: if is_delete { it.out_group } else { GROUP_ANY },
        }
    }
}

impl VirtualSwitch {
    /// Carries out a flow mod (1.3.5, 6.4; 1.0, 4.6).
    pub(crate) fn on_flow_mod(&mut self, wish: &Wish<'_>, turn: &mut Turn<'_>) -> Obeyed {
        check_flags(&wish.flow_mod, wish.asker.version)?;
        match wish.flow_mod.command {
            FLOW_ADD => self.add(wish, turn)?,
            FLOW_MODIFY | FLOW_MODIFY_STRICT => self.modify(wish, turn)?,
            FLOW_DELETE | FLOW_DELETE_STRICT => self.delete(wish, turn)?,
            other => return Err(Refusal::new(FLOW_MOD_COMMAND, format!("there is no command {other}"))),
        }
        self.counters.flow_mods += 1;
        Ok(())
    }

    fn add(&mut self, wish: &Wish<'_>, turn: &mut Turn<'_>) -> Obeyed {
        let it = &wish.flow_mod;
        check_table(it.table_id)?;
        let priority = wish.flow_mod.priority;
        let key = key_of(priority, &it.matching);
        if self.is_there(&key, wish) {
            self.install_again(&key, wish, turn);
            return Ok(());
        }
        let pieces = self.lay_out(priority, &it.matching, &it.instructions)?;
        let replaced = self.rules.find_key(&key);
        let overlaps = || replaced.or_else(|| self.rules.overlapping(priority, &it.matching)).is_some();
        if it.flags & FLOW_MOD_CHECK_OVERLAP != 0 && overlaps() {
            return Err(Refusal::new(OVERLAP, "it overlaps another rule of its priority"));
        }
        self.check_priority(priority, &it.matching)?;
        self.check_places([(replaced.map(|rule| rule.number), &pieces[..])])?;
        let others = self.rules.taken() - replaced.map_or(0, |rule| weight(&rule.pieces));
        self.check_room(others + weight(&pieces), turn)?;
        let rule = self.rule_of(wish, priority, pieces, turn.now_ms);
        self.install(key, rule, wish, turn);
        Ok(())
    }

    /// Whether the rule is there already with the same instructions. Its pieces were checked when it came, and again with each change of a port
    /// or of another rule. A controller adds the same rule again if its packets were on their way before the rule was in the switch.
    fn is_there(&self, key: &[u8], wish: &Wish<'_>) -> bool {
        let it = &wish.flow_mod;
        it.flags & FLOW_MOD_CHECK_OVERLAP == 0
            && self
                .rules
                .find_key(key)
                .is_some_and(|there| there.instructions == it.instructions && there.by == wish.asker.version)
    }

    /// Puts a rule in the place of itself. It does what [`VirtualSwitch::install`] would do, and keeps the pieces.
    fn install_again(&mut self, key: &[u8], wish: &Wish<'_>, turn: &mut Turn<'_>) {
        let it = &wish.flow_mod;
        let number = self.rules.next_number();
        let resets = resets(wish.asker.version, it.flags);
        let Some(rule) = self.rules.renumber(key, number) else { return };
        // The match may be written in another form.
        rule.matching.copy_from(&it.matching);
        (rule.cookie, rule.flags) = (it.cookie, it.flags);
        (rule.idle_timeout_s, rule.hard_timeout_s) = (it.idle_timeout_s, it.hard_timeout_s);
        (rule.at_ms, rule.modified) = (turn.now_ms, 0);
        if resets {
            rule.gone = (0, 0);
        }
        let is_open = |piece: &&mut RulePiece| piece.idle != Idle::Closed;
        rule.pieces.iter_mut().filter(is_open).for_each(|piece| piece.idle = Idle::Unknown);
        self.order_pieces(number, resets, wish, turn);
    }

    /// Adds all pieces of a rule that are to be in the physical switch.
    fn order_pieces(&mut self, number: u64, resets: bool, wish: &Wish<'_>, turn: &mut Turn<'_>) {
        let sender = wish.sender();
        let count = self.rules.get(number).map_or(0, |rule| rule.pieces.len());
        for place in 0..count {
            let Some(rule) = self.rules.get(number) else { return };
            if let Some(piece) = rule.pieces.get(place).filter(|piece| piece.idle.is_in_switch()) {
                let flow_mod = added(rule, piece, resets, self.on(), turn.now_ms);
                let asked = Asked::Add { sender: Some(sender.clone()), rule: number };
                self.order(Command::FlowMod(flow_mod), Some(asked), turn);
            }
        }
    }

    /// Whether the slice may have this number of pieces.
    fn check_room(&mut self, pieces: usize, turn: &mut Turn<'_>) -> Obeyed {
        if self.may_hold(pieces, turn) {
            return Ok(());
        }
        let why = format!("the slice may have {} rules in this switch", self.allowance.rules_max());
        Err(Refusal::new(TABLE_FULL, why))
    }

    fn rule_of(&mut self, wish: &Wish<'_>, priority: u16, pieces: Vec<RulePiece>, now_ms: u64) -> Rule {
        let it = &wish.flow_mod;
        Rule {
            number: self.rules.next_number(),
            priority,
            matching: it.matching.clone(),
            cookie: it.cookie,
            idle_timeout_s: it.idle_timeout_s,
            hard_timeout_s: it.hard_timeout_s,
            flags: it.flags,
            instructions: it.instructions.clone(),
            by: wish.asker.version,
            pieces,
            at_ms: now_ms,
            gone: (0, 0),
            modified: 0,
        }
    }

    /// Puts a new rule in, in place of one with the same priority and match.
    fn install(&mut self, key: Key, mut rule: Rule, wish: &Wish<'_>, turn: &mut Turn<'_>) {
        let resets = resets(rule.by, rule.flags);
        if let Some(before) = self.rules.find_key(&key)
            && !resets
        {
            rule.gone = before.gone;
        }
        let number = rule.number;
        let replaced = self.rules.insert(key, rule);
        self.order_pieces(number, resets, wish, turn);
        let Some(replaced) = replaced else { return };
        let Some(rule) = self.rules.get(number) else { return };
        let is_kept = |piece: &RulePiece| {
            rule.pieces.iter().any(|new| new.idle.is_in_switch() && new.matching == piece.matching)
        };
        let stale: Vec<FlowMod> = replaced
            .pieces
            .iter()
            .filter(|piece| piece.idle.is_in_switch() && !is_kept(piece))
            .map(|piece| piece_mod(&replaced, piece, FLOW_DELETE_STRICT, turn.now_ms))
            .collect();
        stale.into_iter().for_each(|flow_mod| self.order(Command::FlowMod(flow_mod), None, turn));
    }

    fn modify(&mut self, wish: &Wish<'_>, turn: &mut Turn<'_>) -> Obeyed {
        let it = &wish.flow_mod;
        check_table(it.table_id)?;
        let meant = self.rules.select(&wish.selection());
        // If a modify finds no rule, 1.0 adds it (1.0, 4.6) and 1.3 does nothing.
        if meant.is_empty() && wish.asker.version == Version::V1_0 {
            return self.add(wish, turn);
        }
        if meant.is_empty() {
            // The actions are checked all the same.
            return self.lay_out(wish.flow_mod.priority, &it.matching, &it.instructions).map(|_| ());
        }
        let mut laid = Vec::with_capacity(meant.len());
        let (before, mut all) = (self.rules.taken(), self.rules.taken());
        for number in meant {
            let Some(rule) = self.rules.get(number) else { continue };
            let pieces = self.lay_out(rule.priority, &rule.matching, &it.instructions)?;
            all = all - weight(&rule.pieces) + weight(&pieces);
            laid.push((number, pieces));
        }
        self.check_places(laid.iter().map(|(number, pieces)| (Some(*number), &pieces[..])))?;
        if all > before {
            self.check_room(all, turn)?;
        }
        let sender = wish.sender();
        for (number, pieces) in laid {
            let before = self.rules.change(number, |rule| {
                let before =
                    Before { instructions: rule.instructions.clone(), by: rule.by, cookie: rule.cookie };
                rule.modified = rule.modified.wrapping_add(1);
                rule.instructions.clone_from(&it.instructions);
                rule.by = wish.asker.version;
                // As in Open vSwitch: 1.0 changes the cookie as well.
                if wish.asker.version == Version::V1_0 {
                    rule.cookie = it.cookie;
                }
                (rule.modified, Arc::new(before))
            });
            let Some((modified, before)) = before else { continue };
            let sender = sender.clone();
            let asked = Asked::Modify { sender, rule: number, modified, before };
            let resets = wish.asker.version != Version::V1_0 && it.flags & FLOW_MOD_RESET_COUNTS != 0;
            self.relay(number, pieces, Some(&asked), resets, turn);
        }
        Ok(())
    }

    fn delete(&mut self, wish: &Wish<'_>, turn: &mut Turn<'_>) -> Obeyed {
        if wish.flow_mod.table_id != TABLE_ALL {
            check_table(wish.flow_mod.table_id)?;
        }
        flow::canonical::check_prerequisites(&wish.flow_mod.matching)?;
        for number in self.rules.select(&wish.selection()) {
            self.take_out(number, REMOVED_BY_DELETE, Some(&wish.sender()), turn);
        }
        if wish.selection().means_all() {
            self.delete_leftovers(turn);
        }
        Ok(())
    }

    /// Deletes a rule from the physical switch. The tenant is told after the last piece, if it asked for that.
    pub(crate) fn take_out(&mut self, number: u64, reason: u8, sender: Option<&Sender>, turn: &mut Turn<'_>) {
        let Some(rule) = self.rules.remove(number) else { return };
        let there: Vec<&RulePiece> = rule.pieces.iter().filter(|piece| piece.idle.is_in_switch()).collect();
        // A piece about which the switch is asked was deleted already; its end is still reported.
        let pieces_left = there.len();
        for piece in there.iter().filter(|piece| piece.idle != Idle::Asked) {
            let flow_mod = piece_mod(&rule, piece, FLOW_DELETE_STRICT, turn.now_ms);
            self.order(Command::FlowMod(flow_mod), sender.cloned().map(Asked::Change), turn);
        }
        let lived = lived(turn.now_ms.saturating_sub(rule.at_ms));
        self.part(Leaver { rule: *rule, reason, pieces_left, lived }, turn);
    }

    /// A rule leaves: its end is told when the counters are known.
    pub(crate) fn part(&mut self, leaver: Leaver, turn: &mut Turn<'_>) {
        if !leaver.rule.tells_its_end() {
            return;
        }
        if leaver.pieces_left == 0 {
            return self.tell_removed(&leaver, turn);
        }
        if let Some(oldest) = self.leaving.add(leaver) {
            self.counters.ends_told_early += 1;
            self.tell_removed(&oldest, turn);
        }
    }

    /// Changes the pieces of a rule in the physical switch to these. Returns whether the switch gets a command.
    pub(crate) fn relay(
        &mut self,
        number: u64,
        pieces: Vec<RulePiece>,
        asked: Option<&Asked>,
        resets: bool,
        turn: &mut Turn<'_>,
    ) -> bool {
        let Some(rule) = self.rules.get(number) else { return false };
        let mut mods = Vec::new();
        let before = |piece: &RulePiece| {
            let there = |old: &&RulePiece| old.matching == piece.matching && old.idle.is_in_switch();
            rule.pieces.iter().find(there)
        };
        let mut laid = Vec::with_capacity(pieces.len());
        for mut piece in pieces {
            if piece.idle == Idle::Closed {
                laid.push(piece);
                continue;
            }
            let old = before(&piece);
            piece.idle = old.map_or(Idle::Unknown, |old| old.idle);
            match old {
                None => mods.push(piece_mod(rule, &piece, FLOW_ADD, turn.now_ms)),
                Some(old) if old.instructions != piece.instructions || resets => {
                    // 1.0 resets counters only by another add.
                    let is_readded = resets && self.on() == Version::V1_0;
                    let command = if is_readded { FLOW_ADD } else { FLOW_MODIFY_STRICT };
                    let mut change = piece_mod(rule, &piece, command, turn.now_ms);
                    change.flags |= if resets && !is_readded { FLOW_MOD_RESET_COUNTS } else { 0 };
                    mods.push(change);
                }
                Some(_) => {}
            }
            laid.push(piece);
        }
        let is_laid = |old: &RulePiece| {
            laid.iter().any(|piece: &RulePiece| piece.idle.is_in_switch() && piece.matching == old.matching)
        };
        let stale = rule.pieces.iter().filter(|old| old.idle.is_in_switch() && !is_laid(old));
        mods.extend(stale.map(|old| piece_mod(rule, old, FLOW_DELETE_STRICT, turn.now_ms)));
        self.rules.lay(number, laid);
        if resets {
            self.rules.change(number, |rule| rule.gone = (0, 0));
        }
        let has_changed = !mods.is_empty();
        for flow_mod in mods {
            let asked = match (asked, flow_mod.command) {
                (None, FLOW_ADD) => Some(Asked::Add { sender: None, rule: number }),
                (asked, _) => asked.cloned(),
            };
            self.order(Command::FlowMod(flow_mod), asked, turn);
        }
        has_changed
    }

    /// The pieces of a rule that the table has.
    pub(crate) fn lay_again(&self, rule: &Rule) -> Result<Vec<RulePiece>, Refusal> {
        let pieces = self.lay_out(rule.priority, &rule.matching, &rule.instructions)?;
        self.check_places([(Some(rule.number), &pieces[..])])?;
        Ok(pieces)
    }

    /// Lays all rules again, because ports changed. A rule that can no longer be laid is deleted. Returns how many rules changed in the
    /// switch.
    pub(crate) fn relay_rules(&mut self, turn: &mut Turn<'_>) -> usize {
        let numbers: Vec<u64> = self.rules.iter().map(|rule| rule.number).collect();
        let mut changed = 0;
        for number in numbers {
            let Some(rule) = self.rules.get(number) else { continue };
            match self.lay_again(rule) {
                Ok(pieces) => changed += usize::from(self.relay(number, pieces, None, false, turn)),
                Err(_) => {
                    self.take_out(number, REMOVED_BY_DELETE, None, turn);
                    changed += 1;
                }
            }
        }
        changed
    }
}

/// Seconds and nanoseconds.
pub(crate) fn lived(passed_ms: u64) -> (u32, u32) {
    let nanoseconds = (passed_ms % 1_000) as u32 * 1_000_000;
    (u32::try_from(passed_ms / 1_000).unwrap_or(u32::MAX), nanoseconds)
}

/// Whether an add sets the counters to 0. In 1.3, a rule in another's place goes on counting, unless its flow mod says otherwise
/// (1.3.5, 6.4).
fn resets(by: Version, flags: u16) -> bool {
    by == Version::V1_0 || flags & FLOW_MOD_RESET_COUNTS != 0
}

/// The flow mod that adds a piece to a switch of this version.
fn added(rule: &Rule, piece: &RulePiece, resets: bool, on: Version, now_ms: u64) -> FlowMod {
    let mut flow_mod = piece_mod(rule, piece, FLOW_ADD, now_ms);
    // 1.0 always resets.
    flow_mod.flags |= if resets && on != Version::V1_0 { FLOW_MOD_RESET_COUNTS } else { 0 };
    flow_mod
}

/// The flow mod for a change of one piece.
pub(crate) fn piece_mod(rule: &Rule, piece: &RulePiece, command: u8, now_ms: u64) -> FlowMod {
    let is_delete = command == FLOW_DELETE_STRICT;
    // Each piece reports its end, also if the tenant did not ask for that: a piece that expires may have to be put back.
    let fields = FlowModFields {
        cookie: rule.number,
        command,
        priority: physical_priority(rule.priority),
        idle_timeout_s: if is_delete { 0 } else { rule.idle_timeout_s },
        hard_timeout_s: if is_delete { 0 } else { hard_timeout_left_s(rule, now_ms) },
        flags: if is_delete { 0 } else { FLOW_MOD_SEND_FLOW_REMOVED },
        ..FlowModFields::default()
    };
    let instructions = if is_delete { Vec::new() } else { piece.instructions.clone() };
    fields.with(piece.matching.clone(), instructions)
}

/// The rest of a hard time-out, for a piece that is added later than its rule. At least a second: then it expires next.
fn hard_timeout_left_s(rule: &Rule, now_ms: u64) -> u16 {
    if rule.hard_timeout_s == 0 {
        return 0;
    }
    let passed_s = u16::try_from(now_ms.saturating_sub(rule.at_ms) / 1_000).unwrap_or(u16::MAX);
    rule.hard_timeout_s.saturating_sub(passed_s).max(1)
}

/// The virtual switch has one table.
fn check_table(table_id: u8) -> Obeyed {
    if table_id == 0 {
        return Ok(());
    }
    Err(Refusal::new(FLOW_MOD_TABLE_ID, format!("the switch of a slice has no table {table_id}")))
}

fn check_flags(wanted: &FlowMod, version: Version) -> Obeyed {
    if version == Version::V1_0 && wanted.flags & EMERGENCY_V10 != 0 {
        let ends = wanted.idle_timeout_s != 0 || wanted.hard_timeout_s != 0;
        let error = if ends { FLOW_MOD_TIMEOUT } else { TABLE_FULL };
        return Err(Refusal::new(error, "there is no table for emergencies"));
    }
    let unknown = wanted.flags & !ALL_FLAGS;
    if unknown != 0 {
        return Err(Refusal::new(FLOW_MOD_FLAGS, format!("flags {unknown:#x} do not exist")));
    }
    Ok(())
}
