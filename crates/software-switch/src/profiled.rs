//! What a switch has in addition while it plays a profile: the model, what waits for it, and a data plane of its own.
//!
//! ```text
//!   flow mod ──> FlowTables of the switch: what it claims to have ──┐
//!                                                                   │ InDataPlane
//!   packet ────> FlowTables here: what packets meet <───────────────┘
//! ```
//!
//! In: rules and their numbers. Out: the numbers of rules, and entries of the data plane. It never carries an output of the model out:
//! the switch does that.

use flow::Match;
use openflow::message::FlowMod;
use openflow::{Body, Message};
use profile::Profile;
use profile::model::{Input, MessageId, Miss, Model, Output, Place, Rule, RuleId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::action_set::ActionSet;
use super::instructions::Instructions;
use super::packet::Packet;
use super::path_cache::Step;
use super::rule_book::rule_number;
use super::session::{Asker, ControllerId, SessionId};
use super::table::FlowEntry;
use super::tables::FlowTables;

/// How many bytes of packets wait for outputs of the model, about: 40,000 packets of full size. Above it, packets and packet-ins are
/// dropped. As many bytes of messages may wait besides: above that, messages are lost. The model bounds the numbers of both.
const HELD_BYTES_MAX: usize = 64 << 20;

/// From so many bytes or messages on, the switch does not read its connections. A caller that stops then stays below the bounds at which
/// messages are lost. Packets do not count: a flood of them must not close the way of the controllers' messages.
const READ_BYTES_MAX: usize = 16 << 20;
const READ_MESSAGES_MAX: usize = 16_384;

/// How many times the bytes of a message wait: as they came, and decoded, where an action of 8 bytes takes some 24.
const DECODED: usize = 4;

/// What waits for an output of the model.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// A message of a controller, with its bytes if it came as bytes.
    Message { session: SessionId, message: Message, bytes: Option<Vec<u8>> },
    /// Packet-ins for the controllers that want the packet.
    PacketIn { messages: Vec<(SessionId, Message)>, buffer_id: Option<u32> },
    /// A packet that met a rule in software, and the table in which it did.
    InSoftware { packet: Packet, set: ActionSet, table_id: u8 },
    /// A flow mod whose buffered packet leaves later, and its rule.
    Release {
        wanted: FlowMod,
        rule: Option<RuleId>,
        instructions: Instructions,
        asker: Asker,
        session: SessionId,
        /// About how many bytes the flow mod takes.
        size_bytes: usize,
    },
    /// A packet that a flow mod of 1.0 has released by these instructions. Its rule is in software.
    Released { packet: Packet, instructions: Instructions },
}

impl Held {
    /// About how many bytes it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let data = |message: &Message| match &message.body {
            Body::PacketIn(packet_in) => packet_in.data.len(),
            Body::PacketOut(packet_out) => packet_out.data.len(),
            _ => 0,
        };
        let more = match self {
            Held::Message { message, bytes, .. } => {
                data(message) + DECODED * bytes.as_ref().map_or(0, Vec::len)
            }
            Held::PacketIn { messages, .. } => {
                messages.iter().map(|(_, message)| size_of::<Message>() + data(message)).sum()
            }
            Held::InSoftware { packet, .. } | Held::Released { packet, .. } => packet.frame.len(),
            Held::Release { size_bytes, .. } => *size_bytes,
        };
        size_of::<Held>() + more
    }

    /// Whether a controller has sent it.
    fn is_of_controller(&self) -> bool {
        matches!(self, Held::Message { .. } | Held::Release { .. })
    }
}

/// A rule's table, priority and match.
#[derive(Clone, Debug)]
pub(crate) struct RuleKey {
    pub(crate) table_id: u8,
    pub(crate) priority: u16,
    pub(crate) matching: Match,
}

impl RuleKey {
    /// The rule that a flow mod adds.
    pub(crate) fn of(wanted: &FlowMod) -> Self {
        let (table_id, priority) = (wanted.table_id, wanted.priority);
        RuleKey { table_id, priority, matching: wanted.matching.clone() }
    }
}

/// What a message did to rules.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changed {
    Modified(RuleId),
    Deleted(RuleId),
}

