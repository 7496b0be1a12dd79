//! Virtual time: the same seed gives the same history, and much time takes little.

use super::bench::{flood, ms};
use emulator::{
    Change, Channel, ControllerId, FailMode, FlowRate, FlowSpec, FlowState, LinkQuality, Simulation,
    SwitchOptions, Topology,
};
use flow::{Action, Field, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::time::Duration;

fn topology(text: &str, quality: &str) -> Topology {
    let mut topology: Topology = text.parse().unwrap();
    let quality: LinkQuality = quality.parse().unwrap();
    topology.links.iter_mut().for_each(|link| link.quality = quality);
    topology
}

fn alone() -> SwitchOptions {
    SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() }
}

/// A controller that floods each packet-in.
fn flooding(shape: &Topology, seed: u64) -> Simulation {
    let controller = |_, message: &Message, _, say: &mut Vec<Message>| {
        let version = Version::V1_3;
        match &message.body {
            Body::Hello(_) => {
                let miss = vec![flow::Instruction::ApplyActions(vec![Action::Output {
                    port: PortNo::CONTROLLER,
                    max_len: 128,
                }])];
                say.push(Message { version, xid: 1, body: Body::Hello(Hello::default()) });
                let rule = FlowMod { instructions: miss, ..flood(0) };
                say.push(Message { version, xid: 2, body: Body::FlowMod(rule) });
            }
            Body::PacketIn(packet_in) => {
                let (in_port, _) = packet_in.matching.get(Field::InPort).unwrap();
                let body = Body::PacketOut(PacketOut {
                    buffer_id: packet_in.buffer_id,
                    in_port: PortNo(in_port as u32),
                    actions: vec![Action::output(PortNo::FLOOD)],
                    data: Vec::new(),
                });
                say.push(Message { version, xid: 3, body });
            }
            _ => {}
        }
    };
    Simulation::with_controller(shape, &SwitchOptions::default(), seed, Box::new(controller))
}

/// An hour in which links, a switch and a host fail while flows run.
fn an_hour(mut simulation: Simulation) -> (u64, Vec<u64>) {
    let change = |simulation: &mut Simulation, change: Change| simulation.change(&change).unwrap();
    let rate = FlowRate::BitsPerSecond(50_000);
    let flows = [
        FlowSpec { rate, ..FlowSpec::tcp("h1", "h3") },
        FlowSpec::udp("h2", "h1", 20_000),
        FlowSpec { port: 80, rate, ..FlowSpec::tcp("h3", "h2") },
    ];
    let flows = flows.map(|spec| simulation.start_flow(&spec).unwrap());
    for minute in 1..=60 {
        simulation.run_until(Duration::from_secs(60 * minute));
        let up = minute % 2 == 0;
        match minute % 20 {
            4 | 5 => change(&mut simulation, Change::Link { link: "s1-s2".into(), up }),
            8 | 9 => change(&mut simulation, Change::Switch { switch: "s2".into(), up: !up }),
            13 => {
                change(&mut simulation, Change::Move { host: "h3".into(), switch: "s1".into(), port: None })
            }
            _ => simulation.ping("h1", "h2", minute as u16).unwrap(),
        }
    }
    let delivered = flows.map(|id| simulation.flow_report(id).unwrap().delivered_bytes);
    (simulation.digest(), delivered.to_vec())
}

#[test]
fn a_run_from_a_seed_repeats_to_the_byte() {
    let shape = topology("linear,3", "delay=3ms,rate=2M,loss=0.5%");
    let alone = |seed| an_hour(Simulation::new(&shape, &alone(), seed));
    let first = alone(7);
    assert!(first.1.iter().all(|bytes| *bytes > 1_000_000), "{first:?}");
    assert_eq!(alone(7), first);
    assert_ne!(alone(8).0, first.0);
}

