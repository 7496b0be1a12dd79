//! The vocabulary of the tests: a switch on a test bench, rules, packets, and where they leave.

#![allow(dead_code, reason = "three test programs speak in these words, and none needs all of them")]

use crate::Switch;
use etherparse::PacketBuilder;
use flow::matching::FieldValue;
use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use software_switch::{ControllerId, Effects, SwitchOptions, Versions};
use std::time::Duration;

pub const H1: MacAddr = MacAddr([0, 0, 0, 0, 0, 1]);
pub const H2: MacAddr = MacAddr([0, 0, 0, 0, 0, 2]);
pub const V10: Versions = Versions::Only10;
pub const V13: Versions = Versions::Only13;

/// What the switch of these tests has, and a slice in its place has not or does otherwise. Each program says by `has` what its switch has.
/// `docs/reference/slices.md` tells tenants the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Tables behind the first, and table features that can be set.
    Tables,
    /// As many buffers as its options say. A slice has 64, and the oldest packet makes room.
    Buffers,
    /// NORMAL, LOCAL, and ports that the switch does not have.
    OutsidePorts,
    /// Groups that lead to groups.
    GroupChains,
    /// The meter of packet-ins.
    ControllersMeter,
    /// The flag that drops fragments.
    Fragments,
    /// Packet-ins for packets whose time-to-live has ended.
    InvalidTtl,
    /// Counters of packets that the configuration of a port drops.
    DropCounts,
    /// Counters of lookups in a table.
    Lookups,
    /// The names and the size of the switch and its table that its options say.
    Names,
    /// Switches that speak one version. A slice speaks both.
    OneVersion,
    /// Actions of 1.0 on a header that the packets of a rule may not have.
    OpenProtocol,
    /// Two rules of one priority that have the same packets at a port.
    SharedPackets,
    /// What only a physical switch of 1.3 can do: groups, meters, its actions and errors, ages and speeds of ports. A switch of 1.0 also takes some
    /// rules for exact matches that are none.
    Version13,
}

/// The only controller of most benches.
pub const C0: ControllerId = ControllerId(0);

/// A switch with the ports 1 to 4, and a controller that has sent its hello.
pub struct Bench {
    pub switch: Switch,
    pub now: Duration,
    pub version: Version,
    frames: Vec<(PortNo, Vec<u8>)>,
}

impl Bench {
    pub fn new(versions: Versions) -> Self {
        Self::with(SwitchOptions { versions, n_buffers: 0, ..SwitchOptions::default() })
    }

    pub fn with(options: SwitchOptions) -> Self {
        let options = crate::options_of(options);
        let version = if options.versions == V10 { Version::V1_0 } else { Version::V1_3 };
        let now = Duration::from_secs(1000);
        let mut switch = Switch::new(DatapathId(7), "s7", options);
        let mut effects = Effects::default();
        for number in 1..=4 {
            switch.add_port(PortNo(number), now, &mut effects);
        }
        switch.on_connected(C0, &mut effects);
        let hello = Message { version, xid: 0, body: Body::Hello(Hello::default()) };
        switch.on_message(C0, &hello, now, &mut effects);
        assert_eq!(switch.version(C0), Some(version));
        Bench { switch, now, version, frames: Vec::new() }
    }

    /// Sends a message and returns the answers. Frames that leave because of it are kept for [`Bench::came_out`].
    pub fn say(&mut self, body: Body) -> Vec<Body> {
        let mut effects = Effects::default();
        let message = Message { version: self.version, xid: 42, body };
        self.switch.on_message(C0, &message, self.now, &mut effects);
        self.frames.append(&mut effects.frames);
        self.bodies(effects)
    }

