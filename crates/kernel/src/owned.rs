//! Whose the groups and meters of the switches are: they have no cookie, so the kernel remembers who made which.
//!
//! ```text
//!   group mod, meter mod ──> Owned::on_group_mod, on_meter_mod ──> Change ──sent──> Owned::on_sent
//!   the groups and meters that a rule refers to ──> Ok, or whose they are not (Excess)
//! ```
//!
//! Whoever first asks for one has it, until that zone deletes it. Both count once the command is on its way to the switch: one that southbound
//! could not take leaves all as it was. What was made before this kernel began, or by another controller, is nobody's,
//! and nobody whose grant is bounded may touch it. So for such a one a claim counts only once the switch has said that the command is done:
//! an error of the switch, that the group is there already, or no answer takes the claim back. Until then it may not be changed,
//! deleted or referred to. Kept while a switch is away, since its groups are too; not across workers, so a switch that comes back at
//! another worker begins anew.
//!
//! Never sends anything, and never asks a switch what it has.

use crate::excess::Excess;
use abi::ZoneId;
use abi::command::{GroupMod, MeterMod};
use flow::canonical::{actions_raw, buckets_raw, instructions_raw};
use flow::{Action, DatapathId};
use std::collections::BTreeMap;

/// How many groups and meters one zone may have, over all switches. One more is refused, so that no app takes every number.
pub(crate) const MAX_OWNED: usize = 4_096;

/// OFPG_ALL and OFPM_ALL: in a delete, all of them.
const ALL_GROUPS: u32 = 0xffff_fffc;
const ALL_METERS: u32 = 0xffff_ffff;

/// `ofp_group_mod_command` and `ofp_meter_mod_command` number alike what both have.
const ADD: u16 = 0;
const DELETE: u16 = 2;

/// OFPG_MAX and OFPM_MAX (1.3.5, 7.3.4.2 and 7.3.4.3): numbers above are the switch's own, among them OFPM_SLOWPATH and OFPM_CONTROLLER,
/// which meter what it sends up for every app.
const MAX_GROUP: u32 = 0xffff_ff00;
const MAX_METER: u32 = 0xffff_0000;

/// OFPAT_GROUP (1.3.5, 7.2.5).
const GROUP_ACTION: u16 = 22;

/// What is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Group(u32),
    Meter(u32),
}

impl Thing {
    /// Whether it is the switch's own, and concerns everybody.
    fn is_reserved(self) -> bool {
        match self {
            Thing::Group(id) => id > MAX_GROUP,
            Thing::Meter(id) => id > MAX_METER,
        }
    }

    fn excess_of_kernels(self) -> Excess {
        match self {
            Thing::Group(id) => Excess::Group(id),
            Thing::Meter(id) => Excess::KernelsMeter(id),
        }
    }

    fn excess(self) -> Excess {
        match self {
            Thing::Group(id) => Excess::Group(id),
            Thing::Meter(id) => Excess::Meter(id),
        }
    }
}

/// Who asks, and whether only what is surely its own is its to touch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// The zone.
    pub zone: ZoneId,
    /// Whether its `rule.write` is bounded.
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

/// A group or meter of a switch.
pub(crate) type Place = (DatapathId, Thing);

/// What follows from a command once it is on its way to its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Nothing,
    /// It is this zone's from then on; if it waits for the switch's word, under this ticket.
    Claim { place: Place, zone: ZoneId, waits: Option<(u64, Claimant)> },
    /// It is nobody's any more.
    Release(Place),
    /// Neither are all of these.
    ReleaseAll { first: Place, last: Place },
}

impl Change {
    /// The ticket under which the command is to be sent if the switch must confirm it.
    pub fn claim(&self) -> Option<u64> {
        match self {
            Change::Claim { waits, .. } => waits.map(|(ticket, _)| ticket),
            _ => None,
        }
    }
}

/// Whose something is, and the claim's ticket if the switch has not said yet that it holds.
#[derive(Clone, Copy, Debug)]
struct Owner {
    zone: ZoneId,
    pending: Option<u64>,
}

/// The groups and meters that have an owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owned {
    owners: BTreeMap<Place, Owner>,
    /// How many each zone has.
    counts: BTreeMap<ZoneId, usize>,
    /// The claims that wait for their switch, by ticket: each is one of the owners', so there are no more than those.
    pending: BTreeMap<u64, (Place, Claimant)>,
    last_claim: u64,
    /// How many of the meters are the kernel's own: at most one for each switch that is up. They are not among the counts.
    kernels: usize,
}

