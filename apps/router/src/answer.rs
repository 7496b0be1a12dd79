//! The frames that the router writes: answers, questions, errors, and packets that it passes on.
//!
//! In: addresses, packets that were read. Out: frames. All of them come from the router's Ethernet address. It decides nothing.

use crate::frame::{ARP, ICMP, ICMPV6, IPV4, IPV6, Packet, TAG, checksum};
use burnet_sdk::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The router's Ethernet address, locally administered. The app's capabilities name it, so no setting can change it.
pub(crate) const MAC: MacAddr = MacAddr([0x02, 0x62, 0x75, 0x72, 0x6e, 0x52]);

/// The hop limit of neighbour discovery (RFC 4861, 7.1.1), and that of other packets of the router.
const NEIGHBOUR_HOPS: u8 = 255;
const OWN_HOPS: u8 = 64;

/// How much of a packet an error holds: the message stays below 576 bytes (RFC 1812, 4.3.2.3), and below 1,280 in IPv6 (RFC 4443, 2.4).
const QUOTED_V4: usize = 548;
const QUOTED_V6: usize = 1_232;

/// Who a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recipient {
    pub(crate) mac: MacAddr,
    pub(crate) vlan: Option<u16>,
}

/// Why a packet does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its time-to-live has ended.
    TimeExceeded,
    /// There is no route.
    NoRoute,
    /// The neighbour does not answer.
    HostUnreachable,
    /// The router has nothing at this port.
    PortUnreachable,
}

impl Trouble {
    /// The type and the code (RFC 792, RFC 4443).
    fn codes(self, is_ipv4: bool) -> [u8; 2] {
        match (self, is_ipv4) {
            (Trouble::TimeExceeded, true) => [11, 0],
            (Trouble::NoRoute, true) => [3, 0],
            (Trouble::HostUnreachable, true) => [3, 1],
            (Trouble::PortUnreachable, true) => [3, 3],
            (Trouble::TimeExceeded, false) => [3, 0],
            (Trouble::NoRoute, false) => [1, 0],
            (Trouble::HostUnreachable, false) => [1, 3],
            (Trouble::PortUnreachable, false) => [1, 4],
        }
    }
}

fn ethernet(to: Recipient, eth_type: u16, payload: &[&[u8]]) -> Vec<u8> {
    let mut frame = [to.mac.0, MAC.0].concat();
    if let Some(vlan) = to.vlan {
        frame.extend_from_slice(&TAG.to_be_bytes());
        frame.extend_from_slice(&vlan.to_be_bytes());
    }
    frame.extend_from_slice(&eth_type.to_be_bytes());
    payload.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

/// Says that the router has this address.
pub(crate) fn claim(to: Recipient, asker: IpAddr, own: IpAddr) -> Option<Vec<u8>> {
    match (asker, own) {
        (IpAddr::V4(asker), IpAddr::V4(own)) => Some(arp(2, to, own, (to.mac, asker))),
        (IpAddr::V6(asker), IpAddr::V6(own)) => {
            // Router, solicited, override; the target's Ethernet address (RFC 4861, 4.4).
            let body = [&[0xe0, 0, 0, 0][..], &own.octets(), &[2, 1], &MAC.0].concat();
            Some(icmp_v6(to, own, asker, NEIGHBOUR_HOPS, [136, 0], &body))
        }
        _ => None,
    }
}

/// Asks for the Ethernet address of a neighbour.
pub(crate) fn question(vlan: Option<u16>, own: IpAddr, neighbour: IpAddr) -> Option<Vec<u8>> {
    match (own, neighbour) {
        (IpAddr::V4(own), IpAddr::V4(neighbour)) => {
            let to = Recipient { mac: MacAddr([0xff; 6]), vlan };
            Some(arp(1, to, own, (MacAddr([0; 6]), neighbour)))
        }
        (IpAddr::V6(own), IpAddr::V6(neighbour)) => {
            // The group of all that have an address with these last three bytes (RFC 4291, 2.7.1; RFC 2464, 7).
            let [.., a, b, c] = neighbour.octets();
            let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
            let to = Recipient { mac: MacAddr([0x33, 0x33, 0xff, a, b, c]), vlan };
            let body = [&[0; 4][..], &neighbour.octets(), &[1, 1], &MAC.0].concat();
            Some(icmp_v6(to, own, group, NEIGHBOUR_HOPS, [135, 0], &body))
        }
        _ => None,
    }
}

fn arp(op: u8, to: Recipient, own: Ipv4Addr, target: (MacAddr, Ipv4Addr)) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, op];
    let parts: [&[u8]; 5] = [&head, &MAC.0, &own.octets(), &target.0.0, &target.1.octets()];
    ethernet(to, ARP, &parts)
}

