//! A slice that loses ports, hosts or a whole switch: its rules leave the physical switch before its plan changes, and no other rule is touched.

use crate::world::{DATAPATH, TAG, World, add, errors, plan};
use flow::PortNo;
use openflow::message::*;
use openflow::{Body, Version};
use slicer::{Command, Event, Isolation, Loss, SlicePlan};

/// The first number of the second process.
const SECOND: u64 = 1 << 20;
/// The commands between two barriers, at most: a batch, and the pieces of one rule.
const BATCH: usize = 128 + 4;

fn vlan() -> SlicePlan {
    plan(Isolation::Vlan(TAG))
}

/// The plan without a port, by the number that the tenant sees.
fn without(shown: u32) -> SlicePlan {
    let mut plan = vlan();
    plan.switches[0].ports.retain(|port| port.shown_as != PortNo(shown));
    plan
}

fn world(on: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), on);
    world.keep_journal();
    world.join(0, Version::V1_3);
    world
}

fn say(world: &mut World, body: Body) {
    assert_eq!(errors(&world.say(body.clone())), [], "{body:?}");
}

fn rule(world: &mut World, priority: u16, matching: &str, actions: &str) {
    say(world, Body::FlowMod(add(priority, matching, actions)));
}

fn bucket(to: PortNo) -> Bucket {
    let actions = vec![flow::Action::output(to)];
    Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions }
}

fn group(group_id: u32, to: PortNo) -> Body {
    let buckets = vec![bucket(to)];
    Body::GroupMod(GroupMod { command: 0, group_type: GROUP_TYPE_ALL, group_id, buckets })
}

fn meter(meter_id: u32) -> Body {
    let bands = vec![MeterBand { rate: 1_000, burst_size: 0, kind: MeterBandKind::Drop }];
    Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id, bands })
}

