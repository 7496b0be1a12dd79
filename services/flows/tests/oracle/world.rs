//! The engine, sessions of the real southbound, and switches in memory, with every message under way in a queue of its own.
//!
//! ```text
//!   engine ──Send──> southbound session ──bytes──> [ to the switch ] ──> switch in memory
//!          <──receipts, reports── session <──bytes── [ from the switch ] <──┘
//! ```
//!
//! In: what a test does. Out: what the switches have. A session can be lost with whatever is under way in its queues.

use crate::command_frame::{frame_of, send_bundle};
use abi::command::{Bundle, Command, What};
use abi::event::Event;
use abi::{Frame, Outcome, ZoneId};
use flow::{DatapathId, PortNo};
use flows::engine::Engine;
use flows::outgoing::Send;
use flows::policy::Settings;
use openflow::message::{Hello, MultipartRequest, ReplyBody, RequestBody};
use openflow::{Body, Message, Version};
use software_switch::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use southbound::session::{Session, State};
use southbound::{SessionOutput, SouthboundConfig, SouthboundEvent, Tag, Turn};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The zone of the service.
pub const ZONE: ZoneId = ZoneId(7);
const NODE: ControllerId = ControllerId(0);
/// Another controller, which looks at the switch and adds rules of its own.
const OTHER: ControllerId = ControllerId(1);
pub const PORTS: u32 = 4;
/// The switch that has no bundles.
pub const WITHOUT_BUNDLES: u64 = 3;

/// A rule as text: table, priority, match, instructions.
pub type Line = String;

pub struct Connected {
    pub session: Option<Session>,
    pub switch: Switch,
    to_switch: VecDeque<Vec<u8>>,
    from_switch: VecDeque<Vec<u8>>,
    version: Version,
    /// Frames that have left the switch.
    pub frames: Vec<(PortNo, Vec<u8>)>,
}

pub struct World {
    pub engine: Engine,
    pub switches: Vec<Connected>,
    pub now_ms: u64,
    pub ticket: u64,
    /// How many flow mods went out.
    pub flow_mods: usize,
    /// How many bundles went out.
    pub bundles: usize,
    /// How often something happened to the engine. What it gathered is sent after every third time.
    turns: u64,
    settings: Settings,
}

fn options(is_v10: bool, max_entries: u32) -> SwitchOptions {
    let versions = if is_v10 { Versions::Only10 } else { Versions::Only13 };
    let n_tables = if is_v10 { 1 } else { 4 };
    SwitchOptions { versions, n_buffers: 0, n_tables, max_entries, ..SwitchOptions::default() }
}

impl Connected {
    fn new(number: u64, is_v10: bool, max_entries: u32) -> Connected {
        let version = if is_v10 { Version::V1_0 } else { Version::V1_3 };
        let options = SwitchOptions { bundles: number != WITHOUT_BUNDLES, ..options(is_v10, max_entries) };
        let mut switch = Switch::new(DatapathId(number), format!("s{number}"), options);
        let mut effects = Effects::default();
        (1..=PORTS).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        let (to_switch, from_switch, frames) = Default::default();
        let mut connected = Connected { session: None, switch, to_switch, from_switch, version, frames };
        connected.switch.on_connected(OTHER, &mut effects);
        connected.say_as_other(Body::Hello(Hello::default()));
        connected
    }

    /// The other controller says something, and gets the answers at once.
    pub fn say_as_other(&mut self, body: Body) -> Vec<Body> {
        let mut effects = Effects::default();
        let message = Message { version: self.version, xid: 1, body };
        self.switch.on_message(OTHER, &message, NOW, &mut effects);
        let (to_other, to_node): (Vec<_>, Vec<_>) =
            effects.messages.into_iter().partition(|(controller, _)| *controller == OTHER);
        to_node.iter().for_each(|(_, message)| self.from_switch.push_back(encoded(message)));
        to_other.into_iter().map(|(_, message)| message.body).collect()
    }

    /// The rules that the switch has, as it reports them to the other controller.
    pub fn rules(&mut self) -> BTreeSet<Line> {
        let all = openflow::message::FlowStatsRequest {
            table_id: 0xff,
            out_port: PortNo::ANY,
            out_group: openflow::message::GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: flow::Match::any(),
        };
        let request = MultipartRequest { flags: 0, body: RequestBody::Flow(all) };
        let mut lines = BTreeSet::new();
        for answer in self.say_as_other(Body::MultipartRequest(request)) {
            let Body::MultipartReply(reply) = answer else { continue };
            let ReplyBody::Flow(entries) = reply.body else { continue };
            lines.extend(
                entries
                    .into_iter()
                    .map(|entry| line(entry.table_id, entry.priority, &entry.matching, &entry.instructions)),
            );
        }
        lines
    }

