//! Answers barriers, and asks the switch to confirm what it got.
//!
//! The model says when the target answers a barrier. By then the switch must have carried out what it got. So the proxy sends barriers of
//! its own while a barrier of the controller waits, and it answers when both are there.

use openflow::write;

use super::Proxy;
use crate::commands::Commands;
use crate::own::Own;

impl Proxy {
    /// The target answers a barrier with this transaction id.
    pub(super) fn answer_barrier(&mut self, xid: u32, out: &mut Commands) {
        self.barriers.on_answer(xid);
        self.answer_confirmed(out);
    }

    fn answer_confirmed(&mut self, out: &mut Commands) {
        let Some(version) = self.version else { return };
        while let Some(xid) = self.barriers.take_confirmed() {
            write::barrier_reply(version, xid, &mut out.to_controller);
        }
    }

    /// Asks the switch to confirm what it got, while a barrier waits for that.
    pub(super) fn confirm_ahead(&mut self, out: &mut Commands) {
        if let (Some(version), true) = (self.version, self.is_full())
            && let Some(behind) = self.barriers.question()
        {
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
}
