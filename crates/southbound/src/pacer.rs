//! The commands that wait for a switch that takes them slowly: which goes next, and when.
//!
//! ```text
//!   zone 1 ──hold──> [ a d e ]─┐ take turns      bucket
//!   zone 2 ──hold──> [ b f ]  ─┼──────────> next ──────> the command that goes now
//!   node   ──hold──> [ c ]    ─┘ every second one
//! ```
//!
//! What it promises:
//! * In any span of time, no more commands go than the rate and the burst allow. A bundle goes as a whole.
//! * The commands of a zone keep their order. Only adds that no barrier or other command separates, and that match no packet in common,
//!   may change places, if the switch takes another order of priorities more cheaply.
//! * Zones take turns, by what their commands cost. A command waits for one of another zone only if the tables would end differently
//!   ([`Concern::must_keep_order`]).
//! * Nothing is lost. At its bounds, a further command is refused.
//!
//! In: commands, the time. Out: commands. It writes no message, reads no clock, and does not know what a command says.

mod bucket;
mod changes;
mod queue;
#[cfg(test)]
mod tests;

pub use bucket::CommandRate;
pub use changes::{Concern, RuleChange, SharedChange};
use queue::{Queue, queue_of};

use crate::receipts::Shares;
use abi::ZoneId;
use bucket::Bucket;
use std::collections::BTreeMap;

/// How many commands may wait for one switch. A zone may have as many as it leaves for the others: a single one has half. At eight rules a
/// second this is more than eight minutes: an app that plans further ahead is told so.
pub const WAITING_MAX: usize = 4_096;

/// How many bytes may wait for one switch, shared in the same way. It is room for as many rules of 256 bytes.
pub const WAITING_BYTES_MAX: usize = 1 << 20;

/// Comparisons of two rules in a millisecond. At this bound, the oldest command of all goes, because it needs no comparison. The next
/// choice goes on where this one stopped. Each two commands are compared once at most.
const COMPARED_MAX: usize = 8_192;

/// The same for one command at a time. So a bundle that has to be compared with many leaves enough for a rule of another zone.
const COMPARED_FOR_RULE: usize = 4_096;
const COMPARED_FOR_BUNDLE: usize = 1_024;

/// How many adds are tried in the cheap order before the oldest goes.
const TRIED_MAX: usize = 8;

/// After this time, commands that cannot go for another reason than the rate are looked at again, in milliseconds.
const RETRY_MS: u64 = 10;

/// The order of priorities in which a switch takes adds most cheaply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriorityOrder {
    /// Any: adds go in the order in which they come.
    #[default]
    AsTheyCome,
    /// The lowest priority first.
    Ascending,
    /// The highest priority first.
    Descending,
}

/// A command that waits.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    /// What is sent.
    pub what: T,
    /// Its zone. [`ZoneId::KERNEL`] for the node itself.
    pub zone: ZoneId,
    /// How much of the rate it uses: 1 for a flow mod, 0 for a barrier.
    pub cost: u32,
    /// What it changes.
    pub concern: Concern,
    /// Whether all that follows of its zone waits for it, even what waits for nothing else: a barrier.
    pub is_barrier: bool,
    /// Its length.
    pub bytes: usize,
}

/// Why a command may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// How many commands wait for the switch.
    pub waiting: usize,
    /// In how many milliseconds all of them will have gone.
    pub wait_ms: u64,
}

/// The order in which commands of any zone came.
type Serial = u64;

#[derive(Debug)]
struct Place<T> {
    it: Waiting<T>,
    /// It may overtake all that came before this one.
    may_overtake_until: Serial,
    /// It waits for this one.
    waits_for: Option<Serial>,
}

/// Whether a command may go before all that came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freedom {
    Free,
    Waits,
    /// The comparisons of this millisecond are used up.
    NotKnown,
}

