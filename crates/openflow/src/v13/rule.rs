//! Flow mod and flow removed of 1.3 (1.3.5, 7.3.4.1 and 7.4.2).

use flow::canonical::{read_instructions, write_instructions};
use flow::{BadInput, Instruction, Match, PortNo};

use super::matching;
use crate::error::{BAD_FLOW_COMMAND, BAD_FLOW_FLAGS, Unwritable, bad};
use crate::message::{FLOW_DELETE_STRICT, FlowMod, FlowModFields, FlowRemoved};
use crate::wire::{Reader, Writer};

/// Every flag of `ofp_flow_mod_flags`.
const ALL_FLAGS: u16 = 0x1f;

pub(crate) fn read_flow_mod_fields(body: &mut Reader<'_>) -> Result<FlowModFields, BadInput> {
    let start = body.offset();
    let head = FlowModFields {
        cookie: body.u64("cookie")?,
        cookie_mask: body.u64("cookie_mask")?,
        table_id: body.u8("table_id")?,
        command: body.u8("command")?,
        idle_timeout_s: body.u16("idle_timeout")?,
        hard_timeout_s: body.u16("hard_timeout")?,
        priority: body.u16("priority")?,
        buffer_id: body.u32("buffer_id")?,
        out_port: PortNo(body.u32("out_port")?),
        out_group: body.u32("out_group")?,
        flags: body.u16("flags")?,
    };
    body.skip(2)?;
    if head.command > FLOW_DELETE_STRICT {
        return Err(bad(start + 17, "command", BAD_FLOW_COMMAND, format!("no command {}", head.command)));
    }
    if head.flags & !ALL_FLAGS != 0 {
        let message = format!("flags 0x{:04x}; 1.3 has 0x{ALL_FLAGS:04x}", head.flags);
        return Err(bad(start + 36, "flags", BAD_FLOW_FLAGS, message));
    }
    Ok(head)
}

pub(super) fn read_flow_mod(mut body: Reader<'_>) -> Result<FlowMod, BadInput> {
    let head = read_flow_mod_fields(&mut body)?;
    let matching = matching::read(&mut body)?;
    Ok(head.with(matching, instructions(body)?))
}

pub(super) fn instructions(mut body: Reader<'_>) -> Result<Vec<Instruction>, BadInput> {
    let offset = body.offset();
    read_instructions(body.rest()).map_err(|refused| refused.shifted(offset))
}

pub(crate) fn write_flow_mod_fields(head: &FlowModFields, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if head.command > FLOW_DELETE_STRICT {
        return Err(Unwritable::new("command", format!("there is no command {}", head.command)));
    }
    if head.flags & !ALL_FLAGS != 0 {
        return Err(Unwritable::new(
            "flags",
            format!("1.3 has no flag in 0x{:04x}", head.flags & !ALL_FLAGS),
        ));
    }
    out.u64(head.cookie).u64(head.cookie_mask).u8(head.table_id).u8(head.command);
    out.u16(head.idle_timeout_s).u16(head.hard_timeout_s).u16(head.priority);
    out.u32(head.buffer_id).u32(head.out_port.0).u32(head.out_group).u16(head.flags).zeros(2);
    Ok(())
}

pub(super) fn write_flow_mod(flow_mod: &FlowMod, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    write_flow_mod_fields(&flow_mod.fields(), out)?;
    matching::write(&flow_mod.matching, out)?;
    Ok(write_instructions(&flow_mod.instructions, out.out)?)
}

pub(super) fn read_flow_removed(mut body: Reader<'_>) -> Result<FlowRemoved, BadInput> {
    let removed = read_flow_removed_counters(&mut body)?;
    let matching = matching::read(&mut body)?;
    body.end()?;
    Ok(FlowRemoved { matching, ..removed })
}

/// Reads the fields before the match. The match stays empty.
pub(crate) fn read_flow_removed_counters(body: &mut Reader<'_>) -> Result<FlowRemoved, BadInput> {
    let cookie = body.u64("cookie")?;
    let priority = body.u16("priority")?;
    let reason = body.u8("reason")?;
    let table_id = body.u8("table_id")?;
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table_id,
        duration_s: body.u32("duration_sec")?,
        duration_ns: body.u32("duration_nsec")?,
        idle_timeout_s: body.u16("idle_timeout")?,
        hard_timeout_s: body.u16("hard_timeout")?,
        packet_count: body.u64("packet_count")?,
        byte_count: body.u64("byte_count")?,
        matching: Match::any(),
    })
}

pub(super) fn write_flow_removed(removed: &FlowRemoved, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    out.u64(removed.cookie).u16(removed.priority).u8(removed.reason).u8(removed.table_id);
    out.u32(removed.duration_s).u32(removed.duration_ns);
    out.u16(removed.idle_timeout_s).u16(removed.hard_timeout_s);
    out.u64(removed.packet_count).u64(removed.byte_count);
    matching::write(&removed.matching, out)
}
