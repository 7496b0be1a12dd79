//! `ofp_match` of 1.0 (5.2.3) ⇄ the fields of 1.3.
//!
//! Version 1.0 has twelve fields at fixed places, each with a wildcard bit or, for IPv4 addresses, a prefix. Their
//! meaning depends on `dl_type` and `nw_proto`. A field without its prerequisite is ignored when it is read, as the
//! specification requires. It is refused when it is written, because it would silently match more.
//!
//! In 1.0, a match without wildcards is above all others, whatever its rule's priority (3.4). The priorities of 1.3 count here. So a rule without
//! wildcards is read with the highest priority. One with a lower priority is written with a wildcard, if there is one that changes no meaning.

use flow::canonical::{MatchWriter, UsualFields, match_tlvs};
use flow::{BadInput, EXACT_PRIORITY_V10, Field, Match, MatchEntry, PortNo};

use crate::error::Unwritable;
use crate::wire::{Reader, Writer};

/// `ofp_flow_wildcards`.
mod wildcard {
    pub const IN_PORT: u32 = 1;
    pub const DL_VLAN: u32 = 1 << 1;
    pub const DL_SRC: u32 = 1 << 2;
    pub const DL_DST: u32 = 1 << 3;
    pub const DL_TYPE: u32 = 1 << 4;
    pub const NW_PROTO: u32 = 1 << 5;
    pub const TP_SRC: u32 = 1 << 6;
    pub const TP_DST: u32 = 1 << 7;
    pub const NW_SRC_SHIFT: u32 = 8;
    pub const NW_DST_SHIFT: u32 = 14;
    pub const NW_MASK: u32 = 0x3f;
    pub const DL_VLAN_PCP: u32 = 1 << 20;
    pub const NW_TOS: u32 = 1 << 21;
    /// All wildcards. Each prefix is written as 32 ignored bits.
    pub const ALL: u32 = IN_PORT
        | DL_VLAN
        | DL_SRC
        | DL_DST
        | DL_TYPE
        | NW_PROTO
        | TP_SRC
        | TP_DST
        | 32 << NW_SRC_SHIFT
        | 32 << NW_DST_SHIFT
        | DL_VLAN_PCP
        | NW_TOS;
    /// Every bit of `ofp_flow_wildcards`.
    pub const ANY: u32 = (1 << 22) - 1;
}

/// OFP_VLAN_NONE: packets without a VLAN tag.
const VLAN_NONE: u16 = 0xffff;
/// OFPVID_PRESENT of 1.3: the bit of vlan_vid that is set if the packet has a tag.
const VLAN_PRESENT: u128 = 0x1000;
/// The bits of a VLAN id.
const VLAN_ID: u16 = 0x0fff;
const ETH_IPV4: u16 = 0x0800;
const ETH_ARP: u16 = 0x0806;
const PROTO_ICMP: u8 = 1;
const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;
const PROTO_SCTP: u8 = 132;

/// The structure on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WireMatch {
    wildcards: u32,
    in_port: u16,
    dl_src: [u8; 6],
    dl_dst: [u8; 6],
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

impl WireMatch {
    /// Reads a match. Impossible values are read as switches read them.
    pub(crate) fn read(body: &mut Reader<'_>) -> Result<WireMatch, BadInput> {
        let wildcards = body.u32("wildcards")?;
        let in_port = body.u16("in_port")?;
        let dl_src = body.array("dl_src")?;
        let dl_dst = body.array("dl_dst")?;
        let dl_vlan = body.u16("dl_vlan")?;
        let dl_vlan_pcp = body.u8("dl_vlan_pcp")?;
        body.skip(1)?;
        let dl_type = body.u16("dl_type")?;
        let nw_tos = body.u8("nw_tos")?;
        let nw_proto = body.u8("nw_proto")?;
        body.skip(2)?;
        let (nw_src, nw_dst) = (body.u32("nw_src")?, body.u32("nw_dst")?);
        let (tp_src, tp_dst) = (body.u16("tp_src")?, body.u16("tp_dst")?);
        Ok(WireMatch {
            wildcards,
            in_port,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src,
            nw_dst,
            tp_src,
            tp_dst,
        })
    }

