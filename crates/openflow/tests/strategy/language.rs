//! Any match, action and instruction that a version can say.

use flow::field::CLASS_BASIC;
use flow::{Action, Field, Instruction, MacAddr, Match, MatchEntry, PortNo};
use openflow::Version;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A port: a small one, a reserved one, or any that the version has.
pub fn port(version: Version) -> BoxedStrategy<PortNo> {
    if version == Version::V1_0 {
        return any::<u16>().prop_map(PortNo::from_v10).boxed();
    }
    prop_oneof![1..9u32, 0xffff_fff7..=u32::MAX, any::<u32>()].prop_map(PortNo).boxed()
}

fn field() -> impl Strategy<Value = Field> {
    select(Field::all().collect::<Vec<_>>())
}

/// The header of a field outside OPENFLOW_BASIC, and its body.
fn unknown() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let class = any::<u16>().prop_filter("not OpenFlow's own class", |class| *class != CLASS_BASIC);
    (class, 0..128u32, any::<bool>(), vec(any::<u8>(), 4..20)).prop_map(|(class, number, masked, body)| {
        (u32::from(class) << 16 | number << 9 | u32::from(masked) << 8 | body.len() as u32, body)
    })
}

fn entry() -> impl Strategy<Value = MatchEntry> {
    let known = (field(), any::<u128>(), option::of(any::<u128>())).prop_map(|(field, value, mask)| {
        let mask = mask.filter(|_| field.maskable()).map(|mask| mask & field.full_mask());
        MatchEntry::Field { field, value: value & mask.unwrap_or(field.full_mask()), mask }
    });
    prop_oneof![
        9 => known,
        1 => unknown().prop_map(|(header, body)| MatchEntry::Unknown { header, body }),
    ]
}

/// Any match of 1.3.
pub fn any_match() -> impl Strategy<Value = Match> {
    vec(entry(), 0..8).prop_map(|entries| {
        let mut matching = Match::any();
        entries.into_iter().for_each(|entry| matching.put(entry));
        matching
    })
}

/// What a match of 1.0 says of VLANs.
fn vlan_of_v10() -> impl Strategy<Value = Match> {
    let tagged = |vid: u16| Match::any().with(Field::VlanVid, 0x1000 | vid);
    prop_oneof![
        Just(Match::any()),
        Just(Match::any().with(Field::VlanVid, 0u16)),
        (0..0x1000u16).prop_map(tagged),
        (0..0x1000u16, 0..8u8).prop_map(move |(vid, pcp)| tagged(vid).with(Field::VlanPcp, pcp)),
        (0..8u8).prop_map(|pcp| {
            Match::any().with_masked(Field::VlanVid, 0x1000u16, 0x1000u16).with(Field::VlanPcp, pcp)
        }),
    ]
}

/// An address of 1.0 with the low `bits` left out; 32: no address.
fn address(matching: Match, field: Field, address: u32, bits: u32) -> Match {
    match bits {
        0 => matching.with(field, address),
        1..=31 => matching.with_masked(field, address, u32::MAX << bits),
        _ => matching,
    }
}

/// What a match of 1.0 says of the packet inside the frame.
fn network_of_v10() -> impl Strategy<Value = Match> {
    let addresses = || (any::<[u32; 2]>(), prop_oneof![Just(0), 0..=32u32], prop_oneof![Just(0), 0..=32u32]);
    let ipv4 =
        (option::of(0..64u8), option::of(select(vec![1u8, 2, 6, 17, 132])), addresses(), any::<[u16; 2]>())
            .prop_map(|(dscp, proto, ([src, dst], src_bits, dst_bits), ports)| {
                let mut matching = Match::any().with(Field::EthType, 0x0800u16);
                if let Some(dscp) = dscp {
                    matching = matching.with(Field::IpDscp, dscp);
                }
                if let Some(proto) = proto {
                    matching = matching.with(Field::IpProto, proto);
                }
                matching = address(matching, Field::Ipv4Src, src, src_bits);
                matching = address(matching, Field::Ipv4Dst, dst, dst_bits);
                match proto {
                    Some(6) => matching.with(Field::TcpSrc, ports[0]).with(Field::TcpDst, ports[1]),
                    Some(17) => matching.with(Field::UdpDst, ports[1]),
                    Some(132) => matching.with(Field::SctpSrc, ports[0]),
                    Some(1) => {
                        matching.with(Field::Icmpv4Type, ports[0] >> 8).with(Field::Icmpv4Code, ports[1] >> 8)
                    }
                    _ => matching,
                }
            });
    let arp = (option::of(any::<u8>()), addresses()).prop_map(|(op, ([src, dst], src_bits, dst_bits))| {
        let mut matching = Match::any().with(Field::EthType, 0x0806u16);
        if let Some(op) = op {
            matching = matching.with(Field::ArpOp, op);
        }
        matching = address(matching, Field::ArpSpa, src, src_bits);
        address(matching, Field::ArpTpa, dst, dst_bits)
    });
    let other = option::of(
        any::<u16>().prop_filter("neither IPv4 nor ARP", |number| !matches!(number, 0x0800 | 0x0806)),
    );
    let other = other
        .prop_map(|number| number.map_or(Match::any(), |number| Match::any().with(Field::EthType, number)));
    prop_oneof![ipv4, arp, other]
}

