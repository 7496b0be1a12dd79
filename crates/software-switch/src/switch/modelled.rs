//! A switch that plays a profile: what it asks the model, and what it does with the model's outputs.
//!
//! In: messages and packets, which wait for the model; its outputs. Out: the effects of each, at its time. It never computes a delay: the
//! model does that.
//!
//! The tables of the switch are what it claims to have: flow mods change them when the CPU has processed them, and statistics come from
//! them. Packets meet the tables of [`Profiled`], which follow as the model says.

use flow::PortNo;
use openflow::message::*;
use openflow::{Body, Message};
use profile::MessageType;
use profile::model::{self, Input, Loss, MessageId, Output, Place, Rule, RuleId};
use std::time::Duration;

use super::dispatch::Heard;
use super::{Effects, Switch};
use crate::action_set::ActionSet;
use crate::packet::Packet;
use crate::path_cache::Step;
use crate::profiled::{self, Changed, Held, RuleKey, nanoseconds, rule_id};
use crate::refusal::Refusal;
use crate::session::{Asker, ControllerId};
use crate::table::{FlowEntry, Reason};
use crate::tables::FlowTables;

impl Switch {
    /// The tables that packets meet.
    #[inline]
    pub(super) fn plane(&mut self) -> &mut FlowTables {
        match &mut self.profiled {
            None => &mut self.tables,
            Some(profiled) => &mut profiled.plane,
        }
    }

