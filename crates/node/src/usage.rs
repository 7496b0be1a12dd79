//! What zones and the node use of the machine, as the operator is shown it, and what workers count on the way there.
//!
//! ```text
//!   workers ──counts──> UsageDesk ──sums──> monitor        monitor ──samples──> UsageDesk ──> operator
//! ```
//!
//! In: counts of each worker, samples of the monitor. Out: sums, views. Never measures and never judges.

use std::collections::BTreeMap;

use abi::event::{SoftLimit, quota};
use flow::DatapathId;
use monitor_channel::{
    AppSpec, AppState, AppStatus, NodeUsage, SAMPLE_INTERVAL_MS, ZoneCounts, ZoneKind, ZoneUsage,
};
use zone::judge::{Excess, Observation};
use zone::usage::{History, Sample};
use zone::{Limits, Resource};

use operator::contract::{AppUsageView, LimitView, UsageView};

/// What is known, and what is being counted.
#[derive(Debug)]
pub struct UsageDesk {
    limits: BTreeMap<String, Limits>,
    /// One for each zone that has run: as many as there are apps.
    zones: BTreeMap<u16, (History, Vec<Excess>)>,
    kernel: History,
    monitor: History,
    /// By worker; `None` if it has not answered yet.
    counted: Vec<Option<Vec<ZoneCounts>>>,
    stored: Stored,
}

/// What apps have in the store, as one start of its service says.
#[derive(Debug, Default)]
struct Stored {
    generation: u64,
    /// By app, the number of the last word and the bytes: of the apps of this node alone.
    bytes: BTreeMap<String, (u64, u64)>,
}

impl UsageDesk {
    /// Of these apps; nothing is known yet.
    pub fn new(apps: &[AppSpec], workers: usize) -> UsageDesk {
        UsageDesk {
            limits: apps.iter().map(|app| (app.name.clone(), app.limits.clone())).collect(),
            zones: BTreeMap::new(),
            kernel: History::default(),
            monitor: History::default(),
            counted: vec![None; workers],
            stored: Stored::default(),
        }
    }

    /// The service that keeps the store says what an app has there. It says so by whichever worker, so that words overtake each other; each start
    /// of it begins by saying all.
    pub fn on_store_used(&mut self, generation: u64, app: String, bytes: u64, revision: u64) {
        let stored = &mut self.stored;
        if generation < stored.generation || !self.limits.contains_key(&app) {
            return;
        }
        if generation > stored.generation {
            *stored = Stored { generation, ..Stored::default() };
        }
        let known = stored.bytes.entry(app).or_default();
        *known = (*known).max((revision, bytes));
    }

    fn stored(&self, zone: u16, apps: &[AppStatus]) -> u64 {
        let app = apps.iter().find(|status| status.zone == zone).map(|status| &status.app);
        app.and_then(|app| self.stored.bytes.get(app)).map_or(0, |(_, bytes)| *bytes)
    }

    /// An app that was added, or installed anew. Those that were removed are as many as the operator installs.
    pub fn add(&mut self, app: String, limits: Limits) {
        self.limits.insert(app, limits);
    }

    /// A worker's counts. The sums of all, once each has answered.
    pub fn on_counted(
        &mut self,
        worker: usize,
        zones: Vec<ZoneCounts>,
        apps: &[AppStatus],
    ) -> Option<Vec<ZoneCounts>> {
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
            // The last to answer was counted last.
            sum.at_ms = sum.at_ms.max(counts.at_ms);
        }
        for sum in sums.values_mut() {
            sum.store_bytes = self.stored(sum.zone, apps);
        }
        Some(sums.into_values().collect())
    }

    /// The monitor's newest samples. What there is to judge comes back, as JSON.
    pub fn on_usage(&mut self, zones: Vec<ZoneUsage>, node: NodeUsage, apps: &[AppStatus]) -> String {
        let mut observed = Vec::new();
        for ZoneUsage { zone, sample, over } in zones {
            let (history, of_zone) = self.zones.entry(zone).or_default();
            *of_zone = over;
            // The monitor repeats the last sample of a zone in which nothing runs.
            if history.last() == Some(&sample) {
                continue;
            }
            history.push(sample);
            let Some(status) = apps.iter().find(|status| status.zone == zone) else { continue };
            let Some(limits) = self.limits.get(&status.app).cloned() else { continue };
            let cpu = Resource::CpuPercent.key();
            let keeps_cpu =
                status.kind == ZoneKind::Process && !status.not_enforced.iter().any(|gap| gap.limit == cpu);
            observed.push(Observation { zone, sample, limits, keeps_cpu });
        }
        self.kernel.push(node.kernel);
        self.monitor.push(node.monitor);
        // Numbers and names: they can be written.
        serde_json::to_string(&observed).unwrap_or_default()
    }

    /// What a zone uses more of than a soft limit.
    pub fn over(&self, zone: u16) -> Vec<Excess> {
        self.zones.get(&zone).map(|(_, over)| over.clone()).unwrap_or_default()
    }

    /// What an app used at the last sample, if it runs.
    pub fn last(&self, status: &AppStatus) -> Option<Sample> {
        let (history, _) = self.zones.get(&status.zone).filter(|_| status.state == AppState::Running)?;
        history.last().copied().filter(|last| last.generation == status.generation)
    }

    /// All that is known.
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
        // The others do not bind an app that runs inside the kernel.
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