/// The commands that wait for one switch.
#[derive(Debug)]
pub struct Pacer<T> {
    bucket: Bucket,
    order: PriorityOrder,
    places: BTreeMap<Serial, Place<T>>,
    /// One for each zone that has had commands since all were empty.
    queues: Vec<Queue>,
    shares: Shares,
    bytes: usize,
    /// The sum of what waits costs.
    cost: u64,
    serial: Serial,
    turns: u64,
    /// Whether the node itself had the last turn.
    was_node: bool,
    /// What the zone with the last turn has had before it.
    served: u64,
    /// Comparisons in this millisecond.
    compared: usize,
    compared_ms: u64,
    /// No rate applies any more: what waits goes in the order in which it came.
    ends: bool,
    due_ms: u64,
}

impl<T> Pacer<T> {
    /// Starts without commands.
    pub fn new(rate: CommandRate, order: PriorityOrder, now_ms: u64) -> Self {
        Pacer {
            bucket: Bucket::new(rate, now_ms),
            order,
            places: BTreeMap::new(),
            queues: Vec::new(),
            shares: Shares::new(WAITING_MAX),
            bytes: 0,
            cost: 0,
            serial: 0,
            turns: 0,
            was_node: false,
            served: 0,
            compared: 0,
            compared_ms: 0,
            ends: false,
            due_ms: 0,
        }
    }

    /// Another rate and another order from now on.
    pub fn change(&mut self, rate: CommandRate, order: PriorityOrder, now_ms: u64) {
        self.bucket.change(rate, now_ms);
        (self.order, self.due_ms, self.ends) = (order, now_ms, false);
    }

    /// No rate from now on: what waits is due, in the order in which it came.
    pub fn end_rate(&mut self, now_ms: u64) {
        let all_at_once = CommandRate { milli_per_s: u32::MAX, burst: u32::MAX };
        self.bucket = Bucket::new(all_at_once, now_ms);
        (self.order, self.due_ms, self.ends) = (PriorityOrder::AsTheyCome, now_ms, true);
    }

    /// How many commands wait.
    pub fn waiting(&self) -> usize {
        self.places.len()
    }

    /// In how many milliseconds all that waits will have gone.
    pub fn wait_ms(&self) -> u64 {
        self.bucket.span_ms(self.cost)
    }

    /// When [`Self::next`] may have a command. `None`: nothing waits.
    pub fn due_ms(&self) -> Option<u64> {
        (!self.places.is_empty()).then_some(self.due_ms)
    }

