//! The nominal rates of one slice's flows: the max-min share of both VNICs, kept while flows come and go.
//!
//! ```text
//!   add, remove, set_vnic ──> sides whose level no longer fits, the lowest first ──> their neighbours, … ──> Change
//!                             too many: progressive filling of all connected sides ───────────────────────────┘
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

/// How many flows a repair may look at for each flow that counts. A filling from scratch costs about as much, so at the bound it takes over.
const LOOKS_PER_FLOW: usize = 16;

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
    /// The level that fits the levels of its neighbours. At rest, both are the same.
    fitting_bps: u64,
    /// During a filling: the capacity that no flow has yet.
    left_bps: u64,
    /// The lowest level of the last repair that changed it, before and after.
    least_bps: u64,
    /// During a filling: how many flows have no rate yet.
    open: u32,
    /// The last repair or filling that it was part of.
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

/// A flow in the list of a side. The other side is here too, so that a repair reads no [`Share`] of a flow whose rate stays.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    other: SideNo,
}

/// The rates of the flows of one slice.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    sides: Vec<Side>,
    /// By side: its flows.
    flows_of: Vec<Vec<Member>>,
    /// By flow.
    shares: Vec<Share>,
    /// How many flows count.
    count: usize,
    /// The number of the last repair or filling.
    filling: u32,
}

/// The memory of repairs and fillings, which the rates of all slices can share.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    /// The sides whose level has changed, or can change.
    sides: Vec<SideNo>,
    /// By level, the lowest first.
    queue: BinaryHeap<Reverse<(u64, SideNo)>>,
    /// The sides that get the same level together.
    together: Vec<SideNo>,
    /// How many flows the repair has looked at.
    looks: usize,
    /// For tests: no repair, always a filling.
    is_impatient: bool,
}

