//! Delays, order, buffers and losses.

use crate::world::{MS, OF_SWITCH, START, World, base, settings};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use profile::model::{Input, MessageId, Miss, Output};
use profile::{PacketInRate, Profile, Quantiles};
use proxy::{Commands, Event, Method, Passage, Proxy};

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];
const METHODS: [Method; 2] = [Method::Paper, Method::Full];

/// A frame with a number in it.
pub fn frame(number: u64) -> Vec<u8> {
    let mut frame = vec![0; 200];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

pub fn apply(actions: Vec<Action>) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(actions)]
}

/// The rule that sends packets to the controller, which 1.0 has by itself.
pub fn table_miss(world: &mut World, max_len: u16) {
    if world.version == Version::V1_3 {
        let actions = vec![Action::Output { port: PortNo::CONTROLLER, max_len }];
        let fields = FlowModFields { priority: 0, ..FlowModFields::default() };
        world.says(Body::FlowMod(fields.with(Match::any(), apply(actions))));
        world.run_for(2_000 * MS);
        world.heard.clear();
    }
}

fn delays(ingress_us: f64, egress_us: f64) -> Profile {
    let mut profile = Profile::null();
    profile.delay.ingress_us = Quantiles::constant(ingress_us);
    profile.delay.egress_us = Quantiles::constant(egress_us);
    profile
}

fn packet_out(data: Vec<u8>) -> Body {
    let actions = vec![Action::output(PortNo(2))];
    Body::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port: PortNo(1), actions, data })
}

#[test]
fn a_packet_takes_the_targets_time_each_way() {
    for version in VERSIONS {
        for method in METHODS {
            let mut world = World::new(&delays(20_000.0, 7_000.0), method, version);
            table_miss(&mut world, 0xffff);
            let begin = world.now;
            world.frame(1, &frame(1));
            world.run_for(100 * MS);
            let [(at, packet_in)] = &world.packet_ins()[..] else { panic!("{:?}", world.heard) };
            // The switch needed a millisecond of it.
            assert_eq!((at - begin, &packet_in.data), (20 * MS, &frame(1)), "{version} {method:?}");
            let begin = world.now;
            world.says(packet_out(frame(1)));
            world.run_for(100 * MS);
            assert_eq!(world.left, [(begin + 7 * MS, PortNo(2), frame(1))], "{version} {method:?}");
        }
    }
}

/// The model alone, with the same packets at the same times.
pub fn by_the_model(profile: &Profile, method: Method, arrivals: &[u64]) -> Vec<u64> {
    let of = settings(profile.clone(), method);
    let base = base().delay.ingress_us;
    let mut model = match method {
        Method::Full => profile::model::Model::new(&of.profile, of.seed),
        Method::Paper => profile::model::Model::of_paper(&of.profile.delay, of.seed),
    }
    .before(&base);
    let (mut out, mut left) = (Vec::new(), Vec::new());
    let mut pass = |model: &mut profile::model::Model, until: u64, out: &mut Vec<Output>| {
        while let Some(due) = model.next_due_ns().filter(|due| *due <= until) {
            model.on_time(due, out);
            left.extend(
                out.drain(..).filter(|output| matches!(output, Output::PacketIn { .. })).map(|_| due),
            );
        }
    };
    for (number, arrived_ns) in arrivals.iter().copied().enumerate() {
        let now = arrived_ns + OF_SWITCH;
        pass(&mut model, now, &mut out);
        let miss = Miss {
            id: MessageId(number as u64),
            arrived_ns,
            length_bytes: 200,
            wanted_bytes: None,
            may_be_buffered: true,
        };
        model.on_input(now, Input::Miss(miss), &mut out);
        pass(&mut model, now, &mut out);
    }
    pass(&mut model, u64::MAX, &mut out);
    left
}