    /// The structure's 40 bytes, made in one step, because every flow mod of 1.0 has one.
    fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        bytes[0..4].copy_from_slice(&self.wildcards.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.in_port.to_be_bytes());
        bytes[6..12].copy_from_slice(&self.dl_src);
        bytes[12..18].copy_from_slice(&self.dl_dst);
        bytes[18..20].copy_from_slice(&self.dl_vlan.to_be_bytes());
        bytes[20] = self.dl_vlan_pcp;
        bytes[22..24].copy_from_slice(&self.dl_type.to_be_bytes());
        bytes[24] = self.nw_tos;
        bytes[25] = self.nw_proto;
        bytes[28..32].copy_from_slice(&self.nw_src.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.nw_dst.to_be_bytes());
        bytes[36..38].copy_from_slice(&self.tp_src.to_be_bytes());
        bytes[38..40].copy_from_slice(&self.tp_dst.to_be_bytes());
        bytes
    }

    #[inline]
    const fn has(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }

    pub(crate) fn to_match(self) -> Match {
        let mut matching = Match::any();
        self.say(|field, value, mask| matching.put(MatchEntry::Field { field, value, mask }));
        matching
    }

    /// The priority that counts for a rule with this match: a match without wildcards is above all others (1.0, 3.4).
    pub(crate) const fn rank(&self, priority: u16) -> u16 {
        if self.wildcards & wildcard::ANY == 0 { EXACT_PRIORITY_V10 } else { priority }
    }

    /// The match for a rule of this priority. Packets without a tag have no tag's priority, so a wildcard for that changes no meaning. With it, a
    /// rule that has all other fields keeps a priority below the highest.
    #[inline]
    const fn ranked(mut self, priority: u16) -> WireMatch {
        if priority != EXACT_PRIORITY_V10 && self.wildcards == 0 && self.dl_vlan == VLAN_NONE {
            self.wildcards = wildcard::DL_VLAN_PCP;
        }
        self
    }

    /// The transport protocol, if the match is for IPv4 and has it.
    fn ipv4_proto(&self) -> Option<u8> {
        let is_ipv4 = self.has(wildcard::DL_TYPE) && self.dl_type == ETH_IPV4;
        if is_ipv4 && self.has(wildcard::NW_PROTO) { Some(self.nw_proto) } else { None }
    }

    /// Calls `field` for each field of the match, with its mask if there is one, in the order of the fields' numbers.
    fn say(&self, mut field: impl FnMut(Field, u128, Option<u128>)) {
        if self.has(wildcard::IN_PORT) {
            field(Field::InPort, PortNo::from_v10(self.in_port).0.into(), None);
        }
        if self.has(wildcard::DL_DST) {
            field(Field::EthDst, flow::MacAddr(self.dl_dst).to_u64().into(), None);
        }
        if self.has(wildcard::DL_SRC) {
            field(Field::EthSrc, flow::MacAddr(self.dl_src).to_u64().into(), None);
        }
        let dl_type = if self.has(wildcard::DL_TYPE) { Some(self.dl_type) } else { None };
        if let Some(dl_type) = dl_type {
            field(Field::EthType, dl_type.into(), None);
        }
        self.say_vlan(&mut field);
        match dl_type {
            Some(ETH_IPV4) => self.say_ipv4(field),
            Some(ETH_ARP) => self.say_arp(field),
            _ => {}
        }
    }

    fn say_vlan(&self, field: &mut impl FnMut(Field, u128, Option<u128>)) {
        let (has_vid, has_pcp) = (self.has(wildcard::DL_VLAN), self.has(wildcard::DL_VLAN_PCP));
        if has_vid && self.dl_vlan == VLAN_NONE {
            // A priority together with "no tag" could match nothing. Switches ignore it, and so does this.
            return field(Field::VlanVid, 0, None);
        }
        if has_vid {
            field(Field::VlanVid, VLAN_PRESENT | u128::from(self.dl_vlan & VLAN_ID), None);
        } else if has_pcp {
            field(Field::VlanVid, VLAN_PRESENT, Some(VLAN_PRESENT));
        }
        if has_pcp {
            field(Field::VlanPcp, (self.dl_vlan_pcp & 7).into(), None);
        }
    }

    fn say_ipv4(&self, mut field: impl FnMut(Field, u128, Option<u128>)) {
        if self.has(wildcard::NW_TOS) {
            field(Field::IpDscp, (self.nw_tos >> 2).into(), None);
        }
        let proto = self.ipv4_proto();
        if let Some(proto) = proto {
            field(Field::IpProto, proto.into(), None);
        }
        self.say_address(Field::Ipv4Src, self.nw_src, wildcard::NW_SRC_SHIFT, &mut field);
        self.say_address(Field::Ipv4Dst, self.nw_dst, wildcard::NW_DST_SHIFT, &mut field);
        let (src, dst) = match proto {
            Some(PROTO_TCP) => (Field::TcpSrc, Field::TcpDst),
            Some(PROTO_UDP) => (Field::UdpSrc, Field::UdpDst),
            Some(PROTO_SCTP) => (Field::SctpSrc, Field::SctpDst),
            Some(PROTO_ICMP) => (Field::Icmpv4Type, Field::Icmpv4Code),
            _ => return,
        };
        // Types and codes of ICMP have 8 bits. Of the 16 bits here, switches use the lower ones.
        let counts = if proto == Some(PROTO_ICMP) { 0xff } else { u16::MAX };
        if self.has(wildcard::TP_SRC) {
            field(src, (self.tp_src & counts).into(), None);
        }
        if self.has(wildcard::TP_DST) {
            field(dst, (self.tp_dst & counts).into(), None);
        }
    }

    fn say_arp(&self, mut field: impl FnMut(Field, u128, Option<u128>)) {
        if self.has(wildcard::NW_PROTO) {
            field(Field::ArpOp, self.nw_proto.into(), None);
        }
        self.say_address(Field::ArpSpa, self.nw_src, wildcard::NW_SRC_SHIFT, &mut field);
        self.say_address(Field::ArpTpa, self.nw_dst, wildcard::NW_DST_SHIFT, &mut field);
    }

    fn say_address(
        &self,
        which: Field,
        address: u32,
        shift: u32,
        field: &mut impl FnMut(Field, u128, Option<u128>),
    ) {
        // The number of ignored low bits; from 32 on, all are ignored.
        match self.wildcards >> shift & wildcard::NW_MASK {
            0 => field(which, address.into(), None),
            bits @ 1..=31 => {
                let mask = u32::MAX << bits;
                field(which, (address & mask).into(), Some(mask.into()));
            }
            _ => {}
        }
    }
}

