//! Packet-ins and packet-outs: ports, tags, buffers, lengths, limits.

use crate::world::{DATAPATH, TAG, World, add, delete, errors, plan, with_tag};
use flow::{Action, Field, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{Command, Connection, Event, Isolation, Limit, Limits, SlicePlan};

const ARP: u16 = 0x0806;

fn frame(kind: u16) -> Vec<u8> {
    [&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), &[9; 186]].concat()
}

fn world(version: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
    world.join(0, version);
    world
}

fn packet_ins(told: &[(usize, Message)]) -> Vec<PacketIn> {
    let packet = |(_, message): &(usize, Message)| match &message.body {
        Body::PacketIn(it) => Some(it.clone()),
        _ => None,
    };
    told.iter().filter_map(packet).collect()
}

fn packet_out(buffer_id: u32, in_port: PortNo, actions: Vec<Action>, data: Vec<u8>) -> Body {
    Body::PacketOut(PacketOut { buffer_id, in_port, actions, data })
}

#[test]
fn a_tenant_of_1_0_hears_of_misses_and_one_of_1_3_does_not() {
    let mut world = world(Version::V1_3);
    world.arrive_shown(3, &frame(ARP));
    assert!(world.told.is_empty());
    world.join(1, Version::V1_0);
    world.arrive_shown(3, &frame(ARP));
    let [(1, Message { body: Body::PacketIn(packet), .. })] = &world.told[..] else {
        panic!("{:?}", world.told)
    };
    assert_eq!(packet.matching.get(Field::InPort), Some((3, 0xffff_ffff)));
    assert_eq!((packet.reason, packet.total_len, packet.data.len()), (0, 200, 128));
    assert_eq!(packet.data, frame(ARP)[..128], "without the slice's tag");
}

#[test]
fn a_table_miss_rule_of_1_3_has_its_reason_and_cookie() {
    let mut world = world(Version::V1_3);
    world.say(Body::FlowMod(FlowMod { cookie: 0xfeed_0000_0000_beef, ..add(0, "", "controller") }));
    world.say(Body::FlowMod(FlowMod { cookie: 7, ..add(9, "in_port=2", "controller:64") }));
    world.arrive_shown(4, &frame(ARP));
    world.arrive_shown(2, &frame(ARP));
    let [miss, hit] = &packet_ins(&world.told)[..] else { panic!() };
    assert_eq!(
        (miss.reason, miss.cookie, miss.buffer_id, miss.data.len()),
        (0, 0xfeed_0000_0000_beef, NO_BUFFER, 200)
    );
    assert_eq!((hit.reason, hit.cookie, hit.data.len()), (1, 7, 64));
    assert_ne!(hit.buffer_id, NO_BUFFER);
}

#[test]
fn a_buffer_is_used_once() {
    let mut world = world(Version::V1_0);
    world.arrive_shown(3, &frame(ARP));
    let buffer_id = packet_ins(&world.told)[0].buffer_id;
    world.frames.clear();
    let out = || {
        packet_out(buffer_id, PortNo(3), vec![Action::output(PortNo(1)), Action::output(PortNo(4))], vec![])
    };
    assert!(errors(&world.say(out())).is_empty());
    let mut frames = std::mem::take(&mut world.frames);
    frames.sort();
    assert_eq!(frames, [(PortNo(2), frame(ARP)), (PortNo(6), with_tag(&frame(ARP), TAG))]);
    assert_eq!(errors(&world.say(out())), [(1, 7)], "empty");
    assert_eq!(errors(&world.say(packet_out(55, PortNo(3), vec![], vec![]))), [(1, 8)], "never given");
}

#[test]
fn a_packet_of_an_edge_port_gets_the_tag_on_a_switch_of_either_version() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = world(version);
        world.frames.clear();
        let out = packet_out(NO_BUFFER, PortNo(1), vec![Action::output(PortNo::FLOOD)], frame(ARP));
        assert!(errors(&world.say(out)).is_empty(), "{version}");
        let mut frames = std::mem::take(&mut world.frames);
        frames.sort();
        let tagged = with_tag(&frame(ARP), TAG);
        assert_eq!(
            frames,
            [(PortNo(3), frame(ARP)), (PortNo(5), tagged.clone()), (PortNo(6), tagged)],
            "{version}"
        );
    }
}

