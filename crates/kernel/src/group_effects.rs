//! What groups may do with a packet.
//!
//! ```text
//!   buckets + packet.out's bounds ──> GroupEffects, kept beside the owner ──> may a packet-out go there? what may the group become?
//! ```
//!
//! When an app adds a group, the kernel checks its buckets against `rule.write`, because rules refer to groups. A
//! packet-out may refer to a group too, and then the buckets must lie within `packet.out`. So the kernel checks both,
//! and stores the second result.
//!
//! Group effects only grow: a switch may refuse a change and keep the old buckets. So a group may do all that any
//! command since its add allowed. After a delete, an add starts with no effects.
//!
//! Groups in buckets: a group's level is one above the highest level of the groups in its buckets. A group that is in
//! another's bucket keeps its level. So no group leads back to itself, and no chain is longer than [`MAX_LEVEL`].
//!
//! Closed groups: a group whose buckets send only to ports that are its owner's alone. Such a group may take any packet, if its owner has
//! no other ports at the switch. So a rule may send it packets outside of the flowspace, and from then on the group must stay closed.
//!
//! In: buckets that were parsed without error. Out: a few numbers for each group. It never checks the sender;
//! `crate::owned` does.

use crate::excess::{Excess, MAX_LEVEL, TooMany};
use crate::fanout::{Fanout, GROUP_ALL, MAX_GROUP_ACTIONS};
use abi::command::GroupMod;
use flow::Action;
use flow::canonical::{RawBucket, actions_raw, buckets_raw};

/// How many other groups one group may have in its buckets. The kernel refuses more. The limit allows replication to
/// each link of a large switch, with a fast-failover group for each link.
pub(crate) const MAX_NESTED: usize = 64;

/// OFPAT_GROUP (1.3.5, 7.2.5).
const GROUP_ACTION: u16 = 22;

/// OFPG_ANY: a bucket watches no group.
const NO_GROUP: u32 = 0xffff_ffff;

/// The result of the check of buckets against the bounds of their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Whether a packet-out may use them.
    pub packet_out: Result<(), Excess>,
    /// Whether they send only to ports that are the owner's alone.
    pub is_closed: bool,
}

/// What a group may do, by all commands since it was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupEffects {
    /// The groups to which its buckets send packets, and the groups that they watch. The second number is how often one
    /// packet is sent there.
    pub nested: Vec<(u32, u32)>,
    /// What its buckets do, without those groups.
    pub fanout: Fanout,
    /// 1 if its buckets contain no groups.
    pub level: u8,
    /// Whether a packet-out may use it, apart from the groups in its buckets.
    pub packet_out: Result<(), Excess>,
    /// Whether its buckets send only to ports that are the owner's alone, without other groups. Then any packet may enter.
    pub is_closed: bool,
    /// Whether a rule or a packet-out relied on that. Then it must stay so. No switch forgets a rule because the kernel does, so
    /// this stays until the group is deleted.
    pub takes_any: bool,
    /// The number of groups whose buckets contain it.
    pub named_by: u32,
    /// Whether a bounded packet-out has used it.
    pub is_sent_to: bool,
}

impl GroupEffects {
    /// The effects of these buckets, whose groups have these levels.
    pub fn of(
        it: &GroupMod<'_>,
        judged: Judged,
        level_of: impl Fn(u32) -> u8,
    ) -> Result<GroupEffects, Excess> {
        let fanout = Fanout::of_group(it);
        if fanout.actions > MAX_GROUP_ACTIONS {
            return Err(Excess::TooMany(TooMany::Actions(fanout.actions, MAX_GROUP_ACTIONS)));
        }
        let nested = nested_in(it)?;
        let level = 1 + nested.iter().map(|(group_id, _)| level_of(*group_id)).max().unwrap_or(0);
        if level > MAX_LEVEL {
            return Err(Excess::Nesting(it.group_id));
        }
        let Judged { packet_out, is_closed } = judged;
        let (named_by, is_sent_to, takes_any) = (0, false, false);
        Ok(GroupEffects { nested, fanout, level, packet_out, is_closed, takes_any, named_by, is_sent_to })
    }

    /// Adds the effects of new buckets.
    pub fn with(&self, new: GroupEffects, group_id: u32) -> Result<GroupEffects, Excess> {
        if self.named_by > 0 && new.level > self.level {
            return Err(Excess::Nesting(group_id));
        }
        if self.takes_any && !new.is_closed {
            return Err(Excess::OpenGroup(group_id));
        }
        let mut nested = self.nested.clone();
        for (group_id, times) in new.nested {
            let there = put(&mut nested, group_id);
            *there = times.max(*there);
        }
        if nested.len() > MAX_NESTED {
            return Err(Excess::TooMany(TooMany::Nested(MAX_NESTED)));
        }
        let (level, packet_out) = (self.level.max(new.level), self.packet_out.and(new.packet_out));
        let (fanout, is_closed) = (self.fanout.or(new.fanout), self.is_closed && new.is_closed);
        Ok(GroupEffects { nested, fanout, level, packet_out, is_closed, ..self.clone() })
    }
}

/// The count for this group, which is 0 if it is new.
fn put(nested: &mut Vec<(u32, u32)>, group_id: u32) -> &mut u32 {
    let place = nested.iter().position(|(there, _)| *there == group_id).unwrap_or_else(|| {
        nested.push((group_id, 0));
        nested.len() - 1
    });
    &mut nested[place].1
}

/// The groups in the buckets. In a group of type ALL, a packet takes each bucket; in other types, one bucket.
fn nested_in(it: &GroupMod<'_>) -> Result<Vec<(u32, u32)>, Excess> {
    let mut nested = Vec::new();
    for bucket in buckets_raw(it.buckets).map_while(Result::ok) {
        let mut here = Vec::new();
        groups_in(bucket.actions).for_each(|group_id| *put(&mut here, group_id) += 1);
        watched_by(&bucket).into_iter().for_each(|group_id| *put(&mut here, group_id) += 0);
        for (group_id, times) in here {
            if group_id == it.group_id {
                return Err(Excess::Nesting(it.group_id));
            }
            let there = put(&mut nested, group_id);
            *there = if it.group_type == GROUP_ALL { there.saturating_add(times) } else { times.max(*there) };
        }
        if nested.len() > MAX_NESTED {
            return Err(Excess::TooMany(TooMany::Nested(MAX_NESTED)));
        }
    }
    Ok(nested)
}

/// The groups to which the actions send packets.
pub(crate) fn groups_in(actions: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let groups = actions_raw(actions).map_while(Result::ok).filter(|raw| raw.kind == GROUP_ACTION);
    groups.filter_map(|raw| match raw.read() {
        Ok(Action::Group(group_id)) => Some(group_id),
        _ => None,
    })
}

/// The groups to which the buckets send packets, or which they watch.
pub(crate) fn groups_in_buckets<'a>(it: &GroupMod<'a>) -> impl Iterator<Item = u32> + use<'a> {
    buckets_raw(it.buckets)
        .map_while(Result::ok)
        .flat_map(|bucket| groups_in(bucket.actions).chain(watched_by(&bucket)))
}

fn watched_by(bucket: &RawBucket<'_>) -> Option<u32> {
    Some(bucket.watch_group).filter(|group_id| *group_id != NO_GROUP)
}
