//! Frames: damaged ones first, then each kind.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

/// `expected`: the host, a blank and its address; what a server gave to whom; or why the frame tells nothing.
fn check(hex: &str, expected: &str) {
    let text = |address: Option<IpAddr>| address.map(|address| format!(" {address}")).unwrap_or_default();
    let said = match read(&bytes(hex)) {
        Ok(Told::Host { id, address }) => format!("{id}{}", text(address)),
        Ok(Told::DhcpServer { id, address, lease }) => {
            let lease = lease.map(|(client, address)| format!(": {client} {address}")).unwrap_or_default();
            format!("server {id}{}{lease}", text(address))
        }
        Err(Unread::Other) => "other".to_owned(),
        Err(Unread::Bad(why)) => why.to_owned(),
    };
    assert_eq!(said, expected, "{hex}");
}

const CUT: &str = "a header is cut off or wrong";
const TO_ALL: &str = "ffffffffffff 000000000007";
const ARP: &str = "0806 0001 0800 06 04 0001 000000000007 0a000007 000000000000 0a000001";

#[test]
fn a_damaged_frame_tells_nothing() {
    check("", CUT);
    check("ffffffffffff 0000000000", CUT);
    check(&format!("{TO_ALL} 0806 0001 0800 06 04 0001 000000000007 0a00"), CUT);
    check(&format!("{TO_ALL} 8100 00"), CUT);
    check(&format!("{TO_ALL} 0800 4500 0014"), CUT);
    check(&format!("{TO_ALL} 86dd 6000 0000 0020 3a ff"), CUT);
    check(&format!("{TO_ALL} 8100 0fff {ARP}"), "the VLAN 4095 is reserved");
    for source in ["ffffffffffff", "010000000007", "000000000000"] {
        check(&format!("ffffffffffff {source} {ARP}"), "the source is no address of a single host");
    }
}

#[test]
fn frames_of_other_kinds_tell_nothing() {
    check(&format!("{TO_ALL} 88cc 0207"), "other");
    check(&format!("{TO_ALL} 0026 424203 000000"), "other");
    check(&format!("{TO_ALL} 0800 45000014 00000000 40060000 0a000007 0a000001"), CUT);
    check(&format!("{TO_ALL} 0800 4500001c 00000000 40010000 0a000007 0a000001 08000000 00000000"), "other");
    check(
        &format!("{TO_ALL} 0800 4500001c 00000000 40110000 0a000007 0a000001 0035 0035 0008 0000"),
        "other",
    );
}

#[test]
fn arp_tells_of_its_sender() {
    let of = |operation: &str, sender: &str, address: &str| {
        format!("{TO_ALL} 0806 0001 0800 06 04 {operation} {sender} {address} 000000000000 0a000001")
    };
    check(&of("0001", "000000000007", "0a000007"), "00:00:00:00:00:07 10.0.0.7");
    check(&of("0002", "000000000007", "0a000007"), "00:00:00:00:00:07 10.0.0.7");
    // A probe names no address (RFC 5227); others are no address of a host.
    check(&of("0001", "000000000007", "00000000"), "00:00:00:00:00:07");
    check(&of("0001", "000000000007", "ffffffff"), "00:00:00:00:00:07");
    check(&of("0001", "000000000007", "e0000001"), "00:00:00:00:00:07");
    check(&of("0001", "000000000008", "0a000007"), "ARP names another sender than the Ethernet header");
    check(
        &format!("{TO_ALL} 0806 0001 86dd 06 10 0001 000000000007 {0} 000000000000 {0}", "00".repeat(16)),
        "it is ARP for another kind of address",
    );
    check(
        &format!("{TO_ALL} 0806 0006 0800 06 04 0001 000000000007 0a000007 000000000000 0a000001"),
        "it is ARP for another kind of address",
    );
}

#[test]
fn the_outermost_tag_is_the_vlan_and_the_number_0_is_none() {
    check(&format!("{TO_ALL} 8100 2064 {ARP}"), "00:00:00:00:00:07.100 10.0.0.7");
    check(&format!("{TO_ALL} 8100 e000 {ARP}"), "00:00:00:00:00:07 10.0.0.7");
    check(&format!("{TO_ALL} 88a8 0005 8100 0064 {ARP}"), "00:00:00:00:00:07.5 10.0.0.7");
}

