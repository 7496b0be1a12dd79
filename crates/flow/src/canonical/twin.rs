//! One field, several names: translates fields of Open vSwitch's classes into the fields that a switch compares.
//!
//! A switch that knows Nicira's classes keeps one value for `NXM_OF_IP_SRC` and `ipv4_src`, for the upper half of
//! `pkt_reg0` and `reg0`. Two matches that name it differently are one match to that switch.
//!
//! In: the header and the payload of a field of another class than OPENFLOW_BASIC. Out: its parts, each with value and
//! mask. Sources: ovs-fields(7). Never allocates, and never says whether a switch knows the field.

use super::number;
use crate::field::Field;
use crate::port::PortNo;

/// A field for which a switch has one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Said {
    /// A field of OpenFlow 1.3.
    Field(Field),
    /// One of Open vSwitch's 32-bit registers.
    Register(u8),
    /// A field of Nicira's class 0x0001 that OpenFlow 1.3 lacks, by its number there. Only those that have a second name, or fewer bits than
    /// their bytes hold, are here.
    Nicira(u8),
}

/// The part of a match that concerns one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The field.
    pub of: Said,
    /// Its value; bits outside the mask are zero.
    pub value: u128,
    /// The bits that count, never zero. All ones if the field has no mask.
    pub mask: u128,
}

/// Classes of OXM fields.
const NXM_OF: u16 = 0x0000;
const NXM_NX: u16 = 0x0001;
const PACKET_REGS: u16 = 0x8001;
const EXPERIMENTER: u16 = 0xffff;

/// Experimenters.
const NICIRA: u32 = 0x0000_2320;
const ONF: u32 = 0x4f4e_4600;

/// The meaning of a field's bits.
#[derive(Clone, Copy)]
enum Shape {
    /// A value with this number of bits.
    Whole(Said, u32),
    /// A port as OpenFlow 1.0 numbers it.
    ShortPort,
    /// The DSCP, in the upper six bits of eight.
    Tos,
    /// A VLAN tag: priority, presence and number.
    Tci,
    /// Consecutive registers of 32 bits: the first one, in the upper bits, and how many.
    Registers(u8, u8),
}

fn shape(header: u32, experimenter: u32) -> Option<Shape> {
    let number = (header >> 9) as u8 & 0x7f;
    match (header >> 16) as u16 {
        NXM_OF => of_class_0(number),
        NXM_NX => of_class_1(number),
        PACKET_REGS if number < 8 => Some(Shape::Registers(2 * number, 2)),
        EXPERIMENTER => match (experimenter, number) {
            // Their dp_hash and the ONF's tcp_flags.
            (NICIRA, 0) => Some(Shape::Whole(Said::Nicira(35), 32)),
            (ONF, 42) => Some(Shape::Whole(Said::Nicira(34), 12)),
            _ => None,
        },
        _ => None,
    }
}

const fn whole(field: Field) -> Shape {
    Shape::Whole(Said::Field(field), field.bits())
}

const fn of_class_0(number: u8) -> Option<Shape> {
    use Field::*;
    Some(match number {
        0 => Shape::ShortPort,
        1 => whole(EthDst),
        2 => whole(EthSrc),
        3 => whole(EthType),
        4 => Shape::Tci,
        5 => Shape::Tos,
        6 => whole(IpProto),
        7 => whole(Ipv4Src),
        8 => whole(Ipv4Dst),
        9 => whole(TcpSrc),
        10 => whole(TcpDst),
        11 => whole(UdpSrc),
        12 => whole(UdpDst),
        13 => whole(Icmpv4Type),
        14 => whole(Icmpv4Code),
        15 => whole(ArpOp),
        16 => whole(ArpSpa),
        17 => whole(ArpTpa),
        _ => return None,
    })
}

const fn of_class_1(number: u8) -> Option<Shape> {
    use Field::*;
    Some(match number {
        0..=15 => Shape::Registers(number, 1),
        16 => whole(TunnelId),
        17 => whole(ArpSha),
        18 => whole(ArpTha),
        19 => whole(Ipv6Src),
        20 => whole(Ipv6Dst),
        21 => whole(Icmpv6Type),
        22 => whole(Icmpv6Code),
        23 => whole(Ipv6NdTarget),
        24 => whole(Ipv6NdSll),
        25 => whole(Ipv6NdTll),
        // ip_frag, tcp_flags, dp_hash and tun_flags.
        26 => Shape::Whole(Said::Nicira(26), 2),
        27 => whole(Ipv6Flabel),
        28 => whole(IpEcn),
        34 => Shape::Whole(Said::Nicira(34), 12),
        35 => Shape::Whole(Said::Nicira(35), 32),
        104 => Shape::Whole(Said::Nicira(104), 1),
        111..=114 => Shape::Registers(4 * (number - 111), 4),
        _ => return None,
    })
}

