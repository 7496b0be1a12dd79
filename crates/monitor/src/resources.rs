//! The recent usage of each zone, and the reactions to it. Pure.
//!
//! ```text
//!   Reading (from /proc) ──┐
//!   ZoneCounts (kernel) ───┴──> Sample ──┬─> the last of them, for the operator and for who asks how a zone ended
//!                                        └─> resource_contract ──> verdicts, if nobody else judges
//! ```
//!
//! An app inside the kernel process has no reading of its own: its usage is the time of its calls, which is among the
//! counters.
//!
//! The service `resource` judges, and its rulings arrive through the kernel process. Without rulings, the monitor
//! judges with the same code.
//!
//! In: readings, counters and the time. Out: verdicts, and [`ZoneUsage`] for the kernel process. It reads no file and
//! ends no process.

use std::collections::{BTreeMap, BTreeSet};

use resource_contract::{Judge, Ruling, Verdict};
use zone::Excess;
use zone::usage::{History, Sample};
use zone::{Limits, Resource};

use crate::sampling::Reading;
pub use monitor_channel::usage::{NodeUsage, SAMPLE_INTERVAL_MS, ZoneCounts, ZoneUsage};

/// How long the monitor leaves the judgement to the service after a ruling: three samples, which the service may miss.
const RULED_MS: u64 = 3 * SAMPLE_INTERVAL_MS;

/// A time on both clocks, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    pub(crate) now_ms: u64,
    pub(crate) unix_ms: u64,
}

/// The zone and limits of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) zone: u16,
    pub(crate) generation: u64,
    pub(crate) reading: Reading,
    pub(crate) limits: &'a Limits,
    /// Whether Linux enforces the zone's limit of processor time.
    pub(crate) keeps_cpu: bool,
}

/// One entry for each zone that has run, so at most as many as there are apps.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    zones: BTreeMap<u16, Watched>,
    counts: BTreeMap<u16, ZoneCounts>,
    /// The start of the store's service that reported, and the stored bytes of each zone's app.
    stored: (u64, BTreeMap<u16, u64>),
    /// Until this time, the service judges.
    ruled_until_ms: u64,
    kernel: Pace,
    monitor: Pace,
    /// The part of a port in the memory that a zone shares with the kernel.
    port_bytes: u64,
}

#[derive(Debug, Default)]
struct Watched {
    generation: u64,
    pace: Pace,
    judge: Judge,
    history: History,
    /// The exceeded soft limits that the operator knows of.
    told: BTreeSet<Resource>,
    over: Vec<Excess>,
    /// It runs inside the kernel process.
    in_kernel: bool,
    /// The last sample that was sent to the service.
    observed: Option<Sample>,
}

impl Watched {
    fn end(&mut self) {
        self.over.clear();
        self.told.clear();
    }
}

/// Computes rates from totals.
#[derive(Debug, Default)]
struct Pace {
    at_ms: u64,
    reading: Option<Reading>,
    counts: Option<ZoneCounts>,
}

impl Resources {
    /// `port_bytes`: the memory of all ports of one zone together.
    pub(crate) fn new(port_bytes: u64) -> Resources {
        Resources { port_bytes, ..Resources::default() }
    }

    /// Takes the counters of the kernel process. If it no longer knows a zone, the last ones stay.
    pub(crate) fn on_counts(&mut self, counts: &[ZoneCounts]) {
        for of_zone in counts.iter().filter(|of_zone| self.zones.contains_key(&of_zone.zone)) {
            let store_bytes = self.stored.1.get(&of_zone.zone).copied().unwrap_or_default();
            self.counts.insert(of_zone.zone, ZoneCounts { store_bytes, ..*of_zone });
        }
    }

    /// Takes the stored bytes of a zone's app, from this start of the store's service. Each start reports all of them
    /// first.
    pub(crate) fn on_stored(&mut self, generation: u64, zone: u16, bytes: u64) {
        if self.stored.0 != generation {
            self.stored = (generation, BTreeMap::new());
        }
        self.stored.1.insert(zone, bytes);
    }

    /// The newest sample of each zone that has one since the last call.
    pub(crate) fn take_unobserved(&mut self) -> Vec<(u16, Sample)> {
        let newest = |(zone, watched): (&u16, &mut Watched)| {
            let sample = *watched.history.last()?;
            let is_new = watched.observed.replace(sample) != Some(sample);
            is_new.then_some((*zone, sample))
        };
        self.zones.iter_mut().filter_map(newest).collect()
    }

