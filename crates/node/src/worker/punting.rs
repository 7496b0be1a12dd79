//! The kernel's own table-miss rules at a switch, and their meter.
//!
//! In: the kernel's wanted rule and meter steps. Out: flow mods, meter mods and questions by the node itself.
//! `kernel::metering` decides what to send and when.

use super::Worker;
use abi::command::{Command, FlowMod, MeterMod, StatsRequest, What};
use flow::canonical::InstructionWriter;
use flow::{DatapathId, PortNo};
use kernel::Metering;
use kernel::own_messages::{MeterStep, MeterWanted, RULE_TICKET, later_rule_ticket};
use southbound::{Refused, Tag};

/// OFPMP_METER and OFPMP_METER_FEATURES.
const METER: u16 = 9;
const METER_FEATURES: u16 = 11;

/// `ofp_meter_mod_command`.
const METER_ADD: u16 = 0;
const METER_MODIFY: u16 = 1;

/// OFPFC_DELETE_STRICT.
const DELETE_STRICT: u8 = 4;

/// OFPFF_SEND_FLOW_REM: deleting the meter deletes the rule, and the kernel must learn of it. Of a later table's rule, it must
/// also learn that another controller has deleted it.
const SEND_FLOW_REM: u16 = 1;

impl Worker {
    /// Sends the kernel's own table-miss rule to a switch.
    pub(super) fn punt(&mut self, datapath: DatapathId) {
        let kernel = &self.dispatch.kernel;
        if kernel.metering(datapath).is_none() {
            // The switch disconnected first.
            return;
        }
        let meter = kernel.punt_meter(datapath);
        let instructions = instructions(meter, self.southbound.miss_send_len());
        let rule = FlowMod { instructions: &instructions, ..FlowMod::ADD };
        let (what, ticket) = match meter {
            Some(_) => (What::FlowMod(FlowMod { flags: SEND_FLOW_REM, ..rule }), RULE_TICKET),
            None => (What::FlowMod(rule), 0),
        };
        if let Err(refused) = self.tell_switch(datapath, ticket, what) {
            tracing::warn!(%datapath, "the table-miss rule could not be sent to the switch: {refused}");
            if meter.is_some() {
                self.step_was_not_sent(datapath, &refused);
            }
        }
    }

    /// Sends the table-miss rule of a later table.
    pub(super) fn punt_from(&mut self, datapath: DatapathId, table_id: u8) {
        let meter = self.dispatch.kernel.later_punt_meter(datapath, table_id);
        let instructions = instructions(meter, self.southbound.miss_send_len());
        let rule = FlowMod { table_id, flags: SEND_FLOW_REM, instructions: &instructions, ..FlowMod::ADD };
        let ticket = meter.map_or(0, |_| later_rule_ticket(table_id));
        if let Err(refused) = self.tell_switch(datapath, ticket, What::FlowMod(rule)) {
            tracing::warn!(%datapath, table_id, "the table-miss rule could not be sent to the switch: {refused}");
        }
    }

    /// Deletes the table-miss rule of a later table.
    pub(super) fn end_punt_from(&mut self, datapath: DatapathId, table_id: u8) {
        let (cookie, cookie_mask) = (kernel::OWN_COOKIE, u64::MAX);
        let rule = FlowMod { command: DELETE_STRICT, cookie, cookie_mask, table_id, ..FlowMod::ADD };
        if let Err(refused) = self.tell_switch(datapath, 0, What::FlowMod(rule)) {
            tracing::warn!(%datapath, table_id, "the table-miss rule could not be deleted: {refused}");
        }
    }

    /// Takes a step to set up the meter.
    pub(super) fn take_meter_step(&mut self, datapath: DatapathId, step: MeterStep) {
        let (bands, which);
        let what = match step {
            MeterStep::AskFeatures => {
                What::StatsRequest(StatsRequest { multipart: METER_FEATURES, body: &[] })
            }
            MeterStep::Make(meter) => {
                bands = drop_band(&meter);
                let command = if meter.is_there { METER_MODIFY } else { METER_ADD };
                let MeterWanted { flags, meter_id, .. } = meter;
                What::MeterMod(MeterMod { command, flags, meter_id, bands: &bands })
            }
            MeterStep::Check(meter_id) => {
                // Its number, and padding (1.3.5, 7.3.5.12).
                which = [meter_id.to_be_bytes(), [0; 4]].concat();
                What::StatsRequest(StatsRequest { multipart: METER, body: &which })
            }
        };
        match self.tell_switch(datapath, step.ticket(), what) {
            Err(refused) if !matches!(step, MeterStep::Check(_)) => {
                self.step_was_not_sent(datapath, &refused)
            }
            _ => {}
        }
    }

    /// Logs whether a switch has the meter.
    pub(super) fn tell_of_meter(&self, datapath: DatapathId) {
        match self.dispatch.kernel.metering(datapath) {
            Some(Metering::On { meter, .. }) => {
                let MeterWanted { meter_id, per_s, .. } = *meter;
                tracing::info!(%datapath, meter_id, per_s, "the switch limits its packet-ins with a meter");
            }
            Some(Metering::Without(why)) if why.is_trouble() => {
                tracing::warn!(%datapath, "the switch sends packet-ins without a meter: {why}");
            }
            Some(Metering::Without(why)) => {
                tracing::info!(%datapath, "the switch sends packet-ins without a meter: {why}");
            }
            _ => {}
        }
    }

    fn step_was_not_sent(&mut self, datapath: DatapathId, refused: &Refused) {
        let reason = refused.to_string();
        self.dispatch.kernel.on_meter_not_sent(datapath, &reason, &mut self.dispatch.effects);
    }

    /// Sends a command of the node itself. With a ticket, it gets a receipt or an answer.
    fn tell_switch(&mut self, datapath: DatapathId, ticket: u64, what: What<'_>) -> Result<(), Refused> {
        // The answer replaces a receipt.
        let wants_receipt = ticket != 0 && !matches!(what, What::StatsRequest(_));
        let command = Command { datapath, ticket, wants_receipt, what };
        let tag = Tag::of_node(ticket);
        self.southbound.send(datapath, &command, kernel::OWN_COOKIE, tag)
    }
}

fn instructions(meter: Option<u32>, miss_send_len: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = InstructionWriter::new(&mut bytes);
    if let Some(meter_id) = meter {
        writer.meter(meter_id);
    }
    writer.apply_actions(|actions| {
        actions.output(PortNo::CONTROLLER, miss_send_len);
    });
    bytes
}

/// OFPMBT_DROP, its length, rate, burst and padding (1.3.5, 7.3.4.3).
fn drop_band(meter: &MeterWanted) -> Vec<u8> {
    [&[0, 1, 0, 16][..], &meter.per_s.to_be_bytes(), &meter.burst.to_be_bytes(), &[0; 4]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::read_instructions;
    use flow::{Action, Instruction};

    #[test]
    fn the_table_miss_rule_asks_for_as_many_bytes_as_the_operator_wants() {
        let output = Action::Output { port: PortNo::CONTROLLER, max_len: 128 };
        let wanted = vec![Instruction::Meter(7), Instruction::ApplyActions(vec![output])];
        assert_eq!(read_instructions(&instructions(Some(7), 128)).unwrap(), wanted);
    }
}
