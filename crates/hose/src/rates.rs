//! The nominal rates of one slice's flows: the max-min share of both VNICs, kept while flows come and go.
//!
//! ```text
//!   add, remove, set_vnic ──> sides whose level no longer fits ──> the sides they can change ──> progressive filling ──> Change
//! ```
//!
//! Each VNIC has two sides: it sends with its rate and receives with it. A side that limits flows has a level, the rate of each flow that it
//! limits. The rate of a flow is the lower level of its two sides. Levels are whole bit/s. A side's level is what its lower neighbours leave of
//! its capacity, divided by its other flows and rounded down. This definition has one solution, so the history of changes has no effect.
//!
//! In: capacities and flows that count. Out: each rate that changed. It knows no links and no time.

use crate::flow::{FlowNo, VnicNo};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The level of a side that limits no flow.
const NO_LIMIT: u64 = u64::MAX;

/// A rate that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The flow.
    pub flow: FlowNo,
    /// Its rate before in bit/s; 0 if it did not count.
    pub before_bps: u64,
    /// Its rate now in bit/s; 0 if it no longer counts.
    pub now_bps: u64,
}

/// The number of a side: VNIC 7 sends at side 14 and receives at side 15.
type SideNo = u32;

const fn sends(vnic: VnicNo) -> SideNo {
    2 * vnic.0
}

const fn receives(vnic: VnicNo) -> SideNo {
    2 * vnic.0 + 1
}

/// One side of a VNIC.
#[derive(Clone, Copy, Debug)]
struct Side {
    capacity_bps: u64,
    level_bps: u64,
    /// During a filling: the capacity that no flow has yet.
    left_bps: u64,
    /// During a filling: how many flows have no rate yet.
    open: u32,
    /// The last filling that it was part of.
    filling: u32,
}

/// One flow that counts, as its two sides see it.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// The side that sends and the one that receives. The same number twice: the flow does not count.
    sides: [SideNo; 2],
    /// Where the flow is in the list of each side.
    places: [u32; 2],
    rate_bps: u64,
    /// The last filling that gave it a rate.
    filling: u32,
}

const NO_SHARE: Share = Share { sides: [0, 0], places: [0, 0], rate_bps: 0, filling: 0 };

impl Share {
    const fn counts(&self) -> bool {
        self.sides[0] != self.sides[1]
    }
}

/// The rates of the flows of one slice.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    sides: Vec<Side>,
    /// By side: its flows.
    flows_of: Vec<Vec<u32>>,
    /// By flow.
    shares: Vec<Share>,
    /// The number of the last filling.
    filling: u32,
}

/// The memory of fillings, which the rates of all slices can share.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    /// The sides whose level can change.
    sides: Vec<SideNo>,
    /// By the level that each would have, the lowest first. A level only rises while others get theirs.
    queue: BinaryHeap<Reverse<(u64, SideNo)>>,
    /// The sides that get the same level together.
    together: Vec<SideNo>,
}

impl Rates {
    /// A VNIC is known, or has another rate. Numbers should be small: memory is kept up to the greatest.
    pub fn set_vnic(&mut self, vnic: VnicNo, rate_bps: u64, filling: &mut Filling, out: &mut Vec<Change>) {
        let sides = [sends(vnic), receives(vnic)];
        let needed = sides[1] as usize + 1;
        if self.sides.len() < needed {
            let unknown = Side { capacity_bps: 0, level_bps: NO_LIMIT, left_bps: 0, open: 0, filling: 0 };
            self.sides.resize(needed, unknown);
            self.flows_of.resize_with(needed, Vec::new);
        }
        for side in sides {
            self.sides[side as usize].capacity_bps = rate_bps;
        }
        self.settle(sides, filling, out);
    }

