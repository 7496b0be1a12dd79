//! Whether the links of the network below those of slices carry the worst traffic of all slices.
//!
//! In: slices with the rates of their VNICs, ways of their links. Out: what is lacking. A slice whose traffic is not known takes nothing. It chooses
//! no way.

use crate::slice_traffic::loads;
use graph::{LinkNo, LinkSlot, Topology};
use paths_contract::{Lack, SliceLinks};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use view::LinkId;

/// The worst traffic on both directions of a link, in bit/s: there, and back.
pub(super) type Both = [u64; 2];

/// What all links of slices take.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// By slice: the worst traffic on each direction of its links.
    loads: Vec<BTreeMap<LinkId, u64>>,
    /// By link of the network, in bit/s. At most as many as the graph has.
    taken_bps: Vec<u64>,
}

impl Room {
    pub(super) fn new<'s>(slices: impl IntoIterator<Item = &'s SliceLinks>) -> Room {
        // Admission has refused slices whose VNICs are not connected. What is unknown here is not judged.
        let of = |slice: &SliceLinks| loads(&slice.links, &slice.rates_bps).unwrap_or_default();
        Room { loads: slices.into_iter().map(of).collect(), taken_bps: Vec::new() }
    }

    /// Whether any link may carry something. If not, all ways fit.
    pub(super) fn is_used(&self) -> bool {
        self.loads.iter().flat_map(BTreeMap::values).any(|bps| *bps > 0)
    }

    /// What a link of a slice may carry.
    pub(super) fn load(&self, slice: usize, id: LinkId) -> Both {
        let loads = self.loads.get(slice);
        [id, id.reversed()].map(|it| loads.and_then(|loads| loads.get(&it)).copied().unwrap_or_default())
    }

    /// Nothing is taken.
    pub(super) fn clear(&mut self) {
        self.taken_bps.clear();
    }

    /// A link takes its way.
    pub(super) fn take(&mut self, topology: &Topology, way: &[LinkNo], load: Both) {
        self.change(topology, way, load, u64::saturating_add);
    }

    /// A link gives its way back.
    pub(super) fn give_back(&mut self, topology: &Topology, way: &[LinkNo], load: Both) {
        self.change(topology, way, load, u64::saturating_sub);
    }

    fn change(&mut self, topology: &Topology, way: &[LinkNo], load: Both, change: fn(u64, u64) -> u64) {
        self.taken_bps.resize(topology.links(), 0);
        for slot in way.iter().map(|hop| topology.slot(*hop)) {
            for (direction, bps) in both(slot).into_iter().zip(load) {
                if let Some(taken) =
                    topology.link(direction).and_then(|it| self.taken_bps.get_mut(it.index()))
                {
                    *taken = change(*taken, bps);
                }
            }
        }
    }

    /// What a link of the network has left, without those that took it. `None`: its capacity is not known.
    fn left_bps(&self, topology: &Topology, hop: LinkId) -> Option<u64> {
        let number = topology.link(hop)?;
        let free_bps = topology.slot(number).free_kbps()?.saturating_mul(1_000);
        Some(free_bps.saturating_sub(self.taken_bps.get(number.index()).copied().unwrap_or_default()))
    }

    /// By how much a link of the network is too small for this, in the direction that lacks more. What is not known counts as room.
    pub(super) fn lacking_bps(&self, topology: &Topology, hop: &LinkSlot, load: Both) -> u64 {
        let lacking = |(direction, bps): (LinkId, u64)| {
            self.left_bps(topology, direction).map_or(0, |left_bps| bps.saturating_sub(left_bps))
        };
        both(hop).into_iter().zip(load).map(lacking).max().unwrap_or_default()
    }

    /// The hop of a way with the largest shortfall. The way itself is not taken.
    pub(super) fn lack(&self, topology: &Topology, way: &[LinkNo], load: Both) -> Option<Lack> {
        let directions = way.iter().flat_map(|hop| both(topology.slot(*hop)).into_iter().zip(load));
        let lacking = directions.filter_map(|(hop, bps)| {
            let left_bps = self.left_bps(topology, hop)?;
            let by_bps = bps.checked_sub(left_bps).filter(|by_bps| *by_bps > 0)?;
            let capacity_kbps = topology.slot(topology.link(hop)?).capacity_kbps;
            let (worst_kbps, left_kbps) = (bps.div_ceil(1_000), left_bps / 1_000);
            Some((by_bps, Lack { hop, worst_kbps, left_kbps, capacity_kbps }))
        });
        lacking.max_by_key(|(by, lack)| (*by, Reverse(lack.hop))).map(|(_, lack)| lack)
    }
}

fn both(slot: &LinkSlot) -> [LinkId; 2] {
    [slot.id, slot.id.reversed()]
}
