//! Who is told a label, and when: damping, so that tenants do not all move at once.
//!
//! ```text
//!   watch, on_change(link) ──> ports whose label is no longer as told ──> queue by time ──> next(now) ──> Notice, with the label of that moment
//!                              overbooked: users of the link wait for their turn, the newest first
//! ```
//!
//! A port is one direction of a link as one slice sees it. Four rules:
//!
//! * A label that differs by less than 5 % of the capacity from what was told is not told.
//! * A port has at most one notice in 100 ms.
//! * On an overbooked link, slices with flows over it are told one by one, 100 ms apart, that with the newest flow first. The next is told
//!   only if the link still is overbooked. Slices without flows there have nothing to move, so they are told at once.
//! * Increases of a link are spread over a second, each time from another slice on.
//!
//! A link is looked at only if its sums have moved far enough since the last look that some port could be due. So a small change costs the same,
//! however many slices see the link.
//!
//! In: links whose sums changed, the flows, time in milliseconds. Out: notices, and when to ask again. It sends nothing. A port has one place in
//! the queue, and so has a link, so the queue is as long as the lists of ports and of links at most.

use crate::flow::SliceNo;
use crate::flows::Flows;
use crate::units::Bandwidth;
use graph::LinkNo;
use std::collections::{BTreeMap, BTreeSet};

/// The shortest time between two notices of a port, and between two turns on an overbooked link.
pub const INTERVAL_MS: u64 = 100;

/// Over how long increases are spread.
pub const INCREASES_MS: u64 = 1_000;

/// The least change that is told, in percent of the capacity.
pub const CHANGE_MIN_PERCENT: u128 = 5;

/// The maximum number of ports. A further one is refused: its slice can still ask for labels.
pub const PORTS_MAX: usize = 1 << 20;

/// A label that a slice is to be told now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The slice.
    pub slice: SliceNo,
    /// The link.
    pub link: LinkNo,
    /// The label, as coarse as the slice's step.
    pub label: Bandwidth,
}

/// A direction of a link as one slice sees it.
#[derive(Clone, Copy, Debug)]
struct Port {
    told: Bandwidth,
    told_ms: u64,
    /// When it is due. `None`: what was told is near enough, or it waits for its turn.
    due: Option<Due>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at_ms: u64,
    is_increase: bool,
}

/// How a link that is overbooked gets through its users.
#[derive(Clone, Debug, Default)]
struct Overbooked {
    /// The slices that have had their turn.
    told: Vec<SliceNo>,
    /// The earliest time of the next turn.
    next_ms: u64,
    /// When a turn is in the queue.
    queued_ms: Option<u64>,
}

/// What the queue is about. A turn comes before ports that are due at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Turn(LinkNo),
    Port(LinkNo, SliceNo),
}

/// The difference between what a slice was told and the label now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    Small,
    Decrease,
    Increase,
}

/// When a link was last looked at, and how far its sums may move until some port can be due.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    moved_bps: u64,
    slack_bps: u64,
    capacity: Option<Bandwidth>,
    step_changes: u64,
}

/// The bound of ports is reached: [`PORTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPorts;

/// The notices of all slices.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// By link, then by slice.
    ports: BTreeMap<(LinkNo, SliceNo), Port>,
    overbooked: BTreeMap<LinkNo, Overbooked>,
    queue: BTreeSet<(u64, Place)>,
    /// At which slice increases begin the next time.
    rotation: usize,
    /// By link. A slack of 0: the next change is looked at.
    looks: Vec<Look>,
}

impl Notices {
    /// A slice sees a link from now on. It is told the label that is returned, in a features reply for example. `None`: the capacity of the link is not
    /// known; the slice is told when it is.
    ///
    /// # Errors
    /// There are too many ports.
    pub fn watch(
        &mut self,
        slice: SliceNo,
        link: LinkNo,
        now_ms: u64,
        flows: &Flows,
    ) -> Result<Option<Bandwidth>, TooManyPorts> {
        self.unwatch(slice, link);
        if self.ports.len() >= PORTS_MAX {
            return Err(TooManyPorts);
        }
        let label = flows.labels().label(slice, link);
        let port = Port { told: label.unwrap_or_default(), told_ms: now_ms, due: None };
        self.ports.insert((link, slice), port);
        self.set_look(link, Look::default());
        Ok(label)
    }

