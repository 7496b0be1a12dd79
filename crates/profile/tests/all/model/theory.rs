//! The queue against queueing theory. Runs come from a seed, so the statistics are the same each time.

use super::driver::{Caller, Draw, MS, SECOND};
use profile::*;

/// The mean time between a packet's arrival and its packet-in, in ms, with Poisson arrivals at this share of the CPU's rate.
fn mean_delay_ms(service: &Quantiles, load: f64, packets: u64) -> f64 {
    let mut profile = Profile::null();
    profile.cpu.packet_in.service_us = service.clone();
    let mut caller = Caller::new(Model::new(&profile, 1));
    let between_us = service.mean_us() / load;
    let (mut draw, mut at_us) = (Draw(7), 0.0);
    let mut arrivals = Vec::new();
    for _ in 0..packets {
        at_us += -between_us * (1.0 - draw.unit()).ln();
        let now = (at_us * 1e3) as u64;
        caller.miss(now);
        arrivals.push(now);
    }
    caller.finish(u64::MAX);
    assert_eq!(caller.came.len() as u64, packets);
    let delays = caller.came.iter().zip(&arrivals).map(|((left, _), came)| (left - came) as f64);
    delays.sum::<f64>() / packets as f64 / 1e6
}

#[test]
fn with_equal_service_times_the_wait_is_that_of_an_m_d_1_queue() {
    let service = Quantiles::constant(25_000.0);
    for (load, tolerance) in [(0.5, 0.02), (0.8, 0.03), (0.95, 0.10)] {
        // Pollaczek and Khinchine, without variance.
        let expected = 25.0 * (1.0 + load / (2.0 * (1.0 - load)));
        let got = mean_delay_ms(&service, load, 200_000);
        assert!((got / expected - 1.0).abs() < tolerance, "at {load}: {got} ms, theory says {expected}");
    }
}

#[test]
fn with_spread_service_times_the_wait_is_that_of_an_m_g_1_queue() {
    // Uniform between 10 and 40 ms.
    let service = Quantiles::new(&[(0.0, 10_000.0), (1.0, 40_000.0)]).unwrap();
    let (mean, second_moment): (f64, f64) = (25.0, 25.0 * 25.0 + 30.0 * 30.0 / 12.0);
    for (load, tolerance) in [(0.5, 0.02), (0.9, 0.05)] {
        let expected = mean + load / mean * second_moment / (2.0 * (1.0 - load));
        let got = mean_delay_ms(&service, load, 200_000);
        assert!((got / expected - 1.0).abs() < tolerance, "at {load}: {got} ms, theory says {expected}");
    }
}

#[test]
fn above_saturation_the_cpu_works_at_its_rate_and_the_queue_loses_the_rest() {
    let mut profile = Profile::null();
    profile.cpu.packet_in.service_us = Quantiles::constant(25_000.0);
    profile.cpu.queue_messages = Some(10);
    let mut caller = Caller::new(Model::new(&profile, 1));
    (0..800).for_each(|number| {
        caller.miss(number * 12_500_000);
    });
    caller.finish(u64::MAX);
    let sent = caller.came.iter().filter(|(_, output)| matches!(output, model::Output::PacketIn { .. }));
    // Ten seconds at 40 a second, and what the queue holds at the end.
    assert_eq!(sent.count(), 400 + 10);
}

#[test]
fn polling_delays_flow_set_up() {
    let delay_with = |polls: bool| {
        let mut profile = Profile::null();
        profile.cpu.packet_in.service_us = Quantiles::constant(10_000.0);
        profile.cpu.statistics_entry_us = 100.0;
        let mut caller = Caller::new(Model::new(&profile, 1));
        let mut sum = 0;
        for number in 0..100u64 {
            let now = number * 50 * MS;
            if polls && number % 20 == 0 {
                let id = caller.id();
                let poll =
                    model::Message { entries: 1000, ..model::Message::new(id, MessageType::Statistics) };
                caller.input(now, model::Input::Message(poll));
            }
            let id = caller.miss(now);
            caller.pass_to(now + 50 * MS - 1);
            sum += caller.end_of(id).map_or(SECOND, |(at, _)| at - now);
        }
        sum / 100
    };
    assert_eq!(delay_with(false), 10 * MS);
    assert!(delay_with(true) > 15 * MS, "{}", delay_with(true));
}
