//! The features of a switch of 1.0 (5.3.1), including its ports.

use flow::{BadInput, DatapathId};

use super::port;
use crate::error::Unwritable;
use crate::message::FeaturesReply;
use crate::wire::{Reader, Writer};

pub(super) fn read_features(mut body: Reader<'_>) -> Result<FeaturesReply, BadInput> {
    let datapath_id = DatapathId(body.u64("datapath_id")?);
    let n_buffers = body.u32("n_buffers")?;
    let n_tables = body.u8("n_tables")?;
    body.skip(3)?;
    Ok(FeaturesReply {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id: 0,
        capabilities: body.u32("capabilities")?,
        actions: body.u32("actions")?,
        ports: body.list(port::read_port)?,
    })
}

pub(super) fn write_features(features: &FeaturesReply, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if features.auxiliary_id != 0 {
        return Err(Unwritable::new("auxiliary_id", "OpenFlow 1.0 has only the main connection"));
    }
    out.u64(features.datapath_id.0).u32(features.n_buffers).u8(features.n_tables).zeros(3);
    out.u32(features.capabilities).u32(features.actions);
    features.ports.iter().try_for_each(|each| port::write_port(each, out))
}