const NOWHERE: &str = "00000000000000000000000000000000";
const HOST: &str = "20010db8000000000000000000000007";
const GROUP: &str = "ff020000000000000000000000000001";

fn icmp(hop_limit: &str, source: &str, message: &str) -> String {
    let length = bytes(message).len();
    format!("{TO_ALL} 86dd 60000000 {length:04x} 3a {hop_limit} {source} {GROUP} {message}")
}

#[test]
fn neighbour_discovery_from_elsewhere_or_damaged_tells_nothing() {
    let elsewhere = "neighbour discovery does not come from this link";
    let damaged = "an option of neighbour discovery is damaged";
    let solicitation = format!("87000000 00000000 {HOST}");
    check(&icmp("fe", HOST, &solicitation), elsewhere);
    check(&icmp("ff", HOST, &format!("87010000 00000000 {HOST}")), elsewhere);
    check(&icmp("ff", HOST, "87000000 00000000 2001"), "neighbour discovery is cut off");
    check(&icmp("ff", HOST, &format!("{solicitation} 0100 000000000007")), damaged);
    check(&icmp("ff", HOST, &format!("{solicitation} 0102 000000000007")), damaged);
    check(&icmp("ff", HOST, &format!("{solicitation} 01")), damaged);
    check(
        &icmp("ff", HOST, &format!("{solicitation} 0101 000000000008")),
        "neighbour discovery names another sender than the Ethernet header",
    );
    check(&icmp("ff", HOST, "80000000 00000000"), "other");
}

#[test]
fn neighbour_discovery_tells_of_its_sender() {
    let of =
        |kind: &str, source: &str, rest: &str| icmp("ff", source, &format!("{kind}000000 00000000 {rest}"));
    let there = "00:00:00:00:00:07 2001:db8::7";
    check(&of("85", HOST, "0101 000000000007"), there);
    check(&of("85", NOWHERE, ""), "00:00:00:00:00:07");
    check(&of("86", HOST, "00000000 00000000 0101 000000000007"), there);
    check(&of("87", HOST, &format!("{GROUP} 0101 000000000007")), there);
    // A host that looks whether its address is free does not have it yet (RFC 4862, 5.4).
    check(&of("87", NOWHERE, HOST), "00:00:00:00:00:07");
    check(&of("88", "fe800000000000000000000000000007", &format!("{HOST} 0201 000000000007")), there);
    check(&of("88", HOST, HOST), there);
}

/// A DHCP message in a frame: operation, address given, relay, client, options.
fn dhcp(ports: &str, op: &str, given: &str, relay: &str, client: &str, options: &str) -> String {
    let fixed = format!("{op}010600 00000001 00000000 00000000 {given} 00000000 {relay} {client}");
    let message = format!("{fixed} {} {} 63825363 {options}", "00".repeat(10), "00".repeat(192));
    let length = bytes(&message).len();
    format!(
        "{TO_ALL} 0800 4500{:04x} 00000000 40110000 0a000001 ffffffff {ports} {:04x} 0000 {message}",
        length + 28,
        length + 8
    )
}

const TO_SERVER: &str = "0044 0043";
const TO_CLIENT: &str = "0043 0044";
const NONE: &str = "00000000";

#[test]
fn a_damaged_dhcp_message_tells_nothing() {
    let damaged = "DHCP is damaged";
    let ack = |options: &str| dhcp(TO_CLIENT, "02", "0a000009", NONE, "000000000009", options);
    check(&ack(""), damaged);
    check(&ack("ff"), damaged);
    check(&ack("35"), damaged);
    check(&ack("3501"), damaged);
    check(&ack("350205 05"), damaged);
    check(&ack("0c05 61"), damaged);
    check(&ack("350105").replace("63825363", "63825364"), damaged);
    check(&dhcp(TO_CLIENT, "03", "0a000009", NONE, "000000000009", "350105"), damaged);
    check(
        &dhcp(TO_SERVER, "01", NONE, NONE, "000000000009", "350103"),
        "DHCP names another client than the Ethernet header",
    );
    let short =
        format!("{TO_ALL} 0800 45000020 00000000 40110000 0a000001 ffffffff {TO_CLIENT} 000c 0000 02010600");
    check(&short, damaged);
}

