//! The app with a view of some switches and hosts: what it answers, and where packets go by its rules.

mod network;

use super::*;
use burnet_sdk::testing::Trial;
use burnet_sdk::view::{HostId, Key, Link, LinkId, LinkKind, LinkState, Port, Switch, SwitchState};
use burnet_sdk::{MacAddr, PortNo};
use std::collections::BTreeMap;

const SETTINGS: &str = r#"{"interfaces": [
        {"network": "10.0.1.0/24", "gateway": "10.0.1.1"},
        {"network": "10.0.2.0/24", "gateway": "10.0.2.1", "vlan": 2},
        {"network": "fd00:1::/64", "gateway": "fd00:1::1"}],
    "routes": [{"to": "192.168.0.0/16", "via": "10.0.2.9"}]}"#;

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn switch(id: u64, openflow: &str) -> Object {
    let (annotations, description) = Default::default();
    let (id, state, openflow) = (DatapathId(id), SwitchState::Up, openflow.to_owned());
    Switch { id, state, openflow, n_tables: 4, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

fn port(id: ConnectPoint) -> Object {
    let (mac, name) = (MacAddr([0; 6]), String::new());
    Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations: BTreeMap::new() }.into()
}

fn link(from: ConnectPoint, to: ConnectPoint) -> Object {
    let (id, found, state) = (LinkId { from, to }, LinkKind::Direct, LinkState::Up);
    let (annotations, latency_us) = (BTreeMap::new(), None);
    Link { id, found, state, capacity_kbps: 0, latency_us, since_ms: 0, annotations }.into()
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

fn host(number: u8, vlan: Option<u16>, at: ConnectPoint, address: &str) -> Object {
    let (id, addresses) = (HostId { mac: mac(number), vlan }, vec![address.parse().unwrap()]);
    Host { id, addresses, at, since_ms: 0, configured: false, annotations: BTreeMap::new() }.into()
}

/// One switch with three ports.
fn trial() -> Trial<Router> {
    let mut trial = Trial::<Router>::start(SETTINGS).unwrap();
    trial.view_put([switch(1, "1.3"), port(point(1, 1)), port(point(1, 2)), port(point(1, 3))]);
    trial
}

fn header(to: MacAddr, vlan: Option<u16>, eth_type: u16) -> Vec<u8> {
    let tag = vlan.map_or_else(Vec::new, |vlan| [frame::TAG.to_be_bytes(), vlan.to_be_bytes()].concat());
    [&to.0[..], &mac(1).0, &tag, &eth_type.to_be_bytes()].concat()
}

fn arp_request(vlan: Option<u16>, asker: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let packet = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac(1).0, &asker, &[0; 6], &target, &[0; 18]].concat();
    [header(MacAddr([0xff; 6]), vlan, frame::ARP), packet].concat()
}

/// A packet for the router's Ethernet address: an echo request, or another protocol.
fn packet(from: [u8; 4], to: [u8; 4], ttl: u8, protocol: u8) -> Vec<u8> {
    let mut ip = [&[0x45, 0, 0, 32, 0, 7, 0, 0, ttl, protocol, 0, 0][..], &from, &to].concat();
    let sum = frame::checksum(&[&ip]).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    [header(MAC, None, frame::IPV4), ip, vec![8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]].concat()
}

const HERE: &str = "packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:1]";
const OTHERS: &str = "packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:1,output:2,output:3]";

#[test]
fn wrong_settings_are_refused_with_the_name() {
    let why = Trial::<Router>::start(r#"{"interface": []}"#).err().unwrap();
    assert!(why.contains("unknown field `interface`"), "{why}");
    let why =
        Trial::<Router>::start(r#"{"interfaces": [{"network": "10.0.1.0/24", "gateway": "10.0.2.1"}]}"#);
    assert!(why.err().unwrap().starts_with("interfaces.gateway: 10.0.2.1"));
}

#[test]
fn questions_for_gateways_are_answered_in_their_vlan_and_others_are_not() {
    let mut trial = trial();
    let mut check = |vlan, asker, target, expected: &[&str]| {
        assert_eq!(trial.packet_in(1, 1, &arp_request(vlan, asker, target)), expected, "{vlan:?} {target:?}");
    };
    check(None, [10, 0, 1, 7], [10, 0, 1, 1], &[HERE]);
    check(Some(2), [10, 0, 2, 7], [10, 0, 2, 1], &[HERE]);
    check(Some(2), [10, 0, 1, 7], [10, 0, 1, 1], &[]);
    check(None, [10, 0, 2, 7], [10, 0, 2, 1], &[]);
    check(None, [10, 0, 9, 7], [10, 0, 1, 1], &[]);
    check(None, [10, 0, 1, 7], [10, 0, 1, 2], &[]);
}

#[test]
fn the_router_answers_a_ping_and_an_unknown_port_and_nothing_else_for_itself() {
    let mut trial = trial();
    let mut check = |ttl, protocol, expected: &[&str]| {
        let sent = trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 1, 1], ttl, protocol));
        assert_eq!(sent, expected, "{ttl} {protocol}");
    };
    check(64, frame::ICMP, &[HERE]);
    check(1, frame::ICMP, &[HERE]);
    check(64, frame::UDP, &[HERE]);
    check(64, 6, &[]);
}

