//! The frames with which the service asks whether a host is still there.
//!
//! In: a host's id and one of its addresses. Out: a frame that only this host answers. It sends nothing.
//!
//! A probe goes to the host's own Ethernet address and out of its port only, so no other host sees it. Its source is an address
//! that no host has. An ARP probe has no sender address, so that nobody learns one from it (RFC 5227, 2.1.1).

use burnet_sdk::MacAddr;
use etherparse::{
    ArpHardwareId, ArpOperation, ArpPacket, EtherType, Ethernet2Header, IpNumber, Ipv6FlowLabel, Ipv6Header,
    SingleVlanHeader, VlanId,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use view::HostId;

/// The source of all probes: locally administered, for one station. Frames from it are never learned.
pub const PROBE_MAC: MacAddr = MacAddr([0x02, 0x62, 0x75, 0x72, 0x6e, 0x01]);

/// The link-local address that belongs to [`PROBE_MAC`] (RFC 4291, appendix A).
const PROBE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0062, 0x75ff, 0xfe72, 0x6e01);

const NEIGHBOUR_SOLICITATION: u8 = 135;

/// The frame that asks the host for this address.
pub fn frame(host: HostId, address: IpAddr) -> Vec<u8> {
    let (ether_type, payload) = match address {
        IpAddr::V4(address) => (EtherType::ARP, arp(host.mac, address)),
        IpAddr::V6(address) => (EtherType::IPV6, solicitation(address)),
    };
    let mut frame = header(host, ether_type);
    frame.extend_from_slice(&payload);
    frame
}

fn header(host: HostId, ether_type: EtherType) -> Vec<u8> {
    let tag = host.vlan.and_then(|vlan| VlanId::try_new(vlan).ok());
    let ethernet = Ethernet2Header {
        source: PROBE_MAC.0,
        destination: host.mac.0,
        ether_type: if tag.is_some() { EtherType::VLAN_TAGGED_FRAME } else { ether_type },
    };
    let mut bytes = ethernet.to_bytes().to_vec();
    if let Some(vlan_id) = tag {
        bytes.extend(SingleVlanHeader { vlan_id, ether_type, ..SingleVlanHeader::default() }.to_bytes());
    }
    bytes
}

fn arp(mac: MacAddr, address: Ipv4Addr) -> Vec<u8> {
    let unspecified = Ipv4Addr::UNSPECIFIED.octets();
    let request = ArpPacket::new(
        ArpHardwareId::ETHERNET,
        EtherType::IPV4,
        ArpOperation::REQUEST,
        &PROBE_MAC.0,
        &unspecified,
        &mac.0,
        &address.octets(),
    );
    // The lengths of the addresses fit: 6 and 4.
    request.map(|request| request.to_bytes().to_vec()).unwrap_or_default()
}

fn solicitation(target: Ipv6Addr) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend_from_slice(&target.octets());
    // The option with the source's Ethernet address, so that the host need not ask for it.
    body.extend_from_slice(&[1, 1]);
    body.extend_from_slice(&PROBE_MAC.0);
    let mut icmp = vec![NEIGHBOUR_SOLICITATION, 0, 0, 0];
    icmp.extend_from_slice(&body);
    let checksum = checksum(PROBE_IPV6, target, &icmp);
    icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    let ip = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: 32,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit: 255,
        source: PROBE_IPV6.octets(),
        destination: target.octets(),
    };
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&icmp);
    bytes
}

/// The checksum of ICMPv6, over the pseudo-header too (RFC 8200, 8.1).
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, icmp: &[u8]) -> u16 {
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    };
    let pseudo = icmp.len() as u32 + u32::from(IpNumber::IPV6_ICMP.0);
    let mut sum = words(&source.octets()) + words(&destination.octets()) + pseudo + words(icmp);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    fn check(host: &str, address: &str, expected: &str) {
        let frame = frame(host.parse().unwrap(), address.parse().unwrap());
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.split_whitespace().collect::<String>());
    }

    #[test]
    fn an_arp_probe_names_no_sender_address() {
        check(
            "00:00:00:00:00:07",
            "10.0.0.7",
            "000000000007 026275726e01 0806 0001 0800 06 04 0001 026275726e01 00000000 000000000007 0a000007",
        );
        check(
            "00:00:00:00:00:07.100",
            "10.0.0.7",
            "000000000007 026275726e01 8100 0064 0806 0001 0800 06 04 0001 026275726e01 00000000 000000000007 0a000007",
        );
    }

    #[test]
    fn a_solicitation_is_one_that_a_host_accepts() {
        let frame = frame("00:00:00:00:00:07.100".parse().unwrap(), "2001:db8::7".parse().unwrap());
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) = (&packet.net, &packet.transport)
        else {
            panic!("{packet:?}")
        };
        let header = ip.header();
        assert_eq!((header.hop_limit(), header.payload_length()), (255, 32));
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        assert_eq!(icmp.payload()[..16], header.destination());
    }

    #[test]
    fn a_probe_is_never_taken_for_a_host() {
        for address in ["10.0.0.7", "2001:db8::7"] {
            let frame = frame("00:00:00:00:00:07".parse().unwrap(), address.parse().unwrap());
            assert_eq!(crate::frame::read(&frame), Err(crate::frame::Unread::Other));
        }
    }
}
