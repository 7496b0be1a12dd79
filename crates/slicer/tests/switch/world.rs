//! A slice between a tenant's controllers and a software switch. The test plays the kernel.
//!
//! Every command of the slice is checked here: no match may reach outside of the slice, no output may lead out of it.

mod granted;
mod restarts;

use flow::frame::FrameFields;
use flow::relation::within;
use flow::{Action, DatapathId, ErrorCode, Field, Instruction, MacAddr, Match, PortNo};
use openflow::labels::split_labels;
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{
    Command, Connection, Event, Isolation, LabelForm, Limits, LinkPlan, Loss, Numbers, Outcome, Output,
    PRIORITY_MAX, PortFacts, PortPlan, SlicePlan, Slicer, SwitchPlan,
};
use software_switch::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The physical switch.
pub const DATAPATH: DatapathId = DatapathId(7);
/// A switch that is never up.
pub const OTHER: DatapathId = DatapathId(8);
/// The number that the tenant sees.
pub const SHOWN: DatapathId = DatapathId(0x77);
/// The slice's tag.
pub const TAG: u16 = 42;
/// The zone of the slice: the upper bits of its cookies.
const OWNER: u64 = 5;
/// The cookie of the kernel's table-miss rule.
const KERNEL_COOKIE: u64 = 0xffff_6275_726e_6574;
const KERNEL: ControllerId = ControllerId(0);
const COOKIE_MASK: u64 = (1 << 48) - 1;

/// The ports of the slice: physical number, shown number, whether it is an edge port. The switch has the ports 1 to 6.
pub const PORTS: [(u32, u32, bool); 4] = [(2, 1, true), (3, 2, true), (5, 3, false), (6, 4, false)];

pub fn plan(isolation: Isolation) -> SlicePlan {
    let port = |(port, shown, is_edge): (u32, u32, bool)| PortPlan {
        port: PortNo(port),
        shown_as: PortNo(shown),
        is_edge,
    };
    let here =
        SwitchPlan { datapath: DATAPATH, shown_as: SHOWN, ports: PORTS.into_iter().map(port).collect() };
    // Only a slice with addresses has a second switch: a host is there, which never comes up.
    let there = SwitchPlan { datapath: OTHER, shown_as: OTHER, ports: vec![port((1, 1, true))] };
    let has_other = matches!(isolation, Isolation::Address(_));
    SlicePlan {
        name: "blue".to_owned(),
        isolation,
        is_read_only: false,
        switches: [here].into_iter().chain(has_other.then_some(there)).collect(),
        links: Vec::new(),
        limits: Limits::default(),
        numbers: Numbers { groups: 100..108, meters: 200..204 },
    }
}

/// The physical number of a shown port.
pub fn physical(shown: u32) -> u32 {
    PORTS.iter().find(|(_, it, _)| *it == shown).unwrap().0
}

pub fn is_edge(shown: u32) -> bool {
    PORTS.iter().find(|(_, it, _)| *it == shown).unwrap().2
}

/// A frame with a tag.
pub fn with_tag(frame: &[u8], tag: u16) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &tag.to_be_bytes(), &frame[12..]].concat()
}

