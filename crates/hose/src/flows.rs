//! Which flows count, and what follows for rates and labels.
//!
//! ```text
//!   on_path, on_no_path (a retrace's answer) ─┐
//!   on_traffic (a meter's report) ────────────┼──> flow counts or not ──> Rates of its slice ──> Labels
//!   on_time ──> idle for 2 s ─────────────────┘
//! ```
//!
//! A flow counts from a meter's report on. If its receiver has no meter, it counts as long as its rules make a path. It no longer counts when it was
//! idle for two seconds, or has no path.
//!
//! In: what the slices' rules and the meters say, time in milliseconds. Out: rates and labels, which are always those of the flows that count now. It
//! traces no rules and sends nothing.

use crate::flow::{FLOWS_MAX, FlowNo, Pair, Path, Refusal, SLICES_MAX, SliceNo, VNICS_MAX, VnicNo};
use crate::index::Index;
use crate::labels::Labels;
use crate::rates::{Change, Filling, Rates, reserve_some};
use crate::units::Bandwidth;
use crate::wheel::{Entry, Wheel};
use foldhash::fast::FixedState;
use graph::LinkNo;
use std::hash::BuildHasher;
use std::hint::black_box;

/// How long a flow counts after its meter's last report. Its end is seen up to 100 ms later.
pub const IDLE_MS: u64 = 2_000;

/// A VNIC of a slice.
#[derive(Clone, Copy, Debug)]
struct Vnic {
    rate: Bandwidth,
    /// Whether a meter reports what it receives.
    is_metered: bool,
}

/// What is kept of one flow, in one line of the processor's cache. A slot without a path is free.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Slot {
    ends: (VnicNo, VnicNo),
    path: Option<Path>,
    rules: u32,
    /// Whether the wheel has an entry of this slot. Then it stays the only one, even if another flow gets the slot.
    is_timed: bool,
    /// When its meter saw it last.
    seen_ms: u64,
    /// Later flows have greater numbers. A flow that moved is a later one.
    order: u64,
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'f> {
    /// Its ends.
    pub pair: Pair,
    /// Its links, first to last.
    pub links: &'f [LinkNo],
    /// How many rules make its path.
    pub rules: u32,
    /// Whether it counts now.
    pub counts: bool,
    /// Its nominal rate; 0 if it does not count.
    pub rate: Bandwidth,
}

/// The same in each run, so that what depends on the order of work can be repeated.
fn hash(ends: (VnicNo, VnicNo)) -> u64 {
    FixedState::default().hash_one(u64::from(ends.0.0) << 32 | u64::from(ends.1.0))
}

#[derive(Clone, Debug, Default)]
struct Slice {
    /// Increases with each removal, so that old entries of the wheel are known.
    life: u32,
    /// By number.
    vnics: Vec<Option<Vnic>>,
    rates: Rates,
    slots: Vec<Slot>,
    free: Vec<FlowNo>,
    /// The slots that have a flow, by its ends.
    numbers: Index,
}

impl Slice {
    fn vnic(&self, vnic: VnicNo) -> Result<Vnic, Refusal> {
        self.vnics.get(vnic.index()).copied().flatten().ok_or(Refusal::UnknownVnic(vnic))
    }

    fn is_metered(&self, destination: VnicNo) -> bool {
        self.vnic(destination).is_ok_and(|vnic| vnic.is_metered)
    }

    /// The flow with these ends.
    fn number(&self, ends: (VnicNo, VnicNo)) -> Option<FlowNo> {
        self.numbers.find(hash(ends), |number| self.slots[number as usize].ends == ends).map(FlowNo)
    }

