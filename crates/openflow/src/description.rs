//! The body of OFPMP_DESC (1.3.5, 7.3.5.1; 1.0, 5.3.5), with the same layout in both versions.

use flow::BadInput;

use crate::error::Unwritable;
use crate::message::SwitchDesc;
use crate::wire::{Reader, Writer};

/// DESC_STR_LEN.
const TEXT_LEN: usize = 256;
/// SERIAL_NUM_LEN.
const SERIAL_LEN: usize = 32;

pub(crate) fn read(body: &mut Reader<'_>) -> Result<SwitchDesc, BadInput> {
    if body.left() == 0 {
        // Some switches send an empty description.
        return Ok(SwitchDesc::default());
    }
    Ok(SwitchDesc {
        mfr_desc: body.text(TEXT_LEN, "mfr_desc")?,
        hw_desc: body.text(TEXT_LEN, "hw_desc")?,
        sw_desc: body.text(TEXT_LEN, "sw_desc")?,
        serial_num: body.text(SERIAL_LEN, "serial_num")?,
        dp_desc: body.text(TEXT_LEN, "dp_desc")?,
    })
}

pub(crate) fn write(desc: &SwitchDesc, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.text(&desc.mfr_desc, TEXT_LEN, "mfr_desc")?;
    out.text(&desc.hw_desc, TEXT_LEN, "hw_desc")?;
    out.text(&desc.sw_desc, TEXT_LEN, "sw_desc")?;
    out.text(&desc.serial_num, SERIAL_LEN, "serial_num")?;
    out.text(&desc.dp_desc, TEXT_LEN, "dp_desc")?;
    Ok(())
}