pub struct World {
    pub slicer: Slicer,
    pub physical: Switch,
    pub on: Version,
    pub isolation: Isolation,
    pub now: Duration,
    /// What controllers were told.
    pub told: Vec<(usize, Message)>,
    /// The labels behind the ports of each message, in the form of the paper.
    pub labels: Vec<Vec<u32>>,
    label_form: LabelForm,
    /// Why connections ended.
    pub ended: Vec<(usize, String)>,
    /// Soft limits.
    pub soft: usize,
    /// All commands.
    pub commands: Vec<Command>,
    /// Frames that left the physical switch.
    pub frames: Vec<(PortNo, Vec<u8>)>,
    /// Tickets of questions by transaction id.
    tickets: BTreeMap<u32, u64>,
    versions: BTreeMap<usize, Version>,
    /// All packets of the slice, for the checks.
    space: Vec<Match>,
    /// The kernel refuses the next flow mods with this error.
    pub refuses: VecDeque<ErrorCode>,
    /// The kernel answers statistics requests so, and not with statistics.
    pub no_statistics: Option<Outcome>,
    /// The kernel keeps the receipts of groups and meters.
    pub holds_claims: bool,
    claims: Vec<u64>,
    /// The kernel keeps questions for statistics.
    pub holds_statistics: bool,
    /// So many commands find no room in the queue of the switch.
    pub without_room: usize,
    questions: Vec<(u64, Command)>,
    /// The file of the slice's journal, if it keeps one.
    pub journal: Option<Vec<u8>>,
    /// The kernel, which checks each flow mod and packet-out against the slice's grant.
    kernel: kernel::Kernel,
}

impl World {
    pub fn new(isolation: Isolation, on: Version) -> World {
        World::of(plan(isolation), on)
    }

    pub fn of(plan: SlicePlan, on: Version) -> World {
        let versions = if on == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
        let options = SwitchOptions { versions, n_buffers: 0, ..SwitchOptions::default() };
        let mut switch = Switch::new(DATAPATH, "s7", options);
        let now = Duration::from_secs(1_000);
        let mut effects = Effects::default();
        (1..=6).for_each(|port| switch.add_port(PortNo(port), now, &mut effects));
        switch.on_connected(KERNEL, &mut effects);
        let hello = Message { version: on, xid: 0, body: Body::Hello(Hello::default()) };
        switch.on_message(KERNEL, &hello, now, &mut effects);
        let kernel = granted::kernel_of(&plan, &space_of(&plan.isolation), on);
        let mut world = World {
            slicer: Slicer::new(&plan).unwrap(),
            physical: switch,
            on,
            space: space_of(&plan.isolation),
            isolation: plan.isolation,
            now,
            told: Vec::new(),
            labels: Vec::new(),
            label_form: LabelForm::None,
            ended: Vec::new(),
            soft: 0,
            commands: Vec::new(),
            frames: Vec::new(),
            tickets: BTreeMap::new(),
            versions: BTreeMap::new(),
            refuses: VecDeque::new(),
            no_statistics: None,
            holds_claims: false,
            claims: Vec::new(),
            holds_statistics: false,
            without_room: 0,
            questions: Vec::new(),
            journal: None,
            kernel,
        };
        world.add_kernels_rule();
        world.switch_up();
        world
    }

    /// The same, with labels in a form.
    pub fn with_labels(form: LabelForm) -> World {
        let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
        world.label_form = form;
        world.slicer = Slicer::new(&plan(Isolation::Vlan(TAG))).unwrap().telling_labels(form);
        world.switch_up();
        world
    }

    /// The kernel's rule for packets that hit no other.
    fn add_kernels_rule(&mut self) {
        if self.on == Version::V1_0 {
            return;
        }
        let miss = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
        let fields = FlowModFields { cookie: KERNEL_COOKIE, priority: 0, ..FlowModFields::default() };
        self.tell_physical(0, Body::FlowMod(fields.with(Match::any(), miss)));
    }

    /// A connection of a controller ends.
    pub fn leave(&mut self, controller: usize) {
        self.event(Event::ControllerDown(Connection { datapath: DATAPATH, controller }));
    }

    pub fn switch_up(&mut self) {
        let facts = |port: u32| PortFacts {
            port: PortNo(port),
            hw_addr: MacAddr([2, 0, 0, 0, 0, port as u8]),
            name: format!("s7-eth{port}"),
            is_live: true,
            curr_speed_kbps: 10_000_000,
        };
        let ports = (1..=6).map(facts).collect();
        self.event(Event::SwitchUp { datapath: DATAPATH, version: self.on, ports });
    }

