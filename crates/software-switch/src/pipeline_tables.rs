//! Which tables are in the pipeline, with their names and sizes.
//!
//! In: the tables that a controller requests. Out: the new pipeline, or the refusal. It holds no rules.

use openflow::message::{TableFeatures, TableProperty};

use super::refusal::Refusal;
use super::supported::{ACTIONS, INSTRUCTIONS, can_be, is_among};

/// A table of the pipeline.
#[derive(Clone, Debug)]
struct Stage {
    name: String,
    max_entries: u32,
}

/// The tables that packets pass.
#[derive(Clone, Debug)]
pub(crate) struct PipelineTables {
    /// Indexed by table id. `None`: the table is not in the pipeline.
    stages: Vec<Option<Stage>>,
    /// The largest size of a table.
    max_entries: u32,
}

impl PipelineTables {
    /// A pipeline of all tables, each with the largest size.
    pub(crate) fn new(tables: usize, max_entries: u32) -> Self {
        let stage = |id| Some(Stage { name: format!("table{id}"), max_entries });
        PipelineTables { stages: (0..tables).map(stage).collect(), max_entries }
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

    /// Whether a controller has made a table smaller than it could be.
    pub(crate) fn is_cut(&self, table_id: u8) -> bool {
        self.max_entries(table_id) < self.max_entries
    }

    /// A table's name; empty if it is not in the pipeline.
    pub(crate) fn name(&self, table_id: u8) -> String {
        self.stage(table_id).map_or_else(String::new, |stage| stage.name.clone())
    }

    /// The ids of its tables.
    pub(super) fn ids(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|id| self.has(*id))
    }

    /// The requested pipeline, or the refusal if the tables cannot be set so.
    pub(super) fn with(&self, wanted: &[TableFeatures]) -> Result<PipelineTables, Refusal> {
        let mut next = PipelineTables { stages: vec![None; self.stages.len()], ..*self };
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
