//! Whose the groups and meters of the switches are: they have no cookie, so the kernel remembers who made which.
//!
//! ```text
//!   group mod, meter mod ──> Owned::on_group_mod, on_meter_mod ──> Change ──sent──> Owned::on_sent
//!   the groups and meters that a rule refers to ──> Ok, or whose they are not (Excess)
//! ```
//!
//! Whoever first asks for one has it, until that zone deletes it. Both count once the command is on its way to the switch: one that southbound
//! could not take leaves all as it was. What another controller made is nobody's, and nobody without
//! `rule.write.others` may touch it or refer to it. So a claim counts only once the switch has said that the command is done: an error of the
//! switch, that the group is there already, or no answer takes the claim back. Until then it may not be changed, deleted or referred to.
//!
//! All workers keep their owners in one place ([`crate::claims`]), from which each takes those of a switch that comes up at it: a switch that is
//! away keeps its groups, and so do their owners.
//!
//! What a group may do is kept beside its owner ([`crate::deeds`]), so that no packet-out does through it what its sender may not.
//!
//! Never sends anything, and never asks a switch what it has.

use crate::claims::{Claim, Claims};
use crate::deeds::{Deeds, Judged, groups_in, groups_in_buckets};
use crate::excess::Excess;
use crate::fanout::Fanout;
use crate::thing::{MAX_OWNED, Place, Thing};
use abi::ZoneId;
use abi::command::{GroupMod, MeterMod};
use flow::DatapathId;
use flow::canonical::instructions_raw;
use std::collections::BTreeMap;
use std::sync::Arc;

/// OFPG_ALL and OFPM_ALL: in a delete, all of them.
const ALL_GROUPS: u32 = 0xffff_fffc;
const ALL_METERS: u32 = 0xffff_ffff;

/// `ofp_group_mod_command` and `ofp_meter_mod_command` number alike what both have.
const ADD: u16 = 0;
const DELETE: u16 = 2;

/// Who asks, and how far it may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// The zone.
    pub zone: ZoneId,
    /// Whether the capability by which it asks is bounded.
    pub bounded: bool,
    /// Whether it holds `rule.write.others`.
    pub others_too: bool,
}

/// Tickets of commands that wait for the switch to say that a claim holds have these bits, and no app's may.
pub(crate) const CLAIM_TICKET: u64 = 3 << 62;

/// A command that claims something: how the app knows it, which is not how the switch's answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// The app's ticket.
    pub ticket: u64,
    /// Whether it wants a receipt.
    pub wants_receipt: bool,
}

/// What a group does of which nobody here knows what it does: it may flood.
const UNKNOWN: Fanout = Fanout { actions: 1, ports: 0, floods: 1, controllers: 0, tables: 0, groups: 0 };

/// What follows from a command once it is on its way to its switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// It is this zone's once the switch says so, which is known by this ticket; a group may do this.
    Claim { place: Place, zone: ZoneId, ticket: u64, claimant: Claimant, deeds: Option<Box<Deeds>> },
    /// The group may do this from then on.
    Grow { place: Place, deeds: Box<Deeds> },
    /// It is nobody's any more.
    Release(Place),
    /// Neither are all of these.
    ReleaseAll { first: Place, last: Place },
}

impl Change {
    /// The ticket under which the command is to be sent if the switch must confirm it.
    pub fn claim(&self) -> Option<u64> {
        match self {
            Change::Claim { ticket, .. } => Some(*ticket),
            _ => None,
        }
    }
}

impl Change {
    /// The switch at which something is deleted by it.
    pub fn deletes_at(&self) -> Option<DatapathId> {
        match self {
            Change::Release((datapath, _)) | Change::ReleaseAll { first: (datapath, _), .. } => {
                Some(*datapath)
            }
            _ => None,
        }
    }
}

/// Whose something is, and the claim's ticket if the switch has not said yet that it holds.
#[derive(Clone, Debug)]
struct Owner {
    zone: ZoneId,
    pending: Option<u64>,
    /// Whether what it does was compared with the grant that its zone has now.
    is_judged: bool,
    /// Of a group.
    deeds: Option<Box<Deeds>>,
}

/// The groups and meters of one worker's switches that have an owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owned {
    owners: BTreeMap<Place, Owner>,
    /// Those of all workers.
    claims: Arc<Claims>,
    /// By which they know this one.
    worker: u32,
    /// The claims that wait for their switch, by ticket: each is one of the owners', so there are no more than those.
    pending: BTreeMap<u64, (Place, Claimant)>,
    last_claim: u64,
}

