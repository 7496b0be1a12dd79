//! Agents in virtual time, on a fluid network: shares at 10 Gb/s after 5 ms, what is lent, and what a receiver's silence means.
//!
//! Servers have NICs of 10 Gb/s. A sender's NIC divides as HTB does. A receiver's NIC, and a link between the switches, carry of
//! each flow the same part if they get too much. Datagrams of agents take 50 µs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod network;

use edge::agent::FEEDBACK_LIFE_NS;
use edge::protocol::NO_CAP;
use edge::shares::{Claim, Crossing, UNLIMITED_BPS, on_links};
use network::{G, MS, Network, SERVICE, Wire, flow};

/// A is VNIC 1, B is 2, and so on. Figure 1: servers 1 (A, C), 2 (E), 3 (B, D), 4 (F).
const A: u32 = 1;
const B: u32 = 2;
const C: u32 = 3;
const D: u32 = 4;
const E: u32 = 5;
const F: u32 = 6;

/// Figure 1. `wire` says which flows share a link between the switches.
fn figure(wire: Wire) -> Network {
    Network::new(
        &[(A, 1, 8 * G), (B, 3, 8 * G), (C, 1, 2 * G), (D, 3, 2 * G), (E, 2, 10 * G), (F, 4, 10 * G)],
        wire,
    )
}

/// Whether all rates are within 5 % of their shares, which are in gigabits a second.
fn is_near(network: &Network, expected: &[(u32, u32, f64)]) -> bool {
    expected.iter().all(|(from, to, gigabits)| {
        let rate = network.rate(flow(*from, *to)) / G as f64;
        (rate - gigabits).abs() <= 0.05 * gigabits
    })
}

fn near(network: &Network, expected: &[(u32, u32, f64)]) {
    let rates: Vec<String> = expected
        .iter()
        .map(|(from, to, share)| {
            format!("{from} to {to}: {:.3} Gb/s of {share}", network.rate(flow(*from, *to)) / G as f64)
        })
        .collect();
    println!("{}", rates.join(", "));
    assert!(is_near(network, expected), "{}", rates.join(", "));
}

/// Five milliseconds pass, and then the shares are there. Prints since when.
fn settles(network: &mut Network, expected: &[(u32, u32, f64)]) {
    let mut since = None;
    for ms in 1..=5 {
        network.run(MS);
        since = if is_near(network, expected) { since.or(Some(ms)) } else { None };
    }
    println!("within 5 % from the window on that ends at {since:?} ms");
    near(network, expected);
}

#[test]
fn figure_two_is_10_then_10_and_10_then_8_10_and_2() {
    let mut network = figure(Wire::Separate);
    network.start(flow(A, B), UNLIMITED_BPS);
    settles(&mut network, &[(A, B, 10.0)]);
    network.start(flow(E, F), UNLIMITED_BPS);
    settles(&mut network, &[(A, B, 10.0), (E, F, 10.0)]);
    network.start(flow(C, D), UNLIMITED_BPS);
    settles(&mut network, &[(A, B, 8.0), (E, F, 10.0), (C, D, 2.0)]);
    // It stays so.
    for _ in 0..20 {
        settles(&mut network, &[(A, B, 8.0), (E, F, 10.0), (C, D, 2.0)]);
    }
    // What C needs no more is lent to A.
    network.stop(flow(C, D));
    settles(&mut network, &[(A, B, 10.0), (E, F, 10.0)]);
}

#[test]
fn a_receiver_shares_its_nic_among_senders_of_several_servers() {
    // All send to VNIC 9 on server 9.
    let vnics = [(1, 1, 5 * G), (2, 2, 5 * G), (3, 3, 5 * G), (4, 4, 5 * G), (9, 9, 10 * G)];
    let mut network = Network::new(&vnics, Wire::Separate);
    for sender in 1..=4u32 {
        network.start(flow(sender, 9), UNLIMITED_BPS);
        let share = 10.0 / f64::from(sender);
        let expected: Vec<(u32, u32, f64)> = (1..=sender).map(|sender| (sender, 9, share)).collect();
        settles(&mut network, &expected);
    }
    // One of them wants less, and the others share the rest.
    network.start(flow(4, 9), G);
    settles(&mut network, &[(1, 9, 2.95), (2, 9, 2.95), (3, 9, 2.95), (4, 9, 1.0)]);
}

