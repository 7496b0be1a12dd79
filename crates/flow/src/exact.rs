//! Whether a match is an exact match of OpenFlow 1.0: one without wildcards in any of the twelve fields.
//!
//! In: a match with fields of 1.3. Out: yes or no. It matters because such a rule has a priority above all others,
//! whatever its flow mod says (1.0, 3.4 and 5.3.3): Open vSwitch gives it 65535. Never allocates, and knows no bytes.

use crate::field::Field;
use crate::matching::Match;

/// OFPVID_PRESENT: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;
const ETH_IPV4: u128 = 0x0800;

/// The priority that a switch of 1.0 gives an exact match.
pub const EXACT_PRIORITY_V10: u16 = u16::MAX;

/// Whether 1.0 must write this match without a single wildcard bit, so that its rule is above all others.
///
/// Only IPv4 with ICMP, TCP, UDP or SCTP and a VLAN tag can be exact. Other packets lack some of the fields of 1.0, which can be wildcards without
/// another meaning: untagged ones have no VLAN priority.
///
/// ```
/// use flow::{Field, Match, is_exact_in_v10};
/// let mac = Match::any().with(Field::EthSrc, 1u64).with(Field::EthDst, 2u64);
/// assert!(!is_exact_in_v10(&mac));
/// ```
pub fn is_exact_in_v10(matching: &Match) -> bool {
    let whole = |field: Field| {
        let (value, mask) = matching.get(field)?;
        (mask == field.full_mask()).then_some(value)
    };
    let all = |fields: &[Field]| fields.iter().all(|field| whole(*field).is_some());
    let Some((source, destination)) = whole(Field::IpProto).and_then(transport_fields) else { return false };
    whole(Field::EthType) == Some(ETH_IPV4)
        && all(&[Field::InPort, Field::EthDst, Field::EthSrc])
        && all(&[Field::IpDscp, Field::Ipv4Src, Field::Ipv4Dst, source, destination])
        && is_vlan_exact(matching)
}

/// One id and one priority.
fn is_vlan_exact(matching: &Match) -> bool {
    let is_whole = |field: Field| matching.get(field).is_some_and(|(_, mask)| mask == field.full_mask());
    let is_tagged = matching.get(Field::VlanVid).is_some_and(|(value, _)| value & VLAN_PRESENT != 0);
    is_tagged && is_whole(Field::VlanVid) && is_whole(Field::VlanPcp)
}

/// The fields that 1.0 calls tp_src and tp_dst.
const fn transport_fields(proto: u128) -> Option<(Field, Field)> {
    match proto {
        1 => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
        6 => Some((Field::TcpSrc, Field::TcpDst)),
        17 => Some((Field::UdpSrc, Field::UdpDst)),
        132 => Some((Field::SctpSrc, Field::SctpDst)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_match;

    const TAGGED: &str = "in_port=1,eth_src=02:00:00:00:00:01,eth_dst=02:00:00:00:00:02,vlan_vid=0x1005,vlan_pcp=3,eth_type=0x800,\
        ip_dscp=0,ip_proto=6,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,tcp_src=1,tcp_dst=2";

    fn check(text: &str, expected: bool) {
        assert_eq!(is_exact_in_v10(&parse_match(text).unwrap()), expected, "{text}");
    }

    #[test]
    fn what_leaves_a_field_open_is_not_exact() {
        check("", false);
        TAGGED.split(',').for_each(|field| {
            let rest: Vec<&str> = TAGGED.split(',').filter(|other| *other != field).collect();
            check(&rest.join(","), false);
        });
        check(&TAGGED.replace("10.0.0.1", "10.0.0.0/24"), false);
        check(&TAGGED.replace("0x1005", "0x1000/0x1000"), false);
    }

    #[test]
    fn packets_without_a_tag_leave_its_priority_open() {
        check(&TAGGED.replace("vlan_vid=0x1005,vlan_pcp=3,", "vlan_vid=0,"), false);
    }

    #[test]
    fn all_twelve_fields_make_an_exact_match() {
        check(TAGGED, true);
        check(&TAGGED.replace("10.0.0.1", "10.0.0.1/255.255.255.255"), true);
        let icmp = TAGGED.replace("ip_proto=6", "ip_proto=1").replace("tcp_src", "icmpv4_type");
        check(&icmp.replace("tcp_dst", "icmpv4_code"), true);
    }
}
