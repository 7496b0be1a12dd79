//! Switches that do not behave, and peers that are no switches: what happens to them, and that it happens to nobody else.

use crate::node::Node;
use crate::switch::{Switch, packet_in};
use abi::command::{self, What};
use abi::{Command, ZoneId};
use flow::{DatapathId, PortNo};
use openflow::{Body, Message, Version};
use southbound::{Fault, Refused, SouthboundConfig, Tag};

const HELLO_FAILED_NOT_PERMITTED: (u16, u16) = (0, 1);

fn until_closed(node: &mut Node, switch: &mut Switch) {
    node.until("the controller closes", |_| {
        switch.pump();
        switch.closed
    });
}

/// The switch is asked out of turn whether it lives, and says so, a millisecond later.
fn until_answered(node: &mut Node, switch: &mut Switch) {
    switch.heard.clear();
    node.until("an echo request", |_| switch.has_heard(|body| matches!(body, Body::EchoRequest(_))));
    node.now_ms += 1;
    switch.say(Version::V1_3, Body::EchoReply(Vec::new()));
}

fn check_alive(node: &mut Node, switch: &mut Switch) {
    switch.heard.clear();
    switch.say(Version::V1_3, Body::EchoRequest(b"alive?".to_vec()));
    node.until("an echo", |_| switch.has_heard(|body| matches!(body, Body::EchoReply(_))));
}

#[test]
fn a_second_switch_with_the_same_id_is_told_why_and_the_first_lives_on() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut first = Switch::up(&mut node, Version::V1_3, 7);
    let mut second = Switch::silent(&node);
    second.shake_hands(Version::V1_3, 7);
    until_answered(&mut node, &mut first);
    until_closed(&mut node, &mut second);
    let Some(Body::Error(error)) = second.heard.last().map(|message| &message.body) else {
        panic!("no error")
    };
    assert_eq!((error.kind, error.code), HELLO_FAILED_NOT_PERMITTED);
    assert!(String::from_utf8_lossy(&error.data).contains("of:0000000000000007 is in use"));
    let [(Some(DatapathId(7)), end)] = &node.ended[..] else { panic!("{:?}", node.ended) };
    assert!(end.is_refusal && end.fault == Fault::Operator, "{end:?}");
    check_alive(&mut node, &mut first);
    assert_eq!((node.ups(), node.downs()), (1, 0));
}

#[test]
fn rubbish_of_one_peer_costs_the_others_nothing() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut good = Switch::up(&mut node, Version::V1_3, 1);
    for rubbish in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0xff; 64],
        &[4, 0, 0, 7, 0, 0, 0, 0],
        &[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
        &[9, 0, 0xff, 0xff, 0, 0, 0, 0],
    ] {
        let mut bad = Switch::silent(&node);
        bad.say_bytes(rubbish);
        until_closed(&mut node, &mut bad);
        check_alive(&mut node, &mut good);
        let ended: Vec<_> = node.ended.drain(..).map(|(datapath, end)| (datapath, end.fault)).collect();
        assert_eq!(ended, [(None, Fault::Switch)]);
    }
    assert_eq!((node.ups(), node.downs()), (1, 0));
}

#[test]
fn a_peer_that_says_nothing_is_closed_in_time() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut silent = Switch::silent(&node);
    node.until("it is accepted", |node| node.roster.connections() == 1);
    node.tick(9_999);
    assert_eq!(node.southbound.sessions().count(), 1);
    node.tick(10_000);
    assert_eq!(node.southbound.sessions().count(), 0);
    let [(None, end)] = &node.ended[..] else { panic!("{:?}", node.ended) };
    assert!(end.fault == Fault::Switch && !end.is_refusal, "{end:?}");
    until_closed(&mut node, &mut silent);
}

#[test]
fn a_closed_peer_that_does_not_close_is_forgotten() {
    let mut node = Node::new(SouthboundConfig::default());
    let _silent = Switch::silent(&node);
    node.until("it is accepted", |node| node.roster.connections() == 1);
    node.tick(10_000);
    assert_eq!(node.roster.connections(), 1, "its last words may still be read");
    node.tick(11_000);
    assert_eq!(node.roster.connections(), 0);
}

#[test]
fn connections_and_half_open_connections_are_capped() {
    for config in [
        SouthboundConfig { max_connections: 2, ..Default::default() },
        SouthboundConfig { max_half_open_per_address: 2, ..Default::default() },
    ] {
        let mut node = Node::new(config);
        let (_first, _second) = (Switch::silent(&node), Switch::silent(&node));
        node.until("two are in", |node| node.roster.connections() == 2);
        let mut third = Switch::silent(&node);
        until_closed(&mut node, &mut third);
        assert_eq!(node.roster.connections(), 2);
    }
}

#[test]
fn one_address_cannot_fill_the_node() {
    let config =
        SouthboundConfig { max_connections: 40, max_connections_per_address: 20, ..Default::default() };
    let mut node = Node::new(config);
    node.as_if_from = Some("2001:db8::1".parse().unwrap());
    let greedy: Vec<Switch> = (1..=20).map(|number| Switch::up(&mut node, Version::V1_3, number)).collect();
    // Another address of the same /64 is the same machine.
    node.as_if_from = Some("2001:db8::ffff:2".parse().unwrap());
    let mut one_more = Switch::silent(&node);
    until_closed(&mut node, &mut one_more);
    node.as_if_from = Some("10.0.0.1".parse().unwrap());
    Switch::up(&mut node, Version::V1_3, 100);
    assert_eq!(greedy.len(), 20);
}

