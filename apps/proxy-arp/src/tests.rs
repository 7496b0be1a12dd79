//! The app with one known host: what it answers, and what it leaves alone.

use super::*;
use burnet_sdk::testing::Trial;
use burnet_sdk::view::{Change, Object, Port, Stamp, Switch, SwitchState, Tables};
use burnet_sdk::{DatapathId, PortNo};
use std::collections::BTreeMap;

const ASKER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOLDER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ADDRESS: [u8; 4] = [10, 0, 0, 2];

fn point(port: u32) -> ConnectPoint {
    ConnectPoint { switch: DatapathId(1), port: PortNo(port) }
}

fn switch() -> Object {
    let (annotations, description) = Default::default();
    let (id, state, openflow) = (DatapathId(1), SwitchState::Up, "1.3".to_owned());
    Switch { id, state, openflow, n_tables: 1, n_buffers: 0, description, since_ms: 0, annotations }.into()
}

fn port(number: u32) -> Object {
    let (id, mac, name) = (point(number), MacAddr([0; 6]), String::new());
    Port { id, name, mac, live: true, enabled: true, speed_kbps: 0, annotations: BTreeMap::new() }.into()
}

fn host(mac: [u8; 6], vlan: Option<u16>, address: impl Into<IpAddr>) -> Object {
    let (id, at, addresses) = (HostId { mac: MacAddr(mac), vlan }, point(2), vec![address.into()]);
    Host { id, addresses, at, since_ms: 0, configured: false, annotations: BTreeMap::new() }.into()
}

/// A view with these hosts.
fn view(hosts: impl IntoIterator<Item = Object>) -> Snapshot {
    let mut tables = Tables::new();
    let objects = [switch(), port(1), port(2)].into_iter().chain(hosts);
    let stamp = Stamp::default();
    tables.apply(objects.map(|object| Change { stamp, key: object.key(), object: Some(object) }));
    tables.snapshot()
}

fn ethernet(dst: [u8; 6], src: [u8; 6], tag: &[u8], eth_type: u16) -> Vec<u8> {
    [&dst[..], &src, tag, &eth_type.to_be_bytes()].concat()
}

fn arp(op: u8, sender: ([u8; 6], [u8; 4]), target: ([u8; 6], [u8; 4])) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, op][..], &sender.0, &sender.1, &target.0, &target.1].concat()
}

fn request(tag: &[u8]) -> Vec<u8> {
    let packet = arp(1, (ASKER, [10, 0, 0, 1]), ([0; 6], ADDRESS));
    [ethernet([0xff; 6], ASKER, tag, 0x0806), packet, vec![0; 18]].concat()
}

/// What is in the answer to a question at this port.
fn answered(frame: &[u8], port: u32, hosts: impl IntoIterator<Item = Object>) -> Option<FrameFields> {
    answer_to(frame, point(port), &view(hosts)).map(|answer| FrameFields::read(&answer))
}

