//! The model of the paper: two delays, drawn independently, and nothing else.
//!
//! In: packet-ins of a real switch and messages for it. Out: when each goes on. No queue and no table. It loses only
//! what comes when as much is on its way out as the full model allows. Order holds within a lane and behind barriers, so that the switch
//! stays correct.

use super::draw::Draw;
use super::input::{Input, Message, Miss, Packet, RuleId};
use super::leaving::{Lane, Leaving};
use super::output::{Loss, Output, Place};
use super::quantile_match::QuantileMatch;
use super::random::{Random, Stream};
use crate::cpu::MessageType;
use crate::delay::Delay;

/// The paper's model.
#[derive(Clone, Debug)]
pub(super) struct PaperModel {
    ingress: Draw,
    egress: Draw,
    base: Option<QuantileMatch>,
    uniform: Random,
    leaving: Leaving,
}

impl PaperModel {
    /// With the delays of the target as a whole: the time in its CPU is a part of them.
    pub(super) fn new(target: &Delay, base: Option<QuantileMatch>, seed: u64) -> Self {
        PaperModel {
            ingress: Draw::new(&target.ingress_us, seed, Stream::Ingress),
            egress: Draw::new(&target.egress_us, seed, Stream::Egress),
            base,
            uniform: Random::new(seed, Stream::Base),
            leaving: Leaving::default(),
        }
    }

    pub(super) fn set_base(&mut self, base: QuantileMatch) {
        self.base = Some(base);
    }

    /// `observed_ns`: how long a real switch has worked on a packet, in the machine's time.
    pub(super) fn on_input(&mut self, input: Input, observed_ns: u64, now_ns: u64, out: &mut Vec<Output>) {
        // There is no queue in which something could wait for a place.
        let lost = match &input {
            Input::Miss(miss) if !self.leaving.has_place(Lane::PacketIn) => Some(miss.id),
            Input::Message(Message { id, .. }) | Input::InSoftware { id, .. }
                if self.leaving.has_many_messages() =>
            {
                Some(*id)
            }
            _ => None,
        };
        if let Some(id) = lost {
            return out.push(Output::Lost { id, why: Loss::TooManyLeaving });
        }
        match input {
            Input::Miss(miss) => self.on_miss(&miss, observed_ns, now_ns),
            Input::Message(message) => self.on_message(&message, now_ns),
            Input::InSoftware { id, .. } => {
                self.leaving.push(Lane::PacketOut, now_ns, Output::Forward { id })
            }
            Input::Added { rule, .. } => self.show(Lane::FlowMod, rule.id, now_ns),
            Input::Refused(_)
            | Input::Restored(_)
            | Input::Modified(_)
            | Input::Deleted(_)
            | Input::Used { .. } => {}
        }
    }

    fn on_miss(&mut self, miss: &Miss, observed_ns: u64, now_ns: u64) {
        let target_ns = match &mut self.base {
            Some(base) => {
                let quantile = base.quantile(observed_ns, self.uniform.share());
                self.ingress.at_ns(quantile)
            }
            None => self.ingress.next_ns(),
        };
        let leaves = miss.arrived_ns.saturating_add(target_ns).max(now_ns);
        let output = Output::PacketIn { id: miss.id, data_bytes: miss.length_bytes, buffer: None };
        self.leaving.push(Lane::PacketIn, leaves, output);
    }

    fn on_message(&mut self, message: &Message, now_ns: u64) {
        let id = message.id;
        match message.kind {
            MessageType::PacketOut => {
                let leaves = now_ns.saturating_add(self.egress.next_ns());
                self.leaving.push(Lane::PacketOut, leaves, Output::CarryOut { id });
            }
            MessageType::Add | MessageType::Modify | MessageType::Delete => {
                let leaves = now_ns.saturating_add(self.egress.next_ns());
                self.leaving.push(Lane::FlowMod, leaves, Output::CarryOut { id });
                if let Some(rule) = message.rule {
                    self.show(Lane::FlowMod, rule.id, leaves);
                }
                if message.packet != Packet::None {
                    self.leaving.push(Lane::FlowMod, leaves, Output::Release { id });
                }
            }
            MessageType::Barrier => self.leaving.push_barrier(now_ns, Output::AnswerBarrier { id }),
            _ => self.leaving.push(Lane::Other, now_ns, Output::CarryOut { id }),
        }
    }

    fn show(&mut self, lane: Lane, rule: RuleId, at_ns: u64) {
        self.leaving.push(lane, at_ns, Output::InDataPlane { rule, place: Some(Place::Hardware) });
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.leaving.next_due_ns()
    }

    pub(super) fn on_time(&mut self, now_ns: u64, out: &mut Vec<Output>) {
        while let Some(output) = self.leaving.pop(now_ns) {
            out.push(output);
        }
    }
}
