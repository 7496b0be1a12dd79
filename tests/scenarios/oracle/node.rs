//! A node with one worker and no sockets: the kernel, a session with one switch, and the worker's work between them.
//!
//! In: commands of apps, and frames that arrive at the switch. Out: whether a command was allowed, and what reached
//! the apps. It makes no decisions itself.

use super::peer::Bench;
use abi::command::{Command, FlowMod, StatsRequest, What};
use abi::event::{Event, kind};
use abi::zone_id::COOKIE_MASK;
use abi::{Frame, Outcome, ZoneId};
use flow::canonical::InstructionWriter;
use flow::{DatapathId, PortNo};
use kernel::{Asked, Decision, Effect, Eviction, Grant, Kernel, OnOverlap, Refusal, Unanswered, Wanted};
use openflow::Version;
use southbound::session::{Session, State, Step};
use southbound::{SouthboundConfig, SouthboundEvent, Tag, Turn, Versions};
use std::collections::VecDeque;
use system_tests::Result;

/// OFPT_PACKET_IN of either version.
const PACKET_IN: u8 = 10;

/// A node with a switch.
pub struct Node {
    pub kernel: Kernel,
    session: Session,
    now_ms: u64,
    /// Bytes for the switch.
    out: Vec<u8>,
    /// Events of the session that were not handled yet.
    events: VecDeque<Heard>,
    effects: Vec<Effect>,
    /// The answers to apps, limited to what they may see.
    pub told: Vec<(ZoneId, Vec<u8>)>,
    /// Packet-ins that the switch sent.
    pub packet_ins: u32,
    /// Rules that were evicted in favour of an earlier app's rule.
    pub evicted: Vec<Eviction>,
}

enum Heard {
    All(Vec<u8>),
    Zone(ZoneId, Vec<u8>),
}

impl Node {
    /// A node with these apps, and a switch that has connected.
    pub fn begin(
        bench: &mut dyn Bench,
        version: Version,
        on_overlap: OnOverlap,
        apps: Vec<(ZoneId, Grant)>,
    ) -> Result<Node> {
        let versions = Versions { v1_0: version == Version::V1_0, v1_3: version == Version::V1_3 };
        let config = SouthboundConfig { versions, ..SouthboundConfig::default() };
        let mut kernel = Kernel::new(7);
        kernel.on_overlap(on_overlap);
        for (zone, grant) in apps {
            kernel.attach(zone, "app", grant, 0);
        }
        let mut node = Node {
            kernel,
            session: Session::new(&config, 0),
            now_ms: 0,
            out: Vec::new(),
            events: VecDeque::new(),
            effects: Vec::new(),
            told: Vec::new(),
            packet_ins: 0,
            evicted: Vec::new(),
        };
        node.turn(|session, turn| session.open(turn));
        node.settle(bench)?;
        if node.session.state() == State::Up {
            Ok(node)
        } else {
            Err(format!("the session is {:?}", node.session.state()))
        }
    }

    /// Subscribes a zone to packet-ins, so that the kernel has its own rule.
    pub fn subscribe(&mut self, bench: &mut dyn Bench, zone: ZoneId) -> Result<()> {
        let events = kind::bit(kind::PACKET_IN) | kind::bit(kind::SWITCH_UP);
        let what = What::Subscribe(abi::command::Subscribe { events, packets: &[] });
        let mut bytes = Vec::new();
        abi::command::write::command(
            &mut bytes,
            &Command { datapath: self.datapath(), ticket: 1, wants_receipt: false, what },
        );
        self.command(bench, zone, &bytes).map(drop)
    }

    fn datapath(&self) -> DatapathId {
        self.session.identity().datapath
    }

    /// The switch's datapath id.
    pub fn switch(&self) -> DatapathId {
        self.datapath()
    }

    /// Sends a command of an app. Returns whether the switch got it, and if not, the reason.
    pub fn command(
        &mut self,
        bench: &mut dyn Bench,
        zone: ZoneId,
        bytes: &[u8],
    ) -> Result<std::result::Result<(), String>> {
        self.now_ms += 1;
        let Ok(frame) = Frame::read(bytes) else { return Ok(Err("no frame".to_owned())) };
        if let Some(rule) = self.kernel.on_prepared(zone, &frame, self.now_ms, &mut self.effects) {
            let tag = Tag { zone, generation: 0, ticket: rule.of_use.ticket };
            let sent = self.turn(|session, turn| session.send_rule(rule, tag, 0, turn));
            if sent.is_ok() {
                self.kernel.on_sent();
            }
            self.settle(bench)?;
            return Ok(sent.map_err(|why| format!("southbound: {why}")));
        }
        let decision = self.kernel.on_command(zone, &frame, self.now_ms, &mut self.effects);
        let passed = match decision {
            Decision::Send(command) => {
                let cookie = if let What::FlowMod(flow_mod) = command.what { flow_mod.cookie } else { 0 };
                match self.send(&command, cookie, Tag { zone, generation: 0, ticket: command.ticket }) {
                    Ok(()) => {
                        self.kernel.on_sent();
                        Ok(())
                    }
                    Err(why) => Err(format!("southbound: {why}")),
                }
            }
            Decision::Refuse(refusal) => Err(refused(&refusal)),
            _ => Ok(()),
        };
        self.settle(bench)?;
        Ok(passed)
    }

