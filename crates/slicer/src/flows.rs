//! The flows of a slice: pairs of VNICs, and the paths that the tenant's rules give their packets ([`crate::tracing`] says what a path is).
//!
//! ```text
//!   rules that changed ──set_rule──> hops ──> VNICs whose packets meet them are due ──advance──> FlowChange: path, other path, no path
//! ```
//!
//! A change of a rule traces only VNICs again whose packets come to the rule's port and can match it, or whose packets have a source address whose home
//! changed. Each VNIC takes a bounded number of steps.
//!
//! In: rules as hops. Out: changes of paths. The paths after some changes are those that all rules give at once, whatever their order.

use crate::homes::Address;
use crate::hops::{Hop, HopTable, Order};
use crate::plan::End;
use crate::tracing::{Ground, Share, Traced, trace};
use crate::vnic::{FlowChange, FlowPath, Wiring};
use flow::{DatapathId, Match};
use std::collections::{BTreeMap, BTreeSet};

/// The flows of a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    ground: Ground,
    /// The hops of each rule, by switch and number.
    rules: BTreeMap<(DatapathId, u64), Vec<(End, Order)>>,
    /// The paths from each port of a VNIC, as they were told.
    traced: BTreeMap<End, Traced>,
    /// The VNICs whose packets came to a port.
    visitors: BTreeMap<End, BTreeSet<End>>,
    /// Those that have to be traced again.
    due: BTreeSet<End>,
}

impl Flows {
    /// The flows of a slice without rules. `starts`: the packets of the slice that enter at the port of each VNIC.
    pub(crate) fn new(wiring: Wiring, starts: BTreeMap<End, Vec<Match>>) -> Flows {
        let share = Share::of(starts.len());
        let due = starts.keys().copied().collect();
        let ground = Ground { wiring, starts, share, ..Ground::default() };
        Flows { ground, due, ..Flows::default() }
    }

    /// A rule has these hops now, in place of those that it had. None: it is gone.
    pub(crate) fn set_rule(&mut self, datapath: DatapathId, number: u64, hops: Vec<(End, Order, Hop)>) {
        let before = self.rules.remove(&(datapath, number)).unwrap_or_default();
        let mut gone: Vec<(End, Hop)> = Vec::new();
        let mut is_kept = vec![false; hops.len()];
        for (at, order) in before {
            let Some(hop) = self.ground.hops.get_mut(&at).and_then(|table| table.remove(order)) else {
                continue;
            };
            let same = hops.iter().position(|(there, now, new)| (*there, *now) == (at, order) && *new == hop);
            match same {
                Some(place) => is_kept[place] = true,
                None => gone.push((at, hop)),
            }
        }
        let mut places = Vec::with_capacity(hops.len());
        let mut moved = Vec::new();
        for ((at, order, hop), is_kept) in hops.into_iter().zip(is_kept) {
            places.push((at, order));
            if !is_kept {
                self.touch(at, &hop);
                moved.extend(self.ground.homes.add(at, &hop, &self.ground.wiring));
            }
            self.ground.hops.entry(at).or_default().insert(order, hop);
        }
        for (at, hop) in &gone {
            self.touch(*at, hop);
            moved.extend(self.ground.homes.remove(*at, hop, &self.ground.wiring));
            if self.ground.hops.get(at).is_some_and(HopTable::is_empty) {
                self.ground.hops.remove(at);
            }
        }
        if !places.is_empty() {
            self.rules.insert((datapath, number), places);
        }
        self.touch_homes(&moved);
    }

    /// VNICs whose packets meet a rule are due.
    fn touch(&mut self, at: End, hop: &Hop) {
        let Flows { traced, visitors, due, .. } = self;
        for source in visitors.get(&at).into_iter().flatten() {
            let mut is_met = || traced.get_mut(source).is_some_and(|traced| traced.is_touched(at, hop));
            if !due.contains(source) && is_met() {
                due.insert(*source);
            }
        }
    }

    /// VNICs whose packets have one of these sources are due.
    fn touch_homes(&mut self, moved: &[Address]) {
        if moved.is_empty() {
            return;
        }
        for (source, traced) in &self.traced {
            let asked = |asked: &BTreeSet<Address>| moved.iter().any(|address| asked.contains(address));
            if traced.asked.as_ref().is_none_or(asked) {
                self.due.insert(*source);
            }
        }
    }

    /// Traces up to this number of VNICs that are due. Returns whether more are.
    pub(crate) fn advance(&mut self, vnics: usize, out: &mut Vec<FlowChange>) -> bool {
        for _ in 0..vnics {
            let Some(source) = self.due.pop_first() else { break };
            let now = trace(&self.ground, source);
            for at in now.visits.keys() {
                self.visitors.entry(*at).or_default().insert(source);
            }
            let before = self.traced.remove(&source).unwrap_or_default();
            for at in before.visits.keys().filter(|at| !now.visits.contains_key(at)) {
                self.leave(*at, source);
            }
            for end in before.paths.keys().filter(|end| !now.paths.contains_key(end)) {
                self.tell(source, *end, None, out);
            }
            for (end, path) in &now.paths {
                if before.paths.get(end) != Some(path) {
                    self.tell(source, *end, Some(path), out);
                }
            }
            self.traced.insert(source, now);
        }
        !self.due.is_empty()
    }

    fn leave(&mut self, at: End, source: End) {
        let Some(visitors) = self.visitors.get_mut(&at) else { return };
        visitors.remove(&source);
        if visitors.is_empty() {
            self.visitors.remove(&at);
        }
    }

    /// Whether some VNICs have to be traced again.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// All paths, as they were told.
    pub(crate) fn all(&self) -> Vec<FlowChange> {
        let mut all = Vec::new();
        for (source, traced) in &self.traced {
            traced.paths.iter().for_each(|(end, path)| self.tell(*source, *end, Some(path), &mut all));
        }
        all
    }

    /// How many VNICs have so many rules before them that some of their flows were left out.
    pub(crate) fn cut(&self) -> usize {
        self.traced.values().filter(|traced| traced.is_cut).count()
    }

    /// Each VNIC behind one port to each behind another.
    fn tell(&self, source: End, destination: End, path: Option<&FlowPath>, out: &mut Vec<FlowChange>) {
        let vnics = |end| self.ground.wiring.vnics.get(&end).map_or(&[][..], Vec::as_slice);
        for from in vnics(source) {
            let others = vnics(destination).iter().filter(|to| *to != from);
            out.extend(others.map(|to| FlowChange {
                from: from.clone(),
                to: to.clone(),
                path: path.cloned(),
            }));
        }
    }
}

#[cfg(test)]
mod tests;
