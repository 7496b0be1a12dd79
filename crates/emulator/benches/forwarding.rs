//! How fast a switch forwards, how fast its tables change, and how fast packets pass from host to host.
//!
//! `cargo bench -p emulator`. Each figure is of one thread. Packets have 60 bytes unless stated otherwise. With `--count STAGE VERSION ROUNDS`
//! the program does so many rounds of [`BATCH`] packets or pairs of flow mods and prints nothing, so that their instructions can be counted.

#![allow(clippy::unwrap_used, reason = "a bench ends where something is not as it should be")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use emulator::{
    Channel, ControllerId, Effects, FlowSpec, Network, NetworkEffects, Switch, SwitchOptions, Topology,
};
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::hint::black_box;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);

/// The number of flows that are sent in turn, so that the cache never has the next one: many times its size.
const FLOWS: u32 = 200_000;

fn message(body: Body) -> Message {
    Message { version: Version::V1_3, xid: 1, body }
}

fn rule(priority: u16, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowModFields { priority, ..FlowModFields::default() }.with(matching, instructions)
}

fn output(port: u32) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::output(PortNo(port))])]
}

fn switch(rules: impl Iterator<Item = FlowMod>) -> Switch {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions::default());
    let mut effects = Effects::default();
    (1..=2).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
    switch.on_connected(ControllerId(0), &mut effects);
    for body in std::iter::once(Body::Hello(Hello::default())).chain(rules.map(Body::FlowMod)) {
        switch.on_message(ControllerId(0), &message(body), NOW, &mut effects);
    }
    assert!(!effects.messages.iter().any(|(_, message)| matches!(message.body, Body::Error(_))));
    switch
}

/// TCP over IPv4 from 10.0.0.1 to `to`.
fn frame(to: u32) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    frame[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0]);
    frame[30..34].copy_from_slice(&to.to_be_bytes());
    frame[34..38].copy_from_slice(&[0x30, 0x39, 0, 80]);
    frame[46] = 0x50;
    frame
}

/// Passes a frame to the switch and returns the frame that leaves.
fn through(switch: &mut Switch, frame: Vec<u8>, effects: &mut Effects) -> Vec<u8> {
    switch.on_frame(PortNo(1), frame, NOW, effects);
    effects.frames.pop().unwrap().1
}

fn address_match(field: Field, value: u32, mask: u32) -> Match {
    Match::any().with(Field::EthType, 0x800u16).with_masked(field, value, mask)
}

fn known_flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("known_flow");
    group.throughput(Throughput::Elements(1));
    let host = |number: u32| rule(1, Match::any().with(Field::EthDst, number), output(2));
    let learned = (0..1000).map(host).chain([rule(
        1,
        Match::any().with(Field::EthDst, 0x0200_0000_0002u64),
        output(2),
    )]);
    let mut learned = switch(learned);
    let mut effects = Effects::default();
    let mut packet = frame(0x0a00_0002);
    group.bench_function("one_table", |bench| {
        bench.iter(|| packet = through(&mut learned, std::mem::take(&mut packet), &mut effects));
    });
    let goto = |table: u8| FlowMod {
        table_id: table,
        ..rule(1, Match::any(), vec![Instruction::GotoTable(table + 1)])
    };
    let routed = vec![
        Instruction::ApplyActions(vec![
            Action::SetField { field: Field::EthSrc, value: 1 },
            Action::SetField { field: Field::EthDst, value: 2 },
            Action::SetNwTtl(64),
        ]),
        Instruction::WriteActions(vec![Action::output(PortNo(2))]),
    ];
    let last =
        FlowMod { table_id: 3, ..rule(1, address_match(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000), routed) };
    let mut routes = switch((0..3).map(goto).chain([last]));
    group.bench_function("four_tables_and_rewriting", |bench| {
        bench.iter(|| packet = through(&mut routes, std::mem::take(&mut packet), &mut effects));
    });
}

/// A table with many masks: prefixes of source and destination. Each mask has 100 rules. Only the table-miss rule
/// matches.
fn unknown_flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("unknown_flow");
    group.throughput(Throughput::Elements(1));
    for masks in [1u32, 10, 100] {
        let rules = (0..masks).flat_map(|mask| {
            let (field, length) =
                if mask < 30 { (Field::Ipv4Src, 32 - mask) } else { (Field::Ipv4Dst, 32 - (mask - 30) % 30) };
            // After the sixty prefixes, transport ports make further masks.
            let more = (mask / 60) as u16;
            (0..100u32).map(move |number| {
                let bits = u32::MAX << (32 - length);
                let mut matching = address_match(field, (0xc000_0000 + (number << 12)) & bits, bits);
                if more > 0 {
                    matching =
                        matching.with(Field::IpProto, 6u8).with_masked(Field::TcpDst, 0x8000u16, 0x8000u16);
                }
                rule(1 + mask as u16, matching, output(2))
            })
        });
        let exact = rule(1000, address_match(Field::Ipv4Dst, 1, u32::MAX), output(2));
        let mut switch = switch(rules.chain([exact, rule(0, Match::any(), output(2))]));
        let mut effects = Effects::default();
        let mut packet = frame(0);
        let mut flow = 0u32;
        group.bench_function(format!("{masks}_masks"), |bench| {
            bench.iter(|| {
                flow = (flow + 1) % FLOWS;
                packet[30..34].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
                packet = through(&mut switch, std::mem::take(&mut packet), &mut effects);
            });
        });
    }
}

