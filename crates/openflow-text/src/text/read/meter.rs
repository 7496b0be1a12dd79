//! Parses meter mods and meters in ovs-ofctl's meter syntax.

use flow::text::BadText;

use super::super::meter::{FLAGS, RESERVED};
use super::words::{Token, fault, first, split};
use openflow::message::*;

/// `add meter=1,kbps,band=type=drop,rate=1000`; without a command it is an add.
pub(super) fn typed(text: &str) -> Result<MeterMod, BadText> {
    with_command(text, [(0, "add"), (1, "modify"), (2, "delete")], Some(0))
}

/// `ADD meter=1 kbps bands=` and a line for each band.
pub(super) fn printed(text: &str) -> Result<MeterMod, BadText> {
    with_command(text, [(0, "ADD"), (1, "MOD"), (2, "DEL")], None)
}

fn with_command(text: &str, commands: [(u16, &str); 3], usual: Option<u16>) -> Result<MeterMod, BadText> {
    let (word, rest) = first(text);
    let (command, rest) = match (commands.iter().find(|(_, name)| *name == word), usual) {
        (Some((command, _)), _) => (*command, rest),
        (None, Some(usual)) => (usual, text),
        (None, None) => {
            return Err(fault(0, word, format!("expected {}", commands.map(|(_, name)| name).join(", "))));
        }
    };
    let MeterConfig { flags, meter_id, bands } =
        meter(rest).map_err(|bad| bad.shifted(text.len() - rest.len()))?;
    Ok(MeterMod { command, flags, meter_id, bands })
}

/// `meter=1 kbps bands=type=drop rate=1000`
pub(super) fn meter(text: &str) -> Result<MeterConfig, BadText> {
    let mut meter_id = None;
    let mut flags = 0;
    let mut bands: Vec<MeterBand> = Vec::new();
    for word in split(text) {
        match word.key {
            "meter" => {
                meter_id = Some(word.named(&RESERVED, "a meter's number, 'all', 'controller' or 'slowpath'")?)
            }
            "flags" => flags |= word.number::<u16>("the bits of the flags")?,
            "band" | "bands" => {
                if let Some(first) = word.value.filter(|value| !value.is_empty()) {
                    let at = word.offset + word.key.len() + 1;
                    let first = split(first).next().map(|first| Token { offset: at, ..first });
                    first.map_or(Ok(()), |first| band(&first, &mut bands))?;
                }
            }
            key => match FLAGS.iter().find(|(_, name)| *name == key) {
                Some((flag, _)) => flags |= u16::try_from(*flag).unwrap_or(0),
                None => band(&word, &mut bands)?,
            },
        }
    }
    let meter_id = meter_id.ok_or_else(|| fault(0, text, "expected meter=…"))?;
    Ok(MeterConfig { flags, meter_id, bands })
}

/// A word of a band; `type` begins the next one.
fn band(word: &Token<'_>, bands: &mut Vec<MeterBand>) -> Result<(), BadText> {
    if word.key == "type" {
        let kind = match word.needed("drop or dscp_remark")? {
            "drop" => MeterBandKind::Drop,
            "dscp_remark" => MeterBandKind::DscpRemark(0),
            _ => return Err(word.fault("expected drop or dscp_remark")),
        };
        bands.push(MeterBand { rate: 0, burst_size: 0, kind });
        return Ok(());
    }
    let known = "meter, kbps, pktps, burst, stats, band; in a band type, rate, burst_size, prec_level";
    let Some(band) = bands.last_mut() else { return Err(word.unknown(known)) };
    match (word.key, &mut band.kind) {
        ("rate", _) => band.rate = word.number("a rate")?,
        ("burst_size", _) => band.burst_size = word.number("a burst's size")?,
        ("prec_level", MeterBandKind::DscpRemark(level)) => *level = word.number("a level from 0 to 255")?,
        ("prec_level", _) => return Err(word.fault("only a dscp_remark band has a level")),
        _ => return Err(word.unknown(known)),
    }
    Ok(())
}