#[test]
fn dhcp_tells_of_clients_servers_and_leases() {
    let ack =
        |given: &str, relay: &str| dhcp(TO_CLIENT, "02", given, relay, "000000000009", "0c0161 00 350105 ff");
    check(&ack("0a000009", NONE), "server 00:00:00:00:00:07 10.0.0.1: 00:00:00:00:00:09 10.0.0.9");
    check(&ack(NONE, NONE), "server 00:00:00:00:00:07 10.0.0.1");
    check(&ack("0a000009", "0a010001"), "00:00:00:00:00:07");
    let offer = dhcp(TO_CLIENT, "02", "0a000009", NONE, "000000000009", "350102");
    check(&offer, "server 00:00:00:00:00:07 10.0.0.1");
    check(&dhcp(TO_SERVER, "01", NONE, NONE, "000000000007", "350101"), "00:00:00:00:00:07");
    check(&dhcp("0043 0043", "01", NONE, "0a010001", "000000000009", "350103"), "00:00:00:00:00:07");
}

fn dhcpv6(ports: &str, message: &str) -> String {
    let length = bytes(message).len() + 8;
    format!(
        "000000000009 000000000007 86dd 60000000 {length:04x} 11 01 {HOST} fe800000000000000000000000000009 {ports} {length:04x} 0000 {message}"
    )
}

#[test]
fn dhcpv6_tells_of_clients_servers_and_leases() {
    let server = "server 00:00:00:00:00:07 2001:db8::7";
    let address = "20010db8000000000000000000000009";
    let reply = |times: &str| {
        dhcpv6(
            "0223 0222",
            &format!(
                "07 000001 0001 0002 aaaa 0003 0028 00000001 00000000 00000000 0005 0018 {address} {times}"
            ),
        )
    };
    check(&reply("00000e10 00001c20"), &format!("{server}: 00:00:00:00:00:09 2001:db8::9"));
    check(&reply("00000000 00000000"), server);
    check(&dhcpv6("0223 0222", "02 000001"), server);
    check(&dhcpv6("0223 0222", "07 000001"), server);
    check(&dhcpv6("0223 0222", "07 000001 0003 000c 00000001 00000000 00000000"), server);
    check(&dhcpv6("0222 0223", "01 000001"), "00:00:00:00:00:07 2001:db8::7");
    for damaged in
        ["07 0000", "07 000001 0003", "07 000001 0003 0004 00000001", "07 000001 0003 0010 00000001"]
    {
        check(&dhcpv6("0223 0222", damaged), "DHCPv6 is damaged");
    }
}

proptest! {
    #[test]
    fn whatever_bytes_come_reading_ends(
        frame in vec(any::<u8>(), 0..400),
        kind in prop::sample::select(vec![0x0800_u16, 0x86dd, 0x0806, 0x8100]),
        protocol in prop::sample::select(vec![17_u8, 58]),
        ports in prop::sample::select(vec![[0_u8, 67, 0, 68], [2, 0x23, 2, 0x22], [0, 68, 0, 67]]),
    ) {
        let mut frame = frame;
        for (at, part) in [(12, &kind.to_be_bytes()[..]), (20, &[protocol]), (23, &[protocol]), (34, &ports), (54, &ports)] {
            if let Some(there) = frame.get_mut(at..at + part.len()) {
                there.copy_from_slice(part);
            }
        }
        if let Ok(Told::Host { id, address } | Told::DhcpServer { id, address, .. }) = read(&frame) {
            prop_assert!(is_of_a_host(id) && address.is_none_or(|address| is_address_of_a_host(&address)));
        }
    }

    #[test]
    fn a_frame_that_is_cut_off_tells_the_same_or_nothing(cut in 0..400_usize) {
        for whole in [dhcp(TO_CLIENT, "02", "0a000009", NONE, "000000000009", "350105ff"), format!("{TO_ALL} {ARP}"),
            icmp("ff", HOST, &format!("87000000 00000000 {HOST} 0101 000000000007"))] {
            let whole = bytes(&whole);
            let part = &whole[..cut.min(whole.len())];
            prop_assert!(matches!(read(part), Err(Unread::Bad(_))) || read(part) == read(&whole));
        }
    }
}
