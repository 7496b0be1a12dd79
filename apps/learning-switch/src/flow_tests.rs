//! The learning switch with `match = "flow"`: its rules in OpenFlow 1.0 and 1.3, and what gets no rule.

use super::*;
use abi::event::{PortFacts, PortRecord, write};
use burnet_sdk::OpenFlowVersion;
use burnet_sdk::testing::Trial;

const HOSTS: [u8; 2] = [1, 2];

/// A TCP segment over IPv4 between hosts that are given by their last octets, with this fragment field and these ports.
fn segment(from: u8, to: u8, fragment: u16, ports: (u16, u16)) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00];
    frame.extend([0x45, 0x48, 0, 40, 0, 0]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(ports.0.to_be_bytes());
    frame.extend(ports.1.to_be_bytes());
    frame.extend([0; 16]);
    frame
}

/// A UDP datagram over IPv6.
fn datagram_v6(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    for host in [from, to] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    frame.extend([0, 53, 0, 53, 0, 8, 0, 0]);
    frame
}

/// Host 1 is known behind port 1.
fn started(settings: &str, openflow: OpenFlowVersion) -> Trial<LearningSwitch> {
    let mut trial = Trial::start(settings).unwrap();
    let ports = HOSTS.map(|number| {
        PortRecord::new(PortFacts {
            port_no: PortNo(number.into()),
            hw_addr: MacAddr::default(),
            live: true,
            administratively_up: true,
            curr_speed_kbps: 0,
            name: "port",
        })
    });
    let up = SwitchUp { datapath: DatapathId(1), n_buffers: 256, n_tables: 1, openflow, ports: &ports };
    trial.event(|out, sequence| write::switch_up(out, sequence, &up));
    trial.packet_in(1, 1, &segment(1, 9, 0, (1, 2)));
    trial
}

const FLOW: &str = r#"{"match": "flow"}"#;
const TO_PORT_1: &str = "packet-out of:0000000000000001 in_port=2 actions=[output:1]";

fn check(openflow: OpenFlowVersion, frame: &[u8], matching: &str) {
    let commands = started(FLOW, openflow).packet_in(1, 2, frame);
    let rule = format!(
        "add-rule of:0000000000000001 priority=100 idle=10 hard=30 match=[{matching}] actions=[output:1]"
    );
    assert_eq!(commands, [rule, TO_PORT_1.to_owned()]);
}

#[test]
fn an_unknown_match_is_refused_by_name() {
    let refusal = Trial::<LearningSwitch>::start(r#"{"match": "port"}"#).err().unwrap();
    assert!(refusal.contains("unknown variant `port`"), "{refusal}");
}

#[test]
fn a_later_fragment_goes_on_without_a_rule() {
    let mut app = started(FLOW, OpenFlowVersion::V1_3);
    assert_eq!(app.packet_in(1, 2, &segment(2, 1, 7, (0, 0))), [TO_PORT_1]);
    assert_eq!(
        app.packet_in(1, 2, &segment(2, 1, 0, (5, 6))[..35]),
        [TO_PORT_1],
        "and a segment that was cut"
    );
}

#[test]
fn each_connection_has_a_rule_of_its_own_in_both_versions() {
    let of_ports = |ports: (u16, u16)| {
        format!(
            "in_port=0x2,eth_dst=0x20000000001,eth_src=0x20000000002,eth_type=0x800,vlan_vid=0x0,ip_proto=0x6,\
             ipv4_src=0xa000002,ipv4_dst=0xa000001,tcp_src={:#x},tcp_dst={:#x}",
            ports.0, ports.1
        )
    };
    for openflow in [OpenFlowVersion::V1_0, OpenFlowVersion::V1_3] {
        for ports in [(6379, 40_000), (6379, 40_001)] {
            check(openflow, &segment(2, 1, 0, ports), &of_ports(ports));
        }
    }
}

#[test]
fn a_flow_of_ipv6_is_whole_in_1_3_and_a_pair_of_addresses_in_1_0() {
    let ethernet = "in_port=0x2,eth_dst=0x20000000001,eth_src=0x20000000002,eth_type=0x86dd,vlan_vid=0x0";
    let whole = format!(
        "{ethernet},ip_proto=0x11,udp_src=0x35,udp_dst=0x35,ipv6_src=0xfd000000000000000000000000000002,\
         ipv6_dst=0xfd000000000000000000000000000001"
    );
    check(OpenFlowVersion::V1_0, &datagram_v6(2, 1), ethernet);
    check(OpenFlowVersion::V1_3, &datagram_v6(2, 1), &whole);
}

#[test]
fn the_packet_that_the_switch_keeps_goes_through_the_rule_of_its_flow() {
    let mut app = started(FLOW, OpenFlowVersion::V1_0);
    let commands = app.buffered_packet_in(1, 2, &segment(2, 1, 0, (5, 6)), 77);
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert!(commands[0].starts_with("add-rule of:0000000000000001 priority=100 buffer=77"), "{commands:?}");
}

#[test]
fn a_kept_fragment_is_released_by_a_packet_out() {
    let mut app = started(FLOW, OpenFlowVersion::V1_0);
    let commands = app.buffered_packet_in(1, 2, &segment(2, 1, 7, (0, 0)), 77);
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert!(commands[0].starts_with("packet-out of:0000000000000001 buffer=77"), "{commands:?}");
}

#[test]
fn time_outs_that_are_set_count_for_flows_too() {
    let settings = r#"{"match": "flow", "idle_timeout_s": 7, "hard_timeout_s": 0}"#;
    let commands = started(settings, OpenFlowVersion::V1_3).packet_in(1, 2, &segment(2, 1, 0, (5, 6)));
    assert!(commands[0].contains("priority=100 idle=7 hard=0 match=["), "{commands:?}");
}

#[test]
fn without_settings_rules_match_addresses_for_a_minute() {
    let commands = started("{}", OpenFlowVersion::V1_3).packet_in(1, 2, &segment(2, 1, 0, (5, 6)));
    let rule = "add-rule of:0000000000000001 priority=100 idle=60 hard=600 \
                match=[in_port=0x2,eth_dst=0x20000000001,eth_src=0x20000000002] actions=[output:1]";
    assert_eq!(commands, [rule, TO_PORT_1]);
}