#[test]
fn senders_whose_packets_a_full_nic_drops_get_their_shares_too() {
    let vnics = [(1, 1, 10 * G), (2, 2, 10 * G), (3, 3, 10 * G), (9, 9, 10 * G)];
    let mut network = Network::new(&vnics, Wire::Separate);
    network.is_unfair = true;
    for sender in 1..=3u32 {
        network.start(flow(sender, 9), UNLIMITED_BPS);
        let share = 10.0 / f64::from(sender);
        let expected: Vec<(u32, u32, f64)> = (1..=sender).map(|sender| (sender, 9, share)).collect();
        settles(&mut network, &expected);
    }
}

#[test]
fn guarantees_of_receivers_hold_against_senders_of_other_slices() {
    // Server 3 has B with 8 and D with 2; A and C are on servers of their own.
    let vnics = [(A, 1, 8 * G), (B, 3, 8 * G), (C, 2, 2 * G), (D, 3, 2 * G)];
    for is_unfair in [false, true] {
        let mut network = Network::new(&vnics, Wire::Separate);
        network.is_unfair = is_unfair;
        network.start(flow(A, B), UNLIMITED_BPS);
        settles(&mut network, &[(A, B, 10.0)]);
        network.start(flow(C, D), UNLIMITED_BPS);
        settles(&mut network, &[(A, B, 8.0), (C, D, 2.0)]);
        network.run(50 * MS);
        near(&network, &[(A, B, 8.0), (C, D, 2.0)]);
        // One that wants less than its guarantee leaves the rest.
        network.start(flow(C, D), G / 2);
        settles(&mut network, &[(A, B, 9.3), (C, D, 0.5)]);
    }
}

#[test]
fn a_strict_vnic_is_capped() {
    let mut network = Network::strict(&[(A, 1, 8 * G), (B, 3, 8 * G)]);
    network.start(flow(A, B), UNLIMITED_BPS);
    settles(&mut network, &[(A, B, 8.0)]);
}

#[test]
fn without_feedback_for_a_second_a_flow_has_its_guarantee() {
    let mut network = figure(Wire::Separate);
    network.start(flow(A, B), UNLIMITED_BPS);
    settles(&mut network, &[(A, B, 10.0)]);
    network.is_deaf = true;
    network.run(FEEDBACK_LIFE_NS / 2);
    near(&network, &[(A, B, 10.0)]);
    network.run(FEEDBACK_LIFE_NS);
    near(&network, &[(A, B, 8.0)]);
    network.is_deaf = false;
    network.run(150 * MS);
    near(&network, &[(A, B, 10.0)]);
}

#[test]
fn an_overbooked_link_is_shared_in_proportion_by_caps_of_the_service() {
    let mut network = figure(Wire::Shared([flow(A, B), flow(E, F)]));
    for (from, to) in [(A, B), (E, F), (C, D)] {
        network.start(flow(from, to), UNLIMITED_BPS);
    }
    network.run(10 * MS);
    // What the service computes of the rules in the switches: the NIC of A and C, that of B and D, and s3 to s1.
    let claim = |guarantee_bps| Claim { guarantee_bps, demand_bps: UNLIMITED_BPS };
    let flows = [
        Crossing { claim: claim(8 * G), links: &[0, 1, 2] },
        Crossing { claim: claim(10 * G), links: &[2] },
        Crossing { claim: claim(2 * G), links: &[0, 1] },
    ];
    let caps = on_links(&[10 * G; 3], &flows);
    network.cap(1, flow(A, B), caps[0]);
    network.cap(2, flow(E, F), caps[1]);
    settles(&mut network, &[(A, B, 4.4), (E, F, 5.6), (C, D, 5.6)]);
    network.cap(1, flow(A, B), NO_CAP);
    network.cap(2, flow(E, F), NO_CAP);
    network.stop(flow(C, D));
    network.stop(flow(E, F));
    settles(&mut network, &[(A, B, 10.0)]);
}

#[test]
fn the_service_gets_all_reports_in_order_although_datagrams_are_lost() {
    let mut network = figure(Wire::Separate);
    network.loss_permille = 300;
    network.start(flow(A, B), UNLIMITED_BPS);
    network.run(30 * MS);
    network.start(flow(C, D), UNLIMITED_BPS);
    network.run(100 * MS);
    network.stop(flow(A, B));
    network.run(2500 * MS);
    network.loss_permille = 0;
    network.run(500 * MS);
    let told: Vec<String> =
        network.reported(3).into_iter().filter(|line| !line.starts_with(" rate")).collect();
    let expected = [" reset", " began 1>2=", " began 3>4=", " ended 1>2="];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    assert!(told.iter().zip(expected).all(|(told, expected)| told.starts_with(expected)), "{told:?}");
    assert!(network.reported(1).iter().any(|line| line.starts_with(" shaped 1>2=")));
    assert_eq!(network.refusals(), Vec::<String>::new(), "{SERVICE:?} and agents are honest");
}
