//! The paper's method: two independent delays, and quantiles of a real switch that become those of the target.

use super::driver::{Caller, Draw, MS, rule};
use profile::model::*;
use profile::*;

fn target() -> Delay {
    Delay {
        ingress_us: Quantiles::new(&[(0.0, 20_000.0), (0.5, 60_000.0), (0.9, 150_000.0), (1.0, 900_000.0)])
            .unwrap(),
        egress_us: Quantiles::new(&[(0.0, 5_000.0), (0.7, 40_000.0), (1.0, 300_000.0)]).unwrap(),
    }
}

/// The largest distance between the samples' distribution and the table's.
fn ks(mut samples_ns: Vec<u64>, table: &Quantiles) -> f64 {
    samples_ns.sort_unstable();
    let count = samples_ns.len() as f64;
    let distances = samples_ns.iter().enumerate().map(|(index, ns)| {
        let meant = table.cdf(*ns as f64 / 1e3);
        (meant - index as f64 / count).abs().max((meant - (index + 1) as f64 / count).abs())
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn delays_before_a_real_switch_have_the_distribution_of_the_target() {
    let base = Quantiles::new(&[(0.0, 300.0), (0.5, 5_000.0), (1.0, 40_000.0)]).unwrap();
    let mut model = Model::of_paper(&target(), 1).before(&base);
    let (mut draw, mut out, mut delays) = (Draw(1), Vec::new(), Vec::new());
    for number in 0..20_000u64 {
        // Far apart, so that no packet-in waits for the one before.
        let arrived_ns = number * 2000 * MS;
        let observed = (base.at(draw.unit()) * 1e3) as u64;
        let miss = Miss {
            id: MessageId(number),
            arrived_ns,
            length_bytes: 60,
            wanted_bytes: None,
            may_be_buffered: false,
        };
        model.on_input(arrived_ns + observed, Input::Miss(miss), &mut out);
        let leaves = model.next_due_ns().unwrap();
        assert!(leaves >= arrived_ns + observed, "it has not come before");
        model.on_time(leaves, &mut out);
        delays.push(leaves - arrived_ns);
    }
    assert_eq!(out.len(), 20_000);
    let distance = ks(delays, &target().ingress_us);
    assert!(distance < 0.02, "KS {distance}");
}

#[test]
fn a_target_that_is_faster_than_the_real_switch_is_not_waited_for() {
    let slow = Quantiles::constant(800_000.0);
    let mut model = Model::of_paper(&target(), 1).before(&slow);
    let mut out = Vec::new();
    let miss = Miss {
        id: MessageId(1),
        arrived_ns: 0,
        length_bytes: 60,
        wanted_bytes: None,
        may_be_buffered: false,
    };
    model.on_input(950 * MS, Input::Miss(miss), &mut out);
    assert_eq!(model.next_due_ns(), Some(950 * MS));
}

#[test]
fn egress_delays_are_drawn_and_keep_their_order() {
    let mut caller = Caller::new(Model::of_paper(&target(), 1));
    let ids: Vec<MessageId> =
        (0..5000u64).map(|number| caller.add(number * 400 * MS, rule(number, 1), Packet::Given)).collect();
    caller.finish(u64::MAX);
    let delays: Vec<u64> = ids
        .iter()
        .zip(0u64..)
        .map(|(id, number)| caller.end_of(*id).unwrap().0 - number * 400 * MS)
        .collect();
    let distance = ks(delays, &target().egress_us);
    assert!(distance < 0.03, "KS {distance}");
    let mut caller = Caller::new(Model::of_paper(&target(), 1));
    let ids: Vec<MessageId> =
        (0..500u64).map(|number| caller.add(number * MS, rule(number, 1), Packet::Given)).collect();
    caller.finish(u64::MAX);
    let times: Vec<u64> = ids.iter().map(|id| caller.end_of(*id).unwrap().0).collect();
    assert!(times.is_sorted());
    let released = caller.came.iter().filter(|(_, output)| matches!(output, Output::Release { .. })).count();
    assert_eq!(released, 500);
}

#[test]
fn a_barrier_comes_after_everything_before_it_and_before_everything_after_it() {
    let mut caller = Caller::new(Model::of_paper(&target(), 3));
    let before: Vec<MessageId> = (0..20).map(|number| caller.add(0, rule(number, 1), Packet::None)).collect();
    let out = caller.message(0, MessageType::PacketOut);
    let barrier = caller.message(0, MessageType::Barrier);
    let after = [caller.message(0, MessageType::PacketOut), caller.message(0, MessageType::Echo)];
    caller.finish(u64::MAX);
    let place =
        |id: &MessageId| caller.came.iter().position(|(_, o)| super::driver::ends(o) == Some(*id)).unwrap();
    assert!(before.iter().chain([&out]).all(|id| place(id) < place(&barrier)));
    assert!(after.iter().all(|id| place(id) > place(&barrier)));
}

#[test]
fn the_whole_model_before_a_real_switch_counts_the_time_that_this_one_took() {
    // 2 ms in the CPU and 10 to 20 ms of residual delay, before a switch that takes 1 to 5 ms.
    let base = Quantiles::new(&[(0.0, 1000.0), (1.0, 5000.0)]).unwrap();
    let residual = Quantiles::new(&[(0.0, 10_000.0), (1.0, 20_000.0)]).unwrap();
    let mut profile = Profile::null();
    profile.cpu.packet_in.service_us = Quantiles::constant(2000.0);
    profile.delay.ingress_us = residual.clone();
    let mut model = Model::new(&profile, 1).before(&base);
    let (mut draw, mut out, mut delays) = (Draw(1), Vec::new(), Vec::new());
    for number in 0..5000u64 {
        let arrived_ns = number * 100 * MS;
        let now = arrived_ns + (base.at(draw.unit()) * 1e3) as u64;
        let miss = Miss {
            id: MessageId(number),
            arrived_ns,
            length_bytes: 60,
            wanted_bytes: None,
            may_be_buffered: true,
        };
        model.on_input(now, Input::Miss(miss), &mut out);
        while let Some(due) = model.next_due_ns() {
            let before = out.len();
            model.on_time(due, &mut out);
            if out.len() > before {
                delays.push(due - arrived_ns);
            }
        }
    }
    let distance = ks(delays, &residual.plus_us(2000.0));
    assert!(distance < 0.03, "KS {distance}");
}
