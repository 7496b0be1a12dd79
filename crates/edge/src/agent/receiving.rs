//! The receiving half of an agent: what its VNICs get, and what it tells the senders.
//!
//! In: bytes, and the end of each interval. Out: rates for senders, and entries for the label service. It sends nothing.
//!
//! The NIC is divided among the VNICs that receive, in proportion to their guarantees. A VNIC that receives less leaves the rest to the others,
//! but it can have its guarantee back at any time.

use super::settings::Settings;
use crate::feedback::RateControl;
use crate::meter::{Meter, Metered, Stage};
use crate::protocol::{Entry, RateOf, What};
use crate::shares::{self, Claim, UNLIMITED_BPS};
use crate::vnic::{Directory, Flow, Vnic, VnicId};
use std::collections::BTreeMap;

/// A rate is told again after this time, although it is the same: the last message may be lost.
const TELL_AGAIN_NS: u64 = 100_000_000;

/// A rate that differs by less than one part in this waits for [`TELL_AGAIN_NS`].
const TELL_CHANGE: u64 = 100;

/// The label service gets a rate at most this often.
const REPORT_AGAIN_NS: u64 = 100_000_000;

/// … and only if it differs by more than one part in this.
const REPORT_CHANGE: u64 = 10;

/// A VNIC that receives this part of its share, in percent, may want more.
const FULL_PERCENT: u64 = 80;

/// What the end of an interval gives.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    /// Rates that senders must know.
    pub(super) rates: Vec<RateOf>,
    /// What the label service must know.
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(super) struct Receiving {
    meter: Meter,
    controls: BTreeMap<VnicId, Control>,
    told: BTreeMap<Flow, Told>,
}

#[derive(Clone, Copy, Debug)]
struct Control {
    control: RateControl,
    capacity_bps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    rate_bps: u64,
    at_ns: u64,
    reported_bps: u64,
    reported_ns: u64,
}

impl Receiving {
    pub(super) fn new(now_ns: u64) -> Self {
        Receiving { meter: Meter::new(now_ns), controls: BTreeMap::new(), told: BTreeMap::new() }
    }

    pub(super) fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// All flows that live, for a report after a reset.
    pub(super) fn flows(&self) -> Vec<Entry> {
        let entry = |(flow, told): (&Flow, &Told)| Entry {
            what: What::Began,
            flow: *flow,
            rate_bps: told.reported_bps,
        };
        self.told.iter().map(entry).collect()
    }

    /// Ends the interval.
    pub(super) fn close(&mut self, now_ns: u64, directory: &Directory, settings: &Settings) -> Interval {
        let mut interval = Interval::default();
        let mut by_vnic: BTreeMap<VnicId, Vec<Metered>> = BTreeMap::new();
        for metered in self.meter.close(now_ns) {
            let is_mine = directory.ends(metered.flow).is_some_and(|(_, to)| to.agent == Some(settings.me));
            if !is_mine || metered.stage == Stage::Ended {
                self.end(metered.flow, &mut interval);
            } else {
                by_vnic.entry(metered.flow.receiver).or_default().push(metered);
            }
        }
        self.controls.retain(|vnic, _| by_vnic.contains_key(vnic));
        self.divide(&by_vnic, directory, settings);
        for (vnic, flows) in &by_vnic {
            let sending: Vec<u64> = flows.iter().map(|flow| flow.rate_bps).filter(|rate| *rate > 0).collect();
            let Some(Control { control, capacity_bps }) = self.controls.get_mut(vnic) else { continue };
            let rate_bps = control.on_interval(*capacity_bps, settings.interval_ns, &sending);
            flows.iter().for_each(|flow| self.tell(now_ns, flow, rate_bps, &mut interval));
        }
        interval
    }

    fn end(&mut self, flow: Flow, interval: &mut Interval) {
        if self.told.remove(&flow).is_some() {
            interval.entries.push(Entry { what: What::Ended, flow, rate_bps: 0 });
        }
    }

    /// Gives each VNIC that receives a capacity.
    fn divide(
        &mut self,
        by_vnic: &BTreeMap<VnicId, Vec<Metered>>,
        directory: &Directory,
        settings: &Settings,
    ) {
        let nic_bps = settings.capacity_bps();
        let active: Vec<&Vnic> = by_vnic.keys().filter_map(|vnic| directory.get(*vnic)).collect();
        let sum: u128 = active.iter().map(|vnic| u128::from(vnic.guarantee_bps)).sum();
        let claims: Vec<Claim> = active.iter().map(|vnic| self.claim(vnic, &by_vnic[&vnic.id])).collect();
        for (vnic, share) in active.iter().zip(shares::divide(nic_bps, &claims)) {
            // The guarantee is there before it is used: a VNIC that begins to receive must not wait until its share has grown.
            let in_proportion = u128::from(vnic.guarantee_bps) * u128::from(nic_bps) / sum.max(1);
            let kept = vnic.guarantee_bps.min(u64::try_from(in_proportion).unwrap_or(nic_bps));
            let most = if vnic.strict { vnic.guarantee_bps } else { u64::MAX };
            let capacity_bps = share.max(kept).min(nic_bps).min(most);
            let fresh = Control { control: RateControl::new(capacity_bps), capacity_bps };
            self.controls.entry(vnic.id).or_insert(fresh).capacity_bps = capacity_bps;
        }
    }

    /// What a VNIC claims, by what it received. One that uses its share may want any more. One below its guarantee claims what it
    /// receives, since the rest of the guarantee is kept for it anyway. One that borrows may grow by a quarter.
    fn claim(&self, vnic: &Vnic, flows: &[Metered]) -> Claim {
        let received: u64 = flows.iter().map(|flow| flow.rate_bps).fold(0, u64::saturating_add);
        let share = self.controls.get(&vnic.id).map_or(vnic.guarantee_bps, |control| control.capacity_bps);
        let wants_more = received >= share / 100 * FULL_PERCENT;
        let room = if received > vnic.guarantee_bps { received / 4 } else { 0 };
        let demand_bps = if wants_more { UNLIMITED_BPS } else { received.saturating_add(room) };
        let most = if vnic.strict { vnic.guarantee_bps } else { UNLIMITED_BPS };
        Claim { guarantee_bps: vnic.guarantee_bps, demand_bps: demand_bps.min(most) }
    }

    fn tell(&mut self, now_ns: u64, metered: &Metered, rate_bps: u64, interval: &mut Interval) {
        let Metered { flow, rate_bps: sent_bps, .. } = *metered;
        let Some(told) = self.told.get_mut(&flow) else {
            let told = Told { rate_bps, at_ns: now_ns, reported_bps: sent_bps, reported_ns: now_ns };
            self.told.insert(flow, told);
            interval.rates.push(RateOf { flow, rate_bps });
            interval.entries.push(Entry { what: What::Began, flow, rate_bps: sent_bps });
            return;
        };
        let is_other = told.rate_bps.abs_diff(rate_bps) > told.rate_bps / TELL_CHANGE;
        if is_other || now_ns.saturating_sub(told.at_ns) >= TELL_AGAIN_NS {
            (told.rate_bps, told.at_ns) = (rate_bps, now_ns);
            interval.rates.push(RateOf { flow, rate_bps });
        }
        let is_other = told.reported_bps.abs_diff(sent_bps) > told.reported_bps / REPORT_CHANGE;
        if is_other && now_ns.saturating_sub(told.reported_ns) >= REPORT_AGAIN_NS {
            (told.reported_bps, told.reported_ns) = (sent_bps, now_ns);
            interval.entries.push(Entry { what: What::Rate, flow, rate_bps: sent_bps });
        }
    }
}
