//! The engines of `paths` and `flows`, wired to emulated switches: no process, no clock, no thread.
//!
//! ```text
//!   paths::Engine ──sets──> flows::Engine ──commands──> session ──bytes──> [ to the switch ] ──> emulated network
//!        ^   <──states of sets──┘  ^──receipts, reports── session <──bytes── [ from the switch ] <──┘
//!        └──links, switches <── port status, sessions
//! ```
//!
//! In: changes of the emulated network, wanted intents, a seed. Out: what is in the switches. What is under way to and from a switch waits
//! in queues, and arrives in the order of the seed.

use crate::command_frame::{frame_of, send_bundle};
use abi::command::{Command, What};
use abi::event::Event as AbiEvent;
use abi::{Frame, ZoneId};
use emulator::topology::{Endpoint, Link as Cable};
use emulator::{ControllerId, Network, NetworkEffects, Random, SwitchOptions, Topology, network::Channel};
use flow::{DatapathId, PortNo};
use flows::change::Put;
use flows::outgoing::Sender;
use flows_contract::{Items, SetOptions, SetState, status};
use openflow::{Body, Message};
use paths::engine::{Effect, Event};
use southbound::session::{Session, State};
use southbound::{SessionOutput, SouthboundConfig, SouthboundEvent, Tag, Turn};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use view::{ConnectPoint, IntentId, Link, LinkId, LinkKind, LinkState, Switch, SwitchState};

/// The zone of the service `flows`.
const ZONE: ZoneId = ZoneId(7);
const NODE: ControllerId = ControllerId(0);
/// The only owner of sets.
const OWNER: &str = "paths";

/// A session and what is under way on it.
#[derive(Default)]
struct Line {
    session: Option<Session>,
    to_switch: VecDeque<Vec<u8>>,
    from_switch: VecDeque<Vec<u8>>,
}

pub struct Wiring {
    pub network: Network,
    pub paths: paths::engine::Engine,
    pub flows: flows::engine::Engine,
    pub random: Random,
    pub now_ms: u64,
    effects: NetworkEffects,
    lines: Vec<Line>,
    ticket: u64,
    /// The states of sets that the engine of paths was told last.
    told: BTreeMap<u64, SetState>,
}

fn below(random: &mut Random, bound: usize) -> usize {
    random.below(u32::try_from(bound).unwrap()) as usize
}

impl Wiring {
    /// All switches are connected and all links are known.
    pub fn new(topology: &Topology, seed: u64, options: &SwitchOptions) -> Wiring {
        let network = Network::with_seed(topology, options, seed, Duration::ZERO);
        let settings = flows::policy::Settings { grace_s: 0, ..flows::policy::Settings::default() };
        let mut wiring = Wiring {
            network,
            paths: paths::engine::Engine::new(1_000, 0, 0),
            flows: flows::engine::Engine::new(&settings, 0).unwrap(),
            random: Random::new(seed),
            now_ms: 0,
            effects: NetworkEffects::default(),
            lines: topology.switches.iter().map(|_| Line::default()).collect(),
            ticket: 0,
            told: BTreeMap::new(),
        };
        assert_eq!(wiring.flows.owner(OWNER), 0);
        for index in 0..wiring.lines.len() {
            wiring.connect(index);
        }
        let cables: Vec<(Cable, bool)> = wiring.network.links().collect();
        cables.into_iter().for_each(|(cable, is_up)| wiring.tell_link(&cable, is_up));
        wiring.tell(Event::ViewComplete(true));
        wiring.tell(Event::Loaded);
        wiring
    }

    fn datapath(&self, index: usize) -> DatapathId {
        self.network.switches()[index].datapath_id()
    }

    fn point(&self, index: usize, port: PortNo) -> ConnectPoint {
        ConnectPoint { switch: self.datapath(index), port }
    }

    /// Where a host is plugged in.
    pub fn place(&self, host: usize) -> ConnectPoint {
        let (_, index, port) = self.plugs().find(|(at, ..)| *at == host).unwrap();
        self.point(index, port)
    }

    /// The hosts, with the index and the port of their switches.
    fn plugs(&self) -> impl Iterator<Item = (usize, usize, PortNo)> {
        self.network.links().filter_map(|(cable, _)| match (cable.one, cable.two) {
            (Endpoint::Host { index: host }, Endpoint::Switch { index, port })
            | (Endpoint::Switch { index, port }, Endpoint::Host { index: host }) => Some((host, index, port)),
            _ => None,
        })
    }

