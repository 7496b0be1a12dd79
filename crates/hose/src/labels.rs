//! Labels: what the flows of all other slices leave of a link, for each direction and slice.
//!
//! ```text
//!   rate of a flow: before, now ──shift──> per link: total ──┐
//!                                          per (link, slice): own sum ──> label = capacity - (total - own), at least 0 ──> coarse
//! ```
//!
//! In: capacities, changes of rates along paths. Out: labels, and which links changed. A change costs two sums for each hop, however many slices and
//! flows there are. All sums are integers, so what is added and taken away again leaves nothing behind. A label never says who uses a link, nor how
//! many do.

use crate::flow::{Refusal, SLICES_MAX, SliceNo};
use crate::rates::reserve_some;
use crate::units::{Bandwidth, Step};
use graph::{LINKS_MAX, LinkNo};
use std::hint::black_box;

/// How many links a page of sums covers. A slice has pages for the links near those that it uses, so a slice in a corner of a large
/// network costs little.
const PAGE: usize = 64;

/// The number of a page fits.
const _: () = assert!(LINKS_MAX / PAGE < u16::MAX as usize);

/// Sums of links, in whole lines of the processor's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Page([u64; PAGE]);

/// What is known of one direction of a link. It never is in two lines of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Load {
    /// 0: not known.
    capacity_bps: u64,
    /// The sum of the rates of all flows over it.
    total_bps: u64,
    /// By how much the sums have moved in all, up and down. It wraps.
    moved_bps: u64,
    has_changed: bool,
}

/// The sums of one slice. All pages are in one piece of memory: each piece more would be a miss more of the processor's cache for addresses.
#[derive(Clone, Debug, Default)]
struct Own {
    /// By a link's number, divided: which page has its sum, counted from 1. 0: none.
    pages: Vec<u16>,
    sums: Vec<Page>,
    step: Option<Step>,
}

impl Own {
    fn sum_bps(&self, link: LinkNo) -> u64 {
        let number = self.pages.get(link.index() / PAGE).copied().unwrap_or_default();
        let page = usize::from(number).checked_sub(1).and_then(|number| self.sums.get(number));
        page.map_or(0, |page| page.0[link.index() % PAGE])
    }

    fn sum_mut(&mut self, link: LinkNo) -> &mut u64 {
        let number = link.index() / PAGE;
        let page = match self.pages.get(number) {
            Some(page @ 1..) => usize::from(*page),
            _ => self.add_page(number),
        };
        &mut self.sums[page - 1].0[link.index() % PAGE]
    }

    #[cold]
    fn add_page(&mut self, number: usize) -> usize {
        if self.pages.len() <= number {
            self.pages.resize(number + 1, 0);
        }
        reserve_some(&mut self.sums, 1);
        self.sums.push(Page([0; PAGE]));
        // There are at most LINKS_MAX / PAGE pages.
        self.pages[number] = self.sums.len() as u16;
        self.sums.len()
    }

    /// All sums, by the number of the link.
    fn all(&self) -> impl Iterator<Item = (LinkNo, u64)> {
        // Below LINKS_MAX, since `shift` has checked it.
        let numbers = (0..self.pages.len() * PAGE).map(|number| LinkNo(number as u32));
        numbers.map(|link| (link, self.sum_bps(link))).filter(|(_, sum_bps)| *sum_bps > 0)
    }
}

/// The labels of all links and slices.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// By link.
    loads: Vec<Load>,
    /// By slice.
    own: Vec<Own>,
    /// The links that changed since they were taken, each once.
    changed: Vec<LinkNo>,
    /// How often a step changed.
    step_changes: u64,
}

