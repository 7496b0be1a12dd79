//! Open vSwitch's names for fields: OpenFlow's own, and Nicira's fields in matches and actions.
//!
//! Sources: ovs-fields(7) for names, widths and numbers. Nicira's fields stay [`crate::MatchEntry::Unknown`] in a
//! match. Only their names are here.

use super::flags::{CT_STATE, Notation, TCP_FLAGS};
use crate::canonical::field_header;
use crate::field::Field;
use crate::value::Style;

/// A field of Nicira's classes (0x0000, 0x0001).
#[derive(Debug)]
pub(super) struct Extension {
    /// ovs-ofctl's name in a match and in set_field.
    pub name: &'static str,
    /// Its name in `load` and `move`.
    pub header_name: &'static str,
    pub class: u16,
    pub number: u8,
    pub bits: u32,
    pub notation: Notation,
    /// Where ovs-ofctl prints it in a match. `None` if an OpenFlow field means the same, so that it has no name there.
    pub rank: Option<u8>,
}

impl Extension {
    pub fn bytes(&self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    /// Its OXM header.
    pub fn header(&self, has_mask: bool) -> u32 {
        let length = self.bytes() as u32 * if has_mask { 2 } else { 1 };
        u32::from(self.class) << 16 | u32::from(self.number) << 9 | u32::from(has_mask) << 8 | length
    }
}

const HEX: Style = Style::Hexadecimal(1);

const fn named(
    name: &'static str,
    header_name: &'static str,
    number: u8,
    bits: u32,
    notation: Notation,
    rank: u8,
) -> Extension {
    Extension { name, header_name, class: 1, number, bits, notation, rank: Some(rank) }
}

const fn nxm(
    name: &'static str,
    header_name: &'static str,
    number: u8,
    bits: u32,
    style: Style,
    rank: u8,
) -> Extension {
    named(name, header_name, number, bits, Notation::Value(style), rank)
}

/// A field that OpenFlow has too.
const fn twin(name: &'static str, header_name: &'static str, class: u16, number: u8, bits: u32) -> Extension {
    Extension { name, header_name, class, number, bits, notation: Notation::Value(HEX), rank: None }
}

#[rustfmt::skip]
static EXTENSIONS: [Extension; 66] = [
    nxm("pkt_mark", "NXM_NX_PKT_MARK", 33, 32, HEX, 0),
    nxm("recirc_id", "NXM_NX_RECIRC_ID", 36, 32, HEX, 1),
    nxm("dp_hash", "NXM_NX_DP_HASH", 35, 32, HEX, 2),
    nxm("conj_id", "NXM_NX_CONJ_ID", 37, 32, Style::Decimal, 3),
    nxm("ct_zone", "NXM_NX_CT_ZONE", 106, 16, Style::Decimal, 11),
    nxm("ct_mark", "NXM_NX_CT_MARK", 107, 32, HEX, 12),
    nxm("ct_label", "NXM_NX_CT_LABEL", 108, 128, HEX, 13),
    nxm("reg0", "NXM_NX_REG0", 0, 32, HEX, 30),
    nxm("reg1", "NXM_NX_REG1", 1, 32, HEX, 31),
    nxm("reg2", "NXM_NX_REG2", 2, 32, HEX, 32),
    nxm("reg3", "NXM_NX_REG3", 3, 32, HEX, 33),
    nxm("reg4", "NXM_NX_REG4", 4, 32, HEX, 34),
    nxm("reg5", "NXM_NX_REG5", 5, 32, HEX, 35),
    nxm("reg6", "NXM_NX_REG6", 6, 32, HEX, 36),
    nxm("reg7", "NXM_NX_REG7", 7, 32, HEX, 37),
    nxm("reg8", "NXM_NX_REG8", 8, 32, HEX, 38),
    nxm("reg9", "NXM_NX_REG9", 9, 32, HEX, 39),
    nxm("reg10", "NXM_NX_REG10", 10, 32, HEX, 40),
    nxm("reg11", "NXM_NX_REG11", 11, 32, HEX, 41),
    nxm("reg12", "NXM_NX_REG12", 12, 32, HEX, 42),
    nxm("reg13", "NXM_NX_REG13", 13, 32, HEX, 43),
    nxm("reg14", "NXM_NX_REG14", 14, 32, HEX, 44),
    nxm("reg15", "NXM_NX_REG15", 15, 32, HEX, 45),
    nxm("tun_src", "NXM_NX_TUN_IPV4_SRC", 31, 32, Style::Ipv4, 51),
    nxm("tun_dst", "NXM_NX_TUN_IPV4_DST", 32, 32, Style::Ipv4, 52),
    nxm("tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC", 109, 128, Style::Ipv6, 53),
    nxm("tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST", 110, 128, Style::Ipv6, 54),
    nxm("nw_ttl", "NXM_NX_IP_TTL", 29, 8, Style::Decimal, 122),
    named("ct_state", "NXM_NX_CT_STATE", 105, 32, Notation::Flags(&CT_STATE), 10),
    named("nw_frag", "NXM_NX_IP_FRAG", 26, 8, Notation::Fragment, 140),
    named("tcp_flags", "NXM_NX_TCP_FLAGS", 34, 12, Notation::Flags(&TCP_FLAGS), 160),
    twin("tun_flags", "NXM_NX_TUN_FLAGS", 1, 104, 1),
    twin("tun_gbp_id", "NXM_NX_TUN_GBP_ID", 1, 38, 16),
    twin("tun_gbp_flags", "NXM_NX_TUN_GBP_FLAGS", 1, 39, 8),
    twin("xxreg0", "NXM_NX_XXREG0", 1, 111, 128),
    twin("xxreg1", "NXM_NX_XXREG1", 1, 112, 128),
    twin("xxreg2", "NXM_NX_XXREG2", 1, 113, 128),
    twin("xxreg3", "NXM_NX_XXREG3", 1, 114, 128),
    twin("in_port", "NXM_OF_IN_PORT", 0, 0, 16),
    twin("eth_dst", "NXM_OF_ETH_DST", 0, 1, 48),
    twin("eth_src", "NXM_OF_ETH_SRC", 0, 2, 48),
    twin("eth_type", "NXM_OF_ETH_TYPE", 0, 3, 16),
    twin("vlan_tci", "NXM_OF_VLAN_TCI", 0, 4, 16),
    twin("nw_tos", "NXM_OF_IP_TOS", 0, 5, 8),
    twin("nw_proto", "NXM_OF_IP_PROTO", 0, 6, 8),
    twin("ip_src", "NXM_OF_IP_SRC", 0, 7, 32),
    twin("ip_dst", "NXM_OF_IP_DST", 0, 8, 32),
    twin("tcp_src", "NXM_OF_TCP_SRC", 0, 9, 16),
    twin("tcp_dst", "NXM_OF_TCP_DST", 0, 10, 16),
    twin("udp_src", "NXM_OF_UDP_SRC", 0, 11, 16),
    twin("udp_dst", "NXM_OF_UDP_DST", 0, 12, 16),
    twin("icmp_type", "NXM_OF_ICMP_TYPE", 0, 13, 8),
    twin("icmp_code", "NXM_OF_ICMP_CODE", 0, 14, 8),
    twin("arp_op", "NXM_OF_ARP_OP", 0, 15, 16),
    twin("arp_spa", "NXM_OF_ARP_SPA", 0, 16, 32),
    twin("arp_tpa", "NXM_OF_ARP_TPA", 0, 17, 32),
    twin("tun_id", "NXM_NX_TUN_ID", 1, 16, 64),
    twin("arp_sha", "NXM_NX_ARP_SHA", 1, 17, 48),
    twin("arp_tha", "NXM_NX_ARP_THA", 1, 18, 48),
    twin("ipv6_src", "NXM_NX_IPV6_SRC", 1, 19, 128),
    twin("ipv6_dst", "NXM_NX_IPV6_DST", 1, 20, 128),
    twin("icmpv6_type", "NXM_NX_ICMPV6_TYPE", 1, 21, 8),
    twin("icmpv6_code", "NXM_NX_ICMPV6_CODE", 1, 22, 8),
    twin("nd_target", "NXM_NX_ND_TARGET", 1, 23, 128),
    twin("ipv6_label", "NXM_NX_IPV6_LABEL", 1, 27, 20),
    twin("nw_ecn", "NXM_NX_IP_ECN", 1, 28, 2),
];

/// Nicira's field that has this name in a match.
pub(super) fn extension_in_match(name: &str) -> Option<&'static Extension> {
    EXTENSIONS.iter().find(|extension| extension.rank.is_some() && extension.name == name)
}

