//! Applies an action to a frame's bytes: set-field with checksums, push and pop of tags, times to live.
//!
//! In: an action and a frame. Out: the changed frame. As in OpenFlow, an action on a missing header changes nothing.
//! It never sends a frame: output, groups and queues belong to the pipeline.

use flow::{Action, Field, MacAddr};

use super::checksum::{self, of_pseudo_header, of_transport, replace};
use super::layout::{Layout, Network, Transport};
use super::{ether_type, protocol, u16_at, u32_at};

/// The bit of the field `vlan_vid` that means that the frame has a tag (OFPVID_PRESENT).
const VLAN_PRESENT: u16 = 0x1000;

/// A time-to-live would fall below one (OFPR_INVALID_TTL). The packet must not be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidTtl;

/// Applies an action that changes the frame. Other actions have no effect here.
pub(crate) fn apply(action: &Action, frame: &mut Vec<u8>) -> Result<(), InvalidTtl> {
    let Some(layout) = Layout::of(frame) else { return Ok(()) };
    match action {
        Action::SetField { field, value } => set_field(frame, &layout, *field, *value),
        Action::SetEthSrc(address) => frame[6..12].copy_from_slice(&address.0),
        Action::SetEthDst(MacAddr(octets)) => frame[..6].copy_from_slice(octets),
        Action::SetVlanVid(vid) => set_or_push_vlan(frame, &layout, 0x0fff, *vid),
        Action::SetVlanPcp(pcp) => set_or_push_vlan(frame, &layout, 0xe000, u16::from(*pcp) << 13),
        Action::StripVlan | Action::PopVlan => pop_vlan(frame, &layout),
        Action::PushVlan(kind) => push_vlan(frame, &layout, *kind),
        Action::SetIpv4Src(address) => set_field(frame, &layout, Field::Ipv4Src, u32::from(*address).into()),
        Action::SetIpv4Dst(address) => set_field(frame, &layout, Field::Ipv4Dst, u32::from(*address).into()),
        Action::SetIpTos(tos) => set_field(frame, &layout, Field::IpDscp, u128::from(*tos >> 2)),
        Action::SetTransportSrc(port) => set_transport_port(frame, &layout, 0, *port),
        Action::SetTransportDst(port) => set_transport_port(frame, &layout, 2, *port),
        Action::PushMpls(kind) => push_mpls(frame, &layout, *kind),
        Action::PopMpls(kind) => pop_mpls(frame, &layout, *kind),
        Action::SetMplsTtl(ttl) if layout.mpls_labels > 0 => frame[layout.after_tags() + 3] = *ttl,
        Action::SetNwTtl(ttl) => set_network_ttl(frame, layout.network, *ttl),
        Action::DecMplsTtl if layout.mpls_labels > 0 => {
            frame[layout.after_tags() + 3] = decremented(frame[layout.after_tags() + 3])?;
        }
        Action::DecNwTtl => {
            if let Some(ttl) = network_ttl(frame, layout.network) {
                set_network_ttl(frame, layout.network, decremented(ttl)?);
            }
        }
        Action::CopyTtlOut => copy_ttl(frame, &layout, Direction::Outwards),
        Action::CopyTtlIn => copy_ttl(frame, &layout, Direction::Inwards),
        _ => {}
    }
    Ok(())
}

fn decremented(ttl: u8) -> Result<u8, InvalidTtl> {
    if ttl > 1 { Ok(ttl - 1) } else { Err(InvalidTtl) }
}

