//! Restarts of the slice's process: what it left in the physical switch.

use crate::world::{TAG, World, add, delete, errors, plan};
use openflow::message::*;
use openflow::{Body, Version};
use slicer::{Command, Isolation, Outcome};

/// The first number of the second process.
const SECOND: u64 = 1 << 20;

/// A slice with two rules of its first process, a tenant of 1.3, and how many rules the switch has without them.
fn with_rules(on: Version) -> (World, usize) {
    let mut world = World::new(Isolation::Vlan(TAG), on);
    world.join(0, Version::V1_3);
    let without = world.physical.flow_count();
    world.say(Body::FlowMod(add(5, "", "output:1")));
    world.say(Body::FlowMod(add(9, "dl_dst=02:00:00:00:00:09", "output:2")));
    assert!(world.physical.flow_count() > without);
    (world, without)
}

fn again(world: &mut World) {
    world.restart(&plan(Isolation::Vlan(TAG)), SECOND);
    world.join(0, Version::V1_3);
}

#[test]
fn rules_stay_until_the_tenant_deletes_all() {
    for on in [Version::V1_3, Version::V1_0] {
        let (mut world, without) = with_rules(on);
        let before = world.physical.flow_count();
        again(&mut world);
        assert_eq!(world.physical.flow_count(), before, "a restart changes nothing");
        world.say(Body::FlowMod(delete("dl_dst=02:00:00:00:00:09")));
        assert_eq!(world.physical.flow_count(), before, "which rule of the tenant it was is not known");
        world.say(Body::FlowMod(delete("")));
        assert_eq!(world.physical.flow_count(), without, "all are gone, and the floor stays");
    }
}

#[test]
fn a_delete_before_the_answer_counts() {
    let (mut world, without) = with_rules(Version::V1_3);
    world.holds_statistics = true;
    again(&mut world);
    world.say(Body::FlowMod(delete("")));
    world.say(Body::FlowMod(add(5, "", "output:2")));
    world.answer_statistics();
    // The tenant's new rule has the place of an old one.
    let new = world.slicer.rules(crate::world::DATAPATH).unwrap().1;
    assert_eq!(world.physical.flow_count(), without + new);
}

#[test]
fn a_rule_that_takes_the_place_of_an_old_one_is_the_tenants() {
    let (mut world, without) = with_rules(Version::V1_3);
    again(&mut world);
    world.say(Body::FlowMod(add(5, "", "output:2")));
    world.say(Body::FlowMod(add(9, "dl_dst=02:00:00:00:00:09", "output:1")));
    world.say(Body::FlowMod(delete("")));
    assert_eq!(world.physical.flow_count(), without);
}

#[test]
fn without_an_answer_old_rules_stay() {
    let (mut world, _) = with_rules(Version::V1_3);
    let before = world.physical.flow_count();
    world.no_statistics = Some(Outcome::Unknown);
    again(&mut world);
    world.say(Body::FlowMod(delete("")));
    assert_eq!(world.physical.flow_count(), before);
}

#[test]
fn groups_and_meters_of_an_earlier_process_make_room() {
    let (mut world, _) = with_rules(Version::V1_3);
    let bucket = Bucket {
        weight: 0,
        watch_port: flow::PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: vec![flow::Action::output(flow::PortNo(1))],
    };
    let group = Body::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 7, buckets: vec![bucket] });
    let bands = vec![MeterBand { rate: 100, burst_size: 0, kind: MeterBandKind::Drop }];
    let meter = Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 3, bands });
    for body in [&group, &meter] {
        assert!(errors(&world.say(body.clone())).is_empty());
    }
    again(&mut world);
    for body in [&group, &meter] {
        assert!(errors(&world.say(body.clone())).is_empty(), "{body:?}");
    }
}

#[test]
fn numbers_that_no_earlier_process_has_used_are_not_deleted() {
    let (mut world, _) = with_rules(Version::V1_3);
    again(&mut world);
    world.commands.clear();
    let group = GroupMod { command: 0, group_type: 0, group_id: 7, buckets: Vec::new() };
    let bands = vec![MeterBand { rate: 100, burst_size: 0, kind: MeterBandKind::Drop }];
    let meter = MeterMod { command: 0, flags: 1, meter_id: 3, bands };
    for body in [Body::GroupMod(group), Body::MeterMod(meter)] {
        assert!(errors(&world.say(body.clone())).is_empty(), "{body:?}");
    }
    // The kernel would refuse a delete, and count it.
    let is_delete = |command: &Command| match command {
        Command::GroupMod(it) => it.command == 2,
        Command::MeterMod(it) => it.command == 2,
        _ => false,
    };
    assert!(!world.commands.iter().any(is_delete), "{:?}", world.commands);
}
