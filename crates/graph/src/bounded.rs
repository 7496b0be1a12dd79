//! The shortest path whose latency stays within a bound.
//!
//! ```text
//!   labels (cost, latency) from the first switch, cheapest first ──> the first that reaches the last switch
//! ```
//!
//! In: costs, a bound, the least latency from each switch on. Out: a path. The search is exact up to [`LABELS_MAX`] labels. It never
//! returns a path beyond the bound.

use crate::search::Usable;
use crate::topology::{LinkNo, SwitchNo, Topology};
use crate::trees::{NONE, cost_of};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use view::LinkId;

/// The maximum number of labels of one search, so that a search ends in a bounded time. At the bound, the path with the least latency is
/// taken instead of the one with the least cost.
pub const LABELS_MAX: usize = 100_000;

/// A way from the first switch to another one.
#[derive(Clone, Copy)]
struct Label {
    at: SwitchNo,
    /// The label before, and the link from there.
    before: Option<(usize, LinkNo)>,
}

/// What a bounded search is about.
pub(crate) struct Bounded<'b> {
    pub(crate) topology: &'b Topology,
    pub(crate) cost: &'b [u32],
    pub(crate) usable: &'b Usable<'b>,
    /// By switch: the least latency from there to the last switch.
    pub(crate) least_us: &'b [u64],
    pub(crate) max_us: u64,
}

/// A place in the queue: cost, latency, the last link, and the label.
type Place = Reverse<(u64, u64, Option<LinkId>, usize)>;

impl Bounded<'_> {
    /// Appends the path. `None`: too many labels.
    pub(crate) fn path(&self, from: SwitchNo, to: SwitchNo, out: &mut Vec<LinkNo>) -> Option<bool> {
        let mut labels = vec![Label { at: from, before: None }];
        let mut queue = BinaryHeap::from([Reverse((0, 0, None, 0))]);
        // A label is worth following only if it is faster than all cheaper ones at its switch.
        let mut fastest_us = vec![u64::MAX; self.topology.switches()];
        while let Some(Reverse((cost, latency_us, _, number))) = queue.pop() {
            let at = labels[number].at;
            if latency_us >= fastest_us[at.index()] {
                continue;
            }
            fastest_us[at.index()] = latency_us;
            if at == to {
                trace(&labels, number, out);
                return Some(true);
            }
            self.follow((cost, latency_us), number, &mut labels, &mut queue);
            if labels.len() > LABELS_MAX {
                return None;
            }
        }
        Some(false)
    }

    fn follow(
        &self,
        (cost, latency_us): (u64, u64),
        number: usize,
        labels: &mut Vec<Label>,
        queue: &mut BinaryHeap<Place>,
    ) {
        for arc in self.topology.out(labels[number].at) {
            let slot = self.topology.slot(arc.link);
            let own = cost_of(self.cost, arc.link);
            let Some(more_us) = slot.latency_us.filter(|_| own != NONE && (self.usable)(arc.link, slot))
            else {
                continue;
            };
            let behind_us = latency_us.saturating_add(more_us);
            if behind_us.saturating_add(self.least_us[arc.peer.index()]) > self.max_us {
                continue;
            }
            queue.push(Reverse((cost + u64::from(own), behind_us, Some(slot.id), labels.len())));
            labels.push(Label { at: arc.peer, before: Some((number, arc.link)) });
        }
    }

    /// The least latency from each switch to this one.
    pub(crate) fn least_latencies(topology: &Topology, usable: &Usable<'_>, to: SwitchNo) -> Vec<u64> {
        let mut least_us = vec![u64::MAX; topology.switches()];
        least_us[to.index()] = 0;
        let mut queue = BinaryHeap::from([Reverse((0u64, to))]);
        while let Some(Reverse((near_us, switch))) = queue.pop() {
            if near_us > least_us[switch.index()] {
                continue;
            }
            for arc in topology.into(switch) {
                let slot = topology.slot(arc.link);
                let Some(own_us) = slot.latency_us.filter(|_| slot.is_up && usable(arc.link, slot)) else {
                    continue;
                };
                let through_us = near_us.saturating_add(own_us);
                if through_us < least_us[arc.peer.index()] {
                    least_us[arc.peer.index()] = through_us;
                    queue.push(Reverse((through_us, arc.peer)));
                }
            }
        }
        least_us
    }
}

fn trace(labels: &[Label], last: usize, out: &mut Vec<LinkNo>) {
    let start = out.len();
    let mut number = last;
    while let Some((before, link)) = labels[number].before {
        out.push(link);
        number = before;
    }
    out[start..].reverse();
}
