//! The sending half of an agent: which classes its VNICs need.
//!
//! In: VNICs, rates of receivers, caps of the label service, and time. Out: changes of the shaper, one batch after the other. It sends
//! nothing and touches no kernel.

use super::settings::Settings;
use crate::protocol::{Entry, NO_CAP, RateOf, What};
use crate::shaper::{Change, Deed, Place, Rates, Shaper};
use crate::vnic::{Directory, Flow, Vnic};
use std::collections::BTreeMap;

/// Without feedback for this long, a flow goes back to the guarantee.
pub const FEEDBACK_LIFE_NS: u64 = 1_000_000_000;

/// Without feedback for this long, a flow without a cap loses its class. Removing it earlier would drop what waits in it.
const CLASS_LIFE_NS: u64 = 10_000_000_000;

/// How often flows are looked at for this.
const LOOK_INTERVAL_NS: u64 = 50_000_000;

/// The most flows with feedback or a cap. Feedback for further ones is ignored, so that they stay at the guarantee.
const FLOWS_MAX: usize = 16_384;

/// A change that failed waits for this long: what fails once often fails again at once. Other changes do not wait.
const RETRY_NS: u64 = 1_000_000_000;

/// What the class of a flow gets in any case. The rest is borrowed from its VNIC, in equal parts by those that need it.
const FLOW_RATE_BPS: u64 = 64_000;

#[derive(Debug, Default)]
pub(super) struct Sending {
    shaper: Shaper,
    flows: BTreeMap<Flow, Heard>,
    /// The changes that are being made. None: the shaper is idle.
    in_flight: Option<Vec<Change>>,
    /// When what failed is tried again.
    retry_ns: Option<u64>,
    looked_ns: u64,
    ignored: u64,
}

/// What was said about a flow.
#[derive(Clone, Copy, Debug)]
struct Heard {
    rate_bps: Option<u64>,
    at_ns: u64,
    cap_bps: Option<u64>,
}

impl Sending {
    /// The VNICs of this server are these now.
    pub(super) fn set_vnics(&mut self, old: &Directory, directory: &Directory, settings: &Settings) {
        let is_mine = |id| directory.get(id).is_some_and(|vnic| vnic.agent == Some(settings.me));
        for gone in old.of_agent(settings.me).filter(|vnic| !is_mine(vnic.id)) {
            self.shaper.drop(Place::Vnic(gone.id));
            self.shaper.drop(Place::Others(gone.id));
        }
        self.renew(old, directory, settings);
        let sum: u128 = directory.of_agent(settings.me).map(|vnic| u128::from(vnic.guarantee_bps)).sum();
        for vnic in directory.of_agent(settings.me) {
            // On an overbooked NIC, all get the same part of their guarantees. The headroom is for the agent's own datagrams.
            let part = u128::from(vnic.guarantee_bps) * u128::from(settings.capacity_bps()) / sum.max(1);
            let rate_bps = vnic.guarantee_bps.min(u64::try_from(part).unwrap_or(u64::MAX)).max(1);
            let ceiling_bps = most(vnic, settings);
            self.shaper.want(Place::Vnic(vnic.id), Rates { rate_bps, ceiling_bps });
            self.shaper.want(Place::Others(vnic.id), leaf(vnic.guarantee_bps.min(ceiling_bps)));
        }
        let flows: Vec<Flow> = self.flows.keys().copied().collect();
        for flow in flows {
            self.set(flow, directory, settings);
        }
    }

    /// Classes whose filters have an old address are made anew.
    fn renew(&mut self, old: &Directory, directory: &Directory, settings: &Settings) {
        let address = |of: &Directory, id| of.get(id).map(|vnic| vnic.address);
        let has_moved = |id| address(old, id) != address(directory, id);
        for vnic in directory.of_agent(settings.me).filter(|vnic| has_moved(vnic.id)) {
            self.shaper.renew(Place::Others(vnic.id));
        }
        for flow in self.flows.keys().filter(|flow| has_moved(flow.sender) || has_moved(flow.receiver)) {
            self.shaper.renew(Place::Flow(*flow));
        }
    }

    /// A receiver says what a flow may have.
    pub(super) fn on_rate(&mut self, now_ns: u64, rate: RateOf, directory: &Directory, settings: &Settings) {
        if let Some(heard) = self.heard(rate.flow) {
            (heard.rate_bps, heard.at_ns) = (Some(rate.rate_bps), now_ns);
            self.set(rate.flow, directory, settings);
        }
    }

