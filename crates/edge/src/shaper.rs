//! The classes of a sender's shaper: which are wanted, which are installed, and what must change.
//!
//! ```text
//! NIC ─┬─ VNIC: rate = guarantee, ceiling = NIC, or the guarantee if strict
//!      │    ├─ flow, for each destination with feedback: ceiling = what the receiver said
//!      │    └─ others: ceiling = guarantee
//!      └─ ...
//! ```
//!
//! In: the wanted rates of VNICs and flows, and which changes failed. Out: changes, each with the slot of its class. It knows no tc and no
//! clock. It never asks for a change that would make no difference.
//!
//! A slot is given away only when the removal of its class is confirmed. What failed waits until the caller says when to try it again
//! ([`Shaper::retry`]); other changes go on meanwhile.
//!
//! A class has a rate that it gets in any case, and a ceiling up to which it borrows what its siblings leave, as HTB has it.

use crate::vnic::{Flow, VNICS_OF_AGENT_MAX, VnicId};
use std::collections::{BTreeMap, BTreeSet};

/// The most flows with a class of their own. A further flow stays in the class of its VNIC, at the guarantee, until a slot is free.
/// It is less than the 4,095 nodes that a hash table of u32 filters can number.
pub const FLOW_SLOTS: u16 = 4000;

/// The most VNICs with classes.
pub const VNIC_SLOTS: u16 = VNICS_OF_AGENT_MAX as u16;

/// The most changes at once. More are made when these are confirmed. A batch of this size fits into the buffer of a pipe.
pub const CHANGES_MAX: usize = 64;

/// A ceiling that differs by less than one part in this is not changed: a change costs a system call.
const CHANGE_MIN: u64 = 200;

/// What a class is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// All packets of a VNIC.
    Vnic(VnicId),
    /// The packets of a VNIC to destinations without a class of their own.
    Others(VnicId),
    /// The packets of a VNIC to one destination.
    Flow(Flow),
}

impl Place {
    /// The VNIC whose packets they are.
    pub fn vnic(self) -> VnicId {
        match self {
            Place::Vnic(vnic) | Place::Others(vnic) => vnic,
            Place::Flow(flow) => flow.sender,
        }
    }
}

/// The rates of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// What it gets in any case, in bits a second.
    pub rate_bps: u64,
    /// What it gets at most.
    pub ceiling_bps: u64,
}

/// What happens to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It is new.
    Add(Rates),
    /// It has other rates.
    Change(Rates),
    /// It is not wanted any more.
    Remove,
}

/// One change of the shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The class.
    pub place: Place,
    /// Its number among VNICs ([`VNIC_SLOTS`]) or flows ([`FLOW_SLOTS`]), from 1.
    pub slot: u16,
    /// The slot of its VNIC, which is its parent. For a VNIC, its own.
    pub vnic_slot: u16,
    /// What happens to it.
    pub deed: Deed,
}

/// The classes of one NIC.
#[derive(Clone, Debug)]
pub struct Shaper {
    wanted: BTreeMap<Place, Rates>,
    installed: BTreeMap<Place, Installed>,
    /// Classes whose removal was asked for and is not confirmed. They have their slots.
    leaving: BTreeMap<Place, Installed>,
    /// Places that may differ.
    dirty: BTreeSet<Place>,
    /// Places whose change failed. They wait for a retry.
    failed: BTreeSet<Place>,
    /// Wanted places that found no slot. They wait for a free one.
    unplaced: BTreeSet<Place>,
    vnic_slots: Slots,
    others_slots: Slots,
    flow_slots: Slots,
}

#[derive(Clone, Copy, Debug)]
struct Installed {
    slot: u16,
    vnic_slot: u16,
    /// None: a change failed, so that nobody knows.
    rates: Option<Rates>,
    /// Its filter is for packets that the place has no more.
    is_stale: bool,
}

impl Default for Shaper {
    fn default() -> Self {
        Shaper {
            wanted: BTreeMap::new(),
            installed: BTreeMap::new(),
            leaving: BTreeMap::new(),
            dirty: BTreeSet::new(),
            failed: BTreeSet::new(),
            unplaced: BTreeSet::new(),
            vnic_slots: Slots::new(VNIC_SLOTS),
            others_slots: Slots::new(VNIC_SLOTS),
            flow_slots: Slots::new(FLOW_SLOTS),
        }
    }
}

