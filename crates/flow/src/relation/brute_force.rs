//! Compares the relations with brute force: small matches, and every packet of a small world that distinguishes them.

use crate::field::Field;
use crate::matching::{Match, MatchEntry};
use crate::relation::{covers, intersection, is_nothing, overlaps, within};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(crate) type Packet = BTreeMap<Field, u128>;

/// Each packet once for each of a field's values.
fn times(packets: Vec<Packet>, field: Field, values: &[u128]) -> Vec<Packet> {
    let with = |packet: &Packet, value: u128| {
        let mut packet = packet.clone();
        packet.insert(field, value);
        packet
    };
    packets.iter().flat_map(|packet| values.iter().map(move |value| with(packet, *value))).collect()
}

/// All packets of the small world: two bits of each address and port, and every kind.
pub(crate) fn world() -> Vec<Packet> {
    use Field::*;
    let all = [0, 1, 2, 3];
    let start = || vec![Packet::new()];
    let of_kind = |eth_type| times(start(), EthType, &[eth_type]);
    let of_protocol = |packets: &[Packet], ip_proto| times(packets.to_vec(), IpProto, &[ip_proto]);
    let ipv4 = times(times(of_kind(0x800), Ipv4Src, &all), IpDscp, &[0, 1]);
    let ipv6 = times(of_kind(0x86dd), IpDscp, &[0, 1]);
    let mut packets = of_kind(0x9999);
    for ip in [&ipv4, &ipv6] {
        packets.extend(times(of_protocol(ip, 6), TcpSrc, &all));
        packets.extend(of_protocol(ip, 17));
        packets.extend(of_protocol(ip, 99));
    }
    // ICMPv6 within IPv4 is odd, and is not ICMPv6 to a switch; but it exists.
    packets.extend(of_protocol(&ipv4, 58));
    let icmp6 = of_protocol(&ipv6, 58);
    packets.extend(times(icmp6.clone(), Icmpv6Type, &[1]));
    packets.extend(times(times(icmp6, Icmpv6Type, &[135, 136]), Ipv6NdTarget, &[0, 1]));
    packets.extend(times(of_kind(0x806), ArpSpa, &[0, 1]));
    packets.extend(times(of_kind(0x8035), ArpSpa, &[0, 1]));
    let untagged = times(packets.clone(), VlanVid, &[0]);
    let tagged = times(times(packets, VlanVid, &[0x1000, 0x1001, 0x1002, 0x1003]), VlanPcp, &[0, 1]);
    [untagged, tagged].concat()
}

pub(crate) fn matches(rule: &Match, packet: &Packet) -> bool {
    rule.entries().iter().all(|entry| match entry {
        MatchEntry::Field { mask: Some(0), .. } => true,
        MatchEntry::Field { field, value, mask } => {
            packet.get(field).is_some_and(|there| there & mask.unwrap_or(u128::MAX) == *value)
        }
        MatchEntry::Unknown { .. } => false,
    })
}

/// A match that the small world can tell from every other of its kind.
pub(crate) fn rule() -> impl Strategy<Value = Match> {
    use Field::*;
    let exact = |field: Field, values: &'static [u128]| {
        prop::sample::select(values).prop_map(move |value| MatchEntry::Field { field, value, mask: None })
    };
    let masked = |field: Field, masks: &'static [u128]| {
        (0..4u128, prop::sample::select(masks)).prop_map(move |(value, mask)| {
            let mask = if mask == u128::MAX { field.full_mask() } else { mask };
            MatchEntry::Field { field, value: value & mask, mask: Some(mask) }
        })
    };
    let vlan = (0..4u128, prop::sample::select(vec![0x1000u128, 0x1fff, 0x1001, 3, 1, 0]), any::<bool>())
        .prop_map(|(vid, mask, tagged)| {
            let value = (vid | if tagged { 0x1000 } else { 0 }) & mask;
            MatchEntry::Field { field: VlanVid, value, mask: Some(mask) }
        });
    let entry = prop_oneof![
        exact(EthType, &[0x800, 0x86dd, 0x806, 0x8035, 0x9999]),
        exact(IpProto, &[6, 17, 58, 99]),
        exact(IpDscp, &[0, 1]),
        exact(VlanPcp, &[0, 1]),
        exact(Icmpv6Type, &[1, 135, 136]),
        exact(Ipv6NdTarget, &[0, 1]),
        exact(ArpSpa, &[0, 1]),
        masked(Ipv4Src, &[u128::MAX, 1, 2, 3, 0]),
        masked(TcpSrc, &[u128::MAX, 1, 2, 3, 0]),
        vlan,
    ];
    vec(entry, 0..5).prop_map(|entries| {
        let mut rule = Match::any();
        entries.into_iter().for_each(|entry| rule.put(entry));
        rule
    })
}

proptest! {
    #[test]
    fn relations_are_those_of_the_packets((one, other) in (rule(), rule())) {
        let world = world();
        let in_one: Vec<&Packet> = world.iter().filter(|packet| matches(&one, packet)).collect();
        let in_both = in_one.iter().filter(|packet| matches(&other, packet)).count();
        prop_assert_eq!(is_nothing(&one), in_one.is_empty());
        prop_assert_eq!(overlaps(&one, &other), in_both > 0);
        prop_assert_eq!(covers(&other, &one), in_both == in_one.len());
        match intersection(&one, &other) {
            None => prop_assert_eq!(in_both, 0),
            Some(both) => {
                for packet in &world {
                    prop_assert_eq!(matches(&both, packet), matches(&one, packet) && matches(&other, packet));
                }
            }
        }
    }

    #[test]
    fn within_a_flowspace_is_within_its_packets((one, spaces) in (rule(), vec(rule(), 0..5))) {
        let inside = world()
            .iter()
            .filter(|packet| matches(&one, packet))
            .all(|packet| spaces.iter().any(|space| matches(space, packet)));
        // What a world of two bits cannot tell is told by the bits that it does not have: never said of a rule that is outside.
        prop_assert!(inside || !within(&one, &spaces));
        prop_assert_eq!(within(&one, std::slice::from_ref(&one)), true);
    }

    #[test]
    fn a_split_rule_is_within_its_parts((one, field) in (rule(), prop::sample::select(vec![Field::Ipv4Src, Field::TcpSrc, Field::VlanVid])), bit in 0..8u32) {
        let bit = 1u128 << bit;
        let half = |value: u128| intersection(&one, &Match::any().with_masked(field, value, bit));
        let parts: Vec<Match> = [half(0), half(bit)].into_iter().flatten().collect();
        let needs_nothing = field == Field::VlanVid;
        let implied = one.get(field).is_some_and(|(_, mask)| mask != 0);
        if needs_nothing || implied {
            prop_assert!(within(&one, &parts));
        }
    }
}