    /// A slice no longer sees a link.
    pub fn unwatch(&mut self, slice: SliceNo, link: LinkNo) {
        let port = self.ports.remove(&(link, slice));
        if let Some(due) = port.and_then(|port| port.due) {
            self.queue.remove(&(due.at_ms, Place::Port(link, slice)));
        }
    }

    /// A slice is gone.
    pub fn remove_slice(&mut self, slice: SliceNo) {
        let own = self.ports.keys().filter(|(_, other)| *other == slice);
        let links: Vec<_> = own.map(|(link, _)| *link).collect();
        links.into_iter().for_each(|link| self.unwatch(slice, link));
        self.overbooked.values_mut().for_each(|turns| turns.told.retain(|other| *other != slice));
    }

    /// The sums of a link have changed.
    pub fn on_change(&mut self, link: LinkNo, now_ms: u64, flows: &Flows) {
        if !self.is_calm(link, flows) {
            self.look(link, now_ms, flows);
            let look = self.look_of(link, flows);
            self.set_look(link, look);
        }
    }

    /// Whether no port of the link can be due, since its sums have moved so little.
    fn is_calm(&self, link: LinkNo, flows: &Flows) -> bool {
        let (Some(look), labels) = (self.looks.get(link.index()), flows.labels()) else { return false };
        let is_the_same =
            look.capacity == labels.capacity(link) && look.step_changes == labels.step_changes();
        is_the_same && labels.moved_bps(link).wrapping_sub(look.moved_bps) < look.slack_bps
    }

    /// How far the sums may move until some port is due, or the link is overbooked.
    fn look_of(&self, link: LinkNo, flows: &Flows) -> Look {
        let labels = flows.labels();
        let capacity = labels.capacity(link);
        let left = |(slice, port): (SliceNo, &Port)| match (labels.exact(slice, link), labels.step(slice)) {
            (Some(exact), None) if port.due.is_none() => {
                // The least change that is told, rounded down.
                let told_bps = capacity.map_or(0, |it| u128::from(it.bps()) * CHANGE_MIN_PERCENT / 100);
                let told_bps = u64::try_from(told_bps).unwrap_or(u64::MAX);
                told_bps.saturating_sub(port.told.bps().abs_diff(exact.bps()))
            }
            // What was told may be another step, or be due.
            _ => 0,
        };
        let until_overbooked = capacity.map_or(0, |it| it.bps().saturating_sub(labels.total(link).bps()));
        let slack_bps = self.on(link).map(left).min().unwrap_or(u64::MAX).min(until_overbooked);
        let (moved_bps, step_changes) = (labels.moved_bps(link), labels.step_changes());
        Look { moved_bps, slack_bps, capacity, step_changes }
    }

    fn set_look(&mut self, link: LinkNo, look: Look) {
        if self.looks.len() <= link.index() {
            self.looks.resize(link.index() + 1, Look::default());
        }
        self.looks[link.index()] = look;
    }

    fn look(&mut self, link: LinkNo, now_ms: u64, flows: &Flows) {
        let labels = flows.labels();
        if labels.is_overbooked(link) {
            let turns = self.overbooked.entry(link).or_default();
            turns.told.retain(|slice| labels.own(*slice, link) > Bandwidth::ZERO);
        } else {
            self.end_turns(link);
        }
        let slices: Vec<_> = self.on(link).map(|(slice, _)| slice).collect();
        let mut increases = Vec::new();
        for slice in slices {
            match self.difference(slice, link, flows) {
                Difference::Small => self.set_due(slice, link, None),
                Difference::Decrease if self.waits(slice, link, flows) => {
                    self.set_due(slice, link, None);
                    self.queue_turn(link, now_ms);
                }
                Difference::Decrease => self.decrease(slice, link, now_ms),
                Difference::Increase => increases.push(slice),
            }
        }
        self.increase(&increases, link, now_ms);
    }

