//! The app on figure 1a: leaves 3 and 4, spines 1 and 2, a switch for each server.

use super::*;
use burnet_sdk::testing::Trial;
use burnet_sdk::view::{Key, Link, LinkKind, Port, Switch};
use std::collections::BTreeSet;

const G: u64 = 1_000_000;
/// The hosts C, D, E and F, and their switches.
const HOSTS: [(u64, u64); 4] = [(0xc, 5), (0xd, 7), (0xe, 6), (0xf, 8)];
const HOST_PORT: u32 = 9;
const CABLES: [(u64, u64); 8] = [(3, 1), (3, 2), (4, 1), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4)];
const SETTINGS: &str = r#"{"vnics": [
    {"mac": "00:00:00:00:00:0c", "rate_kbps": 2000000}, {"mac": "00:00:00:00:00:0d", "rate_kbps": 2000000},
    {"mac": "00:00:00:00:00:0e", "rate_kbps": 10000000}, {"mac": "00:00:00:00:00:0f", "rate_kbps": 10000000}]}"#;

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn switch(id: u64, state: SwitchState) -> Object {
    let (annotations, description) = Default::default();
    let openflow = "1.3".to_owned();
    let id = DatapathId(id);
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

/// A port whose speed is a label.
fn port(id: ConnectPoint, speed_kbps: u64) -> Object {
    let (mac, name) = (MacAddr::from_u64(1), format!("port{}", id.port));
    Port { id, name, mac, live: true, enabled: true, speed_kbps, annotations: BTreeMap::new() }.into()
}

/// A link leaves a switch by the port with the number of the switch at its end.
fn link(from: u64, to: u64, state: LinkState) -> Object {
    let end = |switch: u64, peer: u64| point(switch, peer as u32);
    let id = LinkId { from: end(from, to), to: end(to, from) };
    let (found, capacity_kbps, latency_us) = (LinkKind::Direct, 0, None);
    Link { id, found, state, capacity_kbps, latency_us, since_ms: 0, annotations: BTreeMap::new() }.into()
}

fn cable((one, two): (u64, u64), state: LinkState) -> [Object; 2] {
    [link(one, two, state), link(two, one, state)]
}

fn figure(settings: &str) -> Trial<Multipath> {
    let mut trial = Trial::start(settings).unwrap();
    trial.view_put((1..=8).map(|id| switch(id, SwitchState::Up)));
    let inner = CABLES.iter().flat_map(|(one, two)| [point(*one, *two as u32), point(*two, *one as u32)]);
    let outer = HOSTS.iter().map(|(_, at)| point(*at, HOST_PORT));
    trial.view_put(inner.chain(outer).map(|at| port(at, 10 * G)));
    trial.view_put(CABLES.into_iter().flat_map(|ends| cable(ends, LinkState::Up)));
    trial.view_put(HOSTS.map(host));
    trial
}

fn host((number, at): (u64, u64)) -> Object {
    let id = HostId { mac: MacAddr::from_u64(number), vlan: None };
    let (addresses, annotations) = Default::default();
    Host { id, addresses, at: point(at, HOST_PORT), since_ms: 0, configured: false, annotations }.into()
}

fn frame(src: u64, dst: u64) -> Vec<u8> {
    let mac = |number| if number == 0 { [0xff; 6] } else { MacAddr::from_u64(number).0 };
    [&mac(dst)[..], &mac(src), &[0x08, 0x00], &[0; 46]].concat()
}

/// The switches that get rules, in this order.
fn added(lines: &[String]) -> Vec<u64> {
    let lines = lines.iter().filter_map(|line| line.strip_prefix("add-rule of:"));
    lines.map(|line| u64::from_str_radix(&line[..16], 16).unwrap()).collect()
}

/// The labels of the way over a spine, in the direction from leaf 3 to leaf 4.
fn labels(trial: &mut Trial<Multipath>, spine: u64, kbps: u64) -> Vec<String> {
    trial.view_put([port(point(3, spine as u32), kbps), port(point(spine, 4), kbps)])
}

#[test]
fn settings_that_are_none_are_refused() {
    for wrong in [r#"{"speed": 11}"#, r#"{"choose": "best"}"#, r#"{"vnics": [{"mac": "x", "rate_kbps": 1}]}"#]
    {
        assert!(Trial::<Multipath>::start(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn flows_take_the_spine_with_the_most_label_and_move_if_it_falls() {
    let mut trial = figure(SETTINGS);
    // Another tenant has 8 Gb/s by spine 1.
    labels(&mut trial, 1, 2 * G);
    assert_eq!(added(&trial.packet_in(6, HOST_PORT, &frame(0xe, 0xf))), [8, 4, 2, 3, 6]);
    // E to F has all of spine 2, so C to D takes the 2 Gb/s of spine 1.
    assert_eq!(added(&trial.packet_in(5, HOST_PORT, &frame(0xc, 0xd))), [7, 4, 1, 3, 5]);
    // The other tenant moves to spine 2.
    assert!(labels(&mut trial, 1, 10 * G).is_empty(), "nothing is gained yet");
    let moved = labels(&mut trial, 2, 2 * G);
    // E to F gets all of spine 1. Then C to D has nothing there, and takes what is left of spine 2.
    assert_eq!(added(&moved), [8, 4, 1, 3, 6]);
    let deleted = moved.iter().filter(|line| line.starts_with("delete-strict")).count();
    assert_eq!(deleted, 2, "the old spine and the entry of leaf 4: {moved:?}");
    assert_eq!(added(&trial.tick(1)), [7, 4, 2, 3, 5]);
    // Both stay now for a second and more, whatever happens.
    assert!(labels(&mut trial, 1, 0).is_empty());
    labels(&mut trial, 2, 10 * G);
    assert_eq!(added(&trial.tick(3_000)).len(), 5, "E to F moves back");
}

#[test]
fn a_hash_knows_no_label_and_no_move() {
    let mut trial = figure(r#"{"choose": "hash"}"#);
    let by = |spine: u64| [8, 4, spine, 3, 6];
    let chosen = added(&trial.packet_in(6, HOST_PORT, &frame(0xe, 0xf)));
    let spine = chosen[2];
    assert_eq!(chosen, by(spine));
    assert!(labels(&mut trial, spine, 0).is_empty() && trial.tick(10_000).is_empty());
}

#[test]
fn a_flow_that_begins_again_has_another_random_path_and_the_same_hash() {
    let spines = |settings: &str| -> BTreeSet<u64> {
        let mut trial = figure(settings);
        let f = HostId { mac: MacAddr::from_u64(0xf), vlan: None };
        let mut again = |_| {
            let spine = added(&trial.packet_in(6, HOST_PORT, &frame(0xe, 0xf)))[2];
            trial.view_removed([Key::Host(f)]);
            trial.view_put([host(HOSTS[3])]);
            spine
        };
        (0..32).map(&mut again).collect()
    };
    assert_eq!(spines(r#"{"choose": "random"}"#), [1, 2].into());
    assert_eq!(spines(r#"{"choose": "hash"}"#).len(), 1);
}

#[test]
fn a_flow_whose_link_fails_takes_the_other_spine() {
    let mut trial = figure(SETTINGS);
    labels(&mut trial, 1, 2 * G);
    trial.packet_in(6, HOST_PORT, &frame(0xe, 0xf));
    let moved = trial.view_put(cable((3, 2), LinkState::Down));
    assert_eq!(added(&moved), [8, 4, 1, 3, 6]);
    let gone = trial.view_removed([Key::Host(HostId { mac: MacAddr::from_u64(0xf), vlan: None })]);
    assert_eq!(gone.iter().filter(|line| line.starts_with("delete-strict")).count(), 5, "{gone:?}");
}

#[test]
fn a_switch_that_restarted_gets_the_rules_of_its_flows_again() {
    let mut trial = figure(SETTINGS);
    labels(&mut trial, 1, 2 * G);
    trial.packet_in(6, HOST_PORT, &frame(0xe, 0xf));
    assert!(trial.view_put([switch(8, SwitchState::Down)]).is_empty());
    let lines = trial.view_put([switch(8, SwitchState::Up)]);
    assert!(lines[0].starts_with("delete-rule "), "{lines:?}");
    assert_eq!(added(&lines), [8, 4, 2, 3, 6]);
    assert!(trial.view_put([switch(1, SwitchState::Down)]).is_empty());
    assert!(added(&trial.view_put([switch(1, SwitchState::Up)])).is_empty(), "no flow is there");
}

#[test]
fn flows_of_a_vnic_share_its_rate_until_one_loses_its_path() {
    let mut trial = figure(r#"{"vnics": [{"mac": "00:00:00:00:00:0c", "rate_kbps": 4000000}]}"#);
    let uplink = LinkId { from: point(5, 3), to: point(3, 5) };
    let rates = |trial: &Trial<Multipath>| {
        let flows = trial.app().flows.len();
        (flows, trial.app().balancer.load(&uplink))
    };
    trial.packet_in(5, HOST_PORT, &frame(0xc, 0xd));
    trial.packet_in(5, HOST_PORT, &frame(0xc, 0xe));
    assert_eq!(rates(&trial), (2, 4_000_000_000));
    trial.view_put(cable((7, 4), LinkState::Down));
    assert_eq!(rates(&trial), (1, 4_000_000_000), "the other flow has the whole rate");
}

#[test]
fn a_broadcast_goes_to_hosts_and_into_no_link() {
    let mut trial = figure(SETTINGS);
    let sent = trial.packet_in(5, HOST_PORT, &frame(0xc, 0));
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(trial.packet_in(3, 5, &frame(0xc, 0)).is_empty(), "from a link");
}