/// The reply to an echo request for the router. `None`: it is none.
pub(crate) fn echo_reply(to: Recipient, request: &Packet<'_>) -> Option<Vec<u8>> {
    let rest = request.body.get(4..).filter(|_| request.is_beginning)?;
    match (request.to, request.from, request.protocol, request.body[0]) {
        (IpAddr::V4(own), IpAddr::V4(asker), ICMP, 8) => Some(icmp_v4(to, own, asker, [0, 0], rest)),
        (IpAddr::V6(own), IpAddr::V6(asker), ICMPV6, 128) => {
            Some(icmp_v6(to, own, asker, OWN_HOPS, [129, 0], rest))
        }
        _ => None,
    }
}

/// Tells the sender of a packet why it does not go on. `own`: the address that says it.
pub(crate) fn error(to: Recipient, own: IpAddr, about: &Packet<'_>, trouble: Trouble) -> Option<Vec<u8>> {
    let quoted = |most: usize| &about.bytes[..about.bytes.len().min(most)];
    let codes = trouble.codes(own.is_ipv4());
    match (own, about.from) {
        (IpAddr::V4(own), IpAddr::V4(asker)) => {
            Some(icmp_v4(to, own, asker, codes, &[&[0; 4][..], quoted(QUOTED_V4)].concat()))
        }
        (IpAddr::V6(own), IpAddr::V6(asker)) => {
            Some(icmp_v6(to, own, asker, OWN_HOPS, codes, &[&[0; 4][..], quoted(QUOTED_V6)].concat()))
        }
        _ => None,
    }
}

fn icmp_v4(to: Recipient, from: Ipv4Addr, dst: Ipv4Addr, codes: [u8; 2], rest: &[u8]) -> Vec<u8> {
    let sum = checksum(&[&codes, rest]).to_be_bytes();
    // Packets that were read are shorter than 64 KiB, and what is behind their checksum is shorter still.
    let length = (24 + rest.len()) as u16;
    let mut header = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, OWN_HOPS, ICMP, 0, 0]].concat();
    header.extend_from_slice(&from.octets());
    header.extend_from_slice(&dst.octets());
    let own = checksum(&[&header]).to_be_bytes();
    header[10..12].copy_from_slice(&own);
    ethernet(to, IPV4, &[&header, &codes, &sum, rest])
}

fn icmp_v6(to: Recipient, from: Ipv6Addr, dst: Ipv6Addr, hops: u8, codes: [u8; 2], rest: &[u8]) -> Vec<u8> {
    // As above.
    let length = ((4 + rest.len()) as u16).to_be_bytes();
    let (from, dst) = (from.octets(), dst.octets());
    let sum = checksum(&[&from, &dst, &[0, 0], &length, &[0, 0, 0, ICMPV6], &codes, rest]).to_be_bytes();
    let parts: [&[u8]; 9] =
        [&[0x60, 0, 0, 0], &length, &[ICMPV6, hops], &from, &dst, &codes, &sum, rest, &[]];
    ethernet(to, IPV6, &parts)
}

