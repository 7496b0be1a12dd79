//! The app `router` with emulated switches: packets between subnets arrive with one hop less, by rules and without the app, and gateways answer.

use super::frames::*;
use super::stage::{App, BOTH, Stage, fields};
use emulator::{Topology, Versions};
use flow::Field;
use std::net::Ipv6Addr;

const ROUTER: Mac = [0x02, 0x62, 0x75, 0x72, 0x6e, 0x52];
const REST: &str = "[network]\nservices = ['discovery', 'hosts', 'flows']";

/// Hosts of three subnets, two of IPv4 and two of IPv6. The routes lead to h2.
const SETTINGS: &str = "ttl_in_openflow_10 = 'keep'\n\
    [[app.router.settings.interfaces]]\nnetwork = '10.0.1.0/24'\ngateway = '10.0.1.1'\n\
    [[app.router.settings.interfaces]]\nnetwork = '10.0.2.0/24'\ngateway = '10.0.2.1'\nvlan = 2\n\
    [[app.router.settings.interfaces]]\nnetwork = 'fd00:1::/64'\ngateway = 'fd00:1::1'\n\
    [[app.router.settings.interfaces]]\nnetwork = 'fd00:2::/64'\ngateway = 'fd00:2::1'\nvlan = 2\n\
    [[app.router.settings.routes]]\nto = '192.168.0.0/16'\nvia = '10.0.2.7'";

const ONE: [u8; 4] = [10, 0, 1, 7];
const TWO: [u8; 4] = [10, 0, 2, 7];

fn announcement(host: u8, tags: &[u16], address: [u8; 4]) -> Vec<u8> {
    ethernet(EVERYBODY, mac(host), tags, ARP, &arp(1, (mac(host), address), ([0; 6], address)))
}

/// A datagram for the router's MAC, whose last bytes are the number.
fn datagram(host: u8, tags: &[u16], from: [u8; 4], to: [u8; 4], ttl: u8, number: u64) -> Vec<u8> {
    let payload = [&[0x55; 32][..], &number.to_be_bytes()].concat();
    ethernet(ROUTER, mac(host), tags, IPV4, &ipv4(from, to, ttl, UDP, 0, &udp(4_000, 4_001, &payload)))
}

/// The datagram as it arrives at a host.
fn routed(host: u8, tags: &[u16], from: [u8; 4], to: [u8; 4], ttl: u8, number: u64) -> Vec<u8> {
    let mut frame = datagram(host, tags, from, to, ttl, number);
    frame[..6].copy_from_slice(&mac(host));
    frame[6..12].copy_from_slice(&ROUTER);
    frame
}

/// Both hosts are known to the network.
fn stage(topology: &str, versions: Versions) -> Stage {
    let stage = Stage::new(&[App("router", SETTINGS)], REST, topology, versions);
    let question = |host: u8, tags: &[u16], from: [u8; 4], to: [u8; 4]| {
        ethernet(EVERYBODY, mac(host), tags, ARP, &arp(1, (mac(host), from), ([0; 6], to)))
    };
    stage.node.wait("the gateways answer", |_| {
        stage.send("h1", &question(1, &[], ONE, [10, 0, 1, 1]));
        stage.send("h2", &question(2, &[2], TWO, [10, 0, 2, 1]));
        let is_answer = |frame: &[u8]| fields(frame).get(Field::ArpOp) == Some(2) && frame[6..12] == ROUTER;
        stage.has_come("h1", is_answer) && stage.has_come("h2", is_answer)
    });
    stage
}

/// Waits until packets between the two hosts need the app no more.
fn wait_for_hops(stage: &Stage, switches: usize) {
    stage.node.wait("each switch has rules for both hosts", |_| {
        let rules = stage.rules("flows");
        // For each host, one for each of two tags, and one more for each at the host's own switch.
        let wanted = 2 * 2 * (switches + 1);
        rules.iter().filter(|rule| (24_066..=24_067).contains(&rule.priority)).count() >= wanted
    });
}

#[test]
fn a_packet_between_subnets_arrives_with_one_hop_less_and_by_rules_alone() {
    for versions in BOTH {
        let stage = stage("linear,3,1", versions);
        stage.reaches_as("h1", &datagram(1, &[], ONE, TWO, 9, 1), "h2", &sent_on(versions, 1));
        wait_for_hops(&stage, 3);
        for number in 2..20 {
            stage.send("h1", &datagram(1, &[], ONE, TWO, 9, number));
        }
        stage.hear("h2", "the last packet", |frame| frame.starts_with(&sent_on(versions, 19)));
        stage.node.wait("a rule has routed them all", |_| {
            let is_it = |rule: &operator::contract::FlowView| {
                rule.matching.contains("nw_dst=10.0.2.7") && rule.packets >= 18
            };
            stage.rules("flows").iter().any(is_it)
        });
    }
}

/// The datagram with this number as it arrives at h2. OpenFlow 1.0 does not decrement.
fn sent_on(versions: Versions, number: u64) -> Vec<u8> {
    let ttl = if versions == Versions::Only10 { 9 } else { 8 };
    routed(2, &[2], ONE, TWO, ttl, number)
}

