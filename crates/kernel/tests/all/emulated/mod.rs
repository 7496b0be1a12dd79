//! A node, and an emulated switch that executes the commands that the node accepts, and sends the frames.

use abi::command::{self, Command, FlowMod, GroupMod, MeterMod, PacketOut, What};
use abi::event::{self, OpenFlowVersion, PortFacts, PortRecord, SwitchUp, kind};
use abi::{Frame, Outcome, Receipt, ZoneId};
use emulator::{ControllerId, Effects, Switch, SwitchOptions};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{parse_actions, parse_instructions, parse_match};
use flow::{DatapathId, MacAddr, PortNo};
use kernel::{Bounds, Capability, Decision, Effect, Grant, Kernel};
use openflow::message::{Bucket, FlowModFields, GROUP_ANY, Hello, NO_BUFFER};
use openflow::{Body, Message, Version, message};
use std::time::Duration;

pub const SWITCH: DatapathId = DatapathId(1);
pub const APP: ZoneId = ZoneId(1);
pub const OTHER: ZoneId = ZoneId(2);
pub const NOW: Duration = Duration::from_secs(1);
pub const CONTROLLER: ControllerId = ControllerId(0);

pub const ADD: u16 = 0;
pub const MODIFY: u16 = 1;
pub const DELETE: u16 = 2;

pub const ALL: u8 = 0;

/// The switch's ports.
pub const PORTS: u32 = 4;

fn port(number: u32) -> PortRecord {
    PortRecord::new(PortFacts {
        port_no: PortNo(number),
        hw_addr: MacAddr::default(),
        live: true,
        administratively_up: true,
        curr_speed_kbps: 0,
        name: "p",
    })
}

/// A node, and a switch that executes the commands that the node accepts.
pub struct World {
    pub kernel: Kernel,
    pub switch: Switch,
    pub effects: Effects,
    /// The last command's ticket, as the switch's answer would carry it.
    pub ticket: u64,
    /// The effects that the kernel requested.
    pub wanted: Vec<Effect>,
    pub now_ms: u64,
    /// Whether the switch confirms at once.
    pub confirms: bool,
}

impl World {
    /// One app with this grant, and another without a grant of its own.
    pub fn with(grant: Grant) -> World {
        let mut kernel = Kernel::new(7);
        kernel.attach(APP, "app", grant, 0);
        kernel.attach(OTHER, "other", Grant::everywhere(&Capability::GRANT_ALL), 0);
        let mut bytes = Vec::new();
        let ports: Vec<_> = (1..=PORTS).map(port).collect();
        let up = SwitchUp {
            datapath: SWITCH,
            n_buffers: 0,
            n_tables: 8,
            openflow: OpenFlowVersion::V1_3,
            ports: &ports,
        };
        event::write::switch_up(&mut bytes, 1, &up);
        kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        let (mut switch, mut effects) =
            (Switch::new(SWITCH, "s1", SwitchOptions::default()), Effects::default());
        (1..=PORTS).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        switch.on_connected(CONTROLLER, &mut effects);
        let mut world =
            World { kernel, switch, effects, ticket: 0, wanted: Vec::new(), now_ms: 0, confirms: true };
        world.say(Body::Hello(Hello::default()));
        world
    }

    pub fn say(&mut self, body: Body) {
        let message = Message { version: Version::V1_3, xid: 1, body };
        self.switch.on_message(CONTROLLER, &message, NOW, &mut self.effects);
    }

