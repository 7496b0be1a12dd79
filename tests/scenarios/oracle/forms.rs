//! Random matches with few values, and the many ways to encode the same match.
//!
//! In: a random generator. Out: what a match means, and bytes for it. The bytes use OpenFlow's or Nicira's field
//! names, include masks of ones and fields with zero masks, and vary the order.

use super::dice::Dice;
use abi::OpenFlowVersion;
use flow::Field;
use flow::canonical::field_header;

/// The names by which a switch knows fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    OpenFlows,
    NicirasToo,
}

/// A field with its value and the bits that count.
pub type Named = (Field, u128, u128);

/// The meaning of a match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    pub fields: Vec<Named>,
    /// Open vSwitch's registers: number, value, mask.
    pub registers: Vec<(u8, u32, u32)>,
}

const MACS: [u128; 2] = [0x0200_0000_0001, 0x0200_0000_0002];
const IPS: [u128; 2] = [0x0a00_0001, 0x0a00_0100];
const VLAN_PRESENT: u128 = 0x1000;

/// Fields that a packet without an Ethernet frame has too.
const SAYS_NO_ETHERNET: [Field; 3] = [Field::InPort, Field::Metadata, Field::TunnelId];

/// How many of a hundred matches name every field of 1.0.
const EXACT_PERCENT: u64 = 15;

impl Meaning {
    pub fn roll(dice: &mut Dice, openflow: OpenFlowVersion, names: Names) -> Meaning {
        let mut maker = Maker { dice, openflow, names, meaning: Meaning::default() };
        if maker.dice.chance(EXACT_PERCENT) {
            maker.exact();
        } else {
            maker.some();
        }
        maker.meaning
    }

    /// The same with one change: a field is missing or has another value.
    pub fn changed(&self, dice: &mut Dice) -> Meaning {
        let mut other = self.clone();
        if other.fields.is_empty() {
            other.fields.push((Field::EthDst, MACS[0], Field::EthDst.full_mask()));
            return other;
        }
        let place = dice.below(other.fields.len() as u64) as usize;
        if dice.chance(50) {
            other.fields.remove(place);
        } else {
            let (_, value, mask) = &mut other.fields[place];
            // Its lowest unmasked bit.
            *value ^= *mask & mask.wrapping_neg();
        }
        other
    }

    fn get(&self, field: Field) -> Option<(u128, u128)> {
        self.fields.iter().find(|named| named.0 == field).map(|named| (named.1, named.2))
    }

    /// The match as bytes, in one of many encodings.
    pub fn write(&self, dice: &mut Dice, openflow: OpenFlowVersion, names: Names) -> Vec<u8> {
        let is_niciras = openflow == OpenFlowVersion::V1_3 && names == Names::NicirasToo;
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let as_tci = is_niciras && self.get(Field::VlanVid).is_some() && dice.chance(30);
        if as_tci {
            parts.push(self.tci());
        }
        for named in &self.fields {
            if as_tci && matches!(named.0, Field::VlanVid | Field::VlanPcp) {
                continue;
            }
            let nicira = if is_niciras && dice.chance(35) { by_nicira(named) } else { None };
            parts.push(nicira.unwrap_or_else(|| by_openflow(dice, named)));
        }
        parts.extend(self.registers.iter().map(|register| by_register(dice, *register)));
        if dice.chance(30) {
            let place = dice.below(parts.len() as u64 + 1) as usize;
            parts.insert(place, self.wild(dice, is_niciras));
        }
        if dice.chance(20) && parts.len() > 1 {
            let (one, other) = (dice.below(parts.len() as u64), dice.below(parts.len() as u64));
            parts.swap(one as usize, other as usize);
        }
        parts.concat()
    }

    fn tci(&self) -> Vec<u8> {
        let (vid, vid_mask) = self.get(Field::VlanVid).unwrap_or_default();
        let (pcp, pcp_mask) = self.get(Field::VlanPcp).unwrap_or_default();
        nxm(0, 4, vid | pcp << 13, vid_mask | pcp_mask << 13, 2, 0xffff)
    }

    /// A field with a mask of zeros, which the match does not have.
    fn wild(&self, dice: &mut Dice, is_niciras: bool) -> Vec<u8> {
        // The head of `identity` says why.
        let is_of_ethernet = self.fields.iter().any(|(field, ..)| !SAYS_NO_ETHERNET.contains(field));
        let fields: &[Field] = if is_niciras && !is_of_ethernet {
            &[Field::Metadata]
        } else {
            &[Field::EthDst, Field::EthSrc, Field::Metadata, Field::VlanVid]
        };
        let field = dice.pick(fields);
        if is_niciras && (self.get(field).is_some() || dice.chance(40)) {
            let numbers: Vec<u32> = (0..8)
                .filter(|number| self.registers.iter().all(|there| u32::from(there.0) != *number))
                .collect();
            return nxm(1, dice.pick(&numbers), 0, 0, 4, 0xffff_ffff);
        }
        let zeros = vec![0; 2 * field.bytes()];
        if self.get(field).is_some() {
            Vec::new()
        } else {
            [&field_header(field, true).to_be_bytes()[..], &zeros].concat()
        }
    }
}