#[test]
fn what_refused_switches_still_have_to_hear_keeps_no_switch_from_shaking_hands() {
    let mut node = Node::new(SouthboundConfig { max_half_open_per_address: 8, ..Default::default() });
    for _ in 0..32 {
        let mut stranger = Switch::silent(&node);
        stranger.say_bytes(b"GET / HTTP/1.1\r\n\r\n");
        let ended = node.ended.len() + 1;
        node.until("its session ends", |node| node.ended.len() == ended);
        // It does not close its end, so the connection lingers.
        std::mem::forget(stranger);
    }
    Switch::up(&mut node, Version::V1_3, 7);
}

#[test]
fn a_switch_that_does_not_read_is_refused_all_that_apps_command_and_ended_in_time() {
    let config = SouthboundConfig { max_output_bytes: 1 << 20, ..Default::default() };
    let timeout_ms = config.echo_timeout_ms;
    let mut node = Node::new(config);
    let mut reader = Switch::up(&mut node, Version::V1_3, 2);
    let mut slow = Switch::up(&mut node, Version::V1_3, 1);
    let data = [7; 1400];
    let packet =
        command::PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions: &[], data: &data };
    let command = |what| Command { datapath: DatapathId(1), ticket: 1, wants_receipt: false, what };
    let tag = Tag { zone: ZoneId(1), generation: 0, ticket: 1 };
    node.until("packet-outs are refused", |node| {
        (0..64).any(|_| {
            let sent = node.southbound.send(DatapathId(1), &command(What::PacketOut(packet)), 0, tag);
            sent == Err(Refused::SlowReader)
        })
    });
    let rule = What::FlowMod(command::FlowMod::ADD);
    let send_rule = |node: &mut Node, tag| node.southbound.send(DatapathId(1), &command(rule), 0, tag);
    node.until("rules are refused", |node| {
        (0..1_000).any(|_| send_rule(node, tag) == Err(Refused::SlowReader))
    });
    let of_the_node = Tag::of_node(1);
    assert_eq!(send_rule(&mut node, of_the_node), Ok(()));
    node.turn();
    assert_eq!(node.downs(), 0);
    let mut alive = Vec::new();
    Message { version: Version::V1_3, xid: 1, body: packet_in(1) }.encode(&mut alive).unwrap();
    // What it sends shows that it lives, and not that it takes anything. The network may take a little more before it takes no more.
    for step in 1..20 {
        if node.downs() > 0 {
            break;
        }
        assert_eq!(slow.say_some(&alive), alive.len());
        reader.say(Version::V1_3, packet_in(1));
        while send_rule(&mut node, tag).is_ok() {}
        let heard = node.packet_ins() + 2;
        node.until("both are heard", |node| node.packet_ins() == heard);
        node.tick(step * (timeout_ms - 1));
        assert!(step > 1 || node.downs() == 0);
        check_alive(&mut node, &mut reader);
    }
    assert_eq!(node.downs(), 1);
    drop(slow);
}

#[test]
fn one_that_floods_gets_its_turns_and_no_more() {
    let config = SouthboundConfig { read_bytes_per_turn: 64 << 10, ..Default::default() };
    let mut node = Node::new(config);
    let mut flooding = Switch::up(&mut node, Version::V1_3, 1);
    let mut quiet = Switch::up(&mut node, Version::V1_3, 2);
    let mut flood = Vec::new();
    while flood.len() < 8 << 20 {
        let body = packet_in(1_000);
        openflow::Message { version: Version::V1_3, xid: 1, body }.encode(&mut flood).unwrap();
    }
    let (mut said, mut had_backlog) = (0, false);
    let expected = flood.len() / openflow::frame_len(&flood).unwrap().unwrap();
    node.until("the flood is read", |node| {
        said += flooding.say_some(&flood[said..]);
        had_backlog |= node.southbound.has_backlog();
        node.packet_ins() == expected
    });
    assert!(had_backlog);
    check_alive(&mut node, &mut quiet);
}

#[test]
fn one_whose_events_the_apps_cannot_take_is_not_read_for_a_moment_and_loses_nothing() {
    let config = SouthboundConfig { read_bytes_per_turn: 4 << 10, ..Default::default() };
    let mut node = Node::new(config);
    let mut quiet = Switch::up(&mut node, Version::V1_3, 1);
    let mut flooding = Switch::up(&mut node, Version::V1_3, 2);
    let body = packet_in(40);
    let mut flood = Vec::new();
    openflow::Message { version: Version::V1_3, xid: 1, body }.encode(&mut flood).unwrap();
    flooding.say_bytes(&flood);
    node.until("the first", |node| node.packet_ins() == 1);
    node.southbound.on_waited(1_000);
    flooding.say_bytes(&flood.repeat(100));
    check_alive(&mut node, &mut quiet);
    node.now_ms += 249;
    check_alive(&mut node, &mut quiet);
    assert_eq!(node.packet_ins(), 1);
    node.now_ms += 1;
    node.until("the rest", |node| node.packet_ins() == 101);
}

#[test]
fn a_message_that_comes_byte_by_byte_is_read() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switch = Switch::up(&mut node, Version::V1_3, 1);
    let mut bytes = Vec::new();
    openflow::Message { version: Version::V1_3, xid: 1, body: packet_in(40) }.encode(&mut bytes).unwrap();
    for byte in bytes {
        switch.say_bytes(&[byte]);
        node.turn();
    }
    node.until("the packet-in", |node| node.packet_ins() == 1);
}

#[test]
fn a_silent_switch_is_asked_and_then_given_up() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switch = Switch::up(&mut node, Version::V1_3, 1);
    node.tick(5_000);
    node.until("an echo request", |_| switch.has_heard(|body| matches!(body, Body::EchoRequest(_))));
    node.tick(15_000);
    assert_eq!((node.downs(), node.roster.switches().len()), (1, 0));
}
