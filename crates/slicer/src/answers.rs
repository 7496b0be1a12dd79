//! The kernel's answers to commands: receipts, and errors of the physical switch.
//!
//! A piece that cannot be added takes its whole rule back: a tenant's rule is there completely, or not at all. The controller that sent it
//! gets one error, with its own transaction id and bytes.
//!
//! In: answers. Out: errors and barrier replies for controllers, commands that take a rule back.

use crate::controller::Asker;
use crate::event::Outcome;
use crate::output::Command;
use crate::pending::{Asked, Sender};
use crate::refusal::{FLOW_MOD_EPERM, FLOW_MOD_UNKNOWN, GROUP_EXISTS, METER_EXISTS, REQUEST_EPERM};
use crate::rule_table::{Before, Idle, Rule};
use crate::rules::{REMOVED_BY_DELETE, piece_mod};
use crate::virtual_switch::{Turn, VirtualSwitch};
use flow::ErrorCode;
use openflow::Body;
use openflow::message::{FLOW_DELETE_STRICT, FlowMod};

/// The kernel's answer to a command that can be ordered again later.
const LACKS_ROOM: Outcome = Outcome::Refused(abi::NO_ROOM);

impl VirtualSwitch {
    /// A command ended.
    pub(crate) fn on_answer(&mut self, ticket: u64, outcome: Outcome, turn: &mut Turn<'_>) {
        let Some(asked) = self.pending.take(ticket) else { return };
        match (asked, error_of(outcome)) {
            (Asked::Modify { sender, rule, modified, before }, Some(error)) => {
                if self.restore(rule, modified, &before, turn) {
                    self.refuse(sender.asker, error, &sender.beginning, turn);
                }
            }
            (Asked::GroupAgain(id), _) => self.on_group_again(id, outcome, turn),
            (Asked::MeterAgain(id), _) => self.on_meter_again(id, outcome, turn),
            (Asked::Group { sender, id }, Some(GROUP_EXISTS)) if self.replace_group(id, &sender, turn) => {}
            (Asked::Meter { sender, id }, Some(METER_EXISTS)) if self.replace_meter(id, &sender, turn) => {}
            (Asked::Group { sender, id }, error) => {
                if error.is_some() {
                    self.groups.remove(&id);
                    self.unsaved.groups.note(id);
                }
                self.end_claim(sender, error, turn);
            }
            (Asked::Meter { sender, id }, error) => {
                if error.is_some() {
                    self.meters.remove(&id);
                    self.unsaved.meters.note(id);
                }
                self.end_claim(sender, error, turn);
            }
            (Asked::Shaper { port, is_modified }, it) => self.on_shaper_answer(port, is_modified, it, turn),
            (Asked::ModifyGroup { sender, id, before }, Some(error)) => {
                self.restore_group(id, *before);
                self.refuse(sender.asker, error, &sender.beginning, turn);
            }
            (Asked::ModifyMeter { sender, id, before }, Some(error)) => {
                self.restore_meter(id, *before);
                self.refuse(sender.asker, error, &sender.beginning, turn);
            }
            (Asked::Leftovers, _) => self.know_leftovers(false, turn),
            (Asked::Withdrawal, error) => self.on_withdrawal_answer(error, outcome == LACKS_ROOM, turn),
            (Asked::Barrier(asker), _) => self.end_barrier(asker, turn),
            (Asked::Add { sender, rule }, Some(error)) => {
                self.take_back(rule, turn, |switch, turn| {
                    if let Some(Sender { asker, beginning }) = sender {
                        switch.refuse(asker, error, &beginning, turn);
                    }
                });
            }
            (
                Asked::Change(Sender { asker, beginning }) | Asked::PacketOut(Sender { asker, beginning }),
                Some(error),
            ) => {
                self.refuse(asker, error, &beginning, turn);
            }
            // The last part ends the question. Only the last part of an answer says that it is the last.
            (Asked::Statistics { sender: Sender { asker, beginning }, .. }, _) => {
                let error = if let Outcome::Failed(error) = outcome { error } else { REQUEST_EPERM };
                self.refuse(asker, error, &beginning, turn);
            }
            // It is as it was ordered.
            (_, None) => {}
        }
    }

