//! Tenants, the label service and the network's paths in virtual time.
//!
//! ```text
//!   begin, end of flows ──> Tenant ──rules──> Service ──notices──> Tenant ──moves──> rules, …
//!                                  meters' reports ──┘
//! ```
//!
//! In: flows that begin and end, and a time until which all happens. Out: paths, moves, labels and rates. The same calls give the same result. Rates
//! are those at rest: what weighted max-min gives on the links of the paths, as the agents on the servers reach it.

use crate::fabric::Fabric;
use crate::service::{Service, Telling, fair_rates};
use crate::tenant::{Plan, Tenant};
use hose::{LinkNo, Notice, Pair, Refusal, SliceNo};
use std::collections::BTreeMap;

/// The time from a packet-in or a label to rules in the switches. It is assumed.
const RULES_US: u64 = 1_000;

/// How often a meter repeats that a flow has traffic. A flow counts for two seconds after its meter's last report.
const REPORT_INTERVAL_US: u64 = 1_000_000;

/// The most events that wait. A rehearsal with more is a mistake of its caller, and ends with an error.
const EVENTS_MAX: usize = 1 << 20;

/// Who says that a flow has traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// The meter of this model, this many microseconds after the flow's rules are in the switches.
    After(u64),
    /// The caller, by [`Cloud::on_traffic`].
    Caller,
}

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// As much as it can.
    All,
    /// A frame in each of these intervals, in microseconds.
    AFrameEach(u64),
    /// Nothing. It has rules only.
    Nothing,
}

#[derive(Clone, Debug)]
struct Live {
    sends: Sends,
    /// The path of its rules in the switches. Empty: none yet.
    links: Vec<LinkNo>,
    /// Differs from that of an earlier flow of the same pair, so that events of the earlier one are ignored.
    life: u64,
    moves: u32,
}

#[derive(Clone, Debug)]
enum Happening {
    /// The rules of a flow are in the switches.
    Rules(Pair, Vec<LinkNo>),
    /// A meter reports a flow.
    Report(Pair, u64),
    /// A notice reaches a tenant.
    Hear(Notice),
    /// A flow of a tenant that has moved may move again.
    Again(SliceNo),
}

/// A move of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When the controller decided on it.
    pub at_us: u64,
    /// The flow.
    pub pair: Pair,
}

/// A flow, its nominal rate and what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    /// The flow.
    pub pair: Pair,
    /// The max-min share of both VNICs in the hose.
    pub nominal_bps: u64,
    /// What the links give it.
    pub got_bps: u64,
}

/// All of it.
#[derive(Debug)]
pub struct Cloud {
    fabric: Fabric,
    service: Service,
    tenants: Vec<Tenant>,
    live: BTreeMap<Pair, Live>,
    queue: BTreeMap<(u64, u64), Happening>,
    sequence: u64,
    now_us: u64,
    meter: Meter,
    moves: Vec<Move>,
    notices: u64,
}

impl Cloud {
    /// Tenants without flows.
    ///
    /// # Errors
    /// Too many tenants or VNICs, or too high a rate.
    pub fn new(fabric: Fabric, telling: Telling, meter: Meter, plans: Vec<Plan>) -> Result<Cloud, Refusal> {
        let mut service = Service::new(&fabric, telling)?;
        let mut tenants = Vec::new();
        for (slice, plan) in (0..).map(SliceNo).zip(plans) {
            let rates_bps: Vec<u64> = plan.vnics.iter().map(|vnic| vnic.rate_bps).collect();
            service.add_slice(slice, &rates_bps, plan.is_metered, plan.step)?;
            let told_bps = fabric.links().map(|(link, _)| service.label_bps(slice, link)).collect();
            tenants.push(Tenant::new(plan, told_bps));
        }
        Ok(Cloud {
            fabric,
            service,
            tenants,
            live: BTreeMap::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            now_us: 0,
            meter,
            moves: Vec::new(),
            notices: 0,
        })
    }

    /// The first packet of a flow reaches its tenant's controller now. `number` decides among equal paths.
    pub fn begin(&mut self, pair: Pair, sends: Sends, number: u64) {
        let links = self.tenants[pair.slice.index()].begin(pair, number, &self.fabric);
        self.live.insert(pair, Live { sends, links: Vec::new(), life: self.sequence, moves: 0 });
        self.after(RULES_US, Happening::Rules(pair, links));
    }

    /// A flow ends now, and its rules go.
    pub fn end(&mut self, pair: Pair) {
        self.tenants[pair.slice.index()].end(pair);
        self.live.remove(&pair);
        self.service.on_no_path(pair, self.now_ms());
    }

    /// A meter outside of this model saw traffic of a flow now.
    pub fn on_traffic(&mut self, pair: Pair) {
        self.service.on_traffic(pair, self.now_ms());
    }