    /// Sends a message as bytes and returns the answers as bytes.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut effects = Effects::default();
        let message = Message::decode(bytes).unwrap();
        self.switch.on_received(C0, &message, bytes, self.now, &mut effects);
        let written = |(_, message): &(ControllerId, Message)| {
            let mut written = Vec::new();
            message.encode(&mut written).unwrap();
            written
        };
        effects.messages.iter().map(written).collect()
    }

    /// A message as bytes, in the bench's version.
    pub fn written(&self, body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        Message { version: self.version, xid: 42, body }.encode(&mut bytes).unwrap();
        bytes
    }

    /// One more controller sends its hello in a version.
    pub fn join(&mut self, controller: usize, version: Version) {
        let mut effects = Effects::default();
        let controller = ControllerId(controller);
        self.switch.on_connected(controller, &mut effects);
        let elements = vec![HelloElement::VersionBitmap(vec![1 << version.0])];
        let hello = Message { version, xid: 0, body: Body::Hello(Hello { elements }) };
        self.switch.on_message(controller, &hello, self.now, &mut effects);
        assert_eq!(self.switch.version(controller), Some(version));
    }

    /// What all controllers receive when one of them sends a message.
    pub fn say_as(&mut self, controller: usize, body: Body) -> Vec<(usize, Body)> {
        let mut effects = Effects::default();
        let controller = ControllerId(controller);
        let version = self.switch.version(controller).unwrap();
        let message = Message { version, xid: 42, body };
        self.switch.on_message(controller, &message, self.now, &mut effects);
        self.heard(effects)
    }

    /// What all controllers receive when a frame arrives.
    pub fn arrive_for_all(&mut self, in_port: u32, frame: &[u8]) -> Vec<(usize, Body)> {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(in_port), frame.to_vec(), self.now, &mut effects);
        self.heard(effects)
    }

    /// What all controllers receive when time passes.
    pub fn pass_for_all(&mut self, seconds: u64) -> Vec<(usize, Body)> {
        self.now += Duration::from_secs(seconds);
        let mut effects = Effects::default();
        self.switch.on_tick(self.now, &mut effects);
        self.heard(effects)
    }

    /// What all controllers receive when a link goes down or up.
    pub fn link_for_all(&mut self, port: u32, up: bool) -> Vec<(usize, Body)> {
        let mut effects = Effects::default();
        self.switch.set_link(PortNo(port), up, &mut effects);
        self.heard(effects)
    }

    fn heard(&mut self, mut effects: Effects) -> Vec<(usize, Body)> {
        self.frames.append(&mut effects.frames);
        let mut heard = Vec::new();
        for (controller, message) in effects.messages {
            assert_eq!(Some(message.version), self.switch.version(controller), "{message:?}");
            message.encode(&mut Vec::new()).unwrap();
            heard.push((controller.0, message.body));
        }
        heard
    }

    /// Asserts that every message of the switch can be encoded.
    fn bodies(&self, effects: Effects) -> Vec<Body> {
        for (_, message) in &effects.messages {
            message.encode(&mut Vec::new()).unwrap();
        }
        effects.messages.into_iter().map(|(_, message)| message.body).collect()
    }

    /// The error type and code of the answer to a message.
    pub fn refusal(&mut self, body: Body) -> Option<(u16, u16)> {
        self.say(body).into_iter().find_map(|answer| match answer {
            Body::Error(error) => Some((error.kind, error.code)),
            _ => None,
        })
    }

    /// The one reply to a multipart request.
    pub fn ask(&mut self, body: RequestBody) -> ReplyBody {
        let answers = self.say(multipart(body));
        match <[Body; 1]>::try_from(answers) {
            Ok([Body::MultipartReply(reply)]) => reply.body,
            other => panic!("{other:?}"),
        }
    }

    /// The flow entries in the switch's answer to this request.
    pub fn flows(&mut self, wanted: FlowStatsRequest) -> Vec<FlowStats> {
        match self.ask(RequestBody::Flow(wanted)) {
            ReplyBody::Flow(flows) => flows,
            other => panic!("{other:?}"),
        }
    }

    /// The switch's ports, as it describes them in its version.
    pub fn ports(&mut self) -> Vec<Port> {
        if self.version == Version::V1_0 {
            match &self.say(Body::FeaturesRequest)[..] {
                [Body::FeaturesReply(features)] => return features.ports.clone(),
                other => panic!("{other:?}"),
            }
        }
        match self.ask(RequestBody::PortDesc) {
            ReplyBody::PortDesc(ports) => ports,
            other => panic!("{other:?}"),
        }
    }

    /// Sets bits of a port's configuration and returns the messages of the switch.
    pub fn set_port(&mut self, port: u32, bits: u32) -> Vec<Body> {
        let hw_addr =
            self.ports().iter().find(|described| described.port_no == PortNo(port)).unwrap().hw_addr;
        let port_no = PortNo(port);
        self.say(Body::PortMod(PortMod { port_no, hw_addr, config: bits, mask: bits, advertise: 0 }))
    }

    /// Adds rules. The switch must accept each of them.
    pub fn add(&mut self, rules: &[Rule]) {
        for rule in rules {
            assert_eq!(self.refusal(rule.body()), None, "{rule:?}");
        }
    }

    /// Where a packet leaves: ports in order, `controller` last. Also returns the packet-ins.
    pub fn arrive(&mut self, in_port: u32, frame: &[u8]) -> (String, Vec<PacketIn>) {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(in_port), frame.to_vec(), self.now, &mut effects);
        self.frames.append(&mut effects.frames);
        let packet_ins: Vec<PacketIn> = self
            .bodies(effects)
            .into_iter()
            .filter_map(|body| match body {
                Body::PacketIn(packet_in) => Some(packet_in),
                _ => None,
            })
            .collect();
        let mut ports = self.came_out();
        ports.extend(packet_ins.iter().map(|_| "controller".to_owned()));
        (ports.join(" "), packet_ins)
    }

    fn came_out(&mut self) -> Vec<String> {
        self.frames.drain(..).map(|(port, _)| port.to_string()).collect()
    }

    /// The ports by which frames have left since the last call.
    pub fn left_by(&mut self) -> String {
        self.came_out().join(" ")
    }

    /// The same with the length of each frame.
    pub fn left_with_lengths(&mut self) -> String {
        let left: Vec<String> =
            self.frames.drain(..).map(|(port, frame)| format!("{port}:{}", frame.len())).collect();
        left.join(" ")
    }

    /// Everything that the switch sends when this frame arrives.
    pub fn emits(&mut self, in_port: u32, frame: &[u8]) -> (Vec<(PortNo, Vec<u8>)>, Vec<Message>) {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(in_port), frame.to_vec(), self.now, &mut effects);
        let messages = effects.messages.into_iter().map(|(_, message)| message).collect();
        (effects.frames, messages)
    }

    /// The one frame that leaves when this one arrives at port 1.
    pub fn becomes(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut effects = Effects::default();
        self.switch.on_frame(PortNo(1), frame.to_vec(), self.now, &mut effects);
        let [(_, out)] = <[_; 1]>::try_from(effects.frames).unwrap();
        out
    }

    /// Lets time pass and returns the messages of the switch.
    pub fn pass(&mut self, seconds: u64) -> Vec<Body> {
        self.now += Duration::from_secs(seconds);
        let mut effects = Effects::default();
        self.switch.on_tick(self.now, &mut effects);
        self.bodies(effects)
    }

    /// Sets a link's state and returns the messages of the switch.
    pub fn link(&mut self, port: u32, up: bool) -> Vec<Body> {
        let mut effects = Effects::default();
        self.switch.set_link(PortNo(port), up, &mut effects);
        self.bodies(effects)
    }
}