/// As an app hears it.
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
    // Of no switch.
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
        let mut desk = UsageDesk::new(&[], 2);
        assert_eq!(desk.on_counted(7, vec![counts(1, 5, 5)], &[]), None);
        assert_eq!(desk.on_counted(0, vec![counts(1, 5, 5)], &[]), None);
        assert_eq!(desk.on_counted(0, vec![counts(1, 6, 5)], &[]), None);
        assert_eq!(
            desk.on_counted(1, vec![counts(1, 1, 900), counts(2, 1, 0)], &[]),
            Some(vec![counts(1, 7, 900), counts(2, 1, 0)])
        );
        assert_eq!(desk.on_counted(1, Vec::new(), &[]), None);
    }

    #[test]
    fn of_what_the_store_holds_the_last_word_of_the_last_start_counts() {
        let mut desk = UsageDesk::new(&[], 1);
        desk.add("fw".to_owned(), Limits::default());
        let mut check = |generation, app: &str, bytes, revision, expected: Option<u64>| {
            desk.on_store_used(generation, app.to_owned(), bytes, revision);
            assert_eq!(desk.stored.bytes.get(app).map(|(_, bytes)| *bytes), expected, "{revision}");
        };
        check(1, "stranger", 5, 1, None);
        check(1, "fw", 9, 3, Some(9));
        check(1, "fw", 2, 2, Some(9));
        check(2, "fw", 1, 1, Some(1));
        check(1, "fw", 7, 99, Some(1));
        check(3, "stranger", 5, 1, None);
    }

    #[test]
    fn the_time_in_calls_of_all_workers_adds_up_and_was_counted_when_the_last_answered() {
        let mut desk = UsageDesk::new(&[], 2);
        let of = |calls_us, at_ms| vec![ZoneCounts { calls_us, at_ms, ..counts(1, 0, 0) }];
        assert_eq!(desk.on_counted(1, of(300, 1_007), &[]), None);
        assert_eq!(desk.on_counted(0, of(40, 1_000), &[]), Some(of(340, 1_007)));
    }

    #[test]
    fn a_zone_in_which_nothing_runs_makes_no_new_samples() {
        let mut desk = UsageDesk::new(&[], 1);
        let sample = |unix_ms| Sample { unix_ms, ..Sample::default() };
        let usage = |unix_ms| vec![ZoneUsage { zone: 1, sample: sample(unix_ms), over: Vec::new() }];
        for unix_ms in [1, 2, 2, 2, 3] {
            let observed = desk.on_usage(usage(unix_ms), NodeUsage::default(), &[]);
            assert_eq!(observed, "[]", "of an app that is not known nothing is judged");
        }
        let seen: Vec<_> = desk.zones[&1].0.iter().map(|sample| sample.unix_ms).collect();
        assert_eq!(seen, [1, 2, 3]);
        assert!(desk.over(1).is_empty() && desk.over(9).is_empty());
    }

    #[test]
    fn what_the_most_zones_use_fits_into_one_frame() {
        let all = u64::MAX;
        let most = Sample {
            unix_ms: all,
            generation: all,
            memory_bytes: Some(all),
            cpu_percent: u32::MAX,
            store_bytes: all,
            ..Sample::default()
        };
        let soft = r#"{"soft": 4294967294, "hard": 4294967295}"#;
        let limits = format!(
            r#"{{"memory_bytes": {soft}, "open_files": {soft}, "processes": {soft}, "cpu_percent": {soft}, "lag_ms": {soft}}}"#
        );
        let mut limits: Limits = serde_json::from_str(&limits).unwrap();
        (limits.store_bytes, limits.soft.store_bytes) = (Some(u32::MAX), Some(u32::MAX));
        let seen = Observation { zone: u16::MAX, sample: most, limits, keeps_cpu: false };
        let zones = serde_json::to_string(&vec![seen; monitor_channel::APPS_MAX]).unwrap();
        let mut frame = Vec::new();
        assert!(abi::event::write::observed(&mut frame, 1, &abi::event::Observed { zones: &zones }));
    }

    #[test]
    fn an_app_hears_of_its_memory_in_kib() {
        let excess =
            Excess { resource: Resource::MemoryBytes, used: 61 << 20, soft: 51 << 20, hard: u64::MAX };
        let SoftLimit { quota: number, used, soft, hard, .. } = soft_limit(&excess);
        assert_eq!((number, used, soft, hard), (quota::MEMORY_KIB, 61 << 10, 51 << 10, u32::MAX));
    }
}
