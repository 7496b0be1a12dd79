//! Groups and meters: numbers of the tenant, buckets of the physical switch, and what waits for them.

use crate::world::{TAG, World, add, errors, is_edge, physical, plan, with_tag, written};
use flow::text::parse_actions;
use flow::{Action, Instruction, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{Command, Isolation};

fn world() -> World {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
    world.join(0, Version::V1_3);
    world
}

fn bucket(actions: &str) -> Bucket {
    Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: parse_actions(actions).unwrap(),
    }
}

fn group(command: u16, group_type: u8, group_id: u32, buckets: &[&str]) -> Body {
    let buckets = buckets.iter().map(|actions| bucket(actions)).collect();
    Body::GroupMod(GroupMod { command, group_type, group_id, buckets })
}

fn meter(command: u16, meter_id: u32, kind: MeterBandKind) -> Body {
    let bands = vec![MeterBand { rate: 1, burst_size: 0, kind }];
    Body::MeterMod(MeterMod { command, flags: 2, meter_id, bands })
}

fn frame() -> Vec<u8> {
    [&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2][..], &[8, 6], &[9; 46]].concat()
}

fn left(world: &mut World) -> Vec<(PortNo, Vec<u8>)> {
    let mut frames = std::mem::take(&mut world.frames);
    frames.sort();
    frames
}

#[test]
fn a_group_has_the_tenants_number_and_the_slices_ports() {
    let mut world = world();
    assert!(errors(&world.say(group(0, GROUP_TYPE_ALL, 1, &["output:2", "output:3", "flood"]))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(5, "", "group:1")))).is_empty());
    world.frames.clear();
    for port in [1, 4] {
        world.arrive_shown(port, &frame());
    }
    // Port 1 gets none of its own. Port 2 and 3 are in two buckets each.
    let (bare, tagged) = (frame(), with_tag(&frame(), TAG));
    let expect = |in_port: u32| {
        let shown = [2, 3, 1, 2, 3, 4].into_iter().filter(move |port| *port != in_port);
        let (bare, tagged) = (bare.clone(), tagged.clone());
        shown.map(move |port| {
            let frame = if is_edge(port) { bare.clone() } else { tagged.clone() };
            (PortNo(physical(port)), frame)
        })
    };
    let mut expected: Vec<_> = expect(1).chain(expect(4)).collect();
    expected.sort();
    assert_eq!(left(&mut world), expected);
    let ids: Vec<u32> = world
        .commands
        .iter()
        .filter_map(|it| match it {
            Command::GroupMod(it) => Some(it.group_id),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [100]);
}

#[test]
fn groups_and_meters_that_cannot_be_are_refused() {
    let world = &mut world();
    let mut check = |body: Body, expected: (u16, u16)| {
        assert_eq!(errors(&world.say(body.clone())), [expected], "{body:?}")
    };
    check(group(0, 0, 1, &["output:9"]), (2, 4));
    check(group(0, 0, 1, &["normal"]), (2, 6));
    check(group(0, 0, 1, &["push_vlan:0x8100,output:1"]), (2, 6));
    check(group(0, 0, 1, &["group:2"]), (6, 5));
    check(group(0, GROUP_TYPE_SELECT, 1, &["flood"]), (6, 12));
    check(group(0, 0, 1, &["in_port"]), (6, 12));
    check(group(1, 0, 1, &["output:1"]), (6, 8));
    check(group(0, 0, GROUP_ANY, &["output:1"]), (6, 1));
    check(meter(1, 1, MeterBandKind::Drop), (12, 3));
    check(meter(0, 0, MeterBandKind::Drop), (12, 2));
    check(Body::FlowMod(add(5, "", "meter:1,output:1")), (12, 2));
    for id in 1..=8 {
        assert!(errors(&world.say(group(0, 0, id, &["output:1"]))).is_empty());
    }
    assert_eq!(errors(&world.say(group(0, 0, 9, &["output:1"]))), [(6, 3)]);
    assert_eq!(errors(&world.say(group(0, 0, 8, &["output:1"]))), [(6, 0)]);
}

#[test]
fn no_bucket_sends_back_to_the_input_port() {
    let check = |isolation: Isolation| {
        let mut world = World::new(isolation.clone(), Version::V1_3);
        world.join(0, Version::V1_3);
        for kind in [GROUP_TYPE_ALL, GROUP_TYPE_INDIRECT] {
            let refused = errors(&world.say(group(0, kind, 1, &["in_port"])));
            assert_eq!(refused, [(6, 12)], "{kind}, {isolation:?}");
        }
        assert!(errors(&world.say(group(0, 0, 1, &["output:1"]))).is_empty());
        assert_eq!(errors(&world.say(group(1, 0, 1, &["output:1", "in_port"]))), [(6, 12)], "a modify");
        let is_sent = |it: &&Command| matches!(it, Command::GroupMod(_));
        assert_eq!(world.commands.iter().filter(is_sent).count(), 1, "{isolation:?}");
    };
    check(Isolation::Vlan(TAG));
    check(Isolation::Flowspace(vec![flow::text::parse_match("ip,nw_dst=10.0.0.0/24").unwrap()]));
    let mut world = edge_alone(Isolation::Vlan(TAG));
    assert_eq!(errors(&world.say(group(0, 0, 1, &["in_port"]))), [(6, 12)], "all ports are the slice's own");
}

#[test]
fn the_rules_of_a_deleted_group_go_with_it() {
    let mut world = world();
    world.say(group(0, GROUP_TYPE_INDIRECT, 7, &["output:2"]));
    world.say(Body::FlowMod(FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..add(5, "in_port=1", "group:7") }));
    world.say(Body::FlowMod(add(4, "in_port=1", "output:3")));
    let answers = world.say(group(2, 0, GROUP_ALL, &[]));
    let [Body::FlowRemoved(removed)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((removed.reason, removed.priority), (3, 5));
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((1, 1)));
}

