//! Groups: several ways for a packet, and the choice among them.
//!
//! In: group mods, and packets that a rule sends to a group. Out: the actions of the chosen buckets. It never carries
//! actions out.

use flow::{Action, PortNo};
use openflow::message::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::refusal::Refusal;

/// How many groups a switch holds. More are refused with OFPGMFC_OUT_OF_GROUPS.
pub(crate) const GROUPS_MAX: u32 = 4096;
/// How many buckets a group may have. More are refused with OFPGMFC_OUT_OF_BUCKETS.
const BUCKETS_MAX: usize = 256;
/// OFPG_MAX: the highest group number.
const GROUP_MAX: u32 = 0xffff_ff00;

const GROUP_ADD: u16 = 0;
const GROUP_MODIFY: u16 = 1;
const GROUP_DELETE: u16 = 2;

/// A bucket and what it has counted.
#[derive(Clone, Debug)]
pub(crate) struct BucketEntry {
    pub(crate) bucket: Bucket,
    /// The bucket's actions, in the order of an action set.
    pub(crate) actions: Arc<[Action]>,
    packet_count: u64,
    byte_count: u64,
}

/// A group and what it has counted.
#[derive(Clone, Debug)]
pub(crate) struct GroupEntry {
    pub(crate) group_type: u8,
    pub(crate) buckets: Vec<BucketEntry>,
    packet_count: u64,
    byte_count: u64,
    added_at: Duration,
}

/// The groups of a switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    entries: BTreeMap<u32, GroupEntry>,
}

/// What a group mod did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// It added or changed a group.
    Changed,
    /// It deleted these groups. The caller deletes the rules that refer to them.
    Gone(Vec<u32>),
}

