//! The owners of groups and meters. These have no cookie, so the kernel records which zone added them.
//!
//! ```text
//!   group mod, meter mod ──> Owned::on_group_mod, on_meter_mod ──> Change ──sent──> Owned::on_sent
//!   the groups and meters that a rule refers to ──> Ok, or why not (Excess)
//! ```
//!
//! The zone that first adds a group or meter owns it until that zone deletes it. Both take effect when the command is
//! sent. If southbound cannot send it, nothing changes. A group of another controller has no owner. Only a zone with
//! `rule.write.others` may change it or refer to it. So a claim takes effect only after the switch has confirmed the
//! command. An error of the switch (for example, the group exists already) or no answer ends the claim. Until the
//! confirmation, no zone may change or delete the group, or refer to it.
//!
//! After a restart of the node, a group keeps its owner, but nothing is known of what it does. When its owner modifies it,
//! that is a claim too: from the confirmation on, it does what the modify says. If that claim fails, it stays the owner's.
//!
//! All workers share one record of the owners ([`crate::claims`]). A worker reads a switch's owners there when the
//! switch connects. A disconnected switch keeps its groups, and they keep their owners.
//!
//! The record also holds what a group may do ([`crate::group_effects`]). So no app can do through a packet-out to a
//! group what it may not do directly.
//!
//! It never sends anything, and never asks a switch for its groups.

use crate::claims::{Claim, Claims};
use crate::excess::{Excess, TooMany};
use crate::fanout::Fanout;
use crate::group_effects::{GroupEffects, Judged, groups_in, groups_in_buckets};
use crate::group_or_meter::{GroupOrMeter, MAX_OWNED, Place};
use abi::ZoneId;
use abi::command::{GroupMod, MeterMod};
use flow::DatapathId;
use flow::canonical::instructions_raw;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// OFPG_ALL and OFPM_ALL: in a delete, all of them.
const ALL_GROUPS: u32 = 0xffff_fffc;
const ALL_METERS: u32 = 0xffff_ffff;

/// Both `ofp_group_mod_command` and `ofp_meter_mod_command` use these numbers.
const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

/// The sender of a command, and its rights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// The zone.
    pub zone: ZoneId,
    /// Whether the capability that the command needs has bounds.
    pub bounded: bool,
    /// Whether it holds `rule.write.others`.
    pub others_too: bool,
}

/// Tickets of commands that wait for a switch to confirm a claim have these bits. No app's ticket may.
pub(crate) const CLAIM_TICKET: u64 = 3 << 62;

/// The app's view of a command that claims something. Its ticket differs from the one in the switch's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// The app's ticket.
    pub ticket: u64,
    /// Whether it wants a receipt.
    pub wants_receipt: bool,
}

/// The assumed effect of a group whose effects are unknown: it may flood.
const UNKNOWN: Fanout = Fanout { actions: 1, ports: 0, floods: 1, controllers: 0, tables: 0, groups: 0 };

/// What to record of a command once it is sent to its switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// This zone owns it once the switch has confirmed it, with this ticket. A group may do this.
    Claim {
        place: Place,
        zone: ZoneId,
        ticket: u64,
        claimant: Claimant,
        group_effects: Option<Box<GroupEffects>>,
    },
    /// The group may also do this from then on.
    Grow { place: Place, group_effects: Box<GroupEffects> },
    /// It has no owner any more.
    Release(Place),
    /// All of these have no owner any more.
    ReleaseAll { first: Place, last: Place },
}

impl Change {
    /// The ticket to send the command with, if the switch must confirm it.
    pub fn claim(&self) -> Option<u64> {
        match self {
            Change::Claim { ticket, .. } => Some(*ticket),
            _ => None,
        }
    }
}

impl Change {
    /// The switch at which the command deletes something.
    pub fn deletes_at(&self) -> Option<DatapathId> {
        match self {
            Change::Release((datapath, _)) | Change::ReleaseAll { first: (datapath, _), .. } => {
                Some(*datapath)
            }
            _ => None,
        }
    }
}

/// The owner, and the claim's ticket if the switch has not confirmed it yet.
#[derive(Clone, Debug)]
struct Owner {
    zone: ZoneId,
    pending: Option<u64>,
    /// Whether the kernel compared its effects with the zone's current grant.
    is_judged: bool,
    /// Whether the zone owned it before this claim. Then it still does if the claim fails.
    was_owned: bool,
    /// The effects, if it is a group.
    group_effects: Option<Box<GroupEffects>>,
}

