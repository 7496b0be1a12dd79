//! The proxy itself: what it does with each message, and when.
//!
//! ```text
//!   message of the controller ──> of_controller ────┐             ┌──> act ──> rules, packets, errors
//!   packet-in, answer of the switch ──> of_switch ──┼──> Model ──>┤
//!   frame at a tap ──> sightings ───────────────────┘             └──> barriers, polls
//! ```
//!
//! In: the time and [`Event`]s. Out: [`Commands`], and whether the message passes unchanged. [`Proxy::next_due_ns`] says when
//! [`Event::Time`] must come next. It never does I/O and never reads a clock.

mod act;
mod barriers;
mod confirm;
mod late;
mod meters;
mod of_controller;
mod of_switch;
mod packets;
mod poll;
mod polls;
mod replies;
mod rules;
mod stale;

use flow::PortNo;
use openflow::{Header, Version};
use profile::model::{Input, MessageId, Model, Output};
use profile::{Quantiles, Random};
use std::collections::{BTreeSet, HashMap};

pub(crate) use barriers::QUESTIONS_MAX;

use crate::commands::{Commands, Counters, Event, Passage, Rubbish, Side};
use crate::held::{Held, HeldMessages};
use crate::own::OwnIds;
use crate::settings::{Method, Settings};
use crate::shadow::Shadow;
use crate::sightings::Sightings;
use crate::wire::kind;
use barriers::Barriers;
use late::LateMisses;
use packets::{KeptPackets, PacketInLengths};
use polls::Polls;
use stale::NewRules;

/// A proxy between one switch and one controller.
#[derive(Debug)]
pub struct Proxy {
    settings: Settings,
    /// `None`: the profile changes nothing.
    model: Option<Model>,
    /// The own delay of the switch behind the proxy, for packets that no tap has seen.
    base: Quantiles,
    random: Random,
    counters: Counters,
    /// The version of the session, once the controller has sent a request.
    version: Option<Version>,
    held: HeldMessages,
    seen: Sightings,
    kept: KeptPackets,
    lengths: PacketInLengths,
    shadow: Shadow,
    new_rules: NewRules,
    own: OwnIds,
    barriers: Barriers,
    polls: Polls,
    /// Outputs of the model that are not acted on yet.
    queue: Vec<Output>,
    /// Until when the model has been asked for what is due. It stands still while the proxy waits for the switch.
    reached_ns: u64,
    /// The packet-ins that came meanwhile.
    late: LateMisses,
    /// Whether the switch takes so few bytes that it must get no more.
    is_switch_behind: bool,
    /// The meter of rules in software, in a session that has one.
    meter: Option<u32>,
    /// Which message for the switch made that meter. Until the switch has confirmed or refused it, nobody knows whether rules may have it.
    meter_sent: Option<u64>,
    /// Flow mods that were carried out, and for which a packet waits.
    waiting: HashMap<MessageId, Held>,
    /// The controller's own meters.
    meters: BTreeSet<u32>,
}

impl Proxy {
    /// A proxy that waits for its first session.
    pub fn new(settings: Settings) -> Self {
        Proxy {
            model: (!settings.is_null()).then(|| settings.model()),
            base: settings.base_ingress(),
            random: Random::new(settings.seed),
            counters: Counters::default(),
            version: None,
            held: HeldMessages::default(),
            seen: Sightings::default(),
            kept: KeptPackets::new(settings.buffer_life_ns()),
            lengths: PacketInLengths::default(),
            shadow: Shadow::default(),
            new_rules: NewRules::default(),
            own: OwnIds::default(),
            barriers: Barriers::default(),
            polls: Polls::default(),
            queue: Vec::new(),
            reached_ns: 0,
            late: LateMisses::default(),
            is_switch_behind: false,
            meter: None,
            meter_sent: None,
            waiting: HashMap::new(),
            meters: BTreeSet::new(),
            settings,
        }
    }