impl Groups {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.entries.contains_key(&id)
    }

    /// Carries out a group mod whose actions have been checked.
    pub(crate) fn modify(&mut self, wanted: &GroupMod, now: Duration) -> Result<GroupChange, Refusal> {
        match wanted.command {
            GROUP_ADD if self.contains(wanted.group_id) => return Err(Refusal::GroupExists),
            GROUP_ADD if self.entries.len() >= GROUPS_MAX as usize => return Err(Refusal::GroupOutOfGroups),
            GROUP_MODIFY if !self.contains(wanted.group_id) => return Err(Refusal::GroupUnknown),
            GROUP_ADD | GROUP_MODIFY => {}
            GROUP_DELETE => return self.delete(wanted.group_id),
            _ => return Err(Refusal::GroupCommand),
        }
        self.check(wanted)?;
        let buckets = wanted.buckets.iter().map(BucketEntry::new).collect();
        let group_type = wanted.group_type;
        let entry = GroupEntry { group_type, buckets, packet_count: 0, byte_count: 0, added_at: now };
        self.entries.insert(wanted.group_id, entry);
        Ok(GroupChange::Changed)
    }

    fn check(&self, wanted: &GroupMod) -> Result<(), Refusal> {
        if wanted.group_id > GROUP_MAX {
            return Err(Refusal::GroupInvalid);
        }
        match wanted.group_type {
            GROUP_TYPE_INDIRECT if wanted.buckets.len() != 1 => return Err(Refusal::GroupInvalid),
            GROUP_TYPE_ALL | GROUP_TYPE_SELECT | GROUP_TYPE_INDIRECT | GROUP_TYPE_FAST_FAILOVER => {}
            _ => return Err(Refusal::GroupType),
        }
        if wanted.buckets.len() > BUCKETS_MAX {
            return Err(Refusal::GroupOutOfBuckets);
        }
        let watches = |bucket: &Bucket| bucket.watch_port != PortNo::ANY || bucket.watch_group != GROUP_ANY;
        if wanted.group_type == GROUP_TYPE_FAST_FAILOVER && !wanted.buckets.iter().all(watches) {
            return Err(Refusal::GroupBadWatch);
        }
        if !wanted.buckets.iter().all(|bucket| self.can_watch(bucket)) {
            return Err(Refusal::GroupBadWatch);
        }
        if self.leads_to(&wanted.buckets, wanted.group_id) { Err(Refusal::GroupLoop) } else { Ok(()) }
    }

    /// Whether the port or group that a bucket watches is valid: a port number, or an existing group.
    fn can_watch(&self, bucket: &Bucket) -> bool {
        let port = bucket.watch_port == PortNo::ANY || (1..=PortNo::MAX.0).contains(&bucket.watch_port.0);
        port && (bucket.watch_group == GROUP_ANY || self.contains(bucket.watch_group))
    }

    /// Whether a packet in these buckets can reach group `to`.
    fn leads_to(&self, buckets: &[Bucket], to: u32) -> bool {
        let mut seen = BTreeSet::new();
        let mut ahead: Vec<u32> = referred(buckets).collect();
        while let Some(id) = ahead.pop() {
            if id == to {
                return true;
            }
            if let Some(group) = self.entries.get(&id).filter(|_| seen.insert(id)) {
                group
                    .buckets
                    .iter()
                    .for_each(|entry| ahead.extend(referred(std::slice::from_ref(&entry.bucket))));
            }
        }
        false
    }

    fn delete(&mut self, id: u32) -> Result<GroupChange, Refusal> {
        if id == GROUP_ALL {
            return Ok(GroupChange::Gone(std::mem::take(&mut self.entries).into_keys().collect()));
        }
        if id > GROUP_MAX {
            return Err(Refusal::GroupInvalid);
        }
        let chained = self.entries.iter().any(|(other, group)| {
            *other != id
                && group.buckets.iter().any(|entry| entry.bucket.actions.contains(&Action::Group(id)))
        });
        if chained {
            return Err(Refusal::GroupChained);
        }
        // Deleting a group that does not exist is not an error (1.3.5, 6.5).
        Ok(GroupChange::Gone(self.entries.remove(&id).map(|_| id).into_iter().collect()))
    }

    /// Counts the packet, and returns the actions of the buckets that it goes through. `hash` chooses in a select
    /// group; `port_is_live` says whether a port is live.
    pub(crate) fn choose(
        &mut self,
        id: u32,
        hash: u64,
        bytes: usize,
        port_is_live: impl Fn(PortNo) -> bool,
    ) -> Vec<Arc<[Action]>> {
        let Some(group_type) = self.entries.get(&id).map(|group| group.group_type) else { return Vec::new() };
        let chosen = match group_type {
            GROUP_TYPE_FAST_FAILOVER => self.first_live(id, &port_is_live, &mut BTreeSet::new()),
            GROUP_TYPE_SELECT => self.by_weight(id, hash, &port_is_live),
            _ => None,
        };
        let takes_all = matches!(group_type, GROUP_TYPE_ALL | GROUP_TYPE_INDIRECT);
        let Some(group) = self.entries.get_mut(&id) else { return Vec::new() };
        group.packet_count += 1;
        group.byte_count += bytes as u64;
        let taken = group.buckets.iter_mut().enumerate();
        taken
            .filter(|(index, _)| takes_all || Some(*index) == chosen)
            .map(|(_, entry)| {
                entry.packet_count += 1;
                entry.byte_count += bytes as u64;
                entry.actions.clone()
            })
            .collect()
    }

    fn first_live(
        &self,
        id: u32,
        port_is_live: &impl Fn(PortNo) -> bool,
        seen: &mut BTreeSet<u32>,
    ) -> Option<usize> {
        let group = self.entries.get(&id).filter(|_| seen.insert(id))?;
        group.buckets.iter().position(|entry| self.is_live(&entry.bucket, port_is_live, seen))
    }

    /// A bucket is live if what it watches is. One live group ends the search. So a group that was seen before is not
    /// live, or it is part of a circle of watched groups, which makes no group live.
    fn is_live(
        &self,
        bucket: &Bucket,
        port_is_live: &impl Fn(PortNo) -> bool,
        seen: &mut BTreeSet<u32>,
    ) -> bool {
        let by_port = bucket.watch_port != PortNo::ANY && port_is_live(bucket.watch_port);
        by_port
            || bucket.watch_group != GROUP_ANY
                && self.first_live(bucket.watch_group, port_is_live, seen).is_some()
    }

    /// The bucket whose share of the weights the hash falls into. A bucket that watches nothing counts as live.
    fn by_weight(&self, id: u32, hash: u64, port_is_live: &impl Fn(PortNo) -> bool) -> Option<usize> {
        let group = self.entries.get(&id)?;
        let share = |entry: &BucketEntry| {
            let unwatched = entry.bucket.watch_port == PortNo::ANY && entry.bucket.watch_group == GROUP_ANY;
            let live = unwatched || self.is_live(&entry.bucket, port_is_live, &mut BTreeSet::new());
            if live { u64::from(entry.bucket.weight) } else { 0 }
        };
        let total: u64 = group.buckets.iter().map(share).sum();
        let mut left = hash.checked_rem(total)?;
        group.buckets.iter().position(|entry| {
            let share = share(entry);
            let here = left < share;
            left = left.saturating_sub(share);
            here
        })
    }

    /// OFPMP_GROUP of one group or of all. `rules_for` counts the rules that refer to a group.
    pub(crate) fn statistics(
        &self,
        wanted: u32,
        now: Duration,
        rules_for: impl Fn(u32) -> usize,
    ) -> Vec<GroupStats> {
        self.selected(wanted)
            .map(|(id, group)| {
                let chains = self.entries.values().flat_map(|group| &group.buckets);
                let from_groups =
                    chains.filter(|entry| entry.bucket.actions.contains(&Action::Group(*id))).count();
                let age = now.saturating_sub(group.added_at);
                GroupStats {
                    group_id: *id,
                    ref_count: u32::try_from(rules_for(*id) + from_groups).unwrap_or(u32::MAX),
                    packet_count: group.packet_count,
                    byte_count: group.byte_count,
                    duration_s: super::whole_seconds(age),
                    duration_ns: age.subsec_nanos(),
                    buckets: group
                        .buckets
                        .iter()
                        .map(|entry| (entry.packet_count, entry.byte_count))
                        .collect(),
                }
            })
            .collect()
    }

    /// OFPMP_GROUP_DESC.
    pub(crate) fn descriptions(&self) -> Vec<GroupDesc> {
        let describe = |(id, group): (&u32, &GroupEntry)| GroupDesc {
            group_type: group.group_type,
            group_id: *id,
            buckets: group.buckets.iter().map(|entry| entry.bucket.clone()).collect(),
        };
        self.entries.iter().map(describe).collect()
    }

    fn selected(&self, wanted: u32) -> impl Iterator<Item = (&u32, &GroupEntry)> {
        self.entries.iter().filter(move |(id, _)| wanted == GROUP_ALL || **id == wanted)
    }
}

/// Only buckets of a select group have a weight (1.3.5, 7.3.4.2). Open vSwitch checks this before anything else.
pub(crate) fn check_weights(wanted: &GroupMod) -> Result<(), Refusal> {
    let is_weighed = wanted.buckets.iter().any(|bucket| bucket.weight != 0);
    match wanted.group_type {
        GROUP_TYPE_ALL | GROUP_TYPE_INDIRECT | GROUP_TYPE_FAST_FAILOVER if is_weighed => {
            Err(Refusal::GroupInvalid)
        }
        _ => Ok(()),
    }
}

impl BucketEntry {
    fn new(bucket: &Bucket) -> Self {
        let actions = super::action_set::ActionSet::of(&bucket.actions).in_order().to_vec();
        BucketEntry { bucket: bucket.clone(), actions: actions.into(), packet_count: 0, byte_count: 0 }
    }
}

/// The groups to which buckets send packets.
fn referred(buckets: &[Bucket]) -> impl Iterator<Item = u32> {
    buckets.iter().flat_map(|bucket| &bucket.actions).filter_map(|action| match action {
        Action::Group(id) => Some(*id),
        _ => None,
    })
}