fn set_field(frame: &mut [u8], layout: &Layout, field: Field, value: u128) {
    use Field::*;
    let bytes = value.to_be_bytes();
    let last = |count: usize| &bytes[16 - count..];
    match field {
        EthDst => frame[..6].copy_from_slice(last(6)),
        EthSrc => frame[6..12].copy_from_slice(last(6)),
        EthType => frame[layout.ether_type_at..layout.after_tags()].copy_from_slice(last(2)),
        VlanVid if layout.vlan_tags > 0 => change_tag(frame, 0x0fff, value as u16),
        VlanPcp if layout.vlan_tags > 0 => change_tag(frame, 0xe000, (value as u16) << 13),
        IpDscp => change_traffic_class(frame, layout.network, 0xfc, (value as u8) << 2),
        IpEcn => change_traffic_class(frame, layout.network, 0x03, value as u8),
        IpProto => set_protocol(frame, layout, value as u8),
        Ipv4Src => set_ipv4_address(frame, layout, 12, last(4)),
        Ipv4Dst => set_ipv4_address(frame, layout, 16, last(4)),
        Ipv6Src => set_ipv6_address(frame, layout, 8, last(16)),
        Ipv6Dst => set_ipv6_address(frame, layout, 24, last(16)),
        Ipv6Flabel => set_flow_label(frame, layout.network, value as u32),
        ArpOp | ArpSha | ArpSpa | ArpTha | ArpTpa => {
            set_arp(frame, layout.network, field, last(field.bytes()))
        }
        MplsLabel => change_label(frame, layout, 0xffff_f000, (value as u32) << 12),
        MplsTc => change_label(frame, layout, 0x0e00, (value as u32) << 9),
        MplsBos => change_label(frame, layout, 0x0100, (value as u32) << 8),
        _ => set_transport_field(frame, layout, field, last(field.bytes())),
    }
}

/// Sets a field behind the network header: ports, ICMP types and codes, neighbour discovery.
fn set_transport_field(frame: &mut [u8], layout: &Layout, field: Field, new: &[u8]) {
    use Field::*;
    let Some(transport) = layout.transport else { return };
    // An ICMPv6 message has both type and code, or neither. The fields behind them depend on both.
    let packet = frame.get(..transport.end).unwrap_or(frame);
    let (of, offset) = match field {
        Icmpv6Type | Icmpv6Code if transport.at + 2 > transport.end => return,
        Ipv6NdTarget if !is_neighbour_message(packet, transport.at) => return,
        TcpSrc => (protocol::TCP, 0),
        TcpDst => (protocol::TCP, 2),
        UdpSrc => (protocol::UDP, 0),
        UdpDst => (protocol::UDP, 2),
        SctpSrc => (protocol::SCTP, 0),
        SctpDst => (protocol::SCTP, 2),
        Icmpv4Type => (protocol::ICMP, 0),
        Icmpv4Code => (protocol::ICMP, 1),
        Icmpv6Type => (protocol::ICMPV6, 0),
        Icmpv6Code => (protocol::ICMPV6, 1),
        Ipv6NdTarget => (protocol::ICMPV6, 8),
        Ipv6NdSll | Ipv6NdTll => match neighbour_option(packet, transport.at, field) {
            Some(offset) => (protocol::ICMPV6, offset),
            None => return,
        },
        _ => return,
    };
    if transport.protocol == of && transport.at + offset + new.len() <= transport.end {
        change_transport(frame, layout, offset, new);
    }
}

/// Type and code of a neighbour solicitation and of an advertisement.
const SOLICITATION: [u8; 2] = [135, 0];
const ADVERTISEMENT: [u8; 2] = [136, 0];

fn is_neighbour_message(packet: &[u8], icmp_at: usize) -> bool {
    let kind = packet.get(icmp_at..).and_then(|message| message.first_chunk());
    matches!(kind, Some(&SOLICITATION | &ADVERTISEMENT))
}