    /// The next notice that is due. It is called until there is none.
    pub fn next(&mut self, now_ms: u64, flows: &Flows) -> Option<Notice> {
        while let Some((at_ms, place)) = self.queue.first().copied().filter(|(at_ms, _)| *at_ms <= now_ms) {
            self.queue.remove(&(at_ms, place));
            match place {
                Place::Turn(link) => self.turn(link, now_ms, flows),
                Place::Port(link, slice) => {
                    if let Some(label) = self.tell(slice, link, now_ms, flows) {
                        return Some(Notice { slice, link, label });
                    }
                }
            }
        }
        None
    }

    /// When to call [`Notices::next`] again. `None`: nothing is due.
    pub fn next_ms(&self) -> Option<u64> {
        self.queue.first().map(|(at_ms, _)| *at_ms)
    }

    /// What a slice was told last of a link. `None`: it does not see it.
    pub fn told(&self, slice: SliceNo, link: LinkNo) -> Option<Bandwidth> {
        self.ports.get(&(link, slice)).map(|port| port.told)
    }

    fn on(&self, link: LinkNo) -> impl Iterator<Item = (SliceNo, &Port)> {
        let range = (link, SliceNo(0))..=(link, SliceNo(u32::MAX));
        self.ports.range(range).map(|((_, slice), port)| (*slice, port))
    }

    fn difference(&self, slice: SliceNo, link: LinkNo, flows: &Flows) -> Difference {
        let labels = flows.labels();
        let known = (self.told(slice, link), labels.label(slice, link), labels.capacity(link));
        let (Some(told), Some(label), Some(capacity)) = known else { return Difference::Small };
        let change_bps = u128::from(told.bps().abs_diff(label.bps()));
        if change_bps == 0 || change_bps * 100 < CHANGE_MIN_PERCENT * u128::from(capacity.bps()) {
            Difference::Small
        } else if label < told {
            Difference::Decrease
        } else {
            Difference::Increase
        }
    }

    /// Whether a decrease waits for its turn: the slice sees and uses the overbooked link, and has had none.
    fn waits(&self, slice: SliceNo, link: LinkNo, flows: &Flows) -> bool {
        let is_user = flows.labels().own(slice, link) > Bandwidth::ZERO;
        let sees = self.ports.contains_key(&(link, slice));
        is_user && sees && self.overbooked.get(&link).is_some_and(|turns| !turns.told.contains(&slice))
    }

    fn set_due(&mut self, slice: SliceNo, link: LinkNo, due: Option<Due>) {
        let Some(port) = self.ports.get_mut(&(link, slice)) else { return };
        let place = Place::Port(link, slice);
        if let Some(before) = std::mem::replace(&mut port.due, due) {
            self.queue.remove(&(before.at_ms, place));
        }
        if let Some(due) = due {
            self.queue.insert((due.at_ms, place));
        }
    }

    /// A decrease is told as soon as the interval has passed.
    fn decrease(&mut self, slice: SliceNo, link: LinkNo, now_ms: u64) {
        let Some(port) = self.ports.get(&(link, slice)) else { return };
        if port.due.is_some_and(|due| !due.is_increase) {
            return;
        }
        let at_ms = now_ms.max(port.told_ms.saturating_add(INTERVAL_MS));
        self.set_due(slice, link, Some(Due { at_ms, is_increase: false }));
    }

