//! Whether the matches, actions and instructions in a command can be read at all.
//!
//! A 1.3 switch would get them as they are. Each switch reads damage in its own way, so nobody could say what a damaged rule would do: it
//! is refused here, whoever sends it. Never says whether a rule makes sense to a switch.

use crate::bounds::command::DELETE_STRICT;
use crate::decision::Refusal;
use abi::command::{FlowMod, GroupMod};
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

#[cold]
fn malformed(part: &'static str, bad: &BadInput) -> Refusal {
    Refusal::MalformedPart { part, offset: bad.offset, field: bad.field }
}
