//! Tenants and the label service on the fluid network.
//!
//! ```text
//!   Cloud ──paths, caps──> Fluid ──who began, who ended──> Cloud
//! ```
//!
//! In: flows that begin and end, and how long to run. Out: rates, labels and times. Both halves advance by 100 µs in turn, so an effect of one on the
//! other is up to 100 µs late.

use crate::cloud::{Cloud, Meter, Sends};
use crate::fabric::Fabric;
use crate::fluid::{Demand, Fluid};
use crate::service::Telling;
use crate::tenant::Plan;
use hose::{LinkNo, Pair};
use std::collections::{BTreeMap, BTreeSet};

/// How far one half is ahead of the other.
const STEP_NS: u64 = 100_000;

/// How often the service is told that a flow goes on. It does from an agent's report that it began until the report that it ended.
const AGAIN_NS: u64 = 500_000_000;

/// How often caps of overbooked links are computed.
const CAPS_NS: u64 = 1_000_000;

/// Both halves.
#[derive(Debug)]
pub struct Rig {
    cloud: Cloud,
    fluid: Fluid,
    /// What the flows want to send, and the path on which they are carried.
    demands: BTreeMap<Pair, (Demand, Vec<LinkNo>)>,
    /// When each flow's first packet left over its path.
    began_ns: BTreeMap<Pair, u64>,
    /// When the service heard of each flow.
    heard_ns: BTreeMap<Pair, u64>,
    going: BTreeSet<Pair>,
    /// The time of the fluid network at the start.
    start_ns: u64,
}

impl Rig {
    /// Tenants without flows.
    ///
    /// # Errors
    /// The tenants cannot be.
    pub fn new(fabric: &Fabric, telling: Telling, plans: Vec<Plan>) -> Result<Rig, String> {
        let fluid = Fluid::new(fabric, &plans).map_err(|why| why.to_string())?;
        let cloud =
            Cloud::new(fabric.clone(), telling, Meter::Caller, plans).map_err(|why| why.to_string())?;
        Ok(Rig {
            start_ns: fluid.now_ns(),
            cloud,
            fluid,
            demands: BTreeMap::new(),
            began_ns: BTreeMap::new(),
            heard_ns: BTreeMap::new(),
            going: BTreeSet::new(),
        })
    }

    /// The first packet of a flow reaches its tenant's controller now. `number` decides among equal paths.
    pub fn begin(&mut self, pair: Pair, demand: Demand, number: u64) {
        self.demands.insert(pair, (demand, Vec::new()));
        self.cloud.begin(pair, Sends::All, number);
    }

    /// Time passes.
    ///
    /// # Errors
    /// As [`Cloud::run_until`].
    pub fn run(&mut self, for_ns: u64) -> Result<(), String> {
        let until_ns = self.now_ns() + for_ns;
        while self.now_ns() < until_ns {
            self.fluid.run(STEP_NS);
            let now_ns = self.now_ns();
            self.hear(now_ns);
            self.cloud.run_until(now_ns / 1_000)?;
            self.route(now_ns);
            if now_ns.is_multiple_of(CAPS_NS) {
                for (pair, rate_bps) in self.cloud.caps() {
                    self.fluid.cap(pair, rate_bps);
                }
            }
            // Agents forget caps that are not repeated.
            if now_ns.is_multiple_of(AGAIN_NS) {
                for (pair, rate_bps) in self.cloud.service().capped() {
                    self.fluid.cap(pair, Some(rate_bps));
                }
            }
        }
        Ok(())
    }

    /// What agents reported goes to the service.
    fn hear(&mut self, now_ns: u64) {
        for (pair, goes_on) in self.fluid.take_heard() {
            if !goes_on {
                self.going.remove(&pair);
            } else if self.going.insert(pair) {
                self.heard_ns.entry(pair).or_insert(now_ns);
                self.cloud.on_traffic(pair);
            }
        }
        if now_ns.is_multiple_of(AGAIN_NS) {
            self.going.iter().for_each(|pair| self.cloud.on_traffic(*pair));
        }
    }

    /// Flows whose rules changed take their new paths.
    fn route(&mut self, now_ns: u64) {
        for (pair, (demand, carried)) in &mut self.demands {
            let Some(links) = self.cloud.path(*pair).filter(|links| *links != carried.as_slice()) else {
                continue;
            };
            self.fluid.carry(*pair, *demand, links);
            *carried = links.to_vec();
            self.began_ns.entry(*pair).or_insert(now_ns);
        }
    }

    /// The time since the start.
    pub fn now_ns(&self) -> u64 {
        self.fluid.now_ns() - self.start_ns
    }

    /// What arrived in the last millisecond, in bit/s.
    pub fn rate_bps(&self, pair: Pair) -> f64 {
        self.fluid.rate_bps(pair)
    }

    /// When the first packet of a flow left over its path.
    pub fn began_ns(&self, pair: Pair) -> Option<u64> {
        self.began_ns.get(&pair).copied()
    }

    /// When the service first heard of a flow.
    pub fn heard_ns(&self, pair: Pair) -> Option<u64> {
        self.heard_ns.get(&pair).copied()
    }

    /// The tenants and the service.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// How many datagrams or statements agents refused.
    pub fn refusals(&self) -> u64 {
        self.fluid.refusals()
    }
}