/// Where the link-layer address of a neighbour solicitation or advertisement is, from the ICMPv6 header on (RFC 4861,
/// 4.6.1). It is in the option that a match on the same field reads. After a malformed option there is none.
fn neighbour_option(packet: &[u8], icmp_at: usize, field: Field) -> Option<usize> {
    let (message, wanted) = if field == Field::Ipv6NdSll { (SOLICITATION, 1) } else { (ADVERTISEMENT, 2) };
    if packet.get(icmp_at..)?.first_chunk() != Some(&message) {
        return None;
    }
    let (mut at, mut found) = (icmp_at + 24, None);
    // The length is in units of eight bytes. A length of zero ends the options.
    while let Some([kind, length @ 1..=u8::MAX]) = packet.get(at..).and_then(|rest| rest.first_chunk()) {
        let after = at + 8 * usize::from(*length);
        if after > packet.len() {
            break;
        }
        if (*kind, *length) == (wanted, 1) {
            found = Some(at + 2 - icmp_at);
        }
        at = after;
    }
    found
}

/// Changes bytes of the transport header at `offset`, and updates its checksum.
fn change_transport(frame: &mut [u8], layout: &Layout, offset: usize, new: &[u8]) {
    let Some(transport) = layout.transport else { return };
    let sum = of_transport(frame, layout.transport);
    replace(frame, transport.at, transport.at + offset, new, &[sum]);
    checksum::keep_udp_checksum_in_use(frame, sum, layout.transport);
    checksum::recompute_sctp(frame, layout);
}

/// 1.0 does not say to which protocol the port belongs, so it is the frame's.
fn set_transport_port(frame: &mut [u8], layout: &Layout, offset: usize, port: u16) {
    let has_ports = |protocol| matches!(protocol, protocol::TCP | protocol::UDP | protocol::SCTP);
    let there =
        |transport: Transport| has_ports(transport.protocol) && transport.at + offset + 2 <= transport.end;
    if layout.transport.is_some_and(there) {
        change_transport(frame, layout, offset, &port.to_be_bytes());
    }
}

fn change_tag(frame: &mut [u8], mask: u16, bits: u16) {
    let old = u16_at(frame, 14).unwrap_or(0);
    frame[14..16].copy_from_slice(&(old & !mask | bits & mask).to_be_bytes());
}

fn set_or_push_vlan(frame: &mut Vec<u8>, layout: &Layout, mask: u16, bits: u16) {
    if layout.vlan_tags == 0 {
        push_vlan(frame, layout, ether_type::VLAN);
    }
    change_tag(frame, mask, bits);
}

/// A new outer tag copies id and priority of the tag that it encloses (1.3.5, 5.12.1).
fn push_vlan(frame: &mut Vec<u8>, layout: &Layout, kind: u16) {
    let control = if layout.vlan_tags > 0 { u16_at(frame, 14).unwrap_or(0) } else { 0 };
    let [a, b] = kind.to_be_bytes();
    let [c, d] = (control & !VLAN_PRESENT).to_be_bytes();
    frame.splice(12..12, [a, b, c, d]);
}

fn pop_vlan(frame: &mut Vec<u8>, layout: &Layout) {
    if layout.vlan_tags > 0 {
        frame.drain(12..16);
    }
}

/// A new label goes behind the VLAN tags. It copies label, class and time-to-live from the header that it encloses
/// (1.3.5, 5.12.1).
fn push_mpls(frame: &mut Vec<u8>, layout: &Layout, kind: u16) {
    let at = layout.after_tags();
    let label = match u32_at(frame, at) {
        Some(outer) if layout.mpls_labels > 0 => outer & !0x100,
        _ => 0x100 | u32::from(network_ttl(frame, layout.network).unwrap_or(64)),
    };
    frame[layout.ether_type_at..at].copy_from_slice(&kind.to_be_bytes());
    frame.splice(at..at, label.to_be_bytes());
}

fn pop_mpls(frame: &mut Vec<u8>, layout: &Layout, kind: u16) {
    let at = layout.after_tags();
    if layout.mpls_labels > 0 {
        frame.drain(at..at + 4);
        frame[layout.ether_type_at..at].copy_from_slice(&kind.to_be_bytes());
    }
}

