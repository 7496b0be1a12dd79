//! Counts what a slice costs for each packet of its tenant: a packet-in that is told to the controller, and the flow mod that answers it.
//!
//! `--count CASE ROUNDS` only runs a case, so that callgrind can count its instructions. The difference of two counts excludes the start-up.
//!
//! * `packet-in`: from the kernel's event to the message for the controller.
//! * `flow-mod`: from the controller's message to the kernel's command and its receipt. It adds a rule that is there already.
//! * `new-rule`: the same with a rule that is not there yet.
//! * `both`: a packet-in, the flow mod that names its buffer, and the packet-out for the packet.

#![allow(clippy::unwrap_used, reason = "a bench may")]

use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::{FlowMod, FlowModFields, Hello, HelloElement, NO_BUFFER};
use openflow::{Body, Message, Version};
use slicer::abi_frames::write_command;
use slicer::{
    Cause, Command, Connection, Event, Isolation, Limit, Limits, Numbers, Outcome, Output, PacketIn,
    PortFacts, PortPlan, SlicePlan, Slicer, SwitchPlan,
};
use std::hint::black_box;

const SWITCH: DatapathId = DatapathId(1);
const TO: Connection = Connection { datapath: SWITCH, controller: 0 };
const TAG: u16 = 42;
/// Hosts of the tenant: each sends to the next.
const HOSTS: u8 = 100;
/// Packets per round.
const BATCH: u32 = 1_000;

struct Bench {
    slicer: Slicer,
    outputs: Vec<Output>,
    /// The number of the table-miss rule.
    miss: u64,
    commands: Vec<u8>,
    packets: u64,
    /// New rules so far.
    rules: u32,
}

fn plan() -> SlicePlan {
    let port = |port| PortPlan { port: PortNo(port), shown_as: PortNo(port), is_edge: true };
    let ports = (1..=4).map(port).collect();
    SlicePlan {
        name: "blue".to_owned(),
        isolation: Isolation::Vlan(TAG),
        is_read_only: false,
        switches: vec![SwitchPlan { datapath: SWITCH, shown_as: SWITCH, ports }],
        links: Vec::new(),
        limits: Limits { rules: Limit::NONE, ..Limits::default() },
        numbers: Numbers { groups: 100..108, meters: 200..204 },
    }
}

fn encoded(body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message { version: Version::V1_3, xid: 7, body }.encode(&mut bytes).unwrap();
    bytes
}

fn port_of(host: u8) -> PortNo {
    PortNo(u32::from(host % 4) + 1)
}

