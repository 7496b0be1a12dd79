//! Flow mod and flow removed of 1.0 (5.3.3 and 5.4.3).
//!
//! A rule of 1.0 has actions instead of instructions. They are read as one apply-actions, and only that can be written.

use flow::canonical::instructions_raw;
use flow::{BadInput, Instruction, Match, PortNo};

use super::matching::{self, WireMatch};
use super::{action, port_number, read_port_number};
use crate::error::{BAD_FLOW_COMMAND, BAD_FLOW_FLAGS, Unwritable, bad};
use crate::message::{
    FLOW_ADD, FLOW_DELETE, FLOW_DELETE_STRICT, FlowMod, FlowModFields, FlowRemoved, GROUP_ANY, TABLE_ALL,
};
use crate::wire::{Reader, Writer};

/// Every flag of `ofp_flow_mod_flags`.
const ALL_FLAGS: u16 = 7;

#[inline]
const fn is_delete(command: u8) -> bool {
    matches!(command, FLOW_DELETE | FLOW_DELETE_STRICT)
}

/// Reads the fields between the match and the actions.
pub(crate) fn read_flow_mod_fields(body: &mut Reader<'_>) -> Result<FlowModFields, BadInput> {
    let start = body.offset();
    let cookie = body.u64("cookie")?;
    let number = body.u16("command")?;
    let Some(command) = u8::try_from(number).ok().filter(|command| *command <= FLOW_DELETE_STRICT) else {
        return Err(bad(start + 8, "command", BAD_FLOW_COMMAND, format!("no command {number}")));
    };
    let fields = FlowModFields {
        cookie,
        cookie_mask: 0,
        table_id: if is_delete(command) { TABLE_ALL } else { 0 },
        command,
        idle_timeout_s: body.u16("idle_timeout")?,
        hard_timeout_s: body.u16("hard_timeout")?,
        priority: body.u16("priority")?,
        buffer_id: body.u32("buffer_id")?,
        out_port: read_port_number(body, "out_port")?,
        out_group: GROUP_ANY,
        flags: body.u16("flags")?,
    };
    if fields.flags & !ALL_FLAGS != 0 {
        let message = format!("flags 0x{:04x}; 1.0 has 0x{ALL_FLAGS:04x}", fields.flags);
        return Err(bad(start + 22, "flags", BAD_FLOW_FLAGS, message));
    }
    Ok(fields)
}

pub(super) fn read_flow_mod(mut body: Reader<'_>) -> Result<FlowMod, BadInput> {
    let matching = WireMatch::read(&mut body)?;
    let mut fields = read_flow_mod_fields(&mut body)?;
    fields.priority = matching.rank(fields.priority);
    Ok(fields.with(matching.to_match(), read_instructions(body)?))
}

/// Reads actions to the end of `body` as instructions of 1.3: one apply-actions, or none if there are no actions.
pub(super) fn read_instructions(body: Reader<'_>) -> Result<Vec<Instruction>, BadInput> {
    let actions = action::read(body)?;
    Ok(if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] })
}

/// Writes the fields between the match and the actions. The flags are those of 1.0.
#[inline]
pub(crate) fn write_flow_mod_fields(fields: &FlowModFields, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let delete = is_delete(fields.command);
    if fields.command > FLOW_DELETE_STRICT {
        return Err(Unwritable::new("command", format!("there is no command {}", fields.command)));
    }
    if fields.table_id != 0 && !(delete && fields.table_id == TABLE_ALL) {
        let why = format!("OpenFlow 1.0 has one table, 0, and cannot name table {}", fields.table_id);
        return Err(Unwritable::new("table_id", why));
    }
    // 1.3 ignores the mask of an add, and the restrictions of commands other than delete.
    if fields.cookie_mask != 0 && fields.command != FLOW_ADD {
        return Err(Unwritable::new("cookie_mask", "OpenFlow 1.0 cannot choose rules by their cookie"));
    }
    if delete && fields.out_group != GROUP_ANY {
        return Err(Unwritable::new("out_group", "OpenFlow 1.0 has no groups"));
    }
    if fields.flags & !ALL_FLAGS != 0 {
        let why = format!("OpenFlow 1.0 has no flag in 0x{:04x}", fields.flags & !ALL_FLAGS);
        return Err(Unwritable::new("flags", why));
    }
    let out_port = match port_number(fields.out_port, "out_port") {
        Err(refused) if delete => return Err(refused),
        number => number.unwrap_or(u16::MAX),
    };
    // Made in one step, because this is on the path of every flow mod.
    let mut bytes = [0; 24];
    bytes[0..8].copy_from_slice(&fields.cookie.to_be_bytes());
    bytes[8..10].copy_from_slice(&u16::from(fields.command).to_be_bytes());
    bytes[10..12].copy_from_slice(&fields.idle_timeout_s.to_be_bytes());
    bytes[12..14].copy_from_slice(&fields.hard_timeout_s.to_be_bytes());
    bytes[14..16].copy_from_slice(&fields.priority.to_be_bytes());
    bytes[16..20].copy_from_slice(&fields.buffer_id.to_be_bytes());
    bytes[20..22].copy_from_slice(&out_port.to_be_bytes());
    bytes[22..24].copy_from_slice(&fields.flags.to_be_bytes());
    out.bytes(&bytes);
    Ok(())
}