fn change_label(frame: &mut [u8], layout: &Layout, mask: u32, bits: u32) {
    let at = layout.after_tags();
    if let Some(old) = u32_at(frame, at).filter(|_| layout.mpls_labels > 0) {
        frame[at..at + 4].copy_from_slice(&(old & !mask | bits & mask).to_be_bytes());
    }
}

fn network_ttl(frame: &[u8], network: Option<Network>) -> Option<u8> {
    match network? {
        Network::Ipv4 { at, .. } => frame.get(at + 8).copied(),
        Network::Ipv6 { at } => frame.get(at + 7).copied(),
        Network::Arp { .. } => None,
    }
}

fn set_network_ttl(frame: &mut [u8], network: Option<Network>, ttl: u8) {
    match network {
        Some(Network::Ipv4 { at, .. }) => replace(frame, at, at + 8, &[ttl], &[Some(at + 10)]),
        Some(Network::Ipv6 { at }) => frame[at + 7] = ttl,
        _ => {}
    }
}

enum Direction {
    Outwards,
    Inwards,
}

/// Copies the time-to-live between the outermost and the next header that have one: MPLS to MPLS, or MPLS to IP.
fn copy_ttl(frame: &mut [u8], layout: &Layout, direction: Direction) {
    let outer = layout.after_tags() + 3;
    match (layout.mpls_labels, direction) {
        (0, _) => {}
        (1, direction) => {
            let inner = inner_network(frame, layout.after_labels());
            match direction {
                Direction::Inwards => set_network_ttl(frame, inner, frame[outer]),
                Direction::Outwards => {
                    if let Some(ttl) = network_ttl(frame, inner) {
                        frame[outer] = ttl;
                    }
                }
            }
        }
        (_, Direction::Inwards) => frame[outer + 4] = frame[outer],
        (_, Direction::Outwards) => frame[outer] = frame[outer + 4],
    }
}

/// MPLS does not name the next protocol. Only the IP version in the first four bits indicates it.
fn inner_network(frame: &[u8], at: usize) -> Option<Network> {
    let kind = match frame.get(at)? >> 4 {
        4 => ether_type::IPV4,
        6 => ether_type::IPV6,
        _ => return None,
    };
    super::layout::network(frame, kind, at)
}

fn change_traffic_class(frame: &mut [u8], network: Option<Network>, mask: u8, bits: u8) {
    match network {
        Some(Network::Ipv4 { at, .. }) => {
            let new = frame[at + 1] & !mask | bits & mask;
            replace(frame, at, at + 1, &[new], &[Some(at + 10)]);
        }
        Some(Network::Ipv6 { at }) => {
            let mask = u16::from(mask) << 4;
            let old = u16_at(frame, at).unwrap_or(0);
            let new = old & !mask | u16::from(bits) << 4 & mask;
            frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
        }
        _ => {}
    }
}

/// Sets the protocol. It is also in the pseudo-header, but the next header then belongs to another protocol. So only
/// IPv4's own checksum is updated.
fn set_protocol(frame: &mut [u8], layout: &Layout, value: u8) {
    match layout.network {
        Some(Network::Ipv4 { at, .. }) => replace(frame, at, at + 9, &[value], &[Some(at + 10)]),
        Some(Network::Ipv6 { at }) => frame[at + 6] = value,
        _ => {}
    }
}

fn set_ipv4_address(frame: &mut [u8], layout: &Layout, offset: usize, new: &[u8]) {
    if let Some(Network::Ipv4 { at, .. }) = layout.network {
        let sum = of_pseudo_header(frame, layout.transport);
        replace(frame, at, at + offset, new, &[Some(at + 10), sum]);
        checksum::keep_udp_checksum_in_use(frame, sum, layout.transport);
    }
}