#[test]
fn packet_ins_leave_exactly_when_the_model_says() {
    let mut profile = Profile::null();
    profile.delay.ingress_us = Quantiles::new(&[(0.0, 500.0), (0.7, 9_000.0), (1.0, 90_000.0)]).unwrap();
    for method in METHODS {
        if method == Method::Full {
            profile.cpu.packet_in.service_us = Quantiles::new(&[(0.0, 100.0), (1.0, 8_000.0)]).unwrap();
        }
        let mut world = World::new(&profile, method, Version::V1_0);
        let arrivals: Vec<u64> = (0..500).map(|number| START + number * 5 * MS).collect();
        for (number, at) in arrivals.iter().enumerate() {
            world.run_until(*at);
            world.frame(1, &frame(number as u64));
        }
        world.run_for(10_000 * MS);
        let packet_ins = world.packet_ins();
        let times: Vec<u64> = packet_ins.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, by_the_model(&profile, method, &arrivals), "{method:?}");
        let in_order =
            packet_ins.iter().enumerate().all(|(number, (_, packet))| packet.data == frame(number as u64));
        assert!(in_order, "{method:?}");
        assert_eq!((world.proxy.counters().packet_ins, world.proxy.counters().packet_ins_unseen), (500, 0));
    }
}

#[test]
fn without_a_tap_the_own_delay_of_the_switch_is_drawn() {
    let mut world = World::new(&delays(20_000.0, 0.0), Method::Full, Version::V1_0);
    let begin = world.now;
    world.unseen_frame(1, &frame(1));
    world.run_for(100 * MS);
    assert_eq!(world.packet_ins()[0].0 - begin, 20 * MS, "the base is constant");
    assert_eq!(world.proxy.counters().packet_ins_unseen, 1);
}

#[test]
fn a_target_that_is_faster_than_the_switch_is_seen_before_and_counted() {
    let profile = delays(400.0, 0.0);
    let mut world = World::new(&profile, Method::Full, Version::V1_0);
    let shortfall = world.proxy.settings().ingress_shortfall();
    assert_eq!((shortfall.share.round(), shortfall.mean_us.round()), (1.0, 600.0));
    let begin = world.now;
    world.frame(1, &frame(1));
    world.run_for(100 * MS);
    assert_eq!((world.packet_ins()[0].0 - begin, world.proxy.counters().packet_ins_late), (OF_SWITCH, 1));
}

#[test]
fn messages_of_one_type_keep_their_order() {
    let mut profile = Profile::null();
    profile.delay.egress_us = Quantiles::new(&[(0.0, 0.0), (1.0, 50_000.0)]).unwrap();
    for version in VERSIONS {
        let mut world = World::new(&profile, Method::Paper, version);
        for number in 0..200 {
            world.says(packet_out(frame(number)));
            world.run_for(MS / 10);
        }
        world.run_for(1_000 * MS);
        let numbers: Vec<Vec<u8>> = world.left.iter().map(|(_, _, frame)| frame.clone()).collect();
        assert_eq!(numbers, (0..200).map(frame).collect::<Vec<_>>());
    }
}

fn buffers(packets: u32) -> Profile {
    let mut profile = delays(5_000.0, 3_000.0);
    profile.packet_in.buffers_packets = Some(packets);
    profile.packet_in.miss_send_bytes = 96;
    profile
}

#[test]
fn a_buffered_flow_mod_becomes_a_flow_mod_and_a_packet_out() {
    for version in VERSIONS {
        let mut world = World::new(&buffers(4), Method::Full, version);
        table_miss(&mut world, 96);
        world.frame(1, &frame(9));
        world.run_for(10 * MS);
        let (_, packet_in) = world.packet_ins()[0].clone();
        assert_ne!(packet_in.buffer_id, NO_BUFFER);
        assert_eq!((packet_in.total_len, &packet_in.data[..]), (200, &frame(9)[..96]), "{version}");
        world.got.clear();
        let begin = world.now;
        let fields = FlowModFields { buffer_id: packet_in.buffer_id, ..FlowModFields::default() };
        let matching = Match::any().with(Field::InPort, 1u32);
        let xid =
            world.says(Body::FlowMod(fields.with(matching.clone(), apply(vec![Action::output(PortNo(2))]))));
        world.run_for(10 * MS);
        let expected = FlowModFields { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..FlowModFields::default() };
        let rule = Body::FlowMod(expected.with(matching, apply(vec![Action::output(PortNo(2))])));
        let out = if version == Version::V1_0 { PortNo(2) } else { PortNo::TABLE };
        let packet = PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo(1),
            actions: vec![Action::output(out)],
            data: frame(9),
        };
        let got: Vec<(u64, bool, &Body)> =
            world.got.iter().map(|(at, message)| (at - begin, message.xid == xid, &message.body)).collect();
        // Both are the proxy's own messages: an error about one of them does not name bytes that the controller never sent.
        assert_eq!(got, [(0, false, &rule), (3 * MS, false, &Body::PacketOut(packet))], "{version}");
        assert_eq!(world.left, [(begin + 3 * MS, PortNo(2), frame(9))], "{version}");
        // The id is good once.
        let again = PacketOut {
            buffer_id: packet_in.buffer_id,
            in_port: PortNo(1),
            actions: vec![Action::output(PortNo(3))],
            data: Vec::new(),
        };
        let xid = world.says(Body::PacketOut(again));
        world.run_for(10 * MS);
        assert_eq!(world.errors(), [(xid, 1, 7)], "{version}: OFPBRC_BUFFER_EMPTY");
    }
}

