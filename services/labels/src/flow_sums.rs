//! Paths of slices and reservations of intents as the arithmetic has them: links by number, each taken as often as a path needs it.
//!
//! In: paths and reservations by the names of links. Out: changes of sums. It decides nothing about slices, and tells nobody.

use crate::links::Links;
use crate::slices::INTENTS;
use hose::{BANDWIDTH_MAX, Bandwidth, Flows, LinkNo, Pair, Path, SliceNo};
use std::collections::BTreeMap;
use view::LinkId;

/// The flows of all slices, and the links that they need.
#[derive(Clone, Debug, Default)]
pub struct FlowSums {
    /// The arithmetic.
    pub flows: Flows,
    /// Links by name.
    pub links: Links,
    /// What intents reserve: as many links as [`crate::reservations`] knows at most.
    reserved: BTreeMap<LinkId, Bandwidth>,
    /// What the sums have of it. A link that the view does not have has no label, so what is booked there does not matter.
    booked: BTreeMap<LinkNo, Bandwidth>,
    /// Whether links of slices may have several hops.
    expects_virtual_links: bool,
    /// The links of the network below virtual links of slices.
    hops: BTreeMap<(SliceNo, LinkId), Vec<LinkId>>,
    /// Paths as slices have reported them, if a link of them is not in the view. It may have hops, now or later.
    reported: BTreeMap<Pair, (Box<[LinkId]>, u32)>,
}

impl FlowSums {
    /// A slice needs a link.
    ///
    /// # Errors
    /// A sentence: too many links that the view does not have.
    pub fn take(&mut self, slice: SliceNo, link: LinkId) -> Result<LinkNo, String> {
        let is_new = self.links.number(link).is_none();
        let number = self.links.take(slice, link);
        let number = number.ok_or_else(|| format!("link {link} is not in the network"))?;
        if is_new {
            // A capacity of nothing means that it is not known: flows can be over the link, and it has no label.
            let known = self.flows.labels_mut().set_capacity(number, Bandwidth::ZERO);
            known.map_err(|why| why.to_string())?;
        }
        Ok(number)
    }

    /// Intents reserve so much of a link from now on.
    pub fn reserve(&mut self, link: LinkId, bandwidth: Bandwidth) {
        match bandwidth {
            Bandwidth::ZERO => drop(self.reserved.remove(&link)),
            // A link carries no more.
            some => drop(self.reserved.insert(link, some.min(BANDWIDTH_MAX))),
        }
        self.book(link);
    }

    /// The view has a link: what is reserved of it counts. If its number was that of another link before, what was booked for that one goes.
    pub fn book(&mut self, link: LinkId) {
        let Some(number) = self.links.in_view(link) else { return };
        let now = self.reserved.get(&link).copied().unwrap_or_default();
        let before = match now {
            Bandwidth::ZERO => self.booked.remove(&number),
            some => self.booked.insert(number, some),
        };
        let before = before.unwrap_or_default();
        // The link has a capacity, and the number of the slice is within its bound.
        let _known = self.flows.labels_mut().shift(INTENTS, &[number], before.bps(), now.bps());
    }

    /// The path of a pair is this one now. A path that is refused is no path: what was there before is true no more.
    ///
    /// # Errors
    /// A sentence with the first thing that is wrong.
    pub fn put_path(&mut self, pair: Pair, links: &[LinkId], rules: u32) -> Result<(), String> {
        let is_unknown = |link: &LinkId| self.links.in_view(*link).is_none();
        if !self.expects_virtual_links || !links.iter().any(is_unknown) {
            self.reported.remove(&pair);
            return self.put_hops(pair, links, rules);
        }
        let hops = self.expanded(pair.slice, links);
        self.put_hops(pair, &hops, rules)?;
        self.reported.insert(pair, (links.into(), rules));
        Ok(())
    }

    /// The links of the network below these links of a slice.
    fn expanded(&self, slice: SliceNo, links: &[LinkId]) -> Vec<LinkId> {
        let hops = links.iter().flat_map(|link| match self.hops(slice, *link) {
            [] => std::slice::from_ref(link),
            hops => hops,
        });
        hops.copied().collect()
    }

    fn put_hops(&mut self, pair: Pair, links: &[LinkId], rules: u32) -> Result<(), String> {
        let mut taken = Vec::with_capacity(links.len());
        let done = self.try_path(pair, links, rules, &mut taken);
        match done {
            Ok(before) => self.release(before.links()),
            Err(_) => {
                self.release(&taken);
                self.remove_path(pair);
                return done.map(drop);
            }
        }
        Ok(())
    }

    /// Returns the links of the path that the pair had before.
    fn try_path(
        &mut self,
        pair: Pair,
        links: &[LinkId],
        rules: u32,
        taken: &mut Vec<LinkNo>,
    ) -> Result<Path, String> {
        for link in links {
            taken.push(self.take(pair.slice, *link)?);
        }
        self.flows.expect_path(pair, taken);
        let path = Path::new(taken).map_err(|why| why.to_string())?;
        let before = self.links_of(pair);
        self.flows.on_path(pair, path, rules).map_err(|why| why.to_string())?;
        Ok(before)
    }

    /// Links of slices may have several hops.
    pub fn expect_virtual_links(&mut self) {
        self.expects_virtual_links = true;
    }

    /// The hops of a virtual link. None: it is a cable, or it is down.
    pub fn hops(&self, slice: SliceNo, link: LinkId) -> &[LinkId] {
        self.hops.get(&(slice, link)).map_or(&[], Vec::as_slice)
    }

    /// A link of a slice has these hops from now on. Its flows are booked there. Says whether that is new.
    pub fn set_hops(&mut self, slice: SliceNo, link: LinkId, hops: &[LinkId]) -> bool {
        let hops = if hops.len() < 2 { &[] } else { hops };
        if self.hops(slice, link) == hops {
            return false;
        }
        match hops {
            [] => drop(self.hops.remove(&(slice, link))),
            hops => drop(self.hops.insert((slice, link), hops.to_vec())),
        }
        let over = |(pair, (links, _)): &(&Pair, &(Box<[LinkId]>, u32))| {
            pair.slice == slice && links.contains(&link)
        };
        let moved: Vec<(Pair, Vec<LinkId>, u32)> = self
            .reported
            .iter()
            .filter(over)
            .map(|(pair, (links, rules))| (*pair, self.expanded(slice, links), *rules))
            .collect();
        for (pair, links, rules) in moved {
            // A path that is too long counts no more, as if it had been reported so.
            let _done = self.put_hops(pair, &links, rules);
        }
        true
    }

    /// There is no such slice any more.
    pub fn forget_hops(&mut self, slice: SliceNo) {
        self.hops.retain(|(of, _), _| *of != slice);
    }

    /// The links of a path as the slice has reported them, if one of them may be virtual.
    pub fn reported(&self, pair: Pair) -> Option<&[LinkId]> {
        self.reported.get(&pair).map(|(links, _)| &links[..])
    }

    /// A pair has no path any more.
    pub fn remove_path(&mut self, pair: Pair) {
        self.reported.remove(&pair);
        let links = self.links_of(pair);
        self.flows.on_no_path(pair);
        self.release(links.links());
    }

    fn release(&mut self, links: &[LinkNo]) {
        links.iter().for_each(|link| self.links.release(*link));
    }

    /// The pairs of a slice that have a path.
    pub fn pairs(&self, slice: SliceNo) -> Vec<Pair> {
        self.flows.flows(slice).map(|flow| flow.pair).collect()
    }

    fn links_of(&self, pair: Pair) -> Path {
        self.flows.path(pair).cloned().unwrap_or_default()
    }
}