    /// A message waits for the CPU of the model.
    pub(super) fn hear_modelled(
        &mut self,
        asker: Asker,
        heard: Heard<'_>,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(kind) = kind_of(&heard.message.body) else {
            self.obey(asker, heard, now, effects);
            return;
        };
        let entries = self.entries_of(&heard.message.body);
        let Some(profiled) = &mut self.profiled else { return };
        let (message, bytes) = (heard.message.clone(), heard.bytes.map(<[u8]>::to_vec));
        let mut packet = model::Packet::None;
        let mut rule = None;
        match &heard.message.body {
            Body::PacketOut(_) => packet = model::Packet::Given,
            Body::FlowMod(wanted) => {
                packet = if wanted.buffer_id == NO_BUFFER { packet } else { model::Packet::Given };
                if let Some(added) = added_by(heard) {
                    rule = profiled.rule_of(&added);
                }
            }
            _ => {}
        }
        let id = profiled.hold(Held::Message { controller: asker.controller, message, bytes });
        self.tell_model(Input::Message(model::Message { id, kind, rule, packet, entries }), now, effects);
        self.run_model(now, effects);
    }

    /// About how many entries the answer to a request for statistics has.
    fn entries_of(&self, body: &Body) -> u32 {
        let Body::MultipartRequest(request) = body else { return 0 };
        let count = match &request.body {
            RequestBody::Flow(_) | RequestBody::Aggregate(_) => self.flow_count(),
            RequestBody::Table => self.tables.len(),
            RequestBody::PortStats(PortNo::ANY) | RequestBody::PortDesc => self.ports.len(),
            _ => 1,
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Packet-ins wait for the CPU of the model.
    pub(super) fn hold_packet_in(
        &mut self,
        messages: Vec<(ControllerId, Message)>,
        buffer_id: Option<u32>,
        length: usize,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(profiled) = &mut self.profiled else { return };
        let id = profiled.hold(Held::PacketIn { messages, buffer_id });
        self.tell_model(profiled::miss(id, length, now), now, effects);
        self.run_model(now, effects);
    }

    /// Whether the packet waits, since the rule that it met is in software.
    #[inline]
    pub(super) fn waits_in_software(
        &mut self,
        step: Step,
        packet: &mut Packet,
        set: &ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        self.profiled.is_some() && self.enters_software(step, packet, set, now, effects)
    }

    fn enters_software(
        &mut self,
        step: Step,
        packet: &mut Packet,
        set: &ActionSet,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        let Some(profiled) = &mut self.profiled else { return false };
        if std::mem::take(&mut profiled.is_resuming) {
            return false;
        }
        let Some(rule) = profiled.software_rule(step) else { return false };
        let length_bytes = u32::try_from(packet.frame.len()).unwrap_or(u32::MAX);
        let held = Held::InSoftware { packet: packet.take(), set: set.clone(), table_id: step.table_id };
        let id = profiled.hold(held);
        self.tell_model(Input::InSoftware { id, rule, length_bytes }, now, effects);
        self.run_model(now, effects);
        true
    }

    /// Notes what a message did to a rule, for the model.
    pub(super) fn note(&mut self, changed: Changed) {
        if let Some(profiled) = &mut self.profiled {
            profiled.changed.push(changed);
        }
    }

    /// Tells the model something, and acts on what it says at once.
    fn tell_model(&mut self, input: Input, now: Duration, effects: &mut Effects) {
        let Some(profiled) = &mut self.profiled else { return };
        let mut out = std::mem::take(&mut profiled.spare);
        profiled.model.on_input(nanoseconds(now), input, &mut out);
        self.act_on(out, now, effects);
    }

    /// Acts on everything that the model has due.
    pub(super) fn run_model(&mut self, now: Duration, effects: &mut Effects) {
        let now_ns = nanoseconds(now);
        // What an output causes waits until the outputs of the same time are carried out.
        if self.profiled.as_mut().is_none_or(|profiled| std::mem::replace(&mut profiled.is_running, true)) {
            return;
        }
        while let Some(profiled) = &mut self.profiled
            && profiled.model.next_due_ns().is_some_and(|due| due <= now_ns)
        {
            let mut out = std::mem::take(&mut profiled.spare);
            profiled.model.on_time(now_ns, &mut out);
            self.act_on(out, now, effects);
        }
        if let Some(profiled) = &mut self.profiled {
            profiled.is_running = false;
        }
    }

    fn act_on(&mut self, mut out: Vec<Output>, now: Duration, effects: &mut Effects) {
        for output in out.drain(..) {
            self.act_on_one(output, now, effects);
        }
        if let Some(profiled) = &mut self.profiled {
            profiled.spare = out;
        }
    }

    fn act_on_one(&mut self, output: Output, now: Duration, effects: &mut Effects) {
        match output {
            Output::PacketIn { id, .. } => self.send_packet_ins(id, effects),
            Output::CarryOut { id } | Output::AnswerBarrier { id } => self.carry_out_held(id, now, effects),
            Output::Release { id } => self.release_held(id, now, effects),
            // The buffers are the switch's own, and it says itself which are empty.
            Output::NoBuffer { .. } => {}
            Output::Refuse { id, why } => self.refuse_held(id, why, effects),
            Output::Lost { id, why } => self.lose_held(id, why, now),
            Output::InDataPlane { rule, place } => self.show(rule, place),
            Output::Evict { rule } => self.end_rule(rule, Reason::Delete, now, effects),
            Output::Expire { rule } => self.end_rule(rule, Reason::HardTimeout, now, effects),
            Output::ExpireIfIdle { rule, unused_since_ns } => {
                let at_ns = self.used_ns(rule);
                if at_ns > unused_since_ns {
                    self.tell_model(Input::Used { rule, at_ns, packets: 1 }, now, effects);
                } else {
                    self.end_rule(rule, Reason::IdleTimeout, now, effects);
                }
            }
            Output::Forward { id } => self.forward_held(id, now, effects),
        }
    }

    fn held(&mut self, id: MessageId) -> Option<Held> {
        self.profiled.as_mut()?.take(id)
    }

    fn send_packet_ins(&mut self, id: MessageId, effects: &mut Effects) {
        let Some(Held::PacketIn { messages, .. }) = self.held(id) else { return };
        for (controller, message) in messages {
            // The connection may have ended while the packet waited.
            if self.version(controller) == Some(message.version) {
                self.counters.packet_ins += 1;
                effects.messages.push((controller, message));
            }
        }
    }

    fn carry_out_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let Some(Held::Message { controller, mut message, bytes }) = self.held(id) else { return };
        let added = added_by(Heard { message: &message, bytes: bytes.as_deref() });
        // The connection may have ended while the message waited.
        if let Some(version) = self.version(controller) {
            let asker = Asker { controller, version, xid: message.xid };
            let later = take_buffer(&mut message);
            match &added {
                _ if reads_counters(&message.body) => self.read_counters(),
                Some(wanted) => self.read_counter(&RuleKey::of(wanted)),
                None => {}
            }
            let heard = Heard { message: &message, bytes: bytes.as_deref() };
            let is_done = self.obey(asker, heard, now, effects);
            let has_place = match self.added_by_modify().filter(|_| is_done) {
                Some(rule) => {
                    let held = Held::Message { controller, message, bytes };
                    self.add_by_modify(id, rule, held, now, effects)
                }
                None => true,
            };
            if let (Some(wanted), true) = (later, is_done && has_place) {
                self.hold_release(id, wanted, asker);
            }
        }
        let is_missing =
            |wanted: &FlowMod| self.claims(wanted.table_id, wanted.priority, &wanted.matching).is_none();
        let missing = added.filter(is_missing);
        let missing = missing.and_then(|it| rule_id(it.table_id, it.priority, &it.matching));
        self.tell_changes(missing, now, effects);
    }

    /// The rule that a modify of no rule has added (1.0, 4.6).
    fn added_by_modify(&mut self) -> Option<Rule> {
        self.profiled.as_mut()?.added.take()
    }

    /// The model decides whether such a rule has a place. If not, the modify is refused after all. Returns whether it has one.
    fn add_by_modify(
        &mut self,
        id: MessageId,
        rule: Rule,
        modify: Held,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        let Some(profiled) = &mut self.profiled else { return true };
        profiled.hold_as(id, modify);
        self.tell_model(Input::Added { id, rule }, now, effects);
        let has_place = self.held(id).is_some();
        let key = self.profiled.as_ref().and_then(|profiled| profiled.key_of(rule.id)).cloned();
        if let (false, Some(key)) = (has_place, key) {
            self.tables.change(key.table_id.into()).remove(key.priority, &key.matching);
            self.forget_if_gone(rule.id);
        }
        has_place
    }

    /// The packet that waits for a flow mod leaves when the model says so.
    fn hold_release(&mut self, id: MessageId, wanted: FlowMod, asker: Asker) {
        let instructions = self.check_instructions(wanted.table_id, &wanted, asker.version);
        if let (Some(profiled), Ok(instructions)) = (&mut self.profiled, instructions) {
            profiled.hold_as(id, Held::Release { wanted, instructions, asker });
        }
    }

    /// Tells the model what a message did to rules. `missing`: the rule of an add that the switch did not carry out.
    fn tell_changes(&mut self, missing: Option<RuleId>, now: Duration, effects: &mut Effects) {
        let Some(profiled) = &mut self.profiled else { return };
        let changed = std::mem::take(&mut profiled.changed);
        for change in changed {
            match change {
                Changed::Modified(rule) => self.tell_model(Input::Modified(rule), now, effects),
                Changed::Deleted(rule) => self.tell_model(Input::Deleted(rule), now, effects),
            }
        }
        if let Some(rule) = missing {
            self.tell_model(Input::Deleted(rule), now, effects);
            self.forget_if_gone(rule);
        }
    }

    /// A packet that waited for a flow mod leaves. The agent of the switch sends it by its own tables: the data plane may be behind.
    fn release_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let Some(Held::Release { wanted, instructions, asker }) = self.held(id) else { return };
        let profiled = self.profiled.take();
        let released = self.release(&wanted, instructions, asker.version, now, effects);
        self.profiled = profiled;
        if let Err(refusal) = released {
            let message = Message { version: asker.version, xid: asker.xid, body: Body::FlowMod(wanted) };
            self.refuse_bundled(&message, refusal, asker, effects);
        }
    }

    fn refuse_held(&mut self, id: MessageId, why: model::Refusal, effects: &mut Effects) {
        let Some(Held::Message { controller, message, bytes }) = self.held(id) else { return };
        let refusal = match why {
            model::Refusal::TableFull => Refusal::TableFull,
            model::Refusal::BufferUnknown => Refusal::BufferUnknown,
            model::Refusal::BufferEmpty => Refusal::BufferEmpty,
        };
        let heard = Heard { message: &message, bytes: bytes.as_deref() };
        self.counters.flow_mods += u64::from(matches!(message.body, Body::FlowMod(_)));
        self.forget_added(heard);
        if let Some(version) = self.version(controller) {
            let (kind, code) = refusal.codes(version);
            let asker = Asker { controller, version, xid: message.xid };
            self.send_error(asker, kind, code, heard.beginning(), effects);
        }
    }

    fn lose_held(&mut self, id: MessageId, why: Loss, now: Duration) {
        match self.held(id) {
            Some(Held::PacketIn { buffer_id, .. }) => {
                self.counters.packet_ins_unheard += 1;
                if let Some(buffer_id) = buffer_id {
                    let _ = self.buffers.take(buffer_id, now);
                }
            }
            Some(Held::Message { message, bytes, .. }) => {
                let is_ignored = why == Loss::Ignored && matches!(message.body, Body::FlowMod(_));
                self.counters.flow_mods += u64::from(is_ignored);
                self.forget_added(Heard { message: &message, bytes: bytes.as_deref() });
            }
            _ => {}
        }
    }

    /// The rule of an add was not added.
    fn forget_added(&mut self, heard: Heard<'_>) {
        let added = added_by(heard);
        if let Some(rule) = added.and_then(|it| rule_id(it.table_id, it.priority, &it.matching)) {
            self.forget_if_gone(rule);
        }
    }

    /// The entry that the switch claims to have.
    fn claims(&self, table_id: u8, priority: u16, matching: &flow::Match) -> Option<&FlowEntry> {
        self.tables.table(table_id)?.entry_of(priority, matching)
    }

    fn forget_if_gone(&mut self, rule: RuleId) {
        let Some(key) = self.profiled.as_ref().and_then(|profiled| profiled.key_of(rule)) else { return };
        let is_claimed = self.claims(key.table_id, key.priority, &key.matching).is_some();
        let Some(profiled) = &mut self.profiled else { return };
        let in_plane = |key: &RuleKey| {
            let table = profiled.plane.table(key.table_id);
            table.is_some_and(|table| table.entry_of(key.priority, &key.matching).is_some())
        };
        if !is_claimed && !profiled.key_of(rule).is_some_and(in_plane) {
            profiled.forget(rule);
        }
    }

    /// The data plane gets a rule in its present form, or loses it.
    fn show(&mut self, rule: RuleId, place: Option<Place>) {
        let Some(key) = self.profiled.as_ref().and_then(|profiled| profiled.key_of(rule)).cloned() else {
            return;
        };
        let entry = self.claims(key.table_id, key.priority, &key.matching).cloned();
        let Some(profiled) = &mut self.profiled else { return };
        match (place, entry) {
            (Some(place), Some(entry)) => profiled.show(key.table_id, entry, place),
            // It is deleted already, and the data plane will lose it.
            (Some(_), None) => {}
            (None, _) => {
                profiled.hide(&key);
                self.forget_if_gone(rule);
            }
        }
    }

    /// The switch removes a rule without a message: a time-out has ended, or another rule needs the place.
    fn end_rule(&mut self, rule: RuleId, reason: Reason, now: Duration, effects: &mut Effects) {
        let Some(key) = self.profiled.as_ref().and_then(|profiled| profiled.key_of(rule)).cloned() else {
            return;
        };
        if self.claims(key.table_id, key.priority, &key.matching).is_none() {
            return;
        }
        self.read_counter(&key);
        if let Some(entry) = self.tables.change(key.table_id.into()).remove(key.priority, &key.matching) {
            self.tell_removed(key.table_id.into(), &entry, reason, now, effects);
        }
        self.tell_changes(None, now, effects);
    }

    /// When a packet last met a rule.
    fn used_ns(&self, rule: RuleId) -> u64 {
        let used = self.profiled.as_ref().and_then(|profiled| {
            let key = profiled.key_of(rule)?;
            profiled.plane.table(key.table_id)?.entry_of(key.priority, &key.matching)
        });
        used.map_or(0, |entry| nanoseconds(entry.used_at))
    }

    /// The switch reads the counters of the data plane.
    fn read_counters(&mut self) {
        let Some(profiled) = &self.profiled else { return };
        let keys: Vec<RuleKey> = profiled.rules().cloned().collect();
        for key in keys {
            self.read_counter(&key);
        }
        self.read_table_counters();
    }

    fn read_counter(&mut self, key: &RuleKey) {
        let Some(profiled) = &self.profiled else { return };
        let seen =
            profiled.plane.table(key.table_id).and_then(|table| table.entry_of(key.priority, &key.matching));
        let Some(seen) = seen.cloned() else { return };
        if let Some(entry) = self.tables.change(key.table_id.into()).entry_of_mut(key.priority, &key.matching)
            && entry.counters == seen.counters
        {
            (entry.packet_count, entry.byte_count) = (seen.packet_count, seen.byte_count);
            entry.used_at = seen.used_at;
        }
    }

    fn read_table_counters(&mut self) {
        let Some(profiled) = &self.profiled else { return };
        let counts: Vec<(u64, u64)> =
            profiled.plane.iter().map(|table| (table.lookup_count, table.matched_count)).collect();
        for (index, (lookups, matched)) in counts.into_iter().enumerate() {
            let table = self.tables.change(index);
            (table.lookup_count, table.matched_count) = (lookups, matched);
        }
    }

    /// A packet has passed the software path, and goes on where it met the rule.
    fn forward_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let Some(Held::InSoftware { packet, mut set, table_id }) = self.held(id) else { return };
        if let Some(profiled) = &mut self.profiled {
            profiled.is_resuming = true;
        }
        self.copies_left = super::COPIES_MAX;
        self.go_through(table_id, packet, &mut set, now, effects);
        if let Some(profiled) = &mut self.profiled {
            profiled.is_resuming = false;
        }
    }
}

