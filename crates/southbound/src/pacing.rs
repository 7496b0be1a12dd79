//! Holds back the flow mods of a switch that takes only so many a second.
//!
//! ```text
//!   zone 1: flow mod, barrier ──┐                    ┌──> now: it may go
//!   zone 2: bundle, flow mod ───┴──> PacedQueue ─────┼──> later: release(now) hands it out
//!                                                    └──> Full: refused, with the wait
//! ```
//!
//! A switch with a small management CPU loses flow mods that come faster than it installs them, or puts them into a slow
//! software table. So they wait here, and leave at the switch's rate.
//!
//! * What one zone sends leaves in its order. A barrier or packet-out behind a waiting flow mod waits for it.
//! * Zones take turns, by flow mods: a bundle of ten counts as ten turns.
//! * The queue is bounded, and a zone may have as much of it as it leaves for the others.
//!
//! In: items with their zones and costs, and the time. Out: items. It reads no clock, and does not look into items: they
//! are whatever the caller sends.

use abi::ZoneId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// How many places stay free for the next zone.
const KEPT: u32 = 8;
/// Items without a cost, such as packet-outs and barriers, that one zone may have behind its waiting flow mods. More are
/// refused, since such items take no place of the queue.
const FREE_ITEMS_MAX: usize = 1024;
/// A flow mod in thousandths: with them, a rate per second is a rate per millisecond.
const WHOLE: i64 = 1000;

/// How fast flow mods leave, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingLimits {
    /// Flow mods a second. At least 1.
    pub per_s: u32,
    /// Flow mods that may leave at once after a pause. At least 1.
    pub burst: u32,
    /// Flow mods that may wait.
    pub queue_max: u32,
}

/// Why an item is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// There is no place now. If nobody sends anything, there is one after this time.
    For {
        /// Milliseconds.
        wait_ms: u64,
    },
    /// A bundle with so many flow mods never has a place.
    Always,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::For { wait_ms } => {
                write!(f, "as many flow mods wait for this switch as may be; try again in {wait_ms} ms")
            }
            Full::Always => {
                f.write_str("a bundle of so many flow mods never has a place; send a smaller one")
            }
        }
    }
}

impl std::error::Error for Full {}

/// What the caller does with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed<T> {
    /// It sends the item now.
    Now(T),
    /// The item waits. [`PacedQueue::release`] will hand it out.
    Later,
}

/// The items of one zone.
#[derive(Debug)]
struct Line<T> {
    items: VecDeque<(T, u32)>,
    /// The flow mods in it.
    flow_mods: u32,
    free_items: usize,
    /// The zone's place in the order of turns: how many flow mods it has had, or could have had while it waited for
    /// none.
    turn: u64,
}

/// The waiting items of one switch.
#[derive(Debug)]
pub struct PacedQueue<T> {
    limits: PacingLimits,
    lines: BTreeMap<ZoneId, Line<T>>,
    /// The flow mods of all lines.
    flow_mods: u32,
    /// The most flow mods of an item since the queue was empty.
    largest: u32,
    /// What may leave now, in thousandths. Below zero after a bundle that is larger than a burst.
    credit: i64,
    credited_ms: u64,
    /// The turn of the line that had the last one, and its zone.
    turn: u64,
    last: ZoneId,
}

impl<T> PacedQueue<T> {
    /// An empty queue. A whole burst may leave at once.
    pub fn new(limits: PacingLimits, now_ms: u64) -> Self {
        let limits = PacingLimits { per_s: limits.per_s.max(1), burst: limits.burst.max(1), ..limits };
        PacedQueue {
            limits,
            lines: BTreeMap::new(),
            flow_mods: 0,
            largest: 0,
            credit: i64::from(limits.burst) * WHOLE,
            credited_ms: now_ms,
            turn: 0,
            last: ZoneId::KERNEL,
        }
    }

    /// The flow mods that wait.
    pub fn waiting(&self) -> u32 {
        self.flow_mods
    }

    /// Takes an item of a zone. Its cost is the number of its flow mods: 0 for a packet-out or a barrier.
    ///
    /// # Errors
    /// There is no place for it. Nothing has changed.
    pub fn push(&mut self, zone: ZoneId, item: T, cost: u32, now_ms: u64) -> Result<Pushed<T>, Full> {
        self.credit_until(now_ms);
        let is_first = self.lines.get(&zone).is_none_or(|line| line.items.is_empty());
        if is_first && (cost == 0 || (self.flow_mods == 0 && self.has_credit_for(cost))) {
            self.credit -= i64::from(cost) * WHOLE;
            if cost > 0 {
                self.last = zone;
            }
            return Ok(Pushed::Now(item));
        }
        self.check_place(zone, cost)?;
        let turn = self.turn;
        let line = self.lines.entry(zone).or_insert_with(Line::new);
        if line.items.is_empty() {
            // A zone that has been silent has not saved up turns.
            line.turn = line.turn.max(turn);
        }
        line.items.push_back((item, cost));
        line.flow_mods += cost;
        line.free_items += usize::from(cost == 0);
        self.flow_mods += cost;
        self.largest = self.largest.max(cost);
        Ok(Pushed::Later)
    }