pub(crate) fn read(body: &mut Reader<'_>) -> Result<Match, BadInput> {
    WireMatch::read(body).map(WireMatch::to_match)
}

/// Appends the fields as canonical TLVs, without building a [`Match`].
pub(crate) fn write_as_tlvs(wire: &WireMatch, out: &mut Vec<u8>) {
    let mut writer = MatchWriter::new(out);
    wire.say(|field, value, mask| {
        match mask {
            None => writer.field(field, value),
            Some(mask) => writer.masked(field, value, mask),
        };
    });
}

/// Writes a match that has no priority: that of a request.
pub(crate) fn write(matching: &Match, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_of_rule(matching, EXACT_PRIORITY_V10, out)
}

/// Writes the match of a rule of this priority.
#[inline]
pub(crate) fn write_of_rule(matching: &Match, priority: u16, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let mut wanted = Wanted::new();
    for entry in matching.entries() {
        match entry {
            MatchEntry::Field { field, value, mask } => wanted.field(*field, *value, *mask)?,
            MatchEntry::Unknown { header, .. } => return Err(unknown_field(*header)),
        }
    }
    out.bytes(&wanted.finish()?.ranked(priority).to_bytes());
    Ok(())
}

/// Writes the match of a rule of this priority from canonical TLVs. Allocates only the text of an error. Returns whether the match is for packets
/// without a VLAN tag, which decides what actions of 1.0 can express.
pub(crate) fn write_from_canonical(
    tlvs: &[u8],
    priority: u16,
    out: &mut Writer<'_>,
) -> Result<bool, Unwritable> {
    if let Some(wire) = of_usual_fields(tlvs) {
        out.bytes(&wire.to_bytes());
        return Ok(false);
    }
    let mut wanted = Wanted::new();
    for tlv in match_tlvs(tlvs) {
        let tlv = tlv.map_err(|refused| Unwritable::new("oxm_fields", refused.to_string()))?;
        let Some(field) = tlv.field() else { return Err(unknown_field(tlv.header)) };
        let Some(value) = tlv.value() else {
            return Err(Unwritable::new(field.name(), "its length is not the field's"));
        };
        wanted.field(field, value, tlv.mask())?;
    }
    let wire = wanted.finish()?.ranked(priority);
    out.bytes(&wire.to_bytes());
    Ok(wire.has(wildcard::DL_VLAN) && wire.dl_vlan == VLAN_NONE)
}

/// The match, if it has only the usual fields of rules. The result equals that of the general path.
#[inline]
fn of_usual_fields(tlvs: &[u8]) -> Option<WireMatch> {
    let UsualFields { in_port, eth_dst, eth_src, eth_type } = UsualFields::read(tlvs)?;
    let bit = |is_there: bool, bit: u32| if is_there { bit } else { 0 };
    let meant = bit(in_port.is_some(), wildcard::IN_PORT)
        | bit(eth_dst.is_some(), wildcard::DL_DST)
        | bit(eth_src.is_some(), wildcard::DL_SRC)
        | bit(eth_type.is_some(), wildcard::DL_TYPE);
    Some(WireMatch {
        wildcards: wildcard::ALL & !meant,
        in_port: in_port.map_or(Some(0), PortNo::to_v10)?,
        dl_src: eth_src.unwrap_or_default().0,
        dl_dst: eth_dst.unwrap_or_default().0,
        dl_type: eth_type.unwrap_or_default(),
        ..WireMatch::default()
    })
}

