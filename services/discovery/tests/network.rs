//! The engine on a network in memory: are the links in the view those that there are?
//!
//! Attacks come first, then failures, then random networks and failures from a seed. Nothing here sleeps: time is a number.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod model;

use discovery::frame::Signer;
use discovery::time::DiscoverySettings;
use discovery_contract::Refusal;
use model::{Network, at};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::BTreeSet;
use view::{ConnectPoint, Key, LinkId, LinkKind, LinkState, Object};

/// The default interval.
const INTERVAL_MS: u64 = 3_000;

/// Switches 1 to `switches` in a ring: port 2 leads to port 1 of the next one, and port 9 has a host.
fn ring(switches: u64) -> Network {
    let mut network = Network::new(DiscoverySettings::default());
    for switch in 1..=switches {
        network.cable(at(switch, 2), at(switch % switches + 1, 1));
        network.edge(at(switch, 9));
    }
    network
}

fn settled_ring(switches: u64) -> Network {
    let mut network = ring(switches);
    network.connect_all();
    network.run_for_ms(2 * INTERVAL_MS);
    assert_eq!(network.found(), network.truth());
    network
}

fn state_of(network: &Network, from: ConnectPoint, to: ConnectPoint) -> Option<LinkState> {
    match &network.view.get(&Key::Link(LinkId { from, to }))?.object {
        Object::Link(link) => Some(link.state),
        _ => None,
    }
}

#[test]
fn a_forged_a_replayed_and_a_damaged_probe_make_no_link_and_are_reported_with_their_place() {
    let mut network = settled_ring(4);
    let truth = network.truth();
    let recorded = network.sent.iter().rev().find(|(_, from, _)| *from == at(2, 9)).unwrap().2.clone();
    let lldp = network.sent.iter().find(|(_, from, _)| *from == at(2, 2)).unwrap().2.clone();
    // A host makes up a probe with a key of its own.
    let probe = discovery::frame::Probe { kind: LinkKind::Direct, from: at(2, 9), stamp: 1 };
    let forged = Signer { key: [0; 32], run: 77 }.write(&probe, flow::MacAddr::from_u64(1));
    network.host_sends(at(4, 9), &forged);
    // It sends one again that passed long ago.
    network.run_for_ms(10 * INTERVAL_MS);
    network.host_sends(at(4, 9), &recorded);
    network.host_sends(at(4, 9), &lldp);
    network.host_sends(at(3, 9), &lldp[..lldp.len() - 9]);
    assert_eq!(network.found(), truth);
    let told: Vec<_> = network.incidents.iter().map(|it| (it.refusal, it.at, it.claimed)).collect();
    assert_eq!(
        told,
        [
            (Refusal::Forged, at(4, 9), Some(at(2, 9))),
            (Refusal::Replayed, at(4, 9), Some(at(2, 9))),
            (Refusal::Unsigned, at(3, 9), Some(at(2, 2))),
        ]
    );
    let counts = network.engine.counts();
    assert_eq!((counts.forged, counts.replayed, counts.unsigned), (1, 2, 1));
}

#[test]
fn a_probe_is_believed_once_so_a_host_that_copies_it_makes_no_second_link() {
    let mut network = settled_ring(4);
    network.run_for_ms(2 * INTERVAL_MS);
    // The copy of a probe that has just arrived.
    let (_, _, fresh) = network.sent.iter().rev().find(|(_, from, _)| *from == at(1, 2)).unwrap().clone();
    network.run_for_ms(1);
    network.host_sends(at(3, 9), &fresh);
    assert_eq!(network.found(), network.truth());
    assert_eq!(network.incidents.last().unwrap().refusal, Refusal::Replayed);
}