/// The numbers of groups and meters in the physical switch.
fn groups_and_meters(world: &mut World) -> (Vec<u32>, Vec<u32>) {
    let mut ask = |body| world.ask_physical(body);
    let (groups, meters) = (ask(RequestBody::GroupDesc), ask(RequestBody::MeterConfig(METER_ALL)));
    match (groups, meters) {
        (ReplyBody::GroupDesc(groups), ReplyBody::MeterConfig(meters)) => {
            (groups.iter().map(|it| it.group_id).collect(), meters.iter().map(|it| it.meter_id).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// The rules of the slice, and of its floor.
fn of_slice(world: &mut World) -> Vec<FlowStats> {
    world.entries().into_iter().filter(|entry| entry.priority > 0).collect()
}

#[test]
fn a_slice_that_is_removed_leaves_nothing_in_a_switch_of_either_version() {
    for on in [Version::V1_0, Version::V1_3] {
        let mut world = world(on);
        if on == Version::V1_3 {
            say(&mut world, group(7, PortNo(1)));
            say(&mut world, meter(3));
            rule(&mut world, 4, "", "meter:3,group:7");
        }
        for host in 0..200 {
            rule(&mut world, 5, &format!("dl_dst=02:00:00:00:00:{host:02x}"), "output:1");
        }
        let before = of_slice(&mut world).len();
        assert!(before > 800);
        world.commands.clear();
        assert_eq!(world.withdraw(&Loss::between(&vlan(), None)), Some(Vec::new()));
        assert_eq!(of_slice(&mut world), [], "{on}");
        let by_name = world
            .commands
            .iter()
            .filter(|it| matches!(it, Command::FlowMod(it) if it.command == FLOW_DELETE_STRICT));
        assert_eq!(by_name.count(), before, "{on}: the kernel knows of each that its place is free");
        if on == Version::V1_3 {
            assert_eq!(groups_and_meters(&mut world), (vec![], vec![]));
        }
        let batches: Vec<usize> =
            world.commands.split(|it| *it == Command::Barrier).map(<[Command]>::len).collect();
        assert!(batches.iter().all(|batch| *batch <= BATCH), "{on}: {batches:?}");
        assert_eq!(world.slicer.rules(DATAPATH), Some((0, 0)));
        assert_eq!(world.ended.len(), 1, "its controller's connection ends");
        world.leave(0);
        world.switch_up();
        assert_eq!(of_slice(&mut world), [], "no floor comes back");
    }
}

#[test]
fn rules_of_an_earlier_process_go_too_also_if_the_switch_has_not_answered_yet() {
    for on in [Version::V1_0, Version::V1_3] {
        for has_journal in [false, true] {
            let mut world = world(on);
            rule(&mut world, 5, "", "output:1");
            world.holds_statistics = true;
            if has_journal {
                world.restart_with_memory(&vlan(), SECOND);
            } else {
                world.restart(&vlan(), SECOND);
            }
            let at_once = world.withdraw(&Loss::between(&vlan(), None));
            assert_eq!(at_once.is_some(), on == Version::V1_3, "one delete needs no answer");
            world.answer_statistics();
            assert_eq!(world.slicer.withdrawn(), Some(Vec::new()));
            assert_eq!(of_slice(&mut world), [], "{on} {has_journal}");
        }
    }
}

#[test]
fn a_port_that_goes_takes_its_rules_along_and_touches_no_other() {
    for on in [Version::V1_0, Version::V1_3] {
        let mut world = world(on);
        rule(&mut world, 5, "in_port=1", "output:2");
        rule(&mut world, 6, "in_port=4", "output:1");
        rule(&mut world, 7, "in_port=2", "flood");
        rule(&mut world, 8, "", "output:1");
        rule(&mut world, 9, "in_port=3", "output:4");
        world.arrive_shown(1, &[7; 60]);
        let before = of_slice(&mut world);
        world.commands.clear();
        assert_eq!(world.withdraw(&Loss::between(&vlan(), Some(&without(4)))), Some(Vec::new()));
        // In port 6 of the physical switch: a rule of its own, a piece of one for all ports, and the floor. The rule to it goes as well.
        let after = of_slice(&mut world);
        let mut gone: Vec<u16> =
            before.iter().filter(|entry| !after.contains(entry)).map(|it| it.priority).collect();
        gone.sort_unstable();
        assert_eq!(gone, [1, 8, 9, 10, 11], "{on}");
        let mods = world.commands.iter().filter(|it| matches!(it, Command::FlowMod(_))).count();
        assert_eq!(mods, 5, "and nothing else is sent: {:?}", world.commands);
        assert_eq!(world.slicer.rules(DATAPATH).unwrap().0, 3);
        assert_eq!(errors(&world.say(Body::FlowMod(add(6, "in_port=4", "output:1")))).len(), 1);
        // The next process has the same plan: it finds all as it is to be.
        world.commands.clear();
        world.restart_with_memory(&without(4), SECOND);
        world.join(0, Version::V1_3);
        let without_floor = |entries: Vec<FlowStats>| -> Vec<FlowStats> {
            entries.into_iter().filter(|entry| entry.priority > 1).collect()
        };
        let again = of_slice(&mut world);
        assert_eq!(without_floor(again), without_floor(after), "{on}");
    }
}

#[test]
fn a_new_port_is_flooded_to_and_touches_only_rules_that_flood_or_take_packets_from_it() {
    for on in [Version::V1_0, Version::V1_3] {
        let mut world = World::of(vlan(), on);
        world.keep_journal();
        world.restart_with_memory(&without(4), SECOND);
        world.join(0, Version::V1_3);
        rule(&mut world, 5, "in_port=1", "output:2");
        rule(&mut world, 6, "in_port=2", "flood");
        rule(&mut world, 7, "dl_dst=02:00:00:00:00:09", "output:1");
        world.commands.clear();
        world.restart_with_memory(&without(4), 2 * SECOND);
        world.join(0, Version::V1_3);
        assert_eq!(flow_mods(&world), [], "{on}: nothing has changed");
        world.commands.clear();
        world.restart_with_memory(&vlan(), 3 * SECOND);
        world.join(0, Version::V1_3);
        let changes = [(FLOW_MODIFY_STRICT, 6 + 2), (FLOW_ADD, 7 + 2)];
        assert_eq!(flow_mods(&world), changes, "{on}");
        world.frames.clear();
        world.arrive_shown(2, &[7; 60]);
        let mut to: Vec<u32> = world.frames.iter().map(|(port, _)| port.0).collect();
        to.sort_unstable();
        assert_eq!(to, [2, 5, 6], "{on}");
    }
}

/// The flow mods since the last clear, without those of the floor: commands and priorities.
fn flow_mods(world: &World) -> Vec<(u8, u16)> {
    let flow_mod = |it: &Command| match it {
        Command::FlowMod(it) => Some((it.command, it.priority)),
        _ => None,
    };
    world.commands.iter().filter_map(flow_mod).filter(|(_, priority)| *priority > 1).collect()
}

#[test]
fn groups_without_a_port_that_goes_are_left_alone_and_others_change_or_go() {
    let mut world = world(Version::V1_3);
    for (id, to) in [(1, PortNo(1)), (2, PortNo(4)), (3, PortNo::FLOOD)] {
        say(&mut world, group(id, to));
        rule(&mut world, 10 + id as u16, "in_port=2", &format!("group:{id}"));
    }
    world.commands.clear();
    assert_eq!(world.withdraw(&Loss::between(&vlan(), Some(&without(4)))), Some(Vec::new()));
    let changed: Vec<(u16, u32)> = world
        .commands
        .iter()
        .filter_map(|it| match it {
            Command::GroupMod(it) => Some((it.command, it.group_id)),
            _ => None,
        })
        .collect();
    assert_eq!(changed, [(1, 102), (2, 101)], "group 3 is modified, and group 2 is deleted");
    assert_eq!(groups_and_meters(&mut world).0, [100, 102]);
    assert_eq!(world.slicer.rules(DATAPATH).unwrap().0, 2);
}

#[test]
fn a_switch_that_is_away_or_goes_keeps_its_rules_and_it_is_said() {
    let kept = |why: &str| Some(vec![(DATAPATH, why.to_owned())]);
    let mut world = world(Version::V1_0);
    rule(&mut world, 5, "", "output:1");
    world.holds_statistics = true;
    world.restart_with_memory(&vlan(), SECOND);
    assert_eq!(world.withdraw(&Loss::between(&vlan(), None)), None);
    world.event(Event::SwitchDown(DATAPATH));
    assert_eq!(world.slicer.withdrawn(), kept("it disconnected before all was deleted"));
    assert_eq!(world.withdraw(&Loss::between(&vlan(), None)), kept("it is not connected"));
}

#[test]
fn what_finds_no_room_behind_a_flood_is_ordered_again() {
    /// What is left in the switch, if so many commands find no room.
    fn left(on: Version, loss: &Loss, without_room: usize) -> Vec<(u16, flow::Match)> {
        let mut world = world(on);
        rule(&mut world, 5, "", "output:2");
        rule(&mut world, 6, "in_port=1", "output:2");
        world.without_room = without_room;
        let mut kept = world.withdraw(loss);
        assert_eq!(kept.is_some(), without_room == 0, "{on} {without_room}");
        for _ in 0..without_room {
            assert!(world.slicer.withdrawal_due_ms().is_some(), "{on} {without_room}");
            world.pass(1);
            world.event(Event::Time);
            kept = world.slicer.withdrawn();
        }
        assert_eq!((kept, world.slicer.withdrawal_due_ms()), (Some(Vec::new()), None), "{on} {without_room}");
        of_slice(&mut world).into_iter().map(|it| (it.priority, it.matching)).collect()
    }
    for on in [Version::V1_0, Version::V1_3] {
        for loss in [Loss::between(&vlan(), None), Loss::between(&vlan(), Some(&without(1)))] {
            let expected = left(on, &loss, 0);
            for without_room in 1..4 {
                assert_eq!(left(on, &loss, without_room), expected, "{on} {without_room}");
            }
        }
    }
}