/// Whether a match is for packets without a VLAN tag.
pub(crate) fn is_untagged(matching: &Match) -> bool {
    matching.get(Field::VlanVid).is_some_and(|(value, mask)| value == 0 && mask & VLAN_PRESENT != 0)
}

fn unknown_field(header: u32) -> Unwritable {
    Unwritable::new("oxm_field", format!("OpenFlow 1.0 has no field 0x{header:08x}"))
}

/// A 1.0 match under construction, from fields in any order.
struct Wanted {
    wire: WireMatch,
    vlan_vid: Option<(u128, u128)>,
    /// One field each that needs IPv4, ARP, or a transport protocol, if there is one.
    of_ipv4: Option<Field>,
    of_arp: Option<Field>,
    of_transport: Option<(Field, u8)>,
}

impl Wanted {
    #[inline]
    fn new() -> Self {
        let wire = WireMatch { wildcards: wildcard::ALL, ..WireMatch::default() };
        Wanted { wire, vlan_vid: None, of_ipv4: None, of_arp: None, of_transport: None }
    }

    /// Adds a field. A field with a mask of zeros has no effect and is left out.
    #[inline]
    fn field(&mut self, field: Field, value: u128, mask: Option<u128>) -> Result<(), Unwritable> {
        let mask = mask.unwrap_or(field.full_mask());
        if mask == 0 {
            return Ok(());
        }
        match field {
            Field::VlanVid => self.vlan_vid = Some((value, mask)),
            Field::Ipv4Src | Field::ArpSpa => self.address(field, value, mask, wildcard::NW_SRC_SHIFT)?,
            Field::Ipv4Dst | Field::ArpTpa => self.address(field, value, mask, wildcard::NW_DST_SHIFT)?,
            _ if mask != field.full_mask() => {
                return Err(Unwritable::new(field.name(), "OpenFlow 1.0 has no mask for it"));
            }
            _ => self.exact(field, value)?,
        }
        Ok(())
    }

    #[inline]
    fn exact(&mut self, field: Field, value: u128) -> Result<(), Unwritable> {
        let wire = &mut self.wire;
        // A value never has more bits than its field, so the conversions below lose none.
        let octets = value.to_be_bytes();
        let [.., high, low] = octets;
        let [.., a, b, c, d, e, f] = octets;
        let bit = match field {
            Field::InPort => {
                let port = u32::try_from(value).map_or(PortNo::ANY, PortNo);
                wire.in_port = super::port_number(port, "in_port")?;
                wildcard::IN_PORT
            }
            Field::EthSrc => {
                wire.dl_src = [a, b, c, d, e, f];
                wildcard::DL_SRC
            }
            Field::EthDst => {
                wire.dl_dst = [a, b, c, d, e, f];
                wildcard::DL_DST
            }
            Field::EthType => {
                wire.dl_type = u16::from_be_bytes([high, low]);
                wildcard::DL_TYPE
            }
            Field::VlanPcp => {
                wire.dl_vlan_pcp = low & 7;
                wildcard::DL_VLAN_PCP
            }
            Field::IpDscp => {
                wire.nw_tos = low << 2;
                self.of_ipv4 = Some(field);
                wildcard::NW_TOS
            }
            Field::IpProto => {
                wire.nw_proto = low;
                self.of_ipv4 = Some(field);
                wildcard::NW_PROTO
            }
            Field::ArpOp if high != 0 => {
                return Err(Unwritable::new("arp_op", "OpenFlow 1.0 has only its low eight bits"));
            }
            Field::ArpOp => {
                wire.nw_proto = low;
                self.of_arp = Some(field);
                wildcard::NW_PROTO
            }
            _ => return self.transport(field, u16::from_be_bytes([high, low])),
        };
        wire.wildcards &= !bit;
        Ok(())
    }

