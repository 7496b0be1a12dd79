//! A caller of the model: it has a table of rules, carries outputs out, and writes down what came and when.

pub use crate::random::Draw;
use profile::model::*;
use profile::{MessageType, Model};
use std::collections::{BTreeMap, BTreeSet};

/// Which rules a modify or delete selects: all, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    All,
    One(RuleId),
}

/// A caller.
pub struct Caller {
    pub model: Model,
    /// What came, and when.
    pub came: Vec<(u64, Output)>,
    /// The rules in the caller's table.
    pub rules: BTreeSet<RuleId>,
    /// Where packets meet each rule.
    pub places: BTreeMap<RuleId, Place>,
    /// When packets last met a rule.
    pub used: BTreeMap<RuleId, u64>,
    ended: BTreeMap<MessageId, (u64, Output)>,
    selections: BTreeMap<MessageId, (MessageType, Selected)>,
    adds: BTreeMap<MessageId, RuleId>,
    out: Vec<Output>,
    next_id: u64,
}

impl Caller {
    pub fn new(model: Model) -> Self {
        Caller {
            model,
            came: Vec::new(),
            rules: BTreeSet::new(),
            places: BTreeMap::new(),
            used: BTreeMap::new(),
            ended: BTreeMap::new(),
            selections: BTreeMap::new(),
            adds: BTreeMap::new(),
            out: Vec::new(),
            next_id: 0,
        }
    }

    pub fn id(&mut self) -> MessageId {
        self.next_id += 1;
        MessageId(self.next_id)
    }

    /// Lets time pass.
    pub fn pass_to(&mut self, until_ns: u64) {
        while let Some(due) = self.model.next_due_ns().filter(|due| *due <= until_ns) {
            self.model.on_time(due, &mut self.out);
            self.act(due);
        }
    }

    /// Lets time pass until nothing is due, but not longer than this.
    pub fn finish(&mut self, at_most_ns: u64) {
        self.pass_to(at_most_ns);
    }

    pub fn input(&mut self, now_ns: u64, input: Input) {
        self.pass_to(now_ns);
        self.model.on_input(now_ns, input, &mut self.out);
        self.act(now_ns);
        self.pass_to(now_ns);
    }

    fn act(&mut self, now_ns: u64) {
        for output in std::mem::take(&mut self.out) {
            self.came.push((now_ns, output));
            if let Some(id) = ends(&output) {
                self.ended.insert(id, (now_ns, output));
            }
            match output {
                Output::CarryOut { id } => self.carry_out(id, now_ns),
                Output::InDataPlane { rule, place: Some(place) } => {
                    self.places.insert(rule, place);
                }
                Output::InDataPlane { rule, place: None } => {
                    self.places.remove(&rule);
                }
                Output::Evict { rule } => {
                    self.rules.remove(&rule);
                }
                Output::Expire { rule } => self.end(rule, now_ns),
                Output::ExpireIfIdle { rule, unused_since_ns } => match self.used.get(&rule) {
                    Some(used) if *used > unused_since_ns => {
                        let used = Input::Used { rule, at_ns: *used, packets: 1 };
                        self.model.on_input(now_ns, used, &mut self.out);
                    }
                    _ => self.end(rule, now_ns),
                },
                _ => {}
            }
        }
    }

    fn end(&mut self, rule: RuleId, now_ns: u64) {
        self.rules.remove(&rule);
        self.model.on_input(now_ns, Input::Deleted(rule), &mut self.out);
    }

    fn carry_out(&mut self, id: MessageId, now_ns: u64) {
        self.rules.extend(self.adds.get(&id));
        let Some((kind, selected)) = self.selections.get(&id).copied() else { return };
        let rules: Vec<RuleId> = match selected {
            Selected::All => self.rules.iter().copied().collect(),
            Selected::One(rule) => self.rules.get(&rule).copied().into_iter().collect(),
        };
        for rule in rules {
            match kind {
                MessageType::Delete => self.end(rule, now_ns),
                _ => self.model.on_input(now_ns, Input::Modified(rule), &mut self.out),
            }
        }
    }

    pub fn miss(&mut self, now_ns: u64) -> MessageId {
        self.miss_of(now_ns, true)
    }

    pub fn miss_without_buffer(&mut self, now_ns: u64) -> MessageId {
        self.miss_of(now_ns, false)
    }

    fn miss_of(&mut self, now_ns: u64, may_be_buffered: bool) -> MessageId {
        let id = self.id();
        let miss = Miss { id, arrived_ns: now_ns, length_bytes: 100, wanted_bytes: None, may_be_buffered };
        self.input(now_ns, Input::Miss(miss));
        id
    }

    pub fn message(&mut self, now_ns: u64, kind: MessageType) -> MessageId {
        let id = self.id();
        self.input(now_ns, Input::Message(Message::new(id, kind)));
        id
    }

    pub fn add(&mut self, now_ns: u64, rule: Rule, packet: Packet) -> MessageId {
        let id = self.id();
        self.adds.insert(id, rule.id);
        let message = Message { rule: Some(rule), packet, ..Message::new(id, MessageType::Add) };
        self.input(now_ns, Input::Message(message));
        id
    }

    pub fn select(&mut self, now_ns: u64, kind: MessageType, selected: Selected) -> MessageId {
        let id = self.id();
        self.selections.insert(id, (kind, selected));
        self.input(now_ns, Input::Message(Message::new(id, kind)));
        id
    }

    /// When the message or packet ended, and how.
    pub fn end_of(&self, id: MessageId) -> Option<(u64, Output)> {
        self.ended.get(&id).copied()
    }

    /// When the data plane first had this rule.
    pub fn first_shown(&self, rule: RuleId) -> Option<(u64, Place)> {
        self.came.iter().find_map(|(at, output)| match output {
            Output::InDataPlane { rule: shown, place: Some(place) } if *shown == rule => Some((*at, *place)),
            _ => None,
        })
    }
}

/// The message or packet that this output ends.
pub fn ends(output: &Output) -> Option<MessageId> {
    match output {
        Output::PacketIn { id, .. }
        | Output::CarryOut { id }
        | Output::AnswerBarrier { id }
        | Output::Refuse { id, .. }
        | Output::Lost { id, .. }
        | Output::Forward { id } => Some(*id),
        _ => None,
    }
}

/// A rule without time-outs, of the first class.
pub fn rule(number: u64, priority: u16) -> Rule {
    Rule { id: RuleId(number), priority, class: Some(0), idle_timeout_s: 0, hard_timeout_s: 0 }
}

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MS;
