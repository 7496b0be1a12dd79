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
use openflow::Message;
use openflow::message::FlowMod;
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
use super::session::{Asker, ControllerId};
use super::table::FlowEntry;
use super::tables::FlowTables;

/// What waits for an output of the model. The model bounds how much that is.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// A message of a controller, with its bytes if it came as bytes.
    Message { controller: ControllerId, message: Message, bytes: Option<Vec<u8>> },
    /// Packet-ins for the controllers that want the packet.
    PacketIn { messages: Vec<(ControllerId, Message)>, buffer_id: Option<u32> },
    /// A packet that met a rule in software, and the table in which it did.
    InSoftware { packet: Packet, set: ActionSet, table_id: u8 },
    /// A flow mod whose buffered packet leaves later.
    Release { wanted: FlowMod, instructions: Instructions, asker: Asker },
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
    /// The rules that packets meet.
    pub(crate) plane: FlowTables,
    held: HashMap<u64, Held>,
    last_id: u64,
    /// The rules that are in the switch's tables or in the data plane.
    rules: HashMap<RuleId, RuleKey>,
    /// What the present message has done to rules.
    pub(crate) changed: Vec<Changed>,
    /// The rule that the present modify has added, since there was none to modify.
    pub(crate) added: Option<Rule>,
    /// Whether the packet that comes next has already passed the software path.
    pub(crate) is_resuming: bool,
    /// Whether outputs of the model are being carried out.
    pub(crate) is_running: bool,
    /// Memory for outputs, kept only to reuse it.
    pub(crate) spare: Vec<Output>,
}

impl Profiled {
    pub(crate) fn new(profile: &Arc<Profile>, n_tables: usize, seed: u64) -> Self {
        Profiled {
            model: Model::new(profile, seed),
            profile: profile.clone(),
            seed,
            plane: FlowTables::new(n_tables),
            held: HashMap::new(),
            last_id: 0,
            rules: HashMap::new(),
            changed: Vec::new(),
            added: None,
            is_resuming: false,
            is_running: false,
            spare: Vec::new(),
        }
    }

    /// The same switch without rules, and with nothing that waits.
    pub(crate) fn blank(&self) -> Self {
        Profiled::new(&self.profile, self.plane.len(), self.seed)
    }

    /// How many bytes of a buffered packet a controller gets that asked for no other number.
    pub(crate) fn miss_send_bytes(&self) -> u16 {
        self.profile.packet_in.miss_send_bytes
    }

    /// Holds something until the model speaks of it.
    pub(crate) fn hold(&mut self, held: Held) -> MessageId {
        self.last_id += 1;
        self.held.insert(self.last_id, held);
        MessageId(self.last_id)
    }

    /// Holds something under a number that was given before.
    pub(crate) fn hold_as(&mut self, id: MessageId, held: Held) {
        self.held.insert(id.0, held);
    }

    pub(crate) fn take(&mut self, id: MessageId) -> Option<Held> {
        self.held.remove(&id.0)
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
            entry.packet_count = before.packet_count;
            entry.byte_count = before.byte_count;
            entry.used_at = before.used_at;
        }
        table.put(entry);
    }

    /// The data plane does not have the rule any more.
    pub(crate) fn hide(&mut self, key: &RuleKey) {
        if self.plane.table(key.table_id).is_some() {
            self.plane.change(key.table_id.into()).remove(key.priority, &key.matching);
        }
    }

    /// The rule of an entry of the data plane, if it is in software.
    pub(crate) fn software_rule(&self, step: Step) -> Option<RuleId> {
        let entry = self.plane.entry(step).filter(|entry| entry.in_software)?;
        rule_id(step.table_id, entry.priority, &entry.matching)
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
