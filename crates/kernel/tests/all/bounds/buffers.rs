//! Packets in the switch's buffer: an app with a flowspace may send those that it has received, once.

use super::*;

const UNKNOWN: &str = "the content of the switch's buffer 7 is unknown";

/// All that an app needs to send packets of these.
fn of_packets(texts: &[&str]) -> Grant {
    let bounds = || flowspace(texts);
    Grant::nothing().with_packets_in(bounds()).with_packets_out(bounds()).with_rules(bounds())
}

/// A packet-in of a packet in buffer 7, by port 3. Returns whether the app receives it.
fn arrives(node: &mut Node, frame: &[u8], now_ms: u64) -> bool {
    let packet = PacketIn {
        datapath: SWITCH,
        in_port: PortNo(3),
        buffer_id: Some(7),
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: 0,
        metadata: &[],
        data: frame,
    };
    let mut bytes = Vec::new();
    event::write::packet_in(&mut bytes, 2, &packet);
    let receivers = node.0.on_event(&Frame::read(&bytes).unwrap(), now_ms, &mut Vec::new()).unwrap();
    receivers.contains(APP)
}

/// An app that has received this packet.
fn with_packet(grant: Grant, frame: &[u8]) -> Node {
    let mut node = Node::with(grant);
    listen(&mut node);
    assert!(arrives(&mut node, frame, 0));
    node
}

fn listen(node: &mut Node) {
    let wanted = command::Subscribe { events: kind::bit(kind::PACKET_IN), packets: &[] };
    assert_eq!(node.command(APP, What::Subscribe(wanted)), "Subscribed");
}

fn send_by(node: &mut Node, in_port: u32, actions: &str, now_ms: u64) -> String {
    let mut bytes = Vec::new();
    write_actions(&parse_actions(actions).unwrap(), &mut bytes).unwrap();
    let packet = PacketOut { buffer_id: Some(7), in_port: PortNo(in_port), actions: &bytes, data: &[] };
    node.command_at(now_ms, APP, What::PacketOut(packet), &mut Vec::new())
}

fn send(node: &mut Node, actions: &str) -> String {
    send_by(node, 3, actions, 0)
}

fn check(said: &str, expected: &str) {
    assert!(said.contains(expected), "{said}, and not {expected}");
}

const WITH_BUFFER: FlowMod<'static> = FlowMod { buffer_id: Some(7), ..ADD };

#[test]
fn an_app_sends_what_it_has_received_once() {
    let mut node = Node::with(of_packets(&["arp"]));
    listen(&mut node);
    check(&send(&mut node, "output:1"), UNKNOWN);
    assert!(arrives(&mut node, &frame([8, 6]), 0));
    check(&send(&mut node, "output:1"), "sent");
    check(&send(&mut node, "output:1"), UNKNOWN);
    assert!(arrives(&mut node, &frame([8, 6]), 0));
    check(&node.rule("arp", "output:1", WITH_BUFFER), "sent");
    check(&node.rule("arp", "output:1", WITH_BUFFER), UNKNOWN);
    check(&node.rule("arp", "output:1", ADD), "sent");
}

#[test]
fn a_refused_command_uses_no_buffer() {
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    check(&send(&mut node, "set_field:0x800->eth_type,output:1"), "the actions make packets outside");
    check(&node.rule("ip", "output:1", WITH_BUFFER), "the match reaches packets outside");
    check(&send(&mut node, "set_field:2->arp_op,output:1"), "sent");
}

#[test]
fn the_buffer_of_a_packet_for_others_stays_theirs() {
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    assert!(!arrives(&mut node, &frame([8, 0]), 0));
    check(&send(&mut node, "output:1"), UNKNOWN);
    // A number that differs only in its upper bits is another buffer.
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    let other = FlowMod { buffer_id: Some(7 | 1 << 20), ..ADD };
    check(&node.rule("arp", "output:1", other), "is unknown");
}

#[test]
fn what_is_known_of_the_packet_bounds_what_becomes_of_it() {
    let spaces = ["in_port=9", "arp"];
    let rewrites = "set_field:0x800->eth_type,output:2";
    let mut node = with_packet(of_packets(&spaces), &frame([8, 6]));
    check(&node.rule("in_port=9", rewrites, ADD), "sent");
    // A 1.0 switch does it to the buffered packet too, which did not come in by port 9.
    check(&node.rule("in_port=9", rewrites, WITH_BUFFER), "the actions make packets outside");
    check(&node.rule("in_port=9", "output:2", WITH_BUFFER), "sent");
}

#[test]
fn a_packet_of_an_own_port_is_sent_as_any_packet_of_it() {
    let bounds = || Bounds { own_ports: vec![PortNo(3), PortNo(4)], ..flowspace(&["dl_vlan=5"]) };
    let grant = Grant::nothing().with_packets_in(bounds()).with_packets_out(bounds()).with_rules(bounds());
    let mut node = with_packet(grant.clone(), &frame([8, 6]));
    check(&send(&mut node, "output:1"), "the frame is outside");
    check(&send(&mut node, "output:4"), "sent");
    let mut node = with_packet(grant, &frame([8, 6]));
    check(&send(&mut node, "push_vlan:0x8100,set_field:4101->vlan_vid,output:1"), "sent");
}

#[test]
fn the_port_of_the_command_must_be_that_of_the_packet() {
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    check(&send_by(&mut node, 2, "in_port", 0), UNKNOWN);
    check(&send_by(&mut node, 3, "in_port", 0), "sent");
}

#[test]
fn a_buffer_is_forgotten_after_two_seconds_and_with_the_grant() {
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    check(&send_by(&mut node, 3, "output:1", 2_001), UNKNOWN);
    check(&send_by(&mut node, 3, "output:1", 2_000), "sent");
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    node.0.regrant(APP, of_packets(&["ip"]), 0, &mut Vec::new());
    check(&send(&mut node, "output:1"), UNKNOWN);
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    node.0.detach(APP);
    node.0.attach(APP, "another", of_packets(&["arp"]), 0);
    check(&send(&mut node, "output:1"), UNKNOWN);
}

#[test]
fn an_app_keeps_its_buffers_if_it_asks_for_the_events_that_it_has() {
    let mut node = with_packet(of_packets(&["arp"]), &frame([8, 6]));
    listen(&mut node);
    check(&send(&mut node, "output:1"), "sent");
}
