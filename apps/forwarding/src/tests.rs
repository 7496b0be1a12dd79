//! The app on a ring of four switches, one host at each: what it commands, in words.

mod network;

use super::*;
use burnet_sdk::testing::Trial;
use burnet_sdk::view::{Key, LinkId, LinkKind, Port, Switch};
use std::collections::BTreeMap;

const EDGE: u32 = 1;
const CLOCKWISE: u32 = 2;
const BACK: u32 = 3;

fn point(switch: u64, port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(switch), port: PortNo(port) }
}

fn switch(id: u64) -> Object {
    let (annotations, description) = Default::default();
    let (state, openflow) = (SwitchState::Up, "1.3".to_owned());
    let id = DatapathId(id);
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

fn port(id: ConnectPoint) -> Object {
    let (mac, name) = (MacAddr::from_u64(1), format!("port{}", id.port));
    Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations: BTreeMap::new() }.into()
}

fn link(from: ConnectPoint, to: ConnectPoint, state: LinkState) -> Object {
    let (found, capacity_kbps, latency_us) = (LinkKind::Direct, 0, None);
    let annotations = BTreeMap::new();
    Link { id: LinkId { from, to }, found, state, capacity_kbps, latency_us, since_ms: 0, annotations }.into()
}

fn host(number: u64, at: ConnectPoint) -> Object {
    let id = HostId { mac: MacAddr::from_u64(number), vlan: None };
    let (addresses, annotations) = Default::default();
    Host { id, addresses, at, since_ms: 0, configured: false, annotations }.into()
}

/// The two directions of the link from a switch to the next one.
fn links(switch: u64, state: LinkState) -> [Object; 2] {
    let (from, to) = (point(switch, CLOCKWISE), point(switch % 4 + 1, BACK));
    [link(from, to, state), link(to, from, state)]
}

fn ring() -> Trial<Forwarding> {
    let mut trial = Trial::start("{}").unwrap();
    let ports = (1..5).flat_map(|switch| [EDGE, CLOCKWISE, BACK].map(|number| port(point(switch, number))));
    let all_links = (1..5).flat_map(|switch| links(switch, LinkState::Up));
    trial.view_put((1..5).map(switch).chain(ports).chain(all_links));
    trial.view_put((1..5).map(|number| host(number, point(number, EDGE))));
    trial
}

/// A frame from one host to another; 0 is everybody.
fn frame(src: u64, dst: u64) -> Vec<u8> {
    let mac = |number| if number == 0 { [0xff; 6] } else { MacAddr::from_u64(number).0 };
    [&mac(dst)[..], &mac(src), &[0x08, 0x00], &[0; 46]].concat()
}

/// The commands without what is the same in all of them.
fn short(lines: Vec<String>) -> Vec<String> {
    let shortened = |line: &String| {
        let line = line
            .replace("of:000000000000000", "s")
            .replace(" priority=10000", "")
            .replace(" idle=30 hard=0", "");
        line.replace("in_port=CONTROLLER ", "").replace("actions=", "")
    };
    lines.iter().map(shortened).collect()
}