#[test]
fn a_packet_out_sends_the_packet_of_its_buffer() {
    for version in VERSIONS {
        let mut world = World::new(&buffers(1), Method::Full, version);
        table_miss(&mut world, 96);
        world.frame(1, &frame(1));
        world.frame(1, &frame(2));
        world.run_for(10 * MS);
        let packet_ins = world.packet_ins();
        let ids: Vec<u32> = packet_ins.iter().map(|(_, packet)| packet.buffer_id).collect();
        assert!(ids[0] != NO_BUFFER && ids[1] == NO_BUFFER, "there is one buffer: {ids:?}");
        assert_eq!(packet_ins[1].1.data, frame(2), "without a buffer, the whole packet");
        let actions = vec![Action::output(PortNo(3))];
        let wanted = PacketOut { buffer_id: ids[0], in_port: PortNo(1), actions, data: Vec::new() };
        world.says(Body::PacketOut(wanted));
        world.run_for(10 * MS);
        let left: Vec<_> = world.left.iter().map(|(_, port, frame)| (*port, frame.clone())).collect();
        assert_eq!(left, [(PortNo(3), frame(1))], "{version}");
    }
}

#[test]
fn the_controller_sets_the_length_of_packet_ins() {
    let mut world = World::new(&buffers(4), Method::Full, Version::V1_0);
    world.says(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 64 }));
    world.run_for(10 * MS);
    world.frame(1, &frame(1));
    let xid = world.says(Body::GetConfigRequest);
    world.run_for(10 * MS);
    assert_eq!(world.packet_ins()[0].1.data, frame(1)[..64]);
    let config = world.heard.iter().find(|(_, message)| message.xid == xid).map(|(_, message)| &message.body);
    assert_eq!(config, Some(&Body::GetConfigReply(SwitchConfig { flags: 0, miss_send_len: 64 })));
}

#[test]
fn packet_ins_above_the_limit_are_lost_and_counted() {
    let mut profile = delays(5_000.0, 0.0);
    profile.packet_in.limit = Some(PacketInRate { rate_per_s: 10.0, burst_packets: 5 });
    let mut world = World::new(&profile, Method::Full, Version::V1_0);
    (0..20).for_each(|number| world.frame(1, &frame(number)));
    world.run_for(50 * MS);
    let counters = world.proxy.counters();
    assert_eq!((world.packet_ins().len(), counters.packet_ins_above_limit), (5, 15));
    assert_eq!(counters.packet_ins_lost(), 15);
}

#[test]
fn a_null_profile_passes_messages_as_they_are() {
    let mut proxy = Proxy::new(settings(Profile::null(), Method::Full));
    let mut out = Commands::default();
    let messages: [&[u8]; 3] = [
        &[4, 10, 0, 16, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[4, 14, 0, 9, 0, 0, 0, 1, 0],
        &[1, 18, 0, 8, 0, 0, 0, 2],
    ];
    for message in messages {
        for event in [Event::FromSwitch(message), Event::FromController(message)] {
            assert_eq!(proxy.on_event(5, event, &mut out), Passage::Unchanged);
        }
    }
    assert!(out.to_switch.is_empty() && out.to_controller.is_empty() && proxy.next_due_ns().is_none());
}
