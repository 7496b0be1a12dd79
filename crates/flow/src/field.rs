//! The fields of a match: their numbers on the wire, their widths, whether they allow a mask.
//!
//! One table, from which everything else about fields is computed. It holds the forty OXM fields of OpenFlow 1.3
//! (1.3.5, 7.2.3.7) in the specification's order. A field that is not in it (Nicira's, an experimenter's) is kept
//! unchanged by [`crate::MatchEntry::Unknown`]. Never holds a value.

/// `OFPXMC_OPENFLOW_BASIC`, the class of the specification's own fields.
pub const CLASS_BASIC: u16 = 0x8000;

/// A match field of OpenFlow 1.3. The discriminant is its number within the class OFPXMC_OPENFLOW_BASIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "each variant is the specification's own name; the table below says the rest")]
pub enum Field {
    InPort = 0,
    InPhyPort = 1,
    Metadata = 2,
    EthDst = 3,
    EthSrc = 4,
    EthType = 5,
    VlanVid = 6,
    VlanPcp = 7,
    IpDscp = 8,
    IpEcn = 9,
    IpProto = 10,
    Ipv4Src = 11,
    Ipv4Dst = 12,
    TcpSrc = 13,
    TcpDst = 14,
    UdpSrc = 15,
    UdpDst = 16,
    SctpSrc = 17,
    SctpDst = 18,
    Icmpv4Type = 19,
    Icmpv4Code = 20,
    ArpOp = 21,
    ArpSpa = 22,
    ArpTpa = 23,
    ArpSha = 24,
    ArpTha = 25,
    Ipv6Src = 26,
    Ipv6Dst = 27,
    Ipv6Flabel = 28,
    Icmpv6Type = 29,
    Icmpv6Code = 30,
    Ipv6NdTarget = 31,
    Ipv6NdSll = 32,
    Ipv6NdTll = 33,
    MplsLabel = 34,
    MplsTc = 35,
    MplsBos = 36,
    PbbIsid = 37,
    TunnelId = 38,
    Ipv6Exthdr = 39,
}

/// One field in the table.
struct Row {
    field: Field,
    name: &'static str,
    bits: u8,
    maskable: bool,
}

const fn row(field: Field, name: &'static str, bits: u8, maskable: bool) -> Row {
    Row { field, name, bits, maskable }
}

#[rustfmt::skip]
const TABLE: [Row; 40] = [
    row(Field::InPort, "in_port", 32, false),
    row(Field::InPhyPort, "in_phy_port", 32, false),
    row(Field::Metadata, "metadata", 64, true),
    row(Field::EthDst, "eth_dst", 48, true),
    row(Field::EthSrc, "eth_src", 48, true),
    row(Field::EthType, "eth_type", 16, false),
    row(Field::VlanVid, "vlan_vid", 13, true),
    row(Field::VlanPcp, "vlan_pcp", 3, false),
    row(Field::IpDscp, "ip_dscp", 6, false),
    row(Field::IpEcn, "ip_ecn", 2, false),
    row(Field::IpProto, "ip_proto", 8, false),
    row(Field::Ipv4Src, "ipv4_src", 32, true),
    row(Field::Ipv4Dst, "ipv4_dst", 32, true),
    row(Field::TcpSrc, "tcp_src", 16, true),
    row(Field::TcpDst, "tcp_dst", 16, true),
    row(Field::UdpSrc, "udp_src", 16, true),
    row(Field::UdpDst, "udp_dst", 16, true),
    row(Field::SctpSrc, "sctp_src", 16, true),
    row(Field::SctpDst, "sctp_dst", 16, true),
    row(Field::Icmpv4Type, "icmpv4_type", 8, false),
    row(Field::Icmpv4Code, "icmpv4_code", 8, false),
    row(Field::ArpOp, "arp_op", 16, false),
    row(Field::ArpSpa, "arp_spa", 32, true),
    row(Field::ArpTpa, "arp_tpa", 32, true),
    row(Field::ArpSha, "arp_sha", 48, true),
    row(Field::ArpTha, "arp_tha", 48, true),
    row(Field::Ipv6Src, "ipv6_src", 128, true),
    row(Field::Ipv6Dst, "ipv6_dst", 128, true),
    row(Field::Ipv6Flabel, "ipv6_flabel", 20, true),
    row(Field::Icmpv6Type, "icmpv6_type", 8, false),
    row(Field::Icmpv6Code, "icmpv6_code", 8, false),
    row(Field::Ipv6NdTarget, "ipv6_nd_target", 128, true),
    row(Field::Ipv6NdSll, "ipv6_nd_sll", 48, true),
    row(Field::Ipv6NdTll, "ipv6_nd_tll", 48, true),
    row(Field::MplsLabel, "mpls_label", 20, false),
    row(Field::MplsTc, "mpls_tc", 3, false),
    row(Field::MplsBos, "mpls_bos", 1, false),
    row(Field::PbbIsid, "pbb_isid", 24, true),
    row(Field::TunnelId, "tunnel_id", 64, true),
    row(Field::Ipv6Exthdr, "ipv6_exthdr", 9, true),
];

/// By the field's number.
const FULL_MASKS: [u128; TABLE.len()] = {
    let mut masks = [0; TABLE.len()];
    let mut number = 0;
    while number < TABLE.len() {
        masks[number] = u128::MAX >> (128 - TABLE[number].bits as u32);
        number += 1;
    }
    masks
};

impl Field {
    /// Every field, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Field> {
        TABLE.iter().map(|row| row.field)
    }

    /// The field with this number in OFPXMC_OPENFLOW_BASIC.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Field> {
        if (number as usize) < TABLE.len() { Some(TABLE[number as usize].field) } else { None }
    }

    /// The field of this name, as the specification spells it without OXM_OF_, in lower case (`eth_dst`).
    pub fn from_name(name: &str) -> Option<Field> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.field)
    }

    /// Its number in OFPXMC_OPENFLOW_BASIC.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name, for example `eth_dst`.
    #[inline]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// How many bits a value has.
    #[inline]
    pub const fn bits(self) -> u32 {
        TABLE[self as usize].bits as u32
    }

    /// How many bytes a value takes on the wire (without its mask): as few as hold its bits, but four for the two labels of
    /// 20 bits (`OXM_OF_IPV6_FLABEL`, `OXM_OF_MPLS_LABEL`).
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Field::Ipv6Flabel | Field::MplsLabel => 4,
            _ => self.bits().div_ceil(8) as usize,
        }
    }

    /// Whether OpenFlow 1.3 allows a mask.
    #[inline]
    pub const fn maskable(self) -> bool {
        TABLE[self as usize].maskable
    }

    /// The mask of a whole value: `bits()` ones.
    #[inline]
    pub const fn full_mask(self) -> u128 {
        FULL_MASKS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (number, row) in TABLE.iter().enumerate() {
            assert_eq!(usize::from(row.field.number()), number, "{}", row.name);
        }
    }

    #[test]
    fn widths_are_the_specifications() {
        assert_eq!(Field::Ipv6Src.full_mask(), u128::MAX);
        assert_eq!(Field::VlanVid.full_mask(), 0x1fff);
        assert_eq!(Field::MplsBos.bytes(), 1);
        assert_eq!(Field::Ipv6Flabel.bytes(), 4);
        assert_eq!(Field::MplsLabel.bytes(), 4);
        assert_eq!(Field::PbbIsid.bytes(), 3);
        assert_eq!(Field::from_name("pbb_isid"), Some(Field::PbbIsid));
    }
}