    /// A controller connects, and speaks a version.
    pub fn join(&mut self, controller: usize, version: Version) {
        let connection = Connection { datapath: DATAPATH, controller };
        self.event(Event::ControllerUp(connection));
        self.versions.insert(controller, version);
        let elements = if version == Version::V1_0 {
            Vec::new()
        } else {
            vec![HelloElement::VersionBitmap(vec![1 << version.0])]
        };
        self.say_as(controller, Body::Hello(Hello { elements }));
        self.told.clear();
    }

    /// A controller sends a message with the transaction id 42. Returns what it is told.
    pub fn say_as(&mut self, controller: usize, body: Body) -> Vec<Body> {
        let version = self.versions[&controller];
        let bytes = written(version, body);
        self.send(controller, &bytes)
    }

    pub fn say(&mut self, body: Body) -> Vec<Body> {
        self.say_as(0, body)
    }

    /// A controller sends bytes.
    pub fn send(&mut self, controller: usize, bytes: &[u8]) -> Vec<Body> {
        let before = self.told.len();
        self.event(Event::Message(Connection { datapath: DATAPATH, controller }, bytes));
        let own = self.told[before..].iter().filter(|(to, _)| *to == controller);
        own.map(|(_, message)| message.body.clone()).collect()
    }

    /// A frame arrives at a port of the physical switch.
    pub fn arrive(&mut self, port: u32, frame: &[u8]) {
        let mut effects = Effects::default();
        self.physical.on_frame(PortNo(port), frame.to_vec(), self.now, &mut effects);
        let mut outputs = VecDeque::new();
        self.hear_physical(effects, &mut outputs);
        self.run(outputs);
        self.save();
    }

    /// A frame as the tenant sees it arrives at a port that the tenant knows.
    pub fn arrive_shown(&mut self, shown: u32, frame: &[u8]) {
        let dressed = match self.isolation {
            Isolation::Vlan(_) if !is_edge(shown) => with_tag(frame, TAG),
            _ => frame.to_vec(),
        };
        self.arrive(physical(shown), &dressed);
    }