#[test]
fn gateways_answer_pings_and_a_packet_without_a_way_causes_an_error() {
    for versions in BOTH {
        let stage = stage("linear,2,1", versions);
        let packet = |to: [u8; 4], ttl: u8, protocol: u8, payload: &[u8]| {
            ethernet(ROUTER, mac(1), &[], IPV4, &ipv4(ONE, to, ttl, protocol, 0, payload))
        };
        let said = |kind: u8, code: u8| {
            move |frame: &[u8]| {
                let seen = fields(frame);
                (seen.get(Field::Icmpv4Type), seen.get(Field::Icmpv4Code))
                    == (Some(kind.into()), Some(code.into()))
            }
        };
        let ask = |what: &str, frame: Vec<u8>, is_it: &dyn Fn(&[u8]) -> bool| {
            stage.node.wait(what, |_| {
                stage.send("h1", &frame);
                stage.has_come("h1", is_it)
            });
        };
        let echo = icmp(8, 0, &[0, 1, 0, 2, 3, 4, 5, 6]);
        ask("a reply of its gateway", packet([10, 0, 1, 1], 64, 1, &echo), &said(0, 0));
        ask("a reply of another gateway", packet([10, 0, 2, 1], 64, 1, &echo), &said(0, 0));
        ask("no route", packet([203, 0, 113, 1], 64, 1, &echo), &said(3, 0));
        ask("no such host", packet([10, 0, 2, 99], 64, 1, &echo), &said(3, 1));
        ask("no hop left", packet([203, 0, 113, 1], 1, 1, &echo), &said(11, 0));
    }
}

#[test]
fn the_next_hop_of_a_route_gets_the_packet_and_so_does_a_silent_host() {
    for versions in BOTH {
        let stage = stage("linear,3,1", versions);
        let far = [192, 168, 7, 7];
        let ttl = if versions == Versions::Only10 { 9 } else { 8 };
        // By the app or by a rule: the first packet may come before the rule.
        stage.node.wait("the next router gets the packet", |_| {
            stage.send("h1", &datagram(1, &[], ONE, far, 9, 1));
            let arrives = |ttl| routed(2, &[2], ONE, far, ttl, 1);
            stage.has_come("h2", |frame| frame.starts_with(&arrives(ttl)) || frame.starts_with(&arrives(8)))
        });
        // A host that nobody has seen is asked for, at every port of the edge.
        stage.send("h1", &datagram(1, &[], ONE, [10, 0, 1, 50], 9, 2));
        let is_question = |frame: &[u8]| fields(frame).get(Field::ArpTpa) == Some(0x0a00_0132);
        stage.hear("h3", "the router's question", is_question);
        let answer =
            ethernet(ROUTER, mac(3), &[], ARP, &arp(2, (mac(3), [10, 0, 1, 50]), (ROUTER, [10, 0, 1, 1])));
        stage.send("h3", &answer);
        let (frame, _) =
            stage.hear("h3", "the packet that waited", |frame| frame.ends_with(&2_u64.to_be_bytes()));
        assert_eq!((&frame[..6], fields(&frame).get(Field::Ipv4Dst)), (&mac(3)[..], Some(0x0a00_0132)));
    }
}

#[test]
fn routes_follow_a_link_that_fails() {
    let stage = stage("ring,4,1", Versions::Only13);
    stage.reaches_as("h1", &datagram(1, &[], ONE, TWO, 9, 1), "h2", &sent_on(Versions::Only13, 1));
    wait_for_hops(&stage, 4);
    let link = Topology::ring(4, 1).unwrap().links_between("s1", "s2")[0];
    stage.network.set_link(link, false);
    stage.reaches_as("h1", &datagram(1, &[], ONE, TWO, 9, 2), "h2", &sent_on(Versions::Only13, 2));
}

#[test]
fn ipv6_is_routed_and_neighbours_find_the_gateway() {
    let stage = stage("linear,2,1", Versions::Only13);
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    let (one, two) = (address("fd00:1::7"), address("fd00:2::7"));
    let solicit = |host: u8, tags: &[u16], from: Ipv6Addr, target: Ipv6Addr| {
        let body = [&[0; 4][..], &target.octets(), &[1, 1], &mac(host)].concat();
        let packet = ipv6(from, target, 255, 58, &icmp6(from, target, 135, &body));
        ethernet([0x33, 0x33, 0xff, 0, 0, 1], mac(host), tags, IPV6, &packet)
    };
    let is_answer =
        |frame: &[u8]| fields(frame).get(Field::Icmpv6Type) == Some(136) && frame[6..12] == ROUTER;
    stage.node.wait("the gateways answer", |_| {
        stage.send("h1", &solicit(1, &[], one, address("fd00:1::1")));
        stage.send("h2", &solicit(2, &[2], two, address("fd00:2::1")));
        stage.has_come("h1", is_answer) && stage.has_come("h2", is_answer)
    });
    let datagram = |to: Mac, from_mac: Mac, tags: &[u16], hops: u8| {
        ethernet(to, from_mac, tags, IPV6, &ipv6(one, two, hops, UDP, &udp(4_000, 4_001, &[0x66; 32])))
    };
    stage.reaches_as("h1", &datagram(ROUTER, mac(1), &[], 9), "h2", &datagram(mac(2), ROUTER, &[2], 8));
}

#[test]
fn a_switch_that_cannot_decrement_does_not_route_unless_it_is_told_to() {
    let settings = SETTINGS.replace("'keep'", "'refuse'");
    let stage = Stage::new(&[App("router", &settings)], REST, "single,2", Versions::Only10);
    stage
        .node
        .wait_for_line("of:0000000000000001 does not route: OpenFlow 1.0 cannot decrement a time-to-live");
    assert!(stage.rules("flows").is_empty());
}

#[test]
fn an_announcement_of_a_host_is_no_question_for_the_router() {
    let stage = stage("single,2", Versions::Only13);
    stage.forget("h1");
    stage.send("h1", &announcement(1, &[], ONE));
    stage.send("h1", &ethernet(EVERYBODY, mac(1), &[], ARP, &arp(1, (mac(1), ONE), ([0; 6], [10, 0, 1, 1]))));
    let (_, before) = stage.hear("h1", "an answer", |frame| fields(frame).get(Field::ArpOp) == Some(2));
    assert!(before.iter().all(|frame| fields(frame).get(Field::ArpOp) != Some(2)));
}
