//! What must hold for any run of the model of a switch. The fuzz target calls it with what it finds, and a test of the profile crate with
//! what was kept (`corpus/model`).
//!
//! In: any bytes. The first eight are the seed of a random profile, and each further four are a step: a message, a packet or a wait. Out:
//! nothing, or a panic that says what does not hold. The rules are kept in a list, which is counted from its start for everything.

#[path = "model_profile.rs"]
mod model_profile;

use profile::model::*;
use profile::{BarrierKind, MessageType, Model, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// How many steps a run has at most: enough to fill every table and queue of the profiles.
const STEPS_MAX: usize = 600;
/// How often the model may be asked for outputs in a run. A promotion each millisecond needs most.
const TURNS_MAX: u32 = 200_000;
/// The silence at the end of a run, in which everything ends.
const SILENCE_NS: u64 = 100_000_000_000;

/// One run of the bytes, and the same once more: the outputs are the same.
pub fn model(bytes: &[u8]) {
    let Some((seed, steps)) = bytes.split_first_chunk::<8>() else { return };
    let seed = u64::from_le_bytes(*seed);
    let profile = model_profile::of(seed);
    let came = || Run::new(&profile, seed).go(steps);
    assert_eq!(came(), came(), "the same seed has other outputs: {profile:#?}");
}

/// A message or packet that went in.
#[derive(Clone, Debug)]
struct Sent {
    kind: MessageType,
    is_software: bool,
    came_ns: u64,
    rule: RuleId,
    choice: u8,
    ended: bool,
    carried_out: bool,
    forgotten: bool,
}

struct Run<'a> {
    profile: &'a Profile,
    model: Model,
    now_ns: u64,
    turns: u32,
    out: Vec<Output>,
    came: Vec<(u64, Output)>,
    sent: BTreeMap<MessageId, Sent>,
    /// The table of the caller.
    rules: BTreeSet<RuleId>,
    plane: BTreeMap<RuleId, Place>,
    used: BTreeMap<RuleId, u64>,
    /// Barriers that are not answered.
    barriers: BTreeSet<MessageId>,
    answered: Option<MessageId>,
    latest: BTreeMap<(MessageType, bool), MessageId>,
    released: BTreeSet<MessageId>,
    buffer: Option<u32>,
}

/// Whether an add comes with its rule. Otherwise the model learns of it when the add is carried out.
fn is_named(kind: MessageType, choice: u8) -> bool {
    kind == MessageType::Add && !choice.is_multiple_of(3)
}

fn rule(id: RuleId, choice: u8) -> Rule {
    Rule {
        id,
        priority: u16::from(choice % 5),
        class: (id.0 % 8 != 7).then_some((id.0 % 2) as u8),
        idle_timeout_s: u16::from(choice >> 4 & 1),
        hard_timeout_s: u16::from(choice >> 5 & 3),
    }
}

impl<'a> Run<'a> {
    fn new(profile: &'a Profile, seed: u64) -> Self {
        Run {
            profile,
            model: Model::new(profile, seed),
            now_ns: 0,
            turns: 0,
            out: Vec::new(),
            came: Vec::new(),
            sent: BTreeMap::new(),
            rules: BTreeSet::new(),
            plane: BTreeMap::new(),
            used: BTreeMap::new(),
            barriers: BTreeSet::new(),
            answered: None,
            latest: BTreeMap::new(),
            released: BTreeSet::new(),
            buffer: None,
        }
    }

    fn go(mut self, steps: &[u8]) -> Vec<(u64, Output)> {
        for step in steps.chunks_exact(4).take(STEPS_MAX) {
            self.step(step[0], step[1], step[2], step[3]);
            self.within_bounds();
        }
        self.pass_to(self.now_ns + SILENCE_NS);
        self.at_the_end();
        self.came
    }

