//! Delay, rate, queue, loss and order of links, and the times of events.

use super::bench::{Bench, flood, ms};
use emulator::{Change, NetworkEffects};
use openflow::Body;
use std::time::Duration;

#[test]
fn a_ping_takes_as_long_as_its_links() {
    let mut bench = Bench::new("single,2", "delay=5ms");
    bench.ping("h1", "h2", 1);
    assert_eq!(bench.network.next_due(), Some(ms(5)));
    bench.pass(1000);
    // ARP and the ping each cross two links in both directions.
    assert_eq!(bench.round_trips(), [40_000]);
    bench.ping("h1", "h2", 2);
    bench.pass(1000);
    assert_eq!(bench.round_trips(), [20_000]);
}

#[test]
fn a_caller_that_is_late_changes_nothing_about_when_things_happen() {
    let round_trip = |step: u64| {
        let mut bench = Bench::new("linear,3", "delay=3ms,rate=10M");
        bench.ping("h1", "h3", 1);
        (0..1000 / step).for_each(|_| bench.pass(step));
        bench.round_trips()
    };
    assert_eq!(round_trip(1), round_trip(1000));
    assert_eq!(round_trip(1).len(), 1);
}

#[test]
fn a_rate_spreads_frames_and_a_full_queue_drops_them() {
    let mut bench = Bench::new("single,2", "rate=784k,queue=400");
    bench.ping("h1", "h2", 0);
    bench.pass(1000);
    bench.round_trips();
    // A ping has 98 bytes, so each takes a millisecond: four fit into the queue.
    for sequence in 1..=6 {
        bench.ping("h1", "h2", sequence);
    }
    bench.pass(1000);
    assert_eq!(bench.round_trips(), [4_000, 5_000, 6_000, 7_000]);
    let counters = bench.network.link_counters(0).unwrap();
    assert_eq!((counters.forth.dropped_by_queue, counters.back.dropped_by_queue), (2, 0));
    assert_eq!(bench.network.frames_lost(), 2);
}

#[test]
fn a_lossy_link_loses_about_as_many_as_it_is_told_to_and_the_same_each_time() {
    let answered = || {
        let mut bench = Bench::new("single,2", "loss=5%");
        for sequence in 0..2000 {
            bench.ping("h1", "h2", sequence);
            bench.pass(1);
        }
        bench.round_trips().len()
    };
    // Each ping crosses four links, so 81 of a hundred are answered.
    assert!((1500..1740).contains(&answered()), "{}", answered());
    assert_eq!(answered(), answered());
}

#[test]
fn what_is_on_a_link_that_goes_down_is_lost() {
    let mut bench = Bench::new("single,2", "delay=5ms");
    bench.ping("h1", "h2", 1);
    bench.pass(2);
    for up in [false, true] {
        bench.change(Change::Link { link: "h1-s1".into(), up });
    }
    bench.pass(500);
    assert_eq!(bench.network.link_counters(0).unwrap().forth.dropped_by_being_down, 1);
    assert!(bench.round_trips().is_empty());
    bench.pass(1000);
    assert_eq!(bench.round_trips().len(), 1, "the host asks again");
}

#[test]
fn a_better_link_does_not_change_the_order() {
    let mut bench = Bench::new("single,2", "delay=50ms");
    bench.ping("h1", "h2", 1);
    bench.pass(1000);
    bench.ping("h1", "h2", 2);
    bench.change(Change::Quality { link: "s1-h1".into(), quality: "ideal".parse().unwrap() });
    bench.round_trips();
    bench.pass(10);
    bench.ping("h1", "h2", 3);
    bench.pass(1000);
    // The third one is quicker on its own link, and the first link is empty again.
    assert_eq!(bench.round_trips(), [100_000, 150_000]);
}

#[test]
fn a_rule_that_nobody_uses_goes_to_the_second() {
    let mut bench = Bench::new("single,2", "ideal");
    assert_eq!(bench.network.next_due(), None, "nothing is going on");
    bench.say(0, Body::FlowMod(flood(3)));
    assert_eq!(bench.network.next_due(), Some(ms(3000)));
    bench.pass(1000);
    bench.ping("h1", "h2", 1);
    bench.pass(2500);
    assert_eq!(bench.network.next_due(), Some(ms(4000)), "it was used, and so has longer");
    bench.pass(1000);
    let removed = |body: &Body| matches!(body, Body::FlowRemoved(_));
    assert_eq!(bench.effects.messages.iter().filter(|(_, message)| removed(&message.body)).count(), 1);
    assert_eq!(bench.network.next_due(), None);
}

#[test]
fn a_storm_does_not_hold_up_what_is_due_by_the_clock() {
    // A cable from the switch to itself: every broadcast circulates and multiplies.
    let mut topology: emulator::Topology = "single,2".parse().unwrap();
    for ports in [[3, 4], [5, 6]] {
        let [one, two] =
            ports.map(|port| emulator::topology::Endpoint::Switch { index: 0, port: flow::PortNo(port) });
        topology.links.push(emulator::topology::Link { one, two, quality: Default::default() });
    }
    let mut bench = Bench::of(&topology);
    bench.ping("h1", "h2", 1);
    let mut other = flood(1);
    (other.priority, other.matching) = (5, flow::Match::any().with(flow::Field::EthType, 0x1234u16));
    bench.say(0, Body::FlowMod(other));
    let mut effects = NetworkEffects::default();
    for tenth in 1..=20 {
        assert!(bench.network.carry(1000, Duration::from_millis(100 * tenth), &mut effects));
    }
    assert!(effects.messages.iter().any(|(_, message)| matches!(message.body, Body::FlowRemoved(_))));
    assert!(bench.network.frames_lost() == 0 || bench.network.next_due().is_some());
}

#[test]
fn a_tap_copies_what_passes_it_and_nothing_else() {
    let mut bench = Bench::new("single,3", "delay=1ms");
    bench.tap("h2");
    bench.ping("h1", "h2", 1);
    bench.pass(100);
    let told: Vec<_> = bench.captured().iter().map(|copy| (copy.at.as_millis(), copy.outgoing)).collect();
    assert_eq!(told, [(2, false), (2, true), (6, false), (6, true)]);
}