/// Checks where a packet leaves under these rules. It tries both versions if no rule needs 1.3, with and without
/// buffers.
pub fn check(rules: &[Rule], (in_port, frame): (u32, Vec<u8>), expected: &str) {
    let versions = if rules.iter().any(|rule| rule.needs_v13()) { &[V13][..] } else { &[V10, V13] };
    for versions in versions {
        for n_buffers in [0, 16] {
            let mut bench =
                Bench::with(SwitchOptions { versions: *versions, n_buffers, ..Default::default() });
            bench.add(rules);
            let (ports, _) = bench.arrive(in_port, &frame);
            assert_eq!(ports, expected, "{versions:?}, {n_buffers} buffers, {rules:?}");
        }
    }
}

/// A builder of a flow mod.
#[derive(Clone, Debug)]
pub struct Rule(pub FlowMod);

pub fn rule(priority: u16) -> Rule {
    Rule(FlowModFields { priority, ..FlowModFields::default() }.with(Match::any(), Vec::new()))
}

impl Rule {
    pub fn on(mut self, field: Field, value: impl Into<FieldValue>) -> Self {
        self.0.matching = self.0.matching.with(field, value);
        self
    }

    pub fn masked(mut self, field: Field, value: impl Into<FieldValue>, mask: impl Into<FieldValue>) -> Self {
        self.0.matching = self.0.matching.with_masked(field, value, mask);
        self
    }