impl Rates {
    /// A VNIC is known, or has another rate. Numbers should be small: memory is kept up to the greatest.
    pub fn set_vnic(&mut self, vnic: VnicNo, rate_bps: u64, filling: &mut Filling, out: &mut Vec<Change>) {
        let sides = [sends(vnic), receives(vnic)];
        let needed = sides[1] as usize + 1;
        if self.sides.len() < needed {
            let unknown = Side {
                capacity_bps: 0,
                level_bps: NO_LIMIT,
                fitting_bps: NO_LIMIT,
                left_bps: 0,
                least_bps: NO_LIMIT,
                open: 0,
                filling: 0,
            };
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
        let [sends, receives] = sides;
        for ((side, other), place) in
            [(sends, receives), (receives, sends)].into_iter().zip(&mut share.places)
        {
            let flows = &mut self.flows_of[side as usize];
            // At most FLOWS_MAX.
            *place = flows.len() as u32;
            reserve_some(flows, 1);
            flows.push(Member { flow: flow.0, other });
        }
        self.shares[flow.index()] = share;
        self.count += 1;
        let first = out.len();
        self.settle(sides, filling, out);
        let rate_bps = self.level(sides[0]).min(self.level(sides[1]));
        self.shares[flow.index()].rate_bps = rate_bps;
        // The repair has named it if it reached it.
        if rate_bps > 0 && !out[first..].iter().any(|change| change.flow == flow) {
            out.push(Change { flow, before_bps: 0, now_bps: rate_bps });
        }
    }

    /// A flow no longer counts.
    pub fn remove(&mut self, flow: FlowNo, filling: &mut Filling, out: &mut Vec<Change>) {
        let Some(share) = self.shares.get(flow.index()).copied().filter(Share::counts) else { return };
        self.shares[flow.index()] = NO_SHARE;
        self.count -= 1;
        for (end, (side, place)) in share.sides.into_iter().zip(share.places).enumerate() {
            let flows = &mut self.flows_of[side as usize];
            flows.swap_remove(place as usize);
            if let Some(moved) = flows.get(place as usize) {
                self.shares[moved.flow as usize].places[end] = place;
            }
        }
        if share.rate_bps > 0 {
            out.push(Change { flow, before_bps: share.rate_bps, now_bps: 0 });
        }
        self.settle(share.sides, filling, out);
    }

    /// How many flows count.
    pub fn count(&self) -> usize {
        self.count
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
        sides
            .into_iter()
            .flat_map(|side| self.flows_of.get(side as usize))
            .flatten()
            .map(|it| FlowNo(it.flow))
    }

    fn level(&self, side: SideNo) -> u64 {
        self.sides[side as usize].level_bps
    }

    /// The level that a side should have by the levels of its neighbours.
    fn fitting_level(&self, side: SideNo, looks: &mut usize) -> u64 {
        let (capacity_bps, flows) = (self.sides[side as usize].capacity_bps, &self.flows_of[side as usize]);
        if flows.is_empty() {
            return NO_LIMIT;
        }
        let mut level_bps = capacity_bps / flows.len() as u64;
        loop {
            // Flows that their other side limits to less leave more for the others.
            let (mut left_bps, mut open) = (capacity_bps, flows.len() as u64);
            *looks += flows.len();
            for member in flows {
                let neighbour_bps = self.level(member.other);
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

    /// Repairs the levels after a change at two sides, the lowest first: what is lower depends on nothing that is higher.
    fn settle(&mut self, changed: [SideNo; 2], filling: &mut Filling, out: &mut Vec<Change>) {
        filling.sides.clear();
        filling.queue.clear();
        filling.looks = 0;
        let number = self.next_filling();
        changed.into_iter().for_each(|side| self.revise(side, filling));
        let looks_max = if filling.is_impatient { 0 } else { LOOKS_PER_FLOW * self.count };
        while let Some(Reverse((level_bps, side))) = filling.queue.pop() {
            let place = &mut self.sides[side as usize];
            // Another entry is about its level now, or none needs to be.
            if place.level_bps == place.fitting_bps || level_bps != place.level_bps.min(place.fitting_bps) {
                continue;
            }
            let before_bps = std::mem::replace(&mut place.level_bps, place.fitting_bps);
            let least_bps = before_bps.min(place.fitting_bps);
            if std::mem::replace(&mut place.filling, number) != number {
                place.least_bps = least_bps;
                filling.sides.push(side);
            }
            place.least_bps = place.least_bps.min(least_bps);
            self.revise_neighbours(side, least_bps, filling);
            if filling.looks > looks_max {
                // Both: the flow between them may be gone, and then one is not connected with the other.
                filling.sides.extend(changed);
                self.gather(filling);
                return self.fill(filling, out);
            }
        }
        self.tell(filling, out);
    }

    /// Computes which level fits a side, and puts it into the queue if it has another one.
    fn revise(&mut self, side: SideNo, filling: &mut Filling) {
        let fitting_bps = self.fitting_level(side, &mut filling.looks);
        let place = &mut self.sides[side as usize];
        place.fitting_bps = fitting_bps;
        if place.level_bps != fitting_bps {
            filling.queue.push(Reverse((place.level_bps.min(fitting_bps), side)));
        }
    }

    /// A level has changed, from or to this one at least. Neighbours that are as low or lower do not depend on it.
    fn revise_neighbours(&mut self, side: SideNo, least_bps: u64, filling: &mut Filling) {
        filling.looks += self.flows_of[side as usize].len();
        for place in 0..self.flows_of[side as usize].len() {
            let neighbour = self.flows_of[side as usize][place].other;
            let Side { level_bps, fitting_bps, .. } = self.sides[neighbour as usize];
            if least_bps < level_bps.max(fitting_bps) {
                self.revise(neighbour, filling);
            }
        }
    }

    /// Names the flows whose rate follows from the levels that have changed.
    fn tell(&mut self, filling: &Filling, out: &mut Vec<Change>) {
        let Rates { sides, flows_of, shares, filling: number, .. } = self;
        for side in &filling.sides {
            let Side { level_bps, least_bps, .. } = sides[*side as usize];
            for member in &flows_of[*side as usize] {
                let other = &sides[member.other as usize];
                // Its other side limited it before, and limits it now.
                if other.filling != *number && other.level_bps <= least_bps {
                    continue;
                }
                let share = &mut shares[member.flow as usize];
                let now_bps = level_bps.min(other.level_bps);
                let before_bps = std::mem::replace(&mut share.rate_bps, now_bps);
                if before_bps != now_bps {
                    out.push(Change { flow: FlowNo(member.flow), before_bps, now_bps });
                }
            }
        }
    }

    /// Finds all sides that are connected with those that have changed, and prepares them for a filling.
    fn gather(&mut self, filling: &mut Filling) {
        let number = self.next_filling();
        let Rates { sides, flows_of, .. } = self;
        filling.sides.retain(|side| std::mem::replace(&mut sides[*side as usize].filling, number) != number);
        filling.queue.clear();
        let mut next = 0;
        while let Some(side) = filling.sides.get(next).copied() {
            next += 1;
            let flows = &flows_of[side as usize];
            for Member { other: neighbour, .. } in flows {
                let neighbour = *neighbour;
                if std::mem::replace(&mut sides[neighbour as usize].filling, number) != number {
                    filling.sides.push(neighbour);
                }
            }
            let place = &mut sides[side as usize];
            // At most FLOWS_MAX.
            (place.left_bps, place.open) = (place.capacity_bps, flows.len() as u32);
            (place.level_bps, place.fitting_bps) = (NO_LIMIT, NO_LIMIT);
            if !flows.is_empty() {
                filling.queue.push(Reverse((place.capacity_bps / flows.len() as u64, side)));
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
            let place = &mut self.sides[side as usize];
            (place.level_bps, place.fitting_bps) = (level_bps, level_bps);
            filling.together.push(side);
        } else {
            filling.queue.push(Reverse((now_bps, side)));
        }
    }

    /// A side limits all of its flows that have no rate yet.
    fn give(&mut self, level_bps: u64, side: SideNo, out: &mut Vec<Change>) {
        let Rates { sides, flows_of, shares, filling, .. } = self;
        for member in &flows_of[side as usize] {
            let share = &mut shares[member.flow as usize];
            let peer = &mut sides[member.other as usize];
            if std::mem::replace(&mut share.filling, *filling) == *filling {
                continue;
            }
            peer.left_bps -= level_bps;
            peer.open -= 1;
            let before_bps = std::mem::replace(&mut share.rate_bps, level_bps);
            if before_bps != level_bps {
                out.push(Change { flow: FlowNo(member.flow), before_bps, now_bps: level_bps });
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers (xorshift64).
    fn below(state: &mut u64, bound: u32) -> u32 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        ((*state >> 33) % u64::from(bound)) as u32
    }

    #[test]
    fn a_filling_from_scratch_gives_the_rates_of_repairs() {
        let mut state = 5;
        let (mut repaired, mut filled) = (Rates::default(), Rates::default());
        let (mut patient, mut impatient) =
            (Filling::default(), Filling { is_impatient: true, ..Filling::default() });
        for round in 0..3_000 {
            let (source, destination) = (below(&mut state, 12), below(&mut state, 12));
            let (flow, ends) = (FlowNo(source * 12 + destination), (VnicNo(source), VnicNo(destination)));
            let rate_bps = u64::from(below(&mut state, 1_000));
            let change = |rates: &mut Rates, filling: &mut Filling| {
                let mut out = Vec::new();
                match flow {
                    _ if round < 12 => rates.set_vnic(VnicNo(round), rate_bps, filling, &mut out),
                    _ if round % 20 == 0 => rates.set_vnic(ends.0, rate_bps, filling, &mut out),
                    flow if rates.counts(flow) => rates.remove(flow, filling, &mut out),
                    flow if ends.0 != ends.1 => rates.add(flow, ends, filling, &mut out),
                    _ => {}
                }
                out.sort_by_key(|change| change.flow);
                out
            };
            assert_eq!(change(&mut repaired, &mut patient), change(&mut filled, &mut impatient));
            for flow in (0..144).map(FlowNo) {
                assert_eq!(repaired.rate_bps(flow), filled.rate_bps(flow), "round {round}, {flow:?}");
            }
        }
    }
}
