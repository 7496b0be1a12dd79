//! The features of the switch's tables, as OFPMP_TABLE_FEATURES reports and sets them (1.3.5, 7.3.5.5).
//!
//! In: a request. Out: a description of each table, or a new pipeline of the requested tables. Every table supports
//! everything that any table supports, which the specification allows. So a request sets only which tables there are,
//! their names and their sizes.

use flow::field::CLASS_BASIC;
use flow::{Field, Match, PortNo};
use openflow::message::*;
use std::time::Duration;

use super::refusal::Refusal;
use super::session::Asker;
use super::statistics::in_parts;
use super::table::{Reason, Selection};
use super::validate::{can_match, can_set};
use super::{Effects, Switch};

/// Goto-table, write-metadata, write-, apply- and clear-actions, meter (1.3.5, 7.2.4).
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// Output; copy TTL; MPLS TTL; VLAN and MPLS tags; queue; group; IP TTL; set-field (1.3.5, 7.2.5).
const ACTIONS: [u16; 15] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, SET_FIELD];
/// OFPAT_SET_FIELD.
const SET_FIELD: u16 = 25;

/// The actions as bits of the group features.
pub(super) fn action_bits() -> u32 {
    ACTIONS.iter().fold(0, |bits, kind| bits | 1 << kind)
}

/// A table of the pipeline.
#[derive(Clone, Debug)]
struct Stage {
    name: String,
    max_entries: u32,
}

/// The tables that packets pass.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    /// Indexed by table id. `None`: the table is not in the pipeline.
    stages: Vec<Option<Stage>>,
    /// The largest size of a table.
    max_entries: u32,
}

impl Pipeline {
    /// A pipeline of all tables, each with the largest size.
    pub(crate) fn new(tables: usize, max_entries: u32) -> Self {
        let stage = |id| Some(Stage { name: format!("table{id}"), max_entries });
        Pipeline { stages: (0..tables).map(stage).collect(), max_entries }
    }

    fn stage(&self, table_id: u8) -> Option<&Stage> {
        self.stages.get(usize::from(table_id))?.as_ref()
    }

    /// Whether a table is in the pipeline.
    pub(crate) fn has(&self, table_id: u8) -> bool {
        self.stage(table_id).is_some()
    }

    /// How many entries a table may hold; 0 if it is not in the pipeline.
    pub(crate) fn max_entries(&self, table_id: u8) -> u32 {
        self.stage(table_id).map_or(0, |stage| stage.max_entries)
    }

    /// A table's name; empty if it is not in the pipeline.
    pub(crate) fn name(&self, table_id: u8) -> String {
        self.stage(table_id).map_or_else(String::new, |stage| stage.name.clone())
    }

    /// The ids of its tables.
    fn ids(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|id| self.has(*id))
    }

    /// The requested pipeline, or the refusal if the tables cannot be set so.
    fn with(&self, wanted: &[TableFeatures]) -> Result<Pipeline, Refusal> {
        let mut next = Pipeline { stages: vec![None; self.stages.len()], ..*self };
        for table in wanted {
            let stage =
                next.stages.get_mut(usize::from(table.table_id)).ok_or(Refusal::TableFeaturesTable)?;
            if stage.is_some() {
                return Err(Refusal::TableFeaturesTable);
            }
            if table.config != 0 || table.max_entries > self.max_entries {
                return Err(Refusal::TableFeaturesArgument);
            }
            *stage = Some(Stage { name: table.name.clone(), max_entries: table.max_entries });
        }
        // A packet's path begins at the first table.
        if !next.has(0) {
            return Err(Refusal::TableFeaturesTable);
        }
        for table in wanted {
            next.check_properties(table)?;
        }
        Ok(next)
    }

    fn check_properties(&self, table: &TableFeatures) -> Result<(), Refusal> {
        let mut kinds: Vec<u16> = table.properties.iter().map(kind_of).collect();
        kinds.sort_unstable();
        let twice = kinds.windows(2).any(|pair| pair[0] == pair[1]);
        if twice {
            return Err(Refusal::TableFeaturesType);
        }
        let can_go_to = |next: &u8| *next > table.table_id && self.has(*next);
        let holds = |good: bool| if good { Ok(()) } else { Err(Refusal::TableFeaturesArgument) };
        table.properties.iter().try_for_each(|property| match property {
            TableProperty::Instructions { ids, .. } => {
                holds(ids.iter().all(|id| is_among(id, &INSTRUCTIONS)))
            }
            TableProperty::NextTables { tables, .. } => holds(tables.iter().all(can_go_to)),
            TableProperty::Actions { ids, .. } => holds(ids.iter().all(|id| is_among(id, &ACTIONS))),
            TableProperty::Oxm { kind, oxm_ids } => {
                let is_match = matches!(kind, 8 | 10);
                holds(oxm_ids.iter().all(|header| can_be(*header, is_match)))
            }
            TableProperty::Experimenter { .. } | TableProperty::Unknown { .. } => {
                Err(Refusal::TableFeaturesType)
            }
        })
    }
}