    fn step(&mut self, what: u8, number: u8, wait: u8, choice: u8) {
        let wait = u64::from(wait);
        self.pass_to(self.now_ns + if wait < 128 { wait * 20_000 } else { (wait - 127) * 1_000_000 });
        let of = RuleId(u64::from(number) % 60);
        match what % 16 {
            0..=2 => self.miss(choice),
            3..=6 => self.say(MessageType::Add, of, choice),
            7 => self.say(MessageType::Delete, of, choice),
            8 => self.say(MessageType::Modify, of, choice),
            9 => {
                let id = self.note(MessageType::Other, true, of, choice);
                self.used.insert(of, self.now_ns);
                self.input(Input::InSoftware { id, rule: of, length_bytes: u32::from(choice) * 6 });
            }
            10 => self.input(Input::Used { rule: of, at_ns: self.now_ns, packets: u64::from(choice) }),
            11 if choice < 64 => self.forget(),
            11 | 12 => self.say(MessageType::Barrier, of, choice),
            _ => {
                let kinds =
                    [MessageType::PacketOut, MessageType::Statistics, MessageType::Echo, MessageType::Other];
                self.say(kinds[usize::from(choice) % 4], of, choice);
            }
        }
    }

    fn note(&mut self, kind: MessageType, is_software: bool, rule: RuleId, choice: u8) -> MessageId {
        let id = MessageId(self.sent.len() as u64);
        let (ended, carried_out, forgotten) = (false, false, false);
        let came_ns = self.now_ns;
        self.sent
            .insert(id, Sent { kind, is_software, came_ns, rule, choice, ended, carried_out, forgotten });
        id
    }

    fn miss(&mut self, choice: u8) {
        let id = self.note(MessageType::PacketIn, false, RuleId(0), choice);
        let (arrived_ns, wanted_bytes) = (self.now_ns, (choice > 100).then_some(u16::from(choice)));
        let may_be_buffered = !choice.is_multiple_of(8);
        self.input(Input::Miss(Miss { id, arrived_ns, length_bytes: 1000, wanted_bytes, may_be_buffered }));
    }

    fn say(&mut self, kind: MessageType, of: RuleId, choice: u8) {
        let id = self.note(kind, false, of, choice);
        if kind == MessageType::Barrier {
            self.barriers.insert(id);
        }
        let changes = [MessageType::Add, MessageType::Modify, MessageType::PacketOut].contains(&kind);
        let packet = match choice % 4 {
            _ if !changes => Packet::None,
            0 => Packet::None,
            1 => Packet::Given,
            _ => Packet::Buffered(self.buffer.unwrap_or(77)),
        };
        let rule = is_named(kind, choice).then(|| rule(of, choice));
        self.input(Input::Message(Message { id, kind, rule, packet, entries: u32::from(choice) }));
    }

    /// The connection of the controller ends.
    fn forget(&mut self) {
        let gone = |id: &MessageId, sent: &Sent| {
            !sent.ended && sent.kind != MessageType::PacketIn && !sent.is_software && !id.0.is_multiple_of(4)
        };
        for (_, sent) in self.sent.iter_mut().filter(|(id, sent)| gone(id, sent)) {
            sent.forgotten = true;
        }
        let sent = &self.sent;
        self.model.forget_messages(|id| sent[&id].forgotten);
        self.barriers.retain(|id| !sent[id].forgotten);
        self.pass_to(self.now_ns);
    }

    fn input(&mut self, input: Input) {
        self.model.on_input(self.now_ns, input, &mut self.out);
        self.act();
        self.pass_to(self.now_ns);
    }

    fn pass_to(&mut self, until_ns: u64) {
        while let Some(due) = self.model.next_due_ns().filter(|due| *due <= until_ns) {
            assert!(due >= self.now_ns, "{due} is past at {}: {:#?}", self.now_ns, self.profile);
            self.turns += 1;
            assert!(self.turns < TURNS_MAX, "it does not go on: {:#?}", self.profile);
            self.now_ns = due;
            self.model.on_time(due, &mut self.out);
            self.act();
        }
        self.now_ns = until_ns;
    }