/// The additional parts of a switch that plays a profile.
#[derive(Clone, Debug)]
pub(crate) struct Profiled {
    pub(crate) model: Model,
    profile: Arc<Profile>,
    seed: u64,
    slow_motion: u32,
    /// The rules that packets meet.
    pub(crate) plane: FlowTables,
    held: HashMap<u64, Held>,
    packet_bytes: usize,
    message_bytes: usize,
    held_messages: usize,
    last_id: u64,
    /// The rules that are in the switch's tables or in the data plane.
    rules: HashMap<RuleId, RuleKey>,
    /// What the present message has done to rules.
    pub(crate) changed: Vec<Changed>,
    /// The message that is carried out.
    pub(crate) carried_out: Option<MessageId>,
    /// Whether the switch ignores that message without an error, since there is no place for its rule.
    pub(crate) is_ignored: bool,
    /// What the model said when it gave a rule a place. It holds once the rule is in the tables.
    pub(crate) placed: Vec<Output>,
    /// Whether the agent of the switch sends the present packet by the tables that the switch claims to have.
    pub(crate) agent_sends: bool,
    /// Whether the model alone bounds the number of rules.
    pub(crate) bounds_tables: bool,
    /// Whether the packet that comes next has already passed the software path.
    pub(crate) is_resuming: bool,
    /// Whether outputs of the model are being carried out.
    pub(crate) is_running: bool,
    /// Memory for outputs, kept only to reuse it.
    pub(crate) spare: Vec<Output>,
}

impl Profiled {
    pub(crate) fn new(profile: &Arc<Profile>, n_tables: usize, seed: u64, slow_motion: u32) -> Self {
        Profiled {
            model: Model::new(profile, seed).in_slow_motion(slow_motion),
            profile: profile.clone(),
            seed,
            slow_motion,
            plane: FlowTables::new(n_tables),
            held: HashMap::new(),
            packet_bytes: 0,
            message_bytes: 0,
            held_messages: 0,
            last_id: 0,
            rules: HashMap::new(),
            changed: Vec::new(),
            carried_out: None,
            is_ignored: false,
            placed: Vec::new(),
            agent_sends: false,
            bounds_tables: profile.has_table(),
            is_resuming: false,
            is_running: false,
            spare: Vec::new(),
        }
    }

    /// The same switch without rules, and with nothing that waits.
    pub(crate) fn blank(&self) -> Self {
        Profiled::new(&self.profile, self.plane.len(), self.seed, self.slow_motion)
    }

    /// How many bytes of a buffered packet a controller gets that asked for no other number.
    pub(crate) fn miss_send_bytes(&self) -> u16 {
        self.profile.packet_in.miss_send_bytes
    }

    /// Holds something until the model speaks of it. `None`: there is no room for it.
    pub(crate) fn hold(&mut self, held: Held) -> Option<MessageId> {
        if *self.bytes_with(&held) + held.size_bytes() > HELD_BYTES_MAX {
            return None;
        }
        self.last_id += 1;
        let id = MessageId(self.last_id);
        self.hold_as(id, held);
        Some(id)
    }

    /// Holds something under a number that was given before.
    pub(crate) fn hold_as(&mut self, id: MessageId, held: Held) {
        *self.bytes_with(&held) += held.size_bytes();
        self.held_messages += usize::from(matches!(held, Held::Message { .. }));
        if let Some(before) = self.held.insert(id.0, held) {
            self.let_go(&before);
        }
    }

    pub(crate) fn take(&mut self, id: MessageId) -> Option<Held> {
        let held = self.held.remove(&id.0)?;
        self.let_go(&held);
        Some(held)
    }

    /// The bytes that something is counted with.
    fn bytes_with(&mut self, held: &Held) -> &mut usize {
        if held.is_of_controller() { &mut self.message_bytes } else { &mut self.packet_bytes }
    }

    fn let_go(&mut self, held: &Held) {
        *self.bytes_with(held) -= held.size_bytes();
        self.held_messages -= usize::from(matches!(held, Held::Message { .. }));
    }

    /// Whether nothing is held, and nothing is counted as held.
    #[cfg(test)]
    pub(crate) fn holds_nothing(&self) -> bool {
        self.held.is_empty() && (self.packet_bytes, self.message_bytes, self.held_messages) == (0, 0, 0)
    }

    /// Whether the switch reads its connections.
    pub(crate) fn takes_messages(&self) -> bool {
        self.held_messages < READ_MESSAGES_MAX && self.message_bytes < READ_BYTES_MAX
    }

    /// Forgets the messages of a controller. The time that the CPU has worked on them stays used.
    pub(crate) fn drop_messages_of(&mut self, controller: ControllerId) {
        let is_of =
            |held: &Held| matches!(held, Held::Message { session, .. } if session.controller == controller);
        let gone: Vec<u64> = self.held.iter().filter(|(_, held)| is_of(held)).map(|(id, _)| *id).collect();
        if gone.is_empty() {
            return;
        }
        gone.into_iter().for_each(|id| drop(self.take(MessageId(id))));
        let Profiled { held, model, .. } = self;
        model.forget_messages(|id| !held.contains_key(&id.0));
    }

