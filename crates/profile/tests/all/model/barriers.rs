//! What a barrier reply means, for each kind of barrier.

use super::driver::{Caller, MS, rule};
use profile::model::*;
use profile::*;

/// A switch that processes a message in 1 ms and writes a rule in 10 ms, beside its CPU.
fn switch(kind: BarrierKind) -> Profile {
    let mut profile = Profile::null();
    for message in MessageType::ALL {
        profile.cpu.service_mut(message).service_us = Quantiles::constant(1000.0);
    }
    profile.delay.egress_us = Quantiles::constant(50_000.0);
    profile.hardware = Some(Hardware {
        capacities: vec![Capacity::any(100)],
        add: AddCost::any_order(Curve::constant(10_000.0)),
        ..Hardware::default()
    });
    profile.barrier = Barrier { kind, rules_in_order: true };
    profile
}

struct Times {
    barrier: u64,
    data_plane: u64,
    packet_out: u64,
    echo: u64,
}

/// A packet-out, a rule, a barrier and an echo request, all at once.
fn times(kind: BarrierKind) -> Times {
    let mut caller = Caller::new(Model::new(&switch(kind), 1));
    let packet_out = caller.message(0, MessageType::PacketOut);
    caller.add(0, rule(1, 1), Packet::None);
    let barrier = caller.message(0, MessageType::Barrier);
    let echo = caller.message(0, MessageType::Echo);
    caller.finish(u64::MAX);
    let end = |id| caller.end_of(id).unwrap().0 / MS;
    Times {
        barrier: end(barrier),
        data_plane: caller.first_shown(RuleId(1)).unwrap().0 / MS,
        packet_out: end(packet_out),
        echo: end(echo),
    }
}

#[test]
fn an_honest_barrier_waits_for_the_data_plane_and_for_packets() {
    let Times { barrier, data_plane, packet_out, echo } = times(BarrierKind::Honest);
    assert_eq!((data_plane, packet_out), (12, 51));
    assert_eq!((barrier, echo), (51, 52), "what comes after it waits");
}

#[test]
fn an_early_barrier_waits_for_the_cpu_alone() {
    let late = Quantiles::constant(200_000.0);
    let Times { barrier, data_plane, packet_out, echo } = times(BarrierKind::Early(late));
    assert_eq!((barrier, echo), (3, 4));
    assert_eq!((data_plane, packet_out), (212, 51));
}

#[test]
fn a_barrier_that_orders_nothing_is_answered_by_its_rank() {
    let mut profile = switch(BarrierKind::NotOrdering(Quantiles::constant(0.0)));
    for message in [MessageType::Add, MessageType::PacketOut] {
        profile.cpu.service_mut(message).rank = 1;
    }
    let mut caller = Caller::new(Model::new(&profile, 1));
    caller.message(0, MessageType::PacketOut);
    let add = caller.add(0, rule(1, 1), Packet::None);
    let barrier = caller.message(0, MessageType::Barrier);
    caller.finish(u64::MAX);
    assert!(caller.end_of(barrier).unwrap().0 < caller.end_of(add).unwrap().0);
}

#[test]
fn rules_reach_the_data_plane_in_another_order_if_the_switch_reorders() {
    let swaps = |rules_in_order| {
        let late = Quantiles::new(&[(0.0, 0.0), (1.0, 400_000.0)]).unwrap();
        let mut profile = switch(BarrierKind::NotOrdering(late));
        profile.barrier.rules_in_order = rules_in_order;
        let mut caller = Caller::new(Model::new(&profile, 1));
        (0..50).for_each(|number| {
            caller.add(0, rule(number, 1), Packet::None);
        });
        caller.finish(u64::MAX);
        let times: Vec<u64> = (0..50).map(|number| caller.first_shown(RuleId(number)).unwrap().0).collect();
        times.windows(2).filter(|pair| pair[0] > pair[1]).count()
    };
    assert_eq!(swaps(true), 0);
    assert!(swaps(false) > 10, "{}", swaps(false));
}

#[test]
fn packet_ins_do_not_wait_for_a_barrier() {
    let mut caller = Caller::new(Model::new(&switch(BarrierKind::Honest), 1));
    caller.message(0, MessageType::PacketOut);
    let barrier = caller.message(0, MessageType::Barrier);
    let echo = caller.message(0, MessageType::Echo);
    let packet_in = caller.miss(10 * MS);
    caller.finish(u64::MAX);
    assert_eq!(caller.end_of(packet_in).unwrap().0, 11 * MS);
    assert_eq!(caller.end_of(barrier).unwrap().0, 51 * MS);
    assert_eq!(caller.end_of(echo).unwrap().0, 52 * MS);
}