impl Shape {
    fn bits(self) -> u32 {
        match self {
            Shape::Whole(_, bits) => bits,
            Shape::ShortPort | Shape::Tci => 16,
            Shape::Tos => 8,
            Shape::Registers(_, count) => 32 * u32::from(count),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Shape::Whole(Said::Field(field), _) => field.bytes(),
            Shape::Whole(Said::Nicira(104), _) => 2,
            _ => self.bits().div_ceil(8) as usize,
        }
    }

    fn say(self, value: u128, mask: u128, say: &mut impl FnMut(Part)) {
        let mut part = |of, value: u128, mask| {
            if mask != 0 {
                say(Part { of, value: value & mask, mask });
            }
        };
        match self {
            Shape::Whole(of, _) => part(of, value, mask),
            Shape::ShortPort => {
                // A mask of sixteen ones; another is on no port's field.
                let port = PortNo::from_v10((value & 0xffff) as u16);
                let mask = if mask == 0xffff { Field::InPort.full_mask() } else { mask };
                part(Said::Field(Field::InPort), port.0.into(), mask);
            }
            Shape::Tos => part(Said::Field(Field::IpDscp), value >> 2, mask >> 2),
            Shape::Tci => {
                let of_vid = Field::VlanVid.full_mask();
                part(Said::Field(Field::VlanVid), value & of_vid, mask & of_vid);
                part(Said::Field(Field::VlanPcp), value >> 13, mask >> 13);
            }
            Shape::Registers(first, count) => (0..count).for_each(|index| {
                let shift = 32 * u32::from(count - 1 - index);
                let word = |number: u128| number >> shift & 0xffff_ffff;
                part(Said::Register(first + index), word(value), word(mask));
            }),
        }
    }
}

/// Calls `say` with the parts of a field of another class, if the field has a second name, or fewer bits than its bytes
/// hold. Parts without a relevant bit are left out. Returns whether the field is of this kind and has the right length;
/// if not, `say` is not called.
///
/// ```
/// use flow::{Field, canonical::{Part, Said, parts_of_twin}};
/// let nxm_of_ip_src = (7 << 9) | 4;
/// let mut parts = Vec::new();
/// assert!(parts_of_twin(nxm_of_ip_src, &[10, 0, 0, 1], &mut |part| parts.push(part)));
/// assert_eq!(parts, [Part { of: Said::Field(Field::Ipv4Src), value: 0x0a00_0001, mask: 0xffff_ffff }]);
/// ```
pub fn parts_of_twin(header: u32, body: &[u8], say: &mut impl FnMut(Part)) -> bool {
    let is_experimenters = (header >> 16) as u16 == EXPERIMENTER;
    let (experimenter, body) =
        if is_experimenters { body.split_at_checked(4).unwrap_or_default() } else { (&[][..], body) };
    // At most four bytes.
    let Some(shape) = shape(header, number(experimenter) as u32) else { return false };
    let has_mask = header & 0x100 != 0;
    let Some((value, mask)) = body.split_at_checked(shape.bytes()) else { return false };
    let full = u128::MAX >> (128 - shape.bits());
    let mask = match (has_mask, mask.len()) {
        (false, 0) => full,
        (true, length) if length == shape.bytes() => number(mask) & full,
        _ => return false,
    };
    shape.say(number(value), mask, say);
    true
}