    /// The ends of all flows, with their numbers.
    fn ends(&self) -> impl Iterator<Item = ((VnicNo, VnicNo), FlowNo)> {
        (0..)
            .map(FlowNo)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.path.is_some())
            .map(|(it, slot)| (slot.ends, it))
    }

    fn flow(&self, slice: SliceNo, number: FlowNo) -> Option<Flow<'_>> {
        let slot = self.slots.get(number.index())?;
        let path = slot.path.as_ref()?;
        let (source, destination) = slot.ends;
        Some(Flow {
            pair: Pair { slice, source, destination },
            links: path.links(),
            rules: slot.rules,
            counts: self.rates.counts(number),
            rate: Bandwidth::from_bps(self.rates.rate_bps(number)),
        })
    }

    /// A slot for a new flow.
    fn take_slot(&mut self, ends: (VnicNo, VnicNo)) -> FlowNo {
        let number = self.free.pop().unwrap_or_else(|| {
            let unused = Slot { ends, path: None, rules: 0, is_timed: false, seen_ms: 0, order: 0 };
            reserve_some(&mut self.slots, 1);
            self.slots.push(unused);
            // At most FLOWS_MAX.
            FlowNo((self.slots.len() - 1) as u32)
        });
        self.slots[number.index()].ends = ends;
        self.numbers.insert(hash(ends), number.0);
        number
    }

    /// The latest flow that counts and is on a link.
    fn newest_on(&self, link: LinkNo) -> Option<u64> {
        let counting = self.slots.iter().enumerate().filter(|(number, slot)| {
            let is_on = slot.path.as_ref().is_some_and(|path| path.links().contains(&link));
            is_on && self.rates.counts(FlowNo(*number as u32))
        });
        counting.map(|(_, slot)| slot.order).max()
    }
}

/// The flows of all slices, with their rates and labels.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    slices: Vec<Slice>,
    labels: Labels,
    wheel: Wheel,
    /// How many flows have a path.
    count: usize,
    order: u64,
    filling: Filling,
    changes: Vec<Change>,
}

impl Flows {
    /// The labels, and the sums that they follow from.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The labels, to set capacities and steps, to add the reservations of intents, and to take what changed.
    pub fn labels_mut(&mut self) -> &mut Labels {
        &mut self.labels
    }

    /// Changes of a slice come now: brings what is needed first into the processor's cache, all at once. Else each would be waited for by itself.
    pub fn expect(&self, slice: SliceNo) {
        if let Some(place) = self.slices.get(slice.index()) {
            let Slice { vnics, rates, slots, numbers, life, .. } = place;
            black_box((vnics.len(), rates.count(), slots.len(), numbers.len(), *life));
        }
        self.labels.expect(slice);
    }

    /// A path of a pair over these links comes now, as in [`Flows::expect`].
    pub fn expect_path(&self, pair: Pair, links: &[LinkNo]) {
        self.labels.expect_links(pair.slice, links);
        if let Some(slice) = self.slices.get(pair.slice.index()) {
            slice.numbers.expect(hash((pair.source, pair.destination)));
        }
    }

    /// A VNIC of a slice is known, or has another rate. It has no meter before [`Flows::set_metered`].
    ///
    /// # Errors
    /// A number or the rate is too great.
    pub fn put_vnic(&mut self, slice: SliceNo, vnic: VnicNo, rate: Bandwidth) -> Result<(), Refusal> {
        if slice.index() >= SLICES_MAX {
            return Err(Refusal::SliceNumber(slice));
        }
        if vnic.index() >= VNICS_MAX {
            return Err(Refusal::VnicNumber(vnic));
        }
        if rate.is_too_much() {
            return Err(Refusal::TooMuch);
        }
        if self.slices.len() <= slice.index() {
            self.slices.resize_with(slice.index() + 1, Slice::default);
        }
        let place = &mut self.slices[slice.index()];
        if place.vnics.len() <= vnic.index() {
            place.vnics.resize(vnic.index() + 1, None);
        }
        let is_metered = place.is_metered(vnic);
        place.vnics[vnic.index()] = Some(Vnic { rate, is_metered });
        place.rates.set_vnic(vnic, rate.bps(), &mut self.filling, &mut self.changes);
        self.apply(slice);
        Ok(())
    }

    /// A VNIC is gone, and its flows with it.
    pub fn remove_vnic(&mut self, slice: SliceNo, vnic: VnicNo) {
        let Some(place) = self.slices.get_mut(slice.index()) else { return };
        let touches = |ends: &(VnicNo, VnicNo)| ends.0 == vnic || ends.1 == vnic;
        let ends: Vec<_> = place.ends().map(|(ends, _)| ends).filter(touches).collect();
        for (source, destination) in ends {
            self.on_no_path(Pair { slice, source, destination });
        }
        if let Some(known) = self.slices[slice.index()].vnics.get_mut(vnic.index()) {
            *known = None;
        }
    }

    /// A slice is gone, with its VNICs, its flows and its share of the sums.
    pub fn remove_slice(&mut self, slice: SliceNo) {
        let Some(place) = self.slices.get_mut(slice.index()) else { return };
        self.count -= place.numbers.len();
        *place = Slice { life: place.life.wrapping_add(1), ..Slice::default() };
        self.labels.remove_slice(slice);
    }

