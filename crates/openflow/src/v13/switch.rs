//! The features of a switch of 1.3 (1.3.5, 7.3.1), and the table mod (7.3.3).

use flow::{BadInput, DatapathId};

use crate::error::Unwritable;
use crate::message::{FeaturesReply, TableMod};
use crate::wire::{Reader, Writer};

pub(super) fn read_features(mut body: Reader<'_>) -> Result<FeaturesReply, BadInput> {
    let datapath_id = DatapathId(body.u64("datapath_id")?);
    let n_buffers = body.u32("n_buffers")?;
    let n_tables = body.u8("n_tables")?;
    let auxiliary_id = body.u8("auxiliary_id")?;
    body.skip(2)?;
    let capabilities = body.u32("capabilities")?;
    let actions = body.u32("reserved")?;
    body.end()?;
    Ok(FeaturesReply {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id,
        capabilities,
        actions,
        ports: Vec::new(),
    })
}

pub(super) fn write_features(features: &FeaturesReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if !features.ports.is_empty() {
        return Err(Unwritable::new("ports", "OpenFlow 1.3 says them in OFPMP_PORT_DESC"));
    }
    out.u64(features.datapath_id.0).u32(features.n_buffers).u8(features.n_tables).u8(features.auxiliary_id);
    out.zeros(2).u32(features.capabilities).u32(features.actions);
    Ok(())
}

pub(super) fn read_table_mod(mut body: Reader<'_>) -> Result<TableMod, BadInput> {
    let table_id = body.u8("table_id")?;
    body.skip(3)?;
    let config = body.u32("config")?;
    body.end()?;
    Ok(TableMod { table_id, config })
}

pub(super) fn write_table_mod(table_mod: &TableMod, out: &mut Writer<'_>) {
    out.u8(table_mod.table_id).zeros(3).u32(table_mod.config);
}
