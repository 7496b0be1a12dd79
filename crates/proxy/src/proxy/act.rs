//! What the proxy does when the model says that something happens.
//!
//! In: outputs of the model. Out: bytes for both sides. It decides no time.

use flow::{ErrorCode, Instruction};
use openflow::message::{FlowMod, NO_BUFFER};
use openflow::view::{FlowModView, PacketInView};
use openflow::{Header, Version};
use profile::model::{Loss, MessageId, Output, Refusal};

use super::Proxy;
use crate::commands::{Commands, Release, Way};
use crate::held::Held;
use crate::shadow::Reason;
use crate::wire::{self, Numbered, kind};

/// OFPFMFC_TABLE_FULL, OFPBRC_BUFFER_UNKNOWN, OFPBRC_BUFFER_EMPTY.
const TABLE_FULL: ErrorCode = ErrorCode { kind: 5, code: 1 };
const BUFFER_UNKNOWN: ErrorCode = ErrorCode { kind: 1, code: 8 };
const BUFFER_EMPTY: ErrorCode = ErrorCode { kind: 1, code: 7 };

fn error_of(why: Refusal) -> ErrorCode {
    match why {
        Refusal::TableFull => TABLE_FULL,
        Refusal::BufferUnknown => BUFFER_UNKNOWN,
        Refusal::BufferEmpty => BUFFER_EMPTY,
    }
}

impl Proxy {
    pub(super) fn act(&mut self, output: Output, at_ns: u64, out: &mut Commands) {
        match output {
            Output::PacketIn { id, data_bytes, buffer } => {
                self.send_packet_in(id, data_bytes, buffer, at_ns, out)
            }
            Output::CarryOut { id } => self.carry_out(id, at_ns, out),
            Output::Release { id } => self.release(id, at_ns, out),
            Output::NoBuffer { id, why } | Output::Refuse { id, why } => {
                if let Some(held) = self.waiting.remove(&id).or_else(|| self.held.take(id)) {
                    self.refuse(&held, why, out);
                    self.held.reuse(held.bytes);
                }
            }
            Output::AnswerBarrier { id } => self.on_barrier(id, out),
            Output::Lost { id, why } => self.lose(id, why),
            Output::InDataPlane { rule, place } if self.is_full() => {
                self.in_data_plane(rule.0, place, at_ns, out)
            }
            Output::Evict { rule } => self.evict(rule.0),
            Output::ExpireIfIdle { rule, unused_since_ns } => {
                self.ask_if_idle(rule.0, unused_since_ns, at_ns, out);
            }
            Output::Expire { rule } => self.end_rule(rule.0, Reason::HardTimeout, at_ns),
            // The paper's model has no tables. The switch forwards packets itself.
            Output::InDataPlane { .. } | Output::Forward { .. } => {}
        }
    }

    fn send_packet_in(
        &mut self,
        id: MessageId,
        data_bytes: u32,
        buffer: Option<u32>,
        at_ns: u64,
        out: &mut Commands,
    ) {
        let Some(held) = self.held.take(id) else { return };
        self.counters.packet_ins += 1;
        let late = at_ns <= held.came_ns && held.came_ns > held.since_ns;
        self.counters.packet_ins_late += u64::from(late);
        out.releases.push(Release {
            way: Way::Ingress,
            since_ns: held.since_ns,
            meant_ns: at_ns,
            base_ns: held.is_seen.then_some(held.came_ns.saturating_sub(held.since_ns)),
            base_was_slower: late,
        });
        let place =
            buffer.zip(PacketInView::read(&held.bytes).ok().map(|view| (view.data.len(), view.in_port)));
        let has_room = |(buffer, _): &(u32, _)| self.kept.has_room(*buffer, held.bytes.capacity(), at_ns);
        let Some((buffer, (data, in_port))) = place.filter(has_room) else {
            self.counters.packets_not_kept += u64::from(place.is_some());
            out.to_controller.extend_from_slice(&held.bytes);
            return self.held.reuse(held.bytes);
        };
        let data_at = held.bytes.len() - data;
        let shown = usize::try_from(data_bytes).unwrap_or(data).min(data);
        wire::cut_packet_in(&held.bytes, data_at + shown, buffer, &mut out.to_controller);
        self.kept.keep(buffer, in_port, held.bytes, data_at, at_ns);
    }

    /// The target carries a message out.
    fn carry_out(&mut self, id: MessageId, at_ns: u64, out: &mut Commands) {
        let Some(held) = self.held.get(id) else { return };
        let (Ok(header), refusal) = (Header::read(&held.bytes), held.refusal) else { return };
        if let Some(error) = refusal {
            let Some(held) = self.held.take(id) else { return };
            self.refuse_as(&held.bytes, error, out);
            return self.held.reuse(held.bytes);
        }
        match header.kind {
            kind::FLOW_MOD if self.is_full() => return self.carry_out_rule(id, at_ns, out),
            kind::PACKET_OUT => return self.send_packet_out(id, at_ns, out),
            _ => {}
        }
        let Some(held) = self.held.take(id) else { return };
        match header.kind {
            kind::METER_MOD if self.is_full() && header.version == Version::V1_3 => {
                // It says itself what it has sent.
                self.carry_out_meter_mod(&held.bytes, out);
                return self.held.reuse(held.bytes);
            }
            kind::SET_CONFIG if self.is_full() => {
                self.lengths.miss_send_len = wire::miss_send_len(&held.bytes);
                // The proxy needs whole packets.
                wire::with_miss_send_len(&held.bytes, super::packets::WHOLE_PACKET, &mut out.to_switch);
            }
            _ => out.to_switch.extend_from_slice(&held.bytes),
        }
        if header.kind == kind::FLOW_MOD {
            out.releases.push(egress(held.since_ns, at_ns));
        }
        self.barriers.on_sent();
        self.held.reuse(held.bytes);
    }