impl Shaper {
    /// A class must have these rates. The ceiling is at least the rate. A class within a VNIC that is not wanted is ignored.
    pub fn want(&mut self, place: Place, rates: Rates) {
        if !matches!(place, Place::Vnic(_)) && !self.wanted.contains_key(&Place::Vnic(place.vnic())) {
            return;
        }
        let rates = Rates { ceiling_bps: rates.ceiling_bps.max(rates.rate_bps), ..rates };
        if self.wanted.insert(place, rates) != Some(rates) {
            self.dirty.insert(place);
        }
    }

    /// A class is not wanted any more. With a VNIC, all that is in it goes.
    pub fn drop(&mut self, place: Place) {
        if let Place::Vnic(vnic) = place {
            self.within(vnic).into_iter().for_each(|place| self.drop_one(place));
        }
        self.drop_one(place);
    }

    fn drop_one(&mut self, place: Place) {
        self.unplaced.remove(&place);
        if self.wanted.remove(&place).is_some() {
            self.dirty.insert(place);
        }
    }

    /// Other packets belong to a class from now on: it is removed and made again, since a filter cannot be changed. The class of a VNIC has
    /// no filter, so that nothing happens to it.
    pub fn renew(&mut self, place: Place) {
        if matches!(place, Place::Vnic(_)) {
            return;
        }
        let there = self.installed.get_mut(&place).or(self.leaving.get_mut(&place));
        if let Some(installed) = there {
            installed.is_stale = true;
            self.dirty.insert(place);
        }
    }

    /// What a class must have.
    pub fn wanted(&self, place: Place) -> Option<Rates> {
        self.wanted.get(&place).copied()
    }

    /// The difference between what is wanted and what is installed, at most [`CHANGES_MAX`] of it. The call confirms the last changes, except those
    /// that [`Shaper::failed`] has named.
    pub fn changes(&mut self) -> Vec<Change> {
        self.confirm();
        let mut changes = Vec::new();
        // Removals first: they free slots. A VNIC comes before its flows, and its flows go before it.
        for place in self.pending(false, CHANGES_MAX) {
            // A class that comes back stays dirty. It is made when the removal is confirmed.
            if !self.wanted.contains_key(&place) {
                self.dirty.remove(&place);
            }
            changes.extend(self.remove(place));
        }
        for place in self.pending(true, CHANGES_MAX - changes.len()) {
            self.dirty.remove(&place);
            changes.extend(self.set(place));
        }
        changes
    }

    /// The next places that may differ and are to be there, or are not; the latter in reverse.
    fn pending(&self, is_to_be: bool, most: usize) -> Vec<Place> {
        let is_stale = |place: &Place| self.installed.get(place).is_some_and(|installed| installed.is_stale);
        let is_next = |place: &&Place| {
            let is_free = !self.failed.contains(place) && !self.leaving.contains_key(place);
            is_free && (self.wanted.contains_key(place) && !is_stale(place)) == is_to_be
        };
        let places = self.dirty.iter();
        match is_to_be {
            true => places.filter(is_next).take(most).copied().collect(),
            false => places.rev().filter(is_next).take(most).copied().collect(),
        }
    }

    /// Whether [`Shaper::changes`] may have more.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The change of a class failed. It is asked for again after [`Shaper::retry`]. A class whose removal failed keeps its slot: another
    /// one in the same slot would get its packets.
    pub fn failed(&mut self, place: Place) {
        if let Some(still_there) = self.leaving.remove(&place) {
            self.installed.insert(place, still_there);
        }
        if let Some(installed) = self.installed.get_mut(&place) {
            installed.rates = None;
            self.failed.insert(place);
        }
    }

    /// What failed may be tried again.
    pub fn retry(&mut self) {
        self.dirty.append(&mut self.failed);
    }

    /// How many wanted places have no slot now.
    pub fn unplaced(&self) -> u64 {
        self.unplaced.len() as u64
    }

    fn slots(&mut self, place: Place) -> &mut Slots {
        match place {
            Place::Vnic(_) => &mut self.vnic_slots,
            Place::Others(_) => &mut self.others_slots,
            Place::Flow(_) => &mut self.flow_slots,
        }
    }

