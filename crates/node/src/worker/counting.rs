//! The counters of one worker.
//!
//! In: a ticket, or the time to count. Out: the counts of zones, sessions and switches. It resets no counter.

use super::Worker;
use crate::dispatch::Dispatch;
use crate::messages::FromWorker;
use abi::ZoneId;
use monitor_channel::ZoneCounts;
use std::collections::BTreeMap;

impl Worker {
    pub(super) fn count(&mut self, ticket: u64) {
        let counts = FromWorker::Counts {
            ticket,
            zones: self.count_zones(),
            sessions: self.southbound.sessions().collect(),
            switches: self.dispatch.kernel.of_switches().collect(),
        };
        self.unsent.push(counts);
    }

    pub(super) fn count_zones(&mut self) -> Vec<ZoneCounts> {
        let now_ms = self.now_ms;
        let lags: BTreeMap<ZoneId, u32> =
            self.dispatch.zones.iter().map(|(zone, end)| (zone, end.lag_ms(now_ms))).collect();
        let Dispatch { kernel, zones, .. } = &self.dispatch;
        let attached = zones.all().map(|(zone, end)| {
            let counters = kernel.zone(zone).map(|zone| zone.counters).unwrap_or_default();
            ZoneCounts {
                zone: zone.0,
                events: kernel.events_heard(zone),
                dropped: end.dropped(),
                commands: counters.commands,
                packet_outs: counters.packet_outs,
                refusals: self.refusals(zone, end.app()),
                lag_ms: lags.get(&zone).copied().unwrap_or_default(),
                calls_us: end.calls_us(),
                at_ms: now_ms,
                // Only the control thread knows it.
                store_bytes: 0,
            }
        });
        let ended = self.past_refusals.iter().filter(|(zone, _)| kernel.zone(*zone).is_none());
        let ended =
            ended.map(|(zone, refusals)| ZoneCounts { zone: zone.0, refusals, ..ZoneCounts::default() });
        attached.chain(ended).collect()
    }

    /// The refused commands of an app, in this and all earlier starts of its zone.
    pub(super) fn refusals(&self, zone: ZoneId, app: &str) -> u64 {
        let now = self.dispatch.kernel.zone(zone).map_or(0, |zone| zone.counters.refusals);
        now.saturating_add(self.past_refusals.of(zone, app))
    }
}
