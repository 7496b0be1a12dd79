//! A switch that confirms nothing for a while: what comes meanwhile, and what happens when it confirms again.

use crate::delays::{apply, by_the_model, frame};
use crate::world::{MS, OF_SWITCH, START, World};
use flow::{Action, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use profile::{Capacity, Hardware, Profile, Quantiles, WhenFull};
use proxy::Method;

/// A table without an end, and packet-ins that take up to 90 ms.
fn profile() -> Profile {
    let capacities = vec![Capacity::any(1 << 20)];
    let hardware = Hardware { capacities, when_full: WhenFull::Refuse, ..Hardware::default() };
    let mut profile = Profile { hardware: Some(hardware), ..Profile::null() };
    profile.delay.ingress_us = Quantiles::new(&[(0.0, 2_000.0), (0.7, 9_000.0), (1.0, 90_000.0)]).unwrap();
    profile
}

fn add(number: u64) -> Body {
    let to_port = apply(vec![Action::output(PortNo(2))]);
    Body::FlowMod(FlowModFields::default().with(Match::any().with(Field::EthDst, 1 << 40 | number), to_port))
}

/// The controller sends more rules than the switch may leave without an answer.
fn waiting() -> World {
    let mut world = World::new(&profile(), Method::Full, Version::V1_0);
    world.is_mute = true;
    (0..9_000).for_each(|number| {
        world.says(add(number));
    });
    assert!(world.proxy.waits_for_switch() && world.proxy.answers_before_owed().is_some());
    world
}

#[test]
fn packet_ins_that_come_meanwhile_leave_as_the_model_says_or_when_the_switch_confirms() {
    const CONFIRMS: u64 = START + 250 * MS;
    let mut world = waiting();
    let arrivals: Vec<u64> = (1..=100).map(|number| START + number * 5 * MS).collect();
    for (number, at) in arrivals.iter().enumerate() {
        world.run_until(*at);
        if *at == CONFIRMS {
            assert!(world.packet_ins().is_empty(), "the proxy waits");
            world.unmute();
        }
        world.frame(1, &frame(number as u64));
    }
    world.run_for(1_000 * MS);
    let packet_ins = world.packet_ins();
    let times: Vec<u64> = packet_ins.iter().map(|(at, _)| *at).collect();
    let by_model = by_the_model(&profile(), Method::Full, &arrivals);
    let expected: Vec<u64> = by_model.into_iter().map(|at| at.max(CONFIRMS + OF_SWITCH)).collect();
    assert_eq!(times, expected);
    let in_order = packet_ins.iter().enumerate().all(|(number, (_, it))| it.data == frame(number as u64));
    assert!(in_order && world.rules() == 9_000 && world.proxy.answers_before_owed().is_none());
}

#[test]
fn what_is_late_because_of_the_switch_was_meant_for_its_own_time() {
    let mut world = waiting();
    world.frame(1, &frame(1));
    world.run_for(500 * MS);
    world.released.clear();
    world.unmute();
    world.run_for(10 * MS);
    let of_packet_in = world.released.iter().find(|it| it.base_ns.is_some()).unwrap();
    let meant_ns = by_the_model(&profile(), Method::Full, &[START])[0];
    assert_eq!((of_packet_in.since_ns, of_packet_in.meant_ns), (START, meant_ns));
    assert_eq!(of_packet_in.base_ns, Some(OF_SWITCH));
}

#[test]
fn a_switch_that_takes_no_bytes_gets_none_and_packet_ins_keep_their_times() {
    let mut world = World::new(&profile(), Method::Full, Version::V1_0);
    world.proxy.set_switch_behind(true);
    world.says(add(1));
    world.frame(1, &frame(1));
    world.run_for(300 * MS);
    assert_eq!((world.packet_ins().len(), world.rules()), (0, 0));
    assert!(!world.proxy.takes_from_controller());
    world.proxy.set_switch_behind(false);
    let (begin, packet) = (world.now, frame(2));
    world.frame(1, &packet);
    world.run_for(300 * MS);
    let by_model = by_the_model(&profile(), Method::Full, &[START, begin]);
    let times: Vec<u64> = world.packet_ins().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [begin, by_model[1]]);
    assert_eq!(world.rules(), 1);
}
