//! Table features (OFPMP_TABLE_FEATURES, 1.3.5, 7.3.5.5).
//!
//! Never checks that the properties are consistent or complete. The switch does.

use flow::BadInput;

use crate::error::{BAD_TABLE_FEATURES_LEN, Unwritable};
use crate::message::{FeatureId, TableFeatures, TableProperty};
use crate::wire::{Reader, Writer};

/// The length of a table without properties.
const TABLE_LEN: usize = 64;
/// OFP_MAX_TABLE_NAME_LEN.
const NAME_LEN: usize = 32;
/// The length of the type and length fields of a property, or of an id in one.
const HEADER_LEN: usize = 4;
/// The type of an experimenter instruction or action.
const EXPERIMENTER_ID: u16 = 0xffff;

/// The layout of a property's body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Instructions,
    NextTables,
    Actions,
    Oxm,
    Experimenter,
    Unknown,
}

/// `ofp_table_feature_prop_type`.
const fn layout(kind: u16) -> Layout {
    match kind {
        0 | 1 => Layout::Instructions,
        2 | 3 => Layout::NextTables,
        4..=7 => Layout::Actions,
        8 | 10 | 12..=15 => Layout::Oxm,
        0xfffe | 0xffff => Layout::Experimenter,
        _ => Layout::Unknown,
    }
}

/// Reads tables to the end of `body`.
pub(super) fn read(body: &mut Reader<'_>) -> Result<Vec<TableFeatures>, BadInput> {
    // This list extends to the end of the body, so the other error is never seen outside.
    let mut rest = body.clone().with_short(BAD_TABLE_FEATURES_LEN);
    body.rest();
    rest.list(read_table)
}

fn read_table(body: &mut Reader<'_>) -> Result<TableFeatures, BadInput> {
    let mut table = body.item(0, TABLE_LEN)?;
    table.skip(2)?;
    let table_id = table.u8("table_id")?;
    table.skip(5)?;
    Ok(TableFeatures {
        table_id,
        name: table.text(NAME_LEN, "name")?,
        metadata_match: table.u64("metadata_match")?,
        metadata_write: table.u64("metadata_write")?,
        config: table.u32("config")?,
        max_entries: table.u32("max_entries")?,
        properties: table.list(read_property)?,
    })
}

fn read_property(body: &mut Reader<'_>) -> Result<TableProperty, BadInput> {
    let mut property = body.item(2, HEADER_LEN)?;
    let length = property.left();
    body.skip(length.next_multiple_of(8) - length)?;
    let kind = property.u16("type")?;
    property.skip(2)?;
    Ok(match layout(kind) {
        Layout::Instructions => TableProperty::Instructions { kind, ids: property.list(read_id)? },
        Layout::NextTables => TableProperty::NextTables { kind, tables: property.rest().to_vec() },
        Layout::Actions => TableProperty::Actions { kind, ids: property.list(read_id)? },
        Layout::Oxm => TableProperty::Oxm { kind, oxm_ids: property.list(|ids| ids.u32("oxm_ids"))? },
        Layout::Experimenter => TableProperty::Experimenter {
            kind,
            experimenter: property.u32("experimenter")?,
            exp_type: property.u32("exp_type")?,
            data: property.rest().to_vec(),
        },
        Layout::Unknown => TableProperty::Unknown { kind, data: property.rest().to_vec() },
    })
}

/// The type of an instruction or action. Older switches add the padding of a complete one, which is ignored.
fn read_id(body: &mut Reader<'_>) -> Result<FeatureId, BadInput> {
    let mut id = body.item(2, HEADER_LEN)?;
    let kind = id.u16("type")?;
    id.skip(2)?;
    let experimenter = if kind == EXPERIMENTER_ID { Some(id.u32("experimenter")?) } else { None };
    Ok(FeatureId { kind, experimenter })
}

pub(super) fn write(tables: &[TableFeatures], out: &mut Writer<'_>) -> Result<(), Unwritable> {
    tables.iter().try_for_each(|table| write_table(table, out))
}

fn write_table(table: &TableFeatures, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(2).u8(table.table_id).zeros(5).text(&table.name, NAME_LEN, "name")?;
    out.u64(table.metadata_match).u64(table.metadata_write).u32(table.config).u32(table.max_entries);
    table.properties.iter().try_for_each(|property| write_property(property, out))?;
    out.fill_length(length)
}

fn write_property(property: &TableProperty, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let (kind, its_layout) = match property {
        TableProperty::Instructions { kind, .. } => (*kind, Layout::Instructions),
        TableProperty::NextTables { kind, .. } => (*kind, Layout::NextTables),
        TableProperty::Actions { kind, .. } => (*kind, Layout::Actions),
        TableProperty::Oxm { kind, .. } => (*kind, Layout::Oxm),
        TableProperty::Experimenter { kind, .. } => (*kind, Layout::Experimenter),
        TableProperty::Unknown { kind, .. } => (*kind, Layout::Unknown),
    };
    if layout(kind) != its_layout {
        return Err(Unwritable::new("type", format!("a property of type {kind} has another content")));
    }
    let length = out.length_after(2);
    out.u16(kind).zeros(2);
    match property {
        TableProperty::Instructions { ids, .. } | TableProperty::Actions { ids, .. } => {
            ids.iter().try_for_each(|id| write_id(id, out))?;
        }
        TableProperty::NextTables { tables, .. } => {
            out.bytes(tables);
        }
        TableProperty::Oxm { oxm_ids, .. } => {
            for id in oxm_ids {
                out.u32(*id);
            }
        }
        TableProperty::Experimenter { experimenter, exp_type, data, .. } => {
            out.u32(*experimenter).u32(*exp_type).bytes(data);
        }
        TableProperty::Unknown { data, .. } => {
            out.bytes(data);
        }
    }
    out.fill_length(length)?;
    out.pad_to_eight(length);
    Ok(())
}

fn write_id(id: &FeatureId, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    match id {
        FeatureId { kind: EXPERIMENTER_ID, experimenter: Some(experimenter) } => {
            out.u16(EXPERIMENTER_ID).u16(8).u32(*experimenter);
        }
        FeatureId { kind, experimenter: None } if *kind != EXPERIMENTER_ID => {
            out.u16(*kind).u16(4);
        }
        _ => return Err(Unwritable::new("experimenter", "it goes with type 0xffff, and with no other")),
    }
    Ok(())
}
