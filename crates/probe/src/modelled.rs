//! A simulated switch that behaves as a profile says: [`profile::model::Model`] with just enough OpenFlow for a probe.
//!
//! ```text
//!   messages, frames, time ──> Modelled ──> Input ──> Model ──> Output ──> Modelled ──> messages, frames
//! ```
//!
//! The model decides when and where; the tables of rules are here. The probe compares with it what it has measured, and `recovery` lets
//! the probe find profiles that it does not know. It is no general switch: it knows one table, outputs, and the messages of a probe.

mod table;

use crate::subject::{Effects, Subject};
use flow::{DatapathId, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::model::{
    Input, Message as ModelMessage, MessageId, Miss, Model, Output, Packet, Refusal, Rule, RuleId, slot_of,
};
use profile::{MessageType, Profile};
use std::collections::HashMap;
use table::{Found, Table};

/// OFPCML_NO_BUFFER: the whole packet.
const WHOLE: u16 = 0xffff;

/// A switch that follows a profile.
#[derive(Debug)]
pub struct Modelled {
    profile: Profile,
    model: Model,
    version: Version,
    table: Table,
    messages: HashMap<MessageId, Message>,
    frames: HashMap<MessageId, (PortNo, Vec<u8>)>,
    buffered: HashMap<usize, (PortNo, Vec<u8>)>,
    numbered: u64,
    outputs: Vec<Output>,
}

impl Modelled {
    /// A switch without rules. The seed decides what is random in the profile.
    pub fn new(profile: &Profile, version: Version, seed: u64) -> Self {
        Modelled {
            model: Model::new(profile, seed),
            profile: profile.clone(),
            version,
            table: Table::default(),
            messages: HashMap::new(),
            frames: HashMap::new(),
            buffered: HashMap::new(),
            numbered: 0,
            outputs: Vec::new(),
        }
    }

    fn number(&mut self) -> MessageId {
        self.numbered += 1;
        MessageId(self.numbered)
    }

    fn input(&mut self, input: Input, now_ns: u64) {
        self.model.on_input(now_ns, input, &mut self.outputs);
    }

    /// Carries out what the model says, at this moment.
    fn go_on(&mut self, now_ns: u64, out: &mut Effects) {
        loop {
            for output in std::mem::take(&mut self.outputs) {
                self.carry_out(output, now_ns, out);
            }
            if self.model.next_due_ns().is_none_or(|due| due > now_ns) && self.outputs.is_empty() {
                return;
            }
            let mut outputs = std::mem::take(&mut self.outputs);
            self.model.on_time(now_ns, &mut outputs);
            self.outputs = outputs;
        }
    }

    fn say(&self, xid: u32, body: Body, out: &mut Effects) {
        out.messages.push(Message { version: self.version, xid, body });
    }

    fn carry_out(&mut self, output: Output, now_ns: u64, out: &mut Effects) {
        match output {
            Output::PacketIn { id, data_bytes, buffer } => self.send_packet_in(id, data_bytes, buffer, out),
            Output::CarryOut { id } => self.on_carried_out(id, now_ns, out),
            Output::Release { id } => self.release(id, out),
            Output::NoBuffer { id, why } => self.refuse(id, why, out),
            Output::Refuse { id, why } => {
                self.refuse(id, why, out);
                self.messages.remove(&id);
            }
            Output::AnswerBarrier { id } => {
                if let Some(message) = self.messages.remove(&id) {
                    self.say(message.xid, Body::BarrierReply, out);
                }
            }
            Output::Lost { id, .. } => {
                self.messages.remove(&id);
                self.frames.remove(&id);
            }
            Output::InDataPlane { rule, place } => self.table.set_place(rule, place),
            Output::Evict { rule } => drop(self.table.remove(rule)),
            Output::Expire { rule } => {
                self.expire(rule, out);
                self.input(Input::Deleted(rule), now_ns);
            }
            Output::ExpireIfIdle { rule, unused_since_ns } => {
                match self.table.used_since(rule, unused_since_ns) {
                    Some(at_ns) => self.input(Input::Used { rule, at_ns, packets: 0 }, now_ns),
                    None => {
                        self.expire(rule, out);
                        self.input(Input::Deleted(rule), now_ns);
                    }
                }
            }
            Output::Forward { id } => {
                if let Some((port, frame)) = self.frames.remove(&id) {
                    out.frames.push((port, frame));
                }
            }
        }
    }

    fn send_packet_in(&mut self, id: MessageId, data_bytes: u32, buffer: Option<u32>, out: &mut Effects) {
        let Some((port, frame)) = self.frames.remove(&id) else { return };
        let bytes = frame.len().min(data_bytes as usize);
        let packet = PacketIn {
            buffer_id: buffer.unwrap_or(NO_BUFFER),
            total_len: frame.len() as u16,
            reason: 0,
            table_id: 0,
            cookie: 0,
            matching: Match::any().with(Field::InPort, port),
            data: frame[..bytes].to_vec(),
        };
        if let Some(buffer) = buffer {
            self.buffered.insert(slot_of(buffer), (port, frame));
        }
        self.say(0, Body::PacketIn(packet), out);
    }

    fn refuse(&mut self, id: MessageId, why: Refusal, out: &mut Effects) {
        let is_v10 = self.version == Version::V1_0;
        let (kind, code) = match why {
            Refusal::TableFull if is_v10 => (3, 0),
            Refusal::TableFull => (5, 1),
            Refusal::BufferEmpty => (1, 7),
            Refusal::BufferUnknown => (1, 8),
        };
        let Some(message) = self.messages.get(&id) else { return };
        let error = ErrorMessage { kind, code, experimenter: None, data: Vec::new() };
        let xid = message.xid;
        self.say(xid, Body::Error(error), out);
    }

    fn release(&mut self, id: MessageId, out: &mut Effects) {
        let Some(Body::FlowMod(change)) = self.messages.remove(&id).map(|message| message.body) else {
            return;
        };
        let kept = self.buffered.remove(&slot_of(change.buffer_id));
        if let Some((_, frame)) = kept {
            out.frames.extend(table::ports_of(&change.instructions).map(|port| (port, frame.clone())));
        }
    }

    fn expire(&mut self, rule: RuleId, out: &mut Effects) {
        if let Some(removed) = self.table.remove(rule) {
            self.say(0, Body::FlowRemoved(removed), out);
        }
    }

    fn on_carried_out(&mut self, id: MessageId, now_ns: u64, out: &mut Effects) {
        let Some(message) = self.messages.get(&id).cloned() else { return };
        match &message.body {
            Body::FlowMod(change) => self.change(id, change, now_ns),
            Body::PacketOut(packet) => {
                let kept = self.buffered.remove(&slot_of(packet.buffer_id)).map(|(_, frame)| frame);
                let frame = if packet.buffer_id == NO_BUFFER { Some(packet.data.clone()) } else { kept };
                let actions = [flow::Instruction::ApplyActions(packet.actions.clone())];
                let frames = frame.into_iter().flat_map(|frame| {
                    table::ports_of(&actions).map(|port| (port, frame.clone())).collect::<Vec<_>>()
                });
                out.frames.extend(frames);
            }
            Body::EchoRequest(payload) => self.say(message.xid, Body::EchoReply(payload.clone()), out),
            Body::FeaturesRequest => self.say(message.xid, Body::FeaturesReply(self.features()), out),
            Body::MultipartRequest(request) => self.statistics(message.xid, &request.body, out),
            _ => {}
        }
        let waits = matches!(&message.body, Body::FlowMod(change) if change.buffer_id != NO_BUFFER);
        if !waits {
            self.messages.remove(&id);
        }
    }

    fn change(&mut self, id: MessageId, change: &FlowMod, now_ns: u64) {
        match change.command {
            FLOW_ADD => self.table.put(change, now_ns),
            FLOW_MODIFY | FLOW_MODIFY_STRICT => {
                let changed = self.table.modify(change);
                if changed.is_empty() {
                    let rule = self.rule_of(change);
                    self.table.put(change, now_ns);
                    return self.input(Input::Added { id, rule }, now_ns);
                }
                changed.into_iter().for_each(|rule| self.input(Input::Modified(rule), now_ns));
            }
            _ => {
                let deleted = self.table.delete(change);
                deleted.into_iter().for_each(|rule| self.input(Input::Deleted(rule), now_ns));
            }
        }
    }

    fn features(&self) -> FeaturesReply {
        FeaturesReply {
            datapath_id: DatapathId(98),
            n_buffers: self.profile.packet_in.buffers_packets.unwrap_or(0),
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: 0,
            actions: 0,
            ports: Vec::new(),
        }
    }

    fn statistics(&self, xid: u32, request: &RequestBody, out: &mut Effects) {
        let body = match request {
            RequestBody::Desc => ReplyBody::Desc(SwitchDesc {
                mfr_desc: "burnet".to_owned(),
                hw_desc: "switch model".to_owned(),
                sw_desc: self.profile.switch.firmware.clone(),
                ..SwitchDesc::default()
            }),
            _ => ReplyBody::Flow(self.table.entries()),
        };
        self.say(xid, Body::MultipartReply(MultipartReply { flags: 0, body }), out);
    }

    fn rule_of(&mut self, change: &FlowMod) -> Rule {
        let class = self.profile.hardware.as_ref().and_then(|hardware| hardware.class_of(&change.matching));
        Rule {
            id: self.table.id_of(change.priority, &change.matching),
            priority: change.priority,
            class: class.and_then(|class| u8::try_from(class).ok()),
            idle_timeout_s: change.idle_timeout_s,
            hard_timeout_s: change.hard_timeout_s,
        }
    }

    fn punt(&mut self, port: PortNo, frame: Vec<u8>, max_len: Option<u16>, now_ns: u64) {
        let id = self.number();
        let miss = Miss {
            id,
            arrived_ns: now_ns,
            length_bytes: frame.len() as u32,
            wanted_bytes: max_len,
            may_be_buffered: max_len != Some(WHOLE),
        };
        self.frames.insert(id, (port, frame));
        self.input(Input::Miss(miss), now_ns);
    }

    fn kind_of(&mut self, body: &Body) -> (MessageType, Option<Rule>, Packet, u32) {
        let packet_of = |buffer_id: u32| match buffer_id {
            NO_BUFFER => Packet::None,
            buffer => Packet::Buffered(buffer),
        };
        match body {
            Body::PacketOut(packet) if packet.buffer_id == NO_BUFFER => {
                (MessageType::PacketOut, None, Packet::Given, 0)
            }
            Body::PacketOut(packet) => (MessageType::PacketOut, None, packet_of(packet.buffer_id), 0),
            Body::FlowMod(change) => match change.command {
                FLOW_ADD => (MessageType::Add, Some(self.rule_of(change)), packet_of(change.buffer_id), 0),
                FLOW_MODIFY | FLOW_MODIFY_STRICT => {
                    (MessageType::Modify, None, packet_of(change.buffer_id), 0)
                }
                _ => (MessageType::Delete, None, Packet::None, 0),
            },
            Body::MultipartRequest(request) => {
                let entries = if matches!(request.body, RequestBody::Flow(_)) { self.table.len() } else { 0 };
                (MessageType::Statistics, None, Packet::None, u32::try_from(entries).unwrap_or(u32::MAX))
            }
            Body::BarrierRequest => (MessageType::Barrier, None, Packet::None, 0),
            Body::EchoRequest(_) => (MessageType::Echo, None, Packet::None, 0),
            _ => (MessageType::Other, None, Packet::None, 0),
        }
    }
}

impl Subject for Modelled {
    fn on_connected(&mut self, _: u64, out: &mut Effects) {
        self.say(0, Body::Hello(Hello::default()), out);
    }

    fn on_message(&mut self, message: &Message, now_ns: u64, out: &mut Effects) {
        if matches!(message.body, Body::Hello(_)) {
            return;
        }
        let id = self.number();
        let (kind, rule, packet, entries) = self.kind_of(&message.body);
        self.messages.insert(id, message.clone());
        self.input(Input::Message(ModelMessage { id, kind, rule, packet, entries }), now_ns);
        self.go_on(now_ns, out);
    }

    fn on_frame(&mut self, port: PortNo, frame: Vec<u8>, now_ns: u64, out: &mut Effects) {
        match self.table.find(port, &frame, now_ns) {
            None if self.version == Version::V1_0 => self.punt(port, frame, None, now_ns),
            None => {}
            Some(Found { rule, is_software, to, max_len }) => {
                self.input(Input::Used { rule, at_ns: now_ns, packets: 1 }, now_ns);
                if to.contains(&PortNo::CONTROLLER) {
                    self.punt(port, frame, max_len, now_ns);
                } else if let (true, Some(port)) = (is_software, to.first().copied()) {
                    let id = self.number();
                    let length_bytes = frame.len() as u32;
                    self.frames.insert(id, (port, frame));
                    self.input(Input::InSoftware { id, rule, length_bytes }, now_ns);
                } else {
                    out.frames.extend(to.into_iter().map(|port| (port, frame.clone())));
                }
            }
        }
        self.go_on(now_ns, out);
    }

    fn next_due_ns(&self) -> Option<u64> {
        self.model.next_due_ns()
    }

    fn on_time(&mut self, now_ns: u64, out: &mut Effects) {
        self.go_on(now_ns, out);
    }
}