    /// The label service says what a flow gets of an overbooked link.
    pub(super) fn on_cap(&mut self, cap: RateOf, directory: &Directory, settings: &Settings) {
        if let Some(heard) = self.heard(cap.flow) {
            heard.cap_bps = (cap.rate_bps != NO_CAP).then_some(cap.rate_bps);
            self.set(cap.flow, directory, settings);
        }
    }

    /// Time has passed: old feedback counts no more.
    pub(super) fn look(&mut self, now_ns: u64, directory: &Directory, settings: &Settings) {
        if now_ns.saturating_sub(self.looked_ns) < LOOK_INTERVAL_NS {
            return;
        }
        self.looked_ns = now_ns;
        let age = |heard: &Heard| now_ns.saturating_sub(heard.at_ns);
        let mut old = Vec::new();
        self.flows.retain(|flow, heard| {
            if heard.rate_bps.is_some() && age(heard) >= FEEDBACK_LIFE_NS {
                heard.rate_bps = None;
                old.push(*flow);
            }
            let lives = heard.cap_bps.is_some() || age(heard) < CLASS_LIFE_NS;
            if !lives {
                old.push(*flow);
            }
            lives
        });
        for flow in old {
            self.set(flow, directory, settings);
        }
    }

    /// The next batch of changes, if the last one is confirmed.
    pub(super) fn changes(&mut self, now_ns: u64) -> Vec<Change> {
        if self.in_flight.is_some() {
            return Vec::new();
        }
        if self.retry_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.retry_ns = None;
            self.shaper.retry();
        }
        let changes = self.shaper.changes();
        if !changes.is_empty() {
            self.in_flight = Some(changes.clone());
        }
        changes
    }

    /// The batch was made, except for these places. Returns what the label service must know.
    pub(super) fn confirm(&mut self, now_ns: u64, failed: &[Place]) -> Vec<Entry> {
        if !failed.is_empty() {
            self.retry_ns.get_or_insert(now_ns.saturating_add(RETRY_NS));
        }
        failed.iter().for_each(|place| self.shaper.failed(*place));
        let made = self.in_flight.take().into_iter().flatten();
        made.filter_map(|change| match (change.place, change.deed) {
            (Place::Flow(flow), Deed::Add(rates) | Deed::Change(rates))
                if !failed.contains(&change.place) =>
            {
                Some(Entry { what: What::Shaped, flow, rate_bps: rates.ceiling_bps })
            }
            _ => None,
        })
        .collect()
    }

    /// How many places have no class now, and how often feedback was ignored because of too many flows.
    pub(super) fn overflow(&self) -> (u64, u64) {
        (self.shaper.unplaced(), self.ignored)
    }

    fn heard(&mut self, flow: Flow) -> Option<&mut Heard> {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&flow) {
            self.ignored += 1;
            return None;
        }
        Some(self.flows.entry(flow).or_insert(Heard { rate_bps: None, at_ns: 0, cap_bps: None }))
    }

    fn set(&mut self, flow: Flow, directory: &Directory, settings: &Settings) {
        let place = Place::Flow(flow);
        let ends = directory.ends(flow).filter(|(sender, _)| sender.agent == Some(settings.me));
        match (self.flows.get(&flow), ends) {
            (Some(heard), Some((sender, receiver))) => {
                let guarantee_bps = sender.guarantee_bps.min(receiver.guarantee_bps);
                let ceiling_bps = heard.rate_bps.unwrap_or(guarantee_bps);
                let ceiling_bps = ceiling_bps.min(heard.cap_bps.unwrap_or(u64::MAX));
                self.shaper.want(place, leaf(ceiling_bps.min(most(sender, settings))));
            }
            _ => {
                self.flows.remove(&flow);
                self.shaper.drop(place);
            }
        }
    }
}

/// What a VNIC may send at most.
fn most(vnic: &Vnic, settings: &Settings) -> u64 {
    if vnic.strict { vnic.guarantee_bps.min(settings.nic_bps) } else { settings.nic_bps }
}

/// The rates of a class that borrows up to its ceiling. No class has the rate 0, which Linux does not allow.
fn leaf(ceiling_bps: u64) -> Rates {
    let ceiling_bps = ceiling_bps.max(FLOW_RATE_BPS / 8);
    Rates { rate_bps: ceiling_bps.min(FLOW_RATE_BPS), ceiling_bps }
}
