//! The meter of rules in software, beside the meters of the controller.

use crate::delays::apply;
use crate::world::{MS, World, settings};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version, stream};
use profile::{Capacity, Hardware, Profile, Software, SoftwareUse, WhenFull};
use proxy::{Commands, Event, Method, Passage, Proxy};

const OWN: u32 = 60_000;
const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

/// A target with one rule in hardware and others in software.
fn profile() -> Profile {
    let software =
        Software { when: SoftwareUse::WhenFull, forward_bits_per_s: Some(4e6), ..Software::default() };
    let hardware =
        Hardware { capacities: vec![Capacity::any(1)], when_full: WhenFull::Spill, ..Hardware::default() };
    Profile { software: Some(software), hardware: Some(hardware), ..Profile::null() }
}

/// That target in slow motion.
fn world(slow_motion: u32) -> World {
    World::in_slow_motion(&profile(), Method::Full, Version::V1_3, slow_motion)
}

fn meter_mod(command: u16, meter_id: u32) -> Body {
    let band = MeterBand { rate: 7, burst_size: 1, kind: MeterBandKind::Drop };
    let bands = if command == DELETE { Vec::new() } else { vec![band] };
    Body::MeterMod(MeterMod { command, flags: 5, meter_id, bands })
}

fn add(number: u64, meter: Option<u32>) -> Body {
    let mut instructions: Vec<Instruction> = meter.map(Instruction::Meter).into_iter().collect();
    instructions.extend(apply(vec![Action::output(PortNo(2))]));
    Body::FlowMod(FlowModFields::default().with(Match::any().with(Field::EthDst, number), instructions))
}