    fn act(&mut self) {
        while !self.out.is_empty() {
            for output in std::mem::take(&mut self.out) {
                self.came.push((self.now_ns, output));
                self.act_on(output);
            }
        }
    }

    fn act_on(&mut self, output: Output) {
        match output {
            Output::PacketIn { id, buffer, .. } => {
                let count = self.profile.packet_in.buffers_packets.unwrap_or(0) as usize;
                assert!(buffer.is_none_or(|buffer| slot_of(buffer) < count));
                self.buffer = buffer.or(self.buffer);
                self.leaves(id);
            }
            Output::Forward { id } => self.leaves(id),
            Output::CarryOut { id } => {
                self.leaves(id);
                self.carry_out(id);
            }
            Output::AnswerBarrier { id } => {
                self.leaves(id);
                self.barriers.remove(&id);
                self.answered = Some(id);
            }
            Output::Refuse { id, .. } | Output::Lost { id, .. } => {
                self.ends(id);
                self.barriers.remove(&id);
            }
            Output::Release { id } | Output::NoBuffer { id, .. } => {
                assert!(self.sent[&id].carried_out && self.released.insert(id), "{id:?} releases a packet");
            }
            Output::InDataPlane { rule, place } => self.show(rule, place),
            Output::Evict { rule } => assert!(self.rules.remove(&rule), "{rule:?} was not there"),
            Output::Expire { rule } => self.delete(rule),
            Output::ExpireIfIdle { rule, unused_since_ns } => match self.used.get(&rule).copied() {
                Some(at_ns) if at_ns > unused_since_ns => {
                    self.model.on_input(self.now_ns, Input::Used { rule, at_ns, packets: 1 }, &mut self.out);
                }
                _ => self.delete(rule),
            },
        }
    }

    fn ends(&mut self, id: MessageId) {
        let now_ns = self.now_ns;
        let sent = self.sent.get_mut(&id).expect("what ends went in");
        assert!(!sent.ended && sent.came_ns <= now_ns, "{id:?}: {sent:?} at {now_ns}");
        sent.ended = true;
    }

    /// It goes on now: not before another of its type that came earlier, and not past a barrier.
    fn leaves(&mut self, id: MessageId) {
        self.ends(id);
        let Sent { kind, is_software, .. } = self.sent[&id];
        let before = self.latest.insert((kind, is_software), id);
        assert!(before.is_none_or(|before| before < id), "{id:?} after {before:?}: {:#?}", self.profile);
        if is_software || kind == MessageType::PacketIn {
            return;
        }
        let kind = &self.profile.barrier.kind;
        if !matches!(kind, BarrierKind::NotOrdering(_)) {
            let first = self.barriers.first();
            assert!(first.is_none_or(|first| *first >= id), "{id:?} passes {first:?}: {:#?}", self.profile);
        }
        if *kind == BarrierKind::Honest {
            let answered = self.answered;
            assert!(answered.is_none_or(|answered| answered < id), "{id:?} is behind {answered:?}");
        }
    }

    fn carry_out(&mut self, id: MessageId) {
        let Sent { kind, rule: of, choice, forgotten, .. } = self.sent[&id];
        let is_named = is_named(kind, choice);
        let is_refused = forgotten || choice.is_multiple_of(7);
        let selected: Vec<RuleId> = match choice % 5 {
            0 => self.rules.iter().copied().collect(),
            _ => self.rules.get(&of).copied().into_iter().collect(),
        };
        match kind {
            // A connection that has ended carries nothing out; and the switch refuses some messages.
            _ if is_refused && !is_named => {
                self.model.on_input(self.now_ns, Input::Refused(id), &mut self.out);
                return;
            }
            MessageType::Add if is_named => drop(self.rules.insert(of)),
            MessageType::Add => return self.add(id, of, choice),
            MessageType::Modify if selected.is_empty() => return self.add(id, of, choice),
            MessageType::Modify => {
                for rule in selected {
                    self.model.on_input(self.now_ns, Input::Modified(rule), &mut self.out);
                }
            }
            MessageType::Delete => selected.into_iter().for_each(|rule| self.delete(rule)),
            _ => {}
        }
        self.carried_out(id);
    }

