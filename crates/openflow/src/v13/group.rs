//! Groups (1.3.5, 7.3.4.2): the group mod and its buckets, their description (7.3.5.10), the features (7.3.5.11).

use flow::canonical::{read_actions, write_actions};
use flow::{BadInput, PortNo};

use crate::error::{BAD_BUCKET, BAD_GROUP_COMMAND, BAD_GROUP_TYPE, Unwritable, bad};
use crate::message::{Bucket, GROUP_TYPE_FAST_FAILOVER, GroupDesc, GroupFeatures, GroupMod};
use crate::wire::{Reader, Writer};

/// OFPGC_DELETE, the highest command.
const LAST_COMMAND: u16 = 2;
/// The length of a bucket without actions.
const BUCKET_LEN: usize = 16;
/// The length of a description without buckets.
const DESC_LEN: usize = 8;

pub(super) fn read_group_mod(mut body: Reader<'_>) -> Result<GroupMod, BadInput> {
    let start = body.offset();
    let command = body.u16("command")?;
    if command > LAST_COMMAND {
        return Err(bad(start, "command", BAD_GROUP_COMMAND, format!("there is no command {command}")));
    }
    let group_type = body.u8("type")?;
    if group_type > GROUP_TYPE_FAST_FAILOVER {
        return Err(bad(start + 2, "type", BAD_GROUP_TYPE, format!("there is no group type {group_type}")));
    }
    body.skip(1)?;
    Ok(GroupMod { command, group_type, group_id: body.u32("group_id")?, buckets: read_buckets(body)? })
}

pub(super) fn write_group_mod(group_mod: &GroupMod, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    if group_mod.command > LAST_COMMAND {
        return Err(Unwritable::new("command", format!("there is no command {}", group_mod.command)));
    }
    if group_mod.group_type > GROUP_TYPE_FAST_FAILOVER {
        return Err(Unwritable::new("type", format!("there is no group type {}", group_mod.group_type)));
    }
    out.u16(group_mod.command).u8(group_mod.group_type).zeros(1).u32(group_mod.group_id);
    write_buckets(&group_mod.buckets, out)
}

/// Reads buckets to the end of `body`.
pub(super) fn read_buckets(body: Reader<'_>) -> Result<Vec<Bucket>, BadInput> {
    body.with_short(BAD_BUCKET).list(read_bucket)
}

fn read_bucket(body: &mut Reader<'_>) -> Result<Bucket, BadInput> {
    let mut bucket = body.item(0, BUCKET_LEN)?;
    bucket.skip(2)?;
    let weight = bucket.u16("weight")?;
    let watch_port = PortNo(bucket.u32("watch_port")?);
    let watch_group = bucket.u32("watch_group")?;
    bucket.skip(4)?;
    let offset = bucket.offset();
    let actions = read_actions(bucket.rest()).map_err(|refused| refused.shifted(offset))?;
    Ok(Bucket { weight, watch_port, watch_group, actions })
}

pub(super) fn write_buckets(buckets: &[Bucket], out: &mut Writer<'_>) -> Result<(), Unwritable> {
    buckets.iter().try_for_each(|bucket| {
        let length = out.length_after(0);
        out.zeros(2).u16(bucket.weight).u32(bucket.watch_port.0).u32(bucket.watch_group).zeros(4);
        write_actions(&bucket.actions, out.out)?;
        out.fill_length(length)
    })
}

pub(super) fn read_desc(body: &mut Reader<'_>) -> Result<GroupDesc, BadInput> {
    let mut desc = body.item(0, DESC_LEN)?;
    desc.skip(2)?;
    let group_type = desc.u8("type")?;
    desc.skip(1)?;
    Ok(GroupDesc { group_type, group_id: desc.u32("group_id")?, buckets: read_buckets(desc)? })
}

pub(super) fn write_desc(desc: &GroupDesc, out: &mut Writer<'_>) -> Result<(), Unwritable> {
    let length = out.length_after(0);
    out.zeros(2).u8(desc.group_type).zeros(1).u32(desc.group_id);
    write_buckets(&desc.buckets, out)?;
    out.fill_length(length)
}

pub(super) fn read_features(body: &mut Reader<'_>) -> Result<GroupFeatures, BadInput> {
    let mut features = GroupFeatures {
        types: body.u32("types")?,
        capabilities: body.u32("capabilities")?,
        ..GroupFeatures::default()
    };
    for max_groups in &mut features.max_groups {
        *max_groups = body.u32("max_groups")?;
    }
    for actions in &mut features.actions {
        *actions = body.u32("actions")?;
    }
    Ok(features)
}

pub(super) fn write_features(features: &GroupFeatures, out: &mut Writer<'_>) {
    out.u32(features.types).u32(features.capabilities);
    for number in features.max_groups.iter().chain(&features.actions) {
        out.u32(*number);
    }
}
