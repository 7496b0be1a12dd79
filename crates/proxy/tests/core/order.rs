//! The order of what the controller hears: errors, answers to barriers, and answers to requests behind them.

use crate::delays::apply;
use crate::world::{MS, World};
use flow::{Action, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Version};
use profile::{Capacity, Hardware, Profile, Quantiles, WhenFull};
use proxy::Method;

/// A target whose CPU needs 10 ms for an add, with room for one rule.
fn slow() -> Profile {
    let hardware =
        Hardware { capacities: vec![Capacity::any(1)], when_full: WhenFull::Refuse, ..Hardware::default() };
    let mut profile = Profile { hardware: Some(hardware), ..Profile::null() };
    profile.cpu.add.service_us = Quantiles::constant(10_000.0);
    profile
}

fn add(number: u64) -> Body {
    let to_port = apply(vec![Action::output(PortNo(2))]);
    Body::FlowMod(FlowModFields::default().with(Match::any().with(Field::EthDst, number), to_port))
}

fn order(world: &World) -> Vec<u32> {
    world.heard.iter().map(|(_, message)| message.xid).collect()
}

#[test]
fn what_the_proxy_itself_refuses_waits_for_the_barrier_before_it() {
    let mut world = World::new(&slow(), Method::Full, Version::V1_3);
    world.says(add(1));
    let barrier = world.says(Body::BarrierRequest);
    // A flow mod of Nicira.
    world.says_bytes(&[4, 4, 0, 16, 0, 0, 0, 99, 0, 0, 0x23, 0x20, 0, 0, 0, 13]);
    world.run_for(100 * MS);
    assert_eq!((order(&world), world.errors()), (vec![barrier, 99], vec![(99, 1, 3)]));
}

#[test]
fn a_refusal_of_the_target_waits_for_a_barrier_that_the_switch_has_not_confirmed() {
    let mut profile = slow();
    profile.cpu.add.service_us = Quantiles::constant(0.0);
    let mut world = World::new(&profile, Method::Full, Version::V1_3);
    world.says(add(1));
    let barrier = world.says(Body::BarrierRequest);
    let full = world.says(add(2));
    assert_eq!(order(&world), Vec::<u32>::new(), "the switch has said nothing yet");
    world.run_for(100 * MS);
    assert_eq!((order(&world), world.errors()), (vec![barrier, full], vec![(full, 5, 1)]));
}

#[test]
fn an_answer_of_the_switch_does_not_pass_the_barriers_before_its_request() {
    let mut world = World::new(&Profile { name: "x".to_owned(), ..slow() }, Method::Full, Version::V1_3);
    world.says(add(1));
    let first = world.says(Body::BarrierRequest);
    world.run_for(10 * MS + MS / 2);
    // The switch has the rule, and has not confirmed it yet.
    world.says(Body::FlowMod(
        FlowModFields { command: FLOW_DELETE, ..FlowModFields::default() }
            .with(Match::any().with(Field::EthDst, 1u64), vec![]),
    ));
    let second = world.says(Body::BarrierRequest);
    let echo = world.says(Body::EchoRequest(vec![]));
    world.run_for(100 * MS);
    assert_eq!(order(&world), [first, second, echo]);
}

/// Sends so many flow mods at once. The first is one that the switch refuses.
fn flood(count: u64) -> (World, u32) {
    let capacities = vec![Capacity::any(1 << 20)];
    let hardware = Hardware { capacities, when_full: WhenFull::Refuse, ..Hardware::default() };
    let profile = Profile { hardware: Some(hardware), ..Profile::null() };
    let mut world = World::new(&profile, Method::Full, Version::V1_3);
    let bad = apply(vec![Action::Group(9)]);
    let fields = FlowModFields::default();
    let refused = world.says(Body::FlowMod(fields.with(Match::any().with(Field::EthDst, 0u64), bad)));
    (1..count).for_each(|number| {
        world.says(add(number));
    });
    (world, refused)
}

#[test]
fn an_error_about_the_first_of_many_unanswered_flow_mods_comes_to_the_controller() {
    let (mut world, refused) = flood(20_000);
    assert!(!world.proxy.takes_from_controller(), "the switch has too much to confirm");
    assert!(world.rules() < 10_000, "{}", world.rules());
    world.run_for(100 * MS);
    assert_eq!(world.errors(), [(refused, 2, 9)]);
    assert_eq!((world.rules(), world.proxy.counters().own_errors), (19_999, 0));
    assert!(world.proxy.takes_from_controller());
}

#[test]
fn one_flow_mod_that_becomes_many_is_refused_once() {
    let (mut world, refused) = flood(20_000);
    world.run_for(100 * MS);
    let bad = apply(vec![Action::Group(9)]);
    let modify = FlowModFields { command: FLOW_MODIFY, ..FlowModFields::default() };
    let all = world.says(Body::FlowMod(modify.with(Match::any(), bad)));
    let barrier = world.says(Body::BarrierRequest);
    world.run_for(1_000 * MS);
    assert_eq!(world.errors(), [(refused, 2, 9), (all, 2, 9)]);
    assert_eq!(order(&world).last(), Some(&barrier));
    assert_eq!(world.proxy.counters().own_errors, 0);
}
