//! The bytes of fields, actions and buckets for which the SDK has no functions.
//!
//! It never checks them: most are made to be refused.

use burnet_sdk::{Commands, DatapathId, StatsRequest, What};

/// Nicira's experimenter number (`NX_VENDOR_ID`).
pub(super) const NICIRA: u32 = 0x2320;
/// Open vSwitch's class for the fields of OpenFlow 1.0 (`OFPXMC_NXM_0`), and for its own registers (`OFPXMC_NXM_1`).
pub(super) const NXM_0: u16 = 0;
pub(super) const NXM_1: u16 = 1;

/// A field of a match, without a mask.
pub(super) fn field(class: u16, number: u8, value: &[u8]) -> Vec<u8> {
    [&header(class, number, false, value.len()).to_be_bytes()[..], value].concat()
}

/// A field of a match, with a mask.
pub(super) fn masked(class: u16, number: u8, value: &[u8], mask: &[u8]) -> Vec<u8> {
    [&header(class, number, true, value.len() + mask.len()).to_be_bytes()[..], value, mask].concat()
}

/// An OXM header (1.3.5, 7.2.3.2).
pub(super) const fn header(class: u16, number: u8, has_mask: bool, length: usize) -> u32 {
    (class as u32) << 16 | (number as u32) << 9 | (has_mask as u32) << 8 | length as u32
}

/// An action of Nicira's, padded to a multiple of eight bytes.
pub(super) fn nicira(subtype: u16, body: &[u8]) -> Vec<u8> {
    experimenter(NICIRA, &[&subtype.to_be_bytes()[..], body].concat())
}

/// An experimenter's action or instruction: both begin the same way (1.3.5, 7.2.4 and 7.2.5).
pub(super) fn experimenter(vendor: u32, body: &[u8]) -> Vec<u8> {
    let length = (8 + body.len()).next_multiple_of(8);
    let mut bytes = [&[0xff, 0xff][..], &(length as u16).to_be_bytes(), &vendor.to_be_bytes(), body].concat();
    bytes.resize(length, 0);
    bytes
}

/// Requests statistics with a receipt, because only a receipt reports a refusal.
pub(super) fn ask(datapath: DatapathId, multipart: u16, body: &[u8], out: &mut Commands) -> u32 {
    out.command(datapath, What::StatsRequest(StatsRequest { multipart, body }));
    1
}

/// A request for all flow entries of all tables (`ofp_flow_stats_request`, 1.3.5, 7.3.5.2).
pub(super) fn all_flows() -> Vec<u8> {
    [&[0xff, 0, 0, 0][..], &[0xff; 8], &[0; 20], &[0, 1, 0, 4, 0, 0, 0, 0]].concat()
}

/// OFPAT_OUTPUT.
pub(super) fn output(port: u32) -> Vec<u8> {
    [&[0, 0, 0, 16][..], &port.to_be_bytes(), &[0; 8]].concat()
}

/// OFPAT_GROUP.
pub(super) fn group(group_id: u32) -> Vec<u8> {
    [&[0, 22, 0, 8][..], &group_id.to_be_bytes()].concat()
}

/// OFPAT_SET_FIELD with one field.
pub(super) fn set_field(field: &[u8]) -> Vec<u8> {
    let length = (4 + field.len()).next_multiple_of(8);
    let mut bytes = [&[0, 25][..], &(length as u16).to_be_bytes(), field].concat();
    bytes.resize(length, 0);
    bytes
}

/// OFPIT_APPLY_ACTIONS.
pub(super) fn apply(actions: &[u8]) -> Vec<u8> {
    let length = (8 + actions.len()) as u16;
    [&[0, 4][..], &length.to_be_bytes(), &[0; 4], actions].concat()
}

/// A bucket without a weight that watches nothing.
pub(super) fn bucket(actions: &[u8]) -> Vec<u8> {
    let length = (16 + actions.len()) as u16;
    [&length.to_be_bytes()[..], &[0, 0], &[0xff; 8], &[0; 4], actions].concat()
}
