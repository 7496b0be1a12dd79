//! Switches that behave.

use crate::node::Node;
use crate::switch::{Switch, packet_in};
use abi::command::{self, What};
use abi::{Command, Event, Frame, Outcome, ZoneId};
use flow::{DatapathId, PortNo};
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartRequest, ROLE_EQUAL, ROLE_MASTER, ReplyBody, RequestBody, Role,
    SwitchDesc,
};
use openflow::{Body, Version};
use rustix::net::sockopt::socket_recv_buffer_size;
use southbound::{
    ControllerRole, PriorityOrder, Refused, RoleWanted, SouthboundConfig, SwitchPace, SwitchPaces, Tag,
};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];
const TAG: Tag = Tag { zone: ZoneId(3), generation: 0, ticket: 9 };

fn flow_mod(datapath: u64, wants_receipt: bool) -> Command<'static> {
    let what = What::FlowMod(command::FlowMod::ADD);
    Command { datapath: DatapathId(datapath), ticket: TAG.ticket, wants_receipt, what }
}

#[test]
fn a_packet_goes_up_and_a_rule_and_a_packet_come_down() {
    for version in BOTH {
        let mut node = Node::new(SouthboundConfig::default());
        let mut switch = Switch::up(&mut node, version, 7);
        switch.say(version, packet_in(60));
        node.until("a packet-in", |node| node.packet_ins() == 1);
        let packet = command::PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            actions: &[],
            data: b"a frame",
        };
        let packet = Command { what: What::PacketOut(packet), ..flow_mod(7, false) };
        node.southbound.send(DatapathId(7), &flow_mod(7, false), 1, TAG).unwrap();
        node.southbound.send(DatapathId(7), &packet, 0, TAG).unwrap();
        node.until("both", |_| switch.has_heard(|body| matches!(body, Body::PacketOut(_))));
        assert!(switch.has_heard(|body| matches!(body, Body::FlowMod(sent) if sent.cookie == 1)));
        let record = node.only_switch();
        assert_eq!((record.datapath, record.version, record.worker), (DatapathId(7), version, 0));
    }
}

#[test]
fn a_switch_has_its_answers_before_the_end_of_the_turn() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switches = [1, 2].map(|datapath| Switch::up(&mut node, Version::V1_3, datapath));
    for number in [0, 1, 1, 0, 1] {
        let switch = &mut switches[number];
        switch.heard.clear();
        switch.say(Version::V1_3, Body::EchoRequest(vec![number as u8]));
        let began = Instant::now();
        while !switch.has_heard(|body| *body == Body::EchoReply(vec![number as u8])) {
            assert!(began.elapsed() < Duration::from_secs(60), "it waits for the end of the turn");
            node.read();
        }
    }
    // The output of another switch waits, and keeps its memory.
    node.southbound.send(DatapathId(2), &flow_mod(2, false), 5, TAG).unwrap();
    switches[0].say(Version::V1_3, Body::EchoRequest(Vec::new()));
    node.until("both", |_| {
        let has_rule = switches[1].has_heard(|body| matches!(body, Body::FlowMod(sent) if sent.cookie == 5));
        has_rule && switches[0].has_heard(|body| *body == Body::EchoReply(Vec::new()))
    });
}

#[test]
fn a_receipt_comes_when_the_barrier_does() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switch = Switch::up(&mut node, Version::V1_3, 7);
    node.southbound.send(DatapathId(7), &flow_mod(7, true), 0, TAG).unwrap();
    node.until("a barrier", |_| switch.has_heard(|body| *body == Body::BarrierRequest));
    let barrier = switch.heard.iter().find(|message| message.body == Body::BarrierRequest).unwrap().xid;
    assert!(node.to_zones.is_empty());
    switch.say_as(Version::V1_3, barrier, Body::BarrierReply);
    node.until("a receipt", |node| !node.to_zones.is_empty());
    let (zone, frame) = &node.to_zones[0];
    let event = Event::read(&Frame::read(frame).unwrap()).unwrap();
    let Event::Receipt(datapath, receipt) = event else { panic!("{event:?}") };
    assert_eq!((*zone, datapath), (TAG.zone, DatapathId(7)));
    assert_eq!((receipt.ticket, receipt.outcome), (9, Outcome::Programmed));
}