    fn transport(&mut self, field: Field, value: u16) -> Result<(), Unwritable> {
        let (proto, is_source) = match field {
            Field::TcpSrc => (PROTO_TCP, true),
            Field::TcpDst => (PROTO_TCP, false),
            Field::UdpSrc => (PROTO_UDP, true),
            Field::UdpDst => (PROTO_UDP, false),
            Field::SctpSrc => (PROTO_SCTP, true),
            Field::SctpDst => (PROTO_SCTP, false),
            Field::Icmpv4Type => (PROTO_ICMP, true),
            Field::Icmpv4Code => (PROTO_ICMP, false),
            _ => return Err(Unwritable::new(field.name(), "OpenFlow 1.0 has no such field")),
        };
        if self.of_transport.is_some_and(|(_, other)| other != proto) {
            return Err(Unwritable::new(field.name(), "another protocol's field is in the same match"));
        }
        self.of_transport = Some((field, proto));
        if is_source {
            self.wire.tp_src = value;
            self.wire.wildcards &= !wildcard::TP_SRC;
        } else {
            self.wire.tp_dst = value;
            self.wire.wildcards &= !wildcard::TP_DST;
        }
        Ok(())
    }

    fn address(&mut self, field: Field, value: u128, mask: u128, shift: u32) -> Result<(), Unwritable> {
        let (Ok(value), Ok(mask)) = (u32::try_from(value), u32::try_from(mask)) else {
            return Err(Unwritable::new(field.name(), "it is wider than 32 bits"));
        };
        let bits = mask.trailing_zeros();
        if mask.leading_ones() + bits != 32 {
            let why = format!("mask 0x{mask:08x} is no prefix, and OpenFlow 1.0 has only prefixes");
            return Err(Unwritable::new(field.name(), why));
        }
        let wire = &mut self.wire;
        wire.wildcards = wire.wildcards & !(wildcard::NW_MASK << shift) | bits << shift;
        if shift == wildcard::NW_SRC_SHIFT {
            wire.nw_src = value
        } else {
            wire.nw_dst = value
        }
        let of_arp = matches!(field, Field::ArpSpa | Field::ArpTpa);
        if of_arp {
            self.of_arp = Some(field)
        } else {
            self.of_ipv4 = Some(field)
        }
        Ok(())
    }

    /// Checks the dependencies between fields, after all were added.
    #[inline]
    fn finish(mut self) -> Result<WireMatch, Unwritable> {
        self.vlan()?;
        let wire = &self.wire;
        let dl_type = if wire.has(wildcard::DL_TYPE) { Some(wire.dl_type) } else { None };
        let nw_proto = if wire.has(wildcard::NW_PROTO) { Some(wire.nw_proto) } else { None };
        if let Some(field) = self.of_ipv4.filter(|_| dl_type != Some(ETH_IPV4)) {
            let why = "OpenFlow 1.0 has it only for IPv4: the match must also have eth_type 0x0800";
            return Err(Unwritable::new(field.name(), why));
        }
        if let Some(field) = self.of_arp.filter(|_| dl_type != Some(ETH_ARP)) {
            let why = "it is only in ARP packets: the match must also have eth_type 0x0806";
            return Err(Unwritable::new(field.name(), why));
        }
        if let Some((field, proto)) = self.of_transport
            && (dl_type != Some(ETH_IPV4) || nw_proto != Some(proto))
        {
            let why = format!("the match must also have eth_type 0x0800 and ip_proto {proto}");
            return Err(Unwritable::new(field.name(), why));
        }
        Ok(self.wire)
    }

    /// What 1.0 can express about VLANs: no tag, one id, or any tag of one priority.
    fn vlan(&mut self) -> Result<(), Unwritable> {
        let wire = &mut self.wire;
        let has_pcp = wire.has(wildcard::DL_VLAN_PCP);
        let Some((value, mask)) = self.vlan_vid else { return Ok(()) };
        let refuse = |why| Err(Unwritable::new("vlan_vid", why));
        if mask & VLAN_PRESENT == 0 {
            return refuse("OpenFlow 1.0 cannot express a mask that leaves open whether there is a tag");
        }
        if value & VLAN_PRESENT == 0 && (has_pcp || value != 0) {
            return refuse("no packet has a VLAN id or priority and no VLAN tag");
        }
        if value & VLAN_PRESENT == 0 {
            wire.dl_vlan = VLAN_NONE;
            // The priority is ignored then. A wildcard for it makes an exact match inexact: `ranked` decides that.
            wire.wildcards &= !wildcard::DL_VLAN_PCP;
        } else if mask == Field::VlanVid.full_mask() {
            let [.., high, low] = value.to_be_bytes();
            wire.dl_vlan = u16::from_be_bytes([high, low]) & VLAN_ID;
        } else if mask != VLAN_PRESENT {
            return refuse("OpenFlow 1.0 has no mask for it");
        } else if has_pcp {
            return Ok(());
        } else {
            return refuse("OpenFlow 1.0 cannot match 'any VLAN tag'");
        }
        wire.wildcards &= !wildcard::DL_VLAN;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
