//! The meter of a receiver: bytes for each VNIC and sender, and their rates in each interval.
//!
//! In: bytes of flows, and the end of an interval.
//! Out: the rate of each flow, and which flows began and ended. It reads no counter and no clock, and decides nothing.

use crate::vnic::{Flow, RATE_MAX_BPS};
use std::collections::BTreeMap;

/// The most flows that are metered. The bytes of further ones are only counted together, and they get no feedback: their senders
/// stay at the guarantee.
pub const FLOWS_MAX: usize = 65_536;

/// A flow without a byte for this long has ended.
pub const FLOW_IDLE_NS: u64 = 2_000_000_000;

/// The rate of a flow in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    /// The flow.
    pub flow: Flow,
    /// Its rate in bits a second. 0: silent in this interval, but not ended. At most [`RATE_MAX_BPS`]: an interval that was measured as
    /// far too short gives more, which no message can say.
    pub rate_bps: u64,
    /// What happened to it.
    pub stage: Stage,
}

/// Where a flow is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its first interval, in which it may have been silent at first.
    Began,
    /// It was there before.
    Lives,
    /// It is silent for [`FLOW_IDLE_NS`]. The meter reports it once more if it begins again.
    Ended,
}

/// The meter of one server.
#[derive(Clone, Debug)]
pub struct Meter {
    flows: BTreeMap<Flow, Counted>,
    began_ns: u64,
    unmetered_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// In this interval.
    bytes: u64,
    heard_ns: u64,
    is_live: bool,
}

impl Meter {
    /// A meter whose first interval begins now.
    pub fn new(now_ns: u64) -> Self {
        Meter { flows: BTreeMap::new(), began_ns: now_ns, unmetered_bytes: 0 }
    }

    /// Bytes of a flow have arrived.
    pub fn add(&mut self, now_ns: u64, flow: Flow, bytes: u64) {
        if let Some(counted) = self.counted(flow, bytes) {
            counted.hear(now_ns, bytes);
        }
    }

    /// Ends the interval. The flows are in order, first by sender.
    pub fn close(&mut self, now_ns: u64) -> Vec<Metered> {
        let took_ns = now_ns.saturating_sub(self.began_ns).max(1);
        self.began_ns = now_ns;
        let metered = self.flows.iter_mut().filter_map(|(flow, counted)| {
            let stage = counted.stage(now_ns)?;
            let bits = u128::from(std::mem::take(&mut counted.bytes)) * 8;
            let rate_bps = u64::try_from(bits * 1_000_000_000 / u128::from(took_ns)).unwrap_or(u64::MAX);
            Some(Metered { flow: *flow, rate_bps: rate_bps.min(RATE_MAX_BPS), stage })
        });
        let metered = metered.collect();
        self.flows.retain(|_, counted| counted.is_live);
        metered
    }

    /// The bytes of flows beyond [`FLOWS_MAX`].
    pub fn unmetered_bytes(&self) -> u64 {
        self.unmetered_bytes
    }

    fn counted(&mut self, flow: Flow, bytes: u64) -> Option<&mut Counted> {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&flow) {
            self.unmetered_bytes = self.unmetered_bytes.saturating_add(bytes);
            return None;
        }
        Some(self.flows.entry(flow).or_default())
    }
}

impl Counted {
    fn hear(&mut self, now_ns: u64, bytes: u64) {
        if bytes > 0 {
            self.bytes = self.bytes.saturating_add(bytes);
            self.heard_ns = now_ns;
        }
    }

    /// The stage at the end of an interval, if there is something to report.
    fn stage(&mut self, now_ns: u64) -> Option<Stage> {
        if self.bytes > 0 {
            let was_live = std::mem::replace(&mut self.is_live, true);
            return Some(if was_live { Stage::Lives } else { Stage::Began });
        }
        if now_ns.saturating_sub(self.heard_ns) < FLOW_IDLE_NS {
            return self.is_live.then_some(Stage::Lives);
        }
        std::mem::take(&mut self.is_live).then_some(Stage::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnic::VnicId;

    const MS: u64 = 1_000_000;

    fn flow(sender: u32) -> Flow {
        Flow { sender: VnicId(sender), receiver: VnicId(0) }
    }

    fn told(metered: &[Metered]) -> Vec<(u32, u64, Stage)> {
        metered.iter().map(|metered| (metered.flow.sender.0, metered.rate_bps, metered.stage)).collect()
    }

    #[test]
    fn rates_are_bytes_by_the_time_that_has_passed() {
        let mut meter = Meter::new(0);
        meter.add(MS, flow(1), 500);
        meter.add(2 * MS, flow(1), 750);
        meter.add(2 * MS, flow(2), 125);
        assert_eq!(told(&meter.close(10 * MS)), [(1, 1_000_000, Stage::Began), (2, 100_000, Stage::Began)]);
        // The interval took twice as long as planned.
        meter.add(11 * MS, flow(1), 1250);
        assert_eq!(told(&meter.close(30 * MS)), [(1, 500_000, Stage::Lives), (2, 0, Stage::Lives)]);
    }

    #[test]
    fn a_silent_flow_ends_once_and_can_begin_again() {
        let mut meter = Meter::new(0);
        meter.add(0, flow(1), 100);
        let mut stages = Vec::new();
        for second in 1..=5 {
            meter.add(second * 1000 * MS, flow(1), if second < 5 { 0 } else { 100 });
            stages.push(told(&meter.close(second * 1000 * MS)));
        }
        let ended = vec![(1, 0, Stage::Ended)];
        assert_eq!(
            stages,
            [vec![(1, 800, Stage::Began)], ended, vec![], vec![], vec![(1, 800, Stage::Began)]]
        );
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_together() {
        let mut meter = Meter::new(0);
        let count = u32::try_from(FLOWS_MAX).unwrap();
        (0..count + 2).for_each(|sender| meter.add(0, flow(sender), 10));
        assert_eq!((meter.close(MS).len(), meter.unmetered_bytes()), (FLOWS_MAX, 20));
        // Flows that have ended make room.
        assert!(meter.close(20_000 * MS).len() == FLOWS_MAX && meter.close(20_001 * MS).is_empty());
        meter.add(20_001 * MS, flow(count + 1), 10);
        assert_eq!(meter.close(20_002 * MS).len(), 1);
    }
}