    fn carried_out(&mut self, id: MessageId) {
        self.sent.get_mut(&id).expect("it was sent").carried_out = true;
    }

    /// A rule that the model learns of now. If there is no place for it, nothing else changes.
    fn add(&mut self, id: MessageId, of: RuleId, choice: u8) {
        let (before, there) = (self.out.len(), self.model.load());
        self.model.on_input(self.now_ns, Input::Added { id, rule: rule(of, choice) }, &mut self.out);
        let is_no = |output: &Output| match output {
            Output::Refuse { id: refused, .. } | Output::Lost { id: refused, .. } => *refused == id,
            _ => false,
        };
        if self.out[before..].iter().any(is_no) {
            assert_eq!(self.out.len(), before + 1, "a refusal is all: {:?}", self.out);
            assert_eq!(self.model.load(), there, "a refusal changes nothing");
            self.out.truncate(before);
        } else {
            self.rules.insert(of);
            self.carried_out(id);
        }
    }

    fn delete(&mut self, rule: RuleId) {
        self.rules.remove(&rule);
        self.model.on_input(self.now_ns, Input::Deleted(rule), &mut self.out);
    }

    fn show(&mut self, of: RuleId, place: Option<Place>) {
        match place {
            Some(place) => self.plane.insert(of, place),
            None => self.plane.remove(&of),
        };
        // With delays, the data plane may have a new rule before it has lost another.
        if self.profile.barrier.kind == BarrierKind::Honest {
            self.fits();
        }
    }

    /// No table of the data plane has more rules than its size, counted in parts of which each class takes a whole number.
    fn fits(&self) {
        let in_place =
            |place: Place| self.plane.iter().filter(move |(_, at)| **at == place).map(|(id, _)| *id);
        if let Some(hardware) = &self.profile.hardware {
            let capacity = |id: RuleId| {
                let class = rule(id, 0).class.expect("a rule in hardware has a class");
                &hardware.capacities[usize::from(class)]
            };
            let whole: u64 = hardware.capacities.iter().map(|class| u64::from(class.entries)).product();
            let mut parts = BTreeMap::<u8, u64>::new();
            for of in in_place(Place::Hardware).map(capacity).filter(|of| !of.at_least) {
                *parts.entry(of.memory).or_default() += whole / u64::from(of.entries);
            }
            assert!(parts.values().all(|used| *used <= whole), "{parts:?} of {whole}: {:#?}", self.profile);
        }
        if let Some(software) = &self.profile.software
            && let Some(entries) = software.bound()
        {
            let used = in_place(Place::Software).count();
            assert!(used <= entries as usize, "{used} of {entries} in software: {:#?}", self.profile);
        }
    }

    fn within_bounds(&self) {
        let load = self.model.load();
        let queue = self.profile.cpu.queue_messages.map_or(65_536, |bound| bound.max(1) as usize);
        assert!(load.queued <= queue && load.outside <= 65_536, "{load:?}");
        assert!(load.packet_ins_leaving <= 65_536 && load.packets_leaving <= 65_536, "{load:?}");
        assert!(load.changes <= 131_072, "{load:?}");
        if let Some(software) = &self.profile.software {
            assert!(software.bound().is_none_or(|entries| load.in_software <= entries as usize), "{load:?}");
        }
    }

    fn at_the_end(&self) {
        let open = self.sent.iter().find(|(_, sent)| !sent.ended && !sent.forgotten);
        assert!(open.is_none(), "{open:?} has not ended: {:#?}", self.profile);
        assert_eq!(self.plane.keys().copied().collect::<BTreeSet<_>>(), self.rules, "{:#?}", self.profile);
        let load = self.model.load();
        assert_eq!((load.queued, load.outside, load.changes), (0, 0, 0), "{load:?}");
    }
}
