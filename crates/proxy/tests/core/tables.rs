//! Tables, barriers, time-outs and statistics of the target.

use crate::delays::{apply, frame, table_miss};
use crate::world::{MS, World};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{
    AddCost, Barrier, BarrierKind, Capacity, Curve, Hardware, Profile, Promotion, PromotionOrder, Quantiles,
    Software, SoftwareUse, Timeouts, Victim, WhenFull,
};
use proxy::Method;

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];

fn hardware(entries: u32, when_full: WhenFull) -> Profile {
    let hardware = Hardware {
        capacities: vec![Capacity::any(entries)],
        when_full,
        evict: vec![Victim::Oldest],
        ..Hardware::default()
    };
    Profile { hardware: Some(hardware), ..Profile::null() }
}

fn matching(number: u64) -> Match {
    Match::any().with(Field::EthDst, number)
}

fn rule(number: u64, fields: FlowModFields) -> Body {
    Body::FlowMod(fields.with(matching(number), apply(vec![Action::output(PortNo(2))])))
}

fn add(number: u64) -> Body {
    rule(number, FlowModFields::default())
}

/// The flow removeds that the controller has heard: time and reason.
fn removed(world: &World) -> Vec<(u64, u8)> {
    let of = |(at, message): &(u64, Message)| match &message.body {
        Body::FlowRemoved(removed) => Some((*at, removed.reason)),
        _ => None,
    };
    world.heard.iter().filter_map(of).collect()
}