    /// What was to leave has left. Each free slot is for one place that found none.
    fn confirm(&mut self) {
        for (place, left) in std::mem::take(&mut self.leaving) {
            self.slots(place).free(left.slot);
            let is_same = |other: &&Place| std::mem::discriminant(*other) == std::mem::discriminant(&place);
            let next = self.unplaced.iter().find(is_same).copied();
            if let Some(next) = next {
                self.unplaced.remove(&next);
                self.dirty.insert(next);
            }
        }
    }

    fn remove(&mut self, place: Place) -> Option<Change> {
        let installed = self.installed.remove(&place)?;
        self.leaving.insert(place, installed);
        let Installed { slot, vnic_slot, .. } = installed;
        Some(Change { place, slot, vnic_slot, deed: Deed::Remove })
    }

    fn set(&mut self, place: Place) -> Option<Change> {
        let rates = *self.wanted.get(&place)?;
        if let Some(installed) = self.installed.get_mut(&place) {
            let deed = match installed.rates {
                Some(present) if !differ(present, rates) => return None,
                Some(_) => Deed::Change(rates),
                None => Deed::Add(rates),
            };
            installed.rates = Some(rates);
            let Installed { slot, vnic_slot, .. } = *installed;
            return Some(Change { place, slot, vnic_slot, deed });
        }
        let is_vnic = matches!(place, Place::Vnic(_));
        // A VNIC is before what is in it, so that it is installed by now unless it found no slot. When it finds one, what is in it follows.
        let vnic = self.installed.get(&Place::Vnic(place.vnic())).map(|vnic| vnic.slot);
        if !is_vnic && vnic.is_none() {
            return None;
        }
        let Some(slot) = self.slots(place).take() else {
            self.unplaced.insert(place);
            return None;
        };
        if is_vnic {
            let within = self.within(place.vnic());
            self.dirty.extend(within);
        }
        let vnic_slot = vnic.unwrap_or(slot);
        self.installed.insert(place, Installed { slot, vnic_slot, rates: Some(rates), is_stale: false });
        Some(Change { place, slot, vnic_slot, deed: Deed::Add(rates) })
    }

    /// The wanted places within a VNIC.
    fn within(&self, vnic: VnicId) -> Vec<Place> {
        let flow = |receiver| Place::Flow(Flow { sender: vnic, receiver: VnicId(receiver) });
        let flows = self.wanted.range(flow(0)..=flow(u32::MAX)).map(|(place, _)| *place);
        let others = Some(Place::Others(vnic)).filter(|others| self.wanted.contains_key(others));
        flows.chain(others).collect()
    }
}

/// Whether a change is worth its cost.
fn differ(present: Rates, wanted: Rates) -> bool {
    let by = present.ceiling_bps.abs_diff(wanted.ceiling_bps);
    present.rate_bps != wanted.rate_bps || by > present.ceiling_bps / CHANGE_MIN
}

/// Numbers from 1 to a bound, the lowest free one first.
#[derive(Clone, Debug)]
struct Slots {
    free: BTreeSet<u16>,
}

impl Slots {
    fn new(count: u16) -> Self {
        Slots { free: (1..=count).collect() }
    }

    fn take(&mut self) -> Option<u16> {
        self.free.pop_first()
    }