#[test]
fn settings_that_are_none_are_refused() {
    assert!(Trial::<Forwarding>::start(r#"{"speed": 11}"#).is_err());
}

#[test]
fn rules_of_an_earlier_run_are_deleted_before_a_switch_is_used() {
    let mut trial = Trial::<Forwarding>::start("{}").unwrap();
    assert_eq!(short(trial.view_put([switch(1)])), ["delete-rule s1 priority=0 match=[] []"]);
    let Object::Switch(mut down) = switch(1) else { panic!() };
    down.state = SwitchState::Down;
    assert!(trial.view_put([down.into()]).is_empty());
    assert_eq!(trial.view_put([switch(1)]).len(), 1);
}

#[test]
fn a_flow_gets_rules_from_its_end_to_its_beginning_and_its_packet_goes_out_there() {
    let mut trial = ring();
    let expected = [
        "add-rule s2 match=[in_port=0x3,eth_src=0x1,eth_dst=0x2] [output:1]",
        "add-rule s1 match=[in_port=0x1,eth_src=0x1,eth_dst=0x2] [output:2]",
        "packet-out s2 [output:1]",
    ];
    assert_eq!(short(trial.packet_in(1, EDGE, &frame(1, 2))), expected);
    let at_one_switch = short(trial.packet_in(1, EDGE, &frame(1, 1)));
    assert_eq!(at_one_switch, [""; 0], "it is behind the port that the packet came from");
}

#[test]
fn a_packet_that_the_switch_keeps_goes_one_switch_further() {
    let mut trial = ring();
    let sent = short(trial.buffered_packet_in(1, EDGE, &frame(1, 2), 7));
    assert_eq!(sent[2], "packet-out s1 buffer=7 in_port=1 [output:2]");
}

#[test]
fn a_packet_of_an_unknown_host_or_at_another_port_gets_no_rules() {
    let mut trial = ring();
    assert_eq!(short(trial.packet_in(1, EDGE, &frame(9, 2))), ["packet-out s2 [output:1]"]);
    assert_eq!(short(trial.packet_in(3, EDGE, &frame(1, 2))), ["packet-out s2 [output:1]"]);
}

#[test]
fn a_broadcast_goes_out_of_all_ports_at_the_edge_and_of_no_link() {
    let mut trial = ring();
    let expected = ["packet-out s2 [output:1]", "packet-out s3 [output:1]", "packet-out s4 [output:1]"];
    assert_eq!(short(trial.packet_in(1, EDGE, &frame(1, 0))), expected);
    assert_eq!(short(trial.packet_in(1, EDGE, &frame(1, 77))), expected, "an unknown host");
    assert!(trial.packet_in(2, BACK, &frame(1, 0)).is_empty(), "a broadcast from a link");
}

#[test]
fn a_question_for_a_known_host_goes_to_it_alone() {
    let mut trial = ring();
    let id = HostId { mac: MacAddr::from_u64(3), vlan: None };
    let (at, annotations) = (point(3, EDGE), BTreeMap::new());
    let addresses = vec![[10, 0, 0, 3].into()];
    trial.view_put([Host { id, addresses, at, since_ms: 0, configured: false, annotations }.into()]);
    let question = |asker: u64, address: u8| {
        let mac = MacAddr::from_u64(asker).0;
        let packet =
            [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, address]].concat();
        [&[0xff; 6][..], &mac, &[0x08, 0x06], &packet, &[0; 18]].concat()
    };
    assert_eq!(short(trial.packet_in(1, EDGE, &question(1, 3))), ["packet-out s3 [output:1]"]);
    assert_eq!(trial.packet_in(1, EDGE, &question(1, 4)).len(), 3, "nobody is known to have it");
    assert_eq!(trial.packet_in(3, EDGE, &question(3, 3)).len(), 3, "a host announces itself");
}

#[test]
fn a_broadcast_that_comes_back_by_a_link_that_is_not_known_is_dropped() {
    let mut trial = Trial::<Forwarding>::start("{}").unwrap();
    trial.view_put([switch(1), switch(2)]);
    trial.view_put([1, 2].into_iter().flat_map(|switch| [1, 2].map(|number| port(point(switch, number)))));
    assert_eq!(trial.packet_in(1, 1, &frame(1, 0)).len(), 2);
    assert!(trial.packet_in(2, 2, &frame(1, 0)).is_empty());
    trial.tick(10_000);
    assert_eq!(trial.packet_in(2, 2, &frame(1, 0)).len(), 2, "later it is a frame of its own");
}

#[test]
fn probes_and_frames_between_neighbours_are_left_alone() {
    let mut trial = ring();
    let mut probe = frame(1, 0);
    probe[12..14].copy_from_slice(&0x88cc_u16.to_be_bytes());
    assert!(trial.packet_in(1, CLOCKWISE, &probe).is_empty());
    let mut bridge = frame(1, 0);
    bridge[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
    assert!(trial.packet_in(1, EDGE, &bridge).is_empty());
    assert!(trial.packet_in(1, EDGE, &[1, 2, 3]).is_empty());
}

#[test]
fn a_flow_through_a_link_that_fails_gets_the_other_way_at_once() {
    let mut trial = ring();
    trial.packet_in(1, EDGE, &frame(1, 2));
    let expected = [
        "add-rule s2 match=[in_port=0x2,eth_src=0x1,eth_dst=0x2] [output:1]",
        "add-rule s3 match=[in_port=0x2,eth_src=0x1,eth_dst=0x2] [output:3]",
        "add-rule s4 match=[in_port=0x2,eth_src=0x1,eth_dst=0x2] [output:3]",
        "add-rule s1 match=[in_port=0x1,eth_src=0x1,eth_dst=0x2] [output:3]",
        "delete-strict-rule s2 match=[in_port=0x3,eth_src=0x1,eth_dst=0x2] []",
    ];
    assert_eq!(short(trial.view_put(links(1, LinkState::Down))), expected);
    assert!(trial.view_put(links(1, LinkState::Up)).is_empty());
    assert!(trial.view_put(links(1, LinkState::Down)).is_empty(), "no flow uses it any more");
}

#[test]
fn a_flow_without_a_path_loses_its_rules() {
    let mut trial = ring();
    trial.packet_in(1, EDGE, &frame(1, 2));
    trial.view_put(links(3, LinkState::Down));
    let lost = short(trial.view_put(links(1, LinkState::Down)));
    assert_eq!(lost.iter().filter(|line| line.starts_with("delete-strict")).count(), 2, "{lost:?}");
    assert_eq!(lost.len(), 2);
}

#[test]
fn a_flow_follows_its_host_and_ends_with_it() {
    let mut trial = ring();
    trial.packet_in(1, EDGE, &frame(1, 2));
    let moved = short(trial.view_put([host(2, point(1, CLOCKWISE))]));
    assert_eq!(moved[0], "add-rule s1 match=[in_port=0x1,eth_src=0x1,eth_dst=0x2] [output:2]");
    assert_eq!(moved.len(), 2, "{moved:?}");
    let gone = short(trial.view_removed([Key::Host(HostId { mac: MacAddr::from_u64(1), vlan: None })]));
    assert_eq!(gone, ["delete-strict-rule s1 match=[in_port=0x1,eth_src=0x1,eth_dst=0x2] []"]);
}
