//! The label service in virtual time: the arithmetic of `hose` and the caps of `labels`, fed with paths and meters' reports.
//!
//! ```text
//!   paths of rules, meters' reports, time ──> [ Flows ──> Notices ] ──> who is told which label
//!                                                 └──> caps of flows on overbooked links
//! ```
//!
//! In: changes, with the time in milliseconds. Out: notices and caps. It delivers nothing.

use crate::fabric::Fabric;
use edge::shares::{Claim, Crossing, UNLIMITED_BPS, on_links};
use hose::{Bandwidth, Flows, LinkNo, Notice, Notices, Pair, Path, Refusal, SliceNo, Step, VnicNo};
use std::collections::{BTreeMap, BTreeSet};

/// When tenants are told their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// By the rules of `hose`: small changes are not told, and not all tenants hear at once.
    Damped,
    /// Each change is told to all at once.
    AtOnce,
    /// Never.
    Never,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    flows: Flows,
    notices: Notices,
    telling: Telling,
    slices: Vec<SliceNo>,
    links: Vec<LinkNo>,
    /// What was told at once.
    told: BTreeMap<(SliceNo, LinkNo), Bandwidth>,
    /// What is to be told at once.
    waiting: Vec<Notice>,
    /// The flows that have a cap.
    capped: BTreeMap<Pair, u64>,
}

impl Service {
    /// A service without slices.
    ///
    /// # Errors
    /// A capacity is too great.
    pub fn new(fabric: &Fabric, telling: Telling) -> Result<Service, Refusal> {
        let mut flows = Flows::default();
        for (number, link) in fabric.links() {
            flows.labels_mut().set_capacity(number, Bandwidth::from_bps(link.capacity_bps))?;
        }
        flows.labels_mut().take_changed(&mut Vec::new());
        Ok(Service {
            flows,
            notices: Notices::default(),
            telling,
            slices: Vec::new(),
            links: fabric.links().map(|(number, _)| number).collect(),
            told: BTreeMap::new(),
            waiting: Vec::new(),
            capped: BTreeMap::new(),
        })
    }

    /// A slice with VNICs of these rates, which sees all links.
    ///
    /// # Errors
    /// A number or a rate is too great.
    pub fn add_slice(
        &mut self,
        slice: SliceNo,
        rates_bps: &[u64],
        is_metered: bool,
        step: Option<Step>,
    ) -> Result<(), Refusal> {
        for (vnic, rate_bps) in (0..).map(VnicNo).zip(rates_bps) {
            self.flows.put_vnic(slice, vnic, Bandwidth::from_bps(*rate_bps))?;
            self.flows.set_metered(slice, vnic, is_metered, 0)?;
        }
        self.flows.labels_mut().set_step(slice, step)?;
        for link in &self.links {
            let known = self.notices.watch(slice, *link, 0, &self.flows);
            let label = known.ok().flatten().unwrap_or_default();
            self.told.insert((slice, *link), label);
        }
        self.slices.push(slice);
        Ok(())
    }

    /// The rules of a slice give a pair this path.
    ///
    /// # Errors
    /// As [`Flows::on_path`].
    pub fn on_path(&mut self, pair: Pair, links: &[LinkNo], now_ms: u64) -> Result<(), Refusal> {
        // A rule in each switch of the path.
        let rules = u32::try_from(links.len()).unwrap_or(u32::MAX);
        self.flows.on_path(pair, Path::new(links)?, rules)?;
        self.note(now_ms);
        Ok(())
    }

    /// The rules of a pair are gone.
    pub fn on_no_path(&mut self, pair: Pair, now_ms: u64) {
        self.flows.on_no_path(pair);
        self.note(now_ms);
    }

    /// A meter saw traffic of a pair.
    pub fn on_traffic(&mut self, pair: Pair, now_ms: u64) {
        self.flows.on_traffic(pair, now_ms);
        self.note(now_ms);
    }