    /// The service has answered, even if there were no rulings.
    pub(crate) fn on_rulings(&mut self, now_ms: u64) {
        self.ruled_until_ms = now_ms.saturating_add(RULED_MS);
    }

    /// Takes a reading of one zone, and returns the verdicts. While the service judges, the monitor returns only ends
    /// of excesses: a service that has just started does not know of the earlier excess.
    pub(crate) fn on_reading(&mut self, measured: &Measured<'_>, at: Moment) -> Vec<Verdict> {
        let Measured { zone, generation, mut reading, limits, keeps_cpu } = *measured;
        reading.shared_bytes = reading.shared_bytes.saturating_sub(self.port_bytes);
        let counts = self.watched(zone, generation);
        let Some(watched) = self.zones.get_mut(&zone) else { return Vec::new() };
        let sample = Sample { generation, ..watched.pace.sample(reading, counts, at) };
        self.judge(zone, sample, limits, keeps_cpu, at)
    }

    /// Takes the last counters of an app inside the kernel process. The time of its calls is the only known measure of
    /// its use of the machine. Counters that follow others too soon wait for the next ones, because a rate over a
    /// moment is meaningless.
    pub(crate) fn on_counted(
        &mut self,
        zone: u16,
        generation: u64,
        limits: &Limits,
        at: Moment,
    ) -> Vec<Verdict> {
        let counts = self.watched(zone, generation);
        let (Some(counts), Some(watched)) = (counts, self.zones.get_mut(&zone)) else { return Vec::new() };
        watched.in_kernel = true;
        let since_ms = counts.at_ms.saturating_sub(watched.pace.at_ms);
        if watched.pace.reading.is_some() && since_ms < SAMPLE_INTERVAL_MS / 2 {
            return Vec::new();
        }
        let reading = Reading { cpu_ms: counts.calls_us / 1_000, ..Reading::default() };
        let counted = Moment { now_ms: counts.at_ms, ..at };
        let sample = watched.pace.sample(reading, Some(counts), counted);
        let sample = Sample {
            generation,
            memory_bytes: None,
            open_files: None,
            processes: None,
            lag_ms: None,
            ..sample
        };
        // Inside the kernel process, no limit of processor time is enforced.
        self.judge(zone, sample, limits, false, at)
    }

    /// Starts to watch this start of a zone, if it is new, and returns the kernel process's counters.
    fn watched(&mut self, zone: u16, generation: u64) -> Option<ZoneCounts> {
        let watched = self.zones.entry(zone).or_default();
        if watched.generation != generation {
            // Earlier starts do not count against the new one; their samples remain visible.
            let history = std::mem::take(&mut watched.history);
            *watched = Watched { generation, history, ..Watched::default() };
            self.counts.remove(&zone);
        }
        self.counts.get(&zone).copied()
    }

    fn judge(
        &mut self,
        zone: u16,
        sample: Sample,
        limits: &Limits,
        keeps_cpu: bool,
        at: Moment,
    ) -> Vec<Verdict> {
        let Some(watched) = self.zones.get_mut(&zone) else { return Vec::new() };
        watched.history.push(sample);
        let told = watched.told.iter();
        watched.over = told.filter_map(|resource| Excess::of(*resource, &sample, limits)).collect();
        let ruled = at.now_ms < self.ruled_until_ms;
        let mut verdicts = watched.judge.on_sample(&sample, limits, keeps_cpu);
        verdicts.retain(|verdict| match verdict {
            Verdict::Passed(_) => false,
            Verdict::Within(_) => true,
            Verdict::End(_) => !ruled,
        });
        // Includes a limit whose excess the service should have reported and did not.
        let untold = watched.judge.passed().filter(|resource| !ruled && !watched.told.contains(resource));
        verdicts
            .extend(untold.filter_map(|resource| Excess::of(resource, &sample, limits)).map(Verdict::Passed));
        verdicts
    }