    /// The links between switches, by their numbers.
    pub fn trunks(&self) -> Vec<usize> {
        let is_trunk = |cable: &Cable| {
            matches!((cable.one, cable.two), (Endpoint::Switch { .. }, Endpoint::Switch { .. }))
        };
        let numbered = self.network.links().enumerate();
        numbered.filter(|(_, (cable, _))| is_trunk(cable)).map(|(number, _)| number).collect()
    }

    pub fn switch_count(&self) -> usize {
        self.lines.len()
    }

    /// Whether frames can go from one switch to another, by the emulator's links alone.
    pub fn is_connected(&self, from: DatapathId, to: DatapathId) -> bool {
        let index = |id| (0..self.lines.len()).find(|index| self.datapath(*index) == id).unwrap();
        let (from, to) = (index(from), index(to));
        if !self.network.is_switch_up(from) || !self.network.is_switch_up(to) {
            return false;
        }
        let mut seen = vec![false; self.lines.len()];
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            for (cable, is_up) in self.network.links() {
                if let (Endpoint::Switch { index: one, .. }, Endpoint::Switch { index: two, .. }, true) =
                    (cable.one, cable.two, is_up)
                {
                    next.extend([(one, two), (two, one)].iter().filter(|it| it.0 == at).map(|it| it.1));
                }
            }
        }
        seen[to]
    }

    /// A link is cut or mended. The switches notice at once; the node does not yet.
    pub fn set_link(&mut self, link: usize, up: bool) {
        self.network.set_link(link, up, &mut self.effects);
        self.take_effects();
    }

    /// A switch is switched off, with all its rules, or on again.
    pub fn set_switch(&mut self, index: usize, up: bool) {
        if self.network.is_switch_up(index) == up {
            return;
        }
        self.network.set_switch(index, up, &mut self.effects);
        self.take_effects();
        match up {
            true => self.connect(index),
            false => self.disconnect(index),
        }
        // The switches at the other ends send port statuses.
        self.tell_links_at(index);
    }

    fn connect(&mut self, index: usize) {
        let at = Channel { switch: index, controller: NODE };
        self.network.on_connected(at, &mut self.effects);
        self.take_effects();
        self.lines[index].session = Some(Session::new(&SouthboundConfig::default(), self.now_ms));
        self.turn(index, |session, turn| session.open(turn));
        while self.lines[index].session.as_ref().is_some_and(|it| it.state() != State::Identified) {
            while self.push_on(index) {}
            assert!(self.pull(index), "the handshake ends");
        }
        self.turn(index, |session, turn| session.admit(turn));
        let (datapath, now_ms) = (self.datapath(index), self.now_ms);
        self.act(|flows, send| flows.on_up(datapath, false, now_ms, send));
        self.tell_switch(index, SwitchState::Up);
    }

    fn disconnect(&mut self, index: usize) {
        self.turn(index, |session, turn| session.on_end("it is switched off", turn));
        self.lines[index] = Line::default();
        let (datapath, now_ms) = (self.datapath(index), self.now_ms);
        self.act(|flows, send| flows.on_down(datapath, now_ms, send));
        self.tell_switch(index, SwitchState::Down);
    }

    fn tell_switch(&mut self, index: usize, state: SwitchState) {
        let switch = Switch {
            id: self.datapath(index),
            state,
            openflow: "1.3".to_owned(),
            n_tables: 1,
            n_buffers: 0,
            description: Default::default(),
            since_ms: 0,
            annotations: Default::default(),
        };
        self.tell(Event::Switch(&switch));
    }

    fn tell_link(&mut self, cable: &Cable, is_up: bool) {
        let (Endpoint::Switch { index: one, port }, Endpoint::Switch { index: two, port: peer }) =
            (cable.one, cable.two)
        else {
            return;
        };
        let id = LinkId { from: self.point(one, port), to: self.point(two, peer) };
        for id in [id, id.reversed()] {
            let state = if is_up { LinkState::Up } else { LinkState::Down };
            let (found, capacity_kbps, latency_us) = (LinkKind::Direct, 1_000_000, Some(100));
            let link = Link {
                id,
                found,
                state,
                capacity_kbps,
                latency_us,
                since_ms: 0,
                annotations: Default::default(),
            };
            self.tell(Event::Link(&link));
        }
    }

    /// Tells the engine of paths the present state of all links at a switch.
    fn tell_links_at(&mut self, index: usize) {
        let cables: Vec<(Cable, bool)> = self.network.links().collect();
        let is_its = |end| matches!(end, Endpoint::Switch { index: at, .. } if at == index);
        for (cable, is_up) in cables.into_iter().filter(|(cable, _)| is_its(cable.one) || is_its(cable.two)) {
            self.tell_link(&cable, is_up);
        }
    }

    /// The messages of switches are under way from now on.
    fn take_effects(&mut self) {
        for (at, message) in std::mem::take(&mut self.effects.messages) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).unwrap();
            self.lines[at.switch].from_switch.push_back(bytes);
        }
        self.effects.close.clear();
    }

    fn push_on(&mut self, index: usize) -> bool {
        let Some(bytes) = self.lines[index].to_switch.pop_front() else { return false };
        let message = Message::decode(&bytes).unwrap();
        let at = Channel { switch: index, controller: NODE };
        let now = Duration::from_millis(self.now_ms);
        self.network.on_received(at, &message, &bytes, now, &mut self.effects);
        self.take_effects();
        true
    }

    fn pull(&mut self, index: usize) -> bool {
        let Some(bytes) = self.lines[index].from_switch.pop_front() else { return false };
        if self.lines[index].session.is_none() {
            return true;
        }
        self.turn(index, |session, turn| {
            session.heard(bytes.len(), turn.now_ms);
            session.on_message(&bytes, turn).unwrap();
        });
        if matches!(Message::decode(&bytes).unwrap().body, Body::PortStatus(_)) {
            self.tell_links_at(index);
        }
        true
    }

    fn turn(&mut self, index: usize, act: impl FnOnce(&mut Session, &mut Turn<'_>)) {
        let Some(session) = &mut self.lines[index].session else { return };
        let (mut out, mut frames) = (Vec::new(), Vec::new());
        let mut sink = |effect: SessionOutput<'_>| {
            if let SessionOutput::Out(SouthboundEvent::ToZone { zone: ZONE, frame, .. }) = effect {
                frames.push(frame.to_vec());
            }
        };
        let mut turn = Turn { now_ms: self.now_ms, out: &mut out, frame: &mut Vec::new(), sink: &mut sink };
        act(session, &mut turn);
        session.on_turn_end(&mut turn);
        let mut bytes = out.as_slice();
        while !bytes.is_empty() {
            let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
            let (message, rest) = bytes.split_at(length);
            self.lines[index].to_switch.push_back(message.to_vec());
            bytes = rest;
        }
        frames.iter().for_each(|frame| self.on_frame(frame));
    }

    fn on_frame(&mut self, frame: &[u8]) {
        let now_ms = self.now_ms;
        let event = AbiEvent::read(&Frame::read(frame).unwrap()).unwrap();
        self.act(|flows, send| match event {
            AbiEvent::Receipt(datapath, it) => {
                flows.on_receipt(datapath, (it.ticket, it.outcome, it.error), it.reason, now_ms, send);
            }
            AbiEvent::StatsReply(it) => {
                flows.on_report(it.datapath, (it.ticket, it.more), it.body, now_ms, send);
            }
            _ => {}
        });
    }

    /// Something happens to the engine of rules. Its commands go to the sessions.
    fn act<R>(&mut self, act: impl FnOnce(&mut flows::engine::Engine, &mut Sender<'_>) -> R) -> R {
        let mut sent: Vec<(DatapathId, u64, Vec<u8>)> = Vec::new();
        let Wiring { flows, ticket, .. } = self;
        let result = act(flows, &mut |datapath, send| {
            *ticket += 1;
            sent.push((datapath, *ticket, frame_of(datapath, *ticket, send)));
            *ticket
        });
        for (datapath, ticket, frame) in sent {
            let index = (0..self.lines.len()).find(|index| self.datapath(*index) == datapath).unwrap();
            let command = Command::read(&Frame::read(&frame).unwrap()).unwrap();
            let (tag, mut refused) = (Tag { zone: ZONE, generation: 0, ticket }, None);
            if let What::Bundle(bundle) = command.what {
                self.turn(index, |session, turn| refused = send_bundle(session, &bundle, tag, turn));
                assert_eq!(refused, None, "the switches have bundles");
                continue;
            }
            let cookie = if let What::FlowMod(it) = command.what { ZONE.stamp(it.cookie) } else { 0 };
            self.turn(index, |session, turn| {
                session.send(&command, cookie, tag, 0, turn).unwrap();
            });
        }
        result
    }

    /// Something happens to the engine of paths. Its sets go to the engine of rules.
    pub fn tell(&mut self, event: Event<'_>) {
        let mut effects = Vec::new();
        self.paths.on_event(event, self.now_ms, &mut effects);
        for effect in effects {
            match effect {
                Effect::PutRules(id) => self.put_rules(id),
                Effect::RemoveRules(id, version) => {
                    let (now_ms, name) = (self.now_ms, format!("intent/{id}"));
                    // What is not there is removed already.
                    let _ = self.act(|flows, send| flows.remove(0, &name, version, now_ms, send));
                }
                Effect::KeepPlaces(_) | Effect::Changed(_) | Effect::Gone(_) => {}
            }
        }
    }

    fn put_rules(&mut self, id: u64) {
        let entry = self.paths.entry(IntentId(id)).unwrap();
        let options = SetOptions { in_order: entry.is_in_order(), permanent: false };
        let (version, name, now_ms) = (entry.version, format!("intent/{id}"), self.now_ms);
        let mut bytes = Vec::new();
        self.paths.write_rules(id, &mut Items::new(&mut bytes));
        let put = Put { owner: 0, name: &name, version, options, items: &bytes };
        match self.act(|flows, send| flows.put(&put, now_ms, send)) {
            Ok(()) => {}
            Err((status::STALE, _)) => self.tell(Event::RulesNotTaken(id)),
            Err((_, why)) => self.tell(Event::RulesRefused(id, &why)),
        }
    }

    /// Tells the engine of paths which sets have another state.
    fn tell_states(&mut self) {
        let number = |name: &str| name.strip_prefix("intent/")?.parse().ok();
        let sets = self.flows.sets().of(0, "");
        let now: BTreeMap<u64, SetState> =
            sets.filter_map(|(set, it)| Some((number(&it.name)?, self.flows.state(set)?))).collect();
        let before = std::mem::replace(&mut self.told, now.clone());
        for (id, state) in &now {
            if before.get(id) != Some(state) {
                self.tell(Event::Rules(*id, Some(state)));
            }
        }
        for id in before.into_keys().filter(|id| !now.contains_key(id)) {
            self.tell(Event::Rules(id, None));
        }
    }

    /// Some messages arrive, those of a random switch next.
    pub fn step(&mut self) {
        self.now_ms += 1;
        let index = below(&mut self.random, self.lines.len());
        match below(&mut self.random, 2) {
            0 => while below(&mut self.random, 4) > 0 && self.push_on(index) {},
            _ => while below(&mut self.random, 4) > 0 && self.pull(index) {},
        }
        self.think();
    }

    fn think(&mut self) {
        self.tell_states();
        self.tell(Event::Time);
    }

    fn is_quiet(&self) -> bool {
        let is_idle = |line: &Line| line.to_switch.is_empty() && line.from_switch.is_empty();
        let due_ms = self.paths.next_due_ms(self.now_ms);
        self.lines.iter().all(is_idle) && due_ms.is_none_or(|due_ms| due_ms > self.now_ms)
    }

    /// Everything arrives, until nothing is under way.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            self.now_ms += 1;
            for index in 0..self.lines.len() {
                while self.push_on(index) || self.pull(index) {}
            }
            self.think();
            if self.is_quiet() {
                return;
            }
        }
        panic!("it does not settle");
    }

    /// Time passes: audits, and the end of pauses.
    pub fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
        let now_ms = self.now_ms;
        self.act(|flows, send| flows.on_tick(now_ms, send));
        self.act(|flows, send| flows.resume(now_ms, send));
        self.settle();
    }

    /// A host sends a frame. Returns the hosts that receive it, each as often as it does; `None`: it runs in a circle.
    pub fn send(&mut self, host: usize, frame: &[u8]) -> Option<Vec<usize>> {
        let (_, index, port) = self.plugs().find(|(at, ..)| *at == host).unwrap();
        let hosts = self.network.hosts().len();
        (0..hosts).for_each(|index| self.network.set_tap(Endpoint::Host { index }, true));
        let now = Duration::from_millis(self.now_ms);
        if self.network.is_switch_up(index) {
            self.network.on_frame_from_outside(index, port, frame.to_vec(), now, &mut self.effects);
        }
        // More than all switches can do with a frame that never comes to one twice at the same port.
        let budget = 16 * (self.lines.len() + hosts);
        let goes_on = self.network.carry(budget, now, &mut self.effects);
        self.take_effects();
        let mut there = Vec::new();
        for capture in std::mem::take(&mut self.effects.captured) {
            if let Endpoint::Host { index } = capture.place {
                there.push(index);
            }
        }
        there.sort_unstable();
        (!goes_on).then_some(there)
    }
}
