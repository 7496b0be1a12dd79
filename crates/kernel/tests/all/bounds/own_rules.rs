//! Packet-ins of an app's own rules: an app may want only those.

use super::*;
use kernel::zone_set::MAX_ZONE;

fn of_packets(texts: &[&str]) -> Grant {
    Grant::nothing().with_packets_in(flowspace(texts))
}

/// A packet-in of this cookie and reason, of an untagged frame by port 3. Returns the receivers.
fn punted(node: &mut Node, cookie: u64, reason: u8) -> Vec<u16> {
    let packet = PacketIn {
        datapath: SWITCH,
        in_port: PortNo(3),
        buffer_id: None,
        total_len: 60,
        reason,
        table_id: 0,
        cookie,
        metadata: &[],
        data: &frame([8, 6]),
    };
    let mut bytes = Vec::new();
    event::write::packet_in(&mut bytes, 2, &packet);
    let receivers = node.0.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    receivers.iter().map(|zone| zone.0).collect()
}

/// The app wants only what its own rules send. Returns the effects.
fn listen_to_own_rules(node: &mut Node, zone: ZoneId) -> Vec<Effect> {
    let events = kind::bit(kind::PACKET_IN) | kind::OF_OWN_RULES;
    let (what, mut effects) = (What::Subscribe(command::Subscribe { events, packets: &[] }), Vec::new());
    assert_eq!(node.command_at(0, zone, what, &mut effects), "Subscribed");
    effects
}

#[test]
fn an_app_that_hears_its_own_rules_only_hears_nothing_else_and_needs_no_table_miss_rule() {
    let mut node = Node::with(of_packets(&["arp"]));
    let effects = listen_to_own_rules(&mut node, APP);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Punt(_))), "{effects:?}");
    let (own, others) = (APP.stamp(5), OTHER.stamp(5));
    assert_eq!(punted(&mut node, own, 0), [1]);
    assert_eq!(punted(&mut node, own, 1), [1]);
    for cookie in [others, kernel::OWN_COOKIE, u64::from(MAX_ZONE), u64::MAX] {
        assert_eq!(punted(&mut node, cookie, 0), [0; 0], "{cookie:x}");
    }
    listen_to_own_rules(&mut node, OTHER);
    assert_eq!((punted(&mut node, own, 1), punted(&mut node, others, 1)), (vec![1], vec![2]));
    // Its grant bounds what it hears, as always.
    node.0.regrant(APP, of_packets(&["ip"]), 0, &mut Vec::new());
    assert_eq!(punted(&mut node, own, 1), [0; 0]);
}

#[test]
fn a_switch_that_names_no_rule_is_heard_by_all_whose_rule_it_may_be() {
    let mut node = Node::speaking(OpenFlowVersion::V1_0, of_packets(&["arp"]));
    listen_to_own_rules(&mut node, APP);
    listen_to_own_rules(&mut node, OTHER);
    assert_eq!(punted(&mut node, u64::MAX, 1), [1, 2]);
    assert_eq!(punted(&mut node, u64::MAX, 0), [1, 2], "no rule matched, and 1.0 has no rule for that");
    node.0.regrant(APP, of_packets(&["ip"]), 0, &mut Vec::new());
    assert_eq!(punted(&mut node, u64::MAX, 1), [2]);
    assert_eq!(punted(&mut node, u64::MAX, 0), [2]);
}