struct Maker<'a> {
    dice: &'a mut Dice,
    openflow: OpenFlowVersion,
    names: Names,
    meaning: Meaning,
}

impl Maker<'_> {
    fn put(&mut self, field: Field, value: u128) {
        self.meaning.fields.push((field, value, field.full_mask()));
    }

    fn perhaps(&mut self, percent: u64, field: Field, values: &[u128]) {
        if self.dice.chance(percent) {
            let value = self.dice.pick(values);
            self.put(field, value);
        }
    }

    fn masked(&mut self, percent: u64, field: Field, values: &[u128], masks: &[u128]) {
        if self.dice.chance(percent) {
            let (value, mask) = (self.dice.pick(values), self.dice.pick(masks));
            self.meaning.fields.push((field, value & mask, mask));
        }
    }

    fn is_1_3(&self) -> bool {
        self.openflow == OpenFlowVersion::V1_3
    }

    /// Every field of 1.0.
    fn exact(&mut self) {
        self.put(Field::InPort, 1);
        self.put(Field::EthDst, MACS[0]);
        self.put(Field::EthSrc, MACS[1]);
        self.put(Field::EthType, 0x0800);
        self.put(Field::VlanVid, VLAN_PRESENT | 5);
        self.put(Field::VlanPcp, 3);
        self.put(Field::IpDscp, 10);
        let (protocol, [source, destination]) = self.dice.pick(&[
            (6, [Field::TcpSrc, Field::TcpDst]),
            (17, [Field::UdpSrc, Field::UdpDst]),
            (1, [Field::Icmpv4Type, Field::Icmpv4Code]),
        ]);
        self.put(Field::IpProto, protocol);
        self.put(Field::Ipv4Src, IPS[0]);
        self.put(Field::Ipv4Dst, IPS[1]);
        self.put(source, 8);
        self.put(destination, 0);
    }

    fn some(&mut self) {
        let mac_masks: &[u128] = if self.is_1_3() {
            &[0xffff_ffff_ffff, 0x0100_0000_0000, 0xffff_ff00_0000]
        } else {
            &[0xffff_ffff_ffff]
        };
        self.perhaps(25, Field::InPort, &[1, 2, 0xffff_fffe]);
        if self.is_1_3() {
            self.masked(10, Field::Metadata, &[5, 6], &[u128::from(u64::MAX), 0xf]);
        }
        self.masked(25, Field::EthDst, &MACS, mac_masks);
        self.masked(15, Field::EthSrc, &MACS, mac_masks);
        let kind = self.dice.below(10);
        let eth_type = match kind {
            0..3 => None,
            3..7 => Some(0x0800),
            7 => Some(0x0806),
            8 => Some(if self.is_1_3() { 0x86dd } else { 0x0800 }),
            _ => Some(0x88cc),
        };
        eth_type.into_iter().for_each(|eth_type| self.put(Field::EthType, eth_type));
        if self.dice.chance(30) {
            self.tag();
        }
        match eth_type {
            Some(0x0800) => self.ipv4(),
            Some(0x0806) => self.arp(),
            Some(0x86dd) => self.ipv6(),
            _ => {}
        }
        if self.is_1_3() {
            self.masked(8, Field::TunnelId, &[7], &[u128::from(u64::MAX), 0xff]);
        }
        if self.is_1_3() && self.names == Names::NicirasToo && self.dice.chance(20) {
            let register = self.dice.below(4) as u8;
            let mask = self.dice.pick(&[u32::MAX, 0xff]);
            self.meaning.registers.push((register, 9, mask));
        }
    }

    fn tag(&mut self) {
        let full = Field::VlanVid.full_mask();
        let (value, mask) = self.dice.pick(&[
            (0, full),
            (0, VLAN_PRESENT),
            (VLAN_PRESENT, VLAN_PRESENT),
            (VLAN_PRESENT | 5, full),
            (VLAN_PRESENT | 6, full),
        ]);
        let is_alone = self.openflow == OpenFlowVersion::V1_0 && mask == value && self.dice.chance(50);
        if !is_alone {
            self.meaning.fields.push((Field::VlanVid, value, mask));
        }
        if value & VLAN_PRESENT != 0 && self.dice.chance(60) {
            self.put(Field::VlanPcp, 3);
        }
    }

    fn ipv4(&mut self) {
        let prefixes = [0xffff_ffff, 0xffff_ff00];
        self.perhaps(20, Field::IpDscp, &[10]);
        if self.is_1_3() {
            self.perhaps(15, Field::IpEcn, &[1]);
        }
        let protocol = self.dice.pick(&[0, 6, 17, 1, 132]);
        if protocol != 0 {
            self.put(Field::IpProto, protocol);
        }
        self.masked(40, Field::Ipv4Src, &IPS, &prefixes);
        self.masked(40, Field::Ipv4Dst, &IPS, &prefixes);
        let ports: &[u128] = if self.is_1_3() { &[0xffff, 0xfff0] } else { &[0xffff] };
        match protocol {
            6 => self.ports(Field::TcpSrc, Field::TcpDst, ports),
            17 => self.ports(Field::UdpSrc, Field::UdpDst, ports),
            132 => self.ports(Field::SctpSrc, Field::SctpDst, ports),
            1 => {
                self.perhaps(40, Field::Icmpv4Type, &[8]);
                self.perhaps(30, Field::Icmpv4Code, &[0, 1]);
            }
            _ => {}
        }
    }

    fn ports(&mut self, source: Field, destination: Field, masks: &[u128]) {
        self.masked(30, source, &[80], masks);
        self.masked(50, destination, &[80, 443], masks);
    }

    fn arp(&mut self) {
        self.perhaps(50, Field::ArpOp, &[1, 2]);
        self.masked(40, Field::ArpSpa, &IPS, &[0xffff_ffff, 0xffff_ff00]);
        self.masked(40, Field::ArpTpa, &IPS, &[0xffff_ffff]);
        if self.is_1_3() {
            self.perhaps(20, Field::ArpSha, &MACS);
        }
    }

    fn ipv6(&mut self) {
        let address = 0xfe80 << 112 | 1;
        self.masked(50, Field::Ipv6Src, &[address], &[u128::MAX, 0xffff << 112]);
        self.masked(30, Field::Ipv6Dst, &[address], &[u128::MAX]);
        self.masked(30, Field::Ipv6Flabel, &[5], &[0xf_ffff]);
    }
}

