//! Vendor extensions: the actions, instructions, fields, bands and statistics of a command that OpenFlow 1.3 does not
//! define.
//!
//! ```text
//!   canonical bytes ──> parts_of_match, parts_of_actions, ... ──> VendorPart ──> "is this app allowed to use it?"
//! ```
//!
//! In: canonical bytes that the readers of [`crate::canonical`] accept. Out: the vendor and the number of each
//! extension. Never tells what an extension does.

use crate::canonical::{RawAction, RawInstruction, Tlv, actions_raw, instructions_raw, match_tlvs};
use crate::field::CLASS_BASIC;
use std::fmt;

/// Nicira's number, under which Open vSwitch has its extensions (`NX_VENDOR_ID`).
pub const NICIRA: u32 = 0x0000_2320;

/// The Open Networking Foundation's number. Here it also stands for every OXM class without an experimenter's number,
/// because the foundation assigns these classes (1.3.5, 7.2.3.3).
pub const ONF: u32 = 0x4f4e_4600;

/// Open vSwitch treats these two OXM classes as Nicira's fields (`OFPXMC_NXM_0`, `OFPXMC_NXM_1`).
const NICIRA_CLASSES: [u16; 2] = [0, 1];

/// `OFPXMC_EXPERIMENTER`.
const CLASS_EXPERIMENTER: u16 = 0xffff;

/// `OFPAT_EXPERIMENTER`, `OFPIT_EXPERIMENTER` and `OFPMBT_EXPERIMENTER` are all this number.
const EXPERIMENTER: u16 = 0xffff;

/// `OFPAT_SET_FIELD`.
const SET_FIELD: u16 = 25;

/// The kind of a vendor extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// An action. Its subtype is the first 16 bits behind the vendor's number.
    Action,
    /// An instruction. Its subtype is the first 16 bits behind the vendor's number.
    Instruction,
    /// A field, in a match or in a set-field. Its subtype is the upper 23 bits of the OXM header: class and field number.
    Field,
    /// A band of a meter. It has no subtype.
    Band,
    /// A statistics request. Its subtype is the 32 bits behind the vendor's number (`exp_type`).
    Statistics,
    /// A message of a switch. Its subtype is the 32 bits behind the vendor's number (`exp_type`).
    Message,
}

impl PartKind {
    /// Every kind with its name in a manifest.
    pub const NAMES: [(PartKind, &'static str); 6] = [
        (PartKind::Action, "action"),
        (PartKind::Instruction, "instruction"),
        (PartKind::Field, "field"),
        (PartKind::Band, "band"),
        (PartKind::Statistics, "statistics"),
        (PartKind::Message, "message"),
    ];

    /// Its name in a manifest.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// One vendor extension in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VendorPart {
    /// The vendor's number (`experimenter`).
    pub vendor: u32,
    /// Its kind.
    pub kind: PartKind,
    /// The vendor's number for it, see [`PartKind`].
    pub subtype: u32,
}

impl fmt::Display for VendorPart {
    /// The form in a manifest: `nicira:action:16`, `0x12345678:band:0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", VendorName(self.vendor), self.kind.name(), self.subtype)
    }
}

/// A vendor's number as text: by name for known vendors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorName(pub u32);

impl fmt::Display for VendorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NICIRA => f.write_str("nicira"),
            ONF => f.write_str("onf"),
            other => write!(f, "{other:#010x}"),
        }
    }
}

impl std::str::FromStr for VendorName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nicira" => return Ok(VendorName(NICIRA)),
            "onf" => return Ok(VendorName(ONF)),
            _ => {}
        }
        let digits = text.strip_prefix("0x").ok_or_else(|| expected(text))?;
        u32::from_str_radix(digits, 16).map(VendorName).map_err(|_| expected(text))
    }
}

fn expected(text: &str) -> String {
    format!(
        "`{text}` is no vendor: write nicira, onf, or the vendor's number as 0x and up to eight hex digits"
    )
}

