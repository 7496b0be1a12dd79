//! A slice that owns all of a software switch, with the same methods as that switch: so the tests of the switch are tests of the slice.
//!
//! ```text
//!   messages, frames, time ──> Switch ──> Slicer ──commands──> software switch ──> frames
//!   answers  <─────────────────────────── Slicer <──events───
//! ```
//!
//! In: what a switch gets. Out: what it does. It plays the kernel, and checks nothing: `tests/switch` does.

use flow::{Action, DatapathId, ErrorCode, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{
    Cause, Command, Connection, Event, Isolation, Limit, Limits, Numbers, Outcome, Output, PacketIn,
    PortFacts, PortPlan, SlicePlan, Slicer, SwitchPlan,
};
use software_switch::{ControllerId, Effects, Parting, SwitchOptions, Versions};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The zone of the slice: the upper bits of its cookies.
const OWNER: u64 = 5;
const COOKIE_MASK: u64 = (1 << 48) - 1;
/// The cookie of the kernel's table-miss rule.
const KERNEL_COOKIE: u64 = 0xffff_6275_726e_6574;
const KERNEL: ControllerId = ControllerId(0);
/// The ports of the slice. The switch has the first four, a fifth can be added, and the others are those that tests name and no switch has.
const PORTS: [u32; 7] = [1, 2, 3, 4, 5, 9, 99];

/// The virtual switch.
#[derive(Clone, Debug)]
pub struct Switch {
    physical: software_switch::Switch,
    on: Version,
    datapath: DatapathId,
    slicer: Slicer,
    now: Duration,
    /// Tickets of commands by transaction id.
    tickets: BTreeMap<u32, u64>,
}

impl Switch {
    pub fn new(datapath: DatapathId, name: impl Into<String>, options: SwitchOptions) -> Switch {
        let (on, rules) = (crate::ON, options.max_entries.saturating_mul(PORTS.len() as u32));
        let versions = if on == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let physical = SwitchOptions { versions, n_buffers: 0, ..SwitchOptions::default() };
        let mut switch = Switch {
            physical: software_switch::Switch::new(datapath, name, physical),
            on,
            datapath,
            slicer: Slicer::new(&plan(datapath, rules)).unwrap(),
            now: Duration::ZERO,
            tickets: BTreeMap::new(),
        };
        let mut effects = Effects::default();
        switch.physical.on_connected(KERNEL, &mut effects);
        switch.tell_physical(0, Body::Hello(Hello::default()));
        if on != Version::V1_0 {
            let miss = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
            let fields = FlowModFields { cookie: KERNEL_COOKIE, priority: 0, ..FlowModFields::default() };
            switch.tell_physical(0, Body::FlowMod(fields.with(Match::any(), miss)));
        }
        switch.feed(Event::SwitchUp { datapath, version: on, ports: Vec::new() }, &mut effects);
        switch
    }

    pub fn add_port(&mut self, number: PortNo, now: Duration, effects: &mut Effects) {
        self.now = now;
        self.physically(effects, |physical, told| physical.add_port(number, now, told));
    }

    pub fn set_link(&mut self, number: PortNo, up: bool, effects: &mut Effects) {
        self.physically(effects, |physical, told| physical.set_link(number, up, told));
    }

    pub fn set_speed(&mut self, number: PortNo, kbps: Option<u32>, effects: &mut Effects) {
        self.physically(effects, |physical, told| physical.set_speed(number, kbps, told));
    }

    pub fn on_frame(&mut self, in_port: PortNo, frame: Vec<u8>, now: Duration, effects: &mut Effects) {
        self.now = now;
        self.physically(effects, |physical, told| physical.on_frame(in_port, frame, now, told));
    }

    pub fn on_tick(&mut self, now: Duration, effects: &mut Effects) {
        self.now = now;
        self.physically(effects, |physical, told| physical.on_tick(now, told));
    }

    pub fn on_connected(&mut self, controller: ControllerId, effects: &mut Effects) {
        self.feed(Event::ControllerUp(self.of(controller)), effects);
    }

    pub fn on_disconnected(&mut self, controller: ControllerId) {
        self.feed(Event::ControllerDown(self.of(controller)), &mut Effects::default());
    }

    pub fn on_message(
        &mut self,
        controller: ControllerId,
        message: &Message,
        now: Duration,
        effects: &mut Effects,
    ) {
        self.on_received(controller, message, &bytes_of(message), now, effects);
    }

    pub fn on_received(
        &mut self,
        controller: ControllerId,
        _: &Message,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) {
        self.now = now;
        self.feed(Event::Message(self.of(controller), bytes), effects);
    }

    pub fn version(&self, controller: ControllerId) -> Option<Version> {
        self.slicer.controller(self.of(controller)).map(|facts| facts.version)
    }

    pub fn flow_count(&self) -> usize {
        self.slicer.rules(self.datapath).map_or(0, |(rules, _)| rules)
    }

    fn of(&self, controller: ControllerId) -> Connection {
        Connection { datapath: self.datapath, controller: controller.0 }
    }

    /// Something happens to the physical switch, and the slice hears what that says.
    fn physically(
        &mut self,
        effects: &mut Effects,
        act: impl FnOnce(&mut software_switch::Switch, &mut Effects),
    ) {
        let mut told = Effects::default();
        act(&mut self.physical, &mut told);
        let mut outputs = VecDeque::new();
        self.hear(told, effects, &mut outputs);
        self.carry_out(outputs, effects);
    }

    fn feed(&mut self, event: Event<'_>, effects: &mut Effects) {
        let mut outputs = VecDeque::new();
        self.decide(event, &mut outputs);
        self.carry_out(outputs, effects);
    }

    fn decide(&mut self, event: Event<'_>, outputs: &mut VecDeque<Output>) {
        let (mut more, now_ms) = (Vec::new(), self.now.as_millis() as u64);
        self.slicer.on_event(now_ms, event, &mut more);
        outputs.extend(more);
    }

    fn carry_out(&mut self, mut outputs: VecDeque<Output>, effects: &mut Effects) {
        while let Some(output) = outputs.pop_front() {
            match output {
                Output::Tell { to, bytes } => {
                    effects.messages.push((ControllerId(to.controller), Message::decode(&bytes).unwrap()));
                }
                Output::End { connection, .. } => {
                    effects.close.push((ControllerId(connection.controller), Parting::NoHello));
                }
                Output::Soft { .. } => {}
                Output::Command { ticket, wants_receipt, command, .. } => {
                    self.obey(ticket, wants_receipt, command, effects, &mut outputs);
                }
            }
        }
    }

    /// The kernel sends a command to the physical switch.
    fn obey(
        &mut self,
        ticket: u64,
        wants_receipt: bool,
        command: Command,
        effects: &mut Effects,
        outputs: &mut VecDeque<Output>,
    ) {
        let xid = (ticket & 0xffff_ffff) as u32;
        let body = match command {
            Command::FlowMod(mut flow_mod) => {
                flow_mod.cookie |= OWNER << 48;
                Body::FlowMod(flow_mod)
            }
            Command::PacketOut(packet_out) => Body::PacketOut(packet_out),
            Command::GroupMod(group_mod) => Body::GroupMod(group_mod),
            Command::MeterMod(meter_mod) => Body::MeterMod(meter_mod),
            Command::Statistics(body) => Body::MultipartRequest(MultipartRequest { flags: 0, body }),
            Command::Barrier => Body::BarrierRequest,
        };
        self.tickets.insert(xid, ticket);
        let told = self.tell_physical(xid, body);
        let is_error = |message: &Message| message.xid == xid && matches!(message.body, Body::Error(_));
        let failed = told.messages.iter().any(|(_, message)| is_error(message));
        self.hear(told, effects, outputs);
        if wants_receipt && !failed {
            let done = Event::Answer { datapath: self.datapath, ticket, outcome: Outcome::Done };
            self.decide(done, outputs);
        }
    }

    fn tell_physical(&mut self, xid: u32, body: Body) -> Effects {
        let (mut bytes, mut told) = (Vec::new(), Effects::default());
        let message = Message { version: self.on, xid, body };
        message.encode(&mut bytes).unwrap_or_else(|why| panic!("{why}: {message:?}"));
        let decoded = Message::decode(&bytes).unwrap();
        self.physical.on_received(KERNEL, &decoded, &bytes, self.now, &mut told);
        told
    }

    /// Frames leave, and what the physical switch says becomes events.
    fn hear(&mut self, told: Effects, effects: &mut Effects, outputs: &mut VecDeque<Output>) {
        effects.frames.extend(told.frames);
        for (_, message) in told.messages {
            let ticket = self.tickets.get(&message.xid).copied().unwrap_or(0);
            let datapath = self.datapath;
            match message.body {
                Body::PacketIn(packet) => {
                    let (port, _) = packet.matching.get(Field::InPort).unwrap();
                    let event = PacketIn {
                        datapath,
                        in_port: PortNo(port as u32),
                        buffer_id: None,
                        total_len: packet.total_len,
                        reason: packet.reason,
                        cause: cause_of(packet.cookie),
                        data: &packet.data,
                    };
                    self.decide(Event::PacketIn(event), outputs);
                }
                Body::FlowRemoved(it) if it.cookie >> 48 == OWNER => {
                    let removed = FlowRemoved { cookie: it.cookie & COOKIE_MASK, ..it };
                    self.decide(Event::FlowRemoved { datapath, removed }, outputs);
                }
                Body::PortStatus(PortStatus { reason, port }) => {
                    self.decide(
                        Event::PortStatus { datapath, reason, port: facts_of(&port, self.on) },
                        outputs,
                    );
                }
                Body::MultipartReply(MultipartReply { flags, body }) => {
                    let more = flags & MULTIPART_MORE != 0;
                    self.decide(Event::Statistics { datapath, ticket, more, body }, outputs);
                }
                Body::Error(error) => {
                    let code = ErrorCode { kind: error.kind, code: error.code };
                    let code = if self.on == Version::V1_0 { openflow::error::from_v10(code) } else { code };
                    let outcome = Outcome::Failed(code);
                    self.decide(Event::Answer { datapath, ticket, outcome }, outputs);
                }
                _ => {}
            }
        }
    }
}

/// A slice of all packets and all ports of one switch.
fn plan(datapath: DatapathId, rules: u32) -> SlicePlan {
    let port = |port: u32| PortPlan { port: PortNo(port), shown_as: PortNo(port), is_edge: true };
    SlicePlan {
        name: "all".to_owned(),
        isolation: Isolation::Flowspace(vec![Match::any()]),
        is_read_only: false,
        switches: vec![SwitchPlan {
            datapath,
            shown_as: datapath,
            ports: PORTS.into_iter().map(port).collect(),
        }],
        links: Vec::new(),
        limits: Limits { rules: Limit { soft: rules, hard: rules }, ..Limits::default() },
        numbers: Numbers { groups: 1..4_097, meters: 1..4_097 },
    }
}

fn cause_of(cookie: u64) -> Cause {
    match cookie {
        u64::MAX => Cause::Unknown,
        _ if cookie >> 48 == OWNER => Cause::Own(cookie & COOKIE_MASK),
        _ => Cause::Other,
    }
}

/// What the kernel would report. 1.0 has no number for the speed, and the highest of its bits is 10 Gbit/s.
fn facts_of(port: &Port, on: Version) -> PortFacts {
    let curr_speed_kbps = if on == Version::V1_0 { 10_000_000 } else { port.curr_speed_kbps };
    PortFacts {
        port: port.port_no,
        hw_addr: port.hw_addr,
        name: port.name.clone(),
        is_live: port.is_live(),
        curr_speed_kbps,
    }
}

/// A message as bytes. What cannot be written is written otherwise, and then changed: a controller may send anything.
fn bytes_of(message: &Message) -> Vec<u8> {
    let is_v10 = message.version == Version::V1_0;
    let mut other = message.clone();
    let mut changes: Vec<(usize, Vec<u8>)> = Vec::new();
    match &mut other.body {
        // 1.0 has no elements, and Open vSwitch sends none.
        Body::Hello(hello) if is_v10 => hello.elements.clear(),
        Body::FlowMod(it) => {
            let command = u16::from(it.command).to_be_bytes();
            changes.push(if is_v10 { (56, command.to_vec()) } else { (25, vec![it.command]) });
            changes.push((if is_v10 { 70 } else { 44 }, it.flags.to_be_bytes().to_vec()));
            (it.command, it.flags) = (FLOW_ADD, 0);
        }
        Body::GroupMod(it) => {
            changes.push((8, it.command.to_be_bytes().to_vec()));
            changes.push((10, vec![it.group_type]));
            (it.command, it.group_type) = (0, GROUP_TYPE_ALL);
        }
        _ => {}
    }
    let mut bytes = Vec::new();
    other.encode(&mut bytes).unwrap();
    for (at, values) in changes {
        bytes[at..at + values.len()].copy_from_slice(&values);
    }
    bytes
}
