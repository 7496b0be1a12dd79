//! The features of the one table of a virtual switch (1.3.5, 7.3.5.5).
//!
//! In: its size. Out: its description. It never changes.

use flow::Field;
use flow::canonical::field_header;
use openflow::message::{FeatureId, TableFeatures, TableProperty};

/// Write-, apply- and clear-actions, meter (1.3.5, 7.2.4).
const INSTRUCTIONS: [u16; 4] = [3, 4, 5, 6];
/// Output; copy TTL; MPLS TTL; VLAN and MPLS tags; queue; group; IP TTL; set-field (1.3.5, 7.2.5).
const ACTIONS: [u16; 14] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, GROUP, 23, 24, 25];
/// OFPAT_GROUP.
const GROUP: u16 = 22;

/// The actions of a bucket as bits. A group leads to no other.
pub(crate) fn bucket_actions() -> u32 {
    ACTIONS.iter().filter(|kind| **kind != GROUP).fold(0, |bits, kind| bits | 1 << kind)
}

/// The description of the table.
pub(crate) fn describe(max_entries: u32) -> TableFeatures {
    let ids =
        |kinds: &[u16]| kinds.iter().map(|kind| FeatureId { kind: *kind, experimenter: None }).collect();
    let headers = |fields: &dyn Fn(Field) -> bool, is_masked: bool| -> Vec<u32> {
        Field::all()
            .filter(|field| fields(*field))
            .map(|field| field_header(field, is_masked && field.maskable()))
            .collect()
    };
    let can_match = |field: Field| !matches!(field, Field::InPhyPort | Field::Metadata | Field::TunnelId);
    let can_set = |field: Field| {
        let is_fixed = matches!(field, Field::InPort | Field::EthType | Field::PbbIsid | Field::Ipv6Exthdr);
        can_match(field) && !is_fixed
    };
    TableFeatures {
        table_id: 0,
        name: "slice".to_owned(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries,
        properties: vec![
            TableProperty::Instructions { kind: 0, ids: ids(&INSTRUCTIONS) },
            TableProperty::NextTables { kind: 2, tables: Vec::new() },
            TableProperty::Actions { kind: 4, ids: ids(&ACTIONS) },
            TableProperty::Actions { kind: 6, ids: ids(&ACTIONS) },
            TableProperty::Oxm { kind: 8, oxm_ids: headers(&can_match, true) },
            TableProperty::Oxm { kind: 10, oxm_ids: headers(&can_match, false) },
            TableProperty::Oxm { kind: 12, oxm_ids: headers(&can_set, false) },
            TableProperty::Oxm { kind: 14, oxm_ids: headers(&can_set, false) },
        ],
    }
}
