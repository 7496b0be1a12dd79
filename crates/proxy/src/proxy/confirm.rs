//! Answers barriers, and asks the switch to confirm what it got.
//!
//! The model says when the target answers a barrier. By then the switch must have carried out what it got. So the proxy sends barriers of
//! its own while a barrier of the controller waits, and it answers when both are there. The place of an answer among messages for the switch has a
//! barrier, too: what the switch says of later messages comes behind it.

use openflow::write;

use super::Proxy;
use crate::commands::Commands;
use crate::own::Own;

impl Proxy {
    /// The target answers a barrier with this transaction id.
    pub(super) fn answer_barrier(&mut self, xid: u32, out: &mut Commands) {
        self.barriers.on_answer(xid);
        self.confirm_here(out);
        self.answer_confirmed(out);
    }

    fn answer_confirmed(&mut self, out: &mut Commands) {
        let Some(version) = self.version else { return };
        while let Some((xid, later)) = self.barriers.take_confirmed() {
            write::barrier_reply(version, xid, &mut out.to_controller);
            out.to_controller.extend_from_slice(&later);
        }
    }

    /// Asks the switch to confirm what it got, while a barrier waits for that or much is not confirmed.
    pub(super) fn confirm_ahead(&mut self, out: &mut Commands) {
        if self.is_full() {
            let behind = self.barriers.question_ahead();
            self.ask_to_confirm(behind, out);
        }
    }

    /// Asks the switch while much is not confirmed. One message of the controller may have become many.
    pub(super) fn confirm_ahead_of_much(&mut self, out: &mut Commands) {
        if self.is_full() {
            let behind = self.barriers.question_of_much();
            self.ask_to_confirm(behind, out);
        }
    }

    /// Asks the switch to confirm all that it got.
    pub(super) fn confirm_here(&mut self, out: &mut Commands) {
        let behind = self.barriers.question_here();
        self.ask_to_confirm(behind, out);
    }

    fn ask_to_confirm(&mut self, behind: Option<u64>, out: &mut Commands) {
        if let (Some(version), Some(behind)) = (self.version, behind) {
            let xid = self.own.await_answer(Own::Barrier(behind));
            write::barrier_request(version, xid, &mut out.to_switch);
        }
    }

    /// The switch has confirmed all messages up to this one.
    pub(super) fn on_confirmed(&mut self, behind: u64, out: &mut Commands) {
        self.barriers.on_confirmed(behind);
        self.answer_confirmed(out);
        self.confirm_ahead(out);
    }

    /// Whether nothing may go to the switch before it has taken or confirmed what it got.
    pub fn waits_for_switch(&self) -> bool {
        let knows_meter = self.meter_sent.is_none_or(|message| self.barriers.has_confirmed(message));
        self.is_switch_behind || self.is_full() && (!knows_meter || self.barriers.is_full())
    }

    /// How many questions of the proxy the switch has answered, if it has not answered all. It owes one more then.
    pub fn answers_before_owed(&self) -> Option<u64> {
        self.barriers.answers_before_owed()
    }
}