    /// A flow mod of the whole model. It stays here while a packet waits for it.
    fn carry_out_rule(&mut self, id: MessageId, at_ns: u64, out: &mut Commands) {
        let Some(mut held) = self.held.take(id) else { return };
        let Some(flow_mod) = held.flow_mod.take() else {
            // The proxy could not read it. The switch says why.
            out.to_switch.extend_from_slice(&held.bytes);
            return self.barriers.on_sent();
        };
        let is_done = self.carry_out_flow_mod(id, &flow_mod, &held, at_ns, out);
        if flow_mod.buffer_id == NO_BUFFER || !is_done {
            self.held.reuse(held.bytes);
        } else {
            held.flow_mod = Some(flow_mod);
            self.waiting.insert(id, held);
        }
    }

    fn send_packet_out(&mut self, id: MessageId, at_ns: u64, out: &mut Commands) {
        let Some(held) = self.held.take(id) else { return };
        let buffer =
            openflow::view::PacketOutView::read(&held.bytes).map_or(NO_BUFFER, |view| view.buffer_id);
        let kept = self.kept.take(buffer);
        let fits = match &kept {
            Some(kept) => wire::packet_out_with(&held.bytes, kept.data(), &mut out.to_switch),
            None => {
                out.to_switch.extend_from_slice(&held.bytes);
                true
            }
        };
        self.counters.messages_lost += u64::from(!fits);
        out.releases.push(egress(held.since_ns, at_ns));
        self.barriers.on_sent();
        self.held.reuse(held.bytes);
    }

    /// The packet that waited for a flow mod leaves. In 1.3 it goes through the tables, if the switch has the rule. In 1.0, and before
    /// that, it gets the actions of the rule.
    fn release(&mut self, id: MessageId, at_ns: u64, out: &mut Commands) {
        let Some(Held { bytes, since_ns, flow_mod: Some(flow_mod), .. }) = self.waiting.remove(&id) else {
            return;
        };
        let (Some(version), Some(kept)) = (self.version, self.kept.take(flow_mod.buffer_id)) else { return };
        let Ok(view) = FlowModView::read(&bytes) else { return };
        let is_placed = rule_of(&flow_mod).is_some_and(|rule| self.shadow.is_placed(rule));
        let own = if version == Version::V1_0 {
            Some(view.instructions)
        } else {
            only_actions(&flow_mod, view.instructions)
        };
        let actions = own
            .filter(|_| version == Version::V1_0 || !is_placed)
            .unwrap_or_else(|| wire::to_tables(version));
        // An id of the proxy: the switch's error about these bytes would tell the controller of a message that it never sent.
        let xid = self.own.next();
        let fits = wire::packet_out(version, xid, kept.in_port, actions, kept.data(), &mut out.to_switch);
        self.counters.messages_lost += u64::from(!fits);
        out.releases.push(egress(since_ns, at_ns));
        self.barriers.on_sent();
        self.held.reuse(bytes);
    }

    /// The target refuses a message with an error.
    pub(super) fn refuse(&mut self, held: &Held, why: Refusal, out: &mut Commands) {
        self.refuse_as(&held.bytes, error_of(why), out);
    }

    fn on_barrier(&mut self, id: MessageId, out: &mut Commands) {
        let Some(held) = self.held.take(id) else { return };
        let Ok(header) = Header::read(&held.bytes) else { return };
        if self.is_full() {
            self.answer_barrier(header.xid, out);
        } else {
            // What was before it has gone to the switch, which answers.
            out.to_switch.extend_from_slice(&held.bytes);
        }
        self.held.reuse(held.bytes);
    }

    fn lose(&mut self, id: MessageId, why: Loss) {
        let Some(held) = self.held.take(id) else { return };
        let counter = match (held.is_packet_in, why) {
            (true, Loss::PacketInLimit) => &mut self.counters.packet_ins_above_limit,
            (true, _) => &mut self.counters.packet_ins_queue_full,
            (false, _) => &mut self.counters.messages_lost,
        };
        *counter += 1;
        let is_barrier = Header::read(&held.bytes).is_ok_and(|header| {
            wire::numbered(header.version, header.kind) == Some(Numbered::BarrierRequest)
        });
        if is_barrier && self.is_full() {
            self.barriers.on_lost();
        }
        self.held.reuse(held.bytes);
    }
}

/// A packet or a rule on its way out. The base's part of its delay comes later, so it cannot be too slow.
pub(super) fn egress(since_ns: u64, meant_ns: u64) -> Release {
    Release { way: Way::Egress, since_ns, meant_ns, base_ns: None, base_was_slower: false }
}

fn rule_of(flow_mod: &FlowMod) -> Option<u64> {
    software_switch::rule_number(flow_mod.table_id, flow_mod.priority, &flow_mod.matching)
}

/// The bytes of the actions, if the rule does nothing else with a packet.
fn only_actions<'a>(flow_mod: &FlowMod, instructions: &'a [u8]) -> Option<&'a [u8]> {
    let [Instruction::ApplyActions(_) | Instruction::WriteActions(_)] = flow_mod.instructions.as_slice()
    else {
        return None;
    };
    flow::canonical::instructions_raw(instructions).next()?.ok()?.action_bytes()
}
