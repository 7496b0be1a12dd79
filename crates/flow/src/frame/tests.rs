//! Frames: damaged ones first, then each kind.

use super::*;
use crate::text::{match_to_string, parse_match};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes from hexadecimal digits and blanks.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    crate::value::read_hex(&digits).unwrap()
}

const ETHERNET: &str = "000000000002 000000000001";

/// The fields of a frame behind the addresses, as a match's text.
fn check(behind_addresses: &str, expected: &str) {
    let mut fields = FrameFields::read(&bytes(&format!("{ETHERNET} {behind_addresses}")));
    fields.remove(Field::Metadata);
    fields.remove(Field::TunnelId);
    fields.remove(Field::EthDst);
    fields.remove(Field::EthSrc);
    assert_eq!(match_to_string(&fields.to_match()), expected, "{behind_addresses}");
}

const TCP: &str = "0050 0016 00000000 00000000 5002 0000 0000 0000";

#[test]
fn a_damaged_frame_has_the_fields_before_the_damage() {
    assert_eq!(match_to_string(&FrameFields::read(&[]).to_match()), "tun_id=0x0,metadata=0x0");
    check("", "");
    check("81", "");
    check("8100 60", "");
    check("8100 6005 08", "dl_vlan=5,dl_vlan_pcp=3");
    check("0800", "ip,vlan_tci=0x0000/0x1fff");
    check("0800 44", "ip,vlan_tci=0x0000/0x1fff");
    check("0800 65000014 00000000 40060000 0a000001 0a000002", "ip,vlan_tci=0x0000/0x1fff");
    // A header that is longer than the packet says; one that is cut off; ports that are cut off.
    check(
        "0800 4f000014 00000000 40060000 0a000001 0a000002",
        "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0",
    );
    check("0800 45000028 00000000 40060000 0a000001 0a0000", "ip,vlan_tci=0x0000/0x1fff");
    check(
        "0800 45000028 00000000 40060000 0a000001 0a000002 0050 00",
        "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,tp_src=80",
    );
    check("0806 0001 0800 06 04 0001 0000", "arp,vlan_tci=0x0000/0x1fff,arp_op=1");
    check("0806 0001 0800 06 06 0001 000000000001 0a000001", "arp,vlan_tci=0x0000/0x1fff");
}

#[test]
fn the_outermost_tag_and_the_type_behind_all_of_them_count() {
    check("88a8 2005 8100 4006 0806", "arp,dl_vlan=5,dl_vlan_pcp=1");
    check("8100 0000 88cc", "dl_vlan=0,dl_vlan_pcp=0,dl_type=0x88cc");
}

#[test]
fn an_802_3_frame_may_say_its_type_by_snap() {
    check("0026 aaaa03 000000 0800", "ip,vlan_tci=0x0000/0x1fff");
    check("0026 424203 000000 0800", "vlan_tci=0x0000/0x1fff,dl_type=0x05ff");
    check("0026 aaaa03 000000", "vlan_tci=0x0000/0x1fff,dl_type=0x05ff");
}

#[test]
fn ipv4_is_read_to_its_ports() {
    let addresses = "40060000 0a000001 0a000002";
    check(
        &format!("0800 45b90028 00000000 {addresses} {TCP}"),
        "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=184,nw_ecn=1,tp_src=80,tp_dst=22",
    );
    check(
        &format!("0800 4600002c 00000000 {addresses} 01010101 {TCP}"),
        "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,tp_src=80,tp_dst=22",
    );
    // The first fragment has the ports, a later one has not; what is behind the packet is padding.
    let without = "tcp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0";
    check(&format!("0800 45000028 00002000 {addresses} {TCP}"), &format!("{without},tp_src=80,tp_dst=22"));
    check(&format!("0800 45000028 00002001 {addresses} {TCP}"), without);
    check(&format!("0800 45000014 00000000 {addresses} {TCP}"), without);
    check(
        "0800 4500001c 00000000 40010000 0a000001 0a000002 08000000 00000000",
        "icmp,vlan_tci=0x0000/0x1fff,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,icmp_type=8,icmp_code=0",
    );
}

const SOURCE: &str = "20010db8000000000000000000000001";
const DESTINATION: &str = "ff020000000000000000000000000001";

/// The words of a packet that is IPv6 from `SOURCE` to `DESTINATION`.
fn ipv6_words(shorthand: &str, behind: &str, exthdr: &str) -> String {
    format!(
        "{shorthand},vlan_tci=0x0000/0x1fff,ipv6_src=2001:db8::1,ipv6_dst=ff02::1,ipv6_label=0x12345,{behind}ipv6_exthdr={exthdr}"
    )
}

fn check_ipv6(next: &str, payload: &str, shorthand: &str, behind: &str, exthdr: &str) {
    let length = bytes(payload).len();
    let frame = format!("86dd 6b912345 {length:04x} {next} 40 {SOURCE} {DESTINATION} {payload}");
    check(&frame, &ipv6_words(shorthand, behind, exthdr));
}

