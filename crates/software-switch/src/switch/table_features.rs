//! The features of the switch's tables, as OFPMP_TABLE_FEATURES reports and sets them (1.3.5, 7.3.5.5).
//!
//! In: a request. Out: a description of each table, or a new pipeline of the requested tables. Every table supports
//! everything that any table supports, which the specification allows. So a request sets only which tables there are,
//! their names and their sizes.

use flow::{Field, Match, PortNo};
use openflow::message::*;
use std::time::Duration;

use super::{Effects, Switch};
use crate::refusal::Refusal;
use crate::reply_parts::in_parts;
use crate::session::Asker;
use crate::supported::{ACTIONS, INSTRUCTIONS, can_match, can_set, feature_ids, headers};
use crate::table::{Reason, Selection};

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