    fn receive(&mut self, bytes: &[u8]) {
        let mut effects = Effects::default();
        let message = Message::decode(bytes).unwrap();
        self.switch.on_received(NODE, &message, bytes, NOW, &mut effects);
        self.frames.append(&mut effects.frames);
        let to_node = effects.messages.iter().filter(|(controller, _)| *controller == NODE);
        to_node.for_each(|(_, message)| self.from_switch.push_back(encoded(message)));
    }
}

const NOW: Duration = Duration::from_secs(1_000);

pub fn line(table_id: u8, priority: u16, matching: &flow::Match, instructions: &[flow::Instruction]) -> Line {
    let matching = flow::text::match_to_string(matching);
    // A switch of 1.0 reports this action in 1.0's words.
    let instructions = flow::text::instructions_to_string(instructions)
        .replace("mod_dl_dst:00:00:00:00:00:09", "set_field:00:00:00:00:00:09->eth_dst");
    format!("table={table_id} priority={priority} {matching} -> {instructions}")
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    bytes
}

impl World {
    pub fn new(switches: u64, is_v10: bool, max_entries: u32) -> World {
        World::with(Settings::default(), switches, is_v10, max_entries)
    }

    /// The same with a policy for the rules of others.
    pub fn with(policy: Settings, switches: u64, is_v10: bool, max_entries: u32) -> World {
        let settings = Settings { grace_s: 5, audit_interval_s: 20, ..policy };
        World {
            engine: Engine::new(&settings, 0).unwrap().gathering(),
            turns: 0,
            switches: (1..=switches).map(|number| Connected::new(number, is_v10, max_entries)).collect(),
            now_ms: 0,
            ticket: 0,
            flow_mods: 0,
            bundles: 0,
            settings,
        }
    }

    /// The service crashes, and starts again with nothing but its settings.
    pub fn restart(&mut self) {
        self.engine = Engine::new(&self.settings, self.now_ms).unwrap().gathering();
        for number in 0..self.switches.len() {
            if self.switches[number].session.is_some() {
                self.up(number);
            }
        }
    }

    fn up(&mut self, number: usize) {
        let (datapath, now_ms) = (DatapathId(number as u64 + 1), self.now_ms);
        let is_v10 = self.switches[number].version == Version::V1_0;
        self.act(|engine, send| engine.on_up(datapath, is_v10, now_ms, send));
    }

    /// A session begins: the handshake is done at once.
    pub fn connect(&mut self, number: usize) {
        if self.switches[number].session.is_some() {
            return;
        }
        let mut effects = Effects::default();
        self.switches[number].switch.on_connected(NODE, &mut effects);
        let to_node = effects.messages.iter().filter(|(controller, _)| *controller == NODE);
        self.switches[number].from_switch.extend(to_node.map(|(_, message)| encoded(message)));
        self.switches[number].session = Some(Session::new(&SouthboundConfig::default(), self.now_ms));
        self.turn(number, |session, turn| session.open(turn));
        while self.switches[number].session.as_ref().is_some_and(|it| it.state() != State::Identified) {
            while self.push_on(number) {}
            assert!(self.pull(number), "the handshake ends");
        }
        self.turn(number, |session, turn| session.admit(turn));
        self.up(number);
    }

    /// The session ends. What is under way is lost; at most so many messages still reach the switch.
    pub fn disconnect(&mut self, number: usize, reach_it: usize) {
        if self.switches[number].session.is_none() {
            return;
        }
        for _ in 0..reach_it {
            self.push_on(number);
        }
        self.turn(number, |session, turn| session.on_end("the test ends it", turn));
        let connected = &mut self.switches[number];
        connected.session = None;
        connected.to_switch.clear();
        connected.from_switch.clear();
        connected.switch.on_disconnected(NODE);
        let (datapath, now_ms) = (DatapathId(number as u64 + 1), self.now_ms);
        self.act(|engine, send| engine.on_down(datapath, now_ms, send));
    }

    /// The next message of the node reaches the switch. `false`: there is none.
    pub fn push_on(&mut self, number: usize) -> bool {
        let Some(bytes) = self.switches[number].to_switch.pop_front() else { return false };
        self.switches[number].receive(&bytes);
        true
    }

    /// The next message of the switch reaches the node. `false`: there is none.
    pub fn pull(&mut self, number: usize) -> bool {
        let Some(bytes) = self.switches[number].from_switch.pop_front() else { return false };
        self.turn(number, |session, turn| {
            session.heard(bytes.len(), turn.now_ms);
            session.on_message(&bytes, turn).unwrap();
        });
        true
    }

    /// The session does something. What it says reaches the engine, and what it writes is under way.
    fn turn(&mut self, number: usize, act: impl FnOnce(&mut Session, &mut Turn<'_>)) {
        let Some(session) = &mut self.switches[number].session else { return };
        let (mut out, mut frames) = (Vec::new(), Vec::new());
        let mut sink = |effect: SessionOutput<'_>| {
            if let SessionOutput::Out(SouthboundEvent::ToZone { zone: ZONE, frame, .. }) = effect {
                frames.push(frame.to_vec());
            }
        };
        let mut turn = Turn { now_ms: self.now_ms, out: &mut out, frame: &mut Vec::new(), sink: &mut sink };
        act(session, &mut turn);
        session.on_turn_end(&mut turn);
        self.queue(number, &out);
        frames.iter().for_each(|frame| self.on_event(frame));
    }

