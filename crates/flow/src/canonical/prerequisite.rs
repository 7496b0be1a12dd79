//! Which fields make sense only where another field has said what kind of packet it is (1.3.5, 7.2.3.6 and 7.2.3.8).

use super::match_bytes::entry_len;
use super::{MatchFault, bad};
use crate::error::BadInput;
use crate::field::Field;
use crate::matching::{Match, MatchEntry};

/// `OFPVID_PRESENT`: the bit of vlan_vid that says that there is a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// Checks that each field has its prerequisites, and has them before it, as a switch does with a flow mod.
///
/// As with Open vSwitch, ICMP must be in its own version of IP, and reverse ARP has ARP's fields. [`Match::sorted`] brings fields into an order in
/// which prerequisites come first.
///
/// # Errors
/// OFPET_BAD_MATCH, OFPBMC_BAD_PREREQ; the offset is that of the field in the match's bytes.
///
/// ```
/// use flow::{Field, Match, canonical::check_prerequisites};
/// let ssh = Match::any().with(Field::TcpDst, 22u16).with(Field::IpProto, 6u8).with(Field::EthType, 0x0800u16);
/// assert!(check_prerequisites(&ssh).is_err());
/// assert!(check_prerequisites(&ssh.sorted()).is_ok());
/// ```
pub fn check_prerequisites(rule: &Match) -> Result<(), BadInput> {
    let mut seen = Match::any();
    let mut offset = 0;
    for entry in rule.entries() {
        if let MatchEntry::Field { field, .. } = entry
            && let Some(needed) = missing(&seen, *field)
        {
            let message = format!("{} needs {needed} before it", field.name());
            return Err(bad(MatchFault::BadPrereq, offset, "oxm_field", message));
        }
        offset += entry_len(entry);
        seen.append(entry.clone());
    }
    Ok(())
}

/// What `field` needs and `seen` does not have, in words.
fn missing(seen: &Match, field: Field) -> Option<&'static str> {
    use Field::*;
    let has = |field, values: &[u128]| seen.get(field).is_some_and(|(value, _)| values.contains(&value));
    let (met, needed) = match field {
        InPhyPort => (seen.get(InPort).is_some(), "in_port"),
        VlanPcp => (
            seen.get(VlanVid).is_some_and(|(value, mask)| value & mask & VLAN_PRESENT != 0),
            "vlan_vid with OFPVID_PRESENT",
        ),
        IpDscp | IpEcn | IpProto => (has(EthType, &[0x0800, 0x86dd]), "eth_type 0x0800 or 0x86dd"),
        Ipv4Src | Ipv4Dst => (has(EthType, &[0x0800]), "eth_type 0x0800"),
        TcpSrc | TcpDst => (has(IpProto, &[6]), "ip_proto 6"),
        UdpSrc | UdpDst => (has(IpProto, &[17]), "ip_proto 17"),
        SctpSrc | SctpDst => (has(IpProto, &[132]), "ip_proto 132"),
        Icmpv4Type | Icmpv4Code => {
            (has(EthType, &[0x0800]) && has(IpProto, &[1]), "eth_type 0x0800 and ip_proto 1")
        }
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => {
            (has(EthType, &[0x0806, 0x8035]), "eth_type 0x0806 (or 0x8035)")
        }
        Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => (has(EthType, &[0x86dd]), "eth_type 0x86dd"),
        Icmpv6Type | Icmpv6Code => {
            (has(EthType, &[0x86dd]) && has(IpProto, &[58]), "eth_type 0x86dd and ip_proto 58")
        }
        Ipv6NdTarget => (has(Icmpv6Type, &[135, 136]), "icmpv6_type 135 or 136"),
        Ipv6NdSll => (has(Icmpv6Type, &[135]), "icmpv6_type 135"),
        Ipv6NdTll => (has(Icmpv6Type, &[136]), "icmpv6_type 136"),
        MplsLabel | MplsTc | MplsBos => (has(EthType, &[0x8847, 0x8848]), "eth_type 0x8847 or 0x8848"),
        PbbIsid => (has(EthType, &[0x88e7]), "eth_type 0x88e7"),
        InPort | Metadata | EthDst | EthSrc | EthType | VlanVid | TunnelId => (true, ""),
    };
    if met { None } else { Some(needed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_its_prerequisite_is_bad_prereq() {
        let rule = Match::any().with(Field::EthType, 0x86ddu16).with(Field::Ipv4Src, 1u8);
        let refused = check_prerequisites(&rule).unwrap_err();
        assert_eq!((refused.error.kind, refused.error.code, refused.offset), (4, 9, 6));
        assert!(refused.to_string().contains("eth_type 0x0800"), "{refused}");
    }

    #[test]
    fn a_priority_needs_a_tag() {
        let tagged = Match::any().with_masked(Field::VlanVid, 0x1000u16, 0x1000u16).with(Field::VlanPcp, 3u8);
        let untagged = Match::any().with(Field::VlanVid, 0u16).with(Field::VlanPcp, 3u8);
        assert!(check_prerequisites(&tagged).is_ok());
        assert!(check_prerequisites(&untagged).is_err());
    }

    #[test]
    fn neighbour_discovery_needs_four_fields() {
        let rule = Match::any()
            .with(Field::EthType, 0x86ddu16)
            .with(Field::IpProto, 58u8)
            .with(Field::Icmpv6Type, 135u8)
            .with(Field::Ipv6NdSll, 1u8);
        assert!(check_prerequisites(&rule).is_ok());
        let mut advertisement = rule.clone();
        advertisement.set(Field::Icmpv6Type, 136);
        assert!(check_prerequisites(&advertisement).is_err());
    }
}