/// Any match of 1.0, its fields in the order of their numbers.
pub fn match_of_v10() -> impl Strategy<Value = Match> {
    let addresses = any::<[[u8; 6]; 2]>();
    (option::of(port(Version::V1_0)), addresses, any::<[bool; 2]>(), network_of_v10(), vlan_of_v10())
        .prop_map(|(in_port, [eth_dst, eth_src], [has_dst, has_src], network, vlan)| {
            let mut parts =
                [network, vlan].iter().flat_map(|part| part.entries().to_vec()).collect::<Vec<_>>();
            let mut ends = Match::any();
            if let Some(in_port) = in_port {
                ends.set(Field::InPort, in_port.0.into());
            }
            if has_dst {
                ends.set(Field::EthDst, MacAddr(eth_dst).to_u64().into());
            }
            if has_src {
                ends.set(Field::EthSrc, MacAddr(eth_src).to_u64().into());
            }
            parts.extend(ends.entries().to_vec());
            parts.sort_by_key(|entry| match entry {
                MatchEntry::Field { field, .. } => field.number(),
                MatchEntry::Unknown { .. } => u8::MAX,
            });
            let mut matching = Match::any();
            parts.into_iter().for_each(|entry| matching.put(entry));
            matching
        })
}

/// Any match of a version.
/// The priority with which a rule is read: 1.0 has one for all matches without wildcards.
pub fn read_priority(version: Version, matching: &Match, priority: u16) -> u16 {
    let is_exact = version == Version::V1_0 && flow::is_exact_in_v10(matching);
    if is_exact { flow::EXACT_PRIORITY_V10 } else { priority }
}

pub fn matching(version: Version) -> BoxedStrategy<Match> {
    if version == Version::V1_0 { match_of_v10().boxed() } else { any_match().boxed() }
}

fn experimenter() -> impl Strategy<Value = Action> {
    (any::<u32>(), 0..4usize, any::<u8>()).prop_map(|(experimenter, words, byte)| Action::Experimenter {
        experimenter,
        body: vec![byte; words * 8],
    })
}

fn output(version: Version) -> impl Strategy<Value = Action> {
    (port(version), any::<u16>()).prop_map(|(port, max_len)| Action::Output { port, max_len })
}

fn action_of_v13() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => output(Version::V1_3),
        4 => (field(), any::<u128>())
            .prop_map(|(field, value)| Action::SetField { field, value: value & field.full_mask() }),
        1 => unknown().prop_map(|(header, body)| Action::SetUnknownField { header, body }),
        1 => any::<u32>().prop_map(Action::SetQueue),
        1 => any::<u32>().prop_map(Action::Group),
        1 => any::<u16>().prop_map(Action::PushVlan),
        1 => any::<u16>().prop_map(Action::PushMpls),
        1 => any::<u16>().prop_map(Action::PopMpls),
        1 => any::<u16>().prop_map(Action::PushPbb),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => any::<u8>().prop_map(Action::SetNwTtl),
        2 => select(vec![
            Action::CopyTtlOut,
            Action::CopyTtlIn,
            Action::DecMplsTtl,
            Action::PopVlan,
            Action::DecNwTtl,
            Action::PopPbb,
        ]),
        1 => experimenter(),
    ]
}

fn action_of_v10() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => output(Version::V1_0),
        1 => any::<u16>().prop_map(Action::SetVlanVid),
        1 => any::<u8>().prop_map(Action::SetVlanPcp),
        1 => Just(Action::StripVlan),
        1 => any::<[u8; 6]>().prop_map(|octets| Action::SetEthSrc(MacAddr(octets))),
        1 => any::<[u8; 6]>().prop_map(|octets| Action::SetEthDst(MacAddr(octets))),
        1 => any::<u32>().prop_map(|address| Action::SetIpv4Src(address.into())),
        1 => any::<u32>().prop_map(|address| Action::SetIpv4Dst(address.into())),
        1 => any::<u8>().prop_map(Action::SetIpTos),
        1 => any::<u16>().prop_map(Action::SetTransportSrc),
        1 => any::<u16>().prop_map(Action::SetTransportDst),
        1 => (port(Version::V1_0), any::<u32>()).prop_map(|(port, queue_id)| Action::Enqueue { port, queue_id }),
        1 => experimenter(),
    ]
}

/// Any list of actions of a version.
pub fn actions(version: Version) -> BoxedStrategy<Vec<Action>> {
    if version == Version::V1_0 {
        return vec(action_of_v10(), 0..6).boxed();
    }
    vec(action_of_v13(), 0..6).boxed()
}

/// Any list of instructions of a version: at most one of each type.
pub fn instructions(version: Version) -> BoxedStrategy<Vec<Instruction>> {
    if version == Version::V1_0 {
        return actions(version)
            .prop_map(|list| if list.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(list)] })
            .boxed();
    }
    let lists = (actions(version), actions(version));
    let numbers = (any::<u8>(), any::<[u64; 2]>(), any::<u32>(), any::<u32>(), 0..3usize);
    (lists, numbers, any::<[bool; 7]>())
        .prop_map(|((write, apply), (table_id, [metadata, mask], meter_id, experimenter, words), kept)| {
            let all = [
                Instruction::Meter(meter_id),
                Instruction::ApplyActions(apply),
                Instruction::ClearActions,
                Instruction::WriteActions(write),
                Instruction::WriteMetadata { metadata, mask },
                Instruction::Experimenter { experimenter, body: vec![1; words * 8] },
                Instruction::GotoTable(table_id),
            ];
            all.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(instruction, _)| instruction).collect()
        })
        .boxed()
}
