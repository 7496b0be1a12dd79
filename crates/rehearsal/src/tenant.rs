//! One tenant: its VNICs, its controller's choices, and what it was told.
//!
//! In: flows that begin and end, labels that arrive. Out: paths of flows. It knows its own flows and its own labels, and nothing of other
//! tenants.

use crate::fabric::{Fabric, ServerNo};
use hose::{LinkNo, Pair, Step, VnicNo};
use multipath::{Balancer, Choose};
use std::collections::{BTreeMap, BTreeSet};

/// A VNIC of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// The server where it is.
    pub server: ServerNo,
    /// Its rate in each direction.
    pub rate_bps: u64,
}

/// What a tenant brings.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its VNICs. The number of a VNIC is its place here.
    pub vnics: Vec<Vnic>,
    /// How its controller chooses paths.
    pub choose: Choose,
    /// How long its flows stay where they have moved: [`STAY_MS`](multipath::STAY_MS), or another time.
    pub stay_ms: u64,
    /// How long a notice takes to its controller.
    pub notice_us: u64,
    /// Whether meters report what its VNICs receive.
    pub is_metered: bool,
    /// How coarse its labels are.
    pub step: Option<Step>,
    /// The links of its slice. `None`: all.
    pub links: Option<BTreeSet<LinkNo>>,
}

/// A tenant.
#[derive(Debug)]
pub struct Tenant {
    plan: Plan,
    balancer: Balancer<Pair, LinkNo>,
    /// The labels that it was told, by link.
    told_bps: Vec<u64>,
    /// The paths that its flows could take, which do not change.
    paths: BTreeMap<Pair, Vec<Vec<LinkNo>>>,
    /// The numbers that decide among equal paths.
    numbers: BTreeMap<Pair, u64>,
}

impl Tenant {
    /// A tenant without flows. `told_bps`: by link, the label that it knows at first.
    pub fn new(plan: Plan, told_bps: Vec<u64>) -> Tenant {
        let balancer = Balancer::new(plan.choose).staying(plan.stay_ms);
        Tenant { plan, balancer, told_bps, paths: BTreeMap::new(), numbers: BTreeMap::new() }
    }

    /// What it brought.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The label that it was told last.
    pub fn told_bps(&self, link: LinkNo) -> u64 {
        self.told_bps[link.index()]
    }

    /// It has found a link of its slice. Flows that begin may use it.
    pub fn find(&mut self, link: LinkNo) {
        if let Some(links) = &mut self.plan.links {
            links.insert(link);
        }
    }

    /// A flow begins. Returns its path.
    pub fn begin(&mut self, pair: Pair, number: u64, fabric: &Fabric) -> Vec<LinkNo> {
        let [from, to] = [pair.source, pair.destination].map(|vnic| self.vnic(vnic).server);
        let may_use = |link: LinkNo| self.plan.links.as_ref().is_none_or(|links| links.contains(&link));
        self.paths.insert(pair, fabric.paths_over(from, to, may_use));
        self.numbers.insert(pair, number);
        self.share(pair);
        let (paths, told_bps) = (&self.paths[&pair], &self.told_bps);
        let chosen =
            self.balancer.place(pair, self.rate_bps(pair), paths, number, |link| told_bps[link.index()]);
        chosen.map(|index| paths[index].clone()).unwrap_or_default()
    }

    /// A flow ends.
    pub fn end(&mut self, pair: Pair) {
        self.balancer.end(&pair);
        self.paths.remove(&pair);
        self.numbers.remove(&pair);
        self.share(pair);
    }

    /// A label arrives.
    pub fn hear(&mut self, link: LinkNo, label_bps: u64) {
        self.told_bps[link.index()] = label_bps;
    }

    /// The flows that move, with their new paths, and how long they stay there at least.
    pub fn moves(&mut self, now_ms: u64) -> Vec<(Pair, Vec<LinkNo>, u64)> {
        let told_bps = &self.told_bps;
        let label = |link: &LinkNo| told_bps[link.index()];
        let mut moves = Vec::new();
        for pair in self.balancer.short(label) {
            let (Some(paths), Some(number)) = (self.paths.get(&pair), self.numbers.get(&pair)) else {
                continue;
            };
            if let Some(index) = self.balancer.reconsider(&pair, paths, *number, now_ms, label) {
                moves.push((pair, paths[index].clone(), self.balancer.stays_ms(*number)));
            }
        }
        moves
    }

    fn vnic(&self, number: VnicNo) -> Vnic {
        self.plan.vnics[number.index()]
    }

    /// What the controller expects of a flow: an even part of each VNIC.
    fn rate_bps(&self, pair: Pair) -> u64 {
        let flows =
            |is_own: &dyn Fn(&Pair) -> bool| self.paths.keys().filter(|it| is_own(it)).count().max(1) as u64;
        let sends = self.vnic(pair.source).rate_bps / flows(&|it| it.source == pair.source);
        let receives = self.vnic(pair.destination).rate_bps / flows(&|it| it.destination == pair.destination);
        sends.min(receives)
    }

    /// Gives the flows that share a VNIC with this one their new rates.
    fn share(&mut self, pair: Pair) {
        let of_same =
            |it: &&Pair| **it != pair && (it.source == pair.source || it.destination == pair.destination);
        let others: Vec<Pair> = self.paths.keys().filter(of_same).copied().collect();
        for other in others {
            let rate_bps = self.rate_bps(other);
            self.balancer.set_rate(&other, rate_bps);
        }
    }
}

/// Decides among equal paths, as the hash of a packet's addresses does: FNV-1a of the flow's name. Other flows do not change it.
pub fn number_of(ends: &str) -> u64 {
    ends.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