fn number_bytes(number: u128, bytes: usize) -> Vec<u8> {
    number.to_be_bytes()[16 - bytes..].to_vec()
}

fn by_openflow(dice: &mut Dice, &(field, value, mask): &Named) -> Vec<u8> {
    let has_mask = mask != field.full_mask() || field.maskable() && dice.chance(30);
    let mut bytes = field_header(field, has_mask).to_be_bytes().to_vec();
    bytes.extend(number_bytes(value, field.bytes()));
    if has_mask {
        bytes.extend(number_bytes(mask, field.bytes()));
    }
    bytes
}

/// A field of another class; without a mask if that is all ones.
fn nxm(class: u32, number: u32, value: u128, mask: u128, bytes: usize, full: u128) -> Vec<u8> {
    let has_mask = mask != full;
    let length = if has_mask { 2 * bytes } else { bytes };
    let header = class << 16 | number << 9 | u32::from(has_mask) << 8 | length as u32;
    let mut out = header.to_be_bytes().to_vec();
    out.extend(number_bytes(value, bytes));
    if has_mask {
        out.extend(number_bytes(mask, bytes));
    }
    out
}

/// The field by Nicira's name, if it has one (ovs-fields(7)).
fn by_nicira(&(field, value, mask): &Named) -> Option<Vec<u8>> {
    use Field::*;
    let (class, number) = match field {
        InPort if value > 0xffff => return Some(nxm(0, 0, value & 0xffff, 0xffff, 2, 0xffff)),
        InPort => return Some(nxm(0, 0, value, 0xffff, 2, 0xffff)),
        IpDscp => return Some(nxm(0, 5, value << 2, 0xff, 1, 0xff)),
        EthDst => (0, 1),
        EthSrc => (0, 2),
        EthType => (0, 3),
        IpProto => (0, 6),
        Ipv4Src => (0, 7),
        Ipv4Dst => (0, 8),
        TcpSrc => (0, 9),
        TcpDst => (0, 10),
        UdpSrc => (0, 11),
        UdpDst => (0, 12),
        Icmpv4Type => (0, 13),
        Icmpv4Code => (0, 14),
        ArpOp => (0, 15),
        ArpSpa => (0, 16),
        ArpTpa => (0, 17),
        TunnelId => (1, 16),
        ArpSha => (1, 17),
        Ipv6Src => (1, 19),
        Ipv6Dst => (1, 20),
        Ipv6Flabel => (1, 27),
        IpEcn => (1, 28),
        _ => return None,
    };
    Some(nxm(class, number, value, mask, field.bytes(), field.full_mask()))
}

/// A register by itself, as half of one of 64 bits, or as a quarter of one of 128.
fn by_register(dice: &mut Dice, (register, value, mask): (u8, u32, u32)) -> Vec<u8> {
    let (value, mask) = (u128::from(value & mask), u128::from(mask));
    match dice.below(3) {
        0 => nxm(1, register.into(), value, mask, 4, 0xffff_ffff),
        1 => {
            let shift = 32 * (1 - u32::from(register % 2));
            nxm(0x8001, u32::from(register / 2), value << shift, mask << shift, 8, u64::MAX.into())
        }
        _ => {
            let shift = 32 * (3 - u32::from(register % 4));
            nxm(1, 111 + u32::from(register / 4), value << shift, mask << shift, 16, u128::MAX)
        }
    }
}