    /// The commands that wait, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<T>> {
        self.places.values().map(|place| &place.it)
    }

    /// Whether a barrier of this zone waits.
    pub fn has_barrier(&self, zone: ZoneId) -> bool {
        self.queue(zone).is_some_and(|queue| queue.barriers > 0)
    }

    fn queue(&self, zone: ZoneId) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.zone == zone)
    }

    /// Whether a command may go at once, without waiting. [`Self::spend`] follows if it goes.
    pub fn may_go_now(&mut self, zone: ZoneId, cost: u32, concern: &Concern, now_ms: u64) -> bool {
        let is_first = match concern {
            Concern::Nothing => self.queue(zone).is_none_or(|queue| queue.serials.is_empty()),
            Concern::Rules(_) | Concern::Shared(_) => self.places.is_empty(),
        };
        is_first && self.bucket.has(cost, now_ms)
    }

    /// A command went without waiting.
    pub fn spend(&mut self, cost: u32) {
        self.bucket.spend(cost);
    }

    /// Whether a zone may add a command of this length.
    ///
    /// # Errors
    /// It may not, because it or all zones together have as much waiting as may be.
    pub fn check_room(&self, zone: ZoneId, bytes: usize) -> Result<(), QueueFull> {
        let of_zone = self.queue(zone).map_or(0, |queue| queue.bytes);
        let left = WAITING_BYTES_MAX.saturating_sub(self.bytes);
        let has_bytes = if zone == ZoneId::KERNEL { bytes <= left } else { of_zone + bytes <= left };
        if has_bytes && self.shares.has_room(zone) {
            return Ok(());
        }
        Err(QueueFull { waiting: self.waiting(), wait_ms: self.wait_ms() })
    }

    /// Adds a command, for which there is room.
    pub fn hold(&mut self, it: Waiting<T>, now_ms: u64) {
        if self.places.is_empty() {
            self.queues.clear();
            self.bucket.has(it.cost, now_ms);
            self.due_ms = self.bucket.when_ms(it.cost);
        }
        self.serial += 1;
        self.bytes += it.bytes;
        self.cost += u64::from(it.cost);
        self.shares.take(it.zone);
        let (turn, served) = (self.turns, self.served);
        let queue = queue_of(&mut self.queues, it.zone, turn);
        if queue.serials.is_empty() {
            queue.served = queue.served.max(served);
        }
        queue.push(self.serial, it.bytes, it.is_barrier);
        self.places.insert(self.serial, Place { it, may_overtake_until: 0, waits_for: None });
    }

    /// The next command that goes now, if any. `may_go` says of a command whether something else than the rate holds it.
    pub fn next(&mut self, now_ms: u64, may_go: impl Fn(&Waiting<T>) -> bool) -> Option<Waiting<T>> {
        if self.places.is_empty() {
            return None;
        }
        self.queues.iter_mut().for_each(|queue| queue.start_batch(self.serial));
        if self.compared_ms != now_ms {
            (self.compared_ms, self.compared) = (now_ms, 0);
        }
        let Some(serial) = self.choose(&may_go) else {
            self.due_ms = now_ms.saturating_add(RETRY_MS);
            return None;
        };
        let cost = self.places.get(&serial)?.it.cost;
        if !self.bucket.has(cost, now_ms) {
            self.due_ms = self.bucket.when_ms(cost);
            return None;
        }
        self.due_ms = now_ms;
        self.bucket.spend(cost);
        self.take(serial)
    }

    /// Everything that waits, oldest first. Nothing waits afterwards.
    pub fn take_all(&mut self) -> Vec<Waiting<T>> {
        self.queues.clear();
        (self.bytes, self.cost) = (0, 0);
        self.shares.clear();
        std::mem::take(&mut self.places).into_values().map(|place| place.it).collect()
    }

    fn take(&mut self, serial: Serial) -> Option<Waiting<T>> {
        let it = self.places.remove(&serial)?.it;
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.zone == it.zone) {
            queue.remove(serial, it.bytes, it.is_barrier);
        }
        if it.cost > 0 {
            self.end_turn(it.zone, it.cost);
        }
        self.bytes -= it.bytes;
        self.cost -= u64::from(it.cost);
        self.shares.give_back(it.zone);
        Some(it)
    }

    /// A zone has had its turn. Zones that could not take an earlier one do not catch up.
    fn end_turn(&mut self, zone: ZoneId, cost: u32) {
        self.turns += 1;
        self.was_node = zone == ZoneId::KERNEL;
        if self.was_node {
            return;
        }
        let Some(queue) = self.queues.iter_mut().find(|queue| queue.zone == zone) else { return };
        self.served = self.served.max(queue.served);
        queue.served = self.served + u64::from(cost);
        queue.last_turn = self.turns;
        let waiting = self.queues.iter_mut().filter(|queue| !queue.serials.is_empty());
        waiting.for_each(|queue| queue.served = queue.served.max(self.served));
    }

    /// The command that is next, if the rate allows it. What costs nothing goes first.
    fn choose(&mut self, may_go: &impl Fn(&Waiting<T>) -> bool) -> Option<Serial> {
        if self.ends {
            return self.oldest(may_go);
        }
        let mut all_known = true;
        for number in self.in_turn() {
            for serial in self.tried(&self.queues[number]) {
                if !self.places.get(&serial).is_some_and(|place| may_go(&place.it)) {
                    continue;
                }
                match self.freedom(serial) {
                    Freedom::Free => return Some(serial),
                    Freedom::Waits => {}
                    Freedom::NotKnown => all_known = false,
                }
            }
        }
        if all_known { None } else { self.oldest(may_go) }
    }

    /// The queues with commands: those with a command that costs nothing, then the node's own unless it had the last turn, then the others
    /// by what they have had.
    fn in_turn(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> =
            (0..self.queues.len()).filter(|number| !self.queues[*number].serials.is_empty()).collect();
        numbers.sort_by_key(|number| {
            let queue = &self.queues[*number];
            let first = queue.serials.front().and_then(|serial| self.places.get(serial));
            let is_node = queue.zone == ZoneId::KERNEL;
            let class = match (first.is_some_and(|place| place.it.cost == 0), is_node) {
                (true, _) => 0,
                (false, true) if !self.was_node => 1,
                (false, false) => 2,
                (false, true) => 3,
            };
            (class, queue.served, queue.last_turn)
        });
        numbers
    }

    /// The oldest command of all, which waits for no other.
    fn oldest(&self, may_go: &impl Fn(&Waiting<T>) -> bool) -> Option<Serial> {
        let (serial, place) = self.places.first_key_value()?;
        may_go(&place.it).then_some(*serial)
    }

    /// Whether a command may go before all that came earlier. What was found is kept: earlier commands become fewer, and no more.
    fn freedom(&mut self, serial: Serial) -> Freedom {
        let Some(place) = self.places.get(&serial) else { return Freedom::Waits };
        if matches!(place.it.concern, Concern::Nothing) {
            // It is the first of its zone.
            return Freedom::Free;
        }
        if place.waits_for.is_some_and(|earlier| self.places.contains_key(&earlier)) {
            return Freedom::Waits;
        }
        let (mut until, mut found) = (place.may_overtake_until, Freedom::Free);
        let size = place.it.concern.size();
        let most = self.compared + if size > 1 { COMPARED_FOR_BUNDLE } else { COMPARED_FOR_RULE };
        let (most, mut waits_for) = (most.min(COMPARED_MAX), None);
        for (earlier, before) in self.places.range(until..serial) {
            let work = before.it.concern.size() * size;
            // Two large bundles keep their order: to find out whether they need to would take too long.
            if work > COMPARED_FOR_RULE {
                (found, waits_for) = (Freedom::Waits, Some(*earlier));
                break;
            }
            if self.compared >= most {
                found = Freedom::NotKnown;
                break;
            }
            until = earlier + 1;
            self.compared += work;
            if before.it.must_go_before(&place.it) {
                (found, waits_for) = (Freedom::Waits, Some(*earlier));
                break;
            }
        }
        if let Some(place) = self.places.get_mut(&serial) {
            (place.may_overtake_until, place.waits_for) = (until, waits_for);
        }
        found
    }

    /// The commands of a queue that are tried, the cheapest first and the oldest last.
    fn tried(&self, queue: &Queue) -> Vec<Serial> {
        let oldest = queue.serials.front().copied();
        if self.order == PriorityOrder::AsTheyCome {
            return oldest.into_iter().collect();
        }
        let in_batch = queue.serials.iter().take_while(|serial| **serial <= queue.batch_until);
        let adds = in_batch.map_while(|serial| {
            let add = self.places.get(serial)?.it.concern.as_add()?;
            Some((*serial, add.priority))
        });
        let key = |(serial, priority): &(Serial, u16)| match self.order {
            PriorityOrder::Descending => (u16::MAX - priority, *serial),
            PriorityOrder::Ascending | PriorityOrder::AsTheyCome => (*priority, *serial),
        };
        let mut cheapest: Vec<(Serial, u16)> = adds.collect();
        if cheapest.len() > TRIED_MAX {
            cheapest.select_nth_unstable_by_key(TRIED_MAX - 1, key);
            cheapest.truncate(TRIED_MAX);
        }
        cheapest.sort_by_key(key);
        cheapest.into_iter().map(|(serial, _)| serial).chain(oldest).collect()
    }
}

impl<T> Waiting<T> {
    /// Whether a later command must not go before this one.
    fn must_go_before(&self, later: &Waiting<T>) -> bool {
        if self.zone == later.zone {
            !self.concern.may_swap(&later.concern)
        } else {
            self.concern.must_keep_order(&later.concern)
        }
    }
}