/// The groups and meters of one worker's switches that have an owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owned {
    owners: BTreeMap<Place, Owner>,
    /// The owners of all workers.
    claims: Arc<Claims>,
    /// The number that identifies this worker there.
    worker: u32,
    /// The claims that wait for their switch, by ticket. Each belongs to an owner, so there are no more claims than
    /// owners.
    pending: BTreeMap<u64, (Place, Claimant)>,
    last_claim: u64,
    /// How often groups were looked up since the last [`Self::take_visits`].
    visits: Cell<u64>,
}

impl Owned {
    /// Creates a record that shares its owners with other workers.
    pub fn sharing(claims: Arc<Claims>) -> Owned {
        let worker = claims.join();
        Owned { claims, worker, ..Owned::default() }
    }

    /// A switch has connected here: its groups and meters keep their owners, even if it was at another worker.
    pub fn on_switch_up(&mut self, datapath: DatapathId) {
        self.on_switch_down(datapath);
        for (target, Claim { zone, is_judged, group_effects, .. }) in
            self.claims.take_over(datapath, self.worker)
        {
            let group_effects = group_effects
                .map(|group_effects| Box::new(GroupEffects { is_sent_to: false, ..*group_effects }));
            self.owners.entry((datapath, target)).or_insert(Owner {
                zone,
                pending: None,
                is_judged,
                was_owned: true,
                group_effects,
            });
        }
        self.count_names(datapath);
    }

    /// Counts for each group of a switch how many groups have it in their buckets.
    fn count_names(&mut self, datapath: DatapathId) {
        let nested: Vec<_> =
            self.groups_of(datapath).flat_map(|group_effects| &group_effects.nested).copied().collect();
        let all = (datapath, GroupOrMeter::Group(0))..=(datapath, GroupOrMeter::Group(u32::MAX));
        for group_effects in
            self.owners.range_mut(all).filter_map(|(_, owner)| owner.group_effects.as_deref_mut())
        {
            group_effects.named_by = 0;
        }
        for (group_id, _) in nested {
            if let Some(group_effects) = self.group_effects_mut(datapath, group_id) {
                group_effects.named_by += 1;
            }
        }
    }

    /// A switch has disconnected. Its open claims are settled separately.
    pub fn on_switch_down(&mut self, datapath: DatapathId) {
        self.owners.retain(|(at, _), owner| *at != datapath || owner.pending.is_some());
    }

    /// The groups and meters of apps at a switch that the switch has confirmed.
    pub fn owned_by_apps(&self, datapath: DatapathId) -> impl Iterator<Item = GroupOrMeter> {
        let all = (datapath, GroupOrMeter::Group(0))..=(datapath, GroupOrMeter::Meter(u32::MAX));
        let of_apps = |owner: &Owner| owner.zone != ZoneId::KERNEL && owner.pending.is_none();
        self.owners.range(all).filter(move |(_, owner)| of_apps(owner)).map(|((_, target), _)| *target)
    }

    /// Those of this zone.
    pub fn owned_by(&self, zone: ZoneId, datapath: DatapathId) -> Vec<GroupOrMeter> {
        self.owned_by_apps(datapath).filter(|target| self.is_of(zone, (datapath, *target))).collect()
    }

    fn groups_of(&self, datapath: DatapathId) -> impl Iterator<Item = &GroupEffects> {
        let all = (datapath, GroupOrMeter::Group(0))..=(datapath, GroupOrMeter::Group(u32::MAX));
        self.owners.range(all).filter_map(|(_, owner)| owner.group_effects.as_deref())
    }

    /// Whether an app owns this meter.
    pub fn is_apps_meter(&self, datapath: DatapathId, meter_id: u32) -> bool {
        let owner = self.owners.get(&(datapath, GroupOrMeter::Meter(meter_id)));
        owner.is_some_and(|owner| owner.zone != ZoneId::KERNEL)
    }

    /// From now on, this meter is the kernel's, instead of the one that it had at this switch. No app owns it.
    pub fn reserve_meter(&mut self, datapath: DatapathId, meter_id: u32) {
        self.release_meter(datapath);
        let zone = ZoneId::KERNEL;
        let owner = Owner { zone, pending: None, is_judged: true, was_owned: false, group_effects: None };
        self.owners.insert((datapath, GroupOrMeter::Meter(meter_id)), owner);
    }

