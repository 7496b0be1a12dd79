//! The resource use of zones and of the node, for the operator, and the counters that workers report.
//!
//! ```text
//!   workers ──counts──> UsageTotals ──sums──> monitor        monitor ──samples──> UsageTotals ──> operator
//! ```
//!
//! In: counters of each worker, samples of the monitor. Out: sums, views. It measures nothing and decides nothing.

use std::collections::BTreeMap;

use abi::event::{SoftLimit, quota};
use flow::DatapathId;
use monitor_channel::{
    AppSpec, AppState, AppStatus, NodeUsage, SAMPLE_INTERVAL_MS, ZoneCounts, ZoneKind, ZoneUsage,
};
use zone::Excess;
use zone::usage::{History, Sample};
use zone::{Limits, Resource};

use operator::contract::{AppUsageView, LimitView, UsageView};

/// The known usage, and the counters that are being collected.
#[derive(Debug)]
pub struct UsageTotals {
    limits: BTreeMap<String, Limits>,
    /// One entry for each zone that has run: as many as there are apps.
    zones: BTreeMap<u16, (History, Vec<Excess>)>,
    kernel: History,
    monitor: History,
    /// By worker; `None` if it has not reported yet.
    counted: Vec<Option<Vec<ZoneCounts>>>,
}

impl UsageTotals {
    /// Creates the totals of these apps, without data.
    pub fn new(apps: &[AppSpec], workers: usize) -> UsageTotals {
        UsageTotals {
            limits: apps.iter().map(|app| (app.name.clone(), app.limits.clone())).collect(),
            zones: BTreeMap::new(),
            kernel: History::default(),
            monitor: History::default(),
            counted: vec![None; workers],
        }
    }

    /// An app was added or reinstalled. Entries of removed apps stay; their number depends on the operator.
    pub fn add(&mut self, app: String, limits: Limits) {
        self.limits.insert(app, limits);
    }

    /// Takes a worker's counters. Returns the sums once every worker has reported.
    pub fn on_counted(&mut self, worker: usize, zones: Vec<ZoneCounts>) -> Option<Vec<ZoneCounts>> {
        *self.counted.get_mut(worker)? = Some(zones);
        if self.counted.iter().any(Option::is_none) {
            return None;
        }
        let mut sums: BTreeMap<u16, ZoneCounts> = BTreeMap::new();
        for counts in self.counted.iter_mut().filter_map(Option::take).flatten() {
            let sum =
                sums.entry(counts.zone).or_insert(ZoneCounts { zone: counts.zone, ..ZoneCounts::default() });
            sum.events += counts.events;
            sum.dropped += counts.dropped;
            sum.commands += counts.commands;
            sum.packet_outs += counts.packet_outs;
            sum.refusals += counts.refusals;
            // It has a ring at each worker, and reads none while it reads one of them.
            sum.lag_ms = sum.lag_ms.max(counts.lag_ms);
            sum.calls_us += counts.calls_us;
            // The sum's time is that of the latest report.
            sum.at_ms = sum.at_ms.max(counts.at_ms);
        }
        Some(sums.into_values().collect())
    }

    /// Takes the monitor's newest samples.
    pub fn on_usage(&mut self, zones: Vec<ZoneUsage>, node: NodeUsage) {
        for ZoneUsage { zone, sample, over } in zones {
            let (history, of_zone) = self.zones.entry(zone).or_default();
            *of_zone = over;
            // The monitor repeats the last sample of a zone without a running process.
            if history.last() != Some(&sample) {
                history.push(sample);
            }
        }
        self.kernel.push(node.kernel);
        self.monitor.push(node.monitor);
    }

    /// The soft limits that a zone exceeds.
    pub fn over(&self, zone: u16) -> Vec<Excess> {
        self.zones.get(&zone).map(|(_, over)| over.clone()).unwrap_or_default()
    }

    /// An app's usage in the last sample, if it runs.
    pub fn last(&self, status: &AppStatus) -> Option<Sample> {
        let (history, _) = self.zones.get(&status.zone).filter(|_| status.state == AppState::Running)?;
        history.last().copied().filter(|last| last.generation == status.generation)
    }

    /// All known usage.
    pub fn view(&self, apps: &[AppStatus]) -> UsageView {
        let samples = |history: &History| history.iter().copied().collect();
        UsageView {
            interval_ms: SAMPLE_INTERVAL_MS,
            apps: apps.iter().map(|status| self.app_view(status)).collect(),
            kernel: samples(&self.kernel),
            monitor: samples(&self.monitor),
        }
    }

