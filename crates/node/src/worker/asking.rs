//! The node's own questions to switches.
//!
//! In: questions of the kernel or an operator. Out: statistics requests, and a note if one cannot be sent. The answers
//! go to the kernel, or to the control thread.

use super::super::switch_requests;
use super::Worker;
use crate::messages::FromWorker;
use abi::command::{Command, StatsRequest, What};
use flow::DatapathId;
use flow::canonical::write_match;
use kernel::{Asked, Unanswered};
use southbound::Tag;

impl Worker {
    /// Asks the switches that connected in this turn for their rules.
    pub(super) fn ask_for_owners(&mut self) {
        self.dispatch.kernel.ask_for_owners(self.now_ms, &mut self.dispatch.effects);
        self.carry_out_effects();
        self.dispatch.report_ready();
        self.hand_on_held();
        self.serve_trusted();
    }

    /// Sends a question of the kernel to a switch.
    pub(super) fn ask_for_kernel(&mut self, datapath: DatapathId, asked: Asked) {
        let Worker { southbound, dispatch, now_ms, .. } = self;
        let tag = Tag::of_node(asked.ticket());
        let wanted = dispatch.kernel.wanted_rule(datapath);
        let send = |command: &Command<'_>| southbound.send(datapath, command, 0, tag).is_ok();
        if switch_requests::ask(datapath, asked, wanted, send) {
            self.note_waiting(datapath, asked);
        } else {
            dispatch.kernel.on_no_answer(datapath, asked, Unanswered::NotSent, *now_ms);
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
        let (multipart, body) = switch_requests::all_flows();
        let what = What::StatsRequest(StatsRequest { multipart, body: &body });
        let command = Command { datapath, ticket, wants_receipt: false, what };
        if let Err(refused) = self.southbound.send(datapath, &command, 0, Tag::of_node(ticket)) {
            self.unsent.push(FromWorker::NoFlows { ticket, reason: refused.to_string() });
        }
    }
}