    /// The kernel no longer has a meter at this switch.
    pub fn release_meter(&mut self, datapath: DatapathId) {
        let mut meters =
            self.owners.range((datapath, GroupOrMeter::Meter(0))..=(datapath, GroupOrMeter::Meter(u32::MAX)));
        if let Some((place, _)) = meters.find(|(_, owner)| owner.zone == ZoneId::KERNEL) {
            self.release(*place);
        }
    }

    /// Returns how often groups were looked up in groups since the last call. It is the cost of a command: one that names a few
    /// groups may lead to thousands.
    pub fn take_visits(&self) -> u64 {
        self.visits.take()
    }

    fn count_visit(&self) {
        self.visits.set(self.visits.get() + 1);
    }

    /// Whether claims wait for their switch.
    #[inline]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes the result of a claim's command, and returns its zone; `None` if no claim has that ticket.
    pub fn settle(&mut self, ticket: u64, is_done: bool) -> Option<(ZoneId, Claimant)> {
        let (place, claimant) = self.pending.remove(&ticket)?;
        let owner = self.owners.get_mut(&place)?;
        let (zone, was_owned) = (owner.zone, owner.was_owned);
        owner.pending = None;
        if is_done {
            self.claims.confirm(place, self.worker);
        } else {
            self.release(place);
        }
        if !is_done && was_owned {
            // The zone may delete it still.
            self.claims.keep(place, zone, self.worker);
            let owner = Owner { zone, pending: None, is_judged: false, was_owned, group_effects: None };
            self.owners.insert(place, owner);
        }
        Some((zone, claimant))
    }