#[test]
fn a_role_is_asked_for_and_the_snapshot_shows_which_one_the_switch_confirmed() {
    let mut node = Node::new(SouthboundConfig { role: RoleWanted::Equal, ..Default::default() });
    let (equal, master) =
        (Role { role: ROLE_EQUAL, generation_id: 0 }, Role { role: ROLE_MASTER, generation_id: 5 });
    let nobody = DatapathId(7);
    assert_eq!(node.southbound.request_role(nobody, master, TAG), Err(Refused::NoSuchSwitch(nobody)));
    let mut switch = Switch::up(&mut node, Version::V1_3, 7);
    node.until("the role that is wanted", |_| switch.has_heard(|body| *body == Body::RoleRequest(equal)));
    node.southbound.request_role(DatapathId(7), master, TAG).unwrap();
    node.until("another", |_| switch.has_heard(|body| *body == Body::RoleRequest(master)));
    assert_eq!(node.southbound.sessions().next().unwrap().role, None);
    let asked = switch.heard.last().unwrap().xid;
    switch.say_as(Version::V1_3, asked, Body::RoleReply(master));
    node.until("a receipt", |node| !node.to_zones.is_empty());
    assert_eq!(node.southbound.sessions().next().unwrap().role, Some(ControllerRole::Master));
}

#[test]
fn a_switch_that_goes_and_comes_back_is_down_and_up() {
    let mut node = Node::new(SouthboundConfig::default());
    let switch = Switch::up(&mut node, Version::V1_3, 7);
    node.southbound.send(DatapathId(7), &flow_mod(7, true), 0, TAG).unwrap();
    drop(switch);
    node.until("it is down", |node| node.downs() == 1);
    assert_eq!(node.to_zones.len(), 1, "the receipt is unknown");
    assert_eq!(
        node.southbound.send(DatapathId(7), &flow_mod(7, false), 0, TAG),
        Err(Refused::NoSuchSwitch(DatapathId(7)))
    );
    assert_eq!((node.roster.switches().len(), node.roster.connections()), (0, 0));
    let _switch = Switch::up(&mut node, Version::V1_3, 7);
    assert_eq!((node.ups(), node.roster.connections()), (2, 1));
}

#[test]
fn many_switches_live_side_by_side() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switches: Vec<Switch> =
        (1..=40).map(|number| Switch::up(&mut node, BOTH[number as usize % 2], number)).collect();
    for (index, switch) in switches.iter_mut().enumerate() {
        switch.say(BOTH[(index + 1) % 2], packet_in(60));
    }
    node.until("a packet-in of each", |node| node.packet_ins() == 40);
    assert_eq!(node.southbound.sessions().count(), 40);
    assert_eq!(node.roster.worker_of(DatapathId(40)), Some(0));
}

#[test]
fn the_operator_can_end_a_session_and_all() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut first = Switch::up(&mut node, Version::V1_3, 1);
    let mut second = Switch::up(&mut node, Version::V1_3, 2);
    assert!(node.southbound.end(DatapathId(1), "the operator asked for it"));
    assert!(!node.southbound.end(DatapathId(3), "the operator asked for it"));
    node.until("the first is gone", |_| {
        first.pump();
        first.closed
    });
    assert_eq!((node.downs(), node.only_switch().datapath), (1, DatapathId(2)));
    node.southbound.close_all("the node stops");
    node.until("the second too", |_| {
        second.pump();
        second.closed
    });
    assert_eq!((node.downs(), node.roster.switches().len()), (2, 0));
}

#[test]
fn snapshots_show_what_was_counted() {
    let mut node = Node::new(SouthboundConfig::default());
    let mut switch = Switch::up(&mut node, Version::V1_3, 7);
    (0..10).for_each(|_| switch.say(Version::V1_3, packet_in(60)));
    node.until("ten packet-ins", |node| node.packet_ins() == 10);
    let snapshot = node.southbound.sessions().next().unwrap();
    assert_eq!((snapshot.counters.packet_ins, snapshot.counters.messages_in), (10, 13));
    assert_eq!((snapshot.identity.datapath, snapshot.tls), (DatapathId(7), false));
}

