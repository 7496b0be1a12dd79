//! A packet from its text: `eth_dst=00:00:00:00:00:02,ip_dst=10.0.0.2,tcp_dst=80`.
//!
//! In: fields in the syntax of `ovs-ofctl` and `ovs-appctl ofproto/trace`. Out: a packet, whose other fields are zero. A field implies the
//! protocols that it needs: `tcp_dst` makes the packet TCP, over IPv4 unless a field of IPv6 is there.

use crate::packet::Packet;
use flow::frame::FrameFields;
use flow::text::parse_match;
use flow::{Field, Match, MatchEntry};

/// `OFPVID_PRESENT`.
const VLAN_PRESENT: u128 = 0x1000;

const IPV4: u128 = 0x0800;
const IPV6: u128 = 0x86dd;
const ARP: u128 = 0x0806;
const MPLS: u128 = 0x8847;

/// Reads a packet.
///
/// # Errors
/// A sentence that names the wrong word.
///
/// ```
/// use flow::Field;
/// let packet = explain::read_packet("eth_dst=00:00:00:00:00:02,ip_dst=10.0.0.2,tcp_dst=80").unwrap();
/// assert_eq!((packet.get(Field::EthType), packet.get(Field::IpProto)), (Some(0x0800), Some(6)));
/// assert!(explain::read_packet("ip_dst=10.0.0.0/8").unwrap_err().contains("mask"));
/// ```
pub fn read_packet(text: &str) -> Result<Packet, String> {
    let (text, ttl) = without_ttl(text)?;
    let wanted = parse_match(&text).map_err(|why| why.to_string())?;
    let packet = packet(&wanted)?;
    Ok(ttl.map_or(packet.clone(), |ttl| packet.with_ttl(ttl)))
}

/// The time-to-live is no field of OpenFlow, but one of `ofproto/trace`.
fn without_ttl(text: &str) -> Result<(String, Option<u8>), String> {
    let mut ttl = None;
    let mut rest = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.strip_prefix("nw_ttl=") {
            None => rest.push(word),
            Some(number) => {
                let wrong = |_| format!("'{word}': expected a time-to-live from 0 to 255");
                ttl = Some(number.parse().map_err(wrong)?);
            }
        }
    }
    Ok((rest.join(","), ttl))
}

fn packet(wanted: &Match) -> Result<Packet, String> {
    let mut fields = FrameFields::read(&[]);
    for entry in wanted.entries() {
        match entry {
            MatchEntry::Field { field: Field::InPort | Field::InPhyPort | Field::Metadata, .. } => {
                return Err(
                    "a packet has no in_port and no metadata: name its connect point with --at".to_owned()
                );
            }
            MatchEntry::Field { field, value, mask } => {
                if mask.is_some_and(|mask| mask != field.full_mask()) {
                    return Err(format!("{} has a mask: a packet has one value of each field", field.name()));
                }
                fields.set(*field, *value);
            }
            MatchEntry::Unknown { .. } => {
                return Err("a field that OpenFlow does not define is in no packet".to_owned());
            }
        }
    }
    complete(&mut fields)?;
    Ok(Packet::new(fields))
}

/// Adds the protocols that fields need, and zeros for the fields that each protocol has.
fn complete(fields: &mut FrameFields) -> Result<(), String> {
    imply(fields, Field::IpProto, ip_proto_of)?;
    imply(fields, Field::EthType, eth_type_of)?;
    let eth_type = fields.get(Field::EthType);
    fill(fields, &[Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid]);
    if fields.has(Field::VlanPcp) && fields.get(Field::VlanVid) == Some(0) {
        fields.set(Field::VlanVid, VLAN_PRESENT);
    }
    if fields.get(Field::VlanVid) != Some(0) {
        fill(fields, &[Field::VlanPcp]);
    }
    match eth_type {
        Some(IPV4) => {
            fill(fields, &[Field::IpDscp, Field::IpEcn, Field::IpProto, Field::Ipv4Src, Field::Ipv4Dst]);
        }
        Some(IPV6) => {
            fill(fields, &[Field::IpDscp, Field::IpEcn, Field::IpProto, Field::Ipv6Src, Field::Ipv6Dst]);
            fill(fields, &[Field::Ipv6Flabel, Field::Ipv6Exthdr]);
        }
        Some(ARP) => {
            fill(fields, &[Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha])
        }
        Some(MPLS) => fill(fields, &[Field::MplsLabel, Field::MplsTc, Field::MplsBos]),
        _ => {}
    }
    match (fields.get(Field::IpProto), eth_type) {
        (Some(6), _) => fill(fields, &[Field::TcpSrc, Field::TcpDst]),
        (Some(17), _) => fill(fields, &[Field::UdpSrc, Field::UdpDst]),
        (Some(132), _) => fill(fields, &[Field::SctpSrc, Field::SctpDst]),
        (Some(1), Some(IPV4)) => fill(fields, &[Field::Icmpv4Type, Field::Icmpv4Code]),
        (Some(58), Some(IPV6)) => fill(fields, &[Field::Icmpv6Type, Field::Icmpv6Code]),
        _ => {}
    }
    Ok(())
}