    /// The command with this change was sent to its switch.
    pub fn on_sent(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Claim { place, zone, ticket, claimant, group_effects } => {
                let was_owned = self.owners.contains_key(&place);
                self.release(place);
                self.claims.claim(place, zone, group_effects.as_deref(), self.worker);
                self.name_nested(place.0, group_effects.as_deref(), None);
                let owner = Owner { zone, pending: Some(ticket), is_judged: true, was_owned, group_effects };
                self.owners.insert(place, owner);
                self.pending.insert(ticket, (place, claimant));
            }
            Change::Grow { place, group_effects } => {
                let before = self.owners.get_mut(&place).and_then(|owner| owner.group_effects.take());
                self.name_nested(place.0, Some(&group_effects), before.as_deref());
                if group_effects.is_sent_to {
                    group_effects.nested.iter().for_each(|(nested, _)| self.mark_sent_to(place.0, *nested));
                }
                self.claims.grow(place, &group_effects, self.worker);
                if let Some(owner) = self.owners.get_mut(&place) {
                    owner.group_effects = Some(group_effects);
                }
            }
            Change::Release(place) => self.release(place),
            Change::ReleaseAll { first, last } => {
                let all: Vec<Place> = self.owners.range(first..=last).map(|(place, _)| *place).collect();
                all.into_iter().for_each(|place| self.release(place));
            }
        }
    }

    /// It has no owner any more.
    pub fn release(&mut self, place: Place) {
        let Some(owner) = self.owners.remove(&place) else { return };
        for (group_id, _) in owner.group_effects.iter().flat_map(|group_effects| &group_effects.nested) {
            if let Some(group_effects) = self.group_effects_mut(place.0, *group_id) {
                group_effects.named_by = group_effects.named_by.saturating_sub(1);
            }
        }
        owner.pending.map(|ticket| self.pending.remove(&ticket));
        if owner.zone != ZoneId::KERNEL {
            self.claims.release(place, self.worker);
        }
    }

    /// Counts one more use for the groups that are new in a group's buckets.
    fn name_nested(
        &mut self,
        datapath: DatapathId,
        group_effects: Option<&GroupEffects>,
        before: Option<&GroupEffects>,
    ) {
        let was_there = |group_id: u32| {
            before.is_some_and(|before| before.nested.iter().any(|(there, _)| *there == group_id))
        };
        for (group_id, _) in group_effects.iter().flat_map(|group_effects| &group_effects.nested) {
            if was_there(*group_id) {
                continue;
            }
            if let Some(nested) = self.group_effects_mut(datapath, *group_id) {
                nested.named_by += 1;
            }
        }
    }

    fn group_effects(&self, datapath: DatapathId, group_id: u32) -> Option<&GroupEffects> {
        self.owners.get(&(datapath, GroupOrMeter::Group(group_id)))?.group_effects.as_deref()
    }

    /// Whether a group of an app sends only to ports that are the app's alone.
    pub fn is_closed(&self, datapath: DatapathId, group_id: u32) -> bool {
        self.group_effects(datapath, group_id).is_some_and(|group_effects| group_effects.is_closed)
    }

    /// A rule or a packet-out sends packets outside the flowspace to these groups, which must stay closed from now on.
    pub fn note_takes_any(&mut self, datapath: DatapathId, actions: &[u8]) {
        for group_id in groups_in(actions) {
            let Some(group_effects) = self.group_effects_mut(datapath, group_id).filter(|it| it.is_closed)
            else {
                continue;
            };
            group_effects.takes_any = true;
            let group_effects = group_effects.clone();
            self.claims.grow((datapath, GroupOrMeter::Group(group_id)), &group_effects, self.worker);
        }
    }

    /// Whether this zone owns it.
    pub fn is_of(&self, zone: ZoneId, place: Place) -> bool {
        self.owners.get(&place).is_some_and(|owner| owner.zone == zone)
    }

    fn group_effects_mut(&mut self, datapath: DatapathId, group_id: u32) -> Option<&mut GroupEffects> {
        self.owners.get_mut(&(datapath, GroupOrMeter::Group(group_id)))?.group_effects.as_deref_mut()
    }

    /// A zone has a different grant: the effects of its groups and meters were checked against the old one.
    pub fn on_other_grant(&mut self, zone: ZoneId) {
        self.owners.values_mut().filter(|owner| owner.zone == zone).for_each(|owner| owner.is_judged = false);
        self.claims.on_other_grant(zone);
    }

    /// Checks a group mod. Returns the change to record if it is allowed. `judged`: whether a packet-out of the owner
    /// may use the group.
    pub fn on_group_mod(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        judged: Judged,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if it.command == DELETE && it.group_id == ALL_GROUPS {
            return self.delete_all(asker, datapath, [GroupOrMeter::Group(0), GroupOrMeter::Group(u32::MAX)]);
        }
        let place = (datapath, GroupOrMeter::Group(it.group_id));
        if it.command == DELETE {
            let is_named = self
                .group_effects(datapath, it.group_id)
                .is_some_and(|group_effects| group_effects.named_by > 0);
            let change = self.on_delete(asker, place)?;
            return if is_named { Err(Excess::Nested(it.group_id)) } else { Ok(change) };
        }
        for group_id in groups_in_buckets(it).filter(|group_id| *group_id != it.group_id) {
            self.check(asker, datapath, GroupOrMeter::Group(group_id))?;
        }
        let level_of =
            |group_id| self.group_effects(datapath, group_id).map_or(0, |group_effects| group_effects.level);
        let group_effects = GroupEffects::of(it, judged, level_of)?;
        let change = self.on_change(asker, place, it.command, claimant, Some(group_effects))?;
        self.check_fanout(datapath, it.group_id, &change)?;
        Ok(change)
    }

    /// Checks that one packet becomes no more than allowed, through this group and the groups that contain it.
    fn check_fanout(&self, datapath: DatapathId, group_id: u32, change: &Change) -> Result<(), Excess> {
        let (Change::Claim { group_effects: Some(group_effects), .. } | Change::Grow { group_effects, .. }) =
            change
        else {
            return Ok(());
        };
        let (changed, mut known) = (Some((group_id, &**group_effects)), HashMap::new());
        self.total(datapath, group_effects, changed, &mut known).check_all()?;
        if group_effects.named_by == 0 {
            return Ok(());
        }
        let nesting = self.groups_of(datapath).filter(|group_effects| !group_effects.nested.is_empty());
        nesting
            .map(|group_effects| self.total(datapath, group_effects, changed, &mut known))
            .try_for_each(|total| total.check_all())
    }

    /// The total of these effects with all groups in them, one of which may be about to change. `known`: the totals of the
    /// groups that were met before, since many groups may have the same groups in them.
    fn total(
        &self,
        datapath: DatapathId,
        group_effects: &GroupEffects,
        changed: Option<(u32, &GroupEffects)>,
        known: &mut HashMap<u32, Fanout>,
    ) -> Fanout {
        let mut sum = group_effects.fanout;
        for (group_id, times) in &group_effects.nested {
            self.count_visit();
            let total = known.get(group_id).copied().unwrap_or_else(|| {
                let nested = match changed {
                    Some((id, group_effects)) if id == *group_id => Some(group_effects),
                    _ => self.group_effects(datapath, *group_id),
                };
                let total = nested.map_or(UNKNOWN, |nested| self.total(datapath, nested, changed, known));
                known.insert(*group_id, total);
                total
            });
            sum = sum.and(total.times(*times));
        }
        sum
    }

    /// What the groups in these actions make of one packet.
    pub fn fanout_of_groups(&self, datapath: DatapathId, actions: &[u8]) -> Fanout {
        let mut known = HashMap::new();
        groups_in(actions).fold(Fanout::default(), |sum, group_id| {
            let group_effects = self.group_effects(datapath, group_id);
            let total = |group_effects| self.total(datapath, group_effects, None, &mut known);
            sum.and(group_effects.map_or(UNKNOWN, total))
        })
    }

    /// Checks a meter mod, like [`Self::on_group_mod`].
    pub fn on_meter_mod(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        it: &MeterMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if it.command == DELETE && it.meter_id == ALL_METERS {
            return self.delete_all(asker, datapath, [GroupOrMeter::Meter(0), GroupOrMeter::Meter(u32::MAX)]);
        }
        let place = (datapath, GroupOrMeter::Meter(it.meter_id));
        if it.command == DELETE {
            return self.on_delete(asker, place);
        }
        self.on_change(asker, place, it.command, claimant, None)
    }

    /// Checks what the instructions of a rule refer to.
    pub fn check_instructions(
        &self,
        asker: Asker,
        datapath: DatapathId,
        instructions: &[u8],
    ) -> Result<(), Excess> {
        for raw in instructions_raw(instructions).map_while(Result::ok) {
            if let Some(meter_id) = raw.meter() {
                self.check(asker, datapath, GroupOrMeter::Meter(meter_id))?;
            } else if let Some(actions) = raw.action_bytes() {
                for group_id in groups_in(actions) {
                    self.check(asker, datapath, GroupOrMeter::Group(group_id))?;
                }
            }
        }
        Ok(())
    }

    /// Checks the groups that a packet-out uses. If packet-outs are bounded, these groups may from then on do only what
    /// packet-outs may do: without a barrier, a switch may change a group before it sends the packet.
    pub fn check_packet_out(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        actions: &[u8],
    ) -> Result<(), Excess> {
        let mut seen = BTreeSet::new();
        for group_id in groups_in(actions) {
            self.check(asker, datapath, GroupOrMeter::Group(group_id))?;
            if asker.bounded {
                self.check_sent_to(datapath, group_id, &mut seen)?;
            }
        }
        if asker.bounded {
            groups_in(actions).for_each(|group_id| self.mark_sent_to(datapath, group_id));
        }
        Ok(())
    }

    /// Whether a packet-out may use this group and the groups in it, which are at most `MAX_LEVEL` deep. Those in `seen` were
    /// checked before.
    fn check_sent_to(
        &self,
        datapath: DatapathId,
        group_id: u32,
        seen: &mut BTreeSet<u32>,
    ) -> Result<(), Excess> {
        self.count_visit();
        if !seen.insert(group_id) {
            return Ok(());
        }
        let group_effects = self.group_effects(datapath, group_id).ok_or(Excess::UnjudgedGroup(group_id))?;
        group_effects.packet_out?;
        group_effects.nested.iter().try_for_each(|(nested, _)| self.check_sent_to(datapath, *nested, seen))
    }

    fn mark_sent_to(&mut self, datapath: DatapathId, group_id: u32) {
        let Some(group_effects) =
            self.group_effects_mut(datapath, group_id).filter(|group_effects| !group_effects.is_sent_to)
        else {
            return;
        };
        group_effects.is_sent_to = true;
        for (nested, _) in group_effects.nested.clone() {
            self.mark_sent_to(datapath, nested);
        }
    }

    /// Whether a changed group stays within the bounds of the packet-outs that used it.
    pub fn check_senders(&self, change: &Change) -> Result<(), Excess> {
        let Change::Grow { place: (datapath, _), group_effects } = change else { return Ok(()) };
        if !group_effects.is_sent_to {
            return Ok(());
        }
        group_effects.packet_out?;
        let mut seen = BTreeSet::new();
        let mut nested = group_effects.nested.iter();
        nested.try_for_each(|(nested, _)| self.check_sent_to(*datapath, *nested, &mut seen))
    }

    fn check(&self, asker: Asker, datapath: DatapathId, target: GroupOrMeter) -> Result<(), Excess> {
        let owner = self.owners.get(&(datapath, target));
        // Other zones' groups may exceed the sender's bounds; the kernel's meter only drops.
        let is_kernels = owner.is_some_and(|owner| owner.zone == ZoneId::KERNEL);
        if asker.others_too && (!asker.bounded || is_kernels) {
            return Ok(());
        }
        match owner {
            Some(owner) if owner.zone == asker.zone && owner.pending.is_some() => Err(Excess::NotYet),
            Some(owner) if owner.zone == asker.zone && asker.bounded && !owner.is_judged => {
                Err(target.excess_unjudged())
            }
            Some(owner) if owner.zone == asker.zone => Ok(()),
            Some(Owner { zone: ZoneId::KERNEL, .. }) => Err(target.excess_of_kernels()),
            _ => Err(target.excess()),
        }
    }

    /// Checks whether the sender may change or delete it.
    fn check_change(&self, asker: Asker, (datapath, target): Place) -> Result<(), Excess> {
        if target.is_reserved() && !asker.others_too {
            return Err(Excess::Reserved);
        }
        match self.owners.get(&(datapath, target)) {
            // No app may change it, whatever its capabilities: the kernel adds it only once per session.
            Some(Owner { zone: ZoneId::KERNEL, .. }) => Err(target.excess_of_kernels()),
            Some(owner) if owner.zone != asker.zone => Err(target.excess()),
            Some(Owner { pending: Some(_), .. }) => Err(Excess::NotYet),
            Some(_) => Ok(()),
            None if asker.others_too && !asker.bounded => Ok(()),
            None => Err(target.excess()),
        }
    }

    fn on_delete(&self, asker: Asker, place: Place) -> Result<Change, Excess> {
        self.check_change(asker, place).map(|()| Change::Release(place))
    }

    fn on_change(
        &mut self,
        asker: Asker,
        place: Place,
        command: u16,
        claimant: Claimant,
        group_effects: Option<GroupEffects>,
    ) -> Result<Change, Excess> {
        let (_, target) = place;
        if command == ADD && !self.owners.contains_key(&place) && (!target.is_reserved() || asker.others_too)
        {
            if self.claims.count(asker.zone) >= MAX_OWNED {
                return Err(Excess::TooMany(TooMany::Owned(MAX_OWNED)));
            }
            let (zone, ticket, group_effects) = (asker.zone, self.next_claim(), group_effects.map(Box::new));
            return Ok(Change::Claim { place, zone, ticket, claimant, group_effects });
        }
        self.check_change(asker, place)?;
        if command == MODIFY && asker.bounded && self.is_unknown(place) {
            let (zone, ticket, group_effects) = (asker.zone, self.next_claim(), group_effects.map(Box::new));
            return Ok(Change::Claim { place, zone, ticket, claimant, group_effects });
        }
        let before = self.owners.get(&place).and_then(|owner| owner.group_effects.as_deref());
        Ok(match (before, group_effects, target) {
            (Some(before), Some(new), GroupOrMeter::Group(group_id)) => {
                Change::Grow { place, group_effects: Box::new(before.with(new, group_id)?) }
            }
            _ => Change::Nothing,
        })
    }

    /// Whether it was restored, and nothing is known of what it does.
    fn is_unknown(&self, place: Place) -> bool {
        self.owners.get(&place).is_some_and(|owner| !owner.is_judged && owner.group_effects.is_none())
    }

    fn next_claim(&mut self) -> u64 {
        self.last_claim += 1;
        CLAIM_TICKET | self.last_claim
    }

    fn delete_all(
        &self,
        asker: Asker,
        datapath: DatapathId,
        [first, last]: [GroupOrMeter; 2],
    ) -> Result<Change, Excess> {
        let (first, last) = ((datapath, first), (datapath, last));
        let mut meant = self.owners.range(first..=last);
        // A group without a known owner may belong to another controller.
        if !asker.others_too || asker.bounded || meant.any(|(_, owner)| owner.zone != asker.zone) {
            return Err(Excess::AllAtOnce);
        }
        Ok(Change::ReleaseAll { first, last })
    }
}

#[cfg(test)]
mod tests;
