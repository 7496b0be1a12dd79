//! Prints groups.

use std::fmt::{self, Write};

use flow::PortNo;

use super::duration;
use openflow::message::*;

/// The names of a group's types in a group's own line.
pub(super) const TYPES: [&str; 4] = ["all", "select", "indirect", "ff"];

pub(super) fn id(out: &mut String, group_id: u32) -> fmt::Result {
    match group_id {
        GROUP_ALL => out.write_str("ALL"),
        GROUP_ANY => out.write_str("ANY"),
        number => write!(out, "{number}"),
    }
}

pub(super) fn group_mod(out: &mut String, group_mod: &GroupMod) -> fmt::Result {
    match group_mod.command {
        0 => out.push_str("\n ADD "),
        1 => out.push_str("\n MOD "),
        2 => out.push_str("\n DEL "),
        number => write!(out, "\n cmd:{number} ")?,
    }
    group(out, group_mod.group_id, group_mod.group_type, &group_mod.buckets)
}

pub(super) fn desc(out: &mut String, desc: &GroupDesc) -> fmt::Result {
    out.push_str("\n ");
    group(out, desc.group_id, desc.group_type, &desc.buckets)
}

fn group(out: &mut String, group_id: u32, group_type: u8, buckets: &[Bucket]) -> fmt::Result {
    let name = TYPES.get(usize::from(group_type)).copied().unwrap_or("unknown");
    write!(out, "group_id={group_id},type={name}")?;
    buckets.iter().try_for_each(|there| bucket(out, group_type, there))
}

fn bucket(out: &mut String, group_type: u8, bucket: &Bucket) -> fmt::Result {
    out.push_str(",bucket=");
    // The default weight of a bucket is 1 in a select group, and 0 in others.
    let usual_weight = u16::from(group_type == GROUP_TYPE_SELECT);
    if bucket.weight != usual_weight {
        write!(out, "weight:{},", bucket.weight)?;
    }
    if bucket.watch_port != PortNo::ANY {
        write!(out, "watch_port:{},", bucket.watch_port)?;
    }
    if bucket.watch_group != GROUP_ANY {
        write!(out, "watch_group:{},", bucket.watch_group)?;
    }
    write!(out, "actions={}", flow::text::actions_to_string(&bucket.actions))
}

pub(super) fn stats(out: &mut String, group: &GroupStats) -> fmt::Result {
    write!(out, "\n group_id={},", group.group_id)?;
    if group.duration_s != u32::MAX {
        out.push_str("duration=");
        duration(out, group.duration_s, group.duration_ns)?;
        out.push(',');
    }
    write!(out, "ref_count={},", group.ref_count)?;
    write!(out, "packet_count={},byte_count={}", group.packet_count, group.byte_count)?;
    let counted = group.buckets.iter().enumerate().filter(|(_, (packets, _))| *packets != u64::MAX);
    counted.into_iter().try_for_each(|(index, (packets, bytes))| {
        write!(out, ",bucket{index}:packet_count={packets},byte_count={bytes}")
    })
}

pub(super) fn features(out: &mut String, features: &GroupFeatures) -> fmt::Result {
    writeln!(out, "\n Group table:\n    Types:  0x{:x}", features.types)?;
    writeln!(out, "    Capabilities:  0x{:x}", features.capabilities)?;
    for (index, name) in ["all", "select", "indirect", "fast failover"].into_iter().enumerate() {
        if features.types >> index & 1 == 0 {
            continue;
        }
        writeln!(out, "    {name} group:")?;
        // C's alternate form has no prefix for a zero.
        let prefix = if features.max_groups[index] == 0 { "" } else { "0x" };
        writeln!(out, "       max_groups={prefix}{:x}", features.max_groups[index])?;
        writeln!(out, "       actions: {}", action_names(features.actions[index]))?;
    }
    Ok(())
}

/// The names of the actions of 1.3 whose bits are set.
pub(super) fn action_names(bits: u32) -> String {
    let names: Vec<&str> =
        ACTIONS_1_3.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name).collect();
    if names.is_empty() { "<none>".to_owned() } else { names.join(" ") }
}

/// Bit and name, in Open vSwitch's order of actions. It has no names for copying the time-to-live and for provider
/// backbone bridges.
const ACTIONS_1_3: [(u32, &str); 12] = [
    (0, "output"),
    (22, "group"),
    (25, "set_field"),
    (18, "strip_vlan"),
    (17, "push_vlan"),
    (23, "mod_nw_ttl"),
    (24, "dec_ttl"),
    (15, "set_mpls_ttl"),
    (16, "dec_mpls_ttl"),
    (19, "push_mpls"),
    (20, "pop_mpls"),
    (21, "set_queue"),
];