#[test]
fn ipv6_is_read_through_its_extension_headers() {
    let tos = "nw_tos=184,nw_ecn=1,";
    let ports = "nw_tos=184,nw_ecn=1,tp_src=80,tp_dst=22,";
    check_ipv6("06", TCP, "tcp6", ports, "0x0");
    check_ipv6("00", &format!("3c00000000000000 0600000000000000 {TCP}"), "tcp6", ports, "0x48");
    // Out of order; the same twice; nothing behind; encrypted.
    check_ipv6("3c", &format!("0000000000000000 0600000000000000 {TCP}"), "tcp6", ports, "0x148");
    check_ipv6("2b", &format!("2b00000000000000 0600000000000000 {TCP}"), "tcp6", ports, "0xa0");
    check_ipv6("3b", "", "ipv6", &format!("nw_proto=59,{tos}"), "0x1");
    check_ipv6("32", "0000000000000000", "ipv6", &format!("nw_proto=50,{tos}"), "0x2");
    check_ipv6(
        "33",
        &format!("0604000000000000 00000000 0000000000000000 00000000 {TCP}"),
        "tcp6",
        ports,
        "0x4",
    );
    // The first fragment, and a later one.
    check_ipv6("2c", &format!("0600000100000000 {TCP}"), "tcp6", ports, "0x10");
    check_ipv6("2c", &format!("0600000900000000 {TCP}"), "ipv6", &format!("nw_proto=44,{tos}"), "0x10");
}

#[test]
fn an_extension_header_that_is_cut_off_has_no_protocol() {
    check(
        &format!("86dd 6b912345 0008 00 40 {SOURCE} {DESTINATION} 06010000 00000000"),
        &ipv6_words("ipv6", "nw_tos=184,nw_ecn=1,", "0x40"),
    );
}

#[test]
fn neighbour_discovery_has_its_target_and_option() {
    let icmp = |kind: &str, option: &str| format!("{kind}00 0000 00000000 {SOURCE} {option}");
    let words = |kind: u8, rest: &str| {
        format!("nw_tos=184,nw_ecn=1,icmp_type={kind},icmp_code=0,nd_target=2001:db8::1,{rest}")
    };
    check_ipv6(
        "3a",
        &icmp("87", "0101 000000000007"),
        "icmp6",
        &words(135, "nd_sll=00:00:00:00:00:07,"),
        "0x0",
    );
    check_ipv6(
        "3a",
        &icmp("88", "0201 000000000007"),
        "icmp6",
        &words(136, "nd_tll=00:00:00:00:00:07,"),
        "0x0",
    );
    check_ipv6("3a", &icmp("87", "0201 000000000007"), "icmp6", &words(135, ""), "0x0");
    check_ipv6("3a", &icmp("87", "0100 000000000007"), "icmp6", &words(135, ""), "0x0");
}

#[test]
fn other_kinds_have_their_fields() {
    check(
        "0806 0001 0800 06 04 0002 000000000001 0a000001 000000000002 0a000002",
        "arp,vlan_tci=0x0000/0x1fff,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=2,arp_sha=00:00:00:00:00:01,arp_tha=00:00:00:00:00:02",
    );
    check("8847 00005740", "mpls,vlan_tci=0x0000/0x1fff,mpls_label=5,mpls_tc=3,mpls_bos=1");
    check("88e7 e0010203", "vlan_tci=0x0000/0x1fff,dl_type=0x88e7,pbb_isid=66051");
}

#[test]
fn what_is_not_known_does_not_match() {
    let fields = FrameFields::read(&bytes(&format!("{ETHERNET} 0800"))).from_port(PortNo(1));
    assert!(parse_match("in_port=1,ip,metadata=0").unwrap().matches(&fields));
    assert!(!parse_match("reg0=0").unwrap().matches(&fields));
    assert!(!parse_match("ip,nw_src=0.0.0.0").unwrap().matches(&fields));
    let says_nothing = Match::any().with_masked(Field::Ipv4Src, 0u8, 0u8);
    assert!(says_nothing.matches(&fields));
}

proptest! {
    #[test]
    fn no_frame_panics(frame in vec(any::<u8>(), 0..200), kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x8847, 0x8100, 0x88e7, 5])) {
        let mut frame = frame;
        if let Some(there) = frame.get_mut(12..14) {
            there.copy_from_slice(&kind.to_be_bytes());
        }
        let fields = FrameFields::read(&frame);
        prop_assert!(fields.to_match().matches(&fields));
        // More bytes never take a field away, except behind lengths that are in the bytes.
        prop_assert!(frame.len() < 14 || fields.has(Field::EthSrc));
    }

    #[test]
    fn a_frames_fields_satisfy_their_prerequisites(frame in vec(any::<u8>(), 60..200), kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x8847, 0x88e7]), first in prop::sample::select(vec![0x45u8, 0x60, 0x00]), proto in prop::sample::select(vec![0u8, 1, 6, 17, 44, 58, 60, 132])) {
        let mut frame = frame;
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        frame[14] = first;
        frame[20] = proto;
        frame[23] = proto;
        let fields = FrameFields::read(&frame).from_port(PortNo(1));
        prop_assert_eq!(crate::canonical::check_prerequisites(&fields.to_match()), Ok(()));
        prop_assert!(!crate::relation::is_nothing(&fields.to_match()));
    }

    #[test]
    fn relations_hold_for_frames(one in crate::arbitrary::rule(), other in crate::arbitrary::rule(), frame in vec(any::<u8>(), 0..100)) {
        let fields = FrameFields::read(&frame).from_port(PortNo(1));
        if one.matches(&fields) && other.matches(&fields) {
            prop_assert!(crate::relation::overlaps(&one, &other));
        }
        if crate::relation::covers(&one, &other) && other.matches(&fields) {
            prop_assert!(one.matches(&fields));
        }
    }
}