    /// All happens until then.
    ///
    /// # Errors
    /// A path is refused, or too many events wait.
    pub fn run_until(&mut self, until_us: u64) -> Result<(), String> {
        self.tell();
        while let Some(at_us) = self.next_us().filter(|at_us| *at_us <= until_us) {
            self.now_us = self.now_us.max(at_us);
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now_us) {
                let happening = entry.remove();
                self.happen(happening).map_err(|refusal| refusal.to_string())?;
            }
            self.tell();
            if self.queue.len() > EVENTS_MAX {
                return Err(format!("more than {EVENTS_MAX} events wait at {} us", self.now_us));
            }
        }
        self.now_us = self.now_us.max(until_us);
        Ok(())
    }

    /// The time.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The network.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The label service.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Caps that changed: see [`Service::caps`].
    pub fn caps(&mut self) -> Vec<(Pair, Option<u64>)> {
        self.service.caps()
    }

    /// The tenants.
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    /// The path of a flow's rules in the switches. `None`: there are none yet.
    pub fn path(&self, pair: Pair) -> Option<&[LinkNo]> {
        self.live.get(&pair).map(|live| live.links.as_slice()).filter(|links| !links.is_empty())
    }

    /// All moves so far.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// How often each flow that lives has moved.
    pub fn moves_by_flow(&self) -> impl Iterator<Item = (Pair, u32)> {
        self.live.iter().map(|(pair, live)| (*pair, live.moves))
    }

    /// How many notices were sent.
    pub fn notices(&self) -> u64 {
        self.notices
    }

    /// What each flow that sends gets at rest, on the paths of this moment.
    pub fn rates(&self) -> Vec<Got> {
        let nominal: BTreeMap<Pair, u64> =
            self.service.counting().into_iter().map(|(pair, rate_bps, _)| (pair, rate_bps)).collect();
        let sends = |(pair, live): (&Pair, &Live)| {
            let is_there = live.sends == Sends::All && !live.links.is_empty();
            let rate_bps = *nominal.get(pair)?;
            is_there.then(|| (*pair, rate_bps, live.links.clone()))
        };
        let flows: Vec<(Pair, u64, Vec<LinkNo>)> = self.live.iter().filter_map(sends).collect();
        let capacities_bps: Vec<u64> = self.fabric.links().map(|(_, link)| link.capacity_bps).collect();
        let rates_bps = fair_rates(&capacities_bps, &flows);
        let got = |((pair, nominal_bps, _), got_bps)| Got { pair, nominal_bps, got_bps };
        flows.into_iter().zip(rates_bps).map(got).collect()
    }

    fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn next_us(&self) -> Option<u64> {
        let queued = self.queue.first_key_value().map(|((at_us, _), _)| *at_us);
        // What is due in this millisecond has been taken.
        let due = self.service.next_ms().map(|at_ms| (at_ms * 1_000).max(self.now_us + 1_000));
        queued.into_iter().chain(due).min()
    }

    fn after(&mut self, wait_us: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now_us + wait_us, self.sequence), happening);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Refusal> {
        match happening {
            Happening::Rules(pair, links) => self.on_rules(pair, links)?,
            Happening::Report(pair, life) => self.on_report(pair, life),
            Happening::Hear(Notice { slice, link, label }) => {
                self.tenants[slice.index()].hear(link, label.bps());
                self.decide(slice);
            }
            Happening::Again(slice) => self.decide(slice),
        }
        self.tell();
        Ok(())
    }

    fn on_rules(&mut self, pair: Pair, links: Vec<LinkNo>) -> Result<(), Refusal> {
        let now_ms = self.now_ms();
        // The flow may have ended while the rules were on their way.
        let Some(live) = self.live.get_mut(&pair).filter(|_| !links.is_empty()) else { return Ok(()) };
        let is_new = live.links.is_empty();
        self.service.on_path(pair, &links, now_ms)?;
        live.links = links;
        let (life, sends) = (live.life, live.sends);
        if let Meter::After(wait_us) = self.meter
            && is_new
            && sends != Sends::Nothing
        {
            self.after(wait_us, Happening::Report(pair, life));
        }
        Ok(())
    }

    fn on_report(&mut self, pair: Pair, life: u64) {
        let Some(live) = self.live.get(&pair).filter(|live| live.life == life) else { return };
        let again_us = match live.sends {
            Sends::AFrameEach(interval_us) => interval_us,
            Sends::All | Sends::Nothing => REPORT_INTERVAL_US,
        };
        self.service.on_traffic(pair, self.now_ms());
        self.after(again_us, Happening::Report(pair, life));
    }

    /// A tenant's controller moves flows.
    fn decide(&mut self, slice: SliceNo) {
        let now_ms = self.now_ms();
        for (pair, links, stay_ms) in self.tenants[slice.index()].moves(now_ms) {
            self.moves.push(Move { at_us: self.now_us, pair });
            if let Some(live) = self.live.get_mut(&pair) {
                live.moves += 1;
            }
            self.after(RULES_US, Happening::Rules(pair, links));
            // The millisecond in which it ends has begun then.
            self.after((stay_ms + 1) * 1_000, Happening::Again(slice));
        }
    }

    /// Sends the notices that are due.
    fn tell(&mut self) {
        for notice in self.service.on_time(self.now_ms()) {
            self.notices += 1;
            let wait_us = self.tenants[notice.slice.index()].plan().notice_us;
            self.after(wait_us, Happening::Hear(notice));
        }
    }
}