/// The vendor extensions of a match: its fields.
///
/// ```
/// use flow::vendor::{NICIRA, parts_of_match};
/// let register_0 = [0x00, 0x01, 0x00, 0x04, 0, 0, 0, 5];
/// assert_eq!(parts_of_match(&register_0).next().unwrap().vendor, NICIRA);
/// assert_eq!(parts_of_match(&[0x80, 0x00, 0x00, 0x04, 0, 0, 0, 1]).next(), None);
/// ```
pub fn parts_of_match(bytes: &[u8]) -> impl Iterator<Item = VendorPart> + '_ {
    match_tlvs(bytes).map_while(Result::ok).filter_map(|tlv| part_of_field(&tlv))
}

/// The vendor extensions in a list of actions: actions, and fields in set-field actions.
pub fn parts_of_actions(bytes: &[u8]) -> impl Iterator<Item = VendorPart> + '_ {
    actions_raw(bytes).map_while(Result::ok).filter_map(|raw| part_of_action(&raw))
}

/// The vendor extensions in a list of instructions, including the actions inside.
pub fn parts_of_instructions(bytes: &[u8]) -> impl Iterator<Item = VendorPart> + '_ {
    instructions_raw(bytes).map_while(Result::ok).flat_map(|raw| {
        let inside = raw.action_bytes().map(parts_of_actions);
        part_of_instruction(&raw).into_iter().chain(inside.into_iter().flatten())
    })
}

/// The vendor extension of a meter band, if its type is experimenter. `band` holds the whole band (1.3.5, 7.3.4.3).
pub fn part_of_band(band: &[u8]) -> Option<VendorPart> {
    let is_vendors = short_at(band, 0) == Some(EXPERIMENTER);
    let vendor = word_at(band, 12).unwrap_or_default();
    is_vendors.then_some(VendorPart { vendor, kind: PartKind::Band, subtype: 0 })
}

/// The vendor extension of an OFPMP_EXPERIMENTER request, by its body.
pub fn part_of_statistics(body: &[u8]) -> VendorPart {
    let number = |at| word_at(body, at).unwrap_or_default();
    VendorPart { vendor: number(0), kind: PartKind::Statistics, subtype: number(4) }
}

fn part_of_field(tlv: &Tlv<'_>) -> Option<VendorPart> {
    let class = tlv.class();
    if class == CLASS_BASIC {
        return None;
    }
    let vendor = match class {
        CLASS_EXPERIMENTER => word_at(tlv.payload, 0).unwrap_or_default(),
        class if NICIRA_CLASSES.contains(&class) => NICIRA,
        _ => ONF,
    };
    Some(VendorPart { vendor, kind: PartKind::Field, subtype: tlv.header >> 9 })
}

fn part_of_action(raw: &RawAction<'_>) -> Option<VendorPart> {
    match raw.kind {
        EXPERIMENTER => Some(part_of_experimenter(raw.bytes, PartKind::Action)),
        SET_FIELD => raw.set_field().and_then(|tlv| part_of_field(&tlv)),
        _ => None,
    }
}

fn part_of_instruction(raw: &RawInstruction<'_>) -> Option<VendorPart> {
    raw.is_experimenter().then(|| part_of_experimenter(raw.bytes, PartKind::Instruction))
}

/// Experimenter actions and instructions begin in the same way: type, length, the vendor's number, the vendor's data.
fn part_of_experimenter(bytes: &[u8], kind: PartKind) -> VendorPart {
    let subtype = short_at(bytes, 8).unwrap_or_default().into();
    VendorPart { vendor: word_at(bytes, 4).unwrap_or_default(), kind, subtype }
}

