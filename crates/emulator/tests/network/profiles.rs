//! Switches that play profiles in virtual time, under the workload of the paper on switch models: each query takes two rules.

use emulator::{Profiles, QueriesReport, QuerySpec, Simulation, SwitchOptions};
use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{Profile, built_in};
use std::time::Duration;

/// What the rule of a flow matches.
const FIELDS: [Field; 8] = [
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
];

/// The rule for the flow of a packet between the ports 1 and 2, as POX's learning switch makes it.
fn rule_for(packet_in: &PacketIn) -> FlowMod {
    let (in_port, _) = packet_in.matching.get(Field::InPort).unwrap();
    let fields = FrameFields::read(&packet_in.data);
    let mut matching = Match::any();
    matching.set(Field::InPort, in_port);
    for field in FIELDS {
        if let Some(value) = fields.get(field) {
            matching.set(field, value);
        }
    }
    let out = PortNo(3 - in_port as u32);
    let rule = FlowModFields {
        priority: 10,
        idle_timeout_s: 10,
        hard_timeout_s: 30,
        buffer_id: packet_in.buffer_id,
        ..FlowModFields::default()
    };
    rule.with(matching, vec![Instruction::ApplyActions(vec![Action::output(out)])])
}

/// Two hosts at a switch that plays a profile, and a controller that answers at once.
fn network(profile: Profile, seed: u64) -> Simulation {
    let controller = |_, message: &Message, _, say: &mut Vec<Message>| {
        let body = match &message.body {
            Body::Hello(_) => Body::Hello(Hello::default()),
            Body::PacketIn(packet_in) => Body::FlowMod(rule_for(packet_in)),
            _ => return,
        };
        say.push(Message { version: Version::V1_0, xid: 1, body });
    };
    let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
    Simulation::with_controller(&"single,2".parse().unwrap(), &options, seed, Box::new(controller))
}

/// Queries for 64 bytes at this rate, for a minute.
fn queries(network: &mut Simulation, per_second: u32) -> QueriesReport {
    let spec = QuerySpec {
        every: Duration::from_secs(1) / per_second,
        duration: Duration::from_secs(60),
        ..QuerySpec::new("h1", "h2")
    };
    let id = network.start_queries(&spec).unwrap();
    network.run_for(spec.duration + spec.timeout);
    network.queries_report(id).unwrap()
}

fn mean_ms(report: &QueriesReport) -> f64 {
    let took: Vec<f64> =
        report.records.iter().filter_map(|it| it.took()).map(|it| it.as_secs_f64()).collect();
    assert!(took.len() as u64 * 10 >= report.begun * 9, "{} of {} queries ended", took.len(), report.begun);
    took.iter().sum::<f64>() / took.len() as f64 * 1e3
}

#[test]
fn the_null_profile_adds_no_time_to_queries() {
    let mut null = Profile::null();
    null.switch.openflow = vec![profile::OpenFlowVersion::V10];
    assert_eq!(mean_ms(&queries(&mut network(null, 1), 20)), 0.0);
}

#[test]
fn the_monaco_is_slow_near_its_saturation_and_quicker_below() {
    let monaco = || built_in("fulcrum-monaco").unwrap();
    let (half, near) =
        (mean_ms(&queries(&mut network(monaco(), 1), 10)), mean_ms(&queries(&mut network(monaco(), 1), 20)));
    println!("10 a second: {half} ms, 20 a second: {near} ms");
    // Two packet-ins and two flow mods of the CPU, 23.8 ms for each pair, and 1 ms at ingress and egress.
    assert!(half > 50.0 && half < 100.0, "{half} ms at 10 queries a second");
    assert!(near > 1.3 * half, "{near} ms at 20 queries a second, {half} ms at 10");
}

#[test]
fn a_run_with_a_profile_repeats_to_the_byte() {
    let digest = |seed| {
        let mut network = network(built_in("hp-procurve-j9451a").unwrap(), seed);
        queries(&mut network, 20);
        network.digest()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}