impl Labels {
    /// The capacity of one direction of a link is known, or another one.
    ///
    /// # Errors
    /// The number of the link or the capacity is too great.
    pub fn set_capacity(&mut self, link: LinkNo, capacity: Bandwidth) -> Result<(), Refusal> {
        if capacity.is_too_much() {
            return Err(Refusal::TooMuch);
        }
        if link.index() >= LINKS_MAX {
            return Err(Refusal::UnknownLink(link));
        }
        if self.loads.len() <= link.index() {
            self.loads.resize(link.index() + 1, Load::default());
        }
        let load = &mut self.loads[link.index()];
        if std::mem::replace(&mut load.capacity_bps, capacity.bps()) != capacity.bps() {
            self.mark(link);
        }
        Ok(())
    }

    /// How coarse the labels of a slice are. `None`: exact.
    ///
    /// # Errors
    /// The number of the slice is too great.
    pub fn set_step(&mut self, slice: SliceNo, step: Option<Step>) -> Result<(), Refusal> {
        if std::mem::replace(&mut self.own_mut(slice)?.step, step) != step {
            self.step_changes += 1;
        }
        Ok(())
    }

    /// The rate of a flow of a slice over these links was one and is another. The caller keeps what it has added: to remove a flow, it
    /// passes the rate that it gave before, and 0.
    ///
    /// # Errors
    /// A link has no capacity yet, or the number of the slice is too great. Nothing is changed.
    pub fn shift(
        &mut self,
        slice: SliceNo,
        links: &[LinkNo],
        before_bps: u64,
        now_bps: u64,
    ) -> Result<(), Refusal> {
        self.check(links)?;
        self.own_mut(slice)?;
        if before_bps == now_bps {
            return Ok(());
        }
        let Labels { loads, own, changed, .. } = self;
        let own = &mut own[slice.index()];
        for link in links {
            let load = &mut loads[link.index()];
            // What is taken away was added before, so both sums contain it.
            load.total_bps = load.total_bps.saturating_sub(before_bps).saturating_add(now_bps);
            load.moved_bps = load.moved_bps.wrapping_add(before_bps.abs_diff(now_bps));
            let sum_bps = own.sum_mut(*link);
            *sum_bps = sum_bps.saturating_sub(before_bps).saturating_add(now_bps);
            if !std::mem::replace(&mut load.has_changed, true) {
                changed.push(*link);
            }
        }
        Ok(())
    }

    pub(crate) fn expect(&self, slice: SliceNo) {
        black_box(self.own.get(slice.index()).map(|own| (own.pages.len(), own.sums.len(), own.step)));
    }

    /// Brings the sums of links into the processor's cache, all at once.
    pub(crate) fn expect_links(&self, slice: SliceNo, links: &[LinkNo]) {
        if let Some(own) = self.own.get(slice.index()) {
            let sums = links.iter().fold(0, |all, link| all ^ own.sum_bps(*link));
            black_box(sums);
        }
    }

    /// Whether all links are known, so that flows can be over them.
    ///
    /// # Errors
    /// One is not.
    pub(crate) fn check(&self, links: &[LinkNo]) -> Result<(), Refusal> {
        let unknown = links.iter().find(|link| link.index() >= self.loads.len());
        unknown.map_or(Ok(()), |unknown| Err(Refusal::UnknownLink(*unknown)))
    }

    /// Removes all that a slice has added.
    pub fn remove_slice(&mut self, slice: SliceNo) {
        let Some(own) = self.own.get_mut(slice.index()).map(std::mem::take) else { return };
        for (link, sum_bps) in own.all() {
            let load = &mut self.loads[link.index()];
            load.total_bps = load.total_bps.saturating_sub(sum_bps);
            load.moved_bps = load.moved_bps.wrapping_add(sum_bps);
            self.mark(link);
        }
    }

    /// The exact label of a slice. `None`: the capacity of the link is not known.
    pub fn exact(&self, slice: SliceNo, link: LinkNo) -> Option<Bandwidth> {
        let load = self.known(link)?;
        let others_bps = load.total_bps.saturating_sub(self.own_bps(slice, link));
        Some(Bandwidth::from_bps(load.capacity_bps.saturating_sub(others_bps)))
    }