#[test]
fn a_link_goes_down_with_a_port_at_once() {
    let mut network = settled_ring(4);
    network.set_live(at(2, 2), false);
    for (from, to) in [(at(2, 2), at(3, 1)), (at(3, 1), at(2, 2))] {
        assert_eq!(state_of(&network, from, to), Some(LinkState::Down));
    }
    network.run_for_ms(1);
    network.set_live(at(2, 2), true);
    network.run_for_ms(5);
    assert_eq!(network.found(), network.truth(), "both ends are probed at once");
}

#[test]
fn a_link_goes_down_with_a_switch_at_once_and_nothing_is_removed_but_by_the_operator_or_after_its_time() {
    let mut network = settled_ring(4);
    network.disconnect(2);
    assert_eq!(network.found(), network.truth());
    assert_eq!(state_of(&network, at(1, 2), at(2, 1)), Some(LinkState::Down));
    let mut commands = Vec::new();
    let up: Key = "switch/3".parse().unwrap();
    assert!(network.engine.remove(up, &mut commands).unwrap_err().unwrap().contains("is up"));
    let gone: Key = "switch/9".parse().unwrap();
    assert_eq!(network.engine.remove(gone, &mut commands), Err(None));
    let down: Key = "switch/2".parse().unwrap();
    let notes = [("rack".to_owned(), "7".to_owned())];
    network.engine.annotate(down, notes.clone().into(), &mut commands);
    network.engine.remove(down, &mut commands).unwrap();
    assert!(!network.engine.tables().has(down) && network.engine.tables().links_at(at(1, 2)).is_empty());
    // It comes back with its notes.
    network.connect(2);
    network.run_for_ms(2_000);
    assert_eq!(network.found(), network.truth());
    assert_eq!(network.engine.tables().switch(flow::DatapathId(2)).unwrap().annotations, notes.into());
    network.disconnect(2);
    network.run_for_ms(86_390_000);
    assert!(network.engine.tables().has(down));
    network.run_for_ms(20_000);
    assert!(!network.engine.tables().has(down), "after a day");
}

#[test]
fn a_silent_failure_is_noticed_within_two_intervals_and_one_lost_probe_is_none() {
    for offset_ms in (0..INTERVAL_MS).step_by(170) {
        let mut network = settled_ring(3);
        network.run_for_ms(offset_ms);
        network.set_silent(at(1, 2), true);
        network.run_for_ms(2 * INTERVAL_MS);
        assert_eq!(network.found(), network.truth(), "after {offset_ms}");
        network.set_silent(at(1, 2), false);
        network.run_for_ms(INTERVAL_MS + 100);
        assert_eq!(network.found(), network.truth(), "heals after {offset_ms}");
    }
    let mut network = settled_ring(3);
    for _ in 0..30 {
        network.set_silent(at(1, 2), true);
        network.run_for_ms(INTERVAL_MS / 4);
        network.set_silent(at(1, 2), false);
        network.run_for_ms(INTERVAL_MS);
        assert_eq!(network.found(), network.truth());
    }
}

#[test]
fn links_across_switches_of_others_are_indirect_until_a_cable_is_there() {
    let mut network = Network::new(DiscoverySettings::default());
    network.segment(&[at(1, 1), at(2, 1), at(3, 1)]);
    network.cable(at(1, 2), at(2, 2));
    network.connect_all();
    network.run_for_ms(2 * INTERVAL_MS);
    assert_eq!(network.found(), network.truth());
    assert_eq!(network.found().len(), 8);
    network.set_live(at(3, 1), false);
    assert_eq!(network.found(), network.truth());
    let mut without = Network::new(DiscoverySettings { indirect: false, ..DiscoverySettings::default() });
    without.segment(&[at(1, 1), at(2, 1)]);
    without.connect_all();
    without.run_for_ms(3 * INTERVAL_MS);
    assert!(without.found().is_empty());
}

#[test]
fn a_cable_that_is_moved_ends_its_old_link() {
    let mut network = settled_ring(4);
    network.unplug(at(1, 2));
    network.unplug(at(3, 2));
    network.cable(at(1, 2), at(4, 1));
    network.run_for_ms(2 * INTERVAL_MS);
    assert_eq!(network.found(), network.truth());
    assert_eq!(state_of(&network, at(1, 2), at(2, 1)), Some(LinkState::Down));
}

