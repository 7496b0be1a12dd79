//! Prerequisites: the fields that need another field with a certain value (1.3.5, 7.2.3.6 and 7.2.3.8).

use super::match_bytes::entry_len;
use super::{MatchFault, bad};
use crate::error::BadInput;
use crate::field::Field;
use crate::matching::{Match, MatchEntry};
use crate::value::{self, Style};

/// `OFPVID_PRESENT`: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;

/// Checks that each field has its prerequisites, and has them before it, as a switch does with a flow mod.
///
/// As in Open vSwitch, ICMP must be in its own version of IP, and reverse ARP has ARP's fields. [`Match::sorted`]
/// orders fields so that prerequisites come first.
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

/// Whether each field has its prerequisites, in any order. Without them OpenFlow 1.0 ignores a field, and the rule
/// matches more than intended. Never allocates.
pub fn has_prerequisites(rule: &Match) -> bool {
    rule.entries().iter().all(|entry| entry_has_prerequisites(rule, entry))
}

/// Whether one field of a match has its prerequisites in it. Never allocates.
#[inline]
pub fn entry_has_prerequisites(rule: &Match, entry: &MatchEntry) -> bool {
    if matches!(entry, MatchEntry::Field { field, .. } if NEEDS_NOTHING >> field.number() & 1 == 1) {
        return true;
    }
    let value_of = |wanted| rule.get(wanted).map(|(value, mask)| value & mask);
    match entry {
        MatchEntry::Field { field: Field::InPhyPort, .. } => value_of(Field::InPort).is_some(),
        MatchEntry::Field { field: Field::VlanPcp, .. } => {
            value_of(Field::VlanVid).is_some_and(|vid| vid & VLAN_PRESENT != 0)
        }
        MatchEntry::Field { field, .. } => prerequisites(*field)
            .iter()
            .all(|(needed, values)| value_of(*needed).is_some_and(|value| values.contains(&value))),
        MatchEntry::Unknown { .. } => true,
    }
}

/// The fields without prerequisites, as bits by their numbers.
const NEEDS_NOTHING: u64 = {
    use Field::*;
    let fields = [InPort, Metadata, EthDst, EthSrc, EthType, VlanVid, TunnelId];
    let (mut bits, mut place) = (0, 0);
    while place < fields.len() {
        bits |= 1 << fields[place].number();
        place += 1;
    }
    bits
};

/// One thing that a field needs: another field with one of one or two values.
pub(crate) type Prerequisite = (Field, &'static [u128]);

const IP: Prerequisite = (Field::EthType, &[0x0800, 0x86dd]);
const IPV4: Prerequisite = (Field::EthType, &[0x0800]);
const IPV6: Prerequisite = (Field::EthType, &[0x86dd]);
const ICMPV6: Prerequisite = (Field::IpProto, &[58]);

/// The values of other fields that a field needs. Not included, because no value is needed: VLAN priority needs a tag,
/// and in_phy_port needs in_port.
pub(crate) const fn prerequisites(field: Field) -> &'static [Prerequisite] {
    use Field::*;
    match field {
        IpDscp | IpEcn | IpProto => &[IP],
        Ipv4Src | Ipv4Dst => &[IPV4],
        TcpSrc | TcpDst => &[IP, (IpProto, &[6])],
        UdpSrc | UdpDst => &[IP, (IpProto, &[17])],
        SctpSrc | SctpDst => &[IP, (IpProto, &[132])],
        Icmpv4Type | Icmpv4Code => &[IPV4, (IpProto, &[1])],
        ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => &[(EthType, &[0x0806, 0x8035])],
        Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => &[IPV6],
        Icmpv6Type | Icmpv6Code => &[IPV6, ICMPV6],
        Ipv6NdTarget => &[IPV6, ICMPV6, (Icmpv6Type, &[135, 136])],
        Ipv6NdSll => &[IPV6, ICMPV6, (Icmpv6Type, &[135])],
        Ipv6NdTll => &[IPV6, ICMPV6, (Icmpv6Type, &[136])],
        MplsLabel | MplsTc | MplsBos => &[(EthType, &[0x8847, 0x8848])],
        PbbIsid => &[(EthType, &[0x88e7])],
        InPort | InPhyPort | Metadata | EthDst | EthSrc | EthType | VlanVid | VlanPcp | TunnelId => &[],
    }
}

/// Describes what `field` needs and `seen` lacks.
fn missing(seen: &Match, field: Field) -> Option<String> {
    match field {
        Field::InPhyPort if seen.get(Field::InPort).is_none() => return Some("in_port".to_owned()),
        Field::VlanPcp => {
            let tagged =
                seen.get(Field::VlanVid).is_some_and(|(value, mask)| value & mask & VLAN_PRESENT != 0);
            return (!tagged).then(|| "vlan_vid with OFPVID_PRESENT".to_owned());
        }
        _ => {}
    }
    let met = |needed: &Prerequisite| seen.get(needed.0).is_some_and(|(value, _)| needed.1.contains(&value));
    let (needed, values) = prerequisites(field).iter().find(|needed| !met(needed))?;
    let style = Style::of(*needed);
    let values: Vec<String> = values.iter().map(|value| value::show(style, *value)).collect();
    Some(format!("{} {}", needed.name(), values.join(" or ")))
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
    fn a_field_alone_is_complete_if_it_needs_nothing() {
        for field in Field::all() {
            let alone = Match::any().with(field, 0u8);
            let needs_nothing = NEEDS_NOTHING >> field.number() & 1 == 1;
            assert_eq!(check_prerequisites(&alone).is_ok(), needs_nothing, "{field:?}");
            assert_eq!(has_prerequisites(&alone), needs_nothing, "{field:?}");
        }
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