    /// The label that a slice is told: as coarse as its step.
    pub fn label(&self, slice: SliceNo, link: LinkNo) -> Option<Bandwidth> {
        let (exact, capacity) = (self.exact(slice, link)?, self.capacity(link)?);
        Some(self.step(slice).map_or(exact, |step| coarse(exact, capacity, step)))
    }

    /// The capacity of a link, if known.
    pub fn capacity(&self, link: LinkNo) -> Option<Bandwidth> {
        self.known(link).map(|load| Bandwidth::from_bps(load.capacity_bps))
    }

    /// The sum of the rates of all flows over a link.
    pub fn total(&self, link: LinkNo) -> Bandwidth {
        Bandwidth::from_bps(self.loads.get(link.index()).map_or(0, |load| load.total_bps))
    }

    /// The sum of the rates of a slice's own flows over a link.
    pub fn own(&self, slice: SliceNo, link: LinkNo) -> Bandwidth {
        Bandwidth::from_bps(self.own_bps(slice, link))
    }

    /// Whether the flows over a link have been promised more than it has.
    pub fn is_overbooked(&self, link: LinkNo) -> bool {
        self.known(link).is_some_and(|load| load.total_bps > load.capacity_bps)
    }

    /// The slices with flows over a link, in the order of their numbers. It asks each slice, so it is for overbooked links and for operators.
    pub fn users(&self, link: LinkNo) -> impl Iterator<Item = SliceNo> {
        let slices = (0..).map(SliceNo).take(self.own.len());
        slices.filter(move |slice| self.own_bps(*slice, link) > 0)
    }

    /// A bound for how far labels of a link can have moved: no label moves by more than the difference of two values of this. It wraps.
    pub(crate) fn moved_bps(&self, link: LinkNo) -> u64 {
        self.loads.get(link.index()).map_or(0, |load| load.moved_bps)
    }

    /// How coarse the labels of a slice are.
    pub(crate) fn step(&self, slice: SliceNo) -> Option<Step> {
        self.own.get(slice.index()).and_then(|own| own.step)
    }

    /// How often the step of any slice changed.
    pub(crate) fn step_changes(&self) -> u64 {
        self.step_changes
    }

    /// Takes the links whose sums changed since the last call. Each is named once.
    pub fn take_changed(&mut self, out: &mut Vec<LinkNo>) {
        for link in &self.changed {
            self.loads[link.index()].has_changed = false;
        }
        out.append(&mut self.changed);
    }

    fn known(&self, link: LinkNo) -> Option<&Load> {
        self.loads.get(link.index()).filter(|load| load.capacity_bps > 0)
    }

    fn own_bps(&self, slice: SliceNo, link: LinkNo) -> u64 {
        self.own.get(slice.index()).map_or(0, |own| own.sum_bps(link))
    }

    fn own_mut(&mut self, slice: SliceNo) -> Result<&mut Own, Refusal> {
        if slice.index() >= SLICES_MAX {
            return Err(Refusal::SliceNumber(slice));
        }
        if self.own.len() <= slice.index() {
            self.own.resize_with(slice.index() + 1, Own::default);
        }
        Ok(&mut self.own[slice.index()])
    }

    fn mark(&mut self, link: LinkNo) {
        if !std::mem::replace(&mut self.loads[link.index()].has_changed, true) {
            self.changed.push(link);
        }
    }
}

/// A label in steps of the capacity, rounded down. With a step that does not divide 100, a free link has less than its capacity.
pub fn coarse(label: Bandwidth, capacity: Bandwidth, step: Step) -> Bandwidth {
    let step_bps = u128::from(capacity.bps()) * u128::from(step.percent());
    // In hundredths of bit/s, so that a small capacity loses nothing.
    match (u128::from(label.bps()) * 100).checked_div(step_bps) {
        // At most the label.
        Some(steps) => Bandwidth::from_bps((steps * step_bps / 100) as u64),
        None => label,
    }
}
