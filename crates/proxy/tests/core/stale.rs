//! Packet-ins of a switch that still acts by what its tables were before.

use crate::delays::{apply, frame, table_miss};
use crate::world::{MS, World};
use flow::{Action, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use profile::{Profile, Quantiles};
use proxy::Method;

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];
/// How long after its flow mod a rule is in the data plane.
const EGRESS: u64 = 20 * MS;

fn world(method: Method, version: Version) -> World {
    let mut profile = Profile::null();
    profile.delay.egress_us = Quantiles::constant((EGRESS / 1000) as f64);
    let mut world = World::new(&profile, method, version);
    table_miss(&mut world, 0xffff);
    world
}

/// The rule of all frames of the test that come in at port 1.
fn add(world: &mut World, actions: Vec<Action>) {
    let matching = Match::any().with(Field::InPort, 1u32).with(Field::EthType, 0x88b5u16);
    let fields = FlowModFields { priority: 5, ..FlowModFields::default() };
    world.says(Body::FlowMod(fields.with(matching, apply(actions))));
}

/// A tap sees this frame, and the switch takes it for a miss.
fn miss(world: &mut World, number: u64) {
    world.seen_frame(1, &frame(number));
    say_miss(world, number);
}

fn say_miss(world: &mut World, number: u64) {
    let data = frame(number);
    let packet_in = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: data.len() as u16,
        reason: 1,
        table_id: 0,
        cookie: 0,
        matching: Match::any().with(Field::InPort, 1u32),
        data,
    };
    world.switch_says(0, Body::PacketIn(packet_in));
    world.run_for(100 * MS);
}

fn forwarded(world: &World) -> usize {
    world.left.iter().filter(|(_, port, _)| *port == PortNo(2)).count()
}

#[test]
fn a_miss_of_a_packet_that_came_behind_its_rule_goes_through_the_tables_and_not_to_the_controller() {
    for version in VERSIONS {
        let mut world = world(Method::Full, version);
        add(&mut world, vec![Action::output(PortNo(2))]);
        world.run_for(2 * EGRESS);
        miss(&mut world, 1);
        assert_eq!((world.packet_ins().len(), forwarded(&world)), (0, 1), "{version}");
        assert_eq!(world.proxy.counters().packet_ins_stale, 1);
        // If the switch says it of the same packet again, there is another reason.
        say_miss(&mut world, 1);
        assert_eq!((world.packet_ins().len(), forwarded(&world)), (1, 1), "{version}");
    }
}

#[test]
fn a_packet_that_came_before_its_rule_is_a_miss_of_the_target_too() {
    for version in VERSIONS {
        let mut world = world(Method::Full, version);
        world.seen_frame(1, &frame(1));
        world.run_for(MS);
        add(&mut world, vec![Action::output(PortNo(2))]);
        world.run_for(2 * EGRESS);
        say_miss(&mut world, 1);
        assert_eq!((world.packet_ins().len(), forwarded(&world)), (1, 0), "{version}");
    }
}

#[test]
fn packets_of_other_rules_go_to_the_controller() {
    for version in VERSIONS {
        let check = |change: fn(&mut World), why: &str| {
            let mut world = world(Method::Full, version);
            change(&mut world);
            miss(&mut world, 1);
            assert_eq!((world.packet_ins().len(), forwarded(&world)), (1, 0), "{version}: {why}");
        };
        let to_controller = Action::Output { port: PortNo::CONTROLLER, max_len: 64 };
        check(|_| {}, "no rule");
        let other: fn(&mut World) = |world| {
            let fields = FlowModFields { priority: 5, ..FlowModFields::default() };
            let matching = Match::any().with(Field::InPort, 2u32);
            world.says(Body::FlowMod(fields.with(matching, apply(vec![Action::output(PortNo(2))]))));
            world.run_for(2 * EGRESS);
        };
        check(other, "another port");
        let gone: fn(&mut World) = |world| {
            add(world, vec![Action::output(PortNo(2))]);
            world.run_for(2 * EGRESS);
            let fields = FlowModFields { command: FLOW_DELETE, ..FlowModFields::default() };
            let matching = Match::any().with(Field::InPort, 1u32);
            world.says(Body::FlowMod(fields.with(matching, Vec::new())));
            world.run_for(2 * EGRESS);
        };
        check(gone, "a deleted rule");
        let old: fn(&mut World) = |world| {
            add(world, vec![Action::output(PortNo(2))]);
            world.run_for(2_000 * MS);
        };
        check(old, "no cache is that old");
        let mut world = world(Method::Full, version);
        add(&mut world, vec![to_controller.clone()]);
        world.run_for(2 * EGRESS);
        miss(&mut world, 1);
        assert_eq!(world.packet_ins().len(), 1, "{version}: a rule that sends to the controller");
        // Above it is one that only forwards, and above that one that sends this packet to the controller.
        for (priority, matching, actions) in [
            (6, Match::any().with(Field::InPort, 1u32), vec![Action::output(PortNo(2))]),
            (7, Match::any().with(Field::EthType, 0x88b5u16), vec![to_controller]),
        ] {
            let fields = FlowModFields { priority, ..FlowModFields::default() };
            world.says(Body::FlowMod(fields.with(matching, apply(actions))));
            world.run_for(2 * EGRESS);
            miss(&mut world, u64::from(priority));
        }
        assert_eq!((world.packet_ins().len(), forwarded(&world)), (2, 1), "{version}");
    }
}

#[test]
fn the_papers_model_has_no_tables() {
    let mut world = world(Method::Paper, Version::V1_3);
    add(&mut world, vec![Action::output(PortNo(2))]);
    world.run_for(2 * EGRESS);
    miss(&mut world, 1);
    assert_eq!((world.packet_ins().len(), forwarded(&world)), (1, 0));
}
