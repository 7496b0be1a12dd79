//! A switch forwards packets of a flow that it knows without allocating, hosts send and receive them so, and a switch takes little
//! memory while it has nothing to do.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use emulator::{
    Channel, ControllerId, Effects, FlowRate, FlowSpec, Network, NetworkEffects, Switch, SwitchOptions,
};
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);

fn rule(table_id: u8, matching: Match, instructions: Vec<Instruction>) -> Body {
    Body::FlowMod(
        FlowModFields { table_id, idle_timeout_s: 60, priority: 1, ..FlowModFields::default() }
            .with(matching, instructions),
    )
}

/// How many allocations a hundred packets make, once the first has passed.
fn allocations(rules: &[Body]) -> u64 {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions::default());
    let mut effects = Effects::default();
    (1..=2).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
    switch.on_connected(ControllerId(0), &mut effects);
    for body in std::iter::once(&Body::Hello(Hello::default())).chain(rules) {
        switch.on_message(
            ControllerId(0),
            &Message { version: Version::V1_3, xid: 1, body: body.clone() },
            NOW,
            &mut effects,
        );
    }
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    let mut through = |frame: Vec<u8>| {
        switch.on_frame(PortNo(1), frame, NOW, &mut effects);
        effects.frames.pop().unwrap().1
    };
    // Twice: what comes first makes room for the path and for what leaves.
    frame = through(frame);
    frame = through(frame);
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            frame = through(std::mem::take(&mut frame));
        }
    });
    counted.count_total
}

#[test]
fn a_known_flow_costs_no_allocation() {
    let out = || Action::output(PortNo(2));
    let set = |field, value| Action::SetField { field, value };
    let ip = || Match::any().with(Field::EthType, 0x800u16);
    assert_eq!(allocations(&[rule(0, ip(), vec![Instruction::ApplyActions(vec![out()])])]), 0);
    assert_eq!(allocations(&[rule(0, ip(), vec![Instruction::WriteActions(vec![out()])])]), 0);
    let first = vec![
        Instruction::ApplyActions(vec![set(Field::EthSrc, 7), set(Field::Ipv4Dst, 7)]),
        Instruction::WriteActions(vec![set(Field::EthDst, 8)]),
        Instruction::WriteMetadata { metadata: 1, mask: 1 },
        Instruction::GotoTable(1),
    ];
    let second = vec![Instruction::WriteActions(vec![out()])];
    assert_eq!(allocations(&[rule(0, ip(), first), rule(1, ip(), second)]), 0);
}

#[test]
fn thousands_of_switches_fit_into_a_process() {
    let mut switch = None;
    let empty = allocation_counter::measure(|| {
        switch = Some(Switch::new(DatapathId(1), "s1", SwitchOptions::default()));
    });
    let bytes = usize::try_from(empty.bytes_current).unwrap() + size_of::<Switch>();
    println!("an empty switch: {bytes} bytes");
    assert!(bytes <= 8 << 10, "an empty switch takes {bytes} bytes");
    let mut effects = Effects::default();
    let used = allocation_counter::measure(|| {
        let switch = switch.as_mut().unwrap();
        switch.add_port(PortNo(1), NOW, &mut effects);
        switch.on_frame(PortNo(1), vec![0; 60], NOW, &mut effects);
        switch.on_frame(PortNo(1), vec![0; 60], NOW, &mut effects);
    });
    println!("its first port and packets: {} bytes", used.bytes_current);
    assert!(used.bytes_current <= 24 << 10, "its first packets take {} bytes", used.bytes_current);
}

/// How many allocations a tenth of a second of a flow between two hosts makes, after a second of it, and how many packets
/// it delivers then.
fn allocations_of_flow(spec: &FlowSpec) -> (u64, u64) {
    let mut network = Network::new(&"single,2".parse().unwrap(), &SwitchOptions::default(), NOW);
    let mut effects = NetworkEffects::default();
    let at = Channel { switch: 0, controller: ControllerId(0) };
    network.on_connected(at, &mut effects);
    let to = |port| vec![Instruction::ApplyActions(vec![Action::output(PortNo(port))])];
    let rules =
        [(1u32, 2), (2, 1)].map(|(from, out)| rule(0, Match::any().with(Field::InPort, from), to(out)));
    for body in std::iter::once(Body::Hello(Hello::default())).chain(rules) {
        network.on_message(at, &Message { version: Version::V1_3, xid: 1, body }, NOW, &mut effects);
    }
    for link in 0..2 {
        network.set_link_quality(link, "rate=100M,delay=100us".parse().unwrap(), &mut effects);
    }
    let id = network.start_flow(spec, NOW, &mut effects).unwrap();
    let mut now = NOW;
    let mut pass = |network: &mut Network, milliseconds: u64| {
        now += Duration::from_millis(milliseconds);
        while network.carry(4096, now, &mut effects) {}
    };
    pass(&mut network, 1000);
    let before = network.flow_report(id).unwrap().delivered_packets;
    let counted = allocation_counter::measure(|| pass(&mut network, 100));
    (counted.count_total, network.flow_report(id).unwrap().delivered_packets - before)
}

#[test]
fn a_flow_between_hosts_costs_no_allocation() {
    let udp = FlowSpec { rate: FlowRate::Greedy, ..FlowSpec::udp("h1", "h2", 1) };
    let (allocations, packets) = allocations_of_flow(&udp);
    assert_eq!(allocations, 0);
    assert!(packets > 700, "{packets}");
    // A TCP window that grows takes room for what is on its way, and a loss for what came before its turn.
    let (allocations, packets) = allocations_of_flow(&FlowSpec::tcp("h1", "h2"));
    assert!(packets > 700 && allocations < packets / 20, "{allocations} for {packets}");
}