    /// Hands out the items that may leave now, in order.
    pub fn release(&mut self, now_ms: u64, mut leave: impl FnMut(ZoneId, T)) {
        self.credit_until(now_ms);
        while let Some(zone) = self.next_zone() {
            let Some(line) = self.lines.get_mut(&zone) else { return };
            let Some((_, cost)) = line.items.front() else { return };
            let cost = *cost;
            if cost > 0 && !has_credit(self.credit, cost, self.limits) {
                return;
            }
            let Some((item, _)) = line.items.pop_front() else { return };
            line.flow_mods -= cost;
            line.free_items -= usize::from(cost == 0);
            if cost > 0 {
                (self.turn, self.last) = (line.turn, zone);
                line.turn += u64::from(cost);
            }
            self.flow_mods -= cost;
            self.credit -= i64::from(cost) * WHOLE;
            leave(zone, item);
        }
        // Nothing waits: turns begin again.
        self.lines.clear();
        (self.largest, self.turn) = (0, 0);
    }

    /// When [`PacedQueue::release`] has something to hand out. `None`: nothing waits.
    pub fn next_release_ms(&self) -> Option<u64> {
        let zone = self.next_zone()?;
        let (_, cost) = self.lines.get(&zone)?.items.front()?;
        let missing = self.needed_for(*cost) - self.credit;
        Some(self.credited_ms.saturating_add(self.time_for(missing)))
    }

    /// Takes out everything of a zone that has ended, in order.
    pub fn forget(&mut self, zone: ZoneId) -> Vec<T> {
        let Some(line) = self.lines.remove(&zone) else { return Vec::new() };
        self.flow_mods -= line.flow_mods;
        line.items.into_iter().map(|(item, _)| item).collect()
    }

    /// Takes out everything, because the session has ended: each zone's items in their order.
    pub fn clear(&mut self) -> Vec<(ZoneId, T)> {
        (self.flow_mods, self.largest, self.turn) = (0, 0, 0);
        let lines = std::mem::take(&mut self.lines);
        let of_line =
            |(zone, line): (ZoneId, Line<T>)| line.items.into_iter().map(move |(item, _)| (zone, item));
        lines.into_iter().flat_map(of_line).collect()
    }

    /// The zone whose turn it is: the one that has had least, and of equals the next one after the last.
    fn next_zone(&self) -> Option<ZoneId> {
        let waiting = self.lines.iter().filter(|(_, line)| !line.items.is_empty());
        // Items without a cost wait only for what is before them.
        let order = |(zone, line): &(&ZoneId, &Line<T>)| {
            let is_free = line.items.front().is_some_and(|(_, cost)| *cost == 0);
            (!is_free, line.turn, **zone <= self.last, **zone)
        };
        waiting.min_by_key(order).map(|(zone, _)| *zone)
    }

    fn check_place(&self, zone: ZoneId, cost: u32) -> Result<(), Full> {
        let line = self.lines.get(&zone);
        let own = line.map_or(0, |line| line.flow_mods);
        if cost == 0 {
            let is_full = line.is_some_and(|line| line.free_items >= FREE_ITEMS_MAX);
            // All of its flow mods will have left by then, and so will the items between them.
            return if is_full { Err(Full::For { wait_ms: self.wait_ms(self.flow_mods) }) } else { Ok(()) };
        }
        // The node itself may have all, another zone as much as it leaves.
        let kept = if zone == ZoneId::KERNEL { 0 } else { own.saturating_add(KEPT) };
        let wanted = self.flow_mods.saturating_add(kept).saturating_add(cost);
        let least = cost.saturating_add(if zone == ZoneId::KERNEL { 0 } else { KEPT });
        match wanted.checked_sub(self.limits.queue_max) {
            None | Some(0) => Ok(()),
            Some(_) if least > self.limits.queue_max => Err(Full::Always),
            Some(too_many) => Err(Full::For { wait_ms: self.wait_ms(too_many.min(self.flow_mods)) }),
        }
    }

    /// The time until at least this many flow mods have left. Those of the last item leave together, so a few more may
    /// have to.
    fn wait_ms(&self, flow_mods: u32) -> u64 {
        let most = i64::from(flow_mods) + i64::from(self.largest.saturating_sub(1));
        self.time_for(most * WHOLE - self.credit).max(1)
    }

    /// The milliseconds in which this much credit comes.
    fn time_for(&self, credit: i64) -> u64 {
        u64::try_from(credit).unwrap_or(0).div_ceil(u64::from(self.limits.per_s))
    }

    fn has_credit_for(&self, cost: u32) -> bool {
        has_credit(self.credit, cost, self.limits)
    }

    fn needed_for(&self, cost: u32) -> i64 {
        needed(cost, self.limits)
    }

    fn credit_until(&mut self, now_ms: u64) {
        let passed = i64::try_from(now_ms.saturating_sub(self.credited_ms)).unwrap_or(i64::MAX);
        let more = passed.saturating_mul(i64::from(self.limits.per_s));
        // The credit of a last, partial millisecond stays: else the rate would be lower by up to a millisecond for each.
        let most = i64::from(self.limits.burst) * WHOLE + i64::from(self.limits.per_s) - 1;
        self.credit = self.credit.saturating_add(more).min(most);
        self.credited_ms = self.credited_ms.max(now_ms);
    }
}

impl<T> Line<T> {
    fn new() -> Self {
        Line { items: VecDeque::new(), flow_mods: 0, free_items: 0, turn: 0 }
    }
}

/// The credit that an item needs. A bundle that is larger than a burst needs a whole one, and leaves a debt.
fn needed(cost: u32, limits: PacingLimits) -> i64 {
    i64::from(cost.min(limits.burst)) * WHOLE
}

fn has_credit(credit: i64, cost: u32, limits: PacingLimits) -> bool {
    credit >= needed(cost, limits)
}

#[cfg(test)]
mod tests;