    pub fn then(mut self, instruction: Instruction) -> Self {
        self.0.instructions.push(instruction);
        self
    }

    pub fn apply(self, actions: &[Action]) -> Self {
        self.then(Instruction::ApplyActions(actions.to_vec()))
    }

    pub fn write(self, actions: &[Action]) -> Self {
        self.then(Instruction::WriteActions(actions.to_vec()))
    }

    /// An output to a port, by number or by the name of a reserved port.
    pub fn output(self, port: &str) -> Self {
        self.apply(&[output(port)])
    }

    pub fn goto(self, table: u8) -> Self {
        self.then(Instruction::GotoTable(table))
    }

    pub fn table(mut self, table_id: u8) -> Self {
        self.0.table_id = table_id;
        self
    }

    pub fn flags(mut self, flags: u16) -> Self {
        self.0.flags = flags;
        self
    }

    pub fn cookie(mut self, cookie: u64) -> Self {
        self.0.cookie = cookie;
        self
    }

    pub fn timeouts(mut self, idle_s: u16, hard_s: u16) -> Self {
        (self.0.idle_timeout_s, self.0.hard_timeout_s) = (idle_s, hard_s);
        self
    }

    pub fn command(mut self, command: u8) -> Self {
        self.0.command = command;
        self
    }

    pub fn buffer(mut self, buffer_id: u32) -> Self {
        self.0.buffer_id = buffer_id;
        self
    }

    pub fn body(&self) -> Body {
        Body::FlowMod(self.0.clone())
    }

    fn needs_v13(&self) -> bool {
        let labels = |entry: &flow::MatchEntry| {
            matches!(entry, flow::MatchEntry::Field { field: Field::MplsLabel, .. })
        };
        let apply = |instruction: &Instruction| matches!(instruction, Instruction::ApplyActions(_));
        self.0.table_id != 0
            || self.0.matching.entries().iter().any(labels)
            || !self.0.instructions.iter().all(apply)
    }
}

pub fn multipart(body: RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { flags: 0, body })
}

/// A request for every rule in every table.
pub fn every_rule() -> FlowStatsRequest {
    FlowStatsRequest::default()
}

pub fn output(port: &str) -> Action {
    Action::Output { port: port.parse().unwrap(), max_len: 64 }
}

pub fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, value }
}

pub fn packet_out(in_port: PortNo, actions: &[Action], data: Vec<u8>) -> Body {
    Body::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port, actions: actions.to_vec(), data })
}

/// An ICMP echo request of 98 bytes from 10.0.0.1 to 10.0.0.2.
pub fn ping() -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(H1.0, H2.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.icmpv4_echo_request(1, 1).write(&mut frame, &[0; 56]).unwrap();
    frame
}

/// A TCP segment from 10.0.0.1 to 10.0.0.2.
pub fn tcp(source: u16, destination: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2(H1.0, H2.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.tcp(source, destination, 1, 1000).write(&mut frame, b"hello").unwrap();
    frame
}

/// The same frame with a VLAN tag.
pub fn tagged(mut frame: Vec<u8>, vid: u16) -> Vec<u8> {
    let [high, low] = vid.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, high, low]);
    frame
}