    /// The rule of a flow mod, for the model. None: no packet can match it, so that it is in no table.
    pub(crate) fn rule_of(&mut self, wanted: &FlowMod) -> Option<Rule> {
        let id = rule_id(wanted.table_id, wanted.priority, &wanted.matching)?;
        self.rules.entry(id).or_insert_with(|| RuleKey::of(wanted));
        let class = self.profile.hardware.as_ref().and_then(|hardware| hardware.class_of(&wanted.matching));
        Some(Rule {
            id,
            priority: wanted.priority,
            class: class.and_then(|class| u8::try_from(class).ok()),
            idle_timeout_s: wanted.idle_timeout_s,
            hard_timeout_s: wanted.hard_timeout_s,
        })
    }

    pub(crate) fn key_of(&self, rule: RuleId) -> Option<&RuleKey> {
        self.rules.get(&rule)
    }

    /// The rules that are in the switch's tables or in the data plane, in no particular order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &RuleKey> {
        self.rules.values()
    }

    /// The rule is neither in the tables nor in the data plane.
    pub(crate) fn forget(&mut self, rule: RuleId) {
        self.rules.remove(&rule);
    }

    /// The data plane has a rule from now on, in its present form. Its counters go on.
    pub(crate) fn show(&mut self, table_id: u8, mut entry: FlowEntry, place: Place) {
        entry.in_software = place == Place::Software;
        if self.plane.table(table_id).is_none() {
            return;
        }
        let table = self.plane.change(table_id.into());
        if let Some(before) = table.entry_of(entry.priority, &entry.matching)
            && before.counters == entry.counters
        {
            entry.take_counters_of(before);
        }
        table.put(entry);
    }

    /// The data plane does not have the rule any more.
    pub(crate) fn hide(&mut self, key: &RuleKey) {
        if self.plane.table(key.table_id).is_some() {
            self.plane.change(key.table_id.into()).remove(key.priority, &key.matching);
        }
    }

    /// The rule of an entry, if it is in software in the data plane. `claimed`: the entry of the switch's own tables, if the agent
    /// sends the packet by these.
    pub(crate) fn software_rule(&self, step: Step, claimed: Option<&FlowEntry>) -> Option<RuleId> {
        let entry = match claimed {
            Some(claimed) => self.shown(step.table_id, claimed),
            None => self.plane.entry(step),
        };
        let entry = entry.filter(|entry| entry.in_software)?;
        rule_id(step.table_id, entry.priority, &entry.matching)
    }

    /// Whether the data plane has a rule in software.
    pub(crate) fn is_in_software(&self, rule: RuleId) -> bool {
        let entry = self.key_of(rule).and_then(|key| {
            let table = self.plane.table(key.table_id)?;
            table.entry_of(key.priority, &key.matching)
        });
        entry.is_some_and(|entry| entry.in_software)
    }

    /// The entry of the data plane for an entry that the switch claims to have.
    pub(crate) fn shown(&self, table_id: u8, claimed: &FlowEntry) -> Option<&FlowEntry> {
        self.plane.table(table_id)?.entry_of(claimed.priority, &claimed.matching)
    }

    /// The agent of the switch sends a packet by an entry that the switch claims to have. The entry of the data plane counts it.
    pub(crate) fn count(&mut self, table_id: u8, claimed: &FlowEntry, bytes: usize, now: Duration) {
        let slot =
            self.plane.table(table_id).and_then(|table| table.exactly(claimed.priority, &claimed.matching));
        if let Some(slot) = slot {
            self.plane.hit(Step { table_id, slot }, bytes, now);
        }
    }
}

/// The number of a rule: the same for the same table, priority and match.
pub(crate) fn rule_id(table_id: u8, priority: u16, matching: &Match) -> Option<RuleId> {
    rule_number(table_id, priority, matching).map(RuleId)
}

/// A packet for the controllers, which may be in a buffer of the switch already.
pub(crate) fn miss(id: MessageId, length: usize, now: Duration) -> Input {
    Input::Miss(Miss {
        id,
        arrived_ns: nanoseconds(now),
        length_bytes: u32::try_from(length).unwrap_or(u32::MAX),
        wanted_bytes: None,
        may_be_buffered: false,
    })
}

/// The model's time.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