    /// Increases of one link share a second evenly.
    fn increase(&mut self, slices: &[SliceNo], link: LinkNo, now_ms: u64) {
        let is_queued = |slice: &&SliceNo| {
            let port = self.ports.get(&(link, **slice));
            port.and_then(|port| port.due).is_some_and(|due| due.is_increase)
        };
        let new: Vec<_> = slices.iter().filter(|slice| !is_queued(slice)).copied().collect();
        for (place, slice) in new.iter().enumerate() {
            let turn = (place + self.rotation) % new.len();
            let wait_ms = INCREASES_MS * turn as u64 / new.len() as u64;
            let Some(port) = self.ports.get(&(link, *slice)) else { continue };
            let at_ms = now_ms.saturating_add(wait_ms).max(port.told_ms.saturating_add(INTERVAL_MS));
            self.set_due(*slice, link, Some(Due { at_ms, is_increase: true }));
        }
        if new.len() > 1 {
            self.rotation = self.rotation.wrapping_add(1);
        }
    }

    fn queue_turn(&mut self, link: LinkNo, now_ms: u64) {
        let Some(turns) = self.overbooked.get_mut(&link) else { return };
        if turns.queued_ms.is_none() {
            let at_ms = now_ms.max(turns.next_ms);
            turns.queued_ms = Some(at_ms);
            self.queue.insert((at_ms, Place::Turn(link)));
        }
    }

    fn end_turns(&mut self, link: LinkNo) {
        if let Some(at_ms) = self.overbooked.remove(&link).and_then(|turns| turns.queued_ms) {
            self.queue.remove(&(at_ms, Place::Turn(link)));
        }
    }

    /// The next user of an overbooked link has its turn.
    fn turn(&mut self, link: LinkNo, now_ms: u64, flows: &Flows) {
        let Some(turns) = self.overbooked.get_mut(&link) else { return };
        turns.queued_ms = None;
        if !flows.labels().is_overbooked(link) {
            return self.look(link, now_ms, flows);
        }
        let waits = |slice: &SliceNo| self.waits(*slice, link, flows);
        let mut users = flows.newest_first(link).into_iter().filter(waits);
        let Some(slice) = users.next() else { return };
        let must_know = |slice| self.difference(slice, link, flows) == Difference::Decrease;
        let has_more = users.any(must_know);
        let port = self.ports.get(&(link, slice));
        let ready_ms = port.map_or(now_ms, |port| port.told_ms.saturating_add(INTERVAL_MS));
        if let Some(turns) = self.overbooked.get_mut(&link) {
            turns.told.push(slice);
            turns.next_ms = now_ms.saturating_add(INTERVAL_MS);
        }
        // A slice that knows its label already has the time to move all the same.
        if self.difference(slice, link, flows) == Difference::Decrease {
            if let Some(turns) = self.overbooked.get_mut(&link) {
                turns.next_ms = now_ms.max(ready_ms).saturating_add(INTERVAL_MS);
            }
            self.decrease(slice, link, now_ms);
        }
        if has_more {
            self.queue_turn(link, now_ms);
        }
    }

