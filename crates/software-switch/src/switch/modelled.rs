//! A switch that plays a profile: what it asks the model, and what it does with the model's outputs.
//!
//! In: messages and packets, which wait for the model; its outputs. Out: the effects of each, at its time. It never computes a delay: the
//! model does that.
//!
//! The tables of the switch are what it claims to have: flow mods change them when the CPU has processed them, and statistics come from
//! them. Packets meet the tables of [`Profiled`], which follow as the model says.

use flow::PortNo;
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::MessageType;
use profile::model::{self, Input, MessageId, Output, Place, RuleId};
use std::time::Duration;

#[cfg(test)]
mod tests;

use super::dispatch::Heard;
use super::{Effects, Switch};
use crate::action_set::ActionSet;
use crate::buffer::Buffered;
use crate::instructions::Instructions;
use crate::packet::Packet;
use crate::path_cache::Step;
use crate::profiled::{self, Changed, Held, Profiled, RuleKey, nanoseconds, rule_id};
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
            Some(profiled) if profiled.agent_sends => &mut self.tables,
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
        let session = self.session_id(asker.controller);
        let Some(profiled) = &mut self.profiled else { return };
        let (message, bytes) = (heard.message.clone(), heard.bytes.map(<[u8]>::to_vec));
        let packet = match &heard.message.body {
            Body::PacketOut(_) => model::Packet::Given,
            Body::FlowMod(wanted) if wanted.buffer_id != NO_BUFFER => model::Packet::Given,
            _ => model::Packet::None,
        };
        let Some(id) = profiled.hold(Held::Message { session, message, bytes }) else {
            self.counters.messages_lost += 1;
            return;
        };
        // Which rule is added is said when the switch has checked the message.
        let message = model::Message { packet, entries, ..model::Message::new(id, kind) };
        self.tell_model(Input::Message(message), now, effects);
        self.run_model(now, effects);
    }

    /// The connection with a controller has ended. What it has sent is gone, as far as the CPU has not processed it.
    pub(super) fn drop_messages_of(&mut self, controller: ControllerId) {
        if let Some(profiled) = &mut self.profiled {
            profiled.drop_messages_of(controller);
        }
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
        let with_session = |(controller, message)| (self.session_id(controller), message);
        let messages = messages.into_iter().map(with_session).collect();
        let Some(profiled) = &mut self.profiled else { return };
        match profiled.hold(Held::PacketIn { messages, buffer_id }) {
            Some(id) => {
                self.tell_model(profiled::miss(id, length, now), now, effects);
                self.run_model(now, effects);
            }
            None => self.lose_packet_in(buffer_id, now),
        }
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
        let Switch { profiled: Some(profiled), tables, .. } = self else { return false };
        if std::mem::take(&mut profiled.is_resuming) {
            return false;
        }
        let claimed = if profiled.agent_sends { tables.entry(step) } else { None };
        let Some(rule) = profiled.software_rule(step, claimed) else {
            if let Some(claimed) = claimed {
                profiled.count(step.table_id, claimed, packet.frame.len(), now);
            }
            return false;
        };
        let held = Held::InSoftware { packet: packet.take(), set: set.clone(), table_id: step.table_id };
        self.hold_in_software(rule, held, now, effects);
        true
    }

    /// A packet waits for the software path. If too much waits, it is dropped.
    fn hold_in_software(&mut self, rule: RuleId, held: Held, now: Duration, effects: &mut Effects) {
        let (Held::InSoftware { packet, .. } | Held::Released { packet, .. }) = &held else { return };
        let length_bytes = u32::try_from(packet.frame.len()).unwrap_or(u32::MAX);
        let Some(id) = self.profiled.as_mut().and_then(|profiled| profiled.hold(held)) else { return };
        self.tell_model(Input::InSoftware { id, rule, length_bytes }, now, effects);
        self.run_model(now, effects);
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
            // The buffers are the switch's own, and it says itself which are empty. A refusal answers `takes_place`.
            Output::NoBuffer { .. } | Output::Refuse { .. } => {}
            Output::Lost { id, .. } => self.lose_held(id, now),
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
        for (session, message) in messages {
            // The connection may have ended while the packet waited.
            if self.version_in(session).is_some() {
                self.counters.packet_ins += 1;
                effects.messages.push((session.controller, message));
            }
        }
    }

    fn carry_out_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let Some(held) = self.held(id) else { return };
        let size_bytes = held.size_bytes();
        let Held::Message { session, mut message, bytes } = held else { return };
        // The connection may have ended while the message waited.
        let Some(version) = self.version_in(session) else { return };
        let asker = Asker { controller: session.controller, version, xid: message.xid };
        let later = take_buffer(&mut message);
        self.read_counters_for(&message.body);
        if let Some(profiled) = &mut self.profiled {
            profiled.carried_out = Some(id);
        }
        let heard = Heard { message: &message, bytes: bytes.as_deref() };
        let rule = later.as_ref().and_then(|wanted| {
            let ranked = heard.ranked(wanted);
            let FlowMod { table_id, priority, matching, .. } = ranked.as_ref().unwrap_or(wanted);
            rule_id(*table_id, *priority, matching)
        });
        let is_done = self.obey(asker, heard, now, effects);
        let Some(profiled) = &mut self.profiled else { return };
        profiled.carried_out = None;
        let is_ignored = std::mem::take(&mut profiled.is_ignored);
        match later {
            Some(wanted) if is_done && !is_ignored => {
                if let Ok(instructions) = self.check_instructions(wanted.table_id, &wanted, version) {
                    self.hold_release(
                        id,
                        Held::Release { wanted, rule, instructions, asker, session, size_bytes },
                    );
                }
            }
            Some(_) => self.tell_model(Input::Refused(id), now, effects),
            None => {}
        }
        self.tell_changes(now, effects);
    }

    /// Asks the model for a place for a rule that all checks of the switch have passed. Returns whether it has one; some switches ignore
    /// such a flow mod without an error. If it has none, nothing has changed.
    pub(super) fn takes_place(&mut self, wanted: &FlowMod, now: Duration) -> Result<bool, Refusal> {
        let Some(profiled) = &mut self.profiled else { return Ok(true) };
        // A rule that no packet can match is in no table.
        let (Some(id), Some(rule)) = (profiled.carried_out, profiled.rule_of(wanted)) else {
            return Ok(true);
        };
        let mut placed = std::mem::take(&mut profiled.placed);
        profiled.model.on_input(nanoseconds(now), Input::Added { id, rule }, &mut placed);
        let decided = placed.iter().find_map(|output| match output {
            Output::Refuse { id: of, .. } if *of == id => Some(Err(Refusal::TableFull)),
            Output::Lost { id: of, .. } if *of == id => Some(Ok(false)),
            _ => None,
        });
        if decided.is_some() {
            profiled.is_ignored = decided == Some(Ok(false));
            placed.clear();
        }
        profiled.placed = placed;
        if decided.is_some() {
            self.forget_if_gone(rule.id);
        }
        // An error is counted when it is sent.
        self.counters.rules_refused += u64::from(decided == Some(Ok(false)));
        decided.unwrap_or(Ok(true))
    }

    /// The rule is in the tables. Acts on what the model said about its place.
    pub(super) fn act_on_placed(&mut self, now: Duration, effects: &mut Effects) {
        let Some(profiled) = &mut self.profiled else { return };
        let mut placed = std::mem::take(&mut profiled.placed);
        for output in placed.drain(..) {
            self.act_on_one(output, now, effects);
        }
        if let Some(profiled) = &mut self.profiled {
            profiled.placed = placed;
        }
    }

    /// The packet that waits for a flow mod leaves when the model says so.
    fn hold_release(&mut self, id: MessageId, release: Held) {
        if let Some(profiled) = &mut self.profiled {
            profiled.hold_as(id, release);
        }
    }

    /// Tells the model what a message did to rules.
    fn tell_changes(&mut self, now: Duration, effects: &mut Effects) {
        let Some(profiled) = &mut self.profiled else { return };
        let changed = std::mem::take(&mut profiled.changed);
        for change in changed {
            match change {
                Changed::Modified(rule) => self.tell_model(Input::Modified(rule), now, effects),
                Changed::Deleted(rule) => self.tell_model(Input::Deleted(rule), now, effects),
            }
        }
    }

    /// A packet that waited for a flow mod leaves. The agent of the switch sends it by its own tables: the data plane may be behind. In
    /// 1.0 it gets the actions of its rule. It shares the rate of the software path if the data plane has the rule in software.
    fn release_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let Some(Held::Release { wanted, rule, instructions, asker, session, .. }) = self.held(id) else {
            return;
        };
        let packet = match self.buffers.take(wanted.buffer_id, now) {
            Ok(Buffered { frame, in_port }) => Packet::new(frame, in_port),
            Err(refusal) if self.version_in(session).is_some() => {
                let message = Message { version: asker.version, xid: asker.xid, body: Body::FlowMod(wanted) };
                return self.refuse_bundled(&message, refusal, asker, effects);
            }
            Err(_) => return,
        };
        let is_slow = |rule: &RuleId| {
            asker.version == Version::V1_0
                && self.profiled.as_ref().is_some_and(|profiled| profiled.is_in_software(*rule))
        };
        match rule.filter(is_slow) {
            Some(rule) => self.hold_in_software(rule, Held::Released { packet, instructions }, now, effects),
            None => self.send_as_agent(packet, &instructions, asker.version, now, effects),
        }
    }

    fn send_as_agent(
        &mut self,
        packet: Packet,
        instructions: &Instructions,
        version: Version,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some(profiled) = &mut self.profiled else { return };
        profiled.agent_sends = true;
        self.send_released(packet, instructions, version, now, effects);
        if let Some(profiled) = &mut self.profiled {
            profiled.agent_sends = false;
        }
    }

    fn lose_held(&mut self, id: MessageId, now: Duration) {
        match self.held(id) {
            Some(Held::PacketIn { buffer_id, .. }) => self.lose_packet_in(buffer_id, now),
            Some(Held::Message { .. }) => self.counters.messages_lost += 1,
            _ => {}
        }
    }

    fn lose_packet_in(&mut self, buffer_id: Option<u32>, now: Duration) {
        self.counters.packet_ins_unheard += 1;
        if let Some(buffer_id) = buffer_id {
            let _ = self.buffers.take(buffer_id, now);
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
                // A rule that comes back goes on counting.
                read_counter(profiled, &mut self.tables, &key);
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
        if let Some(entry) = self.tables.change(key.table_id.into()).remove(key.priority, &key.matching) {
            self.tell_removed(key.table_id.into(), &entry, reason, now, effects);
        }
        self.tell_changes(now, effects);
    }

    /// When a packet last met a rule.
    fn used_ns(&self, rule: RuleId) -> u64 {
        let used = self.profiled.as_ref().and_then(|profiled| {
            let key = profiled.key_of(rule)?;
            profiled.plane.table(key.table_id)?.entry_of(key.priority, &key.matching)
        });
        used.map_or(0, |entry| nanoseconds(entry.used_at))
    }

    /// The switch reads the counters of its data plane that the answer to a message needs.
    fn read_counters_for(&mut self, body: &Body) {
        let Body::MultipartRequest(request) = body else { return };
        let Switch { profiled: Some(profiled), tables, .. } = self else { return };
        match &request.body {
            RequestBody::Flow(wanted) | RequestBody::Aggregate(wanted) => {
                let is_asked = |key: &&RuleKey| [TABLE_ALL, key.table_id].contains(&wanted.table_id);
                for key in profiled.rules().filter(is_asked) {
                    read_counter(profiled, tables, key);
                }
            }
            RequestBody::Table => {
                for (index, seen) in profiled.plane.iter().enumerate() {
                    if let Some(table) = tables.recount(index) {
                        (table.lookup_count, table.matched_count) = (seen.lookup_count, seen.matched_count);
                    }
                }
            }
            _ => {}
        }
    }

    /// An entry that is removed, with the counters of the data plane.
    pub(super) fn counted(&self, table_id: usize, entry: &FlowEntry) -> Option<FlowEntry> {
        let seen = self.profiled.as_ref()?.shown(u8::try_from(table_id).ok()?, entry)?;
        (seen.counters == entry.counters).then(|| entry.with_counters_of(seen))
    }

    /// A packet has passed the software path, and goes on where it met the rule.
    fn forward_held(&mut self, id: MessageId, now: Duration, effects: &mut Effects) {
        let (packet, mut set, table_id) = match self.held(id) {
            Some(Held::InSoftware { packet, set, table_id }) => (packet, set, table_id),
            Some(Held::Released { packet, instructions }) => {
                return self.send_as_agent(packet, &instructions, Version::V1_0, now, effects);
            }
            _ => return,
        };
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

/// The switch reads the counters of a rule from its data plane.
fn read_counter(profiled: &Profiled, tables: &mut FlowTables, key: &RuleKey) {
    let table = tables.recount(key.table_id.into());
    let entry = table.and_then(|table| table.entry_of_mut(key.priority, &key.matching));
    if let Some(entry) = entry
        && let Some(seen) = profiled.shown(key.table_id, entry)
        && seen.counters == entry.counters
    {
        entry.take_counters_of(seen);
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