    /// The rate of a VNIC.
    ///
    /// # Errors
    /// There is no such VNIC.
    pub fn vnic_rate(&self, slice: SliceNo, vnic: VnicNo) -> Result<Bandwidth, Refusal> {
        let place = self.slices.get(slice.index()).ok_or(Refusal::UnknownVnic(vnic))?;
        place.vnic(vnic).map(|vnic| vnic.rate)
    }

    /// A VNIC has a meter from now on, or has none. Flows to it that count go on for two seconds. Without a meter, all that have a path count.
    ///
    /// # Errors
    /// There is no such VNIC.
    pub fn set_metered(
        &mut self,
        slice: SliceNo,
        vnic: VnicNo,
        is_metered: bool,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let place = self.slices.get_mut(slice.index()).ok_or(Refusal::UnknownVnic(vnic))?;
        let known = place.vnic(vnic)?;
        if known.is_metered == is_metered {
            return Ok(());
        }
        place.vnics[vnic.index()] = Some(Vnic { is_metered, ..known });
        let into = place.ends().filter(|(ends, _)| ends.1 == vnic);
        let numbers: Vec<_> = into.map(|(_, number)| number).collect();
        for number in numbers {
            if is_metered {
                self.see(slice, number, now_ms);
            } else {
                self.start(slice, number);
            }
        }
        Ok(())
    }

    /// The path of a pair is this one now, by so many rules: the answer of a retrace.
    ///
    /// # Errors
    /// A VNIC or a link is not known, or a bound is reached. Then nothing is changed.
    pub fn on_path(&mut self, pair: Pair, path: Path, rules: u32) -> Result<(), Refusal> {
        let ends = (pair.source, pair.destination);
        if ends.0 == ends.1 {
            return Err(Refusal::OneVnic(ends.0));
        }
        let slice = self.slices.get_mut(pair.slice.index()).ok_or(Refusal::UnknownVnic(ends.0))?;
        slice.vnic(ends.0)?;
        let is_metered = slice.vnic(ends.1)?.is_metered;
        self.labels.check(path.links())?;
        let number = match slice.number(ends) {
            Some(number) => number,
            None if self.count >= FLOWS_MAX => return Err(Refusal::TooManyFlows),
            None => {
                self.count += 1;
                slice.take_slot(ends)
            }
        };
        let rate_bps = slice.rates.rate_bps(number);
        let slot = &mut slice.slots[number.index()];
        slot.rules = rules;
        let before = slot.path.replace(path.clone());
        if before.as_ref().map(Path::links) != Some(path.links()) {
            self.order += 1;
            slot.order = self.order;
            let before = before.unwrap_or_default();
            self.labels.shift(pair.slice, before.links(), rate_bps, 0)?;
            self.labels.shift(pair.slice, path.links(), 0, rate_bps)?;
        }
        if !is_metered {
            self.start(pair.slice, number);
        }
        Ok(())
    }

    /// The rules of a slice make no path for a pair any more.
    pub fn on_no_path(&mut self, pair: Pair) {
        let Some((slice, number)) = self.number(pair) else { return };
        self.stop(pair.slice, number);
        let place = &mut self.slices[slice];
        place.numbers.remove(hash((pair.source, pair.destination)), number.0);
        place.slots[number.index()].path = None;
        place.free.push(number);
        self.count -= 1;
    }

    /// A meter has seen traffic of a pair. `false`: no path of the pair is known, or its receiver has no meter. Then nothing is changed; the
    /// meter will report again.
    pub fn on_traffic(&mut self, pair: Pair, now_ms: u64) -> bool {
        let Some((slice, number)) = self.number(pair) else { return false };
        let is_metered = self.slices[slice].is_metered(pair.destination);
        if is_metered {
            self.start(pair.slice, number);
            self.see(pair.slice, number, now_ms);
        }
        is_metered
    }

    /// A meter says that a pair is silent: it no longer counts. Without a meter at its receiver, nothing is changed.
    pub fn on_silence(&mut self, pair: Pair) {
        let Some((slice, number)) = self.number(pair) else { return };
        if self.slices[slice].is_metered(pair.destination) {
            self.slices[slice].slots[number.index()].seen_ms = 0;
            self.stop(pair.slice, number);
        }
    }