    /// A port is due: the label of this moment, if it still must be told.
    fn tell(&mut self, slice: SliceNo, link: LinkNo, now_ms: u64, flows: &Flows) -> Option<Bandwidth> {
        self.ports.get_mut(&(link, slice))?.due = None;
        match self.difference(slice, link, flows) {
            Difference::Small => return None,
            Difference::Decrease if self.waits(slice, link, flows) => {
                self.queue_turn(link, now_ms);
                return None;
            }
            Difference::Decrease | Difference::Increase => {}
        }
        let label = flows.labels().label(slice, link)?;
        let port = self.ports.get_mut(&(link, slice))?;
        (port.told, port.told_ms) = (label, now_ms);
        Some(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pair, Path, VnicNo};

    const LINKS: u32 = 3;
    const SLICES: u32 = 3;
    const VNICS: u32 = 4;

    /// One change: which slice, which flow, over which links, and how much time passes.
    type Step = (u32, u32, u32, u32, u64);

    fn world() -> Flows {
        let mut flows = Flows::default();
        for link in 0..LINKS {
            flows.labels_mut().set_capacity(LinkNo(link), Bandwidth::from_kbps(100)).unwrap();
        }
        for (slice, vnic) in (0..SLICES).flat_map(|slice| (0..VNICS).map(move |vnic| (slice, vnic))) {
            flows
                .put_vnic(SliceNo(slice), VnicNo(vnic), Bandwidth::from_kbps(u64::from(1 + 7 * vnic)))
                .unwrap();
        }
        flows
    }

    fn change(
        flows: &mut Flows,
        notices: [&mut Notices; 2],
        (slice, flow, links, kind, _): Step,
        now_ms: u64,
    ) {
        let (slice, source) = (SliceNo(slice), flow % VNICS);
        let pair = Pair { slice, source: VnicNo(source), destination: VnicNo((source + 1) % VNICS) };
        let link = LinkNo(links % LINKS);
        match kind {
            0..6 => {
                let links: Vec<_> = (0..LINKS).filter(|link| links >> link & 1 == 1).map(LinkNo).collect();
                flows.on_path(pair, Path::new(&links).unwrap(), 1).unwrap();
            }
            6..8 => flows.on_no_path(pair),
            8 => {
                let step = (links % 2 == 0).then(|| "25%".parse().unwrap());
                flows.labels_mut().set_step(slice, step).unwrap();
            }
            9 => {
                let capacity = Bandwidth::from_kbps(u64::from(50 * (links % 4)));
                flows.labels_mut().set_capacity(link, capacity).unwrap();
            }
            10 => notices.into_iter().for_each(|it| it.unwatch(slice, link)),
            _ => notices.into_iter().for_each(|it| _ = it.watch(slice, link, now_ms, flows).unwrap()),
        }
    }

    fn told(notices: &mut Notices, now_ms: u64, flows: &Flows) -> Vec<Notice> {
        std::iter::from_fn(|| notices.next(now_ms, flows)).collect()
    }

    /// A generator of numbers (xorshift64*).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u32) -> u32 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let number = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % u64::from(bound);
            u32::try_from(number).unwrap()
        }

        fn step(&mut self) -> Step {
            let (slice, flow, links) = (self.below(SLICES), self.below(VNICS), self.below(8));
            (slice, flow, links, self.below(16), self.below(150).into())
        }
    }

    /// Returns how many notices there were.
    fn check(seed: u64, steps: usize) -> usize {
        let (mut flows, mut random, mut now_ms, mut count) = (world(), Random(seed), 0, 0);
        let (mut notices, mut always) = (Notices::default(), Notices::default());
        for _ in 0..steps {
            let step = random.step();
            now_ms += step.4;
            change(&mut flows, [&mut notices, &mut always], step, now_ms);
            let mut changed = Vec::new();
            flows.labels_mut().take_changed(&mut changed);
            for link in changed {
                notices.on_change(link, now_ms, &flows);
                always.looks.clear();
                always.on_change(link, now_ms, &flows);
            }
            let (one, other) = (told(&mut notices, now_ms, &flows), told(&mut always, now_ms, &flows));
            assert_eq!(one, other, "seed {seed}");
            assert_eq!(notices.next_ms(), always.next_ms(), "seed {seed}");
            count += one.len();
        }
        count
    }

    #[test]
    fn a_link_that_is_not_looked_at_has_no_port_that_would_be_told() {
        let told: usize = (1..300).map(|seed| check(seed, 150)).sum();
        assert!(told > 1_000, "{told}");
    }

    #[test]
    fn a_small_change_is_not_looked_at() {
        let (mut flows, mut notices) = (world(), Notices::default());
        let big = Bandwidth::from_kbps(100_000);
        flows.labels_mut().set_capacity(LinkNo(0), big).unwrap();
        notices.watch(SliceNo(1), LinkNo(0), 0, &flows).unwrap();
        notices.on_change(LinkNo(0), 0, &flows);
        assert!(notices.is_calm(LinkNo(0), &flows));
        let mut shift = |kbps: u64| {
            let bps = Bandwidth::from_kbps(kbps).bps();
            flows.labels_mut().shift(SliceNo(0), &[LinkNo(0)], 0, bps).unwrap();
            notices.is_calm(LinkNo(0), &flows)
        };
        assert_eq!([shift(4_000), shift(999), shift(1)], [true, true, false]);
    }
}