fn flow_mod(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flow_mod");
    let numbered = |number: u32| rule(5, address_match(Field::Ipv4Dst, number, u32::MAX), output(2));
    let mut effects = Effects::default();
    group.throughput(Throughput::Elements(65_000));
    group.sample_size(10);
    let all: Vec<Message> = (0..65_000).map(numbered).map(Body::FlowMod).map(message).collect();
    group.bench_function("fill_an_empty_table", |bench| {
        let empty = || switch(std::iter::empty());
        bench.iter_batched(
            empty,
            |mut switch| {
                all.iter().for_each(|add| switch.on_message(ControllerId(0), add, NOW, &mut effects));
                switch
            },
            BatchSize::PerIteration,
        );
    });
    group.sample_size(100);
    group.throughput(Throughput::Elements(2));
    let mut full = switch((0..65_000).map(numbered));
    let add = message(Body::FlowMod(numbered(70_000)));
    let delete = message(Body::FlowMod(FlowMod { command: FLOW_DELETE_STRICT, ..numbered(70_000) }));
    group.bench_function("add_and_delete_one_of_65000", |bench| {
        bench.iter(|| {
            full.on_message(ControllerId(0), &add, NOW, &mut effects);
            full.on_message(ControllerId(0), &delete, NOW, &mut effects);
        });
    });
    assert!(effects.messages.is_empty(), "{:?}", effects.messages.first());
}

/// A network of two hosts at one switch that has learned both.
fn two_hosts() -> Network {
    let topology: Topology = "single,2".parse().unwrap();
    let mut network = Network::new(&topology, &SwitchOptions::default(), NOW);
    let mut effects = NetworkEffects::default();
    let channel = Channel { switch: 0, controller: ControllerId(0) };
    network.on_connected(channel, &mut effects);
    let flood = vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])];
    let learned = (1..)
        .zip(network.hosts())
        .map(|(port, host)| rule(1, Match::any().with(Field::EthDst, host.mac()), output(port)));
    let rules: Vec<FlowMod> = learned.chain([rule(0, Match::any(), flood)]).collect();
    for body in std::iter::once(Body::Hello(Hello::default())).chain(rules.into_iter().map(Body::FlowMod)) {
        network.on_message(channel, &message(body), NOW, &mut effects);
    }
    network
}

/// The whole path from host to host: make a packet, put it on a link, switch it, put it on a link, receive and count
/// it.
fn host_to_host(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("host_to_host");
    let mut network = two_hosts();
    let mut effects = NetworkEffects::default();
    let to = network.hosts()[1].address();
    let mut sequence = 0u16;
    group.throughput(Throughput::Elements(2));
    group.bench_function("ping", |bench| {
        bench.iter(|| {
            sequence = sequence.wrapping_add(1);
            network.ping(0, to, sequence, NOW, &mut effects);
            while network.carry(16, NOW, &mut effects) {}
            assert_eq!(black_box(effects.replies.drain(..).count()), 1);
        });
    });
    /// A thousand datagrams of 64 bytes in a millisecond of the network's time.
    const DATAGRAMS: u64 = 1000;
    const BITS_PER_S: u64 = 1000 * DATAGRAMS * 64 * 8;
    let mut network = two_hosts();
    let spec = FlowSpec { payload_bytes: 64, ..FlowSpec::udp("h1", "h2", BITS_PER_S) };
    let mut now = NOW;
    let flow = network.start_flow(&spec, now, &mut effects).unwrap();
    group.throughput(Throughput::Elements(DATAGRAMS));
    group.bench_function("udp_64_bytes", |bench| {
        bench.iter(|| {
            now += Duration::from_millis(1);
            while network.carry(4096, now, &mut effects) {}
        });
    });
    let report = network.flow_report(flow).unwrap();
    let expected = u64::try_from((now - NOW).as_millis()).unwrap() * DATAGRAMS;
    assert!(report.delivered_packets + 1 >= expected, "{expected} datagrams were due, {report:?}");
}

criterion_group!(benches, known_flow, unknown_flow, flow_mod, host_to_host);

/// Packets of a round that is counted.
const BATCH: u32 = 256;

/// Does rounds of one stage: a flow that the cache of paths has, flows that it does not have, or an add and a delete.
fn count(stage: &str, rounds: u32) {
    let numbered = |number: u32| rule(5, address_match(Field::Ipv4Dst, number, u32::MAX), output(2));
    let mut switch = switch((0..1000).map(numbered).chain([rule(0, Match::any(), output(2))]));
    let mut effects = Effects::default();
    let mut packet = frame(0x0a00_0002);
    let add = message(Body::FlowMod(numbered(70_000)));
    let delete = message(Body::FlowMod(FlowMod { command: FLOW_DELETE_STRICT, ..numbered(70_000) }));
    for number in 0..rounds * BATCH {
        match stage {
            "known" => {}
            "unknown" => {
                packet[30..34].copy_from_slice(&(0x0a00_0000 + number % FLOWS).to_be_bytes());
            }
            "flow-mod" => {
                switch.on_message(ControllerId(0), &add, NOW, &mut effects);
                switch.on_message(ControllerId(0), &delete, NOW, &mut effects);
                continue;
            }
            other => panic!("no stage {other}"),
        }
        packet = through(&mut switch, std::mem::take(&mut packet), &mut effects);
    }
    assert!(effects.messages.is_empty());
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, stage, _version, rounds] = &arguments[..]
        && flag == "--count"
    {
        return count(stage, rounds.parse().unwrap());
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