impl Owned {
    /// A record that shares its owners with other workers'.
    pub fn sharing(claims: Arc<Claims>) -> Owned {
        let worker = claims.join();
        Owned { claims, worker, ..Owned::default() }
    }

    /// A switch has come up here: its groups and meters are whose they were, wherever it was before.
    pub fn on_switch_up(&mut self, datapath: DatapathId) {
        self.on_switch_down(datapath);
        for (thing, Claim { zone, is_judged, deeds, .. }) in self.claims.take_over(datapath, self.worker) {
            let deeds = deeds.map(|deeds| Box::new(Deeds { is_sent_to: false, ..*deeds }));
            self.owners.entry((datapath, thing)).or_insert(Owner { zone, pending: None, is_judged, deeds });
        }
        self.count_names(datapath);
    }

    /// In the buckets of how many groups each group of a switch is.
    fn count_names(&mut self, datapath: DatapathId) {
        let nested: Vec<_> = self.groups_of(datapath).flat_map(|deeds| &deeds.nested).copied().collect();
        let all = (datapath, Thing::Group(0))..=(datapath, Thing::Group(u32::MAX));
        for deeds in self.owners.range_mut(all).filter_map(|(_, owner)| owner.deeds.as_deref_mut()) {
            deeds.named_by = 0;
        }
        for (group_id, _) in nested {
            if let Some(deeds) = self.deeds_mut(datapath, group_id) {
                deeds.named_by += 1;
            }
        }
    }

    /// A switch is away. Claims of which it has not said whether they hold are settled by themselves.
    pub fn on_switch_down(&mut self, datapath: DatapathId) {
        self.owners.retain(|(at, _), owner| *at != datapath || owner.pending.is_some());
    }

    /// What apps own at a switch, as far as it has said that it has it.
    pub fn things_of_apps(&self, datapath: DatapathId) -> impl Iterator<Item = Thing> {
        let all = (datapath, Thing::Group(0))..=(datapath, Thing::Meter(u32::MAX));
        let of_apps = |owner: &Owner| owner.zone != ZoneId::KERNEL && owner.pending.is_none();
        self.owners.range(all).filter(move |(_, owner)| of_apps(owner)).map(|((_, thing), _)| *thing)
    }

    fn groups_of(&self, datapath: DatapathId) -> impl Iterator<Item = &Deeds> {
        let all = (datapath, Thing::Group(0))..=(datapath, Thing::Group(u32::MAX));
        self.owners.range(all).filter_map(|(_, owner)| owner.deeds.as_deref())
    }

    /// Whether an app owns this meter.
    pub fn is_apps_meter(&self, datapath: DatapathId, meter_id: u32) -> bool {
        let owner = self.owners.get(&(datapath, Thing::Meter(meter_id)));
        owner.is_some_and(|owner| owner.zone != ZoneId::KERNEL)
    }

    /// This meter, which no app owns, is the kernel's from now on, instead of the one that it had at this switch.
    pub fn reserve_meter(&mut self, datapath: DatapathId, meter_id: u32) {
        self.release_meter(datapath);
        let owner = Owner { zone: ZoneId::KERNEL, pending: None, is_judged: true, deeds: None };
        self.owners.insert((datapath, Thing::Meter(meter_id)), owner);
    }

    /// The kernel has no meter at this switch any more.
    pub fn release_meter(&mut self, datapath: DatapathId) {
        let mut meters = self.owners.range((datapath, Thing::Meter(0))..=(datapath, Thing::Meter(u32::MAX)));
        if let Some((place, _)) = meters.find(|(_, owner)| owner.zone == ZoneId::KERNEL) {
            self.release(*place);
        }
    }

    /// Whether claims wait for their switch.
    #[inline]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What became of the command of a claim: whose it was. `None` if nothing waits for that ticket.
    pub fn settle(&mut self, ticket: u64, is_done: bool) -> Option<(ZoneId, Claimant)> {
        let (place, claimant) = self.pending.remove(&ticket)?;
        let owner = self.owners.get_mut(&place)?;
        let zone = owner.zone;
        owner.pending = None;
        if is_done {
            self.claims.confirm(place, self.worker);
        } else {
            self.release(place);
        }
        Some((zone, claimant))
    }

