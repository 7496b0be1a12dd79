//! When the data plane gets what the tables have: at once, or later by a delay for each rule.
//!
//! In: changes of where packets meet a rule, and the time. Out: the changes whose time has come. Changes of one rule keep their order;
//! those of different rules only if the profile says so.

use super::draw::Draw;
use super::input::RuleId;
use super::output::Place;
use super::random::Stream;
use super::rules::Slot;
use crate::barrier::Barrier;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A change of where packets meet a rule. Compared by the time first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    pub(super) at_ns: u64,
    number: u64,
    pub(super) rule: RuleId,
    pub(super) slot: Slot,
    pub(super) place: Option<Place>,
    pub(super) is_of_message: bool,
}

/// Changes on their way to the data plane. `tables` bounds their number.
#[derive(Clone, Debug)]
pub(super) struct DataPlane {
    late: Option<Draw>,
    in_order: bool,
    latest_ns: u64,
    on_the_way: BinaryHeap<Reverse<Arrival>>,
    numbered: u64,
    of_messages: usize,
}

impl DataPlane {
    pub(super) fn new(barrier: &Barrier, seed: u64) -> Self {
        let late = barrier.late_us().map(|late| Draw::new(late, seed, Stream::Late));
        DataPlane {
            late,
            in_order: barrier.rules_in_order,
            latest_ns: 0,
            on_the_way: BinaryHeap::new(),
            numbered: 0,
            of_messages: 0,
        }
    }

    /// Whether every change arrives at once, without a delay of its own.
    pub(super) fn is_prompt(&self) -> bool {
        self.late.is_none()
    }

    /// A change sets out. It does not arrive before `not_before_ns`, the arrival of the rule's earlier change. Returns when it arrives.
    pub(super) fn send(
        &mut self,
        (rule, slot): (RuleId, Slot),
        place: Option<Place>,
        is_of_message: bool,
        now_ns: u64,
        not_before_ns: u64,
    ) -> u64 {
        let late = self.late.as_mut().map_or(0, Draw::next_ns);
        let mut at_ns = now_ns.saturating_add(late).max(not_before_ns);
        if self.in_order {
            at_ns = at_ns.max(self.latest_ns);
            self.latest_ns = at_ns;
        }
        self.numbered += 1;
        self.of_messages += usize::from(is_of_message);
        self.on_the_way.push(Reverse(Arrival {
            at_ns,
            number: self.numbered,
            rule,
            slot,
            place,
            is_of_message,
        }));
        at_ns
    }

    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.on_the_way.peek().map(|Reverse(arrival)| arrival.at_ns)
    }

    /// The next change that has arrived.
    pub(super) fn pop(&mut self) -> Option<Arrival> {
        let Reverse(arrival) = self.on_the_way.pop()?;
        self.of_messages -= usize::from(arrival.is_of_message);
        Some(arrival)
    }

    /// How many changes are on their way.
    #[inline]
    pub(super) fn on_the_way(&self) -> usize {
        self.on_the_way.len()
    }

    /// Whether changes of messages are on their way.
    pub(super) fn has_messages(&self) -> bool {
        self.of_messages > 0
    }
}
