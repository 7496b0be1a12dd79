//! Decides whether a zone stays within its limits, who is notified, and when a zone is ended. Pure.
//!
//! ```text
//!   Sample, Limits ──> Judge::on_sample ──> Passed   once, when usage rises above the soft limit
//!                                       ├─> Within   once, when it is within the soft limit again
//!                                       └─> End      when usage stays above the hard limit for several samples
//! ```
//!
//! In: consecutive samples of one zone, or of many ([`Judges`]). Out: verdicts. It never measures, notifies or ends a
//! zone.
//! The service uses it. While the service does not run, the monitor uses it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use zone::{Excess, Limits, Resource, Sample};

use crate::{Observation, Ruling};

/// After usage rose above a soft limit, it is within the limit again when at most this percentage of the limit is
/// used. So usage that goes up and down near the limit causes one notification.
const WITHIN_PERCENT: u64 = 90;

/// Consecutive samples above the hard limit of processor time before the zone is ended. A peak of two seconds is
/// tolerated.
const CPU_SAMPLES: u8 = 6;

/// The same for counted resources. They may change while they are counted.
const COUNTED_SAMPLES: u8 = 2;

/// What to do about a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// Usage is above a soft limit: notify the app and the operator.
    Passed(Excess),
    /// Usage is within the soft limit again: notify them.
    Within(Excess),
    /// Usage is above a hard limit that nothing else enforces: end the zone.
    End(Excess),
}

/// A judge for each zone. It grows to the number of zone numbers that were observed.
#[derive(Clone, Debug, Default)]
pub struct Judges {
    of: BTreeMap<u16, (u64, Judge)>,
}

impl Judges {
    /// Takes the next observation of a zone. The history of an earlier process does not count against its successor.
    pub fn on_observation(&mut self, seen: &Observation) -> Vec<Ruling> {
        let Observation { zone, sample, limits, keeps_cpu } = seen;
        let generation = sample.generation;
        let (judged, judge) = self.of.entry(*zone).or_default();
        if *judged != generation {
            (*judged, *judge) = (generation, Judge::default());
        }
        let verdicts = judge.on_sample(sample, limits, *keeps_cpu);
        verdicts.into_iter().map(|verdict| Ruling { zone: *zone, generation, verdict }).collect()
    }
}

/// The state of one zone from one start of its app to its end.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    of: [OfResource; Resource::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct OfResource {
    passed: bool,
    /// Consecutive samples above the hard limit.
    over: u8,
}

impl Judge {
    /// Takes the next sample. If `keeps_cpu` is true, Linux enforces the limit of processor time. A measured excess
    /// is then a measuring error.
    pub fn on_sample(&mut self, sample: &Sample, limits: &Limits, keeps_cpu: bool) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for (resource, of) in Resource::ALL.into_iter().zip(&mut self.of) {
            let Some(excess) = Excess::of(resource, sample, limits) else { continue };
            verdicts.extend(of.on_used(&excess));
            let is_kept = resource == Resource::CpuPercent && keeps_cpu;
            verdicts.extend(of.beyond_hard(&excess).filter(|_| !is_kept));
        }
        verdicts
    }

    /// The resources that are above their soft limit now.
    pub fn passed(&self) -> impl Iterator<Item = Resource> + '_ {
        Resource::ALL.into_iter().zip(&self.of).filter(|(_, of)| of.passed).map(|(resource, _)| resource)
    }
}

impl OfResource {
    fn on_used(&mut self, excess: &Excess) -> Option<Verdict> {
        let is_within = excess.used <= excess.soft.saturating_mul(WITHIN_PERCENT) / 100;
        match self.passed {
            false if excess.used > excess.soft => {
                self.passed = true;
                Some(Verdict::Passed(*excess))
            }
            true if is_within => {
                self.passed = false;
                Some(Verdict::Within(*excess))
            }
            _ => None,
        }
    }