#[test]
fn a_flow_mod_releases_the_packet_that_waits() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = world(version);
        if version == Version::V1_3 {
            world.say(Body::FlowMod(add(0, "", "controller:64")));
        }
        world.arrive_shown(1, &frame(ARP));
        let buffer_id = packet_ins(&world.told)[0].buffer_id;
        world.frames.clear();
        let release = FlowMod { buffer_id, ..add(5, "in_port=1", "output:3") };
        assert!(errors(&world.say(Body::FlowMod(release.clone()))).is_empty());
        assert_eq!(world.frames, [(PortNo(5), with_tag(&frame(ARP), TAG))], "{version}");
        assert_eq!(
            errors(&world.say(Body::FlowMod(release))),
            [(1, 7)],
            "the rule is there, the packet is gone"
        );
    }
}

#[test]
fn a_packet_out_leaves_by_the_slices_ports_only() {
    let mut world = world(Version::V1_3);
    let all = || vec![Action::output(PortNo::FLOOD)];
    world.say(packet_out(NO_BUFFER, PortNo::CONTROLLER, all(), frame(ARP)));
    let mut frames = std::mem::take(&mut world.frames);
    frames.sort();
    let (bare, tagged) = (frame(ARP), with_tag(&frame(ARP), TAG));
    let expected = [(2, &bare), (3, &bare), (5, &tagged), (6, &tagged)];
    assert_eq!(frames, expected.map(|(port, frame)| (PortNo(port), frame.clone())));
    world.say(packet_out(NO_BUFFER, PortNo(3), all(), frame(ARP)));
    assert_eq!(world.frames.len(), 3, "not by its input port");
    let refused = |world: &mut World, in_port, actions, data| {
        errors(&world.say(packet_out(NO_BUFFER, in_port, actions, data)))
    };
    assert_eq!(refused(&mut world, PortNo(9), all(), frame(ARP)), [(1, 11)]);
    assert_eq!(refused(&mut world, PortNo(1), vec![Action::output(PortNo::NORMAL)], frame(ARP)), [(2, 6)]);
    assert_eq!(refused(&mut world, PortNo(1), vec![Action::output(PortNo(9))], frame(ARP)), [(2, 4)]);
    assert_eq!(refused(&mut world, PortNo(1), all(), vec![0; 13]), [(1, 12)]);
    assert_eq!(
        refused(&mut world, PortNo(1), all(), with_tag(&frame(ARP), TAG + 1)),
        [(1, 5)],
        "another's tag"
    );
}

#[test]
fn a_packet_out_is_of_the_flowspace() {
    let space = vec![flow::text::parse_match("dl_type=0x0806").unwrap()];
    let mut world = World::new(Isolation::Flowspace(space), Version::V1_0);
    world.join(0, Version::V1_0);
    let out = |kind| packet_out(NO_BUFFER, PortNo::ANY, vec![Action::output(PortNo(3))], frame(kind));
    assert_eq!(errors(&world.say(out(0x0800))), [(1, 5)]);
    assert!(errors(&world.say(out(ARP))).is_empty());
    assert_eq!(world.frames, [(PortNo(5), frame(ARP))]);
}

#[test]
fn a_packet_out_through_the_table_hits_the_tenants_rules() {
    let mut world = world(Version::V1_3);
    world.say(Body::FlowMod(add(5, "in_port=1", "output:2")));
    world.say(Body::FlowMod(add(4, "", "output:4")));
    world.frames.clear();
    let through = |in_port| packet_out(NO_BUFFER, in_port, vec![Action::output(PortNo::TABLE)], frame(ARP));
    world.say(through(PortNo(1)));
    world.say(through(PortNo(3)));
    world.say(through(PortNo::CONTROLLER));
    let tagged = with_tag(&frame(ARP), TAG);
    assert_eq!(world.frames, [(PortNo(3), frame(ARP)), (PortNo(6), tagged.clone()), (PortNo(6), tagged)]);
    let two = vec![Action::output(PortNo::TABLE), Action::output(PortNo(1))];
    assert_eq!(errors(&world.say(packet_out(NO_BUFFER, PortNo(1), two, frame(ARP)))), [(2, 4)]);
}

#[test]
fn limits_drop_packet_ins_and_refuse_the_rest() {
    let limit = Limit { soft: 1, hard: 2 };
    let limits = Limits {
        packet_ins_per_s: limit,
        packet_outs_per_s: limit,
        flow_mods_per_s: limit,
        statistics_per_s: limit,
        ..Limits::default()
    };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_0);
    // The floor of a controller of 1.0 was a flow mod.
    world.pass(1);
    (0..5).for_each(|_| world.arrive_shown(1, &frame(ARP)));
    assert_eq!(packet_ins(&world.told).len(), 2);
    let counters = world.slicer.counters(crate::world::DATAPATH).unwrap();
    assert_eq!((counters.packet_ins, counters.packet_ins_dropped, world.soft), (2, 3, 1));
    let out = || packet_out(NO_BUFFER, PortNo::ANY, vec![Action::output(PortNo(1))], frame(ARP));
    let refused: Vec<_> = (0..3).flat_map(|_| errors(&world.say(out()))).collect();
    assert_eq!(refused, [(1, 5)]);
    let refused: Vec<_> =
        (0..3).flat_map(|_| errors(&world.say(Body::FlowMod(add(5, "", "output:1"))))).collect();
    assert_eq!(refused, [(3, 2)]);
    let desc = || Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Desc });
    let refused: Vec<_> = (0..3).flat_map(|_| errors(&world.say(desc()))).collect();
    assert_eq!(refused, [(1, 5)]);
    world.pass(1);
    assert!(errors(&world.say(out())).is_empty());
}