/// Nicira's field with this OXM header, whatever its mask bit, if it has a name in a match.
pub(super) fn extension_of(header: u32) -> Option<&'static Extension> {
    EXTENSIONS
        .iter()
        .find(|extension| extension.rank.is_some() && extension.header(false) >> 9 == header >> 9)
}

/// The header and the width of a field in `load`, `move` and similar actions, by `NXM_…`, `OXM_OF_…` or ovs-ofctl's
/// name.
pub(super) fn header_named(name: &str) -> Option<(u32, u32)> {
    let upper = name.to_ascii_uppercase();
    let named = |extension: &&Extension| extension.header_name == upper || extension.name == name;
    if let Some(extension) = EXTENSIONS.iter().find(named) {
        return Some((extension.header(false), extension.bits));
    }
    let field = match upper.strip_prefix("OXM_OF_") {
        Some(rest) => Field::from_name(&rest.to_ascii_lowercase()),
        None => field_named(name),
    };
    field.map(|field| (field_header(field, false), field.bits()))
}

/// The name and the width of the field with this header, as in `load` and `move`.
pub(super) fn name_of_header(header: u32) -> Option<(String, u32)> {
    let field =
        Field::from_number((header >> 9) as u8 & 0x7f).filter(|field| field_header(*field, false) == header);
    if let Some(field) = field {
        return Some((format!("OXM_OF_{}", field.name().to_ascii_uppercase()), field.bits()));
    }
    let extension = EXTENSIONS.iter().find(|extension| extension.header(false) == header)?;
    Some((extension.header_name.to_owned(), extension.bits))
}