    /// A flow counts from now on. A flow that counts already, or a VNIC that is not known, changes nothing.
    pub fn add(
        &mut self,
        flow: FlowNo,
        (source, destination): (VnicNo, VnicNo),
        filling: &mut Filling,
        out: &mut Vec<Change>,
    ) {
        let sides = [sends(source), receives(destination)];
        let is_known = sides.iter().all(|side| (*side as usize) < self.sides.len());
        if !is_known || self.counts(flow) {
            return;
        }
        if self.shares.len() <= flow.index() {
            let more = flow.index() + 1 - self.shares.len();
            reserve_some(&mut self.shares, more);
            self.shares.resize(flow.index() + 1, NO_SHARE);
        }
        let mut share = Share { sides, ..NO_SHARE };
        for (side, place) in sides.into_iter().zip(&mut share.places) {
            let flows = &mut self.flows_of[side as usize];
            // At most FLOWS_MAX.
            *place = flows.len() as u32;
            flows.push(flow.0);
        }
        self.shares[flow.index()] = share;
        let first = out.len();
        self.settle(sides, filling, out);
        let rate_bps = self.level(sides[0]).min(self.level(sides[1]));
        self.shares[flow.index()].rate_bps = rate_bps;
        // The filling has named it if it was part of it.
        if rate_bps > 0 && !out[first..].iter().any(|change| change.flow == flow) {
            out.push(Change { flow, before_bps: 0, now_bps: rate_bps });
        }
    }

    /// A flow no longer counts.
    pub fn remove(&mut self, flow: FlowNo, filling: &mut Filling, out: &mut Vec<Change>) {
        let Some(share) = self.shares.get(flow.index()).copied().filter(Share::counts) else { return };
        self.shares[flow.index()] = NO_SHARE;
        for (end, (side, place)) in share.sides.into_iter().zip(share.places).enumerate() {
            let flows = &mut self.flows_of[side as usize];
            flows.swap_remove(place as usize);
            if let Some(moved) = flows.get(place as usize) {
                self.shares[*moved as usize].places[end] = place;
            }
        }
        if share.rate_bps > 0 {
            out.push(Change { flow, before_bps: share.rate_bps, now_bps: 0 });
        }
        self.settle(share.sides, filling, out);
    }

    /// Whether a flow counts.
    pub fn counts(&self, flow: FlowNo) -> bool {
        self.shares.get(flow.index()).is_some_and(Share::counts)
    }

    /// The rate of a flow in bit/s; 0 if it does not count.
    pub fn rate_bps(&self, flow: FlowNo) -> u64 {
        self.shares.get(flow.index()).map_or(0, |share| share.rate_bps)
    }

    /// The flows that count and that a VNIC sends or receives, in no order.
    pub fn flows_of(&self, vnic: VnicNo) -> impl Iterator<Item = FlowNo> {
        let sides = [sends(vnic), receives(vnic)];
        sides.into_iter().flat_map(|side| self.flows_of.get(side as usize)).flatten().map(|it| FlowNo(*it))
    }

    fn level(&self, side: SideNo) -> u64 {
        self.sides[side as usize].level_bps
    }

    /// The level that a side should have by the levels of its neighbours.
    fn fitting_level(&self, side: SideNo) -> u64 {
        let (capacity_bps, flows) = (self.sides[side as usize].capacity_bps, &self.flows_of[side as usize]);
        if flows.is_empty() {
            return NO_LIMIT;
        }
        let mut level_bps = capacity_bps / flows.len() as u64;
        loop {
            // Flows that their other side limits to less leave more for the others.
            let (mut left_bps, mut open) = (capacity_bps, flows.len() as u64);
            for flow in flows {
                let neighbour_bps = self.level(other(&self.shares[*flow as usize], side));
                if neighbour_bps < level_bps {
                    left_bps -= neighbour_bps;
                    open -= 1;
                }
            }
            if open == 0 {
                return NO_LIMIT;
            }
            let next_bps = left_bps / open;
            if next_bps == level_bps {
                return level_bps;
            }
            level_bps = next_bps;
        }
    }

    /// Repairs the levels after a change at two sides.
    fn settle(&mut self, changed: [SideNo; 2], filling: &mut Filling, out: &mut Vec<Change>) {
        filling.sides.clear();
        let mut least_bps = NO_LIMIT;
        for side in changed {
            let (now_bps, fitting_bps) = (self.level(side), self.fitting_level(side));
            if now_bps != fitting_bps {
                least_bps = least_bps.min(now_bps).min(fitting_bps);
                filling.sides.push(side);
            }
        }
        if filling.sides.is_empty() {
            return;
        }
        self.gather(least_bps, filling);
        self.fill(filling, out);
    }