/// The type of a message for the model. None: it has no place in the queue.
fn kind_of(body: &Body) -> Option<MessageType> {
    Some(match body {
        Body::Hello(_) | Body::Error(_) | Body::EchoReply(_) => return None,
        Body::PacketOut(_) => MessageType::PacketOut,
        Body::FlowMod(wanted) => match wanted.command {
            FLOW_ADD => MessageType::Add,
            FLOW_MODIFY | FLOW_MODIFY_STRICT => MessageType::Modify,
            FLOW_DELETE | FLOW_DELETE_STRICT => MessageType::Delete,
            _ => MessageType::Other,
        },
        Body::MultipartRequest(_) => MessageType::Statistics,
        Body::BarrierRequest => MessageType::Barrier,
        Body::EchoRequest(_) => MessageType::Echo,
        _ => MessageType::Other,
    })
}

/// The flow mod, if it adds a rule, with the priority that its rule has.
fn added_by(heard: Heard<'_>) -> Option<FlowMod> {
    let Body::FlowMod(wanted) = &heard.message.body else { return None };
    (wanted.command == FLOW_ADD).then(|| heard.ranked(wanted).unwrap_or_else(|| wanted.clone()))
}

/// Whether the switch reads the counters of its data plane for this message.
fn reads_counters(body: &Body) -> bool {
    match body {
        Body::FlowMod(wanted) => wanted.command != FLOW_ADD,
        Body::MultipartRequest(_) | Body::GroupMod(_) | Body::MeterMod(_) => true,
        _ => false,
    }
}

/// Takes the buffer out of a flow mod, and returns the whole flow mod: its packet leaves later.
fn take_buffer(message: &mut Message) -> Option<FlowMod> {
    let Body::FlowMod(wanted) = &mut message.body else { return None };
    if wanted.buffer_id == NO_BUFFER || matches!(wanted.command, FLOW_DELETE | FLOW_DELETE_STRICT) {
        return None;
    }
    let whole = wanted.clone();
    wanted.buffer_id = NO_BUFFER;
    Some(whole)
}