/// ovs-ofctl's name of a field in set_field. If Open vSwitch lacks the field, the specification's name.
pub(super) fn set_field_name(field: Field) -> &'static str {
    match field {
        Field::IpEcn => "nw_ecn",
        Field::IpProto => "nw_proto",
        Field::Ipv4Src => "ip_src",
        Field::Ipv4Dst => "ip_dst",
        Field::Icmpv4Type => "icmp_type",
        Field::Icmpv4Code => "icmp_code",
        Field::Ipv6Flabel => "ipv6_label",
        Field::Ipv6NdTarget => "nd_target",
        Field::Ipv6NdSll => "nd_sll",
        Field::Ipv6NdTll => "nd_tll",
        Field::TunnelId => "tun_id",
        other => other.name(),
    }
}

/// The field with this name, for names that mean the same in every packet.
pub(super) fn field_named(name: &str) -> Option<Field> {
    Some(match name {
        "dl_src" => Field::EthSrc,
        "dl_dst" => Field::EthDst,
        "dl_type" => Field::EthType,
        "ip_src" | "nw_src" => Field::Ipv4Src,
        "ip_dst" | "nw_dst" => Field::Ipv4Dst,
        "nw_proto" => Field::IpProto,
        "nw_ecn" => Field::IpEcn,
        "icmp_type" => Field::Icmpv4Type,
        "icmp_code" => Field::Icmpv4Code,
        "ipv6_label" => Field::Ipv6Flabel,
        "nd_target" => Field::Ipv6NdTarget,
        "nd_sll" => Field::Ipv6NdSll,
        "nd_tll" => Field::Ipv6NdTll,
        "tun_id" => Field::TunnelId,
        "in_port_oxm" => Field::InPort,
        "tp_src" => Field::TcpSrc,
        "tp_dst" => Field::TcpDst,
        other => return Field::from_name(other),
    })
}

/// A keyword for a kind of packet: its EtherType, and perhaps its IP protocol.
pub(super) struct Shorthand {
    pub name: &'static str,
    pub eth_type: u16,
    pub ip_proto: Option<u8>,
}

const fn shorthand(name: &'static str, eth_type: u16, ip_proto: Option<u8>) -> Shorthand {
    Shorthand { name, eth_type, ip_proto }
}

/// Keywords with a protocol come first, so that the first that fits is the most specific.
pub(super) static SHORTHANDS: [Shorthand; 14] = [
    shorthand("icmp", 0x0800, Some(1)),
    shorthand("icmp6", 0x86dd, Some(58)),
    shorthand("tcp", 0x0800, Some(6)),
    shorthand("tcp6", 0x86dd, Some(6)),
    shorthand("udp", 0x0800, Some(17)),
    shorthand("udp6", 0x86dd, Some(17)),
    shorthand("sctp", 0x0800, Some(132)),
    shorthand("sctp6", 0x86dd, Some(132)),
    shorthand("ip", 0x0800, None),
    shorthand("ipv6", 0x86dd, None),
    shorthand("arp", 0x0806, None),
    shorthand("rarp", 0x8035, None),
    shorthand("mpls", 0x8847, None),
    shorthand("mplsm", 0x8848, None),
];