fn answer(world: &mut World, body: RequestBody) -> ReplyBody {
    let xid = world.says(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    world.run_for(10 * MS);
    match world.heard.iter().find(|(_, message)| message.xid == xid).map(|(_, message)| &message.body) {
        Some(Body::MultipartReply(reply)) => reply.body.clone(),
        other => panic!("{other:?}"),
    }
}

/// The meters that the controller sees.
fn meters(world: &mut World) -> Vec<u32> {
    match answer(world, RequestBody::MeterConfig(METER_ALL)) {
        ReplyBody::MeterConfig(meters) => meters.iter().map(|meter| meter.meter_id).collect(),
        other => panic!("{other:?}"),
    }
}

/// Whether the switch gets the next rule, which is in software, with the meter.
fn is_metered(world: &mut World, number: u64) -> bool {
    world.got.clear();
    world.says(add(number, None));
    world.run_for(10 * MS);
    let [(_, Message { body: Body::FlowMod(of), .. })] = &world.got[..] else { panic!("{:?}", world.got) };
    of.instructions.contains(&Instruction::Meter(OWN))
}

#[test]
fn the_controller_can_neither_change_nor_use_the_meter_of_the_proxy() {
    let mut world = world(1);
    world.says(add(0, None));
    assert!(is_metered(&mut world, 1));
    let xids: Vec<u32> = [ADD, MODIFY, DELETE].map(|command| world.says(meter_mod(command, OWN))).to_vec();
    let rule = world.says(add(2, Some(OWN)));
    world.run_for(10 * MS);
    // OFPMMFC_OUT_OF_METERS, OFPMMFC_UNKNOWN_METER, nothing, OFPMMFC_INVALID_METER.
    let mut errors = world.errors();
    errors.sort_unstable();
    assert_eq!(errors, [(xids[0], 12, 10), (xids[1], 12, 3), (rule, 12, 2)]);
    assert!(is_metered(&mut world, 3));
    assert_eq!((world.rules(), world.proxy.counters().own_errors), (3, 0));
}

#[test]
fn above_the_meter_of_the_proxy_there_is_none() {
    let mut world = world(1);
    world.says(add(0, None));
    let xids: Vec<u32> =
        [ADD, MODIFY, DELETE].map(|command| world.says(meter_mod(command, OWN + 1))).to_vec();
    let rule = world.says(add(2, Some(OWN + 1)));
    // A delete with a band of an unknown kind: a switch that does not look at bands would delete the proxy's meter.
    let mut delete = vec![4, 29, 0, 32, 0, 0, 0, 99, 0, 2, 0, 0];
    delete.extend_from_slice(&OWN.to_be_bytes());
    delete.extend_from_slice(&[0, 9, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    world.says_bytes(&delete);
    world.run_for(10 * MS);
    let mut errors = world.errors();
    errors.sort_unstable();
    assert_eq!(errors, [(xids[0], 12, 10), (xids[1], 12, 3), (rule, 12, 2)]);
    assert!(is_metered(&mut world, 3));
    assert_eq!(world.proxy.counters().own_errors, 0);
}

#[test]
fn the_controller_has_all_other_meters() {
    let mut world = world(1);
    let ReplyBody::MeterFeatures(features) = answer(&mut world, RequestBody::MeterFeatures) else {
        panic!("features")
    };
    assert!(features.max_meter < OWN, "{features:?}");
    world.says(meter_mod(ADD, 1));
    world.says(meter_mod(ADD, OWN - 1));
    assert_eq!((meters(&mut world), world.errors()), (vec![1, OWN - 1], vec![]));
    world.says(meter_mod(DELETE, METER_ALL));
    assert_eq!((meters(&mut world), world.errors()), (vec![], vec![]));
    world.says(add(0, None));
    assert!(is_metered(&mut world, 1), "that of the proxy is still there");
}

#[test]
fn a_switch_that_refuses_the_meter_forwards_at_full_rate_and_that_is_counted() {
    let mut world = world(1);
    let is_add = |message: &&Message| matches!(&message.body, Body::MeterMod(of) if of.command == ADD && of.meter_id == OWN);
    let xid = world.first.iter().find(is_add).unwrap().xid;
    world.switch_says(
        xid,
        Body::Error(ErrorMessage { kind: 12, code: 10, experimenter: None, data: Vec::new() }),
    );
    world.says(add(0, None));
    assert!(!is_metered(&mut world, 1));
    let counters = world.proxy.counters();
    assert_eq!((counters.own_errors, counters.unmetered, world.rules()), (1, 1, 2));
}

/// What the proxy sends to the switch when it hears this.
fn sent(proxy: &mut Proxy, from_switch: bool, xid: u32, body: Body) -> Vec<Message> {
    let (mut bytes, mut out, mut sent) = (Vec::new(), Commands::default(), Vec::new());
    Message { version: Version::V1_3, xid, body }.encode(&mut bytes).unwrap();
    let event = if from_switch { Event::FromSwitch(&bytes) } else { Event::FromController(&bytes) };
    assert_eq!(proxy.on_event(MS, event, &mut out), Passage::Taken);
    let whole = stream::cut(&out.to_switch, |bytes| {
        sent.push(Message::decode(bytes).unwrap());
        true
    });
    assert_eq!((whole.unwrap(), out.to_controller.len()), (out.to_switch.len(), 0));
    sent
}

#[test]
fn rules_that_come_before_the_switch_refuses_the_meter_are_rules_without_it() {
    let mut proxy = Proxy::new(settings(profile(), Method::Full));
    let begin = sent(&mut proxy, false, 1, Body::FeaturesRequest);
    let xid = |of: fn(&Body) -> bool| begin.iter().find(|message| of(&message.body)).unwrap().xid;
    let meter = xid(|body| matches!(body, Body::MeterMod(of) if of.command == ADD));
    let barrier = xid(|body| matches!(body, Body::BarrierRequest));
    for number in 0..2 {
        assert_eq!(sent(&mut proxy, false, 2, add(number, None)), [], "{number}");
    }
    assert!(!proxy.takes_from_controller() && proxy.next_due_ns().is_none());
    let error = ErrorMessage { kind: 12, code: 10, experimenter: None, data: Vec::new() };
    assert_eq!(sent(&mut proxy, true, meter, Body::Error(error)), []);
    let rules = sent(&mut proxy, true, barrier, Body::BarrierReply);
    let instructions = |message: &Message| match &message.body {
        Body::FlowMod(of) => Some(of.instructions.clone()),
        _ => None,
    };
    let rules: Vec<Vec<Instruction>> = rules.iter().filter_map(instructions).collect();
    assert_eq!(rules, vec![apply(vec![Action::output(PortNo(2))]); 2]);
    assert_eq!(proxy.counters().unmetered, 1);
}

#[test]
fn in_slow_motion_the_meter_is_slower() {
    let rate = |slow_motion| {
        let world = world(slow_motion);
        let bands = |message: &Message| match &message.body {
            Body::MeterMod(MeterMod { bands, .. }) => bands.first().map(|band| band.rate),
            _ => None,
        };
        world.first.iter().find_map(bands)
    };
    assert_eq!((rate(1), rate(10)), (Some(4000), Some(400)));
}