    /// The command of which this follows is on its way to its switch.
    pub fn on_sent(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Claim { place, zone, ticket, claimant, deeds } => {
                self.release(place);
                self.claims.claim(place, zone, deeds.as_deref(), self.worker);
                self.name_nested(place.0, deeds.as_deref(), None);
                self.owners.insert(place, Owner { zone, pending: Some(ticket), is_judged: true, deeds });
                self.pending.insert(ticket, (place, claimant));
            }
            Change::Grow { place, deeds } => {
                let before = self.owners.get_mut(&place).and_then(|owner| owner.deeds.take());
                self.name_nested(place.0, Some(&deeds), before.as_deref());
                if deeds.is_sent_to {
                    deeds.nested.iter().for_each(|(nested, _)| self.mark_sent_to(place.0, *nested));
                }
                self.claims.grow(place, &deeds, self.worker);
                if let Some(owner) = self.owners.get_mut(&place) {
                    owner.deeds = Some(deeds);
                }
            }
            Change::Release(place) => self.release(place),
            Change::ReleaseAll { first, last } => {
                let all: Vec<Place> = self.owners.range(first..=last).map(|(place, _)| *place).collect();
                all.into_iter().for_each(|place| self.release(place));
            }
        }
    }

    /// It is nobody's any more.
    pub fn release(&mut self, place: Place) {
        let Some(owner) = self.owners.remove(&place) else { return };
        for (group_id, _) in owner.deeds.iter().flat_map(|deeds| &deeds.nested) {
            if let Some(deeds) = self.deeds_mut(place.0, *group_id) {
                deeds.named_by = deeds.named_by.saturating_sub(1);
            }
        }
        owner.pending.map(|ticket| self.pending.remove(&ticket));
        if owner.zone != ZoneId::KERNEL {
            self.claims.release(place, self.worker);
        }
    }

    /// The groups that are new among the nested are in one group's buckets more.
    fn name_nested(&mut self, datapath: DatapathId, deeds: Option<&Deeds>, before: Option<&Deeds>) {
        let was_there = |group_id: u32| {
            before.is_some_and(|before| before.nested.iter().any(|(there, _)| *there == group_id))
        };
        for (group_id, _) in deeds.iter().flat_map(|deeds| &deeds.nested) {
            if was_there(*group_id) {
                continue;
            }
            if let Some(nested) = self.deeds_mut(datapath, *group_id) {
                nested.named_by += 1;
            }
        }
    }

    fn deeds(&self, datapath: DatapathId, group_id: u32) -> Option<&Deeds> {
        self.owners.get(&(datapath, Thing::Group(group_id)))?.deeds.as_deref()
    }

    fn deeds_mut(&mut self, datapath: DatapathId, group_id: u32) -> Option<&mut Deeds> {
        self.owners.get_mut(&(datapath, Thing::Group(group_id)))?.deeds.as_deref_mut()
    }

    /// A zone has another grant than before: what its groups and meters do was compared with that one.
    pub fn on_other_grant(&mut self, zone: ZoneId) {
        self.owners.values_mut().filter(|owner| owner.zone == zone).for_each(|owner| owner.is_judged = false);
        self.claims.on_other_grant(zone);
    }

    /// A change of a group: if it may be, what follows from it. `judged`: whether a packet-out of the owner's may go there.
    pub fn on_group_mod(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        judged: Judged,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if it.command == DELETE && it.group_id == ALL_GROUPS {
            return self.delete_all(asker, datapath, [Thing::Group(0), Thing::Group(u32::MAX)]);
        }
        let place = (datapath, Thing::Group(it.group_id));
        if it.command == DELETE {
            let is_named = self.deeds(datapath, it.group_id).is_some_and(|deeds| deeds.named_by > 0);
            let change = self.on_delete(asker, place)?;
            return if is_named { Err(Excess::Nested(it.group_id)) } else { Ok(change) };
        }
        for group_id in groups_in_buckets(it).filter(|group_id| *group_id != it.group_id) {
            self.check(asker, datapath, Thing::Group(group_id))?;
        }
        let level_of = |group_id| self.deeds(datapath, group_id).map_or(0, |deeds| deeds.level);
        let deeds = Deeds::of(it, judged, level_of)?;
        let change = self.on_change(asker, place, it.command, claimant, Some(deeds))?;
        self.check_fanout(datapath, it.group_id, &change)?;
        Ok(change)
    }

    /// Whether one packet becomes no more than it may, by this group and by those that it is in.
    fn check_fanout(&self, datapath: DatapathId, group_id: u32, change: &Change) -> Result<(), Excess> {
        let (Change::Claim { deeds: Some(deeds), .. } | Change::Grow { deeds, .. }) = change else {
            return Ok(());
        };
        let changed = Some((group_id, &**deeds));
        self.total(datapath, deeds, changed).check_all()?;
        if deeds.named_by == 0 {
            return Ok(());
        }
        let nesting = self.groups_of(datapath).filter(|deeds| !deeds.nested.is_empty());
        nesting.map(|deeds| self.total(datapath, deeds, changed)).try_for_each(|total| total.check_all())
    }

    /// What these deeds come to with all groups in them, of which one may be about to change.
    fn total(&self, datapath: DatapathId, deeds: &Deeds, changed: Option<(u32, &Deeds)>) -> Fanout {
        deeds.nested.iter().fold(deeds.fanout, |sum, (group_id, times)| {
            let nested = match changed {
                Some((id, deeds)) if id == *group_id => Some(deeds),
                _ => self.deeds(datapath, *group_id),
            };
            let total = nested.map_or(UNKNOWN, |nested| self.total(datapath, nested, changed));
            sum.and(total.times(*times))
        })
    }

    /// What the groups in these actions make of one packet.
    pub fn fanout_of_groups(&self, datapath: DatapathId, actions: &[u8]) -> Fanout {
        groups_in(actions).fold(Fanout::default(), |sum, group_id| {
            let deeds = self.deeds(datapath, group_id);
            sum.and(deeds.map_or(UNKNOWN, |deeds| self.total(datapath, deeds, None)))
        })
    }

    /// A change of a meter, as [`Self::on_group_mod`].
    pub fn on_meter_mod(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        it: &MeterMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if it.command == DELETE && it.meter_id == ALL_METERS {
            return self.delete_all(asker, datapath, [Thing::Meter(0), Thing::Meter(u32::MAX)]);
        }
        let place = (datapath, Thing::Meter(it.meter_id));
        if it.command == DELETE {
            return self.on_delete(asker, place);
        }
        self.on_change(asker, place, it.command, claimant, None)
    }

    /// What the instructions of a rule refer to.
    pub fn check_instructions(
        &self,
        asker: Asker,
        datapath: DatapathId,
        instructions: &[u8],
    ) -> Result<(), Excess> {
        for raw in instructions_raw(instructions).map_while(Result::ok) {
            if let Some(meter_id) = raw.meter() {
                self.check(asker, datapath, Thing::Meter(meter_id))?;
            } else if raw.actions().is_some() {
                for group_id in groups_in(raw.bytes.get(8..).unwrap_or_default()) {
                    self.check(asker, datapath, Thing::Group(group_id))?;
                }
            }
        }
        Ok(())
    }

    /// The groups that a packet-out goes through. From then on they may become no more than packet-outs may do, if those are bounded: without
    /// a barrier in between, a switch may change a group before it sends the packet.
    pub fn check_packet_out(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        actions: &[u8],
    ) -> Result<(), Excess> {
        for group_id in groups_in(actions) {
            self.check(asker, datapath, Thing::Group(group_id))?;
            if asker.bounded {
                self.check_sent_to(datapath, group_id)?;
            }
        }
        if asker.bounded {
            groups_in(actions).for_each(|group_id| self.mark_sent_to(datapath, group_id));
        }
        Ok(())
    }

    /// Whether a packet-out may go through this group and those in it. They are no more than `MAX_LEVEL` deep.
    fn check_sent_to(&self, datapath: DatapathId, group_id: u32) -> Result<(), Excess> {
        let deeds = self.deeds(datapath, group_id).ok_or(Excess::UnjudgedGroup(group_id))?;
        deeds.packet_out?;
        deeds.nested.iter().try_for_each(|(nested, _)| self.check_sent_to(datapath, *nested))
    }

    fn mark_sent_to(&mut self, datapath: DatapathId, group_id: u32) {
        let Some(deeds) = self.deeds_mut(datapath, group_id).filter(|deeds| !deeds.is_sent_to) else {
            return;
        };
        deeds.is_sent_to = true;
        for (nested, _) in deeds.nested.clone() {
            self.mark_sent_to(datapath, nested);
        }
    }

    /// Whether a change leaves packet-outs that went to a group within what they may do.
    pub fn check_senders(&self, change: &Change) -> Result<(), Excess> {
        let Change::Grow { place: (datapath, _), deeds } = change else { return Ok(()) };
        if !deeds.is_sent_to {
            return Ok(());
        }
        deeds.packet_out?;
        deeds.nested.iter().try_for_each(|(nested, _)| self.check_sent_to(*datapath, *nested))
    }

    fn check(&self, asker: Asker, datapath: DatapathId, thing: Thing) -> Result<(), Excess> {
        let owner = self.owners.get(&(datapath, thing));
        // Of what others have nobody knows that it lies within anybody's bounds; the kernel's meter only drops.
        let is_kernels = owner.is_some_and(|owner| owner.zone == ZoneId::KERNEL);
        if asker.others_too && (!asker.bounded || is_kernels) {
            return Ok(());
        }
        match owner {
            Some(owner) if owner.zone == asker.zone && owner.pending.is_some() => Err(Excess::NotYet),
            Some(owner) if owner.zone == asker.zone && asker.bounded && !owner.is_judged => {
                Err(thing.excess_unjudged())
            }
            Some(owner) if owner.zone == asker.zone => Ok(()),
            Some(Owner { zone: ZoneId::KERNEL, .. }) => Err(thing.excess_of_kernels()),
            _ => Err(thing.excess()),
        }
    }

    /// Whether it may be changed or deleted by whoever asks.
    fn check_change(&self, asker: Asker, (datapath, thing): Place) -> Result<(), Excess> {
        if thing.is_reserved() && !asker.others_too {
            return Err(Excess::Reserved);
        }
        match self.owners.get(&(datapath, thing)) {
            // Nobody changes it, whatever he holds: it is made again for each session only.
            Some(Owner { zone: ZoneId::KERNEL, .. }) => Err(thing.excess_of_kernels()),
            Some(owner) if owner.zone != asker.zone => Err(thing.excess()),
            Some(Owner { pending: Some(_), .. }) => Err(Excess::NotYet),
            Some(_) => Ok(()),
            None if asker.others_too && !asker.bounded => Ok(()),
            None => Err(thing.excess()),
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
        deeds: Option<Deeds>,
    ) -> Result<Change, Excess> {
        let (_, thing) = place;
        if command == ADD && !self.owners.contains_key(&place) && (!thing.is_reserved() || asker.others_too) {
            if self.claims.count(asker.zone) >= MAX_OWNED {
                return Err(Excess::TooManyOwned(MAX_OWNED));
            }
            let (zone, ticket, deeds) = (asker.zone, self.next_claim(), deeds.map(Box::new));
            return Ok(Change::Claim { place, zone, ticket, claimant, deeds });
        }
        self.check_change(asker, place)?;
        let before = self.owners.get(&place).and_then(|owner| owner.deeds.as_deref());
        Ok(match (before, deeds, thing) {
            (Some(before), Some(new), Thing::Group(group_id)) => {
                Change::Grow { place, deeds: Box::new(before.with(new, group_id)?) }
            }
            _ => Change::Nothing,
        })
    }

    fn next_claim(&mut self) -> u64 {
        self.last_claim += 1;
        CLAIM_TICKET | self.last_claim
    }

    fn delete_all(
        &self,
        asker: Asker,
        datapath: DatapathId,
        [first, last]: [Thing; 2],
    ) -> Result<Change, Excess> {
        let (first, last) = ((datapath, first), (datapath, last));
        let mut meant = self.owners.range(first..=last);
        // Those that nobody owns may be anybody's.
        if !asker.others_too || asker.bounded || meant.any(|(_, owner)| owner.zone != asker.zone) {
            return Err(Excess::AllAtOnce);
        }
        Ok(Change::ReleaseAll { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thing::MAX_GROUP;

    const SWITCH: DatapathId = DatapathId(1);
    const ELSEWHERE: DatapathId = DatapathId(2);
    const ONE: Asker = Asker { zone: ZoneId(1), bounded: false, others_too: false };
    const OTHER: Asker = Asker { zone: ZoneId(2), bounded: false, others_too: false };
    const EVERYBODYS: Asker = Asker { zone: ZoneId(4), bounded: false, others_too: true };
    const BOUNDED: Asker = Asker { zone: ZoneId(3), bounded: true, others_too: false };
    const MODIFY: u16 = 1;
    const CLAIMANT: Claimant = Claimant { ticket: 7, wants_receipt: false };

    fn group(command: u16, group_id: u32) -> GroupMod<'static> {
        GroupMod { command, group_type: 0, group_id, buckets: &[] }
    }

    fn meter(command: u16, meter_id: u32) -> MeterMod<'static> {
        MeterMod { command, flags: 0, meter_id, bands: &[] }
    }

    impl Owned {
        /// A change that is sent if it may be: the ticket of its claim.
        fn send_group(
            &mut self,
            asker: Asker,
            at: DatapathId,
            it: &GroupMod<'_>,
        ) -> Result<Option<u64>, Excess> {
            let change = self.on_group_mod(asker, at, it, Ok(()), CLAIMANT)?;
            Ok(self.take(change))
        }

        fn send_meter(
            &mut self,
            asker: Asker,
            at: DatapathId,
            it: &MeterMod<'_>,
        ) -> Result<Option<u64>, Excess> {
            let change = self.on_meter_mod(asker, at, it, CLAIMANT)?;
            Ok(self.take(change))
        }

        fn take(&mut self, change: Change) -> Option<u64> {
            let claim = change.claim();
            self.on_sent(change);
            claim
        }

        /// A change that the switch confirms.
        fn do_group(&mut self, asker: Asker, at: DatapathId, it: &GroupMod<'_>) -> Result<(), Excess> {
            let claim = self.send_group(asker, at, it)?;
            claim.map(|ticket| self.settle(ticket, true));
            Ok(())
        }

        fn do_meter(&mut self, asker: Asker, at: DatapathId, it: &MeterMod<'_>) -> Result<(), Excess> {
            let claim = self.send_meter(asker, at, it)?;
            claim.map(|ticket| self.settle(ticket, true));
            Ok(())
        }

        fn is_empty(&self) -> bool {
            self.owners.is_empty()
        }
    }

    fn owned() -> Owned {
        let mut owned = Owned::default();
        owned.do_group(ONE, SWITCH, &group(ADD, 7)).unwrap();
        owned
    }

    #[test]
    fn only_who_made_a_group_may_change_or_delete_it() {
        for command in [ADD, MODIFY, DELETE] {
            let by_others = owned().do_group(OTHER, SWITCH, &group(command, 7));
            assert_eq!(by_others, Err(Excess::Group(7)), "{command}");
            assert_eq!(owned().do_group(ONE, SWITCH, &group(command, 7)), Ok(()), "{command}");
        }
        // At another switch it is nobody's that is known.
        assert_eq!(owned().do_group(OTHER, ELSEWHERE, &group(DELETE, 7)), Err(Excess::Group(7)));
        assert_eq!(owned().do_meter(OTHER, SWITCH, &meter(DELETE, 7)), Err(Excess::Meter(7)));
        assert_eq!(owned().do_meter(EVERYBODYS, SWITCH, &meter(DELETE, 7)), Ok(()));
        assert_eq!(owned().do_group(EVERYBODYS, SWITCH, &group(DELETE, 7)), Err(Excess::Group(7)));
    }

    #[test]
    fn nobody_deletes_the_groups_of_all() {
        let all = group(DELETE, ALL_GROUPS);
        for asker in [ONE, OTHER, BOUNDED] {
            assert_eq!(owned().do_group(asker, SWITCH, &all), Err(Excess::AllAtOnce));
            assert_eq!(owned().do_group(asker, ELSEWHERE, &all), Err(Excess::AllAtOnce));
            let meters = owned().do_meter(asker, SWITCH, &meter(DELETE, ALL_METERS));
            assert_eq!(meters, Err(Excess::AllAtOnce));
        }
        assert_eq!(owned().do_group(EVERYBODYS, SWITCH, &all), Err(Excess::AllAtOnce));
        let mut owned = Owned::default();
        owned.do_group(EVERYBODYS, SWITCH, &group(ADD, 7)).unwrap();
        owned.do_group(EVERYBODYS, SWITCH, &all).unwrap();
        assert!(owned.is_empty());
    }

    #[test]
    fn a_rule_refers_to_its_owners_groups_and_meters_only() {
        let mut bytes = Vec::new();
        flow::canonical::InstructionWriter::new(&mut bytes).meter(5).apply_actions(|actions| {
            actions.group(7);
        });
        let mut owned = owned();
        assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Err(Excess::Meter(5)));
        owned.do_meter(ONE, SWITCH, &meter(ADD, 5)).unwrap();
        assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Ok(()));
        assert_eq!(owned.check_instructions(OTHER, SWITCH, &bytes), Err(Excess::Meter(5)));
        assert_eq!(owned.check_instructions(BOUNDED, ELSEWHERE, &bytes), Err(Excess::Meter(5)));
        assert_eq!(owned.check_instructions(EVERYBODYS, ELSEWHERE, &bytes), Ok(()));
    }

    #[test]
    fn what_a_switch_meters_for_everybody_is_nobodys() {
        for command in [ADD, MODIFY, DELETE] {
            for id in [0xffff_0001, 0xffff_fffd, 0xffff_fffe] {
                let mut owned = Owned::default();
                for asker in [ONE, BOUNDED] {
                    let asked = owned.do_meter(asker, SWITCH, &meter(command, id));
                    assert_eq!(asked, Err(Excess::Reserved), "{command} {id:#x}");
                }
                assert!(owned.is_empty());
                assert_eq!(owned.do_meter(EVERYBODYS, SWITCH, &meter(command, id)), Ok(()));
            }
            let group = group(command, 0xffff_ff01);
            assert_eq!(owned().do_group(ONE, SWITCH, &group), Err(Excess::Reserved), "{command}");
        }
        for last in [0xffff_0000, 1] {
            assert_eq!(owned().do_meter(ONE, SWITCH, &meter(ADD, last)), Ok(()));
        }
        assert_eq!(owned().do_group(ONE, SWITCH, &group(ADD, MAX_GROUP)), Ok(()));
    }

    #[test]
    fn no_app_takes_every_number() {
        let mut owned = Owned::default();
        for id in 0..MAX_OWNED as u32 {
            owned.do_group(ONE, SWITCH, &group(ADD, id)).unwrap();
        }
        let one_more = owned.do_meter(ONE, SWITCH, &meter(ADD, 1));
        assert_eq!(one_more, Err(Excess::TooManyOwned(MAX_OWNED)));
        assert_eq!(owned.do_meter(OTHER, SWITCH, &meter(ADD, 1)), Ok(()));
    }

    #[test]
    fn a_switch_that_comes_to_another_worker_brings_its_owners_along() {
        let claims = Arc::new(Claims::default());
        let (mut first, mut second) = (Owned::sharing(claims.clone()), Owned::sharing(claims.clone()));
        first.do_group(ONE, SWITCH, &group(ADD, 7)).unwrap();
        first.do_meter(ONE, SWITCH, &meter(ADD, 8)).unwrap();
        first.send_group(ONE, SWITCH, &group(ADD, 9)).unwrap();
        first.on_switch_down(SWITCH);
        second.on_switch_up(SWITCH);
        assert_eq!(second.do_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
        assert_eq!(second.do_group(ONE, SWITCH, &group(MODIFY, 7)), Ok(()));
        assert_eq!(second.do_meter(ONE, SWITCH, &meter(DELETE, 8)), Ok(()));
        // The switch has not said whether it has it.
        assert_eq!(second.do_group(ONE, SWITCH, &group(MODIFY, 9)), Err(Excess::Group(9)));
        second.on_switch_down(SWITCH);
        first.on_switch_up(SWITCH);
        assert_eq!(first.do_meter(ONE, SWITCH, &meter(MODIFY, 8)), Err(Excess::Meter(8)), "it was deleted");
        assert_eq!(first.do_group(ONE, SWITCH, &group(DELETE, 7)), Ok(()));
    }

    #[test]
    fn what_a_group_does_is_known_to_the_worker_that_has_its_switch_next() {
        let claims = Arc::new(Claims::default());
        let (mut first, mut second) = (Owned::sharing(claims.clone()), Owned::sharing(claims.clone()));
        let mut out = Vec::new();
        flow::canonical::ActionWriter::new(&mut out).group(7);
        let mut bucket = vec![0; 16];
        bucket[..2].copy_from_slice(&(16 + out.len() as u16).to_be_bytes());
        bucket[4..12].fill(0xff);
        bucket.extend(out);
        let outer = GroupMod { buckets: &bucket, ..group(ADD, 8) };
        first.do_group(BOUNDED, SWITCH, &group(ADD, 7)).unwrap();
        first.do_group(BOUNDED, SWITCH, &outer).unwrap();
        let nested = Err(Excess::Nested(7));
        assert_eq!(first.do_group(BOUNDED, SWITCH, &group(DELETE, 7)), nested);
        second.on_switch_up(SWITCH);
        second.on_switch_up(SWITCH);
        assert_eq!(
            second.do_group(BOUNDED, SWITCH, &group(DELETE, 7)),
            nested,
            "a group that leads to it is left"
        );
        second.do_group(BOUNDED, SWITCH, &group(DELETE, 8)).unwrap();
        assert_eq!(second.do_group(BOUNDED, SWITCH, &group(DELETE, 7)), Ok(()));
    }

    #[test]
    fn of_a_group_from_before_this_process_its_owner_is_known_and_not_what_it_does() {
        let claims = Arc::new(Claims::default());
        claims.restore(SWITCH, Thing::Group(7), BOUNDED.zone);
        let mut owned = Owned::sharing(claims);
        owned.on_switch_up(SWITCH);
        let mut actions = Vec::new();
        flow::canonical::ActionWriter::new(&mut actions).group(7);
        assert_eq!(owned.check_packet_out(ONE, SWITCH, &actions), Err(Excess::Group(7)));
        assert_eq!(owned.check_packet_out(BOUNDED, SWITCH, &actions), Err(Excess::UnjudgedGroup(7)));
        owned.do_group(BOUNDED, SWITCH, &group(DELETE, 7)).unwrap();
        owned.do_group(BOUNDED, SWITCH, &group(ADD, 7)).unwrap();
        assert_eq!(owned.check_packet_out(BOUNDED, SWITCH, &actions), Ok(()));
    }

    #[test]
    fn an_app_has_no_more_numbers_at_many_workers_than_at_one() {
        let claims = Arc::new(Claims::default());
        let mut workers: Vec<_> = (0..4).map(|_| Owned::sharing(claims.clone())).collect();
        for id in 0..MAX_OWNED as u32 {
            let worker = &mut workers[id as usize % 4];
            worker.do_group(ONE, DatapathId(u64::from(id % 4)), &group(ADD, id)).unwrap();
        }
        for worker in &mut workers {
            let one_more = worker.do_group(ONE, ELSEWHERE, &group(ADD, 1));
            assert_eq!(one_more, Err(Excess::TooManyOwned(MAX_OWNED)));
        }
    }

    #[test]
    fn what_an_app_claims_is_its_own_once_the_switch_says_so() {
        for asker in [BOUNDED, OTHER] {
            let mut owned = Owned::default();
            let claim = owned.send_group(asker, SWITCH, &group(ADD, 9)).unwrap().unwrap();
            assert!(owned.has_pending() && claim & CLAIM_TICKET == CLAIM_TICKET);
            for command in [ADD, MODIFY, DELETE] {
                let early = owned.send_group(asker, SWITCH, &group(command, 9));
                assert_eq!(early, Err(Excess::NotYet), "{command}");
                let others = owned.send_group(ONE, SWITCH, &group(command, 9));
                assert_eq!(others, Err(Excess::Group(9)), "{command}");
            }
            assert_eq!(owned.settle(claim + 1, true), None);
            assert_eq!(owned.settle(claim, true), Some((asker.zone, CLAIMANT)));
            assert_eq!(owned.settle(claim, false), None, "once");
            assert!(!owned.has_pending());
            assert_eq!(owned.send_group(asker, SWITCH, &group(MODIFY, 9)), Ok(None));
        }
    }

    #[test]
    fn what_was_there_before_is_nobodys_whoever_claims_it() {
        let mut owned = Owned::default();
        let claim = owned.send_meter(BOUNDED, SWITCH, &meter(ADD, 9)).unwrap().unwrap();
        // The switch says that it is there already.
        assert_eq!(owned.settle(claim, false), Some((BOUNDED.zone, CLAIMANT)));
        assert!(owned.is_empty() && !owned.has_pending());
        for command in [MODIFY, DELETE] {
            let theirs = owned.send_meter(BOUNDED, SWITCH, &meter(command, 9));
            assert_eq!(theirs, Err(Excess::Meter(9)), "{command}");
        }
    }

    #[test]
    fn what_was_deleted_is_the_next_ones_who_asks() {
        let mut owned = owned();
        owned.do_group(ONE, SWITCH, &group(DELETE, 7)).unwrap();
        owned.do_group(OTHER, SWITCH, &group(ADD, 7)).unwrap();
        assert_eq!(owned.do_group(ONE, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
    }

    #[test]
    fn what_is_not_sent_changes_nothing() {
        let mut owned = owned();
        for command in [group(DELETE, 7), group(MODIFY, 7), group(ADD, 8)] {
            let change = owned.on_group_mod(ONE, SWITCH, &command, Ok(()), CLAIMANT).unwrap();
            assert_ne!(change, Change::Nothing);
            assert_eq!(owned.do_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
        }
        assert!(!owned.has_pending());
        assert_eq!(owned.do_group(OTHER, SWITCH, &group(ADD, 8)), Ok(()));
    }

    #[test]
    fn a_claim_goes_with_what_it_is_of() {
        let mut owned = Owned::default();
        for id in 0..2 * MAX_OWNED as u32 {
            let claim = owned.send_group(BOUNDED, SWITCH, &group(ADD, id)).unwrap().unwrap();
            assert_eq!(owned.settle(claim, false), Some((BOUNDED.zone, CLAIMANT)));
            assert!(!owned.has_pending() && owned.is_empty() && owned.settle(claim, true).is_none());
        }
    }
}