/// The packet on its way to the next hop, with one hop less.
pub(crate) fn passed_on(to: Recipient, packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = packet.bytes.to_vec();
    let hops_left = packet.hops_left.saturating_sub(1);
    if packet.to.is_ipv6() {
        bytes[7] = hops_left;
        return ethernet(to, IPV6, &[&bytes]);
    }
    let header_len = bytes.len() - packet.body.len();
    bytes[8] = hops_left;
    bytes[10..12].fill(0);
    let sum = checksum(&[&bytes[..header_len]]).to_be_bytes();
    bytes[10..12].copy_from_slice(&sum);
    ethernet(to, IPV4, &[&bytes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Content, Frame, ipv4, ipv6};

    const HOST: Recipient = Recipient { mac: MacAddr([2, 0, 0, 0, 0, 5]), vlan: Some(7) };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The packet in a frame, whose header was checked.
    fn packet(frame: &[u8]) -> Packet<'_> {
        let read = Frame::read(frame).unwrap();
        assert_eq!((read.from, read.to, read.vlan), (MAC, HOST.mac, HOST.vlan));
        let Content::Packet(packet) = read.content else { panic!("{read:?}") };
        packet
    }

    #[test]
    fn a_question_of_the_router_is_read_as_one() {
        let check = |own: &str, neighbour: &str| {
            let frame = question(Some(7), address(own), address(neighbour)).unwrap();
            let read = Frame::read(&frame).unwrap();
            assert_eq!(read.content, Content::Question { asker: address(own), target: address(neighbour) });
            assert!(read.to.is_multicast() && read.from == MAC);
        };
        check("10.0.1.1", "10.0.1.7");
        check("fd00:1::1", "fd00:1::7");
        assert_eq!(question(None, address("10.0.1.1"), address("fd00::1")), None);
    }

    #[test]
    fn an_echo_reply_has_the_request_s_content_and_a_sound_checksum() {
        let request = icmp_v4(HOST, [10, 0, 2, 2].into(), [10, 0, 1, 1].into(), [8, 0], &[1, 2, 3, 4, 5]);
        let frame = echo_reply(HOST, &packet(&request)).unwrap();
        let reply = packet(&frame);
        assert_eq!((reply.from, reply.to), (address("10.0.1.1"), address("10.0.2.2")));
        assert_eq!((reply.body[0], &reply.body[4..], checksum(&[reply.body])), (0, &[1, 2, 3, 4, 5][..], 0));
        assert_eq!(echo_reply(HOST, &reply), None, "a reply is no request");
        let cut = icmp_v4(HOST, [10, 0, 2, 2].into(), [10, 0, 1, 1].into(), [8, 0], &[]);
        assert!(echo_reply(HOST, &packet(&cut)).is_some(), "an empty one is answered too");
    }

    #[test]
    fn an_error_quotes_the_packet_and_stays_short() {
        let long = icmp_v4(HOST, [10, 0, 2, 2].into(), [10, 0, 1, 9].into(), [8, 0], &[7; 1_400]);
        let about = packet(&long);
        let frame = error(HOST, address("10.0.1.1"), &about, Trouble::TimeExceeded).unwrap();
        let said = packet(&frame);
        assert_eq!((said.to, said.body[..2].to_vec(), said.bytes.len()), (about.from, vec![11, 0], 576));
        assert_eq!((checksum(&[said.body]), ipv4(about.bytes).is_some()), (0, true));
        assert!(!said.may_cause_error(), "nobody answers an error with an error");
        let long = icmp_v6(HOST, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 9, [128, 0], &[7; 1_400]);
        let frame = error(HOST, address("fd00::1"), &packet(&long), Trouble::NoRoute).unwrap();
        assert_eq!((packet(&frame).bytes.len(), packet(&frame).body[0]), (1_280, 1));
    }

    #[test]
    fn a_packet_that_is_passed_on_has_one_hop_less_and_a_sound_header() {
        let v4 = icmp_v4(HOST, [10, 0, 2, 2].into(), [10, 0, 1, 9].into(), [8, 0], &[1, 2]);
        let frame = passed_on(HOST, &packet(&v4));
        assert_eq!((packet(&frame).hops_left, packet(&frame).body), (OWN_HOPS - 1, packet(&v4).body));
        let v6 = icmp_v6(HOST, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 9, [128, 0], &[1]);
        let frame = passed_on(HOST, &packet(&v6));
        assert_eq!(ipv6(packet(&frame).bytes).unwrap().hops_left, 8);
    }
}