/// A profile applies to the switch 7 if it is described as an Open vSwitch.
fn by_description() -> SouthboundConfig {
    let pace = Arc::new(SwitchPace {
        profile: "ovs".to_owned(),
        rate: None,
        order: PriorityOrder::AsTheyCome,
        programmed_after_ms: 0,
        entries: None,
        replies: None,
    });
    let paces = SwitchPaces::by(move |_, desc| {
        desc.filter(|desc| desc.hw_desc == "Open vSwitch").map(|_| pace.clone())
    });
    SouthboundConfig {
        paces: paces.after_description(|datapath| datapath == DatapathId(7)),
        ..SouthboundConfig::default()
    }
}

/// The transaction id of the request for the description.
fn asked_for_description(node: &mut Node, switch: &mut Switch) -> u32 {
    let is_asked = |body: &Body| {
        matches!(body, Body::MultipartRequest(MultipartRequest { body: RequestBody::Desc, .. }))
    };
    node.until("it is asked for its description", |_| switch.has_heard(is_asked));
    switch.heard.iter().find(|message| is_asked(&message.body)).unwrap().xid
}

#[test]
fn a_switch_whose_description_decides_its_pace_is_up_when_it_has_described_itself() {
    for version in BOTH {
        let mut node = Node::new(by_description());
        let mut switch = Switch::silent(&node);
        switch.shake_hands(version, 7);
        let xid = asked_for_description(&mut node, &mut switch);
        (0..20).for_each(|_| node.turn());
        assert_eq!(node.ups(), 0, "{version}");
        let text = String::new;
        let desc = SwitchDesc {
            mfr_desc: text(),
            hw_desc: "Open vSwitch".to_owned(),
            sw_desc: text(),
            serial_num: text(),
            dp_desc: text(),
        };
        let reply = MultipartReply { flags: 0, body: ReplyBody::Desc(desc) };
        switch.say_as(version, xid, Body::MultipartReply(reply));
        node.until("the switch is up", |node| node.ups() == 1);
        let paced: Vec<_> = node.southbound.sessions().filter_map(|session| session.pace).collect();
        assert_eq!(paced.len(), 1, "{version}: before any app has sent a rule");
    }
}

#[test]
fn a_switch_that_does_not_describe_itself_is_up_all_the_same() {
    for version in BOTH {
        let mut node = Node::new(by_description());
        let mut refuses = Switch::silent(&node);
        refuses.shake_hands(version, 7);
        let xid = asked_for_description(&mut node, &mut refuses);
        let refusal = ErrorMessage { kind: 1, code: 2, experimenter: None, data: Vec::new() };
        refuses.say_as(version, xid, Body::Error(refusal));
        node.until("the switch is up", |node| node.ups() == 1);
        let mut node = Node::new(by_description());
        let mut silent = Switch::silent(&node);
        silent.shake_hands(version, 7);
        asked_for_description(&mut node, &mut silent);
        node.tick(1_999);
        assert_eq!(node.ups(), 0, "{version}");
        node.tick(2_000);
        assert_eq!(node.ups(), 1, "{version}");
        // One whose pace needs no description does not wait.
        let _other = Switch::up(&mut node, version, 8);
    }
}

/// The size that the system says, which is twice what it was asked for.
fn receive_buffer(receive_buffer_bytes: usize) -> usize {
    let config = SouthboundConfig { receive_buffer_bytes, ..SouthboundConfig::default() };
    let mut node = Node::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let _switch = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, from) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    let same = stream.try_clone().unwrap();
    node.southbound.adopt(mio::net::TcpStream::from_std(stream), from, 0).unwrap();
    socket_recv_buffer_size(&same).unwrap()
}

#[test]
fn the_system_keeps_no_more_of_a_switch_than_it_is_asked_to() {
    assert_eq!(receive_buffer(16_384), 32_768);
    assert_eq!(receive_buffer(65_536), 131_072);
    // Here, 0 leaves what the system has.
    assert!(![0, 32_768].contains(&receive_buffer(0)));
}