    /// `sent`, or the refusal in words.
    pub fn ask(&mut self, zone: ZoneId, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut self.wanted) {
            Decision::Send(sent) => {
                self.ticket = sent.ticket;
                self.kernel.on_sent();
                if self.confirms {
                    self.settle(Outcome::Programmed);
                }
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    pub fn settle(&mut self, outcome: Outcome) {
        let error = flow::ErrorCode { kind: 0, code: 0 };
        self.kernel.on_receipt(&Receipt { ticket: self.ticket, outcome, error, reason: "" });
    }

    pub fn rule(&mut self, zone: ZoneId, table_id: u8, matching: &str, instructions: &str) -> String {
        self.rule_of(zone, table_id, 5, matching, instructions)
    }

    pub fn rule_of(
        &mut self,
        zone: ZoneId,
        table_id: u8,
        priority: u16,
        matching: &str,
        instructions: &str,
    ) -> String {
        let (rule, done) = (parse_match(matching).unwrap(), parse_instructions(instructions).unwrap());
        let (mut matched, mut bytes) = (Vec::new(), Vec::new());
        write_match(&rule, &mut matched);
        write_instructions(&done, &mut bytes).unwrap();
        let flow_mod =
            FlowMod { table_id, priority, matching: &matched, instructions: &bytes, ..FlowMod::ADD };
        let said = self.ask(zone, What::FlowMod(flow_mod));
        if said == "sent" {
            let cookie = zone.stamp(0);
            let fields = FlowModFields { table_id, priority, cookie, ..FlowModFields::default() };
            self.say(Body::FlowMod(fields.with(rule, done)));
        }
        said
    }

    /// Installs the kernel's table-miss rule.
    pub fn punt(&mut self) {
        let fields =
            FlowModFields { cookie: ZoneId::KERNEL.stamp(0), priority: 0, ..FlowModFields::default() };
        let up = parse_instructions("controller").unwrap();
        self.say(Body::FlowMod(fields.with(parse_match("").unwrap(), up)));
    }

    pub fn group(&mut self, zone: ZoneId, command: u16, group_id: u32, buckets: &[&str]) -> String {
        let mut bytes = Vec::new();
        buckets.iter().for_each(|actions| write_bucket(actions, GROUP_ANY, &mut bytes));
        let it = GroupMod { command, group_type: ALL, group_id, buckets: &bytes };
        let said = self.ask(zone, What::GroupMod(it));
        if said == "sent" {
            let bucket = |actions: &&str| Bucket {
                weight: 0,
                watch_port: PortNo::ANY,
                watch_group: GROUP_ANY,
                actions: parse_actions(actions).unwrap(),
            };
            let buckets = buckets.iter().map(bucket).collect();
            self.say(Body::GroupMod(message::GroupMod { command, group_type: ALL, group_id, buckets }));
        }
        said
    }

    pub fn meter(&mut self, zone: ZoneId, bands: &[u8]) -> String {
        self.ask(zone, What::MeterMod(MeterMod { command: ADD, flags: 1, meter_id: 1, bands }))
    }

    pub fn packet_out(&mut self, frame: &[u8], actions: &str) -> String {
        let (actions, mut bytes) = (parse_actions(actions).unwrap(), Vec::new());
        write_actions(&actions, &mut bytes).unwrap();
        let in_port = PortNo(1);
        let packet = PacketOut { buffer_id: None, in_port, actions: &bytes, data: frame };
        let said = self.ask(APP, What::PacketOut(packet));
        if said == "sent" {
            let data = frame.to_vec();
            self.say(Body::PacketOut(message::PacketOut { buffer_id: NO_BUFFER, in_port, actions, data }));
        }
        said
    }

    /// A packet-out of this many bytes that does not reach the emulated switch.
    pub fn asks_packet_out(&mut self, bytes: usize, actions: &str) -> String {
        let mut written = Vec::new();
        write_actions(&parse_actions(actions).unwrap(), &mut written).unwrap();
        let data = vec![0; bytes];
        let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions: &written, data: &data };
        self.ask(APP, What::PacketOut(packet))
    }

    /// A zone subscribes to packet-ins.
    pub fn hear_packets(&mut self, zone: ZoneId) {
        let wanted = command::Subscribe { events: kind::bit(kind::PACKET_IN), packets: &[] };
        assert_eq!(self.ask(zone, What::Subscribe(wanted)), "Subscribed");
    }

    /// For each packet-in that the switch has sent since the last call: the zones that receive it.
    pub fn heard(&mut self) -> Vec<Vec<u16>> {
        self.packet_ins().iter().map(|packet| self.hear(packet)).collect()
    }

    /// The frames that the switch has sent up since the last call.
    pub fn sent_up(&mut self) -> Vec<Vec<u8>> {
        self.packet_ins().into_iter().map(|packet| packet.data).collect()
    }

    fn packet_ins(&mut self) -> Vec<message::PacketIn> {
        let sent = std::mem::take(&mut self.effects.messages).into_iter();
        let packets = sent.filter_map(|(_, message)| match message.body {
            Body::PacketIn(packet) => Some(packet),
            _ => None,
        });
        packets.collect()
    }

    fn hear(&mut self, packet: &message::PacketIn) -> Vec<u16> {
        let message::PacketIn { reason, table_id, cookie, total_len, ref data, .. } = *packet;
        let (datapath, in_port, buffer_id) = (SWITCH, PortNo(1), None);
        let metadata = &[][..];
        let event = event::PacketIn {
            datapath,
            in_port,
            buffer_id,
            total_len,
            reason,
            table_id,
            cookie,
            metadata,
            data,
        };
        let mut bytes = Vec::new();
        event::write::packet_in(&mut bytes, 2, &event);
        let frame = Frame::read(&bytes).unwrap();
        let receivers = self.kernel.on_event(&frame, self.now_ms, &mut self.wanted).unwrap();
        receivers.iter().map(|zone| zone.0).collect()
    }

    /// A host sends this frame through port 1.
    pub fn host_says(&mut self, frame: Vec<u8>) {
        self.switch.on_frame(PortNo(1), frame, NOW, &mut self.effects);
    }

    /// The frames that left since the last call.
    pub fn left(&mut self) -> Vec<(PortNo, Vec<u8>)> {
        std::mem::take(&mut self.effects.frames)
    }
}

pub fn write_bucket(actions: &str, watch_group: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    out.extend(watch_group.to_be_bytes());
    out.extend([0; 4]);
    write_actions(&parse_actions(actions).unwrap(), out).unwrap();
    let length = u16::try_from(out.len() - start).unwrap();
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

pub fn flowspace(texts: &[&str]) -> Bounds {
    let matches = texts.iter().map(|text| parse_match(text).unwrap()).collect();
    Bounds { flowspace: Some(matches), ..Bounds::default() }
}

pub fn to_ports(bounds: Bounds, ports: &[PortNo]) -> Bounds {
    Bounds { ports: Some(ports.to_vec()), ..bounds }
}

/// An ARP packet of this operation, 1 to ask and 2 to answer.
pub fn arp(op: u8) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6];
    frame.extend([0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame.resize(60, 0);
    frame
}

/// An IPv4 packet.
pub fn ip() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(60, 0);
    frame
}