    fn queue(&mut self, number: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
            let (message, rest) = bytes.split_at(length);
            self.switches[number].to_switch.push_back(message.to_vec());
            bytes = rest;
        }
    }

    fn on_event(&mut self, frame: &[u8]) {
        let now_ms = self.now_ms;
        let event = Event::read(&Frame::read(frame).unwrap()).unwrap();
        self.act(|engine, send| match event {
            Event::Receipt(datapath, it) => {
                engine.on_receipt(datapath, (it.ticket, it.outcome, it.error), it.reason, now_ms, send);
            }
            Event::StatsReply(it) => {
                engine.on_report(it.datapath, (it.ticket, it.more), it.body, now_ms, send);
            }
            _ => {}
        });
    }

    /// Something happens to the engine. Its commands go to the sessions.
    pub fn act<R>(&mut self, act: impl FnOnce(&mut Engine, &mut flows::outgoing::Sender<'_>) -> R) -> R {
        let mut sent: Vec<(DatapathId, u64, Vec<u8>)> = Vec::new();
        self.turns += 1;
        let (is_sent, now_ms) = (self.turns.is_multiple_of(3), self.now_ms);
        let World { engine, ticket, flow_mods, .. } = self;
        let mut send = |datapath: DatapathId, send: &Send<'_>| {
            *ticket += 1;
            *flow_mods += match send {
                Send::Rule { .. } => 1,
                Send::Bundle(rules) => rules.len(),
                _ => 0,
            };
            sent.push((datapath, *ticket, frame_of(datapath, *ticket, send)));
            *ticket
        };
        let result = act(engine, &mut send);
        if is_sent {
            engine.resume(now_ms, &mut send);
        }
        let mut refusals = Vec::new();
        for (datapath, ticket, frame) in sent {
            let number = datapath.0 as usize - 1;
            let mut command = Command::read(&Frame::read(&frame).unwrap()).unwrap();
            if let What::Bundle(bundle) = command.what {
                let refused = self.send_bundle(number, ticket, &bundle);
                refusals.extend(refused.map(|why| (datapath, ticket, why)));
                continue;
            }
            if let (What::FlowMod(it), Version::V1_0) = (&mut command.what, self.switches[number].version) {
                it.cookie_mask &= abi::zone_id::COOKIE_MASK ^ u64::MAX;
            }
            let cookie = match command.what {
                // The kernel lets the cookie of a foreign rule pass as it is. OpenFlow 1.0 has none in a delete.
                What::FlowMod(it) if it.cookie_mask != 0 => it.cookie,
                What::FlowMod(it) => ZONE.stamp(it.cookie),
                _ => 0,
            };
            self.turn(number, |session, turn| {
                session.send(&command, cookie, Tag { zone: ZONE, generation: 0, ticket }, 0, turn).unwrap();
            });
        }
        for (datapath, ticket, (error, reason)) in refusals {
            self.refuse(datapath, (ticket, Outcome::Refused, error), &reason);
        }
        result
    }

    fn refuse(&mut self, datapath: DatapathId, outcome: (u64, Outcome, flow::ErrorCode), reason: &str) {
        let now_ms = self.now_ms;
        self.act(|engine, send| engine.on_receipt(datapath, outcome, reason, now_ms, send));
    }

    /// Why it is refused, if it is.
    fn send_bundle(
        &mut self,
        number: usize,
        ticket: u64,
        bundle: &Bundle<'_>,
    ) -> Option<(flow::ErrorCode, String)> {
        self.bundles += 1;
        let mut refused = None;
        self.turn(number, |session, turn| {
            refused = send_bundle(session, bundle, Tag { zone: ZONE, generation: 0, ticket }, turn);
        });
        refused
    }

    pub fn tick(&mut self, ms: u64) {
        self.now_ms += ms;
        let now_ms = self.now_ms;
        self.act(|engine, send| engine.on_tick(now_ms, send));
        self.act(|engine, send| engine.resume(now_ms, send));
    }

    /// Everything under way arrives.
    pub fn deliver(&mut self) {
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for number in 0..self.switches.len() {
                while self.push_on(number) || self.pull(number) {
                    is_moving = true;
                }
            }
            let (before, now_ms) = (self.ticket, self.now_ms);
            self.act(|engine, send| engine.resume(now_ms, send));
            is_moving |= self.ticket != before;
        }
    }

    /// All sessions are up, and time passes until every switch was read twice.
    pub fn settle(&mut self) {
        (0..self.switches.len()).for_each(|number| self.connect(number));
        for _ in 0..60 {
            self.deliver();
            self.tick(1_000);
        }
        self.deliver();
    }
}