#[test]
fn a_controller_may_say_something_that_is_no_answer_and_moments_are_those_of_events() {
    let shape = topology("single,2", "delay=3ms");
    let greets = |_, message: &Message, _, say: &mut Vec<Message>| {
        if let Body::Hello(_) = message.body {
            say.push(Message { version: Version::V1_3, xid: 1, body: Body::Hello(Hello::default()) });
        }
    };
    let run = |says: bool| {
        let mut simulation =
            Simulation::with_controller(&shape, &SwitchOptions::default(), 1, Box::new(greets));
        let (start, end, mut moments) = (ms(100), ms(500), Vec::new());
        simulation.run_until(start);
        if says {
            let rule = Message { version: Version::V1_3, xid: 2, body: Body::FlowMod(flood(0)) };
            simulation.say(Channel { switch: 0, controller: ControllerId(0) }, &rule);
        }
        simulation.ping("h1", "h2", 1).unwrap();
        while simulation.run_moment(end) {
            moments.push(simulation.now());
        }
        assert_eq!(simulation.now(), end);
        (simulation.take_replies().len(), moments)
    };
    assert_eq!(run(false), (0, vec![ms(103)]), "the switch drops the request for the address");
    let (replies, moments) = run(true);
    assert_eq!(replies, 1);
    // The request for the address and its answer, the ping and its answer, each over two links.
    assert_eq!(moments, [3, 6, 9, 12, 15, 18, 21, 24].map(|after| ms(100 + after)));
}

#[test]
fn a_run_with_a_controller_repeats_to_the_byte() {
    let shape = topology("linear,3", "delay=3ms,rate=10M,loss=0.1%");
    let minute = |seed| {
        let mut simulation = flooding(&shape, seed);
        let rate = FlowRate::BitsPerSecond(100_000);
        let flow = simulation.start_flow(&FlowSpec { rate, ..FlowSpec::tcp("h1", "h3") }).unwrap();
        simulation.run_for(Duration::from_secs(30));
        simulation.change(&Change::Switch { switch: "s2".into(), up: false }).unwrap();
        simulation.run_for(Duration::from_secs(5));
        simulation.change(&Change::Switch { switch: "s2".into(), up: true }).unwrap();
        simulation.run_for(Duration::from_secs(25));
        let report = simulation.flow_report(flow).unwrap();
        assert_eq!(report.state, FlowState::Running);
        (simulation.digest(), report.delivered_bytes)
    };
    let first = minute(3);
    assert!(first.1 > 600_000, "{first:?}");
    assert_eq!(minute(3), first);
}

#[test]
fn time_stands_where_it_was_told_to() {
    let mut simulation = Simulation::new(&topology("single,2", "delay=10ms"), &alone(), 1);
    simulation.run_until(ms(5));
    simulation.ping("h1", "h2", 1).unwrap();
    simulation.run_for(ms(79));
    assert!(simulation.take_replies().is_empty());
    simulation.run_for(ms(1));
    assert_eq!(simulation.take_replies()[0].1.round_trip, ms(80));
    assert_eq!(simulation.now(), ms(85));
    simulation.run_until(ms(1));
    assert_eq!(simulation.now(), ms(85), "and never goes back");
    let report = {
        let spec = FlowSpec { duration: Some(ms(10)), ..FlowSpec::udp("h1", "h2", 1_000_000) };
        let id = simulation.start_flow(&spec).unwrap();
        simulation.run_for(Duration::from_secs(60));
        simulation.flow_report(id).unwrap()
    };
    assert_eq!(report.at, ms(60_085));
}

#[test]
fn a_storm_does_not_stop_the_clock() {
    let mut shape = topology("single,2", "ideal");
    for ports in [[3, 4], [5, 6]] {
        let [one, two] =
            ports.map(|port| emulator::topology::Endpoint::Switch { index: 0, port: PortNo(port) });
        shape.links.push(emulator::topology::Link { one, two, quality: LinkQuality::default() });
    }
    let mut simulation = Simulation::new(&shape, &alone(), 1);
    simulation.ping("h1", "h2", 1).unwrap();
    simulation.run_until(ms(20));
    assert!(simulation.storms() > 10 && simulation.now() >= ms(20));
}