    /// What it plays.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        Counters { frames_forgotten: self.counters.frames_forgotten + self.seen.forgotten, ..self.counters }
    }

    /// Whether the controller has begun to ask the switch.
    pub fn is_in_session(&self) -> bool {
        self.version.is_some()
    }

    /// Whether the controller may be read. If not, it waits until messages have left.
    pub fn takes_from_controller(&self) -> bool {
        self.held.has_room_for_messages() && !self.waits_for_switch()
    }

    /// When [`Event::Time`] must come. `None`: not before another event.
    pub fn next_due_ns(&self) -> Option<u64> {
        if self.waits_for_switch() {
            return None;
        }
        let model = self.model.as_ref().and_then(Model::next_due_ns);
        let left = (!self.queue.is_empty()).then_some(self.reached_ns);
        [left, self.late.next_ns(), model, self.polls.due_ns()].into_iter().flatten().min()
    }

    /// The switch takes so few bytes that it must get no more, or it takes them again.
    pub fn set_switch_behind(&mut self, is_behind: bool) {
        self.is_switch_behind = is_behind;
    }

    /// Something happens. Messages and frames come in the order in which they came in; the time never goes back.
    pub fn on_event(&mut self, now_ns: u64, event: Event<'_>, out: &mut Commands) -> Passage {
        match event {
            Event::FromSwitch(message) => match header_of(Side::Switch, message) {
                Ok(header) => self.on_switch_message(now_ns, header, message, out),
                Err(rubbish) => end(rubbish, out),
            },
            Event::FromController(message) => match header_of(Side::Controller, message) {
                Ok(header) => self.on_controller_message(now_ns, header, message, out),
                Err(rubbish) => end(rubbish, out),
            },
            Event::Frame { port, arrived_ns, frame } => {
                self.on_frame(port, arrived_ns, frame);
                Passage::Taken
            }
            Event::Time => {
                let at_ns = self.settle(now_ns, out);
                self.poll_if_due(at_ns, out);
                Passage::Taken
            }
            Event::Ended => {
                self.forget_session();
                Passage::Taken
            }
        }
    }

    fn on_frame(&mut self, port: PortNo, arrived_ns: u64, frame: &[u8]) {
        if self.model.is_some() {
            self.seen.add(port, frame, arrived_ns);
        }
    }

    /// The next session begins as this proxy began, with the same seed.
    fn forget_session(&mut self) {
        let counters = self.counters();
        *self = Proxy { counters, ..Proxy::new(self.settings.clone()) };
    }

    fn is_full(&self) -> bool {
        self.settings.method == Method::Full
    }

    /// The model learns of something. Its outputs wait in the queue.
    fn tell_model(&mut self, at_ns: u64, input: Input) {
        self.reached_ns = self.reached_ns.max(at_ns);
        if let Some(model) = &mut self.model {
            model.on_input(at_ns, input, &mut self.queue);
        }
    }

    /// Does what is due until now. Each thing happens in the model's time, even if the machine is late. It stops while the proxy waits for
    /// the switch. Returns until when it came: that is the time of what the model learns next.
    fn settle(&mut self, now_ns: u64, out: &mut Commands) -> u64 {
        self.act_on_queue(out);
        while !self.waits_for_switch() && self.step(now_ns) {
            self.act_on_queue(out);
        }
        if !self.waits_for_switch() {
            self.reached_ns = self.reached_ns.max(now_ns);
        }
        self.confirm_ahead(out);
        self.reached_ns
    }

    /// What comes next until now: something is due, or a packet-in has waited outside. Returns whether there was something.
    fn step(&mut self, now_ns: u64) -> bool {
        let due_ns = self.model.as_ref().and_then(Model::next_due_ns).unwrap_or(u64::MAX);
        if let Some((came_ns, miss)) = self.late.take_before(due_ns.min(now_ns.saturating_add(1))) {
            self.tell_model(came_ns, Input::Miss(miss));
            return true;
        }
        if due_ns > now_ns {
            return false;
        }
        self.reached_ns = self.reached_ns.max(due_ns);
        if let Some(model) = &mut self.model {
            model.on_time(due_ns, &mut self.queue);
        }
        true
    }

    /// What is in the queue has happened at the time that the model has come to.
    fn act_on_queue(&mut self, out: &mut Commands) {
        let (at_ns, mut index) = (self.reached_ns, 0);
        while !self.waits_for_switch()
            && let Some(output) = self.queue.get(index).copied()
        {
            index += 1;
            self.act(output, at_ns, out);
            self.confirm_ahead_of_much(out);
        }
        self.queue.drain(..index);
    }
}

fn end(rubbish: Rubbish, out: &mut Commands) -> Passage {
    out.end = Some(rubbish);
    Passage::Taken
}

/// The header of a message. Only a hello and an error may have another version than 1.0 and 1.3.
fn header_of(from: Side, message: &[u8]) -> Result<Header, Rubbish> {
    let rubbish = |what: String| Rubbish { from, what };
    let header = Header::read(message).map_err(|bad| rubbish(bad.to_string()))?;
    if usize::from(header.length) != message.len() {
        let what = format!("a message of {} bytes says that it has {}", message.len(), header.length);
        return Err(rubbish(what));
    }
    check_beginning(from, message)?;
    Ok(header)
}

/// Checks the first two bytes of a message that may not be whole yet, so that the proxy does not wait for the rest of a message that is not OpenFlow.
pub(crate) fn check_beginning(from: Side, message: &[u8]) -> Result<(), Rubbish> {
    let [version, kind, ..] = *message else { return Ok(()) };
    if Version(version).is_spoken() || [kind::HELLO, kind::ERROR].contains(&kind) {
        return Ok(());
    }
    Err(Rubbish { from, what: format!("a message of type {kind} of OpenFlow {}", Version(version)) })
}
