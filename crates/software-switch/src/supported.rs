//! What every table of the switch supports: instructions, actions, and the fields to match and to set.
//!
//! In: a field, or the id of a feature. Out: whether it is supported, and the lists of all that are. It knows no switch.

use flow::Field;
use flow::field::CLASS_BASIC;
use openflow::message::FeatureId;

/// Goto-table, write-metadata, write-, apply- and clear-actions, meter (1.3.5, 7.2.4).
pub(super) const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Output; copy TTL; MPLS TTL; VLAN and MPLS tags; queue; group; IP TTL; set-field (1.3.5, 7.2.5).
pub(super) const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, SET_FIELD];
/// OFPAT_SET_FIELD.
const SET_FIELD: u16 = 25;

/// The actions as bits of the group features.
pub(super) fn action_bits() -> u32 {
    ACTIONS.iter().fold(0, |bits, kind| bits | 1 << kind)
}

/// The fields that set-field supports.
pub(crate) fn can_set(field: Field) -> bool {
    use Field::*;
    !matches!(field, InPort | InPhyPort | Metadata | PbbIsid | TunnelId | Ipv6Exthdr)
}

/// The fields that a match supports. There are no physical ports below the logical ones, so IN_PHY_PORT is not one of
/// them.
pub(super) fn can_match(field: Field) -> bool {
    field != Field::InPhyPort
}

/// Whether a feature is one of `supported`.
pub(super) fn is_among(id: &FeatureId, supported: &[u16]) -> bool {
    supported.contains(&id.kind)
}

/// Whether a field, given by its OXM header, can be matched or set here.
pub(super) fn can_be(header: u32, is_match: bool) -> bool {
    let has_mask = header & 1 << 8 != 0;
    let number = u8::try_from(header >> 9 & 0x7f).ok();
    let field = number.filter(|_| header >> 16 == u32::from(CLASS_BASIC)).and_then(Field::from_number);
    field.is_some_and(|field| {
        if is_match { can_match(field) && (!has_mask || field.maskable()) } else { can_set(field) }
    })
}

/// The ids of features.
pub(super) fn feature_ids(kinds: &[u16]) -> Vec<FeatureId> {
    kinds.iter().map(|kind| FeatureId { kind: *kind, experimenter: None }).collect()
}

/// OXM headers of the fields for which `wanted` is true: class, field, whether it takes a mask, length of the
/// payload.
pub(super) fn headers(wanted: impl Fn(Field) -> bool, masked: impl Fn(Field) -> bool) -> Vec<u32> {
    let header = |field: Field| {
        let has_mask = masked(field);
        let length = field.bytes() * if has_mask { 2 } else { 1 };
        u32::from(CLASS_BASIC) << 16
            | u32::from(field.number()) << 9
            | u32::from(has_mask) << 8
            | length as u32
    };
    Field::all().filter(|field| wanted(*field)).map(header).collect()
}