    fn app_view(&self, status: &AppStatus) -> AppUsageView {
        let history = self.zones.get(&status.zone).map(|(history, _)| history);
        let limits = self.limits.get(&status.app).map(limit_views).unwrap_or_default();
        // The other limits do not apply to an app in the kernel's process.
        let binds = |limit: &LimitView| {
            let binds_all = matches!(limit.resource, Resource::CpuPercent | Resource::StoreBytes);
            status.kind == ZoneKind::Process || binds_all
        };
        AppUsageView {
            limits: limits.into_iter().filter(binds).collect(),
            over: self.over(status.zone),
            samples: history.map(|history| history.iter().copied().collect()).unwrap_or_default(),
            status: status.clone(),
        }
    }
}

fn limit_views(limits: &Limits) -> Vec<LimitView> {
    let view = |resource: Resource| {
        Some(LimitView { resource, soft: resource.soft(limits)?, hard: resource.hard(limits)? })
    };
    Resource::ALL.into_iter().filter_map(view).collect()
}

/// The event for the app.
pub fn soft_limit(excess: &Excess) -> SoftLimit {
    let Excess { resource, used, soft, hard } = *excess;
    let (quota, unit) = match resource {
        Resource::CpuPercent => (quota::CPU_PERCENT, 1),
        Resource::MemoryBytes => (quota::MEMORY_KIB, 1 << 10),
        Resource::OpenFiles => (quota::OPEN_FILES, 1),
        Resource::Processes => (quota::PROCESSES, 1),
        Resource::LagMs => (quota::LAG_MS, 1),
        Resource::StoreBytes => (quota::STORE_BYTES, 1),
    };
    let amount = |of: u64| u32::try_from(of / unit).unwrap_or(u32::MAX);
    // For no switch.
    SoftLimit { datapath: DatapathId(0), quota, used: amount(used), soft: amount(soft), hard: amount(hard) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::Sample;

    fn counts(zone: u16, commands: u64, lag_ms: u32) -> ZoneCounts {
        ZoneCounts { zone, commands, lag_ms, ..ZoneCounts::default() }
    }

    #[test]
    fn sums_wait_for_each_worker_and_for_nobody_else() {
        let mut totals = UsageTotals::new(&[], 2);
        assert_eq!(totals.on_counted(7, vec![counts(1, 5, 5)]), None);
        assert_eq!(totals.on_counted(0, vec![counts(1, 5, 5)]), None);
        assert_eq!(totals.on_counted(0, vec![counts(1, 6, 5)]), None);
        assert_eq!(
            totals.on_counted(1, vec![counts(1, 1, 900), counts(2, 1, 0)]),
            Some(vec![counts(1, 7, 900), counts(2, 1, 0)])
        );
        assert_eq!(totals.on_counted(1, Vec::new()), None);
    }

    #[test]
    fn the_time_in_calls_of_all_workers_adds_up_and_was_counted_when_the_last_answered() {
        let mut totals = UsageTotals::new(&[], 2);
        let of = |calls_us, at_ms| vec![ZoneCounts { calls_us, at_ms, ..counts(1, 0, 0) }];
        assert_eq!(totals.on_counted(1, of(300, 1_007)), None);
        assert_eq!(totals.on_counted(0, of(40, 1_000)), Some(of(340, 1_007)));
    }

    #[test]
    fn a_zone_in_which_nothing_runs_makes_no_new_samples() {
        let mut totals = UsageTotals::new(&[], 1);
        let sample = |unix_ms| Sample { unix_ms, ..Sample::default() };
        let usage = |unix_ms| vec![ZoneUsage { zone: 1, sample: sample(unix_ms), over: Vec::new() }];
        for unix_ms in [1, 2, 2, 2, 3] {
            totals.on_usage(usage(unix_ms), NodeUsage::default());
        }
        let seen: Vec<_> = totals.zones[&1].0.iter().map(|sample| sample.unix_ms).collect();
        assert_eq!(seen, [1, 2, 3]);
        assert!(totals.over(1).is_empty() && totals.over(9).is_empty());
    }

    #[test]
    fn an_app_hears_of_its_memory_in_kib() {
        let excess =
            Excess { resource: Resource::MemoryBytes, used: 61 << 20, soft: 51 << 20, hard: u64::MAX };
        let SoftLimit { quota: number, used, soft, hard, .. } = soft_limit(&excess);
        assert_eq!((number, used, soft, hard), (quota::MEMORY_KIB, 61 << 10, 51 << 10, u32::MAX));
    }
}