    fn free(&mut self, slot: u16) {
        self.free.insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates(rate_bps: u64, ceiling_bps: u64) -> Rates {
        Rates { rate_bps, ceiling_bps }
    }

    fn vnic(id: u32) -> Place {
        Place::Vnic(VnicId(id))
    }

    fn flow(sender: u32, receiver: u32) -> Place {
        Place::Flow(Flow { sender: VnicId(sender), receiver: VnicId(receiver) })
    }

    #[test]
    fn only_what_differs_is_changed() {
        let mut shaper = Shaper::default();
        shaper.want(flow(1, 2), rates(1000, 5000));
        assert_eq!(shaper.changes(), [], "its VNIC is not wanted");
        shaper.want(vnic(1), rates(8000, 10_000));
        shaper.want(flow(1, 2), rates(1000, 5000));
        let change = |place, slot, deed| Change { place, slot, vnic_slot: 1, deed };
        assert_eq!(
            shaper.changes(),
            [
                change(vnic(1), 1, Deed::Add(rates(8000, 10_000))),
                change(flow(1, 2), 1, Deed::Add(rates(1000, 5000)))
            ]
        );
        assert_eq!(shaper.changes(), []);
        shaper.want(flow(1, 2), rates(1000, 5020));
        assert_eq!(shaper.changes(), [], "by less than half a percent");
        shaper.want(flow(1, 2), rates(1000, 6000));
        assert_eq!(shaper.changes(), [change(flow(1, 2), 1, Deed::Change(rates(1000, 6000)))]);
        shaper.drop(vnic(1));
        assert_eq!(shaper.changes(), [change(flow(1, 2), 1, Deed::Remove), change(vnic(1), 1, Deed::Remove)]);
    }

    #[test]
    fn a_failed_change_is_asked_for_again_as_an_add() {
        let mut shaper = Shaper::default();
        shaper.want(vnic(1), rates(1, 2));
        shaper.changes();
        shaper.failed(vnic(1));
        assert_eq!(shaper.changes(), [], "it waits");
        shaper.retry();
        assert_eq!(
            shaper.changes(),
            [Change { place: vnic(1), slot: 1, vnic_slot: 1, deed: Deed::Add(rates(1, 2)) }]
        );
        shaper.failed(vnic(7));
        shaper.retry();
        assert!(!shaper.is_dirty());
    }

    #[test]
    fn a_class_whose_removal_failed_keeps_its_slot_until_it_is_gone() {
        let mut shaper = Shaper::default();
        shaper.want(vnic(1), rates(1, 2));
        shaper.want(flow(1, 2), rates(1, 2));
        shaper.changes();
        shaper.drop(flow(1, 2));
        let removal = Change { place: flow(1, 2), slot: 1, vnic_slot: 1, deed: Deed::Remove };
        assert_eq!(shaper.changes(), [removal]);
        shaper.failed(flow(1, 2));
        shaper.want(flow(1, 3), rates(1, 2));
        assert_eq!(shaper.changes().iter().map(|change| change.slot).collect::<Vec<_>>(), [2]);
        shaper.retry();
        assert_eq!(shaper.changes(), [removal]);
        shaper.want(flow(1, 4), rates(1, 2));
        assert_eq!(shaper.changes().iter().map(|change| change.slot).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_class_for_other_packets_is_removed_and_then_made_anew() {
        let mut shaper = Shaper::default();
        shaper.want(vnic(1), rates(1, 2));
        shaper.want(flow(1, 2), rates(1, 2));
        shaper.changes();
        shaper.renew(flow(1, 2));
        shaper.renew(flow(1, 9));
        let change = |deed| Change { place: flow(1, 2), slot: 1, vnic_slot: 1, deed };
        assert_eq!(shaper.changes(), [change(Deed::Remove)]);
        shaper.failed(flow(1, 2));
        assert_eq!(shaper.changes(), []);
        shaper.retry();
        assert_eq!(shaper.changes(), [change(Deed::Remove)]);
        assert_eq!(shaper.changes(), [change(Deed::Add(rates(1, 2)))]);
        assert_eq!(shaper.changes(), []);
    }

    #[test]
    fn a_flow_without_a_slot_gets_the_first_free_one() {
        let mut shaper = Shaper::default();
        shaper.want(vnic(1), rates(1, 2));
        (0..=u32::from(FLOW_SLOTS)).for_each(|to| shaper.want(flow(1, to), rates(1, 2)));
        while !shaper.changes().is_empty() {}
        assert_eq!(shaper.unplaced(), 1);
        shaper.drop(flow(1, 7));
        assert_eq!(shaper.changes().len(), 1, "the slot is free when this is confirmed");
        let last = flow(1, u32::from(FLOW_SLOTS));
        let added = Change { place: last, slot: 8, vnic_slot: 1, deed: Deed::Add(rates(1, 2)) };
        assert_eq!((shaper.changes(), shaper.unplaced()), (vec![added], 0));
    }

    #[test]
    fn a_vnic_without_a_slot_gets_a_free_one_with_all_that_is_in_it() {
        let mut shaper = Shaper::default();
        let count = u32::from(VNIC_SLOTS);
        (0..=count).for_each(|id| shaper.want(vnic(id), rates(1, 2)));
        shaper.want(flow(count, 1), rates(1, 2));
        while !shaper.changes().is_empty() {}
        shaper.drop(vnic(0));
        assert_eq!(shaper.changes().len(), 1);
        let places: Vec<Place> = std::iter::repeat_with(|| shaper.changes())
            .take_while(|some| !some.is_empty())
            .flatten()
            .map(|change| change.place)
            .collect();
        assert_eq!(places, [vnic(count), flow(count, 1)]);
    }

    #[test]
    fn a_ceiling_is_never_below_the_rate() {
        let mut shaper = Shaper::default();
        shaper.want(vnic(1), rates(10, 5));
        assert_eq!(shaper.wanted(vnic(1)), Some(rates(10, 10)));
    }

    #[test]
    fn without_a_slot_a_flow_has_no_class_and_is_counted() {
        let mut shaper = Shaper::default();
        let count = u32::from(FLOW_SLOTS);
        shaper.want(vnic(1), rates(1, 2));
        shaper.changes();
        (0..=count).for_each(|to| shaper.want(flow(1, to), rates(1, 2)));
        let added: usize = std::iter::repeat_with(|| shaper.changes().len()).take_while(|len| *len > 0).sum();
        assert_eq!((added, shaper.unplaced()), (usize::from(FLOW_SLOTS), 1));
    }

    proptest! {
        /// Whatever fails on the way: when all was tried again, there is what is wanted. A slot never has two owners.
        #[test]
        fn the_changes_lead_to_what_is_wanted(
            steps in prop::collection::vec((0..4u8, 0..8u32, 0..4u32, 1..100u64, any::<u64>()), 1..200),
        ) {
            let mut shaper = Shaper::default();
            let mut made: BTreeMap<Place, (u16, u64)> = BTreeMap::new();
            let mut wanted: BTreeMap<Place, u64> = BTreeMap::new();
            for (what, sender, receiver, rate, luck) in steps {
                let place = if receiver == 0 { vnic(sender) } else { flow(sender, receiver) };
                match what {
                    0 => {
                        shaper.drop(place);
                        wanted.retain(|other, _| {
                            *other != place && (receiver > 0 || other.vnic() != place.vnic())
                        });
                    }
                    1 => {
                        shaper.want(place, rates(rate, 100));
                        if receiver == 0 || wanted.contains_key(&vnic(sender)) {
                            wanted.insert(place, rate);
                        }
                    }
                    2 => shaper.renew(place),
                    _ => shaper.retry(),
                }
                if rate % 3 == 0 {
                    apply(&mut made, &mut shaper, luck)?;
                }
            }
            for _ in 0..4 {
                shaper.retry();
                while apply(&mut made, &mut shaper, 0)? {}
            }
            let made: BTreeMap<Place, u64> = made.into_iter().map(|(place, (_, rate))| (place, rate)).collect();
            prop_assert_eq!(made, wanted);
        }
    }

    /// Makes the changes. A bit of luck decides whether a change fails, and another whether what failed was half made.
    fn apply(
        made: &mut BTreeMap<Place, (u16, u64)>,
        shaper: &mut Shaper,
        luck: u64,
    ) -> Result<bool, TestCaseError> {
        let changes = shaper.changes();
        for (index, Change { place, slot, vnic_slot, deed }) in changes.iter().enumerate() {
            let mut fails = luck >> (2 * index % 64) & 3 == 3;
            let is_half_made = luck >> (2 * index % 61) & 1 == 1;
            let has_children = made.keys().any(|other| other != place && *place == Place::Vnic(other.vnic()));
            match deed {
                Deed::Remove => {
                    fails |= has_children;
                    let is_there = made.get(place).map(|(slot, _)| slot);
                    prop_assert!(is_there.is_none_or(|there| there == slot));
                    if !fails {
                        made.remove(place);
                    }
                }
                Deed::Add(rates) | Deed::Change(rates) => {
                    let is_flow = |place: &Place| matches!(place, Place::Flow(_));
                    let owner = made
                        .iter()
                        .find(|(other, (taken, _))| taken == slot && is_flow(other) == is_flow(place));
                    prop_assert!(
                        owner.is_none_or(|(owner, _)| owner == place),
                        "{slot} has an owner: {owner:?}"
                    );
                    let parent = made.get(&Place::Vnic(place.vnic())).map(|(slot, _)| *slot);
                    if is_flow(place) {
                        fails |= parent.is_none();
                        prop_assert!(parent.is_none_or(|parent| parent == *vnic_slot));
                    }
                    if !fails || is_half_made && (!is_flow(place) || parent.is_some()) {
                        made.insert(*place, (*slot, rates.rate_bps));
                    }
                }
            }
            if fails {
                shaper.failed(*place);
            }
        }
        Ok(!changes.is_empty())
    }
}