    /// Finds all sides that can change: those that are connected by flows and have at least this level. Lower levels stay, because a level
    /// depends on lower ones only.
    fn gather(&mut self, least_bps: u64, filling: &mut Filling) {
        let number = self.next_filling();
        let Rates { sides, flows_of, shares, .. } = self;
        for side in &filling.sides {
            sides[*side as usize].filling = number;
        }
        filling.queue.clear();
        let mut next = 0;
        while let Some(side) = filling.sides.get(next).copied() {
            next += 1;
            let (mut left_bps, mut open) = (sides[side as usize].capacity_bps, 0);
            for flow in &flows_of[side as usize] {
                let neighbour = other(&shares[*flow as usize], side);
                let peer = &mut sides[neighbour as usize];
                if peer.filling == number {
                    open += 1;
                } else if peer.level_bps < least_bps {
                    left_bps -= peer.level_bps;
                } else {
                    open += 1;
                    peer.filling = number;
                    filling.sides.push(neighbour);
                }
            }
            let place = &mut sides[side as usize];
            (place.left_bps, place.open, place.level_bps) = (left_bps, open, NO_LIMIT);
            if open > 0 {
                filling.queue.push(Reverse((left_bps / u64::from(open), side)));
            }
        }
    }

    fn next_filling(&mut self) -> u32 {
        self.filling = self.filling.wrapping_add(1);
        if self.filling == 0 {
            self.sides.iter_mut().for_each(|side| side.filling = 0);
            self.shares.iter_mut().for_each(|share| share.filling = 0);
            self.filling = 1;
        }
        self.filling
    }

    /// Gives the gathered sides their levels, the lowest first, and their flows their rates.
    fn fill(&mut self, filling: &mut Filling, out: &mut Vec<Change>) {
        while let Some(Reverse((level_bps, side))) = filling.queue.pop() {
            filling.together.clear();
            self.consider(level_bps, side, filling);
            // All sides with this level, before any of them takes from another: else their order would decide.
            while let Some(Reverse((next_bps, _))) = filling.queue.peek()
                && *next_bps == level_bps
                && let Some(Reverse((_, side))) = filling.queue.pop()
            {
                self.consider(level_bps, side, filling);
            }
            for side in &filling.together {
                self.give(level_bps, *side, out);
            }
        }
    }

    /// A side seems to have this level. If others have left it more meanwhile, it waits for its turn.
    fn consider(&mut self, level_bps: u64, side: SideNo, filling: &mut Filling) {
        let Side { left_bps, open, .. } = self.sides[side as usize];
        if open == 0 {
            return;
        }
        let now_bps = left_bps / u64::from(open);
        if now_bps == level_bps {
            self.sides[side as usize].level_bps = level_bps;
            filling.together.push(side);
        } else {
            filling.queue.push(Reverse((now_bps, side)));
        }
    }

    /// A side limits all of its flows that have no rate yet.
    fn give(&mut self, level_bps: u64, side: SideNo, out: &mut Vec<Change>) {
        let Rates { sides, flows_of, shares, filling } = self;
        for flow in &flows_of[side as usize] {
            let share = &mut shares[*flow as usize];
            let peer = &mut sides[other(share, side) as usize];
            if peer.filling != *filling || share.filling == *filling {
                continue;
            }
            share.filling = *filling;
            peer.left_bps -= level_bps;
            peer.open -= 1;
            let before_bps = std::mem::replace(&mut share.rate_bps, level_bps);
            if before_bps != level_bps {
                out.push(Change { flow: FlowNo(*flow), before_bps, now_bps: level_bps });
            }
        }
        sides[side as usize].open = 0;
    }
}

/// Reserves room for more elements, and for a quarter of those that are there: a list that doubles wastes more memory than a flow may take.
pub(crate) fn reserve_some<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4));
    }
}

/// The side at the other end of a flow.
const fn other(share: &Share, side: SideNo) -> SideNo {
    share.sides[0] ^ share.sides[1] ^ side
}