#[test]
fn a_packet_without_a_route_or_without_a_hop_left_causes_an_error() {
    let mut trial = trial();
    let mut check = |from, to, ttl, expected: &[&str]| {
        assert_eq!(trial.packet_in(1, 1, &packet(from, to, ttl, frame::UDP)), expected, "{to:?} {ttl}");
    };
    check([10, 0, 1, 7], [203, 0, 113, 1], 64, &[HERE]);
    check([10, 0, 1, 7], [10, 0, 2, 7], 1, &[HERE]);
    check([10, 0, 1, 7], [10, 0, 2, 7], 0, &[HERE]);
    check([10, 0, 9, 7], [203, 0, 113, 1], 64, &[]);
    check([10, 0, 1, 7], [224, 0, 0, 9], 64, &[]);
}

#[test]
fn errors_are_limited_in_each_second() {
    let mut trial = trial();
    let no_route = packet([10, 0, 1, 7], [203, 0, 113, 1], 64, frame::UDP);
    let sent = (0..500).filter(|_| !trial.packet_in(1, 1, &no_route).is_empty()).count();
    assert_eq!(sent, ERRORS_PER_S as usize);
    trial.tick(1_000);
    assert_eq!(trial.packet_in(1, 1, &no_route), [HERE]);
}

#[test]
fn a_packet_waits_for_its_next_hop_and_then_goes_there() {
    let mut trial = trial();
    let sent = trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 2, 7], 64, frame::UDP));
    assert_eq!(sent, [OTHERS], "it asks for the host at every port of the edge");
    assert!(trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 2, 7], 64, frame::UDP)).is_empty(), "once");
    let released = trial.view_put([host(7, Some(2), point(1, 3), "10.0.2.7")]);
    let to_host = "packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:3]";
    assert_eq!(released.iter().filter(|line| *line == to_host).count(), 2, "{released:?}");
    assert_eq!(trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 2, 7], 64, frame::UDP)), [to_host]);
}

#[test]
fn a_packet_by_a_route_waits_for_the_next_router() {
    let mut trial = trial();
    assert_eq!(trial.packet_in(1, 1, &packet([10, 0, 1, 7], [192, 168, 7, 7], 64, frame::UDP)), [OTHERS]);
    let released = trial.view_put([host(9, Some(2), point(1, 2), "10.0.2.9")]);
    let to_router = "packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:2]";
    assert!(released.iter().any(|line| line == to_router), "{released:?}");
}

#[test]
fn a_host_in_another_vlan_is_not_the_next_hop() {
    let mut trial = trial();
    trial.view_put([host(7, None, point(1, 3), "10.0.2.7")]);
    assert_eq!(trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 2, 7], 64, frame::UDP)), [OTHERS]);
}

#[test]
fn a_next_hop_that_does_not_answer_is_asked_for_three_times_and_then_unreachable() {
    let mut trial = trial();
    trial.packet_in(1, 1, &packet([10, 0, 1, 7], [10, 0, 2, 7], 64, frame::UDP));
    let packets = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().filter(|line| line.starts_with("packet-out")).collect()
    };
    assert_eq!(packets(trial.tick(1_000)), [OTHERS]);
    assert_eq!(packets(trial.tick(2_000)), [OTHERS]);
    assert_eq!(packets(trial.tick(3_000)), [HERE], "host unreachable");
    assert!(packets(trial.tick(4_000)).is_empty());
}

#[test]
fn cut_frames_are_left_alone() {
    let mut trial = trial();
    for whole in
        [arp_request(None, [10, 0, 1, 7], [10, 0, 1, 1]), packet([10, 0, 1, 7], [10, 0, 1, 1], 64, 1)]
    {
        let least = if whole[12..14] == [8, 6] { 42 } else { whole.len() };
        for length in 0..least {
            assert!(trial.packet_in(1, 1, &whole[..length]).is_empty(), "{length}");
        }
    }
    let buffered = packet([10, 0, 1, 7], [10, 0, 1, 1], 64, 1);
    assert!(trial.buffered_packet_in(1, 1, &buffered, 7).is_empty());
}

#[test]
fn what_openflow_1_0_cannot_do_is_told_once() {
    let told = |settings: &str| {
        let mut trial = Trial::<Router>::start(settings).unwrap();
        trial.view_put([switch(1, "1.0")]);
        trial.view_put([switch(2, "1.3")]);
        let lines = [trial.tick(1_000), trial.tick(2_000)].concat();
        lines.into_iter().filter(|line| line.starts_with("log ")).collect::<Vec<_>>()
    };
    let refused = told(SETTINGS);
    assert!(refused.len() == 1 && refused[0].contains("OpenFlow 1.0 cannot decrement"), "{refused:?}");
    let keep = SETTINGS.replacen('{', r#"{"ttl_in_openflow_10": "keep", "#, 1);
    let kept = told(&keep);
    assert!(kept.len() == 1 && kept[0].contains("does not route IPv6"), "{kept:?}");
}