fn address(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

fn flow_mod(host: u8, buffer_id: u32) -> Vec<u8> {
    let next = (host + 1) % HOSTS;
    let matching = Match::any()
        .with(Field::InPort, port_of(host))
        .with(Field::EthDst, address(next))
        .with(Field::EthSrc, address(host));
    let output = Instruction::ApplyActions(vec![Action::output(port_of(next))]);
    let fields = FlowModFields { priority: 100, idle_timeout_s: 60, buffer_id, ..FlowModFields::default() };
    encoded(Body::FlowMod(fields.with(matching, vec![output])))
}

fn frame(host: u8) -> [u8; 64] {
    let mut frame = [0; 64];
    frame[..6].copy_from_slice(&address((host + 1) % HOSTS).0);
    frame[6..12].copy_from_slice(&address(host).0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..34].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 255, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame
}

impl Bench {
    fn new() -> Bench {
        let slicer = Slicer::new(&plan()).unwrap();
        let mut bench =
            Bench { slicer, outputs: Vec::new(), miss: 0, commands: Vec::new(), packets: 0, rules: 0 };
        let facts = |port: u32| PortFacts {
            port: PortNo(port),
            hw_addr: MacAddr([2, 0, 0, 0, 1, port as u8]),
            name: format!("s1-eth{port}"),
            is_live: true,
            curr_speed_kbps: 10_000_000,
        };
        let ports = (1..=4).map(facts).collect();
        bench.event(Event::SwitchUp { datapath: SWITCH, version: Version::V1_3, ports });
        bench.event(Event::ControllerUp(TO));
        let elements = vec![HelloElement::VersionBitmap(vec![1 << Version::V1_3.0])];
        bench.message(&encoded(Body::Hello(Hello { elements })));
        let up = Action::Output { port: PortNo::CONTROLLER, max_len: 128 };
        let miss = FlowModFields { priority: 0, ..FlowModFields::default() }
            .with(Match::any(), vec![Instruction::ApplyActions(vec![up])]);
        bench.message(&encoded(Body::FlowMod(miss)));
        for output in &bench.outputs {
            if let Output::Command { command: Command::FlowMod(FlowMod { cookie, .. }), .. } = output {
                bench.miss = *cookie;
            }
        }
        bench.obey();
        bench
    }

    fn event(&mut self, event: Event<'_>) {
        self.slicer.on_event(1_000, event, &mut self.outputs);
    }

    fn message(&mut self, bytes: &[u8]) {
        self.event(Event::Message(TO, black_box(bytes)));
    }

    /// A packet-in of a host. Returns the number of its buffer.
    fn packet_in(&mut self, host: u8) -> u32 {
        let data = frame(host);
        self.event(Event::PacketIn(PacketIn {
            datapath: SWITCH,
            in_port: port_of(host),
            buffer_id: None,
            total_len: 64,
            reason: 0,
            cause: Cause::Own(self.miss),
            data: black_box(&data),
        }));
        let Some(Output::Tell { bytes, .. }) = self.outputs.pop() else {
            panic!("the controller was told nothing")
        };
        self.packets += 1;
        u32::from_be_bytes(*black_box(&bytes)[8..].first_chunk().unwrap())
    }

    /// The kernel carries out the commands.
    fn obey(&mut self) {
        let mut answers = Vec::new();
        self.commands.clear();
        for output in self.outputs.drain(..) {
            let Output::Command { datapath, ticket, wants_receipt, command } = output else { continue };
            assert!(write_command(&mut self.commands, datapath, ticket, wants_receipt, &command));
            answers.extend(wants_receipt.then_some(ticket));
        }
        black_box(&self.commands);
        for ticket in answers {
            self.event(Event::Answer { datapath: SWITCH, ticket, outcome: Outcome::Done });
        }
    }

    fn round(&mut self, case: &str, flow_mods: &[Vec<u8>]) {
        for number in 0..BATCH {
            let host = (number % u32::from(HOSTS)) as u8;
            match case {
                "packet-in" => _ = self.packet_in(host),
                "flow-mod" => self.message(&flow_mods[usize::from(host)]),
                "new-rule" => {
                    let mut bytes = flow_mods[usize::from(host)].clone();
                    self.rules += 1;
                    // The match begins at 48, with 8 bytes for the port. The end of the destination is at 66.
                    bytes[66..70].copy_from_slice(&self.rules.to_be_bytes());
                    self.message(&bytes);
                }
                _ => {
                    let buffer_id = self.packet_in(host);
                    let mut bytes = flow_mods[usize::from(host)].clone();
                    // 1.3.5, 7.3.4.1: the buffer of a flow mod.
                    bytes[32..36].copy_from_slice(&buffer_id.to_be_bytes());
                    self.message(&bytes);
                }
            }
            self.obey();
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, flag, case, rounds, ..] = &arguments[..] else { return };
    assert_eq!(flag, "--count");
    let flow_mods: Vec<Vec<u8>> = (0..HOSTS).map(|host| flow_mod(host, NO_BUFFER)).collect();
    let mut bench = Bench::new();
    (0..rounds.parse::<u32>().unwrap()).for_each(|_| bench.round(case, &flow_mods));
    let is_told = ["flow-mod", "new-rule"].contains(&case.as_str()) || bench.packets > 0;
    assert!(is_told || rounds == "0", "no packet-in was told");
}
