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
    pub(super) fn send(&mut self, zone: ZoneId, command: &Command<'_>, frame: &Frame<'_>) {
        let cookie = match command.what {
            What::FlowMod(flow_mod) => flow_mod.cookie,
            _ => 0,
        };
        let tag = Tag { zone, ticket: command.ticket };
        match self.southbound.send(command.datapath, command, cookie, tag) {
            Ok(()) => self.dispatch.kernel.on_sent(),
            Err(refused) => self.refuse_unsent(zone, frame, &refused),
        }
    }

    /// Sends a rule that was accepted by its shape.
    pub(super) fn send_rule(&mut self, zone: ZoneId, rule: PreparedRule<'_>) {
        match self.southbound.send_rule(rule, Tag { zone, ticket: rule.of_use.ticket }) {
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