fn kind_of(property: &TableProperty) -> u16 {
    match property {
        TableProperty::Instructions { kind, .. }
        | TableProperty::NextTables { kind, .. }
        | TableProperty::Actions { kind, .. }
        | TableProperty::Oxm { kind, .. }
        | TableProperty::Experimenter { kind, .. }
        | TableProperty::Unknown { kind, .. } => *kind,
    }
}

fn is_among(id: &FeatureId, supported: &[u16]) -> bool {
    supported.contains(&id.kind)
}

/// Whether a field, given by its OXM header, can be matched or set here.
fn can_be(header: u32, is_match: bool) -> bool {
    let has_mask = header & 1 << 8 != 0;
    let number = u8::try_from(header >> 9 & 0x7f).ok();
    let field = number.filter(|_| header >> 16 == u32::from(CLASS_BASIC)).and_then(Field::from_number);
    field.is_some_and(|field| {
        if is_match { can_match(field) && (!has_mask || field.maskable()) } else { can_set(field) }
    })
}

impl Switch {
    /// Takes one part of a table-features request. Returns all tables after the last part.
    pub(super) fn put_together(
        &mut self,
        asker: Asker,
        part: &[TableFeatures],
        more: bool,
    ) -> Result<Option<Vec<TableFeatures>>, Refusal> {
        let parts = &mut self.sessions[asker.controller.0].parts;
        let before = parts.take().filter(|(xid, _)| *xid == asker.xid);
        let mut whole = before.map_or_else(Vec::new, |(_, tables)| tables);
        whole.extend_from_slice(part);
        // A request for more tables than can exist is not stored.
        if whole.len() > usize::from(u8::MAX) {
            return Err(Refusal::MultipartOverflow);
        }
        if more {
            *parts = Some((asker.xid, whole));
            return Ok(None);
        }
        Ok(Some(whole))
    }

    /// Sets the requested pipeline, completely or not at all. A request without tables changes nothing. The rules of
    /// tables that are no longer in the pipeline are deleted.
    pub(super) fn set_table_features(
        &mut self,
        wanted: &[TableFeatures],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if wanted.is_empty() {
            return Ok(());
        }
        self.pipeline = self.pipeline.with(wanted)?;
        let everything = Selection {
            matching: &Match::any(),
            strict_priority: None,
            cookie: 0,
            cookie_mask: 0,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
        };
        for table_id in 0..self.tables.len() {
            if self.pipeline.has(table_id as u8) {
                continue;
            }
            for entry in self.tables.change(table_id).delete(&everything) {
                self.tell_removed(table_id, &entry, Reason::Delete, now, effects);
            }
        }
        Ok(())
    }

    /// The description of each table.
    pub(super) fn table_features(&self) -> Vec<ReplyBody> {
        let tables = self.pipeline.ids().map(|id| self.features_of_table(id)).collect();
        /// An upper bound for the bytes of a description: forty fields in each of six properties, and the next
        /// tables.
        const DESCRIPTION_BYTES: usize = 2048;
        in_parts(tables, |_| DESCRIPTION_BYTES, ReplyBody::TableFeatures)
    }

    fn features_of_table(&self, id: u8) -> TableFeatures {
        let later: Vec<u8> = self.pipeline.ids().filter(|later| *later > id).collect();
        // A table-miss entry supports all that others do. Its properties would be the same and are omitted (1.3.5,
        // 7.3.5.5.2).
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
            table_id: id,
            name: self.pipeline.name(id),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            config: 0,
            max_entries: self.pipeline.max_entries(id),
            properties,
        }
    }
}

fn feature_ids(kinds: &[u16]) -> Vec<FeatureId> {
    kinds.iter().map(|kind| FeatureId { kind: *kind, experimenter: None }).collect()
}

/// OXM headers of the fields for which `wanted` is true: class, field, whether it takes a mask, length of the
/// payload.
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
