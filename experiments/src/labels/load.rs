//! Sixteen tenants in a fat tree, whose VNICs fill each NIC to 80 %.
//!
//! In: a seed. Out: tenants, and for each VNIC the one to which it sends. Nothing else is random.

use super::draws::Draws;
use super::setting::G;
use rehearsal::{Choose, Fabric, Pair, Plan, STAY_MS, ServerNo, SliceNo, Vnic, VnicNo};
use std::collections::BTreeMap;

/// How many tenants there are.
pub const TENANTS: usize = 16;
/// What a link carries, in Gb/s.
pub const LINK_GBPS: u64 = 10;
/// What the VNICs of a server add up to, in Gb/s: 80 % of the NIC.
pub const SERVER_GBPS: u64 = 8;
/// The sizes of VNICs, in Gb/s. A server gets one of these sets.
const SETS: [&[u64]; 4] = [&[4, 4], &[4, 2, 2], &[2, 2, 2, 2], &[4, 2, 1, 1]];
/// How long a notice takes to a controller: between these, in microseconds.
const NOTICE_US: (u64, u64) = (300, 700);

/// The tenants and their traffic.
#[derive(Clone, Debug)]
pub struct Load {
    /// By tenant: its VNICs, with their sizes in Gb/s.
    vnics: Vec<Vec<(ServerNo, u64)>>,
    /// By tenant: how long a notice takes.
    notice_us: Vec<u64>,
    /// All flows. Each VNIC sends to one other of the same size, and receives from one.
    pub pairs: Vec<Pair>,
}

impl Load {
    /// From a seed.
    pub fn new(fabric: &Fabric, seed: u64) -> Load {
        let mut draws = Draws::new(seed);
        let mut vnics = vec![Vec::new(); TENANTS];
        for server in (0..fabric.servers()).map(ServerNo) {
            let set = SETS[draws.below(SETS.len() as u64) as usize];
            let mut tenants: Vec<usize> = (0..TENANTS).collect();
            draws.shuffle(&mut tenants);
            for (gbps, tenant) in set.iter().zip(tenants) {
                vnics[tenant].push((server, *gbps));
            }
        }
        let (least, most) = NOTICE_US;
        let notice_us = (0..TENANTS).map(|_| least + draws.below(most - least)).collect();
        let mut load = Load { vnics, notice_us, pairs: Vec::new() };
        load.pair_up(&mut draws);
        load
    }

    /// VNICs of one tenant and size send in a circle, in random order.
    fn pair_up(&mut self, draws: &mut Draws) {
        for (slice, vnics) in (0..).map(SliceNo).zip(&self.vnics) {
            let mut by_size: BTreeMap<u64, Vec<VnicNo>> = BTreeMap::new();
            for (number, (_, gbps)) in (0..).map(VnicNo).zip(vnics) {
                by_size.entry(*gbps).or_default().push(number);
            }
            for mut circle in by_size.into_values().filter(|circle| circle.len() > 1) {
                draws.shuffle(&mut circle);
                let next = circle.iter().cycle().skip(1);
                let pairs = circle.iter().zip(next);
                self.pairs.extend(pairs.map(|(from, to)| Pair { slice, source: *from, destination: *to }));
            }
        }
    }

    /// The tenants, who choose paths in this way.
    pub fn plans(&self, choose: Choose) -> Vec<Plan> {
        let plan = |(vnics, notice_us): (&Vec<(ServerNo, u64)>, &u64)| Plan {
            vnics: vnics.iter().map(|(server, gbps)| Vnic { server: *server, rate_bps: gbps * G }).collect(),
            choose,
            stay_ms: STAY_MS,
            notice_us: *notice_us,
            is_metered: true,
            step: None,
            links: None,
        };
        self.vnics.iter().zip(&self.notice_us).map(plan).collect()
    }

    /// The server of a VNIC.
    pub fn server(&self, slice: SliceNo, vnic: VnicNo) -> ServerNo {
        self.vnics[slice.index()][vnic.index()].0
    }

    /// The size of a flow's VNICs, in Gb/s.
    pub fn gbps(&self, pair: Pair) -> u64 {
        self.vnics[pair.slice.index()][pair.source.index()].1
    }

    /// Two flows of one tenant and size that exchange their destinations: the old pairs and the new ones. `None`: nothing fits this draw.
    pub fn exchange(&mut self, draws: &mut Draws) -> Option<([Pair; 2], [Pair; 2])> {
        let one = draws.below(self.pairs.len() as u64) as usize;
        let pair = self.pairs[one];
        let fits = |index: &usize| {
            let other = self.pairs[*index];
            *index != one
                && other.slice == pair.slice
                && self.gbps(other) == self.gbps(pair)
                && other.source != pair.destination
                && pair.source != other.destination
        };
        let others: Vec<usize> = (0..self.pairs.len()).filter(fits).collect();
        let two = *others.get(draws.below(others.len() as u64) as usize)?;
        let old = [self.pairs[one], self.pairs[two]];
        let new = [
            Pair { destination: old[1].destination, ..old[0] },
            Pair { destination: old[0].destination, ..old[1] },
        ];
        (self.pairs[one], self.pairs[two]) = (new[0], new[1]);
        Some((old, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each VNIC sends once and receives once, of the same size, and nearly all NICs are at 80 %.
    fn check(fabric: &Fabric, load: &Load) {
        let sent: BTreeSet<_> = load.pairs.iter().map(|pair| (pair.slice, pair.source)).collect();
        let received: BTreeSet<_> = load.pairs.iter().map(|pair| (pair.slice, pair.destination)).collect();
        assert_eq!((sent.len(), received.len()), (load.pairs.len(), load.pairs.len()));
        let mut by_server = vec![0; fabric.servers()];
        for pair in &load.pairs {
            let Pair { slice, source, destination } = *pair;
            assert_ne!(load.server(slice, source), load.server(slice, destination));
            let back = Pair { source: destination, destination: source, ..*pair };
            assert_eq!(load.gbps(*pair), load.gbps(back));
            by_server[load.server(slice, source).0] += load.gbps(*pair);
        }
        let full = by_server.iter().filter(|gbps| **gbps == SERVER_GBPS).count();
        assert!(full * 100 >= fabric.servers() * 95, "{full}");
    }

    #[test]
    fn the_load_is_80_percent_and_stays_so() {
        let fabric = Fabric::fat_tree(8, LINK_GBPS * G);
        let mut load = Load::new(&fabric, 1);
        check(&fabric, &load);
        let mut draws = Draws::new(2);
        let exchanged = (0..200).filter(|_| load.exchange(&mut draws).is_some()).count();
        assert!(exchanged > 100, "{exchanged}");
        check(&fabric, &load);
    }
}