    /// A frame arrives at the switch.
    pub fn arrive(&mut self, bench: &mut dyn Bench, port: u32, frame: &[u8]) -> Result<()> {
        let messages = bench.arrive(port, frame)?;
        self.hear(&messages)?;
        self.settle(bench)
    }

    /// Time passes: the kernel asks the switch for its rules.
    pub fn wait(&mut self, bench: &mut dyn Bench, ms: u64) -> Result<()> {
        self.now_ms += ms;
        self.kernel.ask_for_owners(self.now_ms, &mut self.effects);
        self.settle(bench)
    }

    fn send(&mut self, command: &Command<'_>, cookie: u64, tag: Tag) -> std::result::Result<(), String> {
        self.turn(|session, turn| session.send(command, cookie, tag, 0, turn)).map_err(|why| why.to_string())
    }

    fn turn<T>(&mut self, act: impl FnOnce(&mut Session, &mut Turn<'_>) -> T) -> T {
        let Node { session, now_ms, out, events, .. } = self;
        let mut sink = |effect: southbound::SessionOutput<'_>| match effect {
            southbound::SessionOutput::Out(SouthboundEvent::Event(frame)) => {
                events.push_back(Heard::All(frame.to_vec()))
            }
            southbound::SessionOutput::Out(SouthboundEvent::ToZone { zone, frame, .. }) => {
                events.push_back(Heard::Zone(zone, frame.to_vec()));
            }
            _ => {}
        };
        act(session, &mut Turn { now_ms: *now_ms, out, frame: &mut Vec::new(), sink: &mut sink })
    }

    /// Passes messages until there are none left.
    fn settle(&mut self, bench: &mut dyn Bench) -> Result<()> {
        loop {
            while let Some(event) = self.events.pop_front() {
                self.on_event(event)?;
            }
            while let Some(effect) = self.effects.pop() {
                self.carry_out(effect);
            }
            if !self.events.is_empty() {
                continue;
            }
            self.turn(|session, turn| session.on_turn_end(turn));
            if self.out.is_empty() {
                return Ok(());
            }
            let said = std::mem::take(&mut self.out);
            let answers = bench.node().exchange(&said)?;
            self.hear(&answers)?;
        }
    }

