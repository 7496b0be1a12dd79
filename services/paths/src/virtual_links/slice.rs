//! The slices as their links concern them: who has packets in common, and which ports no link may lead over.
//!
//! In: what the node says of slices. Out: answers about pairs of slices and about ports. It knows no network.

use flow::relation::overlaps;
use paths_contract::SliceLinks;
use std::collections::{BTreeMap, BTreeSet};
use view::{ConnectPoint, LinkId};

/// All slices, by their places in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Slices {
    all: Vec<(String, SliceLinks)>,
    /// The own ports of all slices.
    own_ports: BTreeSet<ConnectPoint>,
    /// The slices with packets in common, as far as somebody has asked. A slice is among its own.
    rivals: BTreeMap<usize, BTreeSet<usize>>,
}

impl Slices {
    pub(super) fn new(all: BTreeMap<String, SliceLinks>) -> Slices {
        let own_ports = all.values().flat_map(|slice| &slice.own_ports).copied().collect();
        Slices { all: all.into_iter().collect(), own_ports, rivals: BTreeMap::new() }
    }

    pub(super) fn name(&self, slice: usize) -> &str {
        self.all.get(slice).map_or("", |(name, _)| name)
    }

    pub(super) fn get(&self, slice: usize) -> Option<&SliceLinks> {
        self.all.get(slice).map(|(_, links)| links)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.binary_search_by(|(known, _)| known.as_str().cmp(name)).is_ok()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &SliceLinks> {
        self.all.iter().map(|(_, links)| links)
    }

    /// All links, each with the place of its slice.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, LinkId)> {
        let of = |(slice, (_, it)): (usize, &'_ (String, SliceLinks))| {
            it.links.iter().map(move |link| (slice, *link)).collect::<Vec<_>>()
        };
        self.all.iter().enumerate().flat_map(of)
    }

    /// Notes which slices have packets in common with this one.
    pub(super) fn prepare(&mut self, slice: usize) {
        let Slices { all, rivals, .. } = self;
        rivals.entry(slice).or_insert_with(|| {
            let Some((_, own)) = all.get(slice) else { return BTreeSet::new() };
            let is_rival = |other: &SliceLinks| {
                own.packets.iter().any(|one| other.packets.iter().any(|two| overlaps(one, two)))
            };
            let others =
                all.iter().enumerate().filter(|(place, (_, other))| *place == slice || is_rival(other));
            others.map(|(place, _)| place).collect()
        });
    }

    /// Whether two slices have packets in common. [`Slices::prepare`] comes before.
    pub(super) fn are_rivals(&self, one: usize, other: usize) -> bool {
        self.rivals.get(&one).is_some_and(|rivals| rivals.contains(&other))
    }

    /// The ports over which no link of a slice may lead. [`Slices::prepare`] comes before.
    pub(super) fn blocked(&self, slice: usize) -> BTreeSet<ConnectPoint> {
        let rivals = self.rivals.get(&slice).into_iter().flatten().filter_map(|rival| self.get(*rival));
        rivals.flat_map(|it| it.ports.iter().chain(&it.own_ports)).chain(&self.own_ports).copied().collect()
    }
}