fn set_ipv6_address(frame: &mut [u8], layout: &Layout, offset: usize, new: &[u8]) {
    if let Some(Network::Ipv6 { at }) = layout.network {
        let is_destination = offset > 8;
        let covered = layout.transport.filter(|transport| !(is_destination && transport.is_routed));
        let sum = of_pseudo_header(frame, covered);
        replace(frame, at, at + offset, new, &[sum]);
        checksum::keep_udp_checksum_in_use(frame, sum, layout.transport);
    }
}

fn set_flow_label(frame: &mut [u8], network: Option<Network>, label: u32) {
    if let Some(Network::Ipv6 { at }) = network {
        let old = u32_at(frame, at).unwrap_or(0);
        frame[at..at + 4].copy_from_slice(&(old & 0xfff0_0000 | label & 0x000f_ffff).to_be_bytes());
    }
}

fn set_arp(frame: &mut [u8], network: Option<Network>, field: Field, new: &[u8]) {
    if let Some(Network::Arp { at }) = network {
        let offset = match field {
            Field::ArpOp => 6,
            Field::ArpSha => 8,
            Field::ArpSpa => 14,
            Field::ArpTha => 18,
            _ => 24,
        };
        if let Some(there) = frame.get_mut(at + offset..at + offset + new.len()) {
            there.copy_from_slice(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, PacketHeaders};
    use flow::frame::FrameFields;
    use proptest::prelude::*;

    fn udp_frame() -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(1000, 2000)
            .write(&mut frame, b"payload")
            .unwrap();
        frame
    }

    fn tcp6_frame() -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv6([1; 16], [2; 16], 64)
            .tcp(1000, 2000, 7, 100)
            .write(&mut frame, b"odd")
            .unwrap();
        frame
    }

    fn applied(mut frame: Vec<u8>, actions: &[Action]) -> Vec<u8> {
        for action in actions {
            apply(action, &mut frame).unwrap();
        }
        frame
    }

    /// Asserts that the frame's checksums equal those that etherparse computes from its headers and payload.
    fn assert_checksums_hold(frame: &[u8]) {
        let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
        let payload = headers.payload.slice();
        match headers.net.unwrap() {
            etherparse::NetHeaders::Ipv4(ip, _) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                if let Some(etherparse::TransportHeader::Udp(udp)) = headers.transport {
                    assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, payload).unwrap());
                }
            }
            etherparse::NetHeaders::Ipv6(ip, _) => {
                if let Some(etherparse::TransportHeader::Tcp(tcp)) = headers.transport {
                    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv6(&ip, payload).unwrap());
                }
            }
            etherparse::NetHeaders::Arp(_) => {}
        }
    }

    #[test]
    fn a_header_that_is_not_there_is_not_changed() {
        let without_vlan = [
            Action::PopVlan,
            Action::PopMpls(0x800),
            Action::DecMplsTtl,
            Action::CopyTtlIn,
            Action::SetField { field: Field::VlanVid, value: 5 },
            Action::SetField { field: Field::Ipv6Src, value: 5 },
            Action::SetField { field: Field::TcpSrc, value: 5 },
            Action::SetField { field: Field::ArpTpa, value: 5 },
        ];
        assert_eq!(applied(udp_frame(), &without_vlan), udp_frame());
        let mut too_short = vec![0; 13];
        assert_eq!(apply(&Action::PushVlan(0x8100), &mut too_short), Ok(()));
        assert_eq!(too_short, vec![0; 13]);
    }

    #[test]
    fn a_time_to_live_ends_at_one() {
        let mut frame = applied(udp_frame(), &[Action::SetNwTtl(2), Action::DecNwTtl]);
        assert_checksums_hold(&frame);
        assert_eq!(frame[14 + 8], 1);
        assert_eq!(apply(&Action::DecNwTtl, &mut frame), Err(InvalidTtl));
    }

    #[test]
    fn what_is_pushed_is_popped() {
        let tagged = applied(
            udp_frame(),
            &[Action::PushVlan(0x8100), Action::SetField { field: Field::VlanVid, value: 0x1007 }],
        );
        assert_eq!(&tagged[12..18], [0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
        let labelled = applied(
            tagged.clone(),
            &[Action::PushMpls(0x8847), Action::SetField { field: Field::MplsLabel, value: 99 }],
        );
        assert_eq!(&labelled[16..22], [0x88, 0x47, 0x00, 0x06, 0x31, 64]);
        assert_eq!(applied(labelled, &[Action::PopMpls(0x800), Action::PopVlan]), udp_frame());
    }

    #[test]
    fn a_second_tag_takes_over_the_first_ones_id_and_priority() {
        let twice =
            applied(udp_frame(), &[Action::SetVlanVid(7), Action::SetVlanPcp(3), Action::PushVlan(0x88a8)]);
        assert_eq!(&twice[12..20], [0x88, 0xa8, 0x60, 0x07, 0x81, 0x00, 0x60, 0x07]);
        assert_eq!(applied(twice, &[Action::StripVlan, Action::StripVlan]), udp_frame());
    }

    #[test]
    fn a_udp_packet_without_a_checksum_keeps_none() {
        let mut frame = udp_frame();
        frame[14 + 20 + 6..14 + 20 + 8].fill(0);
        let changed = applied(frame, &[Action::SetField { field: Field::Ipv4Dst, value: 1 }]);
        assert_eq!(&changed[14 + 20 + 6..14 + 20 + 8], [0, 0]);
    }

    #[test]
    fn a_checksum_covers_the_last_destination_of_a_route() {
        let routed = |segments_left| {
            let mut frame = tcp6_frame();
            (frame[14 + 5], frame[14 + 6]) = (frame[14 + 5] + 8, 43);
            frame.splice(14 + 40..14 + 40, [protocol::TCP, 0, 0, segments_left, 0, 0, 0, 0]);
            frame
        };
        let checksum = |frame: &[u8]| frame[14 + 40 + 8 + 16..][..2].to_vec();
        let set = |field| [Action::SetField { field, value: 7 }];
        let before = checksum(&routed(1));
        assert_eq!(checksum(&applied(routed(1), &set(Field::Ipv6Dst))), before);
        assert_ne!(checksum(&applied(routed(1), &set(Field::Ipv6Src))), before);
        assert_ne!(checksum(&applied(routed(0), &set(Field::Ipv6Dst))), before);
    }

    /// Frames of consistent headers, cut off at some place or damaged in one byte.
    fn arbitrary_frame() -> impl Strategy<Value = Vec<u8>> {
        let ethernet = prop::sample::select(vec![
            vec![],
            vec![0x81, 0x00, 0x60, 0x05],
            vec![0x88, 0xa8, 0x00, 0x06, 0x81, 0x00, 0x20, 0x07],
        ]);
        let network = prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 6]);
        let protocol = prop::sample::select(vec![6u8, 17, 132, 1, 58, 47]);
        let rest = proptest::collection::vec(any::<u8>(), 60);
        let damage = proptest::option::weighted(0.5, (0usize..130, any::<u8>()));
        let icmp = prop::sample::select(vec![[135u8, 0], [136, 0], [128, 0], [135, 1]]);
        (ethernet, network, protocol, rest, damage, 14usize..140, icmp).prop_map(
            |(tags, network, protocol, mut rest, damage, length, icmp)| {
                if protocol == 58 {
                    rest[..2].copy_from_slice(&icmp);
                    let options = [1 + (rest[3] & 1), 1 + (rest[4] & 1)];
                    rest[24..26].copy_from_slice(&[options[0], 1]);
                    rest[32..34].copy_from_slice(&[options[1], 1]);
                }
                let mut ipv6 = vec![0x60, 0, 0, 0, 0, 60, protocol, 64];
                ipv6.extend([7; 32]);
                let ipv4 = [0x45, 0, 0, 80, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
                let headers = match network {
                    0 => [&[0x08, 0x00][..], &ipv4].concat(),
                    1 => [&[0x00, 0x40, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00][..], &ipv4].concat(),
                    2 => [&[0x86, 0xdd][..], &ipv6].concat(),
                    3 => {
                        ipv6[6] = 60;
                        [&[0x86, 0xdd][..], &ipv6, &[44, 0, 0, 0, 0, 0, 0, 0, protocol, 0, 0, 1, 0, 0, 0, 1]]
                            .concat()
                    }
                    4 => [0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1].to_vec(),
                    5 => [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3].to_vec(),
                    _ => [0x88, 0x47].to_vec(),
                };
                let mut frame = [&[2; 12][..], &tags, &headers, &rest].concat();
                if let Some((at, byte)) = damage.filter(|(at, _)| *at < frame.len()) {
                    frame[at] = byte;
                }
                frame.truncate(length);
                frame
            },
        )
    }

    proptest! {
        #[test]
        fn setting_any_field_keeps_the_checksums_true(
            number in 0u8..40,
            value in any::<u128>(),
            v6 in any::<bool>(),
        ) {
            let field = Field::from_number(number).unwrap();
            // Another EtherType or protocol makes it another packet, and there is nothing to compare.
            prop_assume!(field != Field::EthType && field != Field::IpProto);
            let frame = if v6 { tcp6_frame() } else { udp_frame() };
            let value = value & field.full_mask();
            assert_checksums_hold(&applied(frame, &[Action::SetField { field, value }]));
        }

        /// A rule of a later table sees the value that an earlier table's rule has set, and no other change. Cached
        /// paths rely on this.
        #[test]
        fn a_field_that_can_be_seen_is_set_and_no_other_is_changed(
            mut frame in arbitrary_frame(),
            number in 0u8..40,
            value in any::<u128>(),
        ) {
            let field = Field::from_number(number).unwrap();
            prop_assume!(crate::supported::can_set(field));
            // Another type or protocol changes which fields follow.
            prop_assume!(!matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type | Field::Icmpv6Code));
            let value = value & field.full_mask();
            let before = FrameFields::read(&frame);
            // Frames that end within a VLAN tag. Their paths are not cached.
            prop_assume!(before.has(Field::EthType));
            apply(&Action::SetField { field, value }, &mut frame).unwrap();
            let mut expected = before;
            if before.has(field) && (field, before.get(field)) != (Field::VlanVid, Some(0)) {
                let value = if field == Field::VlanVid { value | 0x1000 } else { value };
                expected.set(field, value);
            }
            let after = FrameFields::read(&frame);
            let differs = Field::all().find(|field| after.get(*field) != expected.get(*field));
            prop_assert_eq!(differs.map(|field| (field, after.get(field), expected.get(field))), None);
        }

        #[test]
        fn no_frame_makes_an_action_fail(
            mut frame in proptest::collection::vec(any::<u8>(), 0..120),
            kind in prop::sample::select(vec![0x800u16, 0x806, 0x86dd, 0x8100, 0x88a8, 0x8847]),
            number in 0u8..40,
        ) {
            if frame.len() > 14 {
                frame[12..14].copy_from_slice(&kind.to_be_bytes());
                frame[14] = if kind == 0x86dd { 0x60 } else { 0x45 };
            }
            let field = Field::from_number(number).unwrap();
            let actions = [
                Action::SetField { field, value: field.full_mask() },
                Action::SetTransportDst(1),
                Action::SetIpTos(0xff),
                Action::CopyTtlOut,
                Action::CopyTtlIn,
                Action::DecNwTtl,
                Action::PopVlan,
                Action::PushMpls(0x8847),
                Action::SetVlanVid(1),
                Action::PopMpls(0x86dd),
            ];
            for action in &actions {
                let _ = apply(action, &mut frame);
            }
        }
    }
}