    /// Time has passed: flows that were idle for [`IDLE_MS`] no longer count.
    pub fn on_time(&mut self, now_ms: u64) {
        while let Some(due) = self.wheel.take_due(now_ms) {
            for entry in due {
                self.look_at(entry, now_ms);
            }
        }
    }

    /// When to call [`Flows::on_time`] again. `None`: no flow depends on time.
    pub fn next_ms(&self) -> Option<u64> {
        self.wheel.next_ms()
    }

    /// What is known of the flow of a pair. `None`: it has no path.
    pub fn flow(&self, pair: Pair) -> Option<Flow<'_>> {
        let (slice, number) = self.number(pair)?;
        self.slices[slice].flow(pair.slice, number)
    }

    /// The path of a pair.
    pub fn path(&self, pair: Pair) -> Option<&Path> {
        let (slice, number) = self.number(pair)?;
        self.slices[slice].slots.get(number.index())?.path.as_ref()
    }

    /// The flows of a slice, whether they count or not.
    pub fn flows(&self, slice: SliceNo) -> impl Iterator<Item = Flow<'_>> {
        let places = self.slices.get(slice.index()).into_iter();
        places.flat_map(move |place| {
            let numbers = (0..).map(FlowNo).take(place.slots.len());
            numbers.filter_map(move |number| place.flow(slice, number))
        })
    }

    /// How many flows have a path.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The slices with flows over a link, that with the newest flow first. It looks at all flows of these slices, so it is for overbooked links.
    pub fn newest_first(&self, link: LinkNo) -> Vec<SliceNo> {
        let newest = |slice: SliceNo| Some((self.slices.get(slice.index())?.newest_on(link)?, slice));
        let mut users: Vec<_> = self.labels.users(link).filter_map(newest).collect();
        users.sort_unstable_by_key(|(order, _)| std::cmp::Reverse(*order));
        users.into_iter().map(|(_, slice)| slice).collect()
    }

    fn number(&self, pair: Pair) -> Option<(usize, FlowNo)> {
        let slice = self.slices.get(pair.slice.index())?;
        Some((pair.slice.index(), slice.number((pair.source, pair.destination))?))
    }

    fn start(&mut self, slice: SliceNo, number: FlowNo) {
        let place = &mut self.slices[slice.index()];
        if place.rates.counts(number) {
            return;
        }
        self.order += 1;
        let slot = &mut place.slots[number.index()];
        slot.order = self.order;
        place.rates.add(number, slot.ends, &mut self.filling, &mut self.changes);
        self.apply(slice);
    }

    fn stop(&mut self, slice: SliceNo, number: FlowNo) {
        let rates = &mut self.slices[slice.index()].rates;
        rates.remove(number, &mut self.filling, &mut self.changes);
        self.apply(slice);
    }

    /// Brings the sums up to the changes of rates.
    fn apply(&mut self, slice: SliceNo) {
        let slots = &self.slices[slice.index()].slots;
        for Change { flow, before_bps, now_bps } in self.changes.drain(..) {
            if let Some(path) = slots.get(flow.index()).and_then(|slot| slot.path.as_ref()) {
                // Links of a path are known, and stay so.
                let _known = self.labels.shift(slice, path.links(), before_bps, now_bps);
            }
        }
    }

    /// A flow was seen by its meter. If it counts, time can end it.
    fn see(&mut self, slice: SliceNo, number: FlowNo, now_ms: u64) {
        let place = &mut self.slices[slice.index()];
        let slot = &mut place.slots[number.index()];
        slot.seen_ms = slot.seen_ms.max(now_ms);
        if place.rates.counts(number) && !std::mem::replace(&mut slot.is_timed, true) {
            let entry = Entry { slice, life: place.life, flow: number };
            self.wheel.put(now_ms.saturating_add(IDLE_MS), entry);
        }
    }

    /// The slot of a flow is due.
    fn look_at(&mut self, entry: Entry, now_ms: u64) {
        let Entry { slice, life, flow } = entry;
        let Some(place) = self.slices.get_mut(slice.index()).filter(|place| place.life == life) else {
            return;
        };
        let Some(slot) = place.slots.get(flow.index()) else { return };
        let (destination, idle_ms) = (slot.ends.1, slot.seen_ms.saturating_add(IDLE_MS));
        let depends = place.rates.counts(flow) && place.is_metered(destination);
        if depends && idle_ms > now_ms {
            return self.wheel.put(idle_ms, entry);
        }
        place.slots[flow.index()].is_timed = false;
        if depends {
            self.stop(slice, flow);
        }
    }
}