#[test]
fn the_mask_of_a_controller_counts() {
    let mut world = world(Version::V1_3);
    world.say(Body::FlowMod(add(5, "in_port=1", "controller")));
    let mask = AsyncConfig { packet_in_mask: [0b001, 0], ..AsyncConfig::default() };
    world.say(Body::SetAsync(mask));
    assert_eq!(world.say(Body::GetAsyncRequest), [Body::GetAsyncReply(mask)]);
    world.told.clear();
    world.arrive_shown(1, &frame(ARP));
    assert!(world.told.is_empty());
}

#[test]
fn no_command_has_a_buffer_of_others() {
    let mut world = world(Version::V1_0);
    world.arrive_shown(3, &frame(ARP));
    let buffer_id = packet_ins(&world.told)[0].buffer_id;
    world.say(Body::FlowMod(FlowMod { buffer_id, ..add(5, "", "flood") }));
    for command in &world.commands {
        match command {
            Command::FlowMod(it) => assert_eq!(it.buffer_id, NO_BUFFER),
            Command::PacketOut(it) => assert_eq!(it.buffer_id, NO_BUFFER),
            _ => {}
        }
    }
}

#[test]
fn a_controller_without_room_loses_packet_ins_and_nothing_else() {
    let mut world = world(Version::V1_3);
    world.join(1, Version::V1_3);
    world.say(Body::FlowMod(add(5, "in_port=1", "controller:64")));
    world.say(Body::FlowMod(FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..add(6, "in_port=2", "") }));
    let mut check = |room: [bool; 2], heard: &[usize], unread: u64| {
        for (controller, has_room) in room.into_iter().enumerate() {
            world.slicer.set_room(Connection { datapath: DATAPATH, controller }, has_room);
        }
        world.told.clear();
        world.arrive_shown(1, &frame(ARP));
        assert_eq!(packet_ins(&world.told).len(), heard.len(), "{room:?}");
        assert!(world.told.iter().map(|(controller, _)| controller).eq(heard), "{room:?}");
        let counters = world.slicer.counters(DATAPATH).unwrap();
        assert_eq!((counters.packet_ins_unread, counters.packet_ins_unheard), (unread, 0), "{room:?}");
        packet_ins(&world.told).first().map(|packet| packet.buffer_id)
    };
    assert_eq!(check([false, false], &[], 2), None);
    assert_eq!(check([true, false], &[0], 3), Some(0), "a packet that none heard of has no buffer");
    assert_eq!(check([true, true], &[0, 1], 3), Some(1));
    check([false, false], &[], 5);
    world.told.clear();
    assert_eq!(world.say(Body::EchoRequest(vec![7])), [Body::EchoReply(vec![7])]);
    assert_eq!(world.say(Body::BarrierRequest), [Body::BarrierReply]);
    world.told.clear();
    world.say(Body::FlowMod(delete("in_port=2")));
    let is_removed = |(_, message): &&(usize, Message)| matches!(message.body, Body::FlowRemoved(_));
    assert_eq!(world.told.iter().filter(is_removed).count(), 2, "each is told of the end of a rule");
}

#[test]
fn a_new_connection_has_room_and_what_is_not_heard_costs_no_limit() {
    let limit = Limit { soft: 1, hard: 2 };
    let limits = Limits { packet_ins_per_s: limit, ..Limits::default() };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_0);
    let connection = Connection { datapath: DATAPATH, controller: 0 };
    world.slicer.set_room(connection, false);
    (0..5).for_each(|_| world.arrive_shown(1, &frame(ARP)));
    assert!(packet_ins(&world.told).is_empty());
    world.event(Event::ControllerDown(connection));
    world.join(0, Version::V1_0);
    (0..3).for_each(|_| world.arrive_shown(1, &frame(ARP)));
    assert_eq!(packet_ins(&world.told).len(), 2);
    let counters = world.slicer.counters(DATAPATH).unwrap();
    assert_eq!((counters.packet_ins_unread, counters.packet_ins_dropped), (5, 1));
}
