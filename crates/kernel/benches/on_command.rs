//! Measures the cost of one command's decision: with an unbounded grant, and with bounded grants.
//!
//! Criterion measures the time. `--count CASE ROUNDS` only runs a case, so that callgrind can count its instructions.
//! The difference of two counts excludes the start-up.

#![allow(clippy::unwrap_used, reason = "a bench may")]

use abi::command::{self, Command, FlowMod, PacketOut, What};
use abi::event::{self, OpenFlowVersion, SwitchUp};
use abi::{Frame, ZoneId};
use criterion::{Criterion, Throughput};
use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter};
use flow::text::parse_match;
use flow::{DatapathId, Field, PortNo};
use kernel::{Bounds, Capability, Decision, Grant, Kernel, Quota, Quotas};
use std::hint::black_box;

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);

/// Commands per round: fewer than the kernel adds to a switch that has not reported its table sizes.
const BATCH: u64 = 1_000;

/// The name, the grant, and the command.
type Case = (&'static str, fn() -> Grant, fn() -> Vec<u8>);

const CASES: [Case; 13] = [
    ("usual-everywhere", everywhere, usual),
    ("usual-numbers", || everywhere().with_rules(numbers()), usual),
    ("flow-mod-everywhere", everywhere, flow_mod),
    ("flow-mod-rated", rated, flow_mod),
    ("flow-mod-numbers", || everywhere().with_rules(numbers()), flow_mod),
    ("flow-mod-flowspace", || everywhere().with_rules(flowspace(1)), flow_mod),
    ("flow-mod-16-matches", || everywhere().with_rules(flowspace(16)), flow_mod),
    ("slice-output", || everywhere().with_rules(one_tag()), slice_output),
    ("slice-rewrite", || everywhere().with_rules(one_tag()), slice_rewrite),
    ("slice-tag", || everywhere().with_rules(one_tag()), slice_tag),
    ("slice-own-port", || everywhere().with_rules(one_tag()), slice_own_port),
    ("packet-out-everywhere", everywhere, packet_out),
    ("packet-out-flowspace", || everywhere().with_packets_out(flowspace(1)), packet_out),
];

fn everywhere() -> Grant {
    Grant::everywhere(&Capability::GRANT_ALL)
}

fn rated() -> Grant {
    let most = Some(Quota { soft: u32::MAX, hard: u32::MAX });
    everywhere().with_quotas(Quotas { commands_per_s: most, ..Quotas::default() })
}

fn numbers() -> Bounds {
    Bounds {
        tables: Some([0].into_iter().collect()),
        priorities: 0..=100,
        ports: Some(vec![PortNo(1), PortNo(2)]),
        ..Bounds::default()
    }
}

/// A flowspace of `count` matches. The command's match is the last one.
fn flowspace(count: u8) -> Bounds {
    let matches =
        (0..count).map(|number| parse_match(&format!("ip,nw_dst=10.{}.0.0/16", count - 1 - number)).unwrap());
    Bounds { flowspace: Some(matches.collect()), ..Bounds::default() }
}

/// A slice: one tag, and a port of its own, by which packets leave without the tag.
fn one_tag() -> Bounds {
    let own_ports = vec![PortNo(9)];
    Bounds { flowspace: Some(vec![parse_match("dl_vlan=5").unwrap()]), own_ports, ..Bounds::default() }
}

/// A tenant's rule for port and addresses, narrowed to its tag.
fn slice_output() -> Vec<u8> {
    slice(5, |actions| {
        actions.output(PortNo(2), 0);
    })
}

/// The same, to another address.
fn slice_rewrite() -> Vec<u8> {
    slice(5, |actions| {
        actions.set_field(Field::EthDst, 7u64).output(PortNo(2), 0);
    })
}

/// From a host, whose packets get the tag.
fn slice_tag() -> Vec<u8> {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    MatchWriter::new(&mut matching)
        .field(Field::InPort, PortNo(9))
        .field(Field::EthDst, 2u64)
        .field(Field::EthSrc, 3u64);
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.push_vlan(0x8100).set_field(Field::VlanVid, 0x1005u16).output(PortNo(2), 0);
    });
    frame(What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD }))
}

/// The same, to a host, without the tag.
fn slice_own_port() -> Vec<u8> {
    slice(5, |actions| {
        actions.pop_vlan().output(PortNo(9), 0);
    })
}

fn slice(tag: u16, actions: impl FnOnce(&mut ActionWriter<'_>)) -> Vec<u8> {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    MatchWriter::new(&mut matching)
        .field(Field::InPort, PortNo(1))
        .field(Field::EthDst, 2u64)
        .field(Field::EthSrc, 3u64)
        .field(Field::VlanVid, 0x1000 | tag);
    InstructionWriter::new(&mut instructions).apply_actions(actions);
    frame(What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD }))
}

/// The match of the learning switch: port and addresses.
fn usual() -> Vec<u8> {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    MatchWriter::new(&mut matching)
        .field(Field::InPort, PortNo(1))
        .field(Field::EthDst, 2u64)
        .field(Field::EthSrc, 3u64);
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(PortNo(2), 0);
    });
    frame(What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD }))
}

/// A flow mod with those fields, an EtherType and an IP prefix.
fn flow_mod() -> Vec<u8> {
    let (mut matching, mut instructions) = (Vec::new(), Vec::new());
    MatchWriter::new(&mut matching)
        .field(Field::InPort, PortNo(1))
        .field(Field::EthDst, 2u64)
        .field(Field::EthSrc, 3u64)
        .field(Field::EthType, 0x0800u16)
        .masked(Field::Ipv4Dst, 0x0a00_0100u32, 0xffff_ff00u32);
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(PortNo(2), 0);
    });
    frame(What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD }))
}

fn packet_out() -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 8, 0];
    data.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1]);
    data.resize(60, 0);
    let mut actions = Vec::new();
    ActionWriter::new(&mut actions).output(PortNo(2), 0);
    frame(What::PacketOut(PacketOut { buffer_id: None, in_port: PortNo(1), actions: &actions, data: &data }))
}

fn frame(what: What<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    bytes
}

fn kernel(grant: Grant) -> Kernel {
    let mut kernel = Kernel::new(7);
    kernel.attach(APP, "app", grant, 0);
    kernel
}

/// The switch connects, and its tables are empty.
fn come_up(kernel: &mut Kernel) {
    let mut bytes = Vec::new();
    let up =
        SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 8, openflow: OpenFlowVersion::V1_3, ports: &[] };
    event::write::switch_up(&mut bytes, 1, &up);
    kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
}

fn round(kernel: &mut Kernel, bytes: &[u8]) {
    let mut effects = Vec::new();
    come_up(kernel);
    for _ in 0..BATCH {
        let frame = Frame::read(black_box(bytes)).unwrap();
        let decision = kernel.on_command(APP, &frame, 0, &mut effects);
        assert!(matches!(black_box(decision), Decision::Send(_)));
        kernel.on_sent();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, case, rounds, ..] = &arguments[..]
        && flag == "--count"
    {
        let (_, grant, command) = CASES.iter().find(|(name, ..)| name == case).unwrap();
        let (mut kernel, bytes) = (kernel(grant()), command());
        (0..rounds.parse::<u32>().unwrap()).for_each(|_| round(&mut kernel, &bytes));
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("a command");
    group.throughput(Throughput::Elements(BATCH));
    for (name, grant, command) in CASES {
        let (mut kernel, bytes) = (kernel(grant()), command());
        group.bench_function(name, |bench| bench.iter(|| round(&mut kernel, &bytes)));
    }
    group.finish();
    criterion.final_summary();
}
