//! The node's own questions to switches.
//!
//! In: questions of the kernel or an operator. Out: statistics requests, and a note if one cannot be sent. The answers
//! go to the kernel, or to the control thread.

use super::super::switch_requests::{self, SwitchRequest};
use super::Worker;
use crate::messages::FromWorker;
use abi::command::{Command, StatsRequest, What};
use flow::DatapathId;
use flow::canonical::write_match;
use kernel::{Asked, Unanswered};
use southbound::{Refused, Tag};

impl Worker {
    /// Asks the switches that connected in this turn for their rules.
    pub(super) fn ask_for_owners(&mut self) {
        self.dispatch.kernel.ask_for_owners(self.now_ms, &mut self.dispatch.effects);
        self.carry_out_effects();
        self.dispatch.report_ready();
        self.hand_on_held();
        self.serve_trusted();
    }

    /// Sends a question of the kernel to a switch. A barrier precedes it, so that the answer includes all earlier
    /// commands. A question about owners needs none, because the kernel knows what it has sent.
    pub(super) fn ask_for_kernel(&mut self, datapath: DatapathId, asked: Asked) {
        let ticket = asked.ticket();
        let barrier = Command { datapath, ticket, wants_receipt: false, what: What::Barrier };
        let tag = Tag::of_node(ticket);
        let wanted = self.dispatch.kernel.wanted_rule(datapath);
        let question = switch_requests::of_the_kernel(asked, wanted);
        let is_of_owners = matches!(asked, Asked::Owners | Asked::Groups | Asked::Meters);
        let is_behind = is_of_owners || self.southbound.send(datapath, &barrier, 0, tag).is_ok();
        let asked_now = is_behind
            && (self.ask(datapath, ticket, &question).is_ok()
                // 1.0 cannot filter by cookie: the switch must report all of its rules.
                || matches!(asked, Asked::RulesOf(_) | Asked::Rule)
                    && self.ask(datapath, ticket, &switch_requests::all_flows()).is_ok());
        if !asked_now {
            self.dispatch.kernel.on_no_answer(datapath, asked, Unanswered::NotSent, self.now_ms);
        } else if matches!(asked, Asked::TableSizes | Asked::Owners) {
            // The reply to the barrier shows at once that the switch has ignored the question. If the barrier cannot be
            // sent, a timeout shows it.
            let barrier = Command { wants_receipt: true, ..barrier };
            let _ = self.southbound.send(datapath, &barrier, 0, tag);
        }
        if asked_now {
            self.note_waiting(datapath, asked);
        }
    }

    /// Tells the kernel which rules the answer will lack, because their commands wait for the slow switch.
    fn note_waiting(&mut self, datapath: DatapathId, asked: Asked) {
        if !asked.concerns_rules() {
            return;
        }
        let Worker { southbound, dispatch, .. } = self;
        let mut matching = Vec::new();
        for (zone, rule) in southbound.waiting_rules(datapath) {
            let Some(table_id) = rule.may_add_to() else { continue };
            matching.clear();
            let known = rule.matching().filter(|_| asked.needs_matches());
            known.into_iter().for_each(|it| write_match(it, &mut matching));
            let place = (table_id, rule.priority);
            let known = known.is_some().then_some(&matching[..]);
            dispatch.kernel.on_waiting(datapath, asked, zone, place, known);
        }
    }

    pub(super) fn ask_flows(&mut self, datapath: DatapathId, ticket: u64) {
        if let Err(refused) = self.ask(datapath, ticket, &switch_requests::all_flows()) {
            self.unsent.push(FromWorker::NoFlows { ticket, reason: refused.to_string() });
        }
    }

    /// A question of the node's own.
    pub(super) fn ask(
        &mut self,
        datapath: DatapathId,
        ticket: u64,
        question: &SwitchRequest,
    ) -> Result<(), Refused> {
        let request = StatsRequest { multipart: question.0, body: &question.1 };
        let command = Command { datapath, ticket, wants_receipt: false, what: What::StatsRequest(request) };
        self.southbound.send(datapath, &command, 0, Tag::of_node(ticket))
    }
}