    fn end_barrier(&mut self, asker: Asker, turn: &mut Turn<'_>) {
        self.answer(asker, Body::BarrierReply, turn);
        self.tell_first_labels(asker, turn);
    }

    /// The physical switch has a group or meter, or refused it. The messages that waited for it are carried out.
    fn end_claim(&mut self, sender: Sender, error: Option<ErrorCode>, turn: &mut Turn<'_>) {
        if let Some(error) = error {
            self.refuse(sender.asker, error, &sender.beginning, turn);
        }
        self.end_one_claim(turn);
    }

    /// One claim less is open. What waited for it goes on.
    pub(crate) fn end_one_claim(&mut self, turn: &mut Turn<'_>) {
        self.claims = self.claims.saturating_sub(1);
        self.end_recall(turn);
        self.carry_out_held(turn);
        self.go_on_withdrawing(turn);
    }

    /// Carries out the messages that waited, if nothing is open any more.
    pub(crate) fn carry_out_held(&mut self, turn: &mut Turn<'_>) {
        while self.claims == 0
            && !self.recall.is_open()
            && let Some(message) = self.held.take()
        {
            let serial = self.controllers.get(message.controller).map(|it| it.serial);
            if serial == Some(message.serial) {
                self.on_message(message.controller, &message.bytes, turn);
            }
        }
    }

    /// Makes a rule what it was before a modify, of which a piece failed. Returns false if that was done already, or the rule changed
    /// since.
    fn restore(&mut self, number: u64, modified: u32, before: &Before, turn: &mut Turn<'_>) -> bool {
        let restored = self.rules.change(number, |rule| {
            if rule.modified != modified {
                return None;
            }
            rule.modified = rule.modified.wrapping_add(1);
            rule.instructions.clone_from(&before.instructions);
            (rule.by, rule.cookie) = (before.by, before.cookie);
            Some(())
        });
        let Some(rule) = restored.flatten().and_then(|()| self.rules.get(number)) else { return false };
        match self.lay_again(rule) {
            Ok(pieces) => _ = self.relay(number, pieces, None, false, turn),
            Err(_) => self.take_out(number, REMOVED_BY_DELETE, None, turn),
        }
        true
    }

    /// Deletes a rule of which a piece failed, and says so once.
    fn take_back(&mut self, number: u64, turn: &mut Turn<'_>, say: impl FnOnce(&mut Self, &mut Turn<'_>)) {
        let Some(rule) = self.rules.remove(number) else { return };
        for flow_mod in deletes(&rule, turn.now_ms) {
            self.order(Command::FlowMod(flow_mod), None, turn);
        }
        say(self, turn);
    }
}

fn deletes(rule: &Rule, now_ms: u64) -> Vec<FlowMod> {
    let there = rule.pieces.iter().filter(|piece| piece.idle.is_in_switch() && piece.idle != Idle::Asked);
    there.map(|piece| piece_mod(rule, piece, FLOW_DELETE_STRICT, now_ms)).collect()
}

/// The error for a controller. The kernel's refusals have one if OpenFlow has one for the reason.
pub(crate) fn error_of(outcome: Outcome) -> Option<ErrorCode> {
    /// OFPET_EXPERIMENTER: the kernel's own errors.
    const EXPERIMENTER: u16 = 0xffff;
    match outcome {
        Outcome::Done | Outcome::Unknown => None,
        Outcome::Failed(error) => Some(error),
        Outcome::Refused(ErrorCode { kind: 0, code: 0 }) => Some(FLOW_MOD_EPERM),
        Outcome::Refused(ErrorCode { kind: EXPERIMENTER, .. }) => Some(FLOW_MOD_UNKNOWN),
        Outcome::Refused(error) => Some(error),
    }
}
