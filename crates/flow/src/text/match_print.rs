//! Matches, printed as ovs-ofctl prints them.

use super::match_text::extension_entry;
use super::names::{self, SHORTHANDS, Shorthand};
use crate::field::Field;
use crate::matching::{Match, MatchEntry};
use crate::value::{self, Style, show_hex};

/// Prints a match with ovs-ofctl's names and order. The match of every packet is an empty string.
///
/// A field without its prerequisites, or that Open vSwitch lacks, keeps the specification's name. A field of another
/// class without a name is `oxm:0xHHHHHHHH=hex`.
///
/// ```
/// use flow::{Field, Match, PortNo, text::match_to_string};
/// let rule = Match::any().with(Field::InPort, PortNo(1)).with(Field::VlanVid, 0x1005u16);
/// assert_eq!(match_to_string(&rule), "in_port=1,dl_vlan=5");
/// ```
pub fn match_to_string(rule: &Match) -> String {
    let kind = Kind::of(rule);
    let mut parts: Vec<(u8, String)> =
        rule.entries().iter().filter_map(|entry| show_entry(entry, rule, &kind)).collect();
    if let Some(shorthand) = kind.shorthand {
        parts.push((20, shorthand.name.to_owned()));
    }
    parts.extend(show_vlan(rule).map(|tag| (70, tag)));
    parts.sort();
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// The kind of packet that the match implies.
struct Kind {
    shorthand: Option<&'static Shorthand>,
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
}

impl Kind {
    fn of(rule: &Match) -> Kind {
        let value = |field| rule.get(field).map(|(value, _)| value);
        let (eth_type, ip_proto) = (value(Field::EthType), value(Field::IpProto));
        let fits = |shorthand: &&Shorthand| {
            eth_type == Some(shorthand.eth_type.into())
                && (shorthand.ip_proto.is_none() || ip_proto == shorthand.ip_proto.map(u128::from))
        };
        Kind { shorthand: SHORTHANDS.iter().find(fits), eth_type, ip_proto }
    }

    fn says_protocol(&self) -> bool {
        self.shorthand.is_some_and(|shorthand| shorthand.ip_proto.is_some())
    }

    fn is(&self, ip_proto: u128) -> bool {
        self.says_protocol() && self.ip_proto == Some(ip_proto)
    }

    fn is_arp(&self) -> bool {
        matches!(self.eth_type, Some(0x0806 | 0x8035))
    }
}

fn show_entry(entry: &MatchEntry, rule: &Match, kind: &Kind) -> Option<(u8, String)> {
    match entry {
        MatchEntry::Field { field, value, mask } => {
            if *mask == Some(0) && field.maskable() {
                return None;
            }
            let (rank, name) = place(*field, rule, kind)?;
            let style = Style::of(*field);
            let text = match mask.filter(|mask| *mask != field.full_mask()) {
                _ if *field == Field::IpDscp => (value << 2).to_string(),
                Some(mask) => value::show_masked(style, *value, mask),
                None => value::show(style, *value),
            };
            Some((rank, format!("{name}={text}")))
        }
        MatchEntry::Unknown { header, body } => Some(show_unknown(entry, *header, body)),
    }
}

/// Where ovs-ofctl prints a field, and its name. `None` if a shorthand or the VLAN keywords express it.
fn place(field: Field, rule: &Match, kind: &Kind) -> Option<(u8, &'static str)> {
    use Field::*;
    let own = field.name();
    let if_it = |is: bool, name: &'static str| if is { name } else { own };
    Some(match field {
        EthType if kind.shorthand.is_some() => return None,
        IpProto if kind.says_protocol() => return None,
        VlanVid => return None,
        VlanPcp if rule.get(VlanVid).is_some_and(|(_, mask)| mask != 0) => return None,
        TunnelId => (50, "tun_id"),
        Metadata => (55, own),
        InPort => (60, own),
        InPhyPort => (61, own),
        VlanPcp => (71, own),
        EthSrc => (80, "dl_src"),
        EthDst => (81, "dl_dst"),
        EthType => (90, "dl_type"),
        Ipv6Src => (100, own),
        Ipv4Src => (100, if_it(!kind.is_arp(), "nw_src")),
        ArpSpa => (100, own),
        Ipv6Dst => (101, own),
        Ipv4Dst => (101, if_it(!kind.is_arp(), "nw_dst")),
        ArpTpa => (101, own),
        Ipv6Flabel => (102, "ipv6_label"),
        IpProto => (110, if_it(!kind.is_arp(), "nw_proto")),
        ArpOp => (110, own),
        ArpSha => (111, own),
        ArpTha => (112, own),
        IpDscp => (120, "nw_tos"),
        IpEcn => (121, "nw_ecn"),
        MplsLabel => (130, own),
        MplsTc => (131, own),
        MplsBos => (132, own),
        Icmpv4Type => (150, if_it(kind.is(1), "icmp_type")),
        Icmpv4Code => (151, if_it(kind.is(1), "icmp_code")),
        Icmpv6Type => (150, if_it(kind.is(58), "icmp_type")),
        Icmpv6Code => (151, if_it(kind.is(58), "icmp_code")),
        TcpSrc => (150, if_it(kind.is(6), "tp_src")),
        TcpDst => (151, if_it(kind.is(6), "tp_dst")),
        UdpSrc => (150, if_it(kind.is(17), "tp_src")),
        UdpDst => (151, if_it(kind.is(17), "tp_dst")),
        SctpSrc => (150, if_it(kind.is(132), "tp_src")),
        SctpDst => (151, if_it(kind.is(132), "tp_dst")),
        Ipv6NdTarget => (152, "nd_target"),
        Ipv6NdSll => (153, "nd_sll"),
        Ipv6NdTll => (154, "nd_tll"),
        PbbIsid => (170, own),
        Ipv6Exthdr => (171, own),
    })
}

/// The tag's id and priority, with 1.0's names if they can express it, else as `vlan_tci`.
fn show_vlan(rule: &Match) -> Option<String> {
    let (vid, vid_mask) = rule.get(Field::VlanVid).filter(|(_, mask)| *mask != 0)?;
    let pcp = rule.get(Field::VlanPcp).map(|(pcp, _)| pcp);
    Some(match (vid, vid_mask, pcp) {
        (0x1000.., 0x1fff, None) => format!("dl_vlan={}", vid & 0xfff),
        (0x1000.., 0x1fff, Some(pcp)) => format!("dl_vlan={},dl_vlan_pcp={pcp}", vid & 0xfff),
        (0x1000, 0x1000, Some(pcp)) => format!("dl_vlan_pcp={pcp}"),
        (_, _, Some(pcp)) if vid & 0x1000 != 0 => {
            format!("vlan_tci={:#06x}/{:#06x}", vid | pcp << 13, vid_mask | 0xe000)
        }
        // A priority without a tag matches nothing. Only the specification's names can express it.
        (_, _, Some(pcp)) => format!("vlan_vid={vid:#x}/{vid_mask:#x},vlan_pcp={pcp}"),
        (_, _, None) => format!("vlan_tci={vid:#06x}/{vid_mask:#06x}"),
    })
}

/// Nicira's fields by name if the name expresses everything, else in hexadecimal.
fn show_unknown(entry: &MatchEntry, header: u32, body: &[u8]) -> (u8, String) {
    let hexadecimal = || (200, format!("oxm:{header:#010x}={}", show_hex(body)));
    let Some(extension) = names::extension_of(header) else { return hexadecimal() };
    let Some(rank) = extension.rank else { return hexadecimal() };
    let number = |bytes: &[u8]| bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let value = number(body.get(..extension.bytes()).unwrap_or_default());
    let mask = body.get(extension.bytes()..).filter(|mask| !mask.is_empty()).map(number);
    if extension_entry(extension, value, mask).as_ref() != Some(entry) {
        return hexadecimal();
    }
    let text = extension.notation.show(value, mask);
    (rank, format!("{}={text}", extension.name))
}