#[test]
fn what_refers_to_a_group_waits_until_it_is_confirmed() {
    let mut world = world();
    world.holds_claims = true;
    world.say(group(0, GROUP_TYPE_INDIRECT, 7, &["output:2"]));
    world.say(Body::FlowMod(add(5, "in_port=1", "group:7")));
    assert!(world.say(Body::BarrierRequest).is_empty());
    assert_eq!(world.say(Body::EchoRequest(vec![])), [Body::EchoReply(vec![])], "a question is answered");
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((0, 0)));
    world.told.clear();
    world.confirm_claims();
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((1, 1)));
    assert!(
        matches!(world.told[..], [(0, Message { xid: 42, body: Body::BarrierReply, .. })]),
        "{:?}",
        world.told
    );
}

#[test]
fn meters_have_the_tenants_numbers() {
    let mut world = world();
    assert!(errors(&world.say(meter(0, 9, MeterBandKind::Drop))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(5, "in_port=1", "meter:9,output:2")))).is_empty());
    world.frames.clear();
    (0..5).for_each(|_| world.arrive_shown(1, &frame()));
    assert_eq!(world.frames.len(), 1, "one packet per second");
    let request = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
    let answers = world.say(request(RequestBody::Meter(METER_ALL)));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::Meter(meters), .. })] = &answers[..] else {
        panic!()
    };
    assert_eq!((meters.len(), meters[0].meter_id, meters[0].packet_in_count), (1, 9, 5));
    let answers = world.say(request(RequestBody::MeterConfig(METER_ALL)));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::MeterConfig(meters), .. })] = &answers[..]
    else {
        panic!()
    };
    assert_eq!(meters[0].meter_id, 9);
    world.say(meter(2, 9, MeterBandKind::Drop));
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((0, 0)));
}

#[test]
fn group_statistics_have_the_tenants_numbers() {
    let mut world = world();
    world.say(group(0, GROUP_TYPE_INDIRECT, 7, &["output:2"]));
    world.say(Body::FlowMod(add(5, "in_port=1", "group:7")));
    world.arrive_shown(1, &frame());
    let request = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
    let answers = world.say(request(RequestBody::Group(7)));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::Group(groups), .. })] = &answers[..] else {
        panic!()
    };
    assert_eq!((groups.len(), groups[0].group_id, groups[0].packet_count), (1, 7, 1));
    let answers = world.say(request(RequestBody::GroupDesc));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::GroupDesc(groups), .. })] = &answers[..]
    else {
        panic!()
    };
    assert_eq!((groups[0].group_id, &groups[0].buckets), (7, &vec![bucket("output:2")]));
}

#[test]
fn a_switch_of_1_0_has_neither() {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_0);
    world.join(0, Version::V1_3);
    assert_eq!(errors(&world.say(group(0, 0, 1, &["output:1"]))), [(1, 1)]);
    assert_eq!(errors(&world.say(meter(0, 1, MeterBandKind::Drop))), [(1, 1)]);
}

/// A slice with its two edge ports alone.
fn edge_alone(isolation: Isolation) -> World {
    let mut plan = plan(isolation);
    plan.switches[0].ports.retain(|port| port.is_edge);
    let mut world = World::of(plan, Version::V1_3);
    world.join(0, Version::V1_3);
    world
}

#[test]
fn a_slice_of_edge_ports_alone_has_groups() {
    let mut world = edge_alone(Isolation::Vlan(TAG));
    let rewritten = "set_field:02:00:00:00:00:09->eth_dst,group:7";
    assert!(errors(&world.say(group(0, GROUP_TYPE_ALL, 7, &["output:1", "output:2"]))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(5, "in_port=1", rewritten)))).is_empty());
    world.frames.clear();
    world.arrive_shown(1, &frame());
    let expected = [&[2, 0, 0, 0, 0, 9], &frame()[6..]].concat();
    assert_eq!(left(&mut world), [(PortNo(physical(2)), expected)]);
    let request = Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Group(GROUP_ALL) });
    let answers = world.say(request);
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::Group(groups), .. })] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((groups.len(), groups[0].group_id, groups[0].packet_count), (1, 7, 1));
    assert!(errors(&world.say(group(1, GROUP_TYPE_INDIRECT, 7, &["output:1"]))).is_empty());
    assert_eq!(errors(&world.say(group(1, GROUP_TYPE_INDIRECT, 7, &["controller"]))), [(6, 12)]);
}

#[test]
fn a_slice_of_edge_ports_alone_has_groups_with_addresses_too() {
    let mut world = edge_alone(crate::addresses::addresses());
    assert!(errors(&world.say(group(0, GROUP_TYPE_SELECT, 7, &["output:1", "output:2"]))).is_empty());
    let rewritten = "set_field:02:00:00:00:00:09->eth_dst,group:7";
    for matching in ["ip", "arp", "ip,nw_dst=10.0.0.2"] {
        assert!(errors(&world.say(Body::FlowMod(add(5, matching, rewritten)))).is_empty(), "{matching}");
    }
}

#[test]
fn no_rule_names_a_group_of_the_tenants_number() {
    let mut world = world();
    world.say(group(0, GROUP_TYPE_INDIRECT, 7, &["output:2"]));
    let bytes = written(Version::V1_3, Body::FlowMod(add(5, "in_port=3", "group:7")));
    world.send(0, &bytes);
    let Some(Command::FlowMod(rule)) = world.commands.last() else { panic!() };
    assert_eq!(rule.instructions, [Instruction::ApplyActions(vec![Action::Group(100)])]);
}
