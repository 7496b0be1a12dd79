//! Prints flow mods, flow removeds and flow entries.

use std::fmt::{self, Write};

use flow::{Instruction, Match, PortNo};

use super::{counter, duration};
use openflow::message::*;
use openflow::version::Version;

/// The default priority, which is not printed.
pub(super) const DEFAULT_PRIORITY: u16 = 0x8000;

/// The reasons of a flow removed by number. Those after the fourth are of later versions.
pub(super) const REMOVED_REASONS: [&str; 6] =
    ["idle", "hard", "delete", "group_delete", "meter_delete", "eviction"];

pub(super) fn flow_mod(out: &mut String, version: Version, flow_mod: &FlowMod) -> fmt::Result {
    match flow_mod.command {
        FLOW_ADD => out.push_str(" ADD"),
        FLOW_MODIFY => out.push_str(" MOD"),
        FLOW_MODIFY_STRICT => out.push_str(" MOD_STRICT"),
        FLOW_DELETE => out.push_str(" DEL"),
        FLOW_DELETE_STRICT => out.push_str(" DEL_STRICT"),
        number => write!(out, " cmd:{number}")?,
    }
    // 1.0 names no table.
    if flow_mod.table_id != 0 && version != Version::V1_0 {
        write!(out, " table:{}", flow_mod.table_id)?;
    }
    out.push(' ');
    matching(out, version, &flow_mod.matching, flow_mod.priority)?;
    if !out.ends_with(' ') {
        out.push(' ');
    }
    cookie(out, version, flow_mod)?;
    conditions(out, version, flow_mod)?;
    actions(out, &flow_mod.instructions)
}

/// A rule's new cookie, or the cookie by which rules are selected.
fn cookie(out: &mut String, version: Version, flow_mod: &FlowMod) -> fmt::Result {
    let is_new = version == Version::V1_0 || flow_mod.command == FLOW_ADD;
    if is_new && flow_mod.cookie != 0 && flow_mod.cookie != u64::MAX {
        write!(out, "cookie:0x{:x} ", flow_mod.cookie)?;
    }
    if !is_new && flow_mod.cookie_mask != 0 {
        write!(out, "cookie:0x{:x}/0x{:x} ", flow_mod.cookie, flow_mod.cookie_mask)?;
    }
    Ok(())
}

fn conditions(out: &mut String, version: Version, flow_mod: &FlowMod) -> fmt::Result {
    if flow_mod.idle_timeout_s != 0 {
        write!(out, "idle:{} ", flow_mod.idle_timeout_s)?;
    }
    if flow_mod.hard_timeout_s != 0 {
        write!(out, "hard:{} ", flow_mod.hard_timeout_s)?;
    }
    if flow_mod.buffer_id != NO_BUFFER {
        write!(out, "buf:0x{:x} ", flow_mod.buffer_id)?;
    }
    if flow_mod.out_port != PortNo::ANY {
        write!(out, "out_port:{} ", flow_mod.out_port)?;
    }
    // The third flag of 1.0 has another meaning: an emergency entry.
    let emergency = version == Version::V1_0 && flow_mod.flags & FLOW_MOD_RESET_COUNTS != 0;
    flags(out, flow_mod.flags & if emergency { !FLOW_MOD_RESET_COUNTS } else { u16::MAX })?;
    if emergency { out.write_str("emerg ") } else { Ok(()) }
}

fn flags(out: &mut String, flags: u16) -> fmt::Result {
    FLAGS.iter().filter(|(bit, _)| flags & bit != 0).try_for_each(|(_, name)| write!(out, "{name} "))
}

/// The bits of a flow mod's flags in 1.3 and ovs-ofctl's names for them.
pub(super) const FLAGS: [(u16, &str); 5] = [
    (FLOW_MOD_SEND_FLOW_REMOVED, "send_flow_rem"),
    (FLOW_MOD_CHECK_OVERLAP, "check_overlap"),
    (FLOW_MOD_RESET_COUNTS, "reset_counts"),
    (8, "no_packet_counts"),
    (16, "no_byte_counts"),
];

/// `priority=100,in_port=1`; nothing for every packet at the default priority.
fn matching(out: &mut String, version: Version, matching: &Match, priority: u16) -> fmt::Result {
    if priority != DEFAULT_PRIORITY {
        write!(out, "priority={priority}{}", if matching.is_any() { "" } else { "," })?;
    }
    let text = flow::text::match_to_string(matching);
    match version {
        // In 1.0, "no tag" is complete: there are no other bits than those of the tag.
        Version::V1_0 => out.write_str(&text.replace("vlan_tci=0x0000/0x1fff", "vlan_tci=0x0000")),
        _ => out.write_str(&text),
    }
}

fn actions(out: &mut String, instructions: &[Instruction]) -> fmt::Result {
    write!(out, "actions={}", flow::text::instructions_to_string(instructions))
}

pub(super) fn flow_removed(out: &mut String, version: Version, removed: &FlowRemoved) -> fmt::Result {
    out.push(' ');
    matching(out, version, &removed.matching, removed.priority)?;
    out.push_str(" reason=");
    match REMOVED_REASONS.get(usize::from(removed.reason)) {
        Some(name) => out.push_str(name),
        None => write!(out, "{}", removed.reason)?,
    }
    if version != Version::V1_0 && removed.table_id != TABLE_ALL {
        write!(out, " table_id={}", removed.table_id)?;
    }
    if removed.cookie != 0 {
        write!(out, " cookie:0x{:x}", removed.cookie)?;
    }
    out.push_str(" duration");
    duration(out, removed.duration_s, removed.duration_ns)?;
    write!(out, " idle{}", removed.idle_timeout_s)?;
    if removed.hard_timeout_s != 0 {
        write!(out, " hard{}", removed.hard_timeout_s)?;
    }
    writeln!(out, " pkts{} bytes{}", removed.packet_count, removed.byte_count)
}

pub(super) fn flow_stats(out: &mut String, version: Version, flow: &FlowStats) -> fmt::Result {
    write!(out, "\n cookie=0x{:x}, duration=", flow.cookie)?;
    duration(out, flow.duration_s, flow.duration_ns)?;
    write!(out, ", table={}, ", flow.table_id)?;
    write!(out, "n_packets={}, n_bytes={}, ", counter(flow.packet_count), counter(flow.byte_count))?;
    if flow.idle_timeout_s != 0 {
        write!(out, "idle_timeout={}, ", flow.idle_timeout_s)?;
    }
    if flow.hard_timeout_s != 0 {
        write!(out, "hard_timeout={}, ", flow.hard_timeout_s)?;
    }
    flags(out, flow.flags)?;
    let before = out.len();
    matching(out, version, &flow.matching, flow.priority)?;
    if out.len() > before {
        out.push(' ');
    }
    actions(out, &flow.instructions)
}

pub(super) fn stats_request(out: &mut String, version: Version, which: &FlowStatsRequest) -> fmt::Result {
    if which.table_id != TABLE_ALL {
        write!(out, " table={}", which.table_id)?;
    }
    if which.out_port != PortNo::ANY {
        write!(out, " out_port={}", which.out_port)?;
    }
    out.push(' ');
    matching(out, version, &which.matching, DEFAULT_PRIORITY)
}

pub(super) fn aggregate(out: &mut String, sums: &AggregateStats) -> fmt::Result {
    write!(
        out,
        " packet_count={} byte_count={} flow_count={}",
        sums.packet_count, sums.byte_count, sums.flow_count
    )
}