impl Owned {
    /// Whether no app owns anything: then only the bounded, and the kernel's meters, need to be asked about.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.owners.len() == self.kernels
    }

    /// Whether some switch has a meter of the kernel's.
    #[inline]
    pub fn has_kernels(&self) -> bool {
        self.kernels > 0
    }

    /// Whether an app owns this meter.
    pub fn is_apps_meter(&self, datapath: DatapathId, meter_id: u32) -> bool {
        let owner = self.owners.get(&(datapath, Thing::Meter(meter_id)));
        owner.is_some_and(|owner| owner.zone != ZoneId::KERNEL)
    }

    /// This meter, which no app owns, is the kernel's from now on, instead of the one that it had at this switch.
    pub fn reserve_meter(&mut self, datapath: DatapathId, meter_id: u32) {
        self.release_meter(datapath);
        let owner = Owner { zone: ZoneId::KERNEL, pending: None };
        self.owners.insert((datapath, Thing::Meter(meter_id)), owner);
        self.kernels += 1;
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
        if !is_done {
            self.release(place);
        }
        Some((zone, claimant))
    }

    /// The command of which this follows is on its way to its switch.
    pub fn on_sent(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Claim { place, zone, waits } => {
                self.release(place);
                *self.counts.entry(zone).or_default() += 1;
                self.owners.insert(place, Owner { zone, pending: waits.map(|(ticket, _)| ticket) });
                self.pending.extend(waits.map(|(ticket, claimant)| (ticket, (place, claimant))));
            }
            Change::Release(place) => self.release(place),
            Change::ReleaseAll { first, last } => {
                let all: Vec<Place> = self.owners.range(first..=last).map(|(place, _)| *place).collect();
                all.into_iter().for_each(|place| self.release(place));
            }
        }
    }

    fn release(&mut self, place: Place) {
        let Some(owner) = self.owners.remove(&place) else { return };
        owner.pending.map(|ticket| self.pending.remove(&ticket));
        self.kernels -= usize::from(owner.zone == ZoneId::KERNEL);
        if let Some(count) = self.counts.get_mut(&owner.zone) {
            *count -= 1;
        }
    }

    /// A change of a group: if it may be, what follows from it.
    pub fn on_group_mod(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        it: &GroupMod<'_>,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if it.command == DELETE && it.group_id == ALL_GROUPS {
            return self.delete_all(asker, datapath, [Thing::Group(0), Thing::Group(u32::MAX)]);
        }
        for bucket in buckets_raw(it.buckets).map_while(Result::ok) {
            self.check_actions(asker, datapath, bucket.actions)?;
        }
        self.on_change(asker, datapath, Thing::Group(it.group_id), it.command, claimant)
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
        self.on_change(asker, datapath, Thing::Meter(it.meter_id), it.command, claimant)
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
                self.check_actions(asker, datapath, raw.bytes.get(8..).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// The groups that a list of actions refers to.
    pub fn check_actions(&self, asker: Asker, datapath: DatapathId, actions: &[u8]) -> Result<(), Excess> {
        for raw in actions_raw(actions).map_while(Result::ok).filter(|raw| raw.kind == GROUP_ACTION) {
            if let Ok(Action::Group(group_id)) = raw.read() {
                self.check(asker, datapath, Thing::Group(group_id))?;
            }
        }
        Ok(())
    }

    fn check(&self, asker: Asker, datapath: DatapathId, thing: Thing) -> Result<(), Excess> {
        match self.owners.get(&(datapath, thing)) {
            Some(owner) if owner.zone == asker.zone && asker.bounded && owner.pending.is_some() => {
                Err(Excess::NotYet)
            }
            Some(owner) if owner.zone == asker.zone => Ok(()),
            None if !asker.bounded => Ok(()),
            Some(Owner { zone: ZoneId::KERNEL, .. }) if asker.others_too => Ok(()),
            Some(Owner { zone: ZoneId::KERNEL, .. }) => Err(thing.excess_of_kernels()),
            _ => Err(thing.excess()),
        }
    }

    fn on_change(
        &mut self,
        asker: Asker,
        datapath: DatapathId,
        thing: Thing,
        command: u16,
        claimant: Claimant,
    ) -> Result<Change, Excess> {
        if thing.is_reserved() && !asker.others_too {
            return Err(Excess::Reserved);
        }
        // Nobody changes it, whatever he holds: it is made again for each session only.
        if self.owners.get(&(datapath, thing)).is_some_and(|owner| owner.zone == ZoneId::KERNEL) {
            return Err(thing.excess_of_kernels());
        }
        if command == ADD && !self.owners.contains_key(&(datapath, thing)) {
            if self.counts.get(&asker.zone).is_some_and(|count| *count >= MAX_OWNED) {
                return Err(Excess::TooManyOwned(MAX_OWNED));
            }
            // An unbounded zone's claims need no word of the switch.
            let waits = asker.bounded.then(|| (self.next_claim(), claimant));
            return Ok(Change::Claim { place: (datapath, thing), zone: asker.zone, waits });
        }
        self.check(asker, datapath, thing)?;
        Ok(if command == DELETE { Change::Release((datapath, thing)) } else { Change::Nothing })
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
        if asker.bounded || meant.any(|(_, owner)| owner.zone != asker.zone) {
            return Err(Excess::AllAtOnce);
        }
        Ok(Change::ReleaseAll { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: DatapathId = DatapathId(1);
    const ELSEWHERE: DatapathId = DatapathId(2);
    const ONE: Asker = Asker { zone: ZoneId(1), bounded: false, others_too: false };
    const OTHER: Asker = Asker { zone: ZoneId(2), bounded: false, others_too: false };
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
            let change = self.on_group_mod(asker, at, it, CLAIMANT)?;
            self.on_sent(change);
            Ok(change.claim())
        }

        fn send_meter(
            &mut self,
            asker: Asker,
            at: DatapathId,
            it: &MeterMod<'_>,
        ) -> Result<Option<u64>, Excess> {
            let change = self.on_meter_mod(asker, at, it, CLAIMANT)?;
            self.on_sent(change);
            Ok(change.claim())
        }
    }

    fn owned() -> Owned {
        let mut owned = Owned::default();
        owned.send_group(ONE, SWITCH, &group(ADD, 7)).unwrap();
        owned
    }

    #[test]
    fn only_who_made_a_group_may_change_or_delete_it() {
        for command in [ADD, MODIFY, DELETE] {
            let by_others = owned().send_group(OTHER, SWITCH, &group(command, 7));
            assert_eq!(by_others, Err(Excess::Group(7)), "{command}");
            assert_eq!(owned().send_group(ONE, SWITCH, &group(command, 7)), Ok(None), "{command}");
        }
        assert_eq!(owned().send_group(OTHER, ELSEWHERE, &group(DELETE, 7)), Ok(None));
        assert_eq!(owned().send_meter(OTHER, SWITCH, &meter(DELETE, 7)), Ok(None));
    }

    #[test]
    fn nobody_deletes_the_groups_of_all() {
        let all = group(DELETE, ALL_GROUPS);
        assert_eq!(owned().send_group(OTHER, SWITCH, &all), Err(Excess::AllAtOnce));
        assert_eq!(owned().send_group(BOUNDED, ELSEWHERE, &all), Err(Excess::AllAtOnce));
        assert_eq!(owned().send_meter(OTHER, SWITCH, &meter(DELETE, ALL_METERS)), Ok(None));
        let mut owned = owned();
        owned.send_group(ONE, SWITCH, &all).unwrap();
        assert!(owned.is_empty());
    }

    #[test]
    fn a_rule_refers_to_its_owners_groups_and_meters_only() {
        let mut bytes = Vec::new();
        flow::canonical::InstructionWriter::new(&mut bytes).meter(5).apply_actions(|actions| {
            actions.group(7);
        });
        let mut owned = owned();
        assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Ok(()));
        assert_eq!(owned.check_instructions(OTHER, SWITCH, &bytes), Err(Excess::Group(7)));
        assert_eq!(owned.check_instructions(BOUNDED, ELSEWHERE, &bytes), Err(Excess::Meter(5)));
        owned.send_meter(OTHER, SWITCH, &meter(ADD, 5)).unwrap();
        assert_eq!(owned.check_instructions(ONE, SWITCH, &bytes), Err(Excess::Meter(5)));
    }

    #[test]
    fn what_a_switch_meters_for_everybody_is_nobodys() {
        let others_too = Asker { others_too: true, ..ONE };
        for command in [ADD, MODIFY, DELETE] {
            for id in [0xffff_0001, 0xffff_fffd, 0xffff_fffe] {
                let mut owned = Owned::default();
                for asker in [ONE, BOUNDED] {
                    let asked = owned.send_meter(asker, SWITCH, &meter(command, id));
                    assert_eq!(asked, Err(Excess::Reserved), "{command} {id:#x}");
                }
                assert!(owned.is_empty());
                assert_eq!(owned.send_meter(others_too, SWITCH, &meter(command, id)), Ok(None));
            }
            let group = group(command, 0xffff_ff01);
            assert_eq!(owned().send_group(ONE, SWITCH, &group), Err(Excess::Reserved), "{command}");
        }
        for last in [0xffff_0000, 1] {
            assert_eq!(owned().send_meter(ONE, SWITCH, &meter(ADD, last)), Ok(None));
        }
        assert_eq!(owned().send_group(ONE, SWITCH, &group(ADD, MAX_GROUP)), Ok(None));
    }

    #[test]
    fn no_app_takes_every_number() {
        let mut owned = Owned::default();
        for id in 0..MAX_OWNED as u32 {
            owned.send_group(ONE, SWITCH, &group(ADD, id)).unwrap();
        }
        let one_more = owned.send_meter(ONE, SWITCH, &meter(ADD, 1));
        assert_eq!(one_more, Err(Excess::TooManyOwned(MAX_OWNED)));
        assert_eq!(owned.send_meter(OTHER, SWITCH, &meter(ADD, 1)), Ok(None));
    }

    #[test]
    fn what_a_bounded_app_claims_is_its_own_once_the_switch_says_so() {
        let mut owned = Owned::default();
        let claim = owned.send_group(BOUNDED, SWITCH, &group(ADD, 9)).unwrap().unwrap();
        assert!(owned.has_pending() && claim & CLAIM_TICKET == CLAIM_TICKET);
        for command in [ADD, MODIFY, DELETE] {
            let early = owned.send_group(BOUNDED, SWITCH, &group(command, 9));
            assert_eq!(early, Err(Excess::NotYet), "{command}");
            let others = owned.send_group(ONE, SWITCH, &group(command, 9));
            assert_eq!(others, Err(Excess::Group(9)), "{command}");
        }
        assert_eq!(owned.settle(claim + 1, true), None);
        assert_eq!(owned.settle(claim, true), Some((BOUNDED.zone, CLAIMANT)));
        assert_eq!(owned.settle(claim, false), None, "once");
        assert!(!owned.has_pending());
        assert_eq!(owned.send_group(BOUNDED, SWITCH, &group(MODIFY, 9)), Ok(None));
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
        owned.send_group(ONE, SWITCH, &group(DELETE, 7)).unwrap();
        owned.send_group(OTHER, SWITCH, &group(ADD, 7)).unwrap();
        assert_eq!(owned.send_group(ONE, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
    }

    #[test]
    fn what_is_not_sent_changes_nothing() {
        let mut owned = owned();
        for command in [group(DELETE, 7), group(DELETE, ALL_GROUPS), group(ADD, 8)] {
            assert_ne!(owned.on_group_mod(ONE, SWITCH, &command, CLAIMANT), Ok(Change::Nothing));
            assert_eq!(owned.send_group(OTHER, SWITCH, &group(MODIFY, 7)), Err(Excess::Group(7)));
        }
        assert_eq!(owned.send_group(OTHER, SWITCH, &group(ADD, 8)), Ok(None));
        let claim = owned.on_group_mod(BOUNDED, SWITCH, &group(ADD, 9), CLAIMANT).unwrap().claim().unwrap();
        assert!(!owned.has_pending() && owned.settle(claim, true).is_none());
        assert_eq!(owned.send_group(OTHER, SWITCH, &group(ADD, 9)), Ok(None));
    }

    #[test]
    fn a_claim_goes_with_what_it_is_of() {
        let mut owned = Owned::default();
        let unbounded = Asker { bounded: false, ..BOUNDED };
        for id in 0..2 * MAX_OWNED as u32 {
            let claim = owned.send_group(BOUNDED, SWITCH, &group(ADD, id)).unwrap().unwrap();
            // The zone's number is another app's by now.
            assert_eq!(owned.send_group(unbounded, SWITCH, &group(DELETE, id)), Ok(None));
            assert!(!owned.has_pending() && owned.is_empty() && owned.settle(claim, false).is_none());
        }
    }
}