/// Whether a field of an unknown class matches everything: it has a mask without a set bit.
pub fn is_wild(header: u32, body: &[u8]) -> bool {
    let is_experimenters = (header >> 16) as u16 == EXPERIMENTER;
    let body = if is_experimenters { body.get(4..).unwrap_or_default() } else { body };
    header & 0x100 != 0 && body.iter().skip(body.len() / 2).all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(header: u32, body: &[u8]) -> Option<Vec<(Said, u128, u128)>> {
        let mut parts = Vec::new();
        let is_known = parts_of_twin(header, body, &mut |part| parts.push((part.of, part.value, part.mask)));
        is_known.then_some(parts)
    }

    const fn header(class: u32, number: u32, has_mask: bool, length: usize) -> u32 {
        class << 16 | number << 9 | (has_mask as u32) << 8 | length as u32
    }

    fn check(class: u32, number: u32, value: &[u8], mask: &[u8], expected: &[(Said, u128, u128)]) {
        let body = [value, mask].concat();
        let header = header(class, number, !mask.is_empty(), body.len());
        assert_eq!(parts(header, &body).as_deref(), Some(expected), "{class:#x} {number}");
    }

    #[test]
    fn a_length_that_is_not_the_fields_says_nothing() {
        for length in [0, 3, 5, 8] {
            assert_eq!(parts(header(0, 7, false, length), &vec![1; length]), None, "{length}");
        }
        for length in [0, 4, 7, 9, 12] {
            assert_eq!(parts(header(0, 7, true, length), &vec![1; length]), None, "{length}");
        }
        assert_eq!(parts(header(0xffff, 42, false, 3), &[0x4f, 0x4e, 0x46]), None);
        assert_eq!(parts(header(0, 18, false, 1), &[1]), None);
        assert_eq!(parts(header(0x8001, 8, false, 8), &[1; 8]), None);
    }

    #[test]
    fn each_name_of_a_field_says_the_same() {
        use Said::{Field as Of, Nicira, Register};
        check(0, 8, &[10, 0, 0, 1], &[], &[(Of(Field::Ipv4Dst), 0x0a00_0001, 0xffff_ffff)]);
        check(0, 8, &[10, 0, 0, 1], &[255, 0, 0, 0], &[(Of(Field::Ipv4Dst), 0x0a00_0000, 0xff00_0000)]);
        check(0, 0, &[0xff, 0xfe], &[], &[(Of(Field::InPort), 0xffff_fffe, 0xffff_ffff)]);
        check(0, 0, &[0, 3], &[], &[(Of(Field::InPort), 3, 0xffff_ffff)]);
        check(0, 5, &[0x28], &[], &[(Of(Field::IpDscp), 10, 0x3f)]);
        check(1, 28, &[2], &[], &[(Of(Field::IpEcn), 2, 3)]);
        check(1, 27, &[0, 1, 2, 3], &[], &[(Of(Field::Ipv6Flabel), 0x10203, 0xf_ffff)]);
        check(1, 34, &[0, 2], &[0x0f, 0xff], &[(Nicira(34), 2, 0xfff)]);
        check(1, 34, &[0, 2], &[], &[(Nicira(34), 2, 0xfff)]);
        check(0xffff, 42, &[0x4f, 0x4e, 0x46, 0, 0, 2], &[], &[(Nicira(34), 2, 0xfff)]);
        check(1, 5, &[0, 0, 0, 9], &[], &[(Register(5), 9, 0xffff_ffff)]);
        let both = [(Register(4), 1, 0xffff_ffff), (Register(5), 9, 0xffff_ffff)];
        check(0x8001, 2, &[0, 0, 0, 1, 0, 0, 0, 9], &[], &both);
        check(0x8001, 2, &[0, 0, 0, 1, 0, 0, 0, 9], &[0, 0, 0, 0, 255, 255, 255, 255], &both[1..]);
        let value = [[0, 0, 0, 1], [0, 0, 0, 9], [0; 4], [0; 4]].concat();
        let mask = [[255; 8], [0; 8]].concat();
        check(1, 112, &value, &mask, &both);
    }

    #[test]
    fn a_tag_is_its_number_and_its_priority() {
        let (vid, pcp) = (Said::Field(Field::VlanVid), Said::Field(Field::VlanPcp));
        check(0, 4, &[0x70, 5], &[], &[(vid, 0x1005, 0x1fff), (pcp, 3, 7)]);
        check(0, 4, &[0, 0], &[0x1f, 0xff], &[(vid, 0, 0x1fff)]);
        check(0, 4, &[0x60, 0], &[0xe0, 0], &[(pcp, 3, 7)]);
    }

    #[test]
    fn of_a_mask_of_zeros_nothing_is_said() {
        check(1, 0, &[0, 0, 0, 0], &[0, 0, 0, 0], &[]);
        assert!(is_wild(header(1, 107, true, 8), &[0; 8]));
        assert!(is_wild(header(0xffff, 5, true, 6), &[0, 0, 0x23, 0x20, 1, 0]));
        assert!(!is_wild(header(1, 107, false, 4), &[0; 4]));
        assert!(!is_wild(header(1, 107, true, 8), &[0, 0, 0, 0, 0, 0, 0, 1]));
    }
}
