//! Meters (1.3.5, 7.3.4.4): the meter mod and its bands, the configuration (7.3.5.13) and the features (7.3.5.14).

use flow::BadInput;

use crate::error::{BAD_METER_BAND, BAD_METER_COMMAND, Unwritable, bad};
use crate::message::{MeterBand, MeterBandKind, MeterConfig, MeterFeatures, MeterMod};
use crate::wire::{Reader, Writer};

/// OFPMC_DELETE, the highest command.
const LAST_COMMAND: u16 = 2;
/// The length of the fields at the start of every band: type, length, rate, burst size.
const BAND_HEADER_LEN: usize = 12;
/// The length of a configuration without bands.
const CONFIG_LEN: usize = 8;

/// `ofp_meter_band_type`.
mod band {
    pub const DROP: u16 = 1;
    pub const DSCP_REMARK: u16 = 2;
    pub const EXPERIMENTER: u16 = 0xffff;
}

pub(super) fn read_meter_mod(mut body: Reader<'_>) -> Result<MeterMod, BadInput> {
    let start = body.offset();
    let command = body.u16("command")?;
    if command > LAST_COMMAND {
        return Err(bad(start, "command", BAD_METER_COMMAND, format!("there is no command {command}")));
    }
    Ok(MeterMod {
        command,
        flags: body.u16("flags")?,
        meter_id: body.u32("meter_id")?,
        bands: read_bands(&mut body)?,
    })
}

pub(super) fn write_meter_mod(meter_mod: &MeterMod, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if meter_mod.command > LAST_COMMAND {
        return Err(Unwritable::new("command", format!("there is no command {}", meter_mod.command)));
    }
    out.u16(meter_mod.command).u16(meter_mod.flags).u32(meter_mod.meter_id);
    write_bands(&meter_mod.bands, out)
}

/// Reads bands to the end of `body`.
pub(super) fn read_bands(body: &mut Reader<'_>) -> Result<Vec<MeterBand>, BadInput> {
    body.list(read_band)
}

fn read_band(body: &mut Reader<'_>) -> Result<MeterBand, BadInput> {
    let start = body.offset();
    let mut band = body.item(2, BAND_HEADER_LEN)?;
    let kind = band.u16("type")?;
    band.skip(2)?;
    let rate = band.u32("rate")?;
    let burst_size = band.u32("burst_size")?;
    let kind = match kind {
        band::DROP => band.skip(4).map(|()| MeterBandKind::Drop)?,
        band::DSCP_REMARK => {
            let prec_level = band.u8("prec_level")?;
            band.skip(3)?;
            MeterBandKind::DscpRemark(prec_level)
        }
        band::EXPERIMENTER => MeterBandKind::Experimenter {
            experimenter: band.u32("experimenter")?,
            data: band.rest().to_vec(),
        },
        unknown => {
            return Err(bad(start, "type", BAD_METER_BAND, format!("there is no band of type {unknown}")));
        }
    };
    band.end()?;
    Ok(MeterBand { rate, burst_size, kind })
}

pub(super) fn write_bands(bands: &[MeterBand], out: &mut Writer<'_>) -> Result<(), Unwritable> {
    bands.iter().try_for_each(|band| write_band(band, out))
}

fn write_band(band: &MeterBand, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(2);
    let kind = match band.kind {
        MeterBandKind::Drop => band::DROP,
        MeterBandKind::DscpRemark(_) => band::DSCP_REMARK,
        MeterBandKind::Experimenter { .. } => band::EXPERIMENTER,
    };
    out.u16(kind).zeros(2).u32(band.rate).u32(band.burst_size);
    match &band.kind {
        MeterBandKind::Drop => out.zeros(4),
        MeterBandKind::DscpRemark(prec_level) => out.u8(*prec_level).zeros(3),
        MeterBandKind::Experimenter { experimenter, data } => out.u32(*experimenter).bytes(data),
    };
    out.fill_length(length)
}

pub(super) fn read_config(body: &mut Reader<'_>) -> Result<MeterConfig, BadInput> {
    let mut config = body.item(0, CONFIG_LEN)?;
    config.skip(2)?;
    Ok(MeterConfig {
        flags: config.u16("flags")?,
        meter_id: config.u32("meter_id")?,
        bands: read_bands(&mut config)?,
    })
}

pub(super) fn write_config(config: &MeterConfig, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(2).u16(config.flags).u32(config.meter_id);
    write_bands(&config.bands, out)?;
    out.fill_length(length)
}

pub(super) fn read_features(body: &mut Reader<'_>) -> Result<MeterFeatures, BadInput> {
    let features = MeterFeatures {
        max_meter: body.u32("max_meter")?,
        band_types: body.u32("band_types")?,
        capabilities: body.u32("capabilities")?,
        max_bands: body.u8("max_bands")?,
        max_color: body.u8("max_color")?,
    };
    body.skip(2)?;
    Ok(features)
}

pub(super) fn write_features(features: &MeterFeatures, out: &mut Writer<'_>) {
    out.u32(features.max_meter).u32(features.band_types).u32(features.capabilities);
    out.u8(features.max_bands).u8(features.max_color).zeros(2);
}
