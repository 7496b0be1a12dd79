//! Whether the parts of a command can be parsed, and whether OpenFlow defines all of them.
//!
//! ```text
//!   match, actions, instructions, buckets, bands ──> malformed, OpenFlow's alone, or with a vendor's parts (Dialect)
//! ```
//!
//! A 1.3 switch would get the bytes unchanged. Each switch parses malformed bytes in its own way, so the effect of a
//! malformed rule is unknown. The kernel refuses it for every app. This file never decides whether a rule makes sense
//! to a switch, and never who may use a vendor's extension.

use crate::bounds::command::DELETE_STRICT;
use crate::decision::Refusal;
use crate::fanout::UsualParts;
use abi::command::{FlowMod, GroupMod, MeterMod, QUEUE_CONFIG, ROLE, StatsRequest};
use flow::canonical::{
    Dialect, RawBand, bands_raw, buckets_raw, check_actions, check_instructions, read_match_into,
};
use flow::vendor::{VendorPart, part_of_statistics, parts_of_actions, parts_of_instructions, parts_of_match};
use flow::{BadInput, Match};
use openflow::statistics::kind;

/// `ofp_flow_mod_flags`: 1.3 has five (1.3.5, 7.3.4.1).
const FLOW_MOD_FLAGS: u16 = 0x1f;

/// Checks parts that were parsed, and that they are OpenFlow's own. It parses the match into `rule` if that was not
/// done yet.
#[inline]
pub(crate) fn flow_mod(it: &FlowMod<'_>, usual: &UsualParts, rule: &mut Match) -> Result<Dialect, Refusal> {
    if it.command > DELETE_STRICT {
        return Err(no_such("flow mod", "command"));
    }
    if it.flags & !FLOW_MOD_FLAGS != 0 {
        return Err(no_such("flow mod", "flags"));
    }
    if usual.fields.is_some() && usual.output.is_some() {
        return Ok(Dialect::OpenFlow);
    }
    let of_match = match usual.fields {
        Some(_) => Dialect::OpenFlow,
        None => read_match_into(it.matching, rule).map_err(|bad| malformed("match", &bad))?,
    };
    let of_instructions =
        check_instructions(it.instructions).map_err(|bad| malformed("instructions", &bad))?;
    let is_openflow = of_match == Dialect::OpenFlow && of_instructions == Dialect::OpenFlow;
    Ok(if is_openflow { Dialect::OpenFlow } else { Dialect::Vendors })
}

/// The vendors' extensions in a well-formed flow mod.
pub(crate) fn vendors_of_flow_mod<'a>(it: &FlowMod<'a>) -> impl Iterator<Item = VendorPart> + use<'a> {
    parts_of_match(it.matching).chain(parts_of_instructions(it.instructions))
}

#[inline]
pub(crate) fn actions(bytes: &[u8]) -> Result<Dialect, Refusal> {
    check_actions(bytes).map_err(|bad| malformed("actions", &bad))
}

/// `ofp_group_mod_command` and `ofp_group_type`: the last of each (1.3.5, 7.3.4.2).
const GROUP_DELETE: u16 = 2;
const GROUP_FAST_FAILOVER: u8 = 3;

pub(crate) fn group_mod(it: &GroupMod<'_>) -> Result<Dialect, Refusal> {
    if it.command > GROUP_DELETE {
        return Err(no_such("group mod", "command"));
    }
    if it.group_type > GROUP_FAST_FAILOVER {
        return Err(no_such("group mod", "type"));
    }
    let mut all = Dialect::OpenFlow;
    for bucket in buckets_raw(it.buckets) {
        let bucket = bucket.map_err(|bad| malformed("buckets", &bad))?;
        let checked = check_actions(bucket.actions).map_err(|bad| bad.shifted(bucket.actions_at));
        if checked.map_err(|bad| malformed("buckets", &bad))? == Dialect::Vendors {
            all = Dialect::Vendors;
        }
    }
    Ok(all)
}

/// The vendors' extensions in a well-formed group mod.
pub(crate) fn vendors_of_group_mod<'a>(it: &GroupMod<'a>) -> impl Iterator<Item = VendorPart> + use<'a> {
    buckets_raw(it.buckets).map_while(Result::ok).flat_map(|bucket| parts_of_actions(bucket.actions))
}

/// `ofp_meter_mod_command` OFPMC_DELETE, the last one.
const METER_DELETE: u16 = 2;

/// Checks the bands, and passes each vendor's extension in them to `each`.
pub(crate) fn meter_mod(
    it: &MeterMod<'_>,
    mut each: impl FnMut(VendorPart) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    if it.command > METER_DELETE {
        return Err(no_such("meter mod", "command"));
    }
    for band in bands_raw(it.bands) {
        if let RawBand::Vendor(part) = band.map_err(|bad| malformed("bands", &bad))? {
            each(part)?;
        }
    }
    Ok(())
}

/// The vendor's extension that a statistics request is, if it is one.
#[inline]
pub(crate) fn statistics(it: &StatsRequest<'_>) -> Result<Option<VendorPart>, Refusal> {
    match it.multipart {
        0..=kind::PORT_DESC | QUEUE_CONFIG | ROLE => Ok(None),
        kind::EXPERIMENTER => Ok(Some(part_of_statistics(it.body))),
        _ => Err(no_such("statistics request", "type")),
    }
}

/// A number that OpenFlow 1.3 does not define.
#[cold]
fn no_such(part: &'static str, field: &'static str) -> Refusal {
    Refusal::MalformedPart { part, offset: 0, field }
}

#[cold]
fn malformed(part: &'static str, bad: &BadInput) -> Refusal {
    Refusal::MalformedPart { part, offset: bad.offset, field: bad.field }
}
