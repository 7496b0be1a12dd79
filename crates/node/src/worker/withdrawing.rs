//! Deletes what zones lost and cannot delete themselves, from switches.
//!
//! In: decisions of `kernel::withdrawals`. Out: deletes by the node itself, with a barrier behind each batch, and the numbers of the withdrawals that
//! are done. It decides nothing.

use super::Worker;
use crate::messages::FromWorker;
use abi::command::{Command, FlowMod, GroupMod, MeterMod, What};
use flow::DatapathId;
use kernel::Removal;
use kernel::own_messages::WITHDRAWAL_TICKET;
use southbound::{Refused, Tag};

/// OFPFC_DELETE_STRICT.
const DELETE_STRICT: u8 = 4;
/// OFPGC_DELETE and OFPMC_DELETE.
const DELETE: u16 = 2;

impl Worker {
    /// Sends the next deletes, and the barrier. The session may have no room for them: then they are sent again later. If it is about to end, the switch gets
    /// them when it connects again.
    pub(super) fn withdraw(&mut self, datapath: DatapathId) {
        let batch = self.dispatch.kernel.next_withdrawals(datapath);
        if batch.is_empty() {
            return;
        }
        tracing::info!(%datapath, "{} rules, groups and meters are deleted: their slices have lost them", batch.len());
        let mut whats = batch.iter().map(in_command);
        let sent = whats.try_for_each(|what| self.send_withdrawal(datapath, what, false));
        if let Err(refused) = sent.and_then(|()| self.send_withdrawal(datapath, What::Barrier, true)) {
            let is_due_again = self.dispatch.kernel.on_withdrawals_not_sent(datapath, self.now_ms);
            let until = if is_due_again { "the next try" } else { "the switch connects again" };
            tracing::warn!(%datapath, "rules that a slice has lost stay until {until}: {refused}");
        }
    }

    fn send_withdrawal(
        &mut self,
        datapath: DatapathId,
        what: What<'_>,
        wants_receipt: bool,
    ) -> Result<(), Refused> {
        let command = Command { datapath, ticket: WITHDRAWAL_TICKET, wants_receipt, what };
        let cookie = match &command.what {
            What::FlowMod(rule) => rule.cookie,
            _ => 0,
        };
        self.southbound.send(datapath, &command, cookie, Tag::of_node(WITHDRAWAL_TICKET))
    }

    /// Tells the control thread which withdrawals are done.
    pub(super) fn tell_withdrawn(&mut self) {
        let done = self.dispatch.kernel.take_withdrawn();
        if !done.is_empty() {
            self.unsent.push(FromWorker::Withdrawn(done));
        }
    }
}

fn in_command(removal: &Removal) -> What<'_> {
    match removal {
        Removal::Rule { table_id, priority, cookie, cookie_mask, matching } => What::FlowMod(FlowMod {
            command: DELETE_STRICT,
            cookie: *cookie,
            cookie_mask: *cookie_mask,
            table_id: *table_id,
            priority: *priority,
            matching,
            ..FlowMod::ADD
        }),
        Removal::Group(group_id) => {
            What::GroupMod(GroupMod { command: DELETE, group_type: 0, group_id: *group_id, buckets: &[] })
        }
        Removal::Meter(meter_id) => {
            What::MeterMod(MeterMod { command: DELETE, flags: 0, meter_id: *meter_id, bands: &[] })
        }
    }
}
