//! Labels of virtual links: the least label of their hops.
//!
//! In: which links of the network a slice's virtual link leads over. Out: labels of the virtual link. Flows over it are booked on its hops by
//! [`crate::flow_sums`].

use super::{Effect, Engine, Over};
use hose::{LinkNo, SliceNo};
use labels_contract::Label;
use view::LinkId;

impl Engine {
    /// Links of slices may have several hops, which [`Engine::on_virtual_link`] says.
    pub fn expect_virtual_links(&mut self) {
        self.sums.expect_virtual_links();
    }

    /// A link of a slice leads over these links of the network from now on. With less than two, it is a cable, or it is down.
    pub fn on_virtual_link(
        &mut self,
        slice: &str,
        link: LinkId,
        hops: &[LinkId],
        now_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        let Some(number) = self.slices.number(slice) else { return };
        if !self.sums.set_hops(number, link, hops) {
            return;
        }
        let known = self.sums.links.number(link);
        let is_shown =
            self.slices.get(number).zip(known).is_some_and(|(slice, it)| slice.shown.contains(&it));
        if is_shown {
            let had_hops = self.unwatch_hops(number, link);
            self.watch_hops(number, link, now_ms, out);
            if had_hops && self.over(number, link).is_none() {
                out.push(Effect::Told { slice: slice.to_owned(), link, label: None });
            }
        }
        self.is_state_due |= !self.stale.is_empty();
        self.settle(now_ms, out);
    }

    fn over(&self, slice: SliceNo, link: LinkId) -> Option<&Over> {
        self.over.get(&slice)?.get(&link)
    }

    /// A slice is told the least label of the hops of a link, now and later.
    pub(super) fn watch_hops(&mut self, slice: SliceNo, link: LinkId, now_ms: u64, out: &mut Vec<Effect>) {
        let hops = self.sums.hops(slice, link).to_vec();
        if hops.is_empty() {
            return;
        }
        let mut over = Over::default();
        for hop in hops {
            // Without room for a hop, the link has no label.
            let Ok(number) = self.sums.take(slice, hop) else { continue };
            let _told = self.notices.watch(slice, number, now_ms, &self.sums.flows);
            over.hops.push(number);
        }
        self.over.entry(slice).or_default().insert(link, over);
        self.tell_least(slice, link, out);
    }

    /// Returns whether the link had hops.
    pub(super) fn unwatch_hops(&mut self, slice: SliceNo, link: LinkId) -> bool {
        let Some(all) = self.over.get_mut(&slice) else { return false };
        let Some(over) = all.remove(&link) else { return false };
        if all.is_empty() {
            self.over.remove(&slice);
        }
        for hop in over.hops {
            self.notices.unwatch(slice, hop);
            self.sums.links.release(hop);
        }
        true
    }

    /// A slice is gone.
    pub(super) fn forget_hops(&mut self, slice: SliceNo) {
        let links: Vec<LinkId> =
            self.over.get(&slice).into_iter().flat_map(|it| it.keys().copied()).collect();
        for link in links {
            self.unwatch_hops(slice, link);
        }
        self.sums.forget_hops(slice);
    }

    /// The label of a link of the network may be another one: so may be those of the virtual links of this slice over it.
    pub(super) fn on_hop(&mut self, slice: SliceNo, hop: LinkNo, out: &mut Vec<Effect>) {
        let all = self.over.get(&slice).into_iter().flatten();
        let over: Vec<LinkId> =
            all.filter(|(_, over)| over.hops.contains(&hop)).map(|(link, _)| *link).collect();
        over.into_iter().for_each(|link| self.tell_least(slice, link, out));
    }

    /// A link of the network has another capacity.
    pub(super) fn on_hop_capacity(&mut self, hop: LinkNo, now_ms: u64, out: &mut Vec<Effect>) {
        let is_over = |all: &std::collections::BTreeMap<LinkId, Over>| {
            all.values().any(|over| over.hops.contains(&hop))
        };
        let slices: Vec<SliceNo> =
            self.over.iter().filter(|(_, all)| is_over(all)).map(|(slice, _)| *slice).collect();
        for slice in slices {
            let _told = self.notices.watch(slice, hop, now_ms, &self.sums.flows);
            self.on_hop(slice, hop, out);
        }
    }

    fn tell_least(&mut self, slice: SliceNo, link: LinkId, out: &mut Vec<Effect>) {
        let label = self.least(slice, link);
        let name = self.slices.get(slice).map(|slice| slice.name.as_str().to_owned());
        let over = self.over.get_mut(&slice).and_then(|all| all.get_mut(&link));
        if let (Some(over), Some(slice)) = (over.filter(|over| over.told != label), name) {
            over.told = label;
            self.counts.notices += 1;
            out.push(Effect::Told { slice, link, label });
        }
    }

    /// The label of a virtual link. `None`: it has no hops, or one of them has no label.
    pub(super) fn least(&self, slice: SliceNo, link: LinkId) -> Option<Label> {
        let over = self.over(slice, link)?;
        let labels = self.sums.flows.labels();
        let of = |hop: &LinkNo| Some((labels.label(slice, *hop)?.kbps(), labels.capacity(*hop)?.kbps()));
        let all: Option<Vec<(u64, u64)>> = over.hops.iter().map(of).collect();
        let all = all?;
        let label_kbps = all.iter().map(|(label, _)| *label).min()?;
        let capacity_kbps = all.iter().map(|(_, capacity)| *capacity).min()?;
        Some(Label { link, capacity_kbps, label_kbps })
    }

    /// Whether a virtual link of the slice has a hop whose capacity may be too high.
    pub(super) fn is_over_stale(&self, slice: SliceNo) -> bool {
        let is_stale = |hop: &LinkNo| self.sums.links.id(*hop).is_some_and(|id| self.stale.contains(&id));
        let mut all = self.over.get(&slice).into_iter().flat_map(|all| all.values());
        !self.stale.is_empty() && all.any(|over| over.hops.iter().any(is_stale))
    }
}