fn fill(fields: &mut FrameFields, wanted: &[Field]) {
    for field in wanted {
        if !fields.has(*field) {
            fields.set(*field, 0u8);
        }
    }
}

/// Sets a field to the value that the others need.
fn imply(
    fields: &mut FrameFields,
    field: Field,
    needed: impl Fn(Field, &FrameFields) -> Option<u128>,
) -> Result<(), String> {
    let all: Vec<(Field, u128)> =
        fields.iter().filter_map(|(one, _)| Some((one, needed(one, fields)?))).collect();
    for (one, value) in all {
        match fields.get(field) {
            None => fields.set(field, value),
            Some(there) if there == value => {}
            Some(there) => {
                return Err(format!(
                    "{} needs {} {value:#x}, and the packet has {there:#x}",
                    one.name(),
                    field.name()
                ));
            }
        }
    }
    Ok(())
}

fn ip_proto_of(field: Field, _: &FrameFields) -> Option<u128> {
    use Field::*;
    match field {
        TcpSrc | TcpDst => Some(6),
        UdpSrc | UdpDst => Some(17),
        SctpSrc | SctpDst => Some(132),
        Icmpv4Type | Icmpv4Code => Some(1),
        Icmpv6Type | Icmpv6Code | Ipv6NdTarget | Ipv6NdSll | Ipv6NdTll => Some(58),
        _ => None,
    }
}

/// IP is IPv4, unless the packet says otherwise.
fn eth_type_of(field: Field, fields: &FrameFields) -> Option<u128> {
    use Field::*;
    let is_ipv6 = fields.get(EthType) == Some(IPV6)
        || [Ipv6Src, Ipv6Dst, Ipv6Flabel, Icmpv6Type].iter().any(|it| fields.has(*it));
    match field {
        Ipv4Src | Ipv4Dst | Icmpv4Type | Icmpv4Code => Some(IPV4),
        Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr | Icmpv6Type | Icmpv6Code | Ipv6NdTarget | Ipv6NdSll
        | Ipv6NdTll => Some(IPV6),
        IpDscp | IpEcn | IpProto | TcpSrc | TcpDst | UdpSrc | UdpDst | SctpSrc | SctpDst => {
            Some(if is_ipv6 { IPV6 } else { IPV4 })
        }
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha if fields.get(EthType) != Some(0x8035) => Some(ARP),
        MplsLabel | MplsTc | MplsBos if fields.get(EthType) != Some(0x8848) => Some(MPLS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::match_to_string;

    #[test]
    fn what_is_no_packet_is_refused_with_the_word() {
        let check = |text: &str, part: &str| {
            let why = read_packet(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("ip_dts=10.0.0.2", "ip_dts");
        check("ip_dst=10.0.0.300", "10.0.0.300");
        check("ip_dst=10.0.0.0/8", "ipv4_dst has a mask");
        check("arp,tcp_dst=80", "eth_type 0x800");
        check("udp,tcp_dst=80", "ip_proto 0x6");
        check("ip_dst=10.0.0.1,ipv6_dst=::1", "ipv6_dst needs eth_type 0x86dd");
        check("in_port=3", "--at");
        check("reg0=5", "OpenFlow does not define");
        check("ip,nw_ttl=256", "nw_ttl=256");
    }

    #[test]
    fn a_field_implies_its_protocols() {
        let check = |text: &str, expected: &str| {
            let mut packet = read_packet(text).unwrap().to_match();
            for field in [Field::EthSrc, Field::EthDst, Field::VlanVid, Field::IpDscp, Field::IpEcn] {
                packet.remove(field);
            }
            assert_eq!(match_to_string(&packet), expected, "{text}");
        };
        check("", "dl_type=0x0000");
        check("tcp_dst=80", "tcp,nw_src=0.0.0.0,nw_dst=0.0.0.0,tp_src=0,tp_dst=80");
        check(
            "arp,arp_tpa=10.0.0.2",
            "arp,arp_spa=0.0.0.0,arp_tpa=10.0.0.2,arp_op=0,arp_sha=00:00:00:00:00:00,arp_tha=00:00:00:00:00:00",
        );
        check("udp_dst=53,ip_dst=10.0.0.2", "udp,nw_src=0.0.0.0,nw_dst=10.0.0.2,tp_src=0,tp_dst=53");
        assert_eq!(read_packet("ip,nw_ttl=3").unwrap().ttl(), 3);
        assert_eq!(read_packet("tcp_dst=1,ipv6_dst=::1").unwrap().get(Field::EthType), Some(IPV6));
        assert_eq!(read_packet("dl_vlan=5").unwrap().get(Field::VlanPcp), Some(0));
    }
}
