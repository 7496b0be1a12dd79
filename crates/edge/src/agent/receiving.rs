//! The receiving half of an agent: what its VNICs get, and what it tells the senders.
//!
//! In: bytes, and the end of each interval. Out: rates for senders, and entries for the label service. It sends nothing.
//!
//! The NIC is divided among the VNICs that receive, in proportion to their guarantees. A VNIC that receives less leaves the rest to the others,
//! but it can have its guarantee back at any time.

use super::settings::Settings;
use crate::feedback::{Queue, RateControl};
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

/// After the NIC was congested, or a flow has begun, guarantees are reserved for so many intervals, also for VNICs that do not use them.
/// The NIC may drop what they should receive, so that they only seem to want less.
const RESERVED: u8 = 6;

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
    nic: Queue,
    reserved: u8,
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
        Receiving {
            meter: Meter::new(now_ns),
            controls: BTreeMap::new(),
            told: BTreeMap::new(),
            nic: Queue::default(),
            reserved: 0,
        }
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
        self.reserve(&by_vnic, settings);
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

    /// Decides whether guarantees are reserved in this interval.
    fn reserve(&mut self, by_vnic: &BTreeMap<VnicId, Vec<Metered>>, settings: &Settings) {
        let flows = || by_vnic.values().flatten();
        let sum = flows().fold(0u64, |sum, flow| sum.saturating_add(flow.rate_bps));
        let is_congested = self.nic.on_interval(settings.capacity_bps(), settings.interval_ns, sum);
        let has_begun = flows().any(|flow| flow.stage == Stage::Began);
        self.reserved = if is_congested || has_begun { RESERVED } else { self.reserved.saturating_sub(1) };
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
        let demand_bps = match received {
            _ if wants_more => UNLIMITED_BPS,
            _ if received > vnic.guarantee_bps => received.saturating_add(received / 4),
            _ if self.reserved > 0 => vnic.guarantee_bps,
            _ => received,
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::{Address, AgentId, SliceId};
    use flow::MacAddr;

    #[test]
    fn a_full_nic_that_drops_the_packets_of_one_vnic_does_not_take_its_guarantee() {
        let vnic = |id: u8, guarantee_bps| Vnic {
            id: VnicId(id.into()),
            slice: SliceId(1),
            agent: Some(AgentId(u32::from(id >= 10))),
            address: Address { vlan: None, mac: MacAddr([2, 0, 0, 0, 0, id]) },
            guarantee_bps,
            strict: false,
        };
        let (large, small) = (8_000_000, 2_000_000);
        let vnics = [vnic(1, large), vnic(2, small), vnic(11, large), vnic(12, small)];
        let directory = Directory::new(vnics).unwrap();
        let settings = Settings::for_nic(AgentId(1), 10_000_000, 1);
        let flow = |sender: u32| Flow { sender: VnicId(sender), receiver: VnicId(sender + 10) };
        let mut receiving = Receiving::new(0);
        let mut told = BTreeMap::new();
        for interval in 1..=3 {
            // In 40 ms: 9.8 and 0.2 Mb/s.
            let now = interval * settings.interval_ns;
            receiving.meter().add(now, flow(1), 49_000);
            receiving.meter().add(now, flow(2), 1000);
            let rates = receiving.close(now, &directory, &settings).rates;
            told.extend(rates.iter().map(|rate| (rate.flow.sender.0, rate.rate_bps)));
        }
        assert_eq!(told, BTreeMap::from([(1, 7_840_000), (2, 1_960_000)]));
    }
}