    /// Time has passed. Returns what is to be told now.
    pub fn on_time(&mut self, now_ms: u64) -> Vec<Notice> {
        self.flows.on_time(now_ms);
        self.note(now_ms);
        let mut due = std::mem::take(&mut self.waiting);
        if self.telling == Telling::Damped {
            due.extend(std::iter::from_fn(|| self.notices.next(now_ms, &self.flows)));
        }
        due
    }

    /// When it wants [`Service::on_time`] next.
    pub fn next_ms(&self) -> Option<u64> {
        let told = self.notices.next_ms().filter(|_| self.telling == Telling::Damped);
        let now = (!self.waiting.is_empty()).then_some(0);
        [told, now, self.flows.next_ms()].into_iter().flatten().min()
    }

    /// The label of a slice on a link.
    pub fn label_bps(&self, slice: SliceNo, link: LinkNo) -> u64 {
        self.flows.labels().label(slice, link).unwrap_or_default().bps()
    }

    /// The flows that count, with their nominal rates in bit/s and their links.
    pub fn counting(&self) -> Vec<(Pair, u64, Vec<LinkNo>)> {
        let flows = self.slices.iter().flat_map(|slice| self.flows.flows(*slice));
        flows
            .filter(|flow| flow.counts)
            .map(|flow| (flow.pair, flow.rate.bps(), flow.links.to_vec()))
            .collect()
    }

    /// Caps that changed since the last call: what flows get of overbooked links, in proportion to their nominal rates. `None`: the flow has no cap
    /// any more.
    pub fn caps(&mut self) -> Vec<(Pair, Option<u64>)> {
        let wanted = self.wanted_caps();
        let is_new = |pair: &Pair, rate_bps: &u64| self.capped.get(pair) != Some(rate_bps);
        let new = wanted.iter().filter(|(pair, rate_bps)| is_new(pair, rate_bps));
        let mut changes: Vec<(Pair, Option<u64>)> = new.map(|(pair, rate)| (*pair, Some(*rate))).collect();
        let free = self.capped.keys().filter(|pair| !wanted.contains_key(pair));
        changes.extend(free.map(|pair| (*pair, None)));
        self.capped = wanted;
        changes
    }

    /// The flows that have a cap.
    pub fn capped(&self) -> Vec<(Pair, u64)> {
        self.capped.iter().map(|(pair, rate_bps)| (*pair, *rate_bps)).collect()
    }

    fn wanted_caps(&self) -> BTreeMap<Pair, u64> {
        let is_overbooked = |link: &LinkNo| self.flows.labels().is_overbooked(*link);
        let overbooked: BTreeSet<LinkNo> = self.links.iter().copied().filter(is_overbooked).collect();
        labels::caps_of(&overbooked, &self.flows, self.slices.iter().copied())
    }

    /// Passes links that changed on to the notices, or tells their labels at once.
    fn note(&mut self, now_ms: u64) {
        let mut changed = Vec::new();
        self.flows.labels_mut().take_changed(&mut changed);
        for link in changed {
            match self.telling {
                Telling::Damped => self.notices.on_change(link, now_ms, &self.flows),
                Telling::AtOnce => self.tell_all(link),
                Telling::Never => {}
            }
        }
    }

    fn tell_all(&mut self, link: LinkNo) {
        for slice in &self.slices {
            let Some(label) = self.flows.labels().label(*slice, link) else { continue };
            if self.told.insert((*slice, link), label) != Some(label) {
                self.waiting.push(Notice { slice: *slice, link, label });
            }
        }
    }
}

/// What flows without a limit of their own get: weighted max-min, with nominal rates as weights. In the order of the flows.
pub fn fair_rates(capacities_bps: &[u64], flows: &[(Pair, u64, Vec<LinkNo>)]) -> Vec<u64> {
    let indices: Vec<Vec<usize>> =
        flows.iter().map(|(_, _, links)| links.iter().map(|link| link.index()).collect()).collect();
    let crossings: Vec<Crossing<'_>> = flows
        .iter()
        .zip(&indices)
        .map(|((_, rate_bps, _), links)| Crossing {
            claim: Claim { guarantee_bps: *rate_bps, demand_bps: UNLIMITED_BPS },
            links,
        })
        .collect();
    on_links(capacities_bps, &crossings)
}