fn statistics(world: &mut World, body: RequestBody) -> ReplyBody {
    let xid = world.says(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    world.run_for(10 * MS);
    let reply = world.heard.iter().find(|(_, message)| message.xid == xid);
    match reply.map(|(_, message)| message.body.clone()) {
        Some(Body::MultipartReply(reply)) => reply.body,
        other => panic!("{other:?}"),
    }
}

fn all_rules() -> RequestBody {
    RequestBody::Flow(FlowStatsRequest::default())
}

#[test]
fn a_full_table_refuses_with_the_error_of_the_version() {
    for (version, error) in [(Version::V1_0, (3, 0)), (Version::V1_3, (5, 1))] {
        let mut world = World::new(&hardware(2, WhenFull::Refuse), Method::Full, version);
        let xids: Vec<u32> = (0..3).map(|number| world.says(add(number))).collect();
        world.run_for(10 * MS);
        assert_eq!(world.errors(), [(xids[2], error.0, error.1)], "{version}");
        assert_eq!(world.rules(), 2);
        // A modify of 1.0 that finds no rule adds one, which has no room either.
        let xid = world.says(rule(9, FlowModFields { command: FLOW_MODIFY, ..FlowModFields::default() }));
        world.run_for(10 * MS);
        let refused = if version == Version::V1_0 { Some(&(xid, 3, 0)) } else { None };
        assert_eq!((world.errors().get(1), world.rules()), (refused, 2), "{version}");
        // The same rule again is no further one, and a deleted one makes room.
        world.heard.clear();
        world.says(add(1));
        world.says(rule(0, FlowModFields { command: FLOW_DELETE_STRICT, ..FlowModFields::default() }));
        world.says(add(7));
        world.run_for(10 * MS);
        assert_eq!((world.errors(), world.rules()), (vec![], 2), "{version}");
    }
}

#[test]
fn a_rule_that_makes_place_leaves_the_switch_and_is_told() {
    for version in VERSIONS {
        let mut world = World::new(&hardware(2, WhenFull::Evict), Method::Full, version);
        let told = FlowModFields { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..FlowModFields::default() };
        world.says(rule(0, told));
        world.says(add(1));
        world.says(add(2));
        world.says(add(3));
        world.run_for(10 * MS);
        assert_eq!((world.errors(), world.rules()), (vec![], 2), "{version}");
        let reasons: Vec<u8> = removed(&world).iter().map(|(_, reason)| *reason).collect();
        assert_eq!((reasons, world.proxy.counters().evicted), (vec![2], 2), "{version}");
    }
}

#[test]
fn an_honest_barrier_waits_for_the_hardware_and_an_early_one_does_not() {
    let mut honest = hardware(10, WhenFull::Refuse);
    if let Some(hardware) = &mut honest.hardware {
        hardware.add = AddCost::any_order(Curve::constant(50_000.0));
    }
    let mut early = honest.clone();
    early.barrier =
        Barrier { kind: BarrierKind::Early(Quantiles::constant(100_000.0)), rules_in_order: true };
    for version in VERSIONS {
        for (profile, answered, in_switch) in [(&honest, 50 * MS, 50 * MS), (&early, 0, 150 * MS)] {
            let mut world = World::new(profile, Method::Full, version);
            world.got.clear();
            let begin = world.now;
            world.says(add(1));
            let xid = world.says(Body::BarrierRequest);
            world.run_for(1_000 * MS);
            let at = world.answered(xid).unwrap() - begin;
            // The switch confirms what it got, which takes its own time.
            assert!((answered..=answered + 2 * MS).contains(&at), "{version}: {at}");
            let sent = world.got.iter().find(|(_, message)| matches!(message.body, Body::FlowMod(_)));
            assert_eq!(sent.map(|(at, _)| at - begin), Some(in_switch), "{version}");
            assert_eq!(world.heard.len(), 1, "own barriers do not reach the controller: {:?}", world.heard);
        }
    }
}

#[test]
fn a_hard_time_out_ends_a_rule_when_the_target_looks() {
    let mut profile = Profile::null();
    profile.timeouts = Timeouts { scan_period_us: 4e6, counter_period_us: 0.0 };
    for version in VERSIONS {
        let mut world = World::new(&profile, Method::Full, version);
        let fields = FlowModFields {
            hard_timeout_s: 3,
            flags: FLOW_MOD_SEND_FLOW_REMOVED,
            ..FlowModFields::default()
        };
        let begin = world.now;
        world.says(rule(1, fields));
        world.run_for(20_000 * MS);
        let [(at, reason)] = removed(&world)[..] else { panic!("{:?}", world.heard) };
        assert_eq!((reason, world.rules()), (1, 0));
        assert!((3_000 * MS..7_002 * MS).contains(&(at - begin)), "{version}: {}", at - begin);
    }
}

#[test]
fn an_idle_rule_ends_and_a_used_one_stays() {
    let mut profile = Profile::null();
    profile.timeouts = Timeouts { scan_period_us: 1e6, counter_period_us: 0.0 };
    for version in VERSIONS {
        let mut world = World::new(&profile, Method::Full, version);
        let fields = FlowModFields {
            idle_timeout_s: 3,
            flags: FLOW_MOD_SEND_FLOW_REMOVED,
            ..FlowModFields::default()
        };
        world.says(rule(0x0200_0000_0002, fields));
        for _ in 0..10 {
            world.run_for(1_000 * MS);
            world.frame(1, &frame(1));
        }
        assert_eq!((removed(&world), world.rules()), (vec![], 1), "{version}");
        let last = world.now;
        world.run_for(20_000 * MS);
        let [(at, reason)] = removed(&world)[..] else { panic!("{:?}", world.heard) };
        assert_eq!((reason, world.rules()), (0, 0));
        assert!((3_000 * MS..4_600 * MS).contains(&(at - last)), "{version}: {}", at - last);
        assert!(world.heard.iter().all(|(_, message)| !matches!(message.body, Body::MultipartReply(_))));
    }
}

#[test]
fn the_last_use_of_a_rule_that_comes_late_into_the_data_plane_is_known() {
    // The hardware takes two seconds, longer than from one look at the counters to the next.
    let mut profile = hardware(10, WhenFull::Refuse);
    if let Some(hardware) = &mut profile.hardware {
        hardware.add = AddCost::any_order(Curve::constant(2e6));
    }
    profile.timeouts = Timeouts { scan_period_us: 1e5, counter_period_us: 0.0 };
    for version in VERSIONS {
        let mut world = World::new(&profile, Method::Full, version);
        let fields = FlowModFields {
            idle_timeout_s: 10,
            flags: FLOW_MOD_SEND_FLOW_REMOVED,
            ..FlowModFields::default()
        };
        world.says(rule(0x0200_0000_0002, fields));
        world.run_for(3_000 * MS);
        world.frame(1, &frame(1));
        let last = world.now;
        world.run_for(40_000 * MS);
        let [(at, _)] = removed(&world)[..] else { panic!("{:?}", world.heard) };
        assert!((10_000 * MS..11_000 * MS).contains(&(at - last)), "{version}: {}", at - last);
    }
}

fn spilling() -> Profile {
    let software = Software {
        when: SoftwareUse::WhenFull,
        forward_bits_per_s: Some(4e6),
        promotion: Some(Promotion { period_us: 1e6, batch_rules: 5, order: PromotionOrder::Oldest }),
        ..Software::default()
    };
    Profile { software: Some(software), ..hardware(1, WhenFull::Spill) }
}

#[test]
fn rules_in_software_have_a_meter_until_they_move_to_hardware() {
    let mut world = World::new(&spilling(), Method::Full, Version::V1_3);
    world.says(add(1));
    world.says(add(2));
    world.run_for(10 * MS);
    let rules = |world: &World| -> Vec<(u8, bool)> {
        let of = |(_, message): &(u64, Message)| match &message.body {
            Body::FlowMod(of) => {
                Some((of.command, of.instructions.iter().any(|it| matches!(it, Instruction::Meter(_)))))
            }
            _ => None,
        };
        world.got.iter().filter_map(of).collect()
    };
    assert_eq!(rules(&world), [(FLOW_ADD, false), (FLOW_ADD, true)]);
    let ReplyBody::Flow(shown) = statistics(&mut world, all_rules()) else { panic!("rules") };
    assert!(shown.iter().all(|rule| rule.instructions == apply(vec![Action::output(PortNo(2))])));
    let ReplyBody::Meter(meters) = statistics(&mut world, RequestBody::Meter(METER_ALL)) else {
        panic!("meters")
    };
    assert_eq!(meters, [], "the meter is the proxy's own");
    world.got.clear();
    world.says(rule(1, FlowModFields { command: FLOW_DELETE, ..FlowModFields::default() }));
    world.run_for(2_000 * MS);
    assert_eq!(rules(&world), [(FLOW_DELETE_STRICT, false), (FLOW_MODIFY_STRICT, false)]);
    assert_eq!((world.proxy.counters().unmetered, world.errors()), (0, vec![]));
}

#[test]
fn without_meters_rules_in_software_are_counted() {
    let mut world = World::new(&spilling(), Method::Full, Version::V1_0);
    world.says(add(1));
    world.says(add(2));
    world.run_for(10 * MS);
    assert_eq!((world.rules(), world.proxy.counters().unmetered), (2, 1));
}

#[test]
fn statistics_show_the_target() {
    let mut profile = hardware(511, WhenFull::Refuse);
    profile.switch.vendor = "Fulcrum".to_owned();
    profile.switch.hardware = "Monaco".to_owned();
    profile.switch.firmware = "1.0.1".to_owned();
    profile.packet_in.buffers_packets = Some(77);
    for version in VERSIONS {
        let mut world = World::new(&profile, Method::Full, version);
        world.says(rule(
            1,
            FlowModFields { idle_timeout_s: 9, hard_timeout_s: 8, ..FlowModFields::default() },
        ));
        let xid = world.says(Body::FeaturesRequest);
        world.run_for(10 * MS);
        let features = world.heard.iter().find(|(_, message)| message.xid == xid).unwrap();
        let Body::FeaturesReply(features) = &features.1.body else { panic!("features") };
        assert_eq!(features.n_buffers, 77);
        let ReplyBody::Desc(desc) = statistics(&mut world, RequestBody::Desc) else {
            panic!("a description")
        };
        let desc = [desc.mfr_desc.as_str(), &desc.hw_desc, &desc.sw_desc];
        assert_eq!(desc, ["Fulcrum", "Monaco", "1.0.1"]);
        let ReplyBody::Table(tables) = statistics(&mut world, RequestBody::Table) else { panic!("tables") };
        let size = if version == Version::V1_0 { 511 } else { 0 };
        assert_eq!((tables[0].active_count, tables[0].max_entries), (1, size));
        if version == Version::V1_3 {
            let ReplyBody::TableFeatures(tables) =
                statistics(&mut world, RequestBody::TableFeatures(Vec::new()))
            else {
                panic!("features of tables")
            };
            assert_eq!(tables[0].max_entries, 511);
        }
        let ReplyBody::Flow(rules) = statistics(&mut world, all_rules()) else { panic!("rules") };
        let timeouts: Vec<_> = rules.iter().map(|rule| (rule.idle_timeout_s, rule.hard_timeout_s)).collect();
        assert_eq!(timeouts, [(9, 8)], "{version}");
    }
}

#[test]
fn a_session_begins_with_an_empty_switch() {
    let mut world = World::new(&hardware(5, WhenFull::Refuse), Method::Full, Version::V1_3);
    world.says(add(1));
    world.run_for(10 * MS);
    assert_eq!(world.rules(), 1);
    let mut out = proxy::Commands::default();
    let _ = world.proxy.on_event(world.now, proxy::Event::Ended, &mut out);
    world.says(Body::FeaturesRequest);
    world.run_for(10 * MS);
    assert_eq!((world.rules(), removed(&world), world.errors()), (0, vec![], vec![]));
    assert_eq!(world.proxy.counters().sessions, 2);
}

#[test]
fn bundles_are_refused() {
    let mut world = World::new(&hardware(5, WhenFull::Refuse), Method::Full, Version::V1_3);
    let open = BundleControl { bundle_id: 1, control: BUNDLE_OPEN_REQUEST, flags: 0, properties: Vec::new() };
    let xid = world.says(Body::BundleControl(open));
    world.run_for(10 * MS);
    assert_eq!(world.errors(), [(xid, 1, 3)]);
}

#[test]
fn what_the_switch_refuses_is_not_in_the_tables() {
    let mut world = World::new(&hardware(1, WhenFull::Refuse), Method::Full, Version::V1_3);
    let to_no_group = vec![Instruction::ApplyActions(vec![Action::Group(9)])];
    let xid = world.says(Body::FlowMod(FlowModFields::default().with(matching(1), to_no_group)));
    world.run_for(10 * MS);
    assert_eq!(world.errors(), [(xid, 2, 9)], "OFPBAC_BAD_OUT_GROUP, from the switch");
    world.says(add(2));
    world.run_for(10 * MS);
    assert_eq!((world.errors().len(), world.rules()), (1, 1), "its place is free");
}

#[test]
fn a_rule_whose_group_is_deleted_frees_its_place() {
    let mut world = World::new(&hardware(1, WhenFull::Refuse), Method::Full, Version::V1_3);
    let group = |command| GroupMod { command, group_type: GROUP_TYPE_ALL, group_id: 5, buckets: Vec::new() };
    world.says(Body::GroupMod(group(0)));
    let to_group = vec![Instruction::ApplyActions(vec![Action::Group(5)])];
    let fields = FlowModFields { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..FlowModFields::default() };
    world.says(Body::FlowMod(fields.with(matching(1), to_group)));
    world.run_for(10 * MS);
    world.says(Body::GroupMod(group(2)));
    world.run_for(10 * MS);
    let reasons: Vec<u8> = removed(&world).iter().map(|(_, reason)| *reason).collect();
    assert_eq!((reasons, world.rules()), (vec![3], 0));
    world.says(add(2));
    world.run_for(10 * MS);
    assert_eq!((world.errors(), world.rules()), (vec![], 1));
}

#[test]
fn a_table_miss_rule_takes_part_like_any_other() {
    let mut world = World::new(&hardware(1, WhenFull::Refuse), Method::Full, Version::V1_3);
    table_miss(&mut world, 128);
    let xid = world.says(add(1));
    world.run_for(10 * MS);
    assert_eq!(world.errors(), [(xid, 5, 1)]);
}