    pub fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        let mut effects = Effects::default();
        self.physical.on_tick(self.now, &mut effects);
        let mut outputs = VecDeque::new();
        self.hear_physical(effects, &mut outputs);
        self.run(outputs);
        self.save();
    }

    pub fn link(&mut self, link: LinkPlan, is_up: bool) {
        self.event(Event::Link { link, is_up });
    }

    pub fn event(&mut self, event: Event<'_>) {
        let mut outputs = Vec::new();
        self.slicer.on_event(self.now.as_millis() as u64, event, &mut outputs);
        self.run(outputs.into());
        self.save();
    }

    /// The receipts that the kernel kept.
    pub fn confirm_claims(&mut self) {
        for ticket in std::mem::take(&mut self.claims) {
            self.event(Event::Answer { datapath: DATAPATH, ticket, outcome: Outcome::Done });
        }
    }

    /// The oldest receipts that the kernel kept, with this outcome.
    pub fn answer_claims(&mut self, count: usize, outcome: Outcome) {
        for ticket in self.claims.drain(..count).collect::<Vec<_>>() {
            self.event(Event::Answer { datapath: DATAPATH, ticket, outcome });
        }
    }

    /// The switch answers the questions that the kernel kept.
    pub fn answer_statistics(&mut self) {
        self.holds_statistics = false;
        for (ticket, command) in std::mem::take(&mut self.questions) {
            let mut outputs = VecDeque::new();
            let events = self.carry_out(ticket, true, command, &mut outputs);
            events.into_iter().for_each(|event| self.after(event, &mut outputs));
            self.run(outputs);
        }
    }

    fn run(&mut self, mut outputs: VecDeque<Output>) {
        while let Some(output) = outputs.pop_front() {
            match output {
                Output::Tell { to, bytes } => {
                    let is_paper = self.label_form == LabelForm::Paper;
                    let (bytes, labels) =
                        if is_paper { split_labels(&bytes).unwrap() } else { (bytes, Vec::new()) };
                    self.labels.push(labels);
                    self.told.push((to.controller, Message::decode(&bytes).unwrap()));
                }
                Output::End { connection, why } => self.ended.push((connection.controller, why)),
                Output::Soft { .. } => self.soft += 1,
                Output::Command { datapath, ticket, wants_receipt, command } => {
                    assert_eq!(datapath, DATAPATH);
                    assert_ne!(ticket, 0);
                    self.check(&command);
                    self.commands.push(command.clone());
                    let events = self.carry_out(ticket, wants_receipt, command, &mut outputs);
                    events.into_iter().for_each(|event| self.after(event, &mut outputs));
                }
            }
        }
    }

    fn after(&mut self, event: Event<'_>, outputs: &mut VecDeque<Output>) {
        let mut more = Vec::new();
        self.slicer.on_event(self.now.as_millis() as u64, event, &mut more);
        outputs.extend(more);
    }

    /// The same for an event of the ABI.
    fn after_abi(&mut self, event: abi::Event<'_>, outputs: &mut VecDeque<Output>) {
        let (slicer, now_ms) = (&mut self.slicer, self.now.as_millis() as u64);
        let mut more = Vec::new();
        let own = abi::ZoneId(OWNER as u16);
        slicer::abi_frames::each_event(&event, own, |event| slicer.on_event(now_ms, event, &mut more));
        outputs.extend(more);
    }

    /// The kernel and the physical switch carry out a command.
    fn carry_out(
        &mut self,
        ticket: u64,
        wants_receipt: bool,
        command: Command,
        outputs: &mut VecDeque<Output>,
    ) -> Vec<Event<'static>> {
        let xid = (ticket & 0xffff_ffff) as u32;
        let claim = self.pass_kernel(ticket, &command);
        let command = through_abi(ticket, wants_receipt, &command);
        if let (Command::FlowMod(_), Some(error)) = (&command, self.refuses.front().copied()) {
            self.refuses.pop_front();
            return vec![Event::Answer { datapath: DATAPATH, ticket, outcome: Outcome::Refused(error) }];
        }
        if self.without_room > 0 {
            self.without_room -= 1;
            let refused = Outcome::Refused(abi::NO_ROOM);
            let answer = Event::Answer { datapath: DATAPATH, ticket, outcome: refused };
            return if wants_receipt { vec![answer] } else { Vec::new() };
        }
        if self.holds_statistics && matches!(command, Command::Statistics(_)) {
            self.questions.push((ticket, command));
            return Vec::new();
        }
        if let (Command::Statistics(_), Some(outcome)) = (&command, self.no_statistics) {
            assert!(wants_receipt, "without a receipt, the kernel would not say that it refuses");
            return vec![Event::Answer { datapath: DATAPATH, ticket, outcome }];
        }
        let is_claim = matches!(&command, Command::GroupMod(_) | Command::MeterMod(_));
        let body = match command {
            Command::FlowMod(mut flow_mod) => {
                assert_eq!(flow_mod.cookie & !COOKIE_MASK, 0);
                flow_mod.cookie |= OWNER << 48;
                if flow_mod.command == FLOW_DELETE {
                    flow_mod.cookie_mask |= !COOKIE_MASK;
                }
                Body::FlowMod(flow_mod)
            }
            Command::PacketOut(packet_out) => Body::PacketOut(packet_out),
            Command::GroupMod(group_mod) => Body::GroupMod(group_mod),
            Command::MeterMod(meter_mod) => Body::MeterMod(meter_mod),
            Command::Statistics(body) => Body::MultipartRequest(MultipartRequest { flags: 0, body }),
            Command::Barrier => Body::BarrierRequest,
        };
        self.tickets.insert(xid, ticket);
        let effects = self.tell_physical(xid, body);
        let is_error = |message: &Message| message.xid == xid && matches!(message.body, Body::Error(_));
        let failed = effects.messages.iter().any(|(_, message)| is_error(message));
        self.settle(claim, failed);
        self.hear_physical(effects, outputs);
        if is_claim && self.holds_claims {
            self.claims.push(ticket);
            return Vec::new();
        }
        let done = Event::Answer { datapath: DATAPATH, ticket, outcome: Outcome::Done };
        if wants_receipt && !failed { vec![done] } else { Vec::new() }
    }

    /// Sends a message to the physical switch as bytes of its version.
    fn tell_physical(&mut self, xid: u32, body: Body) -> Effects {
        let mut bytes = Vec::new();
        let message = Message { version: self.on, xid, body };
        message.encode(&mut bytes).unwrap_or_else(|why| panic!("{why}: {message:?}"));
        let mut effects = Effects::default();
        let decoded = Message::decode(&bytes).unwrap();
        self.physical.on_received(KERNEL, &decoded, &bytes, self.now, &mut effects);
        effects
    }

    fn hear_physical(&mut self, effects: Effects, outputs: &mut VecDeque<Output>) {
        self.frames.extend(effects.frames);
        for (_, message) in effects.messages {
            let ticket = self.tickets.get(&message.xid).copied().unwrap_or(0);
            match message.body {
                Body::PacketIn(packet) => {
                    let (port, _) = packet.matching.get(Field::InPort).unwrap();
                    let event = abi::event::PacketIn {
                        datapath: DATAPATH,
                        in_port: PortNo(port as u32),
                        buffer_id: None,
                        total_len: packet.total_len,
                        reason: packet.reason,
                        table_id: packet.table_id,
                        cookie: packet.cookie,
                        metadata: &[],
                        data: &packet.data,
                    };
                    self.after_abi(abi::Event::PacketIn(event), outputs);
                }
                Body::FlowRemoved(it) => self.hear_removed(&it, outputs),
                Body::MultipartReply(reply) => {
                    let more = reply.flags & MULTIPART_MORE != 0;
                    // As southbound does: the body is that of 1.3.
                    let bytes = written(Version::V1_3, Body::MultipartReply(plain(reply)));
                    let multipart = u16::from_be_bytes([bytes[8], bytes[9]]);
                    let body = &bytes[16..];
                    let event = abi::event::StatsReply { datapath: DATAPATH, ticket, multipart, more, body };
                    let (mut whole, mut cut) = (Vec::new(), Vec::new());
                    abi::event::write::stats_reply(&mut whole, 1, &event);
                    let zone = abi::ZoneId(OWNER as u16);
                    let seen = self.kernel.cut_down(zone, &whole, &mut cut).unwrap_or(&whole).to_vec();
                    let frame = abi::Frame::read(&seen).unwrap();
                    self.after_abi(abi::Event::read(&frame).unwrap(), outputs);
                }
                Body::Error(error) => {
                    let code = ErrorCode { kind: error.kind, code: error.code };
                    let code = if self.on == Version::V1_0 { openflow::error::from_v10(code) } else { code };
                    let outcome = Outcome::Failed(code);
                    self.after(Event::Answer { datapath: DATAPATH, ticket, outcome }, outputs);
                }
                Body::BarrierReply | Body::PortStatus(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn hear_removed(&mut self, it: &FlowRemoved, outputs: &mut VecDeque<Output>) {
        assert_eq!(it.cookie >> 48, OWNER);
        let mut matching = Vec::new();
        flow::canonical::write_match(&it.matching, &mut matching);
        let event = abi::event::FlowRemoved {
            datapath: DATAPATH,
            cookie: it.cookie,
            duration_s: it.duration_s,
            duration_ns: it.duration_ns,
            packet_count: it.packet_count,
            byte_count: it.byte_count,
            priority: it.priority,
            idle_timeout_s: it.idle_timeout_s,
            hard_timeout_s: it.hard_timeout_s,
            reason: it.reason,
            table_id: it.table_id,
            matching: &matching,
        };
        self.after_abi(abi::Event::FlowRemoved(event), outputs);
    }

    /// No command may reach outside of the slice.
    fn check(&self, command: &Command) {
        match command {
            // A delete of all rules is limited to those of the slice by the kernel.
            Command::FlowMod(it) if it.command == FLOW_DELETE && it.matching.is_any() => {
                assert_eq!((it.table_id, it.cookie_mask, self.on), (TABLE_ALL, 0, Version::V1_3));
            }
            Command::FlowMod(flow_mod) => {
                assert!(within(&flow_mod.matching, &self.space), "{flow_mod:?}");
                assert!(!matches!(flow_mod.command, FLOW_DELETE | FLOW_MODIFY), "{flow_mod:?}");
                assert!((1..=PRIORITY_MAX).contains(&flow_mod.priority), "{flow_mod:?}");
                for instruction in &flow_mod.instructions {
                    match instruction {
                        Instruction::ApplyActions(actions) => check_outputs(actions),
                        Instruction::Meter(id) => assert!((200..=203).contains(id), "{flow_mod:?}"),
                        _ => panic!("{flow_mod:?}"),
                    }
                }
            }
            Command::PacketOut(packet_out) => {
                let is_own = PORTS.iter().any(|(port, ..)| PortNo(*port) == packet_out.in_port);
                assert!(is_own || packet_out.in_port == PortNo::CONTROLLER, "{packet_out:?}");
                check_outputs(&packet_out.actions);
            }
            _ => {}
        }
    }
}

fn check_outputs(actions: &[Action]) {
    for action in actions {
        if let Action::Output { port, .. } = action {
            let is_own = PORTS.iter().any(|(own, ..)| PortNo(*own) == *port);
            let is_fine = matches!(*port, PortNo::CONTROLLER | PortNo::IN_PORT | PortNo::TABLE);
            assert!(is_own || is_fine, "{actions:?}");
        }
    }
}

/// A reply whose flow entries 1.3 can express. The slice needs only their counters.
fn plain(mut reply: MultipartReply) -> MultipartReply {
    if let ReplyBody::Flow(entries) = &mut reply.body {
        entries.iter_mut().for_each(|entry| entry.instructions.clear());
    }
    reply
}

/// A command as the kernel reads it from the frame of the ABI.
fn through_abi(ticket: u64, wants_receipt: bool, command: &Command) -> Command {
    use abi::command::What;
    let mut bytes = Vec::new();
    assert!(
        slicer::abi_frames::write_command(&mut bytes, DATAPATH, ticket, wants_receipt, command),
        "{command:?}"
    );
    let read = abi::Command::read(&abi::Frame::read(&bytes).unwrap()).unwrap();
    assert_eq!((read.datapath, read.ticket, read.wants_receipt), (DATAPATH, ticket, wants_receipt));
    let whole = |first: &[u8], rest: &[u8], kind: u8| {
        let length = (8 + first.len() + rest.len()) as u16;
        let header = [&[4, kind][..], &length.to_be_bytes(), &[0; 4]].concat();
        Message::decode(&[&header[..], first, rest].concat()).unwrap().body
    };
    match read.what {
        What::FlowMod(it) => {
            let fields = FlowModFields {
                cookie: it.cookie,
                cookie_mask: it.cookie_mask,
                table_id: it.table_id,
                command: it.command,
                idle_timeout_s: it.idle_timeout_s,
                hard_timeout_s: it.hard_timeout_s,
                priority: it.priority,
                buffer_id: it.buffer_id.unwrap_or(NO_BUFFER),
                out_port: it.out_port,
                out_group: it.out_group,
                flags: it.flags,
            };
            let matching = flow::canonical::read_match(it.matching).unwrap();
            Command::FlowMod(
                fields.with(matching, flow::canonical::read_instructions(it.instructions).unwrap()),
            )
        }
        What::PacketOut(it) => Command::PacketOut(PacketOut {
            buffer_id: it.buffer_id.unwrap_or(NO_BUFFER),
            in_port: it.in_port,
            actions: flow::canonical::read_actions(it.actions).unwrap(),
            data: it.data.to_vec(),
        }),
        What::GroupMod(it) => {
            let first =
                [&it.command.to_be_bytes()[..], &[it.group_type, 0], &it.group_id.to_be_bytes()].concat();
            let Body::GroupMod(it) = whole(&first, it.buckets, 15) else { panic!() };
            Command::GroupMod(it)
        }
        What::MeterMod(it) => {
            let first =
                [&it.command.to_be_bytes()[..], &it.flags.to_be_bytes(), &it.meter_id.to_be_bytes()].concat();
            let Body::MeterMod(it) = whole(&first, it.bands, 29) else { panic!() };
            Command::MeterMod(it)
        }
        What::StatsRequest(it) => {
            let first = [&it.multipart.to_be_bytes()[..], &[0; 6]].concat();
            let Body::MultipartRequest(it) = whole(&first, it.body, 18) else { panic!() };
            Command::Statistics(it.body)
        }
        What::Barrier => Command::Barrier,
        other => panic!("{other:?}"),
    }
}

/// All packets of the slice, in the words of the test.
fn space_of(isolation: &Isolation) -> Vec<Match> {
    let mut space = Vec::new();
    for (port, _, is_edge) in PORTS {
        let here = Match::any().with(Field::InPort, port);
        match isolation {
            Isolation::Vlan(_) if is_edge => space.push(here.with(Field::VlanVid, 0u16)),
            Isolation::Vlan(tag) => space.push(here.with(Field::VlanVid, tag | 0x1000)),
            Isolation::Address(_) if is_edge => space.extend(crate::addresses::own_packets(port)),
            Isolation::Address(addresses) => {
                space.extend(addresses.physical_packets().map(|it| it.with(Field::InPort, port).sorted()));
            }
            Isolation::Flowspace(matches) => {
                for it in matches {
                    if it.get(Field::InPort).is_none_or(|(there, _)| there == u128::from(port)) {
                        space.push(it.clone().with(Field::InPort, port).sorted());
                    }
                }
            }
        }
    }
    space
}

impl World {
    /// Whether a frame that the tenant sees at a port is of the slice.
    pub fn owns(&self, shown: u32, frame: &[u8]) -> bool {
        match &self.isolation {
            Isolation::Vlan(_) => FrameFields::read(frame).get(Field::VlanVid) == Some(0),
            Isolation::Flowspace(_) | Isolation::Address(_) => {
                let fields = FrameFields::read(frame).from_port(PortNo(physical(shown)));
                self.space.iter().any(|space| space.matches(&fields))
            }
        }
    }
}

/// A message as bytes, with the transaction id 42.
pub fn written(version: Version, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message { version, xid: 42, body }.encode(&mut bytes).unwrap();
    bytes
}

/// An add.
pub fn add(priority: u16, matching: &str, actions: &str) -> FlowMod {
    let instructions = flow::text::parse_instructions(actions).unwrap();
    let fields = FlowModFields { priority, ..FlowModFields::default() };
    fields.with(flow::text::parse_match(matching).unwrap(), instructions)
}

/// A delete of all rules within a match.
pub fn delete(matching: &str) -> FlowMod {
    FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, ..add(0, matching, "") }
}

/// The type and the code of the errors among messages.
pub fn errors(bodies: &[Body]) -> Vec<(u16, u16)> {
    let error = |body: &Body| match body {
        Body::Error(error) => Some((error.kind, error.code)),
        _ => None,
    };
    bodies.iter().filter_map(error).collect()
}