    fn beyond_hard(&mut self, excess: &Excess) -> Option<Verdict> {
        self.over = if excess.used > excess.hard { self.over.saturating_add(1) } else { 0 };
        let patience = match excess.resource {
            Resource::CpuPercent => CPU_SAMPLES,
            // One sample is enough: memory that is taken is missing elsewhere, and a lag cannot be a measuring error.
            Resource::MemoryBytes | Resource::LagMs => 1,
            Resource::OpenFiles | Resource::Processes => COUNTED_SAMPLES,
            // The store itself accepts no more data. An app that had more before the limit was lowered is not ended.
            Resource::StoreBytes => return None,
        };
        // Repeated until the zone has ended, because an earlier verdict may have been lost.
        (self.over >= patience).then_some(Verdict::End(*excess))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::limits::SoftLimits;

    const MIB: u64 = 1 << 20;

    fn limits() -> Limits {
        let said = r#"{"memory_bytes": {"soft": 10485760, "hard": 20971520}, "cpu_percent": {"soft": 50, "hard": 100}}"#;
        serde_json::from_str(said).unwrap()
    }

    /// The verdicts for each sample: `+` passed, `-` within, `!` end.
    fn check(samples: &[Sample], keeps_cpu: bool, expected: &str) {
        let mut judge = Judge::default();
        let word = |verdict: &Verdict| match verdict {
            Verdict::Passed(_) => '+',
            Verdict::Within(_) => '-',
            Verdict::End(_) => '!',
        };
        let said = |sample| {
            let said: String = judge.on_sample(sample, &limits(), keeps_cpu).iter().map(word).collect();
            if said.is_empty() { ".".to_owned() } else { said }
        };
        assert_eq!(samples.iter().map(said).collect::<Vec<_>>().join(" "), expected);
    }

    fn memory(of_mib: &[u64]) -> Vec<Sample> {
        of_mib.iter().map(|mib| Sample { memory_bytes: Some(mib * MIB), ..Sample::default() }).collect()
    }

    fn cpu(percents: &[u32]) -> Vec<Sample> {
        percents.iter().map(|percent| Sample { cpu_percent: *percent, ..Sample::default() }).collect()
    }

    #[test]
    fn memory_beyond_its_hard_limit_ends_at_once() {
        check(&memory(&[25]), false, "+!");
        check(&memory(&[20, 21, 22, 15]), false, "+ ! ! .");
        check(&memory(&[25]), true, "+!");
    }

    #[test]
    fn of_a_soft_limit_one_is_told_once_and_once_that_it_is_kept_again() {
        check(&memory(&[10, 11, 12, 10, 11, 9, 8, 11]), false, ". + . . . - . +");
    }

    #[test]
    fn processor_time_ends_a_zone_only_when_it_goes_on_and_nobody_else_keeps_it() {
        check(&cpu(&[101, 101, 101, 101, 101, 100, 101]), false, "+ . . . . . .");
        check(&cpu(&[400, 400, 400, 400, 400, 400, 400]), false, "+ . . . . ! !");
        check(&cpu(&[110, 110, 110, 110, 110, 110, 110]), true, "+ . . . . . .");
    }

    #[test]
    fn a_successor_is_not_judged_by_what_came_before_it() {
        let mut judges = Judges::default();
        let mut rulings = |zone, generation| {
            let sample = Sample { generation, memory_bytes: Some(15 * MIB), ..Sample::default() };
            let seen = Observation { zone, sample, limits: limits(), keeps_cpu: true };
            judges.on_observation(&seen).len()
        };
        let said =
            [(1, 1), (1, 1), (2, 1), (1, 2), (1, 2)].map(|(zone, generation)| rulings(zone, generation));
        assert_eq!(said, [1, 0, 1, 1, 0]);
    }

    #[test]
    fn what_has_no_limit_is_not_judged() {
        let idle = Sample { cpu_percent: 6_400, ..Sample::default() };
        let mut judge = Judge::default();
        assert_eq!(judge.on_sample(&idle, &Limits::default(), false), []);
    }

    #[test]
    fn threads_are_counted_twice_and_a_lag_once() {
        let threads = |count| Sample { processes: Some(count), ..Sample::default() };
        check(&[65, 0, 65, 65].map(threads), false, "+ - + !");
        check(&[2_001, 30_001].map(|lag| Sample { lag_ms: Some(lag), ..Sample::default() }), false, "+ !");
    }

    #[test]
    fn what_an_app_has_in_common_with_the_kernel_is_not_held_against_it() {
        let limits: Limits = serde_json::from_str(r#"{"memory_bytes": 1, "cpu_percent": 50}"#).unwrap();
        let trusted = Sample { cpu_percent: 60, ..Sample::default() };
        let said = Judge::default().on_sample(&trusted, &limits, false);
        assert!(matches!(said[..], [Verdict::Passed(excess)] if excess.resource == Resource::CpuPercent));
    }

    #[test]
    fn what_is_in_the_store_is_told_of_and_ends_nobody() {
        let soft = SoftLimits { store_bytes: Some(100), ..SoftLimits::default() };
        let limits = Limits { store_bytes: Some(200), soft, ..Limits::default() };
        let mut judge = Judge::default();
        let said = [100, 101, 900, 900, 91, 90]
            .map(|store_bytes| judge.on_sample(&Sample { store_bytes, ..Sample::default() }, &limits, false));
        let excess = |used| Excess { resource: Resource::StoreBytes, used, soft: 100, hard: 200 };
        let (passed, within) = (vec![Verdict::Passed(excess(101))], vec![Verdict::Within(excess(90))]);
        assert_eq!(said, [vec![], passed, vec![], vec![], vec![], within]);
    }

    #[test]
    fn a_reason_names_the_resource_and_both_amounts() {
        let excess =
            Excess { resource: Resource::MemoryBytes, used: 70 * MIB, soft: 51 * MIB, hard: 64 * MIB };
        assert_eq!(excess.reason(), "memory_bytes: it used 70.0 MiB, above its hard limit of 64.0 MiB");
        let lag = Excess { resource: Resource::LagMs, used: 30_100, soft: 2_000, hard: 30_000 };
        assert_eq!(
            lag.reason(),
            "lag_ms: it left its ring unread for 30.1 s, above its hard limit of 30.0 s"
        );
        assert_eq!(
            excess.to_string(),
            "memory_bytes: 70.0 MiB, with a soft limit of 51.0 MiB and a hard one of 64.0 MiB"
        );
    }
}