fn number(bytes: &[u8]) -> Option<u128> {
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

#[test]
fn settings_are_refused() {
    assert!(Trial::<ProxyArp>::start(r#"{"speed": 11}"#).is_err());
}

#[test]
fn an_arp_request_is_answered_at_its_port_in_the_name_of_the_host() {
    let mut trial = Trial::<ProxyArp>::start("{}").unwrap();
    trial.view_put([switch(), port(1), port(2), host(HOLDER, None, ADDRESS)]);
    let sent = ["packet-out of:0000000000000001 in_port=CONTROLLER actions=[output:1]"];
    assert_eq!(trial.packet_in(1, 1, &request(&[])), sent);
    let fields = answered(&request(&[]), 1, [host(HOLDER, None, ADDRESS)]).unwrap();
    for (field, expected) in [
        (Field::EthDst, number(&ASKER)),
        (Field::EthSrc, number(&HOLDER)),
        (Field::ArpOp, Some(2)),
        (Field::ArpSha, number(&HOLDER)),
        (Field::ArpSpa, number(&ADDRESS)),
        (Field::ArpTha, number(&ASKER)),
        (Field::ArpTpa, number(&[10, 0, 0, 1])),
    ] {
        assert_eq!(fields.get(field), expected, "{}", field.name());
    }
}

#[test]
fn an_answer_stays_in_its_vlan() {
    let tag = [0x81, 0, 0x20, 7];
    let fields = answered(&request(&tag), 1, [host(HOLDER, Some(7), ADDRESS)]).unwrap();
    assert_eq!((fields.get(Field::VlanVid), fields.get(Field::ArpOp)), (Some(0x1007), Some(2)));
    assert!(answered(&request(&tag), 1, [host(HOLDER, None, ADDRESS)]).is_none());
    assert!(answered(&request(&[]), 1, [host(HOLDER, Some(7), ADDRESS)]).is_none());
}

#[test]
fn questions_that_the_app_cannot_answer_are_left_alone() {
    let holder = || host(HOLDER, None, ADDRESS);
    let other = || host([2, 0, 0, 0, 0, 3], None, ADDRESS);
    let check = |why: &str, frame: &[u8], port: u32, hosts: Vec<Object>| {
        assert!(answered(frame, port, hosts).is_none(), "{why}");
    };
    check("nobody has the address", &request(&[]), 1, vec![]);
    check("two hosts have it", &request(&[]), 1, vec![holder(), other()]);
    check("the host hears it", &request(&[]), 2, vec![holder()]);
    check("the asker has it", &request(&[]), 1, vec![host(ASKER, None, ADDRESS)]);
    let reply =
        [ethernet([0xff; 6], ASKER, &[], 0x0806), arp(2, (ASKER, [10, 0, 0, 1]), (HOLDER, ADDRESS))].concat();
    check("it is an answer", &reply, 1, vec![holder()]);
    check("it has two tags", &request(&[0x81, 0, 0, 7, 0x81, 0, 0, 8]), 1, vec![holder()]);
    for length in 0..42 {
        check("it is cut short", &request(&[])[..length], 1, vec![holder()]);
    }
}

const ASKER_V6: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ADDRESS_V6: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn solicitation(from: [u8; 16], hop_limit: u8) -> Vec<u8> {
    let group = [&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0][..], &[2]].concat();
    let packet = [&[0x60, 0, 0, 0, 0, 24, 58, hop_limit][..], &from, &group].concat();
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &ADDRESS_V6].concat();
    [ethernet([0x33, 0x33, 0xff, 0, 0, 2], ASKER, &[], 0x86dd), packet, message].concat()
}

#[test]
fn a_neighbour_solicitation_is_answered_with_a_sound_checksum() {
    let holder = host(HOLDER, None, ADDRESS_V6);
    let answer = answer_to(&solicitation(ASKER_V6, 255), point(1), &view([holder])).unwrap();
    let fields = FrameFields::read(&answer);
    for (field, expected) in [
        (Field::EthDst, number(&ASKER)),
        (Field::Ipv6Src, number(&ADDRESS_V6)),
        (Field::Ipv6Dst, number(&ASKER_V6)),
        (Field::Icmpv6Type, Some(136)),
        (Field::Ipv6NdTarget, number(&ADDRESS_V6)),
        (Field::Ipv6NdTll, number(&HOLDER)),
    ] {
        assert_eq!(fields.get(field), expected, "{}", field.name());
    }
    // The sum over the addresses, the length, the protocol and the message is all ones (RFC 1071).
    let words = answer[22..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum = words.sum::<u32>() + 32 + 58;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    assert_eq!(sum, 0xffff);
}

#[test]
fn a_solicitation_from_afar_or_for_ones_own_address_is_left_alone() {
    let holder = || host(HOLDER, None, ADDRESS_V6);
    assert!(answered(&solicitation(ASKER_V6, 64), 1, [holder()]).is_none());
    assert!(answered(&solicitation([0; 16], 255), 1, [holder()]).is_none());
    for length in 0..78 {
        assert!(answered(&solicitation(ASKER_V6, 255)[..length], 1, [holder()]).is_none(), "{length}");
    }
}