#[test]
fn two_hundred_and_five_switches_and_their_links_are_found_soon_after_the_last_connection() {
    let mut network = Network::new(DiscoverySettings::default());
    // A ring, and chords: 414 links with both directions.
    for switch in 1..=205 {
        network.cable(at(switch, 1), at(switch % 205 + 1, 2));
        (10..14).for_each(|port| network.edge(at(switch, port)));
    }
    (1..=2).for_each(|number| network.cable(at(number, 3), at(number + 100, 3)));
    for switch in 1..=205 {
        network.connect(switch);
        network.run_for_ms(1);
    }
    network.run_for_ms(200);
    assert_eq!(network.found(), network.truth());
    assert_eq!(network.found().len(), 414);
    let counts = network.engine.counts();
    assert_eq!((counts.switches, counts.links), (205, 414));
    assert_eq!((counts.forged, counts.replayed, counts.unsigned), (0, 0, 0));
    // A quiet network publishes nothing.
    let published = network.published;
    network.run_for_ms(10 * INTERVAL_MS);
    assert_eq!(network.published, published);
}

/// What happens to a random network.
#[derive(Clone, Debug)]
enum Step {
    Connect(u64),
    Disconnect(u64),
    Live(usize, bool),
    Silent(usize, bool),
    Unplug(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..8_u64).prop_map(Step::Connect),
        (1..8_u64).prop_map(Step::Disconnect),
        (any::<usize>(), any::<bool>()).prop_map(|(port, is_live)| Step::Live(port, is_live)),
        (any::<usize>(), any::<bool>()).prop_map(|(port, is_silent)| Step::Silent(port, is_silent)),
        any::<usize>().prop_map(Step::Unplug),
        (0..2_000_u64).prop_map(Step::Wait),
    ]
}

fn take(network: &mut Network, ports: &[ConnectPoint], step: &Step) {
    let port = |index: usize| ports[index % ports.len()];
    match *step {
        Step::Connect(switch) => network.connect(switch),
        Step::Disconnect(switch) => network.disconnect(switch),
        Step::Live(index, is_live) => network.set_live(port(index), is_live),
        Step::Silent(index, is_silent) => network.set_silent(port(index), is_silent),
        Step::Unplug(index) => network.unplug(port(index)),
        Step::Wait(ms) => network.run_for_ms(ms),
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn after_any_failures_the_links_in_the_view_are_those_that_there_are(
        cables in prop::collection::vec((1..8_u64, 1..8_u64), 1..14),
        segment in prop::collection::btree_set(1..8_u64, 0..4),
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut network = Network::new(DiscoverySettings::default());
        let mut ports = Vec::new();
        // The cable of number n has port n at both ends; at one switch, the second end is shifted.
        for (number, (one, two)) in (1..).zip(&cables) {
            let ends = [at(*one, number), at(*two, number + 100)];
            network.cable(ends[0], ends[1]);
            ports.extend(ends);
        }
        let legacy: Vec<ConnectPoint> = segment.iter().map(|switch| at(*switch, 99)).collect();
        network.segment(&legacy);
        network.connect_all();
        for step in &steps {
            take(&mut network, &ports, step);
        }
        network.run_for_ms(2 * INTERVAL_MS + 200);
        prop_assert_eq!(network.found(), network.truth());
        prop_assert_eq!(network.incidents.len(), 0);
        // A cable has two ends.
        let found = network.found();
        let direct: Vec<LinkId> = found.iter().filter(|(_, kind)| **kind == LinkKind::Direct).map(|(id, _)| *id).collect();
        let ends: BTreeSet<ConnectPoint> = direct.iter().map(|id| id.from).collect();
        prop_assert_eq!(direct.len(), ends.len());
    }
}