fn short_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::{write_actions, write_instructions, write_match};
    use crate::text::{parse_actions, parse_instructions, parse_match};

    fn in_match(text: &str) -> Vec<String> {
        let mut bytes = Vec::new();
        write_match(&parse_match(text).unwrap(), &mut bytes);
        parts_of_match(&bytes).map(|part| part.to_string()).collect()
    }

    fn in_actions(text: &str) -> Vec<String> {
        let mut bytes = Vec::new();
        write_actions(&parse_actions(text).unwrap(), &mut bytes).unwrap();
        parts_of_actions(&bytes).map(|part| part.to_string()).collect()
    }

    fn in_instructions(text: &str) -> Vec<String> {
        let mut bytes = Vec::new();
        write_instructions(&parse_instructions(text).unwrap(), &mut bytes).unwrap();
        parts_of_instructions(&bytes).map(|part| part.to_string()).collect()
    }

    #[test]
    fn damaged_bytes_have_the_parts_before_the_damage() {
        let register_0 = [0, 1, 0, 4, 0, 0, 0, 5];
        assert_eq!(parts_of_match(&[&register_0[..], &register_0[..7]].concat()).count(), 1);
        assert_eq!(parts_of_match(&register_0[..7]).count(), 0);
        assert_eq!(parts_of_actions(&[0xff, 0xff, 0, 16, 0, 0, 0x23, 0x20]).count(), 0);
        assert_eq!(part_of_band(&[0xff, 0xff, 0, 16]).unwrap().vendor, 0);
        assert_eq!(part_of_band(&[0xff]), None);
        assert_eq!(part_of_statistics(&[0, 0]).vendor, 0);
    }

    #[test]
    fn what_openflow_defines_is_no_vendors() {
        let (nothing, all): (&[&str], &str) = (&[], "in_port=1,dl_src=02:00:00:00:00:01,tcp,tp_dst=80");
        assert_eq!(in_match(all), nothing);
        let actions = "push_vlan:0x8100,set_field:7->vlan_vid,dec_ttl,group:3,output:2";
        assert_eq!(in_actions(actions), nothing);
        assert_eq!(in_instructions(&format!("meter:1,{actions},write_metadata:5,goto_table:2")), nothing);
    }

    #[test]
    fn every_vendors_part_is_named() {
        assert_eq!(in_match("reg0=5"), ["nicira:field:128"]);
        assert_eq!(in_actions("resubmit(1,2),output:1"), ["nicira:action:14"]);
        assert_eq!(in_actions("experimenter(0x12345678,000a000000000000)"), ["0x12345678:action:10"]);
        let inside = "write_actions(resubmit(,3)),experimenter_instruction(0x1,0002000000000000)";
        let mut found = in_instructions(inside);
        found.sort();
        assert_eq!(found, ["0x00000001:instruction:2", "nicira:action:14"]);
        let remark = [0xff, 0xff, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x23, 0x20];
        assert_eq!(part_of_band(&remark).unwrap().to_string(), "nicira:band:0");
        assert_eq!(part_of_statistics(&[0, 0, 0x23, 0x20, 0, 0, 0, 2]).to_string(), "nicira:statistics:2");
    }

    #[test]
    fn fields_belong_to_who_defined_their_class() {
        let owner = |bytes: &[u8]| VendorName(parts_of_match(bytes).next().unwrap().vendor).to_string();
        assert_eq!(owner(&[0x00, 0x00, 0x02, 0x02, 0, 1]), "nicira");
        assert_eq!(owner(&[0x80, 0x01, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 0, 1]), "onf");
        assert_eq!(owner(&[0xff, 0xff, 0x00, 0x06, 0x4f, 0x4e, 0x46, 0x00, 0, 2]), "onf");
        assert_eq!(owner(&[0xff, 0xff, 0x00, 0x06, 0x00, 0x00, 0x00, 0x09, 0, 2]), "0x00000009");
    }

    #[test]
    fn a_vendor_reads_as_it_prints() {
        for vendor in [NICIRA, ONF, 0, 9, u32::MAX] {
            assert_eq!(VendorName(vendor).to_string().parse(), Ok(VendorName(vendor)));
        }
        for bad in ["", "0x", "9", "Nicira", "0x123456789"] {
            assert!(bad.parse::<VendorName>().is_err(), "{bad}");
        }
    }
}
