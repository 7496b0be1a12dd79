//! Random commands of apps, and packets that arrive. They use few values, so that they interact.
//!
//! In: a random generator. Out: frames of the app boundary, with a description.

use super::dice::Dice;
use super::forms::{Meaning, Names};
use super::grants::SPACES;
use super::node::flows;
use abi::command::{self, Command, FlowMod, GroupMod, MeterMod, PacketOut, PortMod, StatsRequest, What};
use abi::{OpenFlowVersion, ZoneId};
use flow::canonical::{
    read_actions, read_instructions, read_match, write_actions, write_instructions, write_match,
};
use flow::text::{actions_to_string, instructions_to_string, match_to_string, parse_match};
use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// An app sends this command.
    Command { zone: ZoneId, bytes: Vec<u8>, words: String },
    /// A frame, by its index in [`packets`], arrives at a port.
    Arrive { port: u32, packet: usize },
    /// Time passes.
    Wait,
}

impl Step {
    pub fn words(&self) -> String {
        match self {
            Step::Command { zone, words, .. } => format!("app {}: {words}", zone.0),
            Step::Arrive { port, packet } => format!("packet {packet} comes in by port {port}"),
            Step::Wait => "time goes by".to_owned(),
        }
    }
}

/// The packets that the test uses.
pub fn packets() -> Vec<Vec<u8>> {
    let tcp = |source: u8, destination: u8, port: u16| ip(source, destination, 6, port);
    vec![
        ethernet(1, 2, None, 0x0800, &tcp(1, 2, 80)),
        ethernet(2, 1, None, 0x0800, &tcp(2, 1, 443)),
        ethernet(2, 1, None, 0x0800, &tcp(2, 0, 80)),
        ethernet(1, 2, None, 0x0800, &ip(1, 9, 17, 80)),
        ethernet(3, 1, None, 0x0800, &ip(9, 2, 17, 53)),
        ethernet(1, 2, Some(5), 0x0800, &tcp(1, 2, 80)),
        ethernet(2, 3, Some(6), 0x0800, &tcp(2, 1, 80)),
        ethernet(1, 0xff, None, 0x0806, &arp(1, 2)),
        ethernet(2, 1, Some(5), 0x0806, &arp(2, 1)),
        ethernet(1, 3, None, 0x88cc, &[2, 7, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
    ]
}

fn ethernet(source: u8, destination: u8, vlan: Option<u16>, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mac = |number: u8| [2, 0, 0, 0, 0, number];
    let mut frame = [mac(destination), mac(source)].concat();
    if let Some(vlan) = vlan {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend(kind.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn ip(source: u8, destination: u8, protocol: u8, port: u16) -> Vec<u8> {
    let mut packet =
        vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, source, 10, 0, 0, destination];
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x30, 0x39]);
    packet.extend(port.to_be_bytes());
    // The rest of a TCP header without a valid checksum; for UDP, its length and no checksum.
    packet.extend(if protocol == 17 { vec![0, 20, 0, 0] } else { vec![0, 0, 0, 1] });
    packet.extend([0, 0, 0, 0, 0x50, 0x02, 0, 0, 0, 0, 0, 0]);
    packet
}

fn arp(source: u8, target: u8) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, source, 10, 0, 0, source];
    packet.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, target]);
    packet
}

/// Generates steps.
pub struct Maker<'a> {
    pub dice: &'a mut Dice,
    pub openflow: OpenFlowVersion,
    pub names: Names,
    pub zones: u16,
    pub switch: DatapathId,
    /// The ticket of the next command.
    pub tickets: u64,
}