    fn hear(&mut self, messages: &[Vec<u8>]) -> Result<()> {
        for message in messages {
            self.packet_ins += u32::from(message.get(1) == Some(&PACKET_IN));
            let now_ms = self.now_ms;
            self.session.heard(message.len(), now_ms);
            let step = self.turn(|session, turn| session.on_message(message, turn));
            match step {
                Ok(Step::On) => {}
                Ok(Step::Identified) => self.turn(|session, turn| session.admit(turn)),
                Err(end) => return Err(format!("the session ended: {end:?}")),
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Heard) -> Result<()> {
        match event {
            Heard::All(bytes) => {
                let frame = Frame::read(&bytes).map_err(|bad| bad.to_string())?;
                let heard = self.kernel.on_event(&frame, self.now_ms, &mut self.effects).map(drop);
                // No app commands the switch before it has reported its rules.
                self.kernel.ask_for_owners(self.now_ms, &mut self.effects);
                heard.map_err(|bad| bad.to_string())
            }
            Heard::Zone(ZoneId::KERNEL, bytes) => {
                if !self.kernel.on_own_answer(&bytes, self.now_ms) {
                    self.kernel.on_meter_answer(&bytes, &mut self.effects);
                }
                Ok(())
            }
            Heard::Zone(zone, bytes) => {
                self.on_answer(zone, bytes);
                Ok(())
            }
        }
    }

    fn on_answer(&mut self, zone: ZoneId, bytes: Vec<u8>) {
        let Ok(frame) = Frame::read(&bytes) else { return };
        let event = Event::read(&frame);
        let has_failed = match &event {
            Ok(Event::SwitchError(_)) => true,
            Ok(Event::Receipt(_, receipt)) => receipt.outcome != Outcome::Programmed,
            _ => false,
        };
        if has_failed {
            self.kernel.on_failed(frame.datapath(), zone);
        }
        if self.kernel.has_claims()
            && let Ok(Event::Receipt(_, receipt)) = &event
            && self.kernel.on_receipt(receipt).is_some()
        {
            return;
        }
        let mut cut_down = Vec::new();
        let seen = self.kernel.cut_down(zone, &bytes, &mut cut_down).map(<[u8]>::to_vec);
        self.told.push((zone, seen.unwrap_or(bytes)));
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Punt(datapath) => self.punt(datapath, 0),
            Effect::PuntFrom { datapath, table_id } => self.punt(datapath, table_id),
            Effect::Ask { datapath, asked } => self.ask(datapath, asked),
            Effect::Evict => self.evict(),
            _ => {}
        }
    }

    /// Sends the kernel's table-miss rule of a table.
    fn punt(&mut self, datapath: DatapathId, table_id: u8) {
        let mut instructions = Vec::new();
        InstructionWriter::new(&mut instructions).apply_actions(|actions| {
            actions.output(PortNo::CONTROLLER, 0xffff);
        });
        let what = What::FlowMod(FlowMod { table_id, instructions: &instructions, ..FlowMod::ADD });
        let command = Command { datapath, ticket: 0, wants_receipt: false, what };
        let _ = self.send(&command, kernel::OWN_COOKIE, Tag::of_node(0));
    }

    fn evict(&mut self) {
        for it in self.kernel.take_evictions() {
            let cookie = it.owner.stamp(0);
            let rule = FlowMod {
                command: DELETE_STRICT,
                cookie,
                cookie_mask: !COOKIE_MASK,
                table_id: it.table_id,
                priority: it.priority,
                matching: &it.matching,
                ..FlowMod::ADD
            };
            let what = What::FlowMod(rule);
            let command = Command { datapath: it.datapath, ticket: 0, wants_receipt: false, what };
            let _ = self.send(&command, cookie, Tag::of_node(0));
            self.evicted.push(it);
        }
    }

    fn ask(&mut self, datapath: DatapathId, asked: Asked) {
        let (multipart, body) = question(asked, self.kernel.wanted_rule(datapath));
        let ticket = asked.ticket();
        let tag = Tag::of_node(ticket);
        let question = |multipart, body| What::StatsRequest(StatsRequest { multipart, body });
        let command = |what| Command { datapath, ticket, wants_receipt: false, what };
        let is_asked = self.send(&command(question(multipart, &body)), 0, tag).is_ok()
            || self.send(&command(question(FLOW, &flows(0xff, 0, 0, &[]))), 0, tag).is_ok();
        if !is_asked {
            self.kernel.on_no_answer(datapath, asked, Unanswered::NotSent, self.now_ms);
        }
    }
}

fn refused(refusal: &Refusal) -> String {
    refusal.to_string()
}

/// OFPFC_DELETE_STRICT.
const DELETE_STRICT: u8 = 4;

/// `ofp_multipart_type`.
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const TABLE_FEATURES: u16 = 12;

fn question(asked: Asked, wanted: Option<&Wanted>) -> (u16, Vec<u8>) {
    match (asked, wanted) {
        (Asked::TableSizes, _) => (TABLE_FEATURES, Vec::new()),
        (Asked::TableCounts, _) => (TABLE, Vec::new()),
        (Asked::RulesOf(zone), _) => (AGGREGATE, flows(0xff, zone.stamp(0), !COOKIE_MASK, &[])),
        (Asked::Rule, Some(rule)) => (FLOW, flows(rule.table_id, 0, 0, &rule.matching)),
        _ => (FLOW, flows(0xff, 0, 0, &[])),
    }
}

/// `ofp_flow_stats_request` (1.3.5, 7.3.5.2).
pub fn flows(table_id: u8, cookie: u64, cookie_mask: u64, matching: &[u8]) -> Vec<u8> {
    let mut body = vec![table_id, 0, 0, 0];
    body.extend([0xff; 8]);
    body.extend([0; 4]);
    body.extend(cookie.to_be_bytes());
    body.extend(cookie_mask.to_be_bytes());
    body.extend([0, 1]);
    body.extend(u16::try_from(4 + matching.len()).unwrap().to_be_bytes());
    body.extend_from_slice(matching);
    body.resize(body.len().next_multiple_of(8), 0);
    body
}
