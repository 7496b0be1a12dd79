//! Whether the matches, actions and instructions in a command can be read at all.
//!
//! A 1.3 switch would get them as they are. Each switch reads damage in its own way, so nobody could say what a damaged rule would do: it
//! is refused here, whoever sends it. Never says whether a rule makes sense to a switch.

use crate::bounds::command::DELETE_STRICT;
use crate::decision::Refusal;
use abi::command::{FlowMod, GroupMod, MeterMod};
use flow::BadInput;
use flow::canonical::{buckets_raw, check_actions, check_instructions, check_match};

#[inline]
pub(crate) fn flow_mod(it: &FlowMod<'_>) -> Result<(), Refusal> {
    if it.command > DELETE_STRICT {
        return Err(Refusal::MalformedPart { part: "flow mod", offset: 0, field: "command" });
    }
    check_match(it.matching).map_err(|bad| malformed("match", &bad))?;
    check_instructions(it.instructions).map_err(|bad| malformed("instructions", &bad))
}

#[inline]
pub(crate) fn actions(bytes: &[u8]) -> Result<(), Refusal> {
    check_actions(bytes).map_err(|bad| malformed("actions", &bad))
}

pub(crate) fn group_mod(it: &GroupMod<'_>) -> Result<(), Refusal> {
    for bucket in buckets_raw(it.buckets) {
        let bucket = bucket.map_err(|bad| malformed("buckets", &bad))?;
        let checked = check_actions(bucket.actions).map_err(|bad| bad.shifted(bucket.actions_at));
        checked.map_err(|bad| malformed("buckets", &bad))?;
    }
    Ok(())
}

/// `ofp_meter_mod_command` OFPMC_DELETE, the last one.
const METER_DELETE: u16 = 2;

/// Each kind of band is as long, and only an experimenter's is longer (1.3.5, 7.3.4.3).
const BAND_LEN_MIN: usize = 16;

pub(crate) fn meter_mod(it: &MeterMod<'_>) -> Result<(), Refusal> {
    let bad = |offset, field| Refusal::MalformedPart { part: "bands", offset, field };
    if it.command > METER_DELETE {
        return Err(Refusal::MalformedPart { part: "meter mod", offset: 0, field: "command" });
    }
    let (mut rest, mut offset) = (it.bands, 0);
    while !rest.is_empty() {
        let stated = rest.get(2..4).and_then(|bytes| bytes.first_chunk());
        let length = usize::from(u16::from_be_bytes(*stated.ok_or(bad(offset, "len"))?));
        if length < BAND_LEN_MIN || length % 8 != 0 {
            return Err(bad(offset + 2, "len"));
        }
        rest = rest.get(length..).ok_or(bad(offset + 2, "len"))?;
        offset += length;
    }
    Ok(())
}

#[cold]
fn malformed(part: &'static str, bad: &BadInput) -> Refusal {
    Refusal::MalformedPart { part, offset: bad.offset, field: bad.field }
}