impl Maker<'_> {
    pub fn step(&mut self) -> Step {
        match self.dice.below(100) {
            0..35 => Step::Arrive {
                port: 1 + self.dice.below(4) as u32,
                packet: self.dice.below(packets().len() as u64) as usize,
            },
            35..37 => Step::Wait,
            _ => self.command(),
        }
    }

    fn is_1_3(&self) -> bool {
        self.openflow == OpenFlowVersion::V1_3
    }

    fn command(&mut self) -> Step {
        let zone = ZoneId(1 + self.dice.below(self.zones.into()) as u16);
        match self.dice.below(100) {
            0..52 => self.flow_mod(zone),
            52..75 => self.packet_out(zone),
            75..87 if self.is_1_3() => self.group_mod(zone),
            87..90 if self.is_1_3() => self.meter_mod(zone),
            90..93 => self.port_mod(zone),
            93..98 => self.stats(zone),
            _ => self.finish(zone, What::Barrier, "barrier".to_owned()),
        }
    }

    fn finish(&mut self, zone: ZoneId, what: What<'_>, words: String) -> Step {
        self.tickets += 1;
        let mut bytes = Vec::new();
        let wants_receipt = self.dice.chance(30);
        let command = Command { datapath: self.switch, ticket: self.tickets, wants_receipt, what };
        assert!(command::write::command(&mut bytes, &command));
        Step::Command { zone, bytes, words }
    }

    fn matching(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.dice.below(10) {
            0..2 => {}
            2..6 => {
                let text = self.dice.pick(&SPACES);
                write_match(&parse_match(text).unwrap(), &mut bytes);
            }
            6..9 => {
                let texts = [
                    "in_port=2",
                    "ip,nw_dst=10.0.0.1",
                    "tcp,nw_dst=10.0.0.2,tp_dst=80",
                    "in_port=1,arp",
                    "dl_vlan=5,ip",
                    "dl_src=02:00:00:00:00:02",
                    "in_port=1,ip,nw_src=10.0.0.1",
                ];
                write_match(&parse_match(self.dice.pick(&texts)).unwrap(), &mut bytes);
            }
            _ => {
                bytes = Meaning::roll(self.dice, self.openflow, self.names).write(
                    self.dice,
                    self.openflow,
                    self.names,
                )
            }
        }
        self.damage(&mut bytes, 2);
        bytes
    }

    /// Changes a byte, in this percentage of cases.
    fn damage(&mut self, bytes: &mut [u8], percent: u64) {
        if !bytes.is_empty() && self.dice.chance(percent) {
            let place = self.dice.below(bytes.len() as u64) as usize;
            bytes[place] = self.dice.roll() as u8;
        }
    }

    fn port(&mut self) -> PortNo {
        let special = [
            PortNo::IN_PORT,
            PortNo::FLOOD,
            PortNo::ALL,
            PortNo::CONTROLLER,
            PortNo::NORMAL,
            PortNo::TABLE,
            PortNo::LOCAL,
        ];
        if self.dice.chance(20) { self.dice.pick(&special) } else { PortNo(1 + self.dice.below(4) as u32) }
    }

    fn action(&mut self) -> Action {
        let set = |field, value| Action::SetField { field, value };
        let sets = [
            set(Field::EthDst, 0x0200_0000_0001),
            set(Field::EthDst, 0x0200_0000_0002),
            set(Field::EthSrc, 0x0200_0000_0001),
            set(Field::Ipv4Dst, 0x0a00_0001),
            set(Field::Ipv4Dst, 0x0a00_0002),
            set(Field::Ipv4Src, 0x0a00_0001),
            set(Field::TcpDst, 80),
            set(Field::TcpDst, 81),
            set(Field::VlanVid, 0x1005),
            set(Field::EthType, 0x0800),
            set(Field::InPort, 1),
            set(Field::Metadata, 1),
            Action::PushVlan(0x8100),
            Action::PopVlan,
            Action::PushMpls(0x8847),
            Action::PopMpls(0x0800),
            Action::DecNwTtl,
            Action::SetVlanVid(5),
            Action::StripVlan,
            Action::SetIpv4Dst(std::net::Ipv4Addr::new(10, 0, 0, 1)),
            Action::Enqueue { port: PortNo(2), queue_id: 1 },
            Action::SetQueue(1),
        ];
        match self.dice.below(100) {
            0..50 => Action::output(self.port()),
            50..85 => self.dice.pick(&sets),
            85..97 if self.is_1_3() => Action::Group(1 + self.dice.below(3) as u32),
            97..99 => {
                // resubmit(,1), learn, and an unknown action.
                let body = self.dice.pick(&[
                    vec![0, 14, 0xff, 0xf8, 1, 0, 0, 0],
                    vec![0, 16, 0, 0, 0, 0, 0, 0],
                    vec![0, 99, 0, 0, 0, 0, 0, 0],
                ]);
                Action::Experimenter { experimenter: 0x2320, body }
            }
            _ => Action::output(self.port()),
        }
    }

    fn actions(&mut self, most: u64) -> Vec<Action> {
        let mut actions: Vec<Action> = (0..self.dice.below(most + 1)).map(|_| self.action()).collect();
        if self.dice.chance(50) {
            actions.push(Action::output(self.port()));
        }
        actions
    }

    fn action_bytes(&mut self, most: u64) -> Vec<u8> {
        loop {
            let mut bytes = Vec::new();
            let actions = self.actions(most);
            if write_actions(&actions, &mut bytes).is_ok() {
                self.damage(&mut bytes, 1);
                return bytes;
            }
        }
    }

    fn instruction_bytes(&mut self) -> Vec<u8> {
        loop {
            let mut all = Vec::new();
            if self.dice.chance(85) {
                all.push(Instruction::ApplyActions(self.actions(3)));
            }
            if self.is_1_3() && self.dice.chance(25) {
                all.push(Instruction::WriteActions(self.actions(2)));
            }
            if self.is_1_3() && self.dice.chance(25) {
                all.push(Instruction::GotoTable(1 + self.dice.below(2) as u8));
            }
            if self.is_1_3() && self.dice.chance(10) {
                all.push(Instruction::WriteMetadata { metadata: 1, mask: 1 });
            }
            if self.is_1_3() && self.dice.chance(8) {
                all.push(Instruction::Meter(1 + self.dice.below(2) as u32));
            }
            let mut bytes = Vec::new();
            if write_instructions(&all, &mut bytes).is_ok() {
                self.damage(&mut bytes, 1);
                return bytes;
            }
        }
    }

    fn flow_mod(&mut self, zone: ZoneId) -> Step {
        let (matching, instructions) = (self.matching(), self.instruction_bytes());
        let command = self.dice.pick(&[0, 0, 0, 0, 1, 2, 2, 3, 4, 4]);
        let flow_mod = FlowMod {
            cookie: self.dice.pick(&[0, 1, 1 << 48, 2 << 48 | 1, u64::MAX]),
            cookie_mask: self.dice.pick(&[0, 0, 0, 1, u64::MAX, 0xffff << 48]),
            buffer_id: self.dice.chance(3).then_some(7),
            out_port: if self.dice.chance(10) { PortNo(2) } else { PortNo::ANY },
            out_group: if self.dice.chance(5) { 1 } else { 0xffff_ffff },
            priority: self.dice.pick(&[0, 5, 5, 10, 10, 20, u16::MAX]),
            flags: self.dice.pick(&[0, 0, 0, 1, 2, 4]),
            table_id: self.dice.pick(&[0, 0, 0, 0, 1, 2, 255]),
            command,
            matching: &matching,
            instructions: if command < 3 { &instructions } else { &[] },
            ..FlowMod::ADD
        };
        let words = words_of_flow_mod(&flow_mod);
        self.finish(zone, What::FlowMod(flow_mod), words)
    }

    fn packet_out(&mut self, zone: ZoneId) -> Step {
        let actions = self.action_bytes(3);
        let number = self.dice.below(packets().len() as u64) as usize;
        let mut data = packets()[number].clone();
        self.damage(&mut data, 5);
        let in_port = self.dice.pick(&[PortNo(1), PortNo(2), PortNo(3), PortNo::CONTROLLER]);
        let packet_out = PacketOut {
            buffer_id: self.dice.chance(3).then_some(7),
            in_port,
            actions: &actions,
            data: &data,
        };
        let words =
            format!("packet-out of packet {number}, in_port={in_port}, {}", words_of_actions(&actions));
        self.finish(zone, What::PacketOut(packet_out), words)
    }

    fn group_mod(&mut self, zone: ZoneId) -> Step {
        let (group_id, command) =
            (self.dice.pick(&[1, 1, 2, 3, 0xffff_fffc]), self.dice.pick(&[0, 0, 0, 1, 1, 2]));
        let group_type = self.dice.pick(&[0, 0, 1, 2, 3]);
        let mut buckets = Vec::new();
        let mut words = Vec::new();
        let count = if group_type == 2 { 1 } else { 1 + self.dice.below(2) };
        for _ in 0..count {
            let actions = self.action_bytes(2);
            let weight = u16::from(group_type == 1);
            let watch_port: u32 = if group_type == 3 { 1 } else { u32::MAX };
            let length = u16::try_from(16 + actions.len()).unwrap();
            buckets.extend(length.to_be_bytes());
            buckets.extend(weight.to_be_bytes());
            buckets.extend(watch_port.to_be_bytes());
            buckets.extend([0xff; 4]);
            buckets.extend([0; 4]);
            words.push(words_of_actions(&actions));
            buckets.extend(actions);
        }
        self.damage(&mut buckets, 1);
        let words =
            format!("group mod {command} of group {group_id:#x}, type {group_type}, buckets {words:?}");
        self.finish(
            zone,
            What::GroupMod(GroupMod { command, group_type, group_id, buckets: &buckets }),
            words,
        )
    }

    fn meter_mod(&mut self, zone: ZoneId) -> Step {
        let command = self.dice.pick(&[0, 0, 1, 2]);
        let meter_id = self.dice.pick(&[1, 2, 0xffff_fffe, 0xffff_ffff]);
        let bands = [0, 1, 0, 16, 0, 0xf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = format!("meter mod {command} of meter {meter_id:#x}");
        let bands = if command == 2 { &[][..] } else { &bands };
        self.finish(zone, What::MeterMod(MeterMod { command, flags: 1, meter_id, bands }), words)
    }

    fn port_mod(&mut self, zone: ZoneId) -> Step {
        // No bit changes: the test only checks that the command passes.
        let port_mod =
            PortMod { port_no: PortNo(2), hw_addr: MacAddr([2, 0, 0, 1, 0, 2]), config: 0, mask: 0 };
        self.finish(zone, What::PortMod(port_mod), "port mod of port 2".to_owned())
    }

    fn stats(&mut self, zone: ZoneId) -> Step {
        let multipart = self.dice.pick(&[1, 1, 1, 2, 3, 6, 7, 9, 10, 12]);
        let body = if matches!(multipart, 1 | 2) { flows(0xff, 0, 0, &[]) } else { Vec::new() };
        let words = format!("statistics request {multipart}");
        self.finish(zone, What::StatsRequest(StatsRequest { multipart, body: &body }), words)
    }
}

fn words_of_actions(bytes: &[u8]) -> String {
    read_actions(bytes).map_or_else(
        |_| format!("actions {bytes:02x?}"),
        |actions| format!("actions={}", actions_to_string(&actions)),
    )
}

fn words_of_flow_mod(it: &FlowMod<'_>) -> String {
    let name = ["add", "modify", "modify strict", "delete", "delete strict"][usize::from(it.command)];
    let matching = read_match(it.matching)
        .map_or_else(|_| format!("{:02x?}", it.matching), |rule: Match| match_to_string(&rule));
    let instructions = read_instructions(it.instructions)
        .map_or_else(|_| format!("{:02x?}", it.instructions), |all| instructions_to_string(&all));
    let FlowMod { table_id, priority, cookie, cookie_mask, .. } = it;
    let mut rest = String::new();
    if it.buffer_id.is_some() {
        rest.push_str(",buffer=7");
    }
    if it.flags != 0 {
        rest.push_str(&format!(",flags={}", it.flags));
    }
    format!(
        "{name} table={table_id},priority={priority},cookie={cookie:#x}/{cookie_mask:#x}{rest},{matching} actions={instructions}"
    )
}
