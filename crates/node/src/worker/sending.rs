//! Sends accepted commands to their switches.
//!
//! In: decisions of the kernel. Out: messages in the switches' outputs, and refusals if southbound cannot send. It
//! never decides whether a command is accepted.

use super::Worker;
use abi::command::{Command, What};
use abi::prepared::PreparedRule;
use abi::{Frame, ZoneId};
use southbound::Tag;

impl Worker {
    /// How a receipt finds its app.
    #[inline]
    pub(super) fn tag(&self, zone: ZoneId, ticket: u64) -> Tag {
        Tag { zone, generation: self.dispatch.zones.generation(zone), ticket }
    }

    pub(super) fn send(&mut self, zone: ZoneId, command: &Command<'_>, frame: &Frame<'_>) {
        let cookie = match command.what {
            What::FlowMod(flow_mod) => flow_mod.cookie,
            _ => 0,
        };
        let tag = self.tag(zone, command.ticket);
        match self.southbound.send(command.datapath, command, cookie, tag) {
            Ok(()) => self.dispatch.kernel.on_sent(),
            Err(refused) => self.refuse_unsent(zone, frame, &refused),
        }
    }

    /// Sends a rule that was accepted by its shape.
    pub(super) fn send_rule(&mut self, zone: ZoneId, rule: PreparedRule<'_>) {
        let tag = self.tag(zone, rule.of_use.ticket);
        match self.southbound.send_rule(rule, tag) {
            Ok(()) => self.dispatch.kernel.on_sent(),
            Err(refused) => {
                if let Some(frame) = rule.frame() {
                    self.refuse_unsent(zone, &frame, &refused);
                }
            }
        }
        self.carry_out_effects();
    }
}