pub(super) fn write_flow_mod(flow_mod: &FlowMod, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    matching::write_of_rule(&flow_mod.matching, flow_mod.priority, out)?;
    write_flow_mod_fields(&flow_mod.fields(), out)?;
    write_instructions(&flow_mod.instructions, matching::is_untagged(&flow_mod.matching), out)
}

pub(super) fn write_instructions(
    instructions: &[Instruction],
    untagged: bool,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    match instructions {
        [] => Ok(()),
        [Instruction::ApplyActions(actions)] => action::write(actions, untagged, out),
        [Instruction::ApplyActions(_), other, ..] | [other, ..] => {
            let what = match other {
                Instruction::GotoTable(_) => "OFPIT_GOTO_TABLE",
                Instruction::WriteMetadata { .. } => "OFPIT_WRITE_METADATA",
                Instruction::WriteActions(_) => "OFPIT_WRITE_ACTIONS",
                Instruction::ApplyActions(_) => "OFPIT_APPLY_ACTIONS",
                Instruction::ClearActions => "OFPIT_CLEAR_ACTIONS",
                Instruction::Meter(_) => "OFPIT_METER",
                Instruction::Experimenter { .. } => "OFPIT_EXPERIMENTER",
            };
            Err(only_apply_actions(what))
        }
    }
}

/// Writes the actions of canonical instructions. Allocates only the text of an error.
#[inline]
pub(crate) fn write_instructions_from_canonical(
    instructions: &[u8],
    untagged: bool,
    out: &mut Writer<'_>,
) -> Result<(), Unwritable> {
    if let Some((port, max_len)) = one_output(instructions) {
        return action::write_one_output(port, max_len, out);
    }
    let mut written = false;
    for raw in instructions_raw(instructions) {
        let raw = raw.map_err(|refused| Unwritable::new("instructions", refused.to_string()))?;
        if !raw.is_apply() || written {
            return Err(only_apply_actions("instructions"));
        }
        written = true;
        action::write_from_canonical(raw.bytes.get(8..).unwrap_or_default(), untagged, out)?;
    }
    Ok(())
}

/// The port and `max_len`, if the instructions are one apply-actions with one output, as in most rules.
fn one_output(instructions: &[u8]) -> Option<(PortNo, u16)> {
    const APPLY_OUTPUT: ([u8; 4], [u8; 4]) = ([0, 4, 0, 24], [0, 0, 0, 16]);
    let bytes: &[u8; 24] = instructions.try_into().ok()?;
    let [i0, i1, i2, i3, _, _, _, _, a0, a1, a2, a3, p0, p1, p2, p3, m0, m1, ..] = *bytes;
    let is_one = ([i0, i1, i2, i3], [a0, a1, a2, a3]) == APPLY_OUTPUT;
    is_one.then(|| (PortNo(u32::from_be_bytes([p0, p1, p2, p3])), u16::from_be_bytes([m0, m1])))
}

fn only_apply_actions(what: &'static str) -> Unwritable {
    Unwritable::new(what, "a rule of OpenFlow 1.0 is a list of actions: one OFPIT_APPLY_ACTIONS, or nothing")
}

pub(super) fn read_flow_removed(mut body: Reader<'_>) -> Result<FlowRemoved, BadInput> {
    let matching = WireMatch::read(&mut body)?;
    let removed = read_flow_removed_counters(&mut body)?;
    body.end()?;
    let priority = matching.rank(removed.priority);
    Ok(FlowRemoved { matching: matching.to_match(), priority, ..removed })
}

/// Reads the fields after the match. The match stays empty.
pub(crate) fn read_flow_removed_counters(body: &mut Reader<'_>) -> Result<FlowRemoved, BadInput> {
    let cookie = body.u64("cookie")?;
    let priority = body.u16("priority")?;
    let reason = body.u8("reason")?;
    body.skip(1)?;
    let (duration_s, duration_ns) = (body.u32("duration_sec")?, body.u32("duration_nsec")?);
    let idle_timeout_s = body.u16("idle_timeout")?;
    body.skip(2)?;
    Ok(FlowRemoved {
        matching: Match::any(),
        cookie,
        priority,
        reason,
        table_id: 0,
        duration_s,
        duration_ns,
        idle_timeout_s,
        hard_timeout_s: 0,
        packet_count: body.u64("packet_count")?,
        byte_count: body.u64("byte_count")?,
    })
}

/// Leaves out the table and the hard time-out, which 1.0 has no place for.
pub(super) fn write_flow_removed(removed: &FlowRemoved, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    matching::write_of_rule(&removed.matching, removed.priority, out)?;
    out.u64(removed.cookie).u16(removed.priority).u8(removed.reason).zeros(1);
    out.u32(removed.duration_s).u32(removed.duration_ns).u16(removed.idle_timeout_s).zeros(2);
    out.u64(removed.packet_count).u64(removed.byte_count);
    Ok(())
}
