//! What the tables of the switch can do, as OFPMP_TABLE_FEATURES tells it.
//!
//! Never changes a table: setting features is refused.

use flow::Field;
use flow::field::CLASS_BASIC;
use openflow::message::{FeatureId, ReplyBody, TableFeatures, TableProperty};

use super::Switch;
use super::statistics::{in_parts, table_name};
use super::validate::{can_match, can_set};

/// Goto-table, write-metadata, write-, apply- and clear-actions, meter (1.3.5, 7.2.4).
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Output; copying times to live; those of MPLS; VLAN and MPLS tags; queue; group; IP's time-to-live; set-field (1.3.5, 7.2.5).
const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, SET_FIELD];
/// OFPAT_SET_FIELD.
const SET_FIELD: u16 = 25;

/// The actions as the bits of a group's features.
pub(super) fn action_bits() -> u32 {
    ACTIONS.iter().fold(0, |bits, kind| bits | 1 << kind)
}

impl Switch {
    /// One description for each table.
    pub(super) fn table_features(&self) -> Vec<ReplyBody> {
        let tables = (0..self.tables.len()).map(|id| self.features_of_table(id)).collect();
        /// More than a description takes: forty fields in each of six properties, and the tables that can be gone to.
        const DESCRIPTION_BYTES: usize = 2048;
        in_parts(tables, |_| DESCRIPTION_BYTES, ReplyBody::TableFeatures)
    }

    fn features_of_table(&self, id: usize) -> TableFeatures {
        let later: Vec<u8> = (id + 1..self.tables.len()).map(|id| id as u8).collect();
        // A table-miss entry can do all that others can, so its properties, which would be the same, are left out
        // (1.3.5, 7.3.5.5.2).
        let properties = vec![
            TableProperty::Instructions {
                kind: 0,
                ids: feature_ids(if later.is_empty() { &INSTRUCTIONS[1..] } else { &INSTRUCTIONS }),
            },
            TableProperty::NextTables { kind: 2, tables: later },
            TableProperty::Actions { kind: 4, ids: feature_ids(&ACTIONS) },
            TableProperty::Actions { kind: 6, ids: feature_ids(&ACTIONS) },
            TableProperty::Oxm { kind: 8, oxm_ids: headers(can_match, Field::maskable) },
            TableProperty::Oxm { kind: 10, oxm_ids: headers(can_match, |_| false) },
            TableProperty::Oxm { kind: 12, oxm_ids: headers(can_set, |_| false) },
            TableProperty::Oxm { kind: 14, oxm_ids: headers(can_set, |_| false) },
        ];
        TableFeatures {
            table_id: id as u8,
            name: table_name(id),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            config: 0,
            max_entries: self.options.max_entries,
            properties,
        }
    }
}

fn feature_ids(kinds: &[u16]) -> Vec<FeatureId> {
    kinds.iter().map(|kind| FeatureId { kind: *kind, experimenter: None }).collect()
}

/// OXM headers of the fields for which `wanted` holds: class, field, whether it takes a mask, length of the payload.
fn headers(wanted: impl Fn(Field) -> bool, masked: impl Fn(Field) -> bool) -> Vec<u32> {
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
