//! Prints meters.

use std::fmt::{self, Write};

use super::{bit_names, duration};
use openflow::message::*;

/// The highest number that an ordinary meter can have (OFPM_MAX).
const METER_MAX: u32 = 0xffff_0000;

/// Virtual meters and their names.
pub(super) const RESERVED: [(u32, &str); 3] =
    [(0xffff_fffd, "slowpath"), (0xffff_fffe, "controller"), (METER_ALL, "all")];

/// The bits of a meter's flags and their names.
pub(super) const FLAGS: [(u32, &str); 4] = [(1, "kbps"), (2, "pktps"), (4, "burst"), (8, "stats")];

/// OFPMF_BURST: the burst size counts.
const FLAG_BURST: u16 = 4;

pub(super) fn id(out: &mut String, meter_id: u32, separator: char) -> fmt::Result {
    write!(out, "meter{separator}")?;
    match RESERVED.iter().find(|(number, _)| *number == meter_id) {
        Some((_, name)) => out.write_str(name),
        None if meter_id > METER_MAX => out.write_str("unknown"),
        None => write!(out, "{meter_id}"),
    }
}

pub(super) fn meter_mod(out: &mut String, meter_mod: &MeterMod) -> fmt::Result {
    match meter_mod.command {
        0 => out.push_str(" ADD "),
        1 => out.push_str(" MOD "),
        // A delete has no flags and bands.
        2 => {
            out.push_str(" DEL ");
            return config(out, 0, meter_mod.meter_id, &[]);
        }
        number => write!(out, " cmd:{number} ")?,
    }
    config(out, meter_mod.flags, meter_mod.meter_id, &meter_mod.bands)
}

pub(super) fn config(out: &mut String, flags: u16, meter_id: u32, bands: &[MeterBand]) -> fmt::Result {
    id(out, meter_id, '=')?;
    out.push(' ');
    let known = FLAGS.iter().filter(|(bit, _)| u32::from(flags) & bit != 0);
    known.into_iter().try_for_each(|(_, name)| write!(out, "{name} "))?;
    let unknown = flags & !0xf;
    if unknown != 0 {
        write!(out, "flags:0x{unknown:x} ")?;
    }
    out.push_str("bands=");
    bands.iter().try_for_each(|there| band(out, flags, there))?;
    out.push('\n');
    Ok(())
}

fn band(out: &mut String, flags: u16, band: &MeterBand) -> fmt::Result {
    out.push_str(match band.kind {
        MeterBandKind::Drop => "\ntype=drop",
        MeterBandKind::DscpRemark(_) => "\ntype=dscp_remark",
        MeterBandKind::Experimenter { .. } => "\ntype=65535",
    });
    write!(out, " rate={}", band.rate)?;
    if flags & FLAG_BURST != 0 {
        write!(out, " burst_size={}", band.burst_size)?;
    }
    match &band.kind {
        MeterBandKind::Drop => Ok(()),
        MeterBandKind::DscpRemark(level) => write!(out, " prec_level={level}"),
        MeterBandKind::Experimenter { experimenter, data } => {
            write!(out, " experimenter=0x{experimenter:x} data={}", openflow::hex::to_text(data))
        }
    }
}

pub(super) fn stats(out: &mut String, meter: &MeterStats) -> fmt::Result {
    out.push('\n');
    id(out, meter.meter_id, ':')?;
    write!(out, " flow_count:{} ", meter.flow_count)?;
    write!(out, "packet_in_count:{} byte_in_count:{} ", meter.packet_in_count, meter.byte_in_count)?;
    out.push_str("duration:");
    duration(out, meter.duration_s, meter.duration_ns)?;
    out.push_str(" bands:\n");
    meter.bands.iter().enumerate().try_for_each(|(index, (packets, bytes))| {
        writeln!(out, "{index}: packet_count:{packets} byte_count:{bytes}")
    })
}

pub(super) fn features(out: &mut String, features: &MeterFeatures) -> fmt::Result {
    write!(out, "\nmax_meter:{} max_bands:{}", features.max_meter, features.max_bands)?;
    write!(out, " max_color:{}\nband_types: ", features.max_color)?;
    bit_names(out, features.band_types, &[(1 << 1, "drop"), (1 << 2, "dscp_remark")])?;
    out.push_str("\ncapabilities: ");
    bit_names(out, features.capabilities, &FLAGS)?;
    out.push('\n');
    Ok(())
}