    /// Whether a verdict needs an action. The same verdict is not reported twice, and a process is not judged by what
    /// an earlier one did.
    pub(crate) fn takes(&mut self, ruling: &Ruling) -> bool {
        let Ruling { zone, generation, verdict } = ruling;
        let Some(watched) = self.zones.get_mut(zone).filter(|watched| watched.generation == *generation)
        else {
            return false;
        };
        match verdict {
            Verdict::Passed(excess) if watched.told.insert(excess.resource) => {
                watched.over.push(*excess);
                true
            }
            Verdict::Within(excess) if watched.told.remove(&excess.resource) => {
                watched.over.retain(|over| over.resource != excess.resource);
                true
            }
            Verdict::End(_) => true,
            _ => false,
        }
    }

    /// The kernel process and the monitor.
    pub(crate) fn on_node(&mut self, kernel: Reading, monitor: Reading, at: Moment) -> NodeUsage {
        NodeUsage {
            kernel: self.kernel.sample(kernel, None, at),
            monitor: self.monitor.sample(monitor, None, at),
        }
    }

    /// Forgets the other zones.
    pub(crate) fn keep_only(&mut self, is_there: impl Fn(u16) -> bool) {
        self.zones.retain(|zone, _| is_there(*zone));
        self.counts.retain(|zone, _| is_there(*zone));
    }

    /// Nothing runs in a zone: it exceeds nothing.
    pub(crate) fn on_end(&mut self, zone: u16) {
        if let Some(watched) = self.zones.get_mut(&zone) {
            watched.end();
        }
    }

    /// Zones that have left the kernel process exceed nothing any more.
    pub(crate) fn end_unloaded(&mut self, is_loaded: impl Fn(u16) -> bool) {
        let loaded = self.zones.iter_mut().filter(|(_, watched)| watched.in_kernel);
        for (_, watched) in loaded.filter(|(zone, _)| !is_loaded(**zone)) {
            watched.in_kernel = false;
            watched.end();
        }
    }

    /// The usage of the zones that have run, by number.
    pub(crate) fn usages(&self) -> Vec<ZoneUsage> {
        let usage = |(zone, watched): (&u16, &Watched)| {
            let sample = *watched.history.last()?;
            Some(ZoneUsage { zone: *zone, sample, over: watched.over.clone() })
        };
        self.zones.iter().filter_map(usage).collect()
    }

    /// What the kernel process counted for a zone last.
    pub(crate) fn counts_of(&self, zone: u16) -> ZoneCounts {
        self.counts.get(&zone).copied().unwrap_or_default()
    }

    /// The last samples of a zone, oldest first, including those of ended processes.
    pub(crate) fn history(&self, zone: u16) -> Vec<Sample> {
        self.zones.get(&zone).map(|watched| watched.history.iter().copied().collect()).unwrap_or_default()
    }
}

impl Pace {
    /// The first sample has no rates.
    fn sample(&mut self, reading: Reading, counts: Option<ZoneCounts>, at: Moment) -> Sample {
        let passed_ms = at.now_ms.saturating_sub(self.at_ms);
        let per_s = |now: u64, before: u64| match passed_ms {
            0 => 0,
            _ => u32::try_from(now.saturating_sub(before).saturating_mul(1_000) / passed_ms)
                .unwrap_or(u32::MAX),
        };
        let read_before = self.reading.unwrap_or(reading);
        let now = counts.unwrap_or_default();
        let before = self.counts.unwrap_or(now);
        let sample = Sample {
            unix_ms: at.unix_ms,
            generation: 0,
            // Milliseconds per second are thousandths of a core.
            cpu_percent: per_s(reading.cpu_ms, read_before.cpu_ms) / 10,
            memory_bytes: Some(reading.private_bytes.saturating_add(reading.shared_bytes)),
            open_files: Some(reading.open_files),
            processes: Some(reading.threads),
            lag_ms: Some(now.lag_ms),
            store_bytes: now.store_bytes,
            events_per_s: per_s(now.events, before.events),
            dropped_per_s: per_s(now.dropped, before.dropped),
            commands_per_s: per_s(now.commands, before.commands),
            packet_outs_per_s: per_s(now.packet_outs, before.packet_outs),
            refusals_per_s: per_s(now.refusals, before.refusals),
        };
        *self = Pace { at_ms: at.now_ms, reading: Some(reading), counts };
        sample
    }
}

/// The sample with the largest values: it is the longest one as JSON.
#[cfg(test)]
pub(crate) const LARGEST_SAMPLE: Sample = Sample {
    unix_ms: u64::MAX,
    generation: u64::MAX,
    memory_bytes: Some(u64::MAX),
    cpu_percent: u32::MAX,
    open_files: Some(u32::MAX),
    processes: Some(u32::MAX),
    lag_ms: Some(u32::MAX),
    store_bytes: u64::MAX,
    events_per_s: u32::MAX,
    dropped_per_s: u32::MAX,
    commands_per_s: u32::MAX,
    packet_outs_per_s: u32::MAX,
    refusals_per_s: u32::MAX,
};

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(now_ms: u64) -> Moment {
        Moment { now_ms, unix_ms: 1_000_000 + now_ms }
    }

    fn small() -> Limits {
        Limits { memory_bytes: 64 * MIB, ..Limits::default() }
    }

    fn measured(generation: u64, reading: Reading, limits: &Limits) -> Measured<'_> {
        Measured { zone: 1, generation, reading, limits, keeps_cpu: false }
    }

    fn memory(mib: u64) -> Reading {
        Reading { private_bytes: mib * MIB, ..Reading::default() }
    }

    #[test]
    fn counts_of_a_zone_that_never_ran_are_not_kept() {
        let mut resources = Resources::default();
        resources.on_counts(&[ZoneCounts { zone: 9, events: 5, ..ZoneCounts::default() }]);
        assert_eq!(resources.usages(), []);
        assert!(resources.counts.is_empty() && resources.history(9).is_empty());
    }

    #[test]
    fn totals_become_rates_whatever_the_clock_does() {
        let limits = Limits::default();
        let mut resources = Resources::default();
        let cpu = |cpu_ms| Reading { cpu_ms, ..Reading::default() };
        let percents: Vec<u32> =
            [(0, 900), (500, 1_150), (500, 1_200), (400, 1_300), (1_400, 3_300), (1_900, 0)]
                .map(|(now_ms, cpu_ms)| {
                    resources.on_reading(&measured(1, cpu(cpu_ms), &limits), at(now_ms));
                    resources.history(1).last().unwrap().cpu_percent
                })
                .to_vec();
        assert_eq!(percents, [0, 50, 0, 0, 200, 0]);
    }

    #[test]
    fn what_the_kernel_counted_goes_into_the_sample() {
        let limits = Limits::default();
        let mut resources = Resources::default();
        let mut tell = |events, packet_outs, now_ms| {
            let counts = ZoneCounts { zone: 1, events, packet_outs, lag_ms: 9, ..ZoneCounts::default() };
            resources.on_counts(&[counts]);
            resources.on_reading(&measured(1, Reading::default(), &limits), at(now_ms));
        };
        tell(0, 0, 0);
        // The total before the first sample is no rate.
        tell(5_000, 0, 0);
        tell(5_100, 7, 500);
        let sample = *resources.history(1).last().unwrap();
        assert_eq!((sample.events_per_s, sample.packet_outs_per_s, sample.lag_ms), (200, 14, Some(9)));
        assert_eq!(sample.unix_ms, 1_000_500);
    }

    /// An app inside the kernel process, with these counters.
    fn counted(resources: &mut Resources, counts: Option<(u64, u64)>, now_ms: u64) -> Vec<Verdict> {
        let limits: Limits = serde_json::from_str(r#"{"cpu_percent": {"soft": 40, "hard": 50}}"#).unwrap();
        if let Some((at_ms, calls_ms)) = counts {
            let calls_us = calls_ms * 1_000;
            resources.on_counts(&[ZoneCounts { zone: 1, calls_us, at_ms, ..ZoneCounts::default() }]);
        }
        resources.on_counted(1, 1, &limits, at(now_ms))
    }

    #[test]
    fn a_trusted_app_is_measured_by_the_time_in_its_calls_and_by_the_kernels_clock() {
        let mut resources = Resources::default();
        assert_eq!(counted(&mut resources, None, 0), []);
        assert_eq!(resources.history(1), []);
        // Ten seconds before the first sample are no rate.
        counted(&mut resources, Some((90_000, 10_000)), 1);
        counted(&mut resources, Some((90_500, 10_150)), 900);
        // The same counters again, and others directly after them.
        counted(&mut resources, None, 1_400);
        counted(&mut resources, Some((90_501, 10_150)), 1_400);
        counted(&mut resources, Some((91_000, 10_400)), 1_401);
        let seen: Vec<_> =
            resources.history(1).iter().map(|one| (one.cpu_percent, one.memory_bytes)).collect();
        assert_eq!(seen, [(0, None), (30, None), (50, None)]);
    }

    #[test]
    fn a_trusted_app_that_goes_on_beyond_its_hard_limit_is_to_end_as_any_other() {
        let mut resources = Resources::default();
        counted(&mut resources, None, 0);
        let said: Vec<_> = (0..8)
            .map(|number| counted(&mut resources, Some((number * 500, number * 300)), number * 500))
            .map(|said| said.iter().filter(|verdict| matches!(verdict, Verdict::End(_))).count())
            .collect();
        assert_eq!(said, [0, 0, 0, 0, 0, 0, 1, 1], "the first sample has no rate");
        let excess = Excess { resource: Resource::CpuPercent, used: 60, soft: 40, hard: 50 };
        let ruling = Ruling { zone: 1, generation: 1, verdict: Verdict::Passed(excess) };
        assert!(resources.takes(&ruling));
        resources.end_unloaded(|_| true);
        assert_eq!(resources.usages()[0].over.len(), 1);
        resources.end_unloaded(|_| false);
        assert_eq!(resources.usages()[0].over, []);
    }

    #[test]
    fn a_leak_is_told_of_and_then_ended_and_the_next_process_begins_anew() {
        let limits = small();
        let mut resources = Resources::new(2 * MIB);
        assert_eq!(resources.on_reading(&measured(1, memory(10), &limits), at(0)), []);
        let said = resources.on_reading(&measured(1, memory(60), &limits), at(500));
        assert!(matches!(said[..], [Verdict::Passed(excess)] if excess.used == 60 * MIB), "{said:?}");
        let ruling = |generation| Ruling { zone: 1, generation, verdict: said[0] };
        assert!(!resources.takes(&ruling(7)) && resources.takes(&ruling(1)) && !resources.takes(&ruling(1)));
        assert_eq!(resources.usages()[0].over.len(), 1);
        let shared = Reading { shared_bytes: 7 * MIB, ..memory(60) };
        let said = resources.on_reading(&measured(1, shared, &limits), at(1_000));
        assert_eq!(resources.usages()[0].over[0].used, 65 * MIB);
        assert!(matches!(said[..], [Verdict::End(excess)] if excess.used == 65 * MIB), "{said:?}");
        resources.on_end(1);
        assert_eq!(resources.usages()[0].over, []);
        assert_eq!(resources.on_reading(&measured(2, memory(1), &limits), at(1_500)), []);
        let seen: Vec<_> = resources
            .history(1)
            .iter()
            .map(|one| (one.generation, one.memory_bytes.unwrap() / MIB))
            .collect();
        assert_eq!(seen, [(1, 10), (1, 60), (1, 65), (2, 1)]);
    }

    #[test]
    fn while_somebody_else_judges_the_monitor_says_only_what_is_over() {
        let limits = small();
        let mut resources = Resources::default();
        let mut said = |mib, now_ms, rules: bool| {
            if rules {
                resources.on_rulings(now_ms);
            }
            let verdicts = resources.on_reading(&measured(1, memory(mib), &limits), at(now_ms));
            verdicts
                .iter()
                .map(|verdict| match verdict {
                    Verdict::Passed(_) => '+',
                    Verdict::Within(_) => '-',
                    Verdict::End(_) => '!',
                })
                .collect::<String>()
        };
        assert_eq!(said(60, 0, true), "");
        assert_eq!(said(70, 500, true), "");
        assert_eq!(said(10, 1_000, true), "-");
        assert_eq!(said(70, 1_500, true), "");
        assert_eq!(said(70, 2_999, false), "");
        // No ruling has arrived for too long.
        assert_eq!(said(70, 3_000, false), "!+");
    }

    #[test]
    fn the_most_of_all_zones_fits_into_one_message() {
        let over =
            Resource::ALL.map(|resource| Excess { resource, used: u64::MAX, soft: u64::MAX, hard: u64::MAX });
        let usage = ZoneUsage { zone: u16::MAX, sample: LARGEST_SAMPLE, over: over.to_vec() };
        let node = NodeUsage { kernel: LARGEST_SAMPLE, monitor: LARGEST_SAMPLE };
        let zones = vec![usage; crate::APPS_MAX];
        let message = crate::protocol::ToKernel::Resources { zones, node };
        let bytes = serde_json::to_vec(&message).unwrap().len();
        assert!(bytes <= crate::channel::MESSAGE_BYTES_MAX, "{bytes}");
    }
}
